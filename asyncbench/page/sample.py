"""Which trials a page holds one by one, and what it shows of each: enough to see why it was graded so."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.store import CELL, ENTRANT
from asyncbench.views import FolderViews

MOST_TRIALS: Final = 20_000
MOST_TEXT: Final = 9_000_000  # bytes of all their texts together
LONGEST: Final = 3_000  # characters of one text; of a longer one its ends are kept
_GROUP: Final = f"{', '.join(ENTRANT)}, suite, task, outcome"
_COUNTS: Final = f"SELECT count(*) AS trials FROM trials GROUP BY {_GROUP}"  # noqa: S608  made of our own words alone
_CHOICE: Final = f"""
SELECT trial_id FROM (
    SELECT unnest(first) AS trial_id, generate_subscripts(first, 1) AS place
    FROM (SELECT min(trial_id, $each) AS first FROM trials GROUP BY {_GROUP})
) ORDER BY place, trial_id LIMIT $most
"""  # noqa: S608  made of our own words alone

_SHOWN: Final = (
    *("trial_id", *CELL),
    *("repeat", "style", "expected", "reply_text", "reasoning_text", "finish_reason", "grader", "answer"),
    *("outcome", "input_tokens", "output_tokens", "reasoning_tokens", "cost_usd", "attempts", "latency_s"),
    *("finished_at", "error_kind", "error_message", "http_status", "model_served"),
)
_JOINED: Final = ("problem_set", "problem_id")
_GRADES: Final = (
    *("grader", "grader_version", "headline", "answer", "classification", "reason", "outcome", "format_ok"),
    *("digits_right", "digits_total", "flags"),
)
_TEXTS: Final = ("question", "expected", "reply_text", "reasoning_text", "answer", "error_message")

Shown = dict[str, Any]  # Any: cells of `trials`, `grades` and a problem set


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The trials of a page."""

    trials: list[Shown]  # in the order of the choice
    of: int  # trials in the folder
    rule: str  # how they were chosen, for people


def sample_of(views: FolderViews, *, most: int = MOST_TRIALS, most_text: int = MOST_TEXT) -> Sample:
    """Return the trials that a page shows: all, or the first of every group, then the second of every group…

    Args:
        views: of the results folders.
        most: trials at most.
        most_text: bytes at most, of all their texts together; the first trial is there whatever its size.

    Raises:
        ConfigError, StoreError: the folder cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    groups = [row["trials"] for row in views.rows(_COUNTS)]

    def chosen(each: int) -> int:
        return sum(min(each, trials) for trials in groups)

    each = bisect_left(range(max(groups, default=0)), most, key=chosen)
    choice = views.rows(_CHOICE, {"most": most, "each": max(1, each)})
    places, of = {row["trial_id"]: place for place, row in enumerate(choice)}, sum(groups)
    found = sorted(_trials(views, list(places)), key=lambda trial: places[trial["trial_id"]])
    _add_questions(views, found)
    _add_grades(views, found, list(places))
    kept = list(_within(map(_shortened, found), most_text))
    return Sample(trials=kept, of=of, rule=_rule(len(kept), of))


def _rule(kept: int, of: int) -> str:
    texts = f"Texts longer than {LONGEST:,} characters are shown without their middle."
    if kept == of:
        return f"The page has all {of:,} trials. {texts}"
    return (
        f"The page has {kept:,} of {of:,} trials: a fixed random sample with equally many of each model, "
        f"condition, task and outcome, as far as there are enough. {texts}"
    )


def _trials(views: FolderViews, ids: Sequence[str]) -> Iterator[Shown]:
    for batch in views.of_trials("trials", [*_SHOWN, *_JOINED], ids):
        yield from batch.to_pylist()


def _add_questions(views: FolderViews, trials: Sequence[Shown]) -> None:
    """Give each trial its question; one whose problem set is gone has None."""
    wanted = {(trial["problem_set"], trial["problem_id"]) for trial in trials}
    problem_ids = pa.array(sorted({problem_id for _, problem_id in wanted}), pa.string())
    columns = ["problem_set", "problem_id", "question"]
    questions: dict[tuple[str, str], str] = {}
    for batch in views.problems(columns, pc.field("problem_id").isin(problem_ids)):
        questions |= {(row["problem_set"], row["problem_id"]): row["question"] for row in batch.to_pylist()}
    for trial in trials:
        trial["question"] = questions.get((trial.pop("problem_set"), trial.pop("problem_id")))


def _add_grades(views: FolderViews, trials: Sequence[Shown], ids: Sequence[str]) -> None:
    """Give each trial what every grader said of it, headline first."""
    grades: dict[str, list[Shown]] = {trial_id: [] for trial_id in ids}
    for batch in views.of_trials("grades", ["trial_id", *_GRADES], ids):
        for row in batch.to_pylist():
            grades[row.pop("trial_id")].append(row)
    for trial in trials:
        trial["grades"] = sorted(grades[trial["trial_id"]], key=lambda grade: not grade["headline"])


def _shortened(trial: Shown) -> Shown:
    """Return a trial whose texts are `LONGEST` at most; `cut` tells how long the others were."""
    cut = {name: len(trial[name]) for name in _TEXTS if len(trial[name] or "") > LONGEST}
    grades = [{**grade, "answer": _ends(grade["answer"])} for grade in trial["grades"]]
    texts = {name: _ends(trial[name]) for name in _TEXTS}
    at: datetime = trial["finished_at"]
    return {**trial, **texts, "grades": grades, "finished_at": at.timestamp(), "cut": cut}


def _ends(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST:
        return text
    head = LONGEST * 2 // 3
    left_out = len(text) - LONGEST
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[-(LONGEST - head) :]}"


def _within(trials: Iterator[Shown], most_text: int) -> Iterator[Shown]:
    """Yield trials until their texts would be more than that."""
    taken = 0
    for trial in trials:
        taken += _size(trial)
        if taken > most_text and taken > _size(trial):
            return
        yield trial


def _size(trial: Mapping[str, Any]) -> int:
    texts = [*(trial[name] for name in _TEXTS), *(grade["answer"] for grade in trial["grades"])]
    return sum(len((text or "").encode()) for text in texts)
