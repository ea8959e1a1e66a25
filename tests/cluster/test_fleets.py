"""Two thousand clusters, each drawn from its seed, and what must hold; `make test` plays twenty."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from asyncbench.records import Result, StopWhen
from tests.tiers import shared_out
from tests.world import fleets
from tests.world.fleets import Fate, Fleet, PlannedLane, Scenario, play, scenario, used
from tests.world.seeds import SEED, hold

RUNS = 2_000
A_TEST = 20


@pytest.mark.parametrize("first", shared_out(range(0, RUNS, A_TEST), first=1, long=9))
def test_whatever_happens_to_a_cluster_the_promises_hold(first):
    hold(fleets.broken, range(first, first + A_TEST))


def test_the_run_of_a_seed():
    hold(fleets.broken, [SEED])


def test_a_seed_always_draws_and_plays_the_same_run():
    assert scenario(11) == scenario(11)
    first, again = (play(scenario(11)).provider.calls for _ in range(2))
    assert [call.at_s for call in first] == [call.at_s for call in again]


def test_the_runs_differ_in_all_that_may_happen():
    drawn = [scenario(seed) for seed in range(RUNS // 10)]
    for happens in (
        lambda one: one.workers == 64,
        lambda one: one.budget_usd and one.budget_usd < 1,
        lambda one: one.stop_when,
        lambda one: one.lost,
        lambda one: one.dies_s is not None and one.zombies,
        lambda one: any(fate.dies and fate.readable for fate in one.fates),
        lambda one: any(fate.dies and not fate.readable for fate in one.fates),
        lambda one: any(fate.sleeps_s for fate in one.fates),
        lambda one: any(fate.stalls_s > fleets.GIVEN_UP_S for fate in one.fates),
        lambda one: any(fate.worker is None for fate in one.fates),
    ):
        assert any(map(happens, drawn))


# ── a promise that is broken is found ────────────────────────────────────────────────────────


def a_result_in_two_journals(fleet: Fleet) -> None:
    first, second = (journal for name, journal in fleet.journals.items() if name.startswith("w"))
    second.kept.append(next(event for event in first.kept if isinstance(event, Result)))


def a_result_less(fleet: Fleet) -> None:
    journal = next(one for one in fleet.journals.values() if any(isinstance(e, Result) for e in one.kept))
    journal.kept.remove(next(event for event in journal.kept if isinstance(event, Result)))


def a_call_in_flight_for_ever(fleet: Fleet) -> None:
    fleet.reigns[-1].clients[0].counters.in_flight = 1


def an_answer_paid_for_again(fleet: Fleet) -> None:
    fleet.provider.calls.append(fleet.provider.calls[0])


def a_lower_limit(fleet: Fleet) -> None:
    fleet.plan = replace(fleet.plan, lanes=(replace(LANE, rpm=600.0),))


def fewer_slots(fleet: Fleet) -> None:
    fleet.plan = replace(fleet.plan, lanes=(replace(LANE, concurrency=2),))


def a_dollar_nobody_spent(fleet: Fleet) -> None:
    ledger = fleet.reigns[-1].ledger
    assert ledger is not None
    ledger.caps[0].spent += 10**12


def other_answers(fleet: Fleet) -> None:
    fleet.provider.plan = replace(fleet.plan, lanes=(replace(LANE, right=0.5),))


LANE = PlannedLane(alias="m0", trials=120, rpm=1_200.0, concurrency=None, right=1.0)
SEEN = Scenario(workers=2, lanes=(LANE,), budget_usd=1.0, stop_when=StopWhen(saturated=0.12))


@pytest.mark.parametrize(
    ("tamper", "rule"),
    [
        (a_result_in_two_journals, fleets.every_trial_is_closed_once),
        (a_result_less, fleets.every_trial_is_closed_once),
        (a_call_in_flight_for_ever, fleets.counters_tell_what_came_of_it),
        (an_answer_paid_for_again, fleets.nothing_is_paid_twice_but_what_was_in_flight),
        (a_lower_limit, fleets.no_limit_is_passed),
        (fewer_slots, fleets.no_more_calls_are_in_flight_than_may_be),
        (a_dollar_nobody_spent, fleets.money_adds_up),
        (a_dollar_nobody_spent, Fleet.check),
        (other_answers, fleets.cells_stop_as_in_one_process),
    ],
)
def test_a_promise_that_is_broken_is_found(tamper: Callable[[Fleet], None], rule: Callable[[Fleet], None]):
    fleet = play(SEEN)
    for check in (*fleets.INVARIANTS, Fleet.check):
        check(fleet)
    tamper(fleet)
    with pytest.raises(AssertionError):
        rule(fleet)


# ── a limit at one of many workers ───────────────────────────────────────────────────────────

SECONDS = 70


@pytest.mark.long
@pytest.mark.parametrize(("workers", "per_s", "seconds"), [(2, 40, SECONDS), (64, 20, 20)])
def test_a_worker_uses_99_percent_of_a_limit_and_passes_it_in_no_minute(workers, per_s, seconds):
    use = used(workers, per_s, seconds=seconds)
    assert use.share >= 0.99
    assert use.worst_minute <= 1.0
    assert use.worst_second <= 1.15
    assert use.refused == 0


@pytest.mark.long
@pytest.mark.parametrize("happens", ["stalls", "deaths"])
@pytest.mark.parametrize(("workers", "per_s"), [(2, 100), (64, 20)])
def test_a_worker_that_stalls_or_dies_loses_little_more_than_that_time(workers, per_s, happens):
    fates = [*(_stalls(workers) if happens == "stalls" else _deaths(workers))]
    lost_s = sum(fate.stalls_s or fate.noticed_s + fleets.RESEND_S for fate in fates if not fate.worker)
    use = used(workers, per_s, fates, seconds=SECONDS)
    assert use.share >= 0.98 * SECONDS / (SECONDS + lost_s)
    assert use.worst_minute <= 1.0
    assert use.worst_second <= 1.15
    assert use.refused == 0


def _stalls(workers: int) -> Iterator[Fate]:
    """Each worker stands still for up to two seconds, every ten seconds or so."""
    rng = random.Random(5)
    for worker in range(workers):
        at_s = rng.uniform(5, 15)
        while at_s < 70:
            yield Fate(at_s=at_s, worker=worker, stalls_s=(stalls_s := rng.uniform(0.2, 2)))
            at_s += stalls_s + rng.expovariate(1 / 10)


def _deaths(workers: int) -> Iterator[Fate]:
    """A quarter of the workers die."""
    rng = random.Random(6)
    for worker in range(0, workers, 4):
        yield Fate(at_s=rng.uniform(10, 65), worker=worker, dies=True)
