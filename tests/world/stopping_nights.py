"""Nights with a stopping rule, drawn from a seed: what is right, what takes how long, what goes wrong.

`scenario(seed)` draws, `play` runs them: a first start that may crash, a second with the same rule, and a
last one without. Wrong answers take longer than right ones: counting what ends first would be noticed.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from asyncbench.engine.model_client import ModelClient, TrialFeed
from asyncbench.engine.stopping import ConditionCell, cell_of, stop_at
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.planning.skipping import Before, Needed, stopping_of
from asyncbench.records import (
    Ended,
    Event,
    History,
    Limits,
    Outcome,
    Reply,
    Request,
    Result,
    RetryPolicy,
    Sent,
    Skipped,
    Stop,
    StopWhen,
    Trial,
    Usage,
)
from tests.world import seeds
from tests.world.clock import virtually
from tests.world.night import EPOCH_S, MODEL, Night, known_of, requests

TEN: Final = Limits(concurrency=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One night."""

    seed: int = 0
    when: StopWhen
    shares: tuple[float, ...]  # of right answers, by cell
    problems: int  # of each cell
    repeats: int = 1
    limits: Limits = TEN
    latency_s: tuple[float, float] = (0.5, 2.0)
    wrong_s: float = 0.0  # that a wrong answer takes longer
    faulty: float = 0.0  # the part of calls that end with a 500
    crash_s: float | None = None  # of the first start


def scenario(seed: int) -> Scenario:
    """Draw a night."""
    rng = random.Random(f"stopping {seed}")
    when = StopWhen(
        ci_width=rng.choice([0.2, 0.3, 0.5]),
        saturated=rng.choice([None, 0.05, 0.15]),
    )
    return Scenario(
        seed=seed,
        when=rng.choice([when, when, replace(when, ci_width=None, saturated=when.saturated or 0.1)]),
        shares=tuple(rng.choice([0.0, 0.05, 0.3, 0.9, 1.0, 1.0]) for _ in range(rng.choice([1, 3, 6]))),
        problems=rng.choice([10, 60, 150]),
        repeats=rng.choice([1, 1, 2]),
        limits=Limits(concurrency=rng.choice([1, 8, 60]), rpm=rng.choice([None, None, 600.0])),
        wrong_s=rng.choice([0.0, 20.0]),
        faulty=rng.choice([0.0, 0.0, 0.2]),
        crash_s=rng.choice([None, rng.uniform(0, 60)]),
    )


class Oracle:
    """A provider whose answer to each question is drawn once."""

    def __init__(self, plan: Scenario) -> None:
        self._plan = plan
        self._rng = random.Random(f"oracle {plan.seed}")
        self.answered: set[str] = set()  # trials whose answer was sent

    def right(self, trial: Trial) -> bool:
        share = self._plan.shares[trial.problem.length or 0]
        return random.Random(f"{self._plan.seed} {trial.trial_id}").random() < share

    async def ask(self, request: Request) -> Reply:
        right = self.right(request.trial)
        await asyncio.sleep(self._rng.uniform(*self._plan.latency_s) + (0 if right else self._plan.wrong_s))
        if self._rng.random() < self._plan.faulty:
            raise ProviderError(ErrorKind.SERVER_ERROR, f"failed {self._rng.random()}", http_status=500)
        self.answered.add(request.trial.trial_id)
        return Reply(text="4" if right else "5", usage=Usage(input_tokens=10, output_tokens=5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of a night, and what was there before it."""

    night: Night
    client: ModelClient
    when: StopWhen | None
    crashed: bool
    closed_before: Mapping[str, bool | None]  # right or not, None: failed, by trial
    answered_before: set[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A night that was played."""

    plan: Scenario
    trials: Sequence[Trial]  # in the planned order
    starts: Sequence[Start]


def play(plan: Scenario) -> Played:
    """Play a night to its end."""
    return virtually(_play(plan))


async def _play(plan: Scenario) -> Played:
    asked, oracle, kept = planned(plan), Oracle(plan), list[Event]()
    starts = []
    for when, crash_s in ((plan.when, plan.crash_s), (plan.when, None), (None, None)):
        starts.append(await _start(asked, oracle, kept, when, crash_s))
        kept += starts[-1].night.kept
    return Played(plan=plan, trials=[one.trial for one in asked], starts=starts)


def planned(plan: Scenario) -> list[Request]:
    """Return all requests in balanced order: row by row of all cells, then the repeats."""
    model = replace(MODEL, limits=plan.limits, retry=RetryPolicy(attempts=2))
    cells = len(plan.shares)
    return [
        replace(one, trial=_repeated(one.trial, repeat, i % cells))
        for repeat in range(plan.repeats)
        for i, one in enumerate(requests(cells * plan.problems, model))
    ]


def _repeated(trial: Trial, repeat: int, length: int) -> Trial:
    problem = replace(trial.problem, length=length)
    return replace(trial, trial_id=f"{trial.trial_id} {repeat}", problem=problem, repeat=repeat)


async def _start(
    asked: Sequence[Request],
    oracle: Oracle,
    before: Sequence[Event],
    when: StopWhen | None,
    crash_s: float | None,
) -> Start:
    night, histories = Night(), known_of(before)
    results = [event for event in before if isinstance(event, Result)]
    closed = {one.trial.trial_id: _answer(one) for one in results}
    known_trials = [(one, histories.get(one.trial.trial_id, History())) for one in asked]
    client = night.client(oracle.ask, known_trials, asked[0].trial.model)
    if when is None:
        client.feed.trials = (one.trial for one in asked if one.trial.trial_id not in closed)
    else:
        skipped = {one.trial.trial_id: said(one.stop) for one in before if isinstance(one, Skipped)}
        right = frozenset(one for one, is_right in closed.items() if is_right)
        failed = frozenset(one for one, is_right in closed.items() if is_right is None)
        known = Before(right=right, failed=failed, again={}, skipped=skipped)
        client.stopping = stopping_of(when, known, night.keep, client.counters, lambda: EPOCH_S)
        spare(client, asked, closed, Needed(before=known, stopping=client.stopping))
    client.counters.done_before = len(closed)
    night.group([client])
    await night.live(crash_s=crash_s)
    return Start(
        night=night,
        client=client,
        when=when,
        crashed=night.dead,
        closed_before=closed,
        answered_before={e.attempt.trial_id for e in before if isinstance(e, Ended) and e.reply},
    )


def said(stop: Stop) -> tuple[str, int, int]:
    return stop.rule, stop.asked, stop.correct


def spare(client: ModelClient, asked: Sequence[Request], closed: Container[str], needed: Needed) -> None:
    """Feed a model as a run does: trials that are closed are told, the others asked for."""

    def open_trials() -> Iterator[Trial]:
        for one in asked:
            trial = one.trial
            if not needed.passes(closed.__contains__, trial.trial_id):
                yield trial
            elif not trial.repeat:
                needed.left_out(*cell_of(trial), trial.trial_id)

    class SpareFeed(TrialFeed):
        def history_of(self, trial: Trial) -> History | None:
            history = super().history_of(trial)
            return history if history is not None and needed.holds(trial, history) else None

    client.feed = SpareFeed(trials=open_trials(), histories=client.feed.histories)


# ── what holds ───────────────────────────────────────────────────────────────────────────────


def cells_of(played: Played) -> dict[ConditionCell, list[Trial]]:
    """The trials of each cell in the planned order, the repeats last."""
    cells: dict[ConditionCell, list[Trial]] = defaultdict(list)
    for trial in played.trials:
        cells[cell_of(trial)].append(trial)
    return cells


def replayed(when: StopWhen, trials: Sequence[Trial], right: Mapping[str, bool | None]) -> Stop | None:
    """Where the rule first holds, looked at after every answer in the planned order; failed ones are none."""
    asked = correct = 0
    for trial in _first(trials):
        if trial.trial_id not in right:
            return None
        if (answer := right[trial.trial_id]) is None:
            continue
        asked, correct = asked + 1, correct + answer
        if (stop := stop_at(when, correct, asked)) is not None:
            return stop
    return None


def telling(trials: Sequence[Trial], right: Mapping[str, bool | None], stop: Stop) -> list[Trial]:
    """The trials of a cell, in the planned order, whose answers a stop goes by."""
    return [one for one in _first(trials) if right.get(one.trial_id) is not None][: stop.asked]


def awaited(trials: Sequence[Trial], right: Mapping[str, bool | None], stop: Stop) -> list[Trial]:
    """The trials of a cell that have to be closed before a stop is known, those that failed among them."""
    first = _first(trials)
    return first[: first.index(telling(trials, right, stop)[-1]) + 1]


def _first(trials: Sequence[Trial]) -> list[Trial]:
    return [one for one in trials if not one.repeat]


def closed_by(start: Start) -> dict[str, bool | None]:
    """What is closed after a start, right or not; None: it failed."""
    return {**start.closed_before, **{one.trial.trial_id: _answer(one) for one in start.night.of(Result)}}


def _answer(result: Result) -> bool | None:
    grade = result.grades[0]
    return None if grade.outcome is Outcome.FAILED else grade.exact_match


def every_trial_is_closed_or_skipped(played: Played) -> None:
    skipped: set[str] = set()
    for start in played.starts[:2]:
        skipped |= {one.trial.trial_id for one in start.night.of(Skipped)}
        closed = closed_by(start).keys()
        assert not skipped & closed, "asked, and yet skipped"
        if not start.crashed:
            assert skipped | closed == {trial.trial_id for trial in played.trials}
            assert start.client.counters.skipped == len(skipped)
            assert start.client.counters.open == 0
    assert closed_by(played.starts[2]).keys() == {trial.trial_id for trial in played.trials}


def what_was_skipped_is_what_a_replay_skips(played: Played) -> None:
    for start in played.starts[:2]:
        right, skipped = closed_by(start), {one.trial.trial_id: one.stop for one in start.night.of(Skipped)}
        for trials in cells_of(played).values():
            stop = replayed(played.plan.when, trials, right)
            here = {skipped[one.trial_id] for one in trials if one.trial_id in skipped}
            assert here <= ({stop} if stop else set()), f"{here} is told, the rule holds at {stop}"
            if stop is not None and not start.crashed:
                assert len(telling(trials, right, stop)) == stop.asked


def none_is_begun_once_its_cell_is_known(played: Played) -> None:
    cells, cell_by_id = cells_of(played), {trial.trial_id: cell_of(trial) for trial in played.trials}
    for start in played.starts[:2]:
        begun, missing = set[str](), dict[ConditionCell, set[str]]()  # of what tells enough of a cell
        for cell, trials in cells.items():
            closed = closed_by(start)
            if stop := replayed(played.plan.when, trials, closed):
                told = {one.trial_id for one in awaited(trials, closed, stop)}
                missing[cell] = told - start.closed_before.keys()
        for event in start.night.kept:
            if isinstance(event, Sent):
                enough = not missing.get(cell_by_id[event.trial_id], {"unknown"})
                assert event.trial_id in begun or not enough, "begun in vain"
                begun.add(event.trial_id)
            elif isinstance(event, Result):
                missing.get(cell_of(event.trial), set()).discard(event.trial.trial_id)


def nothing_is_asked_twice(played: Played) -> None:
    for start in played.starts:
        assert not start.answered_before & set(start.night.sent), "an answer was paid for twice"


def a_second_start_has_nothing_to_add(played: Played) -> None:
    first, second, _ = played.starts
    if not first.crashed:
        assert not second.night.sent
        assert not second.night.of(Skipped), "what is written down already is written again"


RULES: Final[tuple[Callable[[Played], None], ...]] = (
    every_trial_is_closed_or_skipped,
    what_was_skipped_is_what_a_replay_skips,
    none_is_begun_once_its_cell_is_known,
    nothing_is_asked_twice,
    a_second_start_has_nothing_to_add,
)


@lru_cache(maxsize=64)
def night_of(seed: int) -> Played:
    """Play the night of a seed, once."""
    return play(scenario(seed))


def broken(seed: int) -> list[str]:
    """Return what did not hold in the night of a seed."""
    return seeds.broken(seed, night_of, RULES, "tests/engine/test_stopping.py -k test_the_night_of_a_seed")
