"""Trials as the page shows them: one line of a list, one answer in whole, and all answers to one question.

Both the file of `report --html` and the server of `asyncbench view` show what is made here. Texts of others
stay as they are: the page writes them as text, never as markup.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.analysis.anatomy.alignment import MOST_ACCEPTED, Part, aligned, nearest_answer
from asyncbench.analysis.anatomy.counts import error_of, type_of
from asyncbench.analysis.anatomy.error import Error, are_words
from asyncbench.analysis.anatomy.numbers import sign_of
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Asked, asked_in, entrant_of, kind_of
from asyncbench.records import Outcome, accepted_answers
from asyncbench.store.schema import ENTRANT
from asyncbench.suites.chats import readable_question
from asyncbench.tables.numbers import count, dollars, seconds

LONGEST: Final = 3_000  # characters of one text of a whole trial; a longer text loses its middle
SHORT: Final = 120  # characters of a text in a list
ROWS_AT_ONCE: Final = 2048  # rows whose texts are in memory together
_FIRST: Final = 1_000  # characters of a question of which a list shows the first ones
_KIND: Final = ("suite", "task", "variant", "representation")
_EXAMINED: Final = (Outcome.WRONG, Outcome.NO_ANSWER)

_LISTED: Final = (
    *("trial_id", *ENTRANT, *_KIND, "length", "repeat", "outcome", "expected", "answer", "reply_text"),
    *("problem_set", "problem_id", "condition_params", "finished_at"),
)
_SHOWN: Final = (
    *_LISTED,
    *("style", "reasoning_text", "finish_reason", "input_tokens", "output_tokens", "reasoning_tokens"),
    *("cost_usd", "attempts", "ttft_s", "latency_s", "error_kind", "error_message", "http_status"),
    *("model_served", "upstream"),
)
_PROBLEM: Final = ("problem_set", "problem_id", "question", "operands", "answer_type", "extra")
_GRADES: Final = (
    *("grader", "grader_version", "headline", "answer", "classification", "reason", "outcome", "format_ok"),
    *("digits_right", "digits_total", "flags", "score"),
)

PROBLEMS: Final = "problems"  # the name under which views keep rows of problems by id, so each is read once

ShownTrial = dict[str, Any]  # Any: whatever JSON can hold
Row = dict[str, Any]  # Any: cells of `trials`, `grades` and a problem set


def summaries(views: FolderViews, ids: Sequence[str]) -> list[ShownTrial]:
    """Return the lines of a list of trials, in the order of their ids; unknown ids are left out.

    Raises:
        StoreError: the folder cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    rows = _rows(views, _LISTED, "trial_id", ids)
    roster = asked_in(views)
    return _ordered({row["trial_id"]: _line(row, roster, _error(row)) for row in rows}, ids)


def whole_trials(views: FolderViews, ids: Sequence[str]) -> list[ShownTrial]:
    """Return trials with all that the page shows of one; order and errors as of `summaries`."""
    return _ordered(_whole_by_id(views, "trial_id", ids), ids)


def answers_to(views: FolderViews, problem_ids: Sequence[str]) -> list[ShownTrial]:
    """Return whole trials: the answers of everybody to questions, in the order of these.

    Answers to one question stand in the order of entrants and repeats. Raises as `summaries` does.

    Args:
        views: of the results folders.
        problem_ids: what trials have as their `question`.
    """
    order = {problem_id: index for index, problem_id in enumerate(problem_ids)}
    trials = _whole_by_id(views, "problem_id", problem_ids).values()
    return sorted(
        trials, key=lambda trial: (order[trial["question"]], trial["asked"], trial["repeat"], trial["id"])
    )


# ── reading rows ─────────────────────────────────────────────────────────────────────────────────


def _ordered(by_id: Mapping[str, ShownTrial], ids: Sequence[str]) -> list[ShownTrial]:
    """Return trials in the order of their ids, without ids that nobody knows."""
    return [by_id[trial_id] for trial_id in ids if trial_id in by_id]


def _whole_by_id(views: FolderViews, by: str, wanted: Sequence[str]) -> dict[str, ShownTrial]:
    """Return whole trials by id, each made as it is read, so that few long replies are in memory together."""
    roster = asked_in(views)
    rows = _rows(views, _SHOWN, by, wanted)
    trials = {row["trial_id"]: _whole(row, roster) for row in rows}
    for grade in _batch_rows(views.trial_rows("grades", ["trial_id", *_GRADES], list(trials))):
        grades = trials[grade.pop("trial_id")]["grades"]
        grade["answer"] = grade["answer"] and _ends(grade["answer"])
        grades.insert(0 if grade["headline"] else len(grades), grade)
    return trials


def _rows(views: FolderViews, columns: Sequence[str], by: str, wanted: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of trials that have one of the wanted values, each with its problem."""
    rows: Iterable[Row] = _batch_rows(views.trial_rows("trials", columns, wanted, by=by))
    problem_ids: Collection[str] = wanted
    if by == "trial_id":
        rows = list(rows)  # these are few
        problem_ids = {row["problem_id"] for row in rows}

    # Problems that were read before, where the views keep them, are not read again.
    problems_by_id: dict[str, list[Row]] = views.made.get(PROBLEMS, {})
    if missing := {*problem_ids} - problems_by_id.keys():
        unread = pc.field("problem_id").isin(pa.array(sorted(missing), pa.string()))
        for problem in _batch_rows(views.problems(_PROBLEM, unread)):
            problems_by_id.setdefault(problem["problem_id"], []).append(problem)
    problems = {
        (problem["problem_set"], problem["problem_id"]): problem
        for problem_id in problem_ids
        for problem in problems_by_id.get(problem_id, ())
    }

    for row in rows:
        whole = row | problems.get((row["problem_set"], row["problem_id"]), _UNKNOWN)
        accepted = accepted_answers(whole["expected"], whole["extra"])
        yield whole | {"accepted": accepted, "expected": nearest_answer(accepted, whole["answer"])}


_UNKNOWN: Final[Row] = {"question": None, "operands": (), "answer_type": None, "extra": "{}"}


def _batch_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Yield the rows of batches. Small batches are converted together, which is faster."""
    waiting = list[pa.RecordBatch]()
    for batch in chain(batches, [None]):
        if batch is not None:
            waiting.append(batch)
        if waiting and (batch is None or sum(map(len, waiting)) >= ROWS_AT_ONCE):
            table = pa.Table.from_batches(waiting).unify_dictionaries().combine_chunks()
            waiting.clear()
            columns = map(_column_values, table.to_batches()[0].columns if len(table) else ())
            yield from (
                dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)
            )


def _column_values(column: "pa.Array[Any]") -> list[Any]:  # Any: cells of a table
    """Return a column as Python values, times as microseconds; for texts, much faster than `to_pylist`."""
    if isinstance(column, pa.DictionaryArray):
        values = [*column.dictionary.to_pylist(), None]
        return [values[code] for code in column.indices.fill_null(-1).to_numpy().tolist()]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_string(column.type) or (not column.null_count and pa.types.is_primitive(column.type)):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    return column.to_pylist()


# ── lines and whole trials ───────────────────────────────────────────────────────────────────────


def _line(row: Row, roster: Asked, error: Error | None) -> ShownTrial:
    return {
        "id": row["trial_id"],
        "asked": roster.entrant_places[entrant_of(row)],
        "kind": roster.kind_places[kind_of(row)],
        "length": row["length"],
        "repeat": row["repeat"],
        "outcome": row["outcome"],
        "error": error and error.kind,
        "operands": _cut(operands_text(row["task"], row["operands"], row["question"])),
        "expected": _cut(row["expected"]),
        "answer": _cut(row["answer"]),
        "question": row["problem_id"],  # a hash of suite, task and question: one in all problem sets
        "at": row["finished_at"] // 1000,
    }


def _error(row: Row) -> Error | None:
    if row["outcome"] not in _EXAMINED:
        return None
    return error_of(row, answer_type=row["answer_type"], operands=row["operands"])


def operands_text(task: str, operands: Sequence[str], question: str | None) -> str | None:
    """Return a question in one line: `12 + 7`, `12, 7`; without operands the question itself."""
    if not operands:
        return question and " ".join(readable_question(question)[:_FIRST].split())
    sign = sign_of(task) if len(operands) > 1 else None
    first, *others = operands
    if sign is None:
        return ", ".join(operands)
    rest = (f"({operand})" if operand.startswith("-") else operand for operand in others)
    return f" {sign} ".join([first, *rest])


def _whole(row: Row, roster: Asked) -> ShownTrial:
    texts = {
        "prompt": row["question"] and readable_question(row["question"]),
        "expected": row["expected"],
        "answer": row["answer"],
        "reply": row["reply_text"],
        "reasoning": row["reasoning_text"],
        "message": row["error_message"],
    }
    error = _error(row)
    alignment: list[Part] | None = None
    answer_type = row["answer_type"] or type_of(row["representation"])
    if row["answer"] is not None and not are_words(answer_type, row["operands"]):
        parts = aligned(
            row["expected"],
            row["answer"],
            answer_type=answer_type,
            task=row["task"],
            operands=row["operands"],
            error=error,
            right=row["outcome"] == Outcome.CORRECT,
        )
        alignment = [(op, _ends(true), _ends(read)) for op, true, read in parts]

    return {
        **_line(row, roster, error),
        **{name: text and _ends(text) for name, text in texts.items()},
        "accepted": [_cut(text) for text in row["accepted"][:MOST_ACCEPTED]],
        "accepted_in_all": len(row["accepted"]),
        "aligned": alignment,
        "wrong_from_first": error.wrong_from_left if error else (),
        "wrong_from_last": error.wrong_from_right if error else (),
        "grades": [],  # of every grader, the headline first
        "facts": [[name, value] for name, value in _facts(row) if value],
        "cut": {name: len(text) for name, text in texts.items() if text and len(text) > LONGEST},
    }


def _facts(row: Row) -> Iterator[tuple[str, str | None]]:
    """Yield the name and text of each other fact of a trial; None or empty where it is unknown."""
    yield "style", row["style"]
    yield "answered by", row["model_served"]
    yield "upstream", row["upstream"]
    yield "finish reason", row["finish_reason"]
    yield "error", row["error_kind"]
    yield "HTTP status", row["http_status"] and str(row["http_status"])
    tokens = {
        "in": row["input_tokens"],
        "out": row["output_tokens"],
        "of it reasoning": row["reasoning_tokens"],
    }
    yield "tokens", ", ".join(f"{count(n)} {what}" for what, n in tokens.items() if n is not None)
    yield "cost", None if row["cost_usd"] is None else dollars(row["cost_usd"])
    yield "TTFT", None if row["ttft_s"] is None else seconds(row["ttft_s"])
    yield "latency", None if row["latency_s"] is None else seconds(row["latency_s"])
    yield "attempts", str(row["attempts"])


def _cut(text: str | None) -> str | None:
    """Return a text for a list, cut off at its end where it is long."""
    return text if text is None or len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def _ends(text: str) -> str:
    """Return a text of a whole trial, without its middle where it is long."""
    if len(text) <= LONGEST:
        return text
    head = LONGEST * 2 // 3
    left_out = len(text) - LONGEST
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[-(LONGEST - head) :]}"
