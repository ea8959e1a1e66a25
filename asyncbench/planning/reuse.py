"""Answers of another results folder, taken over where the same was asked: nothing is paid twice."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.config.sweep import Sweep
from asyncbench.errors import ConfigError
from asyncbench.planning.trials import TrialSource, trials_of
from asyncbench.providers.params import ANY_LONGEST_REPLY, longest_stored
from asyncbench.records import (
    OF_CONDITIONS,
    Condition,
    History,
    Model,
    Outcome,
    Reply,
    Result,
    Trial,
    Usage,
    says_cut,
)
from asyncbench.store.bucket.fetching import local_folder
from asyncbench.store.catalog import read_attempts, read_trials, texts
from asyncbench.store.folder import Store
from asyncbench.store.manifest import read_manifest
from asyncbench.store.salvage import Salvage
from asyncbench.suites.requests import TrialIds
from asyncbench.suites.table import SUITES, graded

# ── further attempts with a larger max_tokens
# They stay the trials that they were, so their answers take the place of the cut ones. What each call was
# sent with stands in `attempts`; the row of the trial tells what its answer was given.


def check_longer(
    models: Iterable[Model],
    conditions: Iterable[Condition],
    *,
    retry: Collection[Outcome],
    max_tokens: int | None,
) -> None:
    """Refuse a larger max_tokens that would go unused, or is not larger.

    Raises:
        ConfigError: names the model, the value and the way out.
    """
    if max_tokens is None:
        return
    if Outcome.TRUNCATED not in retry:
        raise ConfigError(
            "--max-tokens gives truncated replies more room, so it needs --retry truncated: add that. For "
            "all other trials, set `max_tokens` in the sweep."
        )
    conditions = tuple(conditions)
    for model in models:
        condition_params = (condition.params for condition in conditions if condition.asks(model.alias))
        for params in (model.params, *condition_params):
            if named := sorted(ANY_LONGEST_REPLY & params.keys()):
                raise ConfigError(
                    f"{model.alias}: its `params` set {named[0]}, which --max-tokens does not change. Set "
                    "`max_tokens` in its entry instead, or leave the model out with --models."
                )
        if model.max_tokens is not None and max_tokens <= model.max_tokens:
            raise ConfigError(
                f"{model.alias}: --max-tokens {max_tokens:,} is not more than its max_tokens, "
                f"{model.max_tokens:,}. Give a higher number, or leave the model out with --models."
            )


class Lengths:
    """Models with another max_tokens than they have: one and the same object each time, so that what is made
    of it is made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], Model] = {}

    def variant(self, model: Model, max_tokens: int | None) -> Model:
        """Return the model with this max_tokens: itself where that is its max_tokens."""
        if max_tokens == model.max_tokens:
            return model
        key = model.alias, max_tokens, *(getattr(model, name) for name in OF_CONDITIONS)
        if key not in self._made:
            self._made[key] = replace(model, max_tokens=max_tokens)
        return self._made[key]


class Room:
    """The longest reply that each trial may get in this run."""

    def __init__(self, store: Store, max_tokens: int | None) -> None:
        """Find the trials that get `max_tokens`, or None if all are asked as the sweep says.

        Trials that were cut with no less room before count as finished from here on: `had_it` many.

        Raises:
            ConfigError: that is so for all of them.
            StoreError: the folder cannot be read.
        """
        self.max_tokens, self.had_it = max_tokens, 0
        self._cut: frozenset[str] = frozenset()
        self._store = store
        self._models = Lengths()
        if max_tokens is not None:
            # the tokens that each trial had whose reply was cut, and which is to be asked again
            columns = ["trial_id", "params", "output_tokens"]
            truncated = pc.field("outcome") == Outcome.TRUNCATED.value
            had = {
                row["trial_id"]: max_tokens_of(row["params"]) or row["output_tokens"] or 0
                for row in read_trials(store.folder, columns, truncated).to_pylist()
                if store.again.get(row["trial_id"]) is Outcome.TRUNCATED
            }
            self._cut = frozenset(trial_id for trial_id, tokens in had.items() if tokens < max_tokens)
            self.had_it = len(had) - len(self._cut)
            store.finished |= had.keys() - self._cut
            if had and not self._cut:
                raise ConfigError(
                    f"--max-tokens {max_tokens:,}: all {len(had):,} truncated trials were cut off at "
                    f"{min(had.values()):,} tokens or more. Give a higher number."
                )

    def most(self, model: Model) -> Model:
        """Return a model with the longest reply that any of its trials may get."""
        return model if self.max_tokens is None else self._models.variant(model, self.max_tokens)

    def model_of(self, model: Model, trial_id: str) -> Model:
        """Return a model as it is asked a trial now, or as it was asked where the answer is already there."""
        allowed = self.max_tokens if trial_id in self._cut else model.max_tokens
        history = self._store.histories.get(trial_id)
        if history is not None and history.ended is not None and history.ended.attempt.max_tokens is not None:
            allowed = history.ended.attempt.max_tokens
        return self._models.variant(model, allowed)


def max_tokens_of(params: str) -> int | None:
    """Return the longest reply that the column `params` of a trial allows, or None."""
    value = orjson.loads(params).get("max_tokens")
    return value if isinstance(value, int) else None


# ── reuse


REUSED = "reused"  # the price_source of an answer that cost nothing here
IGNORABLE = ("max_tokens",)
BATCH = 4096  # answers in memory at a time

_USAGE = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
_REPLY = ("finish_reason", "model_served", "request_id", "fingerprint", "upstream", "service_tier")
_TIMES = ("queued_s", "ttft_s", "latency_s")
_COLUMNS = (
    *("trial_id", "sweep", "reused_from", "params", "condition_params"),
    *("reply_text", "reasoning_text", "http_status"),
    *(*_REPLY, *_USAGE, *_TIMES, "finished_at"),
)
_FRESH = History()

_ANSWERED = pc.field("outcome") != Outcome.FAILED.value


def check_reuse(folders: Sequence[Path], ignore: Collection[str], *, out: Path) -> None:
    """Refuse folders that have no answers to give.

    Raises:
        ConfigError: one is no results folder, or the sweep's own; something else than max_tokens is ignored.
        StoreError: its manifest cannot be read.
    """
    if odd := sorted(set(ignore) - set(IGNORABLE)):
        raise ConfigError(f"--ignore {odd[0]}: only {', '.join(IGNORABLE)} can be ignored. Remove the rest.")
    if ignore and not folders:
        raise ConfigError("--ignore needs --reuse: name the folder whose answers you want to take over.")
    for folder in map(local_folder, folders):
        read_manifest(folder)
        if folder.resolve() == out.resolve():
            raise ConfigError(
                f"--reuse {folder} is the sweep's own folder. Name another one, or remove the option."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The complete answers of a results folder."""

    folder: Path
    ids: frozenset[str]  # their trials
    lengths: tuple[int | None, ...]  # the max_tokens that were planned with there; empty: ignore none

    @classmethod
    def read(cls, folder: Path, *, ignore: Collection[str] = ()) -> Self:
        """Look through a folder, which a run may be writing to.

        Raises:
            ConfigError: it is not a results folder.
            StoreError: it cannot be read.
        """
        folder = local_folder(folder)
        answered = read_trials(folder, ["trial_id", "finish_reason"], _ANSWERED)
        reasons = answered["finish_reason"].cast(pa.string())
        cut = [reason for reason in reasons.unique().to_pylist() if says_cut(reason)]
        ids = answered.filter(pc.invert(pc.is_in(reasons, pa.array(cut, pa.string()))))["trial_id"]
        return cls(
            folder=folder,
            ids=frozenset(trial_id for chunk in ids.chunks for trial_id in texts(chunk)),
            lengths=_lengths(folder) if "max_tokens" in ignore else (),
        )


async def take_over(
    answers: Answers,
    sweep: Sweep,
    models: Iterable[Model],
    sets: Mapping[str, tuple[TrialSource, ...]],
    *,
    limit: int | None,
    store: Store,
    salvage: Salvage,
    out: Collection[str] = (),
) -> int:
    """Close every trial that has no answer here and one there; return how many. They count as finished.

    `out` are trials that are in batches: their answers come.

    Raises:
        StoreError: the other folder cannot be read, or ours cannot be written.
    """
    closed: set[str] = set()
    async with salvage.tended():
        for model in models:
            taken = _reused_results(
                answers, sweep, model, sets[model.alias], limit=limit, store=store, out=out
            )
            while results := await asyncio.to_thread(next, taken, ()):  # made off the event loop
                for result in results:
                    salvage.keep(result)
                if salvage.error is not None:
                    raise salvage.error
                closed.update(result.trial.trial_id for result in results)
    store.finished |= closed
    return len(closed)


def _reused_results(
    answers: Answers,
    sweep: Sweep,
    model: Model,
    sets: tuple[TrialSource, ...],
    *,
    limit: int | None,
    store: Store,
    out: Collection[str],
) -> Iterator[list[Result]]:
    """Yield the results of one model's trials that are answered there, many at a time."""
    named = _Named(model, answers)

    def skip(trial_id: str) -> bool:
        called = store.histories.get(trial_id)
        answered = trial_id in store.finished or trial_id in out
        answered = answered or (called is not None and called.ended is not None)
        return answered or not (answers.lengths or trial_id in answers.ids)

    trials = trials_of(sweep, model, sets, limit=limit, skip=skip)
    pairs = ((trial, answer) for trial in trials if (answer := named.answer_to(trial)) is not None)
    while batch := list(islice(pairs, BATCH)):
        ids = pa.array([answer for _, answer in batch], pa.string())
        same_model = (pc.field("provider") == model.provider) & (pc.field("model_id") == model.model_id)
        wanted = same_model & _ANSWERED & pc.field("trial_id").isin(ids)
        read = read_trials(answers.folder, _COLUMNS, wanted).to_pylist()
        rows = {row["trial_id"]: row for row in read if not _reply(row).cut_short}

        # An answer that is longer than one here may be would have been cut; one of unknown length, perhaps.
        longest = model.max_tokens
        lengths = {trial_id: row["output_tokens"] for trial_id, row in rows.items()}
        fitting = {
            trial_id
            for trial_id, tokens in lengths.items()
            if longest is None or (tokens is not None and tokens <= longest)
        }
        results = [
            _result(named.sent_trial(trial, row), row, store.histories.get(trial.trial_id, _FRESH))
            for trial, answer in batch
            if (row := rows.get(answer)) and (answer == trial.trial_id or answer in fitting)
        ]
        if results:
            yield results


class _Named:
    """Finds the answer to a trial by what its id is here, or would be with another max_tokens."""

    def __init__(self, model: Model, answers: Answers) -> None:
        self._answers = answers
        self._lengths = Lengths()
        self._alike = [self._lengths.variant(model, length) for length in answers.lengths]
        self._ids: dict[str, list[TrialIds]] = {}  # by condition

    def answer_to(self, trial: Trial) -> str | None:
        """Return the id of the answer, or None if it has none."""
        if trial.trial_id in self._answers.ids:
            return trial.trial_id

        # what the id would be with another max_tokens
        name, problem = trial.condition.name, trial.problem
        if name not in self._ids:
            self._ids[name] = [TrialIds(model, trial.condition) for model in self._alike]
        version = SUITES[problem.suite].prompt_version
        trial_ids = (
            ids.make(problem.problem_id, prompt_version=version, repeat=trial.repeat)
            for ids in self._ids[name]
        )
        return next((trial_id for trial_id in trial_ids if trial_id in self._answers.ids), None)

    def sent_trial(self, trial: Trial, row: Mapping[str, Any]) -> Trial:
        """Return a trial with the max_tokens that its answer was given."""
        return replace(trial, model=self._lengths.variant(trial.model, max_tokens_of(row["params"])))


def _lengths(folder: Path) -> tuple[int | None, ...]:
    """Return every max_tokens that a trial of a folder was planned with."""
    planned = map(max_tokens_of, texts(pc.unique(read_trials(folder, ["params"])["params"].combine_chunks())))
    # the first call of a trial that was given more room later
    sent = read_attempts(folder, ["max_tokens"])["max_tokens"].unique().to_pylist()
    return tuple(sorted({None, *planned, *sent}, key=lambda length: (length is None, length or 0)))


def _result(trial: Trial, row: Mapping[str, Any], history: History) -> Result:
    """Return a trial closed with another sweep's answer, graded anew; it cost what was spent here before."""
    reply = _reply(row)
    return Result(
        trial=trial,
        reply=reply,
        error=None,
        grades=graded(trial.problem, reply, trial.condition),
        attempts=history.attempts,
        cost_usd=history.cost_usd,
        price_source=REUSED,
        **{name: row[name] for name in _TIMES},
        finished_at=row["finished_at"].timestamp(),
        reused_from=row["reused_from"] or row["sweep"],
    )


def _reply(row: Mapping[str, Any]) -> Reply:
    counted = {name: row[name] for name in _USAGE}
    return Reply(
        text=row["reply_text"],
        reasoning=row["reasoning_text"],
        usage=Usage(**counted) if any(count is not None for count in counted.values()) else None,
        http_status=row["http_status"],
        max_tokens=longest_stored(row["params"], row["condition_params"]),
        **{name: row[name] for name in _REPLY},
    )
