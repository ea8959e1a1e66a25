"""A trial as another tool's log tells it, and a file of them as a run.

The tool's grades stay what they are, under names such as `inspect/match`; the first of them counts. Beside
them stands the grade of the grader of ours that fits the right answers of the file: `regrade` brings that
one up to date, and leaves the others alone.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from reprlib import repr as shown
from typing import Any, Final

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.published.files import Recorded, RecordedRun, counted, is_whole, model_of, run_of
from asyncbench.records import Condition, Draft, Grade, Outcome, Reply, Usage, outcome_of
from asyncbench.suites.custom import SUITE, TOLD, likely_grader

Options = Mapping[str, object]  # of an import
# Where a record stands in its file, and what reads it; a ValueError says why it cannot be used.
Entry = tuple[str, Callable[[], "ToldTrial"]]
TOLD_VERSION: Final = 1  # of a grader that is not ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a tool's grader made of a reply."""

    value: float  # 1: right; below: wrong, or partly right
    answer: str | None = None  # what it read; None: it does not say
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTrial:
    """One question asked of one model, and what came of it. None: the log does not say."""

    task: str
    question: str
    accepted: tuple[str, ...]  # right answers; empty: the log names none
    model: str
    simulated: bool = False  # it is a mock of the tool, which asks no model
    condition: Condition = field(default_factory=Condition)
    repeat: int | None = None  # None: by how often the question was asked before it
    reply: Reply | None  # None: none came
    error: str | None = None  # why
    scores: Mapping[str, Score]  # by grader, the one that counts first
    latency_s: float | None = None
    cost_usd: float | None = None
    ended_at: float | None = None  # UTC, seconds since 1970


def run_from(path: Path, entries: Iterable[Entry], *, endings: tuple[str, ...]) -> RecordedRun:
    """Return the run that a log is; entries that cannot be used are left out, each with the reason.

    Raises:
        ConfigError: the file cannot be read.
    """
    trials, left_out = list[ToldTrial](), list[str]()
    asked_before = Counter[tuple[str, str, str]]()
    for origin, read in entries:
        try:
            trial = read()
        except ValueError as error:
            left_out.append(f"{origin}: {error}")
            continue
        if trial.repeat is None:
            key = (trial.model, trial.condition.name, trial.question)
            trial = replace(trial, repeat=asked_before[key])
            asked_before[key] += 1
        trials.append(trial)

    # One grader of ours for all of the file, whose right answers tell which.
    expected = [answer for trial in trials for answer in trial.accepted]
    settings = {"grader": likely_grader(expected)} if expected else {}
    file_time = path.stat().st_mtime
    recordings = list[Recorded]()
    for trial in trials:
        try:
            recordings.append(_recorded(trial, settings, file_time))
        except ValueError as error:
            left_out.append(f"{path}: {shown(trial.question)}: {error}")
    return RecordedRun(
        run=run_of(path, *endings),
        path=path,
        trials=tuple(recordings),
        left_out=tuple(left_out),
        planned=counted((recorded.model, recorded.condition, recorded.draft) for recorded in recordings),
        same_problems=True,
    )


def _recorded(trial: ToldTrial, settings: Mapping[str, str], file_time: float) -> Recorded:
    several = {"accepted": trial.accepted} if len(trial.accepted) > 1 else {}
    extra = {TOLD: True, **(settings if trial.accepted else {}), **several}
    error = None
    if trial.reply is None:
        # Why a tool has no reply is a text of its own: no kind of ours is read into it.
        error = ProviderError(ErrorKind.BAD_REPLY, trial.error or "the log has no reply")
    return Recorded(
        draft=Draft(
            suite=SUITE.name,
            task=trial.task,
            representation="text",
            length=None,
            question=trial.question,
            expected=next(iter(trial.accepted), ""),
            answer_type="text",
            extra=json.dumps(extra),
        ),
        model=model_of({"model": trial.model}, simulated=trial.simulated),
        condition=trial.condition,
        repeat=trial.repeat or 0,
        reply=trial.reply,
        error=error,
        grades=tuple(_grades(trial)),
        latency_s=trial.latency_s,
        cost_usd=trial.cost_usd,
        ended_at=file_time if trial.ended_at is None else trial.ended_at,
        timed=trial.ended_at is not None,
    )


def _grades(trial: ToldTrial) -> Iterator[Grade]:
    """Yield the grades that a tool gave, that which counts first."""
    if not trial.scores:
        raise ValueError("it has no grade. Have the tool score it, then import it")
    for number, (name, score) in enumerate(trial.scores.items()):
        if not 0 <= score.value <= 1:
            if number:
                continue  # a figure beside the grade, such as a count of words
            raise ValueError(f"the score of {name} is {score.value:g}, not from 0 to 1. Scale it in the tool")
        right = trial.reply is not None and score.value == 1
        answer = None
        if trial.reply is not None:
            answer = (trial.reply.text if score.answer is None else score.answer) or None
        none = not right and answer is None
        outcome = outcome_of(trial.reply, answer=answer, exact_match=right)
        yield Grade(
            grader=name,
            grader_version=TOLD_VERSION,
            headline=not number,
            answer=answer,
            classification="correct" if right else "none" if none else "wrong",
            reason="error" if outcome is Outcome.FAILED else score.reason or ("no_answer" if none else None),
            outcome=outcome,
            exact_match=right,
            score=score.value if 0 < score.value < 1 else None,
        )


# ── fields of logs


def usage_in(fields: Mapping[str, Any], **names: str) -> Usage | None:
    """Return the tokens in a log by the names of fields of `Usage`, or None if the log tells none."""
    counts: dict[str, Any] = {name: fields.get(key) for name, key in names.items()}  # Any: JSON
    tokens = {name: count for name, count in counts.items() if is_whole(count) and count >= 0}
    return Usage(**tokens) if tokens else None


def seconds(value: object) -> float | None:
    """Return a time that is told in seconds, or None."""
    right = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if right else None  # type: ignore[arg-type]  # it is a number


def moment(text: object) -> float | None:
    """Return a moment of ISO 8601 as seconds since 1970, UTC without a zone, or None for other texts."""
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if at is None:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
