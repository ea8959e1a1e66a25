"""Trials as the page shows them: one line of a list, one answer in whole, and all answers to one question.

Both the file of `report --html` and the server of `asyncbench view` show what is made here. Texts of others
stay as they are: the page writes them as text, never as markup.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.records import Outcome
from asyncbench.results import Asked, asked_in, kind_of
from asyncbench.results.anatomy import Error, Part, aligned, error_of, sign_of, type_of
from asyncbench.shown import count, dollars, seconds
from asyncbench.store import ENTRANT
from asyncbench.views import FolderViews

LONGEST: Final = 3_000  # characters of one text of a whole trial; of a longer one its ends are kept
SHORT: Final = 120  # characters of a text in a list
_LAST_LINE: Final = 400  # characters of a question in which its last line is looked for
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
_PROBLEM: Final = ("problem_set", "problem_id", "question", "operands", "answer_type")
_GRADES: Final = (
    *("grader", "grader_version", "headline", "answer", "classification", "reason", "outcome", "format_ok"),
    *("digits_right", "digits_total", "flags"),
)

ShownTrial = dict[str, Any]  # Any: whatever JSON can hold
Row = dict[str, Any]  # Any: cells of `trials`, `grades` and a problem set


def summaries(views: FolderViews, ids: Sequence[str]) -> list[ShownTrial]:
    """Return the lines of a list of trials, in the order of their ids; ids that nobody knows are left out.

    Raises:
        StoreError: the folder cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    return _in_order(_shown(views, _LISTED, ids, _summary), ids)


def whole_trials(
    views: FolderViews, ids: Sequence[str], problem_ids: Collection[str] | None = None
) -> list[ShownTrial]:
    """Return trials with all that the page shows of one; order and errors as of `summaries`.

    `problem_ids`: those of their problems, where they are known.
    """
    grades = _grades(views, ids)

    def whole(row: Row, asked: Asked) -> ShownTrial:
        return _whole(row, asked, grades.get(row["trial_id"], []))

    return _in_order(_shown(views, _SHOWN, ids, whole, problem_ids), ids)


def question_of(views: FolderViews, key: str) -> list[ShownTrial]:
    """Return whole trials: the answers of everybody to one question, in the order of entrants and repeats.

    `key`: the `question` of a trial. Raises as `summaries` does.
    """
    query = "SELECT trial_id FROM trials WHERE problem_id = $key"
    trials = whole_trials(views, [row["trial_id"] for row in views.rows(query, {"key": key})], {key})
    return sorted(trials, key=itemgetter("asked", "repeat", "id"))


# ── what is read ─────────────────────────────────────────────────────────────────────────────


def _in_order(found: Iterable[ShownTrial], ids: Sequence[str]) -> list[ShownTrial]:
    by_id = {trial["id"]: trial for trial in found}
    return [by_id[trial_id] for trial_id in ids if trial_id in by_id]


def _shown(
    views: FolderViews,
    columns: Sequence[str],
    ids: Sequence[str],
    show: Callable[[Row, Asked], ShownTrial],
    problem_ids: Collection[str] | None = None,
) -> Iterator[ShownTrial]:
    """Yield trials as they are read, so that no more long texts are held than a batch has."""
    asked = asked_in(views)
    if problem_ids is None:
        problem_ids = {row["problem_id"] for row in _as_rows(views.of_trials("trials", ["problem_id"], ids))}
    problems = _problems(views, problem_ids)
    for row in _as_rows(views.of_trials("trials", columns, ids)):
        problem = problems.get((row["problem_set"], row["problem_id"]), _UNKNOWN)
        yield show(row | problem, asked)


_UNKNOWN: Final[Row] = {"question": None, "operands": (), "answer_type": None}


def _problems(views: FolderViews, problem_ids: Collection[str]) -> dict[tuple[str, str], Row]:
    wanted = pc.field("problem_id").isin(pa.array(sorted(problem_ids), pa.string()))
    found = _as_rows(views.problems(_PROBLEM, wanted)) if problem_ids else ()
    return {(row.pop("problem_set"), row.pop("problem_id")): row for row in found}


def _as_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        names = batch.schema.names
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield dict(zip(names, values, strict=True))


def _grades(views: FolderViews, ids: Sequence[str]) -> dict[str, list[Row]]:
    """Return what every grader said of each trial, headline first."""
    grades: dict[str, list[Row]] = {}
    for row in _as_rows(views.of_trials("grades", ["trial_id", *_GRADES], ids)):
        of = grades.setdefault(row.pop("trial_id"), [])
        row["answer"] = row["answer"] and _ends(row["answer"])
        of.insert(0 if row["headline"] else len(of), row)
    return grades


# ── what is shown ────────────────────────────────────────────────────────────────────────────


def _summary(row: Row, asked: Asked) -> ShownTrial:
    return _line(row, asked, _error(row))


def _line(row: Row, asked: Asked, error: Error | None) -> ShownTrial:
    run, model, condition = (row[name] for name in ENTRANT)
    at: datetime = row["finished_at"]
    return {
        "id": row["trial_id"],
        "asked": asked.entrant_places[run, model, condition],
        "kind": asked.kind_places[kind_of(row)],
        "length": row["length"],
        "repeat": row["repeat"],
        "outcome": row["outcome"],
        "error": error and error.kind,
        "operands": _cut(operands_text(row["task"], row["operands"], row["question"])),
        "expected": _cut(row["expected"]),
        "answer": _cut(row["answer"]),
        "question": row["problem_id"],  # a hash of suite, task and question: one in all problem sets
        "at": round(1000 * at.timestamp()),
    }


def _error(row: Row) -> Error | None:
    if row["outcome"] not in _EXAMINED:
        return None
    return error_of(row, answer_type=row["answer_type"], operands=row["operands"])


def operands_text(task: str, operands: Sequence[str], question: str | None) -> str | None:
    """Return the part of a question that differs from others: `12 + 7`, `12, 7`, or its last line."""
    if not operands:
        return question and question[-_LAST_LINE:].strip().rpartition("\n")[2].strip()
    sign = sign_of(task) if len(operands) > 1 else None
    first, *others = operands
    if sign is None:
        return ", ".join(operands)
    return f" {sign} ".join([first, *(f"({other})" if other.startswith("-") else other for other in others)])


def _whole(row: Row, asked: Asked, grades: Sequence[Row]) -> ShownTrial:
    texts = {
        "prompt": row["question"],
        "expected": row["expected"],
        "answer": row["answer"],
        "reply": row["reply_text"],
        "reasoning": row["reasoning_text"],
        "message": row["error_message"],
    }
    error = _error(row)
    return {
        **_line(row, asked, error),
        **{name: text and _ends(text) for name, text in texts.items()},
        "aligned": _aligned(row, error),
        "wrong_from_first": error.wrong_from_left if error else (),
        "wrong_from_last": error.wrong_from_right if error else (),
        "grades": grades,
        "facts": [[name, value] for name, value in _facts(row) if value],
        "cut": {name: len(text) for name, text in texts.items() if text and len(text) > LONGEST},
    }


def _aligned(row: Row, error: Error | None) -> list[Part] | None:
    if row["answer"] is None:
        return None
    parts = aligned(
        row["expected"],
        row["answer"],
        answer_type=row["answer_type"] or type_of(row["representation"]),
        task=row["task"],
        operands=row["operands"],
        error=error,
        right=row["outcome"] == Outcome.CORRECT,
    )
    return [(op, _ends(true), _ends(read)) for op, true, read in parts]


def _facts(row: Row) -> Iterator[tuple[str, str | None]]:
    """Yield what else is known, as text by its name."""
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
    return text if text is None or len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def _ends(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    head = LONGEST * 2 // 3
    left_out = len(text) - LONGEST
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[-(LONGEST - head) :]}"
