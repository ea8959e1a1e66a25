"""What files say of trials, and how it goes into a results folder."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from asyncbench.problems import write_drafts
from asyncbench.problems.identity import identified
from asyncbench.prompting import TrialIds
from asyncbench.records import Attempt, Condition, Draft, Ended, Model, Problem, Reply, Result, Trial
from asyncbench.store.folder import Store
from asyncbench.suites import SUITES, grade

Planned = Mapping[str, Mapping[str, Mapping[str, int]]]  # model → suite → task → trials

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a file says of one trial."""

    draft: Draft
    model: Model
    condition: Condition = field(default_factory=Condition)
    reply: Reply | None  # None: none came
    attempts: int = 1
    latency_s: float | None = None
    cost_usd: float | None = None
    accounting: Mapping[str, object] | None = None  # as it stood: an export writes the same again
    at: float  # when it ended: UTC, seconds since 1970


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one file holds: a run."""

    run: str
    path: Path
    trials: tuple[Recorded, ...]  # in file order
    left_out: tuple[str, ...]  # entries that cannot be used: where, what, found, rule
    planned: Planned


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """What came of one file."""

    run: str
    trials: int = 0  # that are new in the folder
    there_before: int = 0
    left_out: tuple[str, ...] = ()


def sifted(
    entries: Iterable[tuple[str, T]], read: Callable[[T], Recorded]
) -> tuple[tuple[Recorded, ...], tuple[str, ...]]:
    """Return the trials that could be read, and the complaints about the others, each with its place."""
    trials, left_out = list[Recorded](), list[str]()
    for place, entry in entries:
        try:
            trials.append(read(entry))
        except ValueError as error:
            left_out.append(f"{place}: {error}")
    return tuple(trials), tuple(left_out)


def problems_file(run: str) -> str:
    """Return where in the folder the problems of an imported run are."""
    return f"problems/{quote(run, safe='')}.parquet"


def trials_of(recording: Recording, *, sweep: str) -> list[Trial]:
    """Return the trials of a run, with their ids, in file order."""
    problems = identified(one.draft for one in recording.trials)
    return [
        _trial(one, problem, run=recording.run, sweep=sweep)
        for one, problem in zip(recording.trials, problems, strict=True)
    ]


def keep(recording: Recording, store: Store) -> ImportedRun:
    """Bring into a folder what it does not hold yet of a run.

    Raises:
        StoreError: the folder cannot be written.
    """
    write_drafts((one.draft for one in recording.trials), store.folder / problems_file(recording.run))
    trials, fresh = trials_of(recording, sweep=store.manifest["sweep"]), 0
    for one, trial in zip(recording.trials, trials, strict=True):
        if trial.trial_id not in store.finished:
            fresh += 1
            for event in _events(one, trial, called_before=trial.trial_id in store.histories):
                store.keep(event)
    return ImportedRun(
        run=recording.run,
        trials=fresh,
        there_before=len(trials) - fresh,
        left_out=recording.left_out,
    )


def _trial(one: Recorded, problem: Problem, *, run: str, sweep: str) -> Trial:
    version = SUITES[problem.suite].prompt_version
    trial_ids = TrialIds(one.model, one.condition, run=run)
    return Trial(
        trial_id=trial_ids.of(problem.problem_id, prompt_version=version, repeat=0),
        run=run,
        sweep=sweep,
        problem_set=run,
        problem=problem,
        model=one.model,
        condition=one.condition,
    )


def _events(one: Recorded, trial: Trial, *, called_before: bool) -> Iterator[Ended | Result]:
    """Yield what a run would have written down; an import that was killed may have begun it."""
    if not called_before:
        yield Ended(attempt=_attempt(one, trial), reply=one.reply)
    yield Result(
        trial=trial,
        reply=one.reply,
        error=None,
        grades=grade(trial.problem, one.reply, trial.condition.style),
        attempts=one.attempts,
        cost_usd=one.cost_usd,
        price_source=None if one.cost_usd is None else "recorded",
        queued_s=None,
        ttft_s=None,
        latency_s=one.latency_s,
        finished_at=one.at,
    )


def _attempt(one: Recorded, trial: Trial) -> Attempt:
    """Return the one call that is recorded, the last."""
    return Attempt(
        trial_id=trial.trial_id,
        attempt=one.attempts,
        model=one.model.alias,
        provider=one.model.provider,
        started_at=one.at,
        latency_s=one.latency_s,
        status="failed" if one.reply is None else "ok",
        usage=one.reply.usage if one.reply else None,
        cost_usd=one.cost_usd,
        raw_usage=one.accounting,
    )
