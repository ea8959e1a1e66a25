"""Trials as the page shows them: one line of a list, one answer in whole, and all answers to one question.

Both the file of `report --html` and the server of `asyncbench view` show what is made here. Texts of others
stay as they are: the page writes them as text, never as markup.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.records import Outcome
from asyncbench.results import Entrant
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

Trial = dict[str, Any]  # Any: whatever JSON can hold
Row = dict[str, Any]  # Any: cells of `trials`, `grades` and a problem set
Kind = tuple[str, ...]  # suite, task, variant, representation


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the page's head has what a trial is of; what is not there has None."""

    entrants: Mapping[Entrant, int] = field(default_factory=dict)
    kinds: Mapping[Kind, int] = field(default_factory=dict)


def summaries(views: FolderViews, ids: Sequence[str], places: Places) -> list[Trial]:
    """Return the lines of a list of trials, in the order of their ids; ids that nobody knows are left out.

    Raises:
        StoreError: the folder cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    rows = _rows(views, _LISTED, ids)
    return [_summary(row, _error(row), places) for row in rows]


def whole_trials(views: FolderViews, ids: Sequence[str], places: Places) -> list[Trial]:
    """Return trials with all that the page shows of one; order and errors as of `summaries`."""
    grades = _grades(views, ids)
    return [_whole(row, grades.get(row["trial_id"], []), places) for row in _rows(views, _SHOWN, ids)]


def question_of(views: FolderViews, key: str, places: Places) -> list[Trial]:
    """Return whole trials: the answers of everybody to one question, in the order of entrants and repeats.

    `key`: the `question` of a trial. Raises as `summaries` does.
    """
    query = "SELECT trial_id FROM trials WHERE problem_id = $key"
    ids = [row["trial_id"] for row in views.rows(query, {"key": key})]
    trials = whole_trials(views, ids, places)
    return sorted(trials, key=lambda trial: (trial["asked"] or 0, trial["repeat"], trial["id"]))


# ── what is read ─────────────────────────────────────────────────────────────────────────────


def _rows(views: FolderViews, columns: Sequence[str], ids: Sequence[str]) -> list[Row]:
    """Return rows of trials, each with its problem; where the problem set is gone, that is empty."""
    found = {row["trial_id"]: row for row in _as_rows(views.of_trials("trials", columns, ids))}
    rows = [found[trial_id] for trial_id in ids if trial_id in found]
    wanted = {row["problem_id"] for row in rows}
    values = pa.array(sorted(wanted), pa.string())
    batches = views.problems(_PROBLEM, pc.field("problem_id").isin(values)) if wanted else ()
    problems = {(row.pop("problem_set"), row.pop("problem_id")): row for row in _as_rows(batches)}
    nothing = {"question": None, "operands": (), "answer_type": None}
    for row in rows:
        row |= problems.get((row["problem_set"], row["problem_id"]), nothing)
    return rows


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
        of.insert(0 if row["headline"] else len(of), row)
    return grades


def _error(row: Row) -> Error | None:
    if row["outcome"] not in _EXAMINED:
        return None
    return error_of(row, answer_type=row["answer_type"], operands=row["operands"])


# ── what is shown ────────────────────────────────────────────────────────────────────────────


def _summary(row: Row, error: Error | None, places: Places) -> Trial:
    run, model, condition = (row[name] for name in ENTRANT)
    at: datetime = row["finished_at"]
    return {
        "id": row["trial_id"],
        "asked": places.entrants.get((run, model, condition)),
        "kind": places.kinds.get(tuple(row[name] for name in _KIND)),
        "length": row["length"],
        "repeat": row["repeat"],
        "outcome": row["outcome"],
        "error": error and error.kind,
        "operands": _cut(operands_text(row["task"], row["operands"], row["question"])),
        "expected": _cut(row["expected"]),
        "answer": _cut(row["answer"]),
        "question": row["problem_id"],  # a hash of suite, task and question: the same in all problem sets
        "at": round(1000 * at.timestamp()),
    }


def operands_text(task: str, operands: Sequence[str], question: str | None) -> str | None:
    """Return the part of a question that differs from others: `12 + 7`, `12, 7`, or its last line."""
    if not operands:
        return question and question[-_LAST_LINE:].strip().rpartition("\n")[2].strip()
    sign = sign_of(task) if len(operands) > 1 else None
    first, *others = operands
    if sign is None:
        return ", ".join(operands)
    return f" {sign} ".join([first, *(f"({other})" if other.startswith("-") else other for other in others)])


def _whole(row: Row, grades: Sequence[Row], places: Places) -> Trial:
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
        **_summary(row, error, places),
        **{name: text and _ends(text) for name, text in texts.items()},
        "aligned": _aligned(row, error),
        "wrong_from_first": error.wrong_from_left if error else (),
        "wrong_from_last": error.wrong_from_right if error else (),
        "grades": [{**grade, "answer": grade["answer"] and _ends(grade["answer"])} for grade in grades],
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
