"""A cell is asked until enough is known of it: the interval holds at every look, the rule at its place."""

import asyncio
import random
from collections import Counter
from dataclasses import replace

import pytest

from asyncbench.engine.budget import Cap, Ledger
from asyncbench.engine.stopping import Stopping, cell_of, stop_at
from asyncbench.engine.telemetry import Counters
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.planning.skipping import Before, Needed
from asyncbench.records import Attempt, Condition, Ended, History, Limits, Sent, Skipped, StopWhen
from asyncbench.stats.always_valid import Interval, alike_needed, always_valid_interval
from benchmarks.stopping import SHARES, answers, ever_excluded, misses, stopped
from tests.world import stopping_nights
from tests.world.clock import virtually
from tests.world.night import EPOCH_S, RIGHT, Night, requests
from tests.world.seeds import SEED, hold
from tests.world.stopping_nights import Scenario, play

NIGHTS = 25
ALIKE = StopWhen(saturated=0.05)
NARROW = StopWhen(ci_width=0.3)
HALF = StopWhen(ci_width=0.5)


# ── the interval ─────────────────────────────────────────────────────────────────────────────


def test_before_any_answer_every_share_is_possible():
    assert always_valid_interval(0, 0) == Interval(0.0, 1.0)


@pytest.mark.parametrize(("correct", "asked"), [(0, 1), (1, 1), (3, 10), (50, 100), (997, 1000)])
def test_the_interval_holds_what_was_seen_and_mirrors_right_and_wrong(correct, asked):
    seen, mirrored = always_valid_interval(correct, asked), always_valid_interval(asked - correct, asked)
    assert 0 <= seen.low <= correct / asked <= seen.high <= 1
    assert mirrored == pytest.approx((1 - seen.high, 1 - seen.low))


def test_its_bounds_are_those_worked_out_by_hand():
    # all alike: (1/4 + 1/2 B(1/2, n + 1/2) / B(1/2, 1/2)) / (1 - p)^n = 20; for n = 1 the left part is 1/2
    assert always_valid_interval(0, 1).high == pytest.approx(1 - 0.5 / 20)
    assert always_valid_interval(0, 2).high == pytest.approx(1 - ((1 / 4 + 3 / 16) / 20) ** (1 / 2))
    # one of two: 1/2 B(3/2, 3/2) / B(1/2, 1/2) = 1/16, so p (1 - p) = 1/320
    low, high = always_valid_interval(1, 2)
    assert low * (1 - low) == pytest.approx(1 / 320)
    assert low + high == pytest.approx(1)


@pytest.mark.long
@pytest.mark.parametrize("share", SHARES)
def test_looked_at_after_every_answer_it_holds_the_truth_in_nineteen_of_twenty_sequences(share):
    rng = random.Random(f"test {share}")
    sequences = 500
    excluded = sum(ever_excluded(share, answers(rng, share, 200)) for _ in range(sequences))
    assert excluded <= 0.05 * sequences


@pytest.mark.parametrize("when", [StopWhen(ci_width=0.4), StopWhen(saturated=0.1, ci_width=0.5)])
@pytest.mark.parametrize("share", SHARES)
def test_where_a_rule_stops_it_holds_the_truth_in_nineteen_of_twenty_sequences(when, share):
    found, wrong = misses(when, share, sequences=100, looks=300)
    assert found == 100
    assert wrong <= 5


@pytest.mark.parametrize(("width", "answers"), [(0.02, 214), (0.05, 84), (0.1, 41), (0.2, 19)])
def test_so_many_answers_that_are_all_alike_are_enough(width, answers):
    assert alike_needed(width) == answers
    assert (
        always_valid_interval(answers, answers).width
        <= width
        < always_valid_interval(answers - 1, answers - 1).width
    )


# ── the rule ─────────────────────────────────────────────────────────────────────────────────


def test_saturated_stops_only_what_is_all_right_or_all_wrong():
    assert [stop_at(ALIKE, correct, 84) is None for correct in (0, 1, 83, 84)] == [False, True, True, False]
    stop = stop_at(ALIKE, 84, 84)
    assert stop is not None
    assert (stop.rule, stop.asked, stop.correct, stop.high) == ("saturated 0.05", 84, 84, 1.0)
    assert 1 - stop.low <= 0.05


def test_ci_width_stops_what_is_known_well_enough():
    stop = stopped(NARROW, [True, False] * 200)
    assert stop is not None
    assert stop.rule == "ci_width 0.3"
    assert stop.high - stop.low <= 0.3 < always_valid_interval(stop.correct, stop.asked - 1).width + 0.01


@pytest.mark.parametrize("seed", range(20))
def test_looking_seldom_misses_no_answer_at_which_the_rule_holds(seed):
    rng = random.Random(seed)
    when = StopWhen(ci_width=rng.choice([None, 0.2, 0.5]), saturated=rng.choice([0.05, 0.1]))
    seen = [rng.random() < rng.choice([0.0, 0.4, 1.0]) for _ in range(rng.randrange(30))]
    seen += answers(rng, rng.choice([0.0, 0.03, 0.5, 1.0]), 300)
    every = (stop_at(when, sum(seen[:n]), n) for n in range(1, len(seen) + 1))
    assert stopped(when, seen) == next(filter(None, every), None)


# ── the planned order ────────────────────────────────────────────────────────────────────────


def judge():
    kept: list[Skipped] = []
    return Stopping(when=HALF, keep=kept.append, counters=Counters(), now=lambda: 5.0), kept


def trials(count=60, **changes):
    return [replace(one.trial, **changes) for one in requests(count)]


def test_answers_count_in_the_planned_order_as_far_as_all_earlier_ones_are_closed():
    stopping, _ = judge()
    asked = trials()
    for one in asked:
        stopping.plan(one)
    for one in asked[1:]:
        stopping.close(one.trial_id, right=True)  # the first is not closed: it may be wrong and slow
    assert stopping.stop_of(asked[0]) is None
    stopping.close(asked[0].trial_id, right=False)
    stop = stopping.stop_of(asked[0])
    assert stop == stopped(stopping.when, [False] + [True] * 59)
    assert stop is not None
    assert stop.correct == stop.asked - 1


def test_what_earlier_runs_closed_counts_at_its_place():
    stopping, _ = judge()
    asked = trials()
    cell = cell_of(asked[0])
    stopping.take_known(cell, [False, True])
    stopping.plan(asked[2])
    stopping.take_known(cell, [True] * 57)
    assert stopping.stop_of(asked[2]) is None
    stopping.close(asked[2].trial_id, right=False)
    assert stopping.stop_of(asked[2]) == stopped(stopping.when, [False, True, False] + [True] * 57)


def test_a_failed_trial_is_left_out_and_holds_back_none_after_it():
    (stopping, _), (one, two, *_) = judge(), trials()
    stopping.plan(one)
    stopping.plan(two)
    stopping.take_known(cell_of(one), [None] * 30 + [True] * 60)
    stopping.close(two.trial_id, right=True)
    stopping.close(one.trial_id, right=None)
    assert stopping.stop_of(trials(3)[2]) == stopped(stopping.when, [True] * 60)


def test_cells_are_told_apart_by_condition_kind_and_length():
    one = trials(1)[0]
    others = [
        replace(one, condition=Condition(name="other")),
        *(replace(one, problem=replace(one.problem, **{name: "x"})) for name in ("suite", "task", "variant")),
        replace(one, problem=replace(one.problem, representation="float")),
        replace(one, problem=replace(one.problem, length=None)),
    ]
    assert len({cell_of(one), *map(cell_of, others)}) == 7
    stopping, _ = judge()
    stopping.take_known(cell_of(one), [True] * 60)
    assert stopping.stop_of(one)
    assert not any(map(stopping.stop_of, others))


def test_a_repeat_of_a_question_is_no_further_problem_but_is_not_needed_either():
    stopping, _ = judge()
    for one in trials(repeat=1):
        stopping.plan(one)
        stopping.close(one.trial_id, right=True)
    assert stopping.stop_of(trials(1, repeat=1)[0]) is None
    stopping.take_known(cell_of(trials(1)[0]), [True] * 60)
    assert stopping.stop_of(trials(1, repeat=1)[0])


def test_what_is_asked_again_counts_as_it_was_closed_and_is_asked_whatever_is_known():
    stopping, _ = judge()
    first, second = trials(2)
    stopping.ask_again(first, right=False)
    stopping.take_known(cell_of(first), [True] * 59)
    stopping.close(first.trial_id, right=True)
    assert stopping.stop_of(first) is None
    assert stopping.stop_of(second) == stopped(stopping.when, [False] + [True] * 59)


@pytest.mark.parametrize(
    ("before", "now", "repeat", "changed"),
    [
        (False, True, 0, True),
        (True, False, 0, True),
        (None, False, 0, True),
        (True, True, 0, False),
        (True, None, 0, False),
        (True, False, 1, False),  # a repeat never counts
    ],
)
def test_an_answer_asked_for_again_is_noticed_where_it_counts_otherwise(before, now, repeat, changed):
    stopping, _ = judge()
    (one,) = trials(1, repeat=repeat)
    stopping.ask_again(one, right=before)
    stopping.close(one.trial_id, right=now)
    assert stopping.changed is changed


def test_a_skipped_trial_is_written_down_with_what_was_known_and_counted():
    stopping, kept = judge()
    one = trials(1)[0]
    stopping.take_known(cell_of(one), [True] * 60)
    stop = stopping.stop_of(one)
    assert stop is not None
    stopping.skip(one, stop)
    assert kept == [Skipped(trial=one, stop=stop, skipped_at=5.0)]
    assert stopping.counters.skipped == 1


# ── nights ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
@pytest.mark.parametrize("seed", range(NIGHTS))
def test_a_drawn_night_asks_what_is_needed_and_no_more(seed):
    hold(stopping_nights.broken, [seed])


def test_the_night_of_a_seed():
    hold(stopping_nights.broken, [SEED])


@pytest.mark.long
def test_enough_nights_stop_something():
    assert sum(bool(stopping_nights.night_of(seed).starts[0].night.of(Skipped)) for seed in range(NIGHTS)) > 6


def test_slow_wrong_answers_do_not_make_a_cell_look_better():
    plan = Scenario(
        when=StopWhen(ci_width=0.4),
        shares=(0.5,),
        problems=400,
        limits=Limits(concurrency=60),
        wrong_s=300.0,
    )
    night = play(plan).starts[0].night
    (stop,) = {one.stop for one in night.of(Skipped)}
    assert stop.low < 0.5 < stop.high
    assert abs(stop.correct / stop.asked - 0.5) < 0.15


def test_what_is_in_flight_when_a_cell_stops_is_finished_and_counts():
    plan = Scenario(when=ALIKE, shares=(1.0,), problems=300, limits=Limits(concurrency=50), latency_s=(1, 1))
    night = play(plan).starts[0].night
    assert 84 < len(night.results) <= 84 + 50
    assert len(night.results) + len(night.of(Skipped)) == 300


def test_one_at_a_time_not_a_call_more_is_made_than_the_rule_takes():
    plan = Scenario(when=ALIKE, shares=(1.0, 0.0), problems=100, limits=Limits(concurrency=1))
    night = play(plan).starts[0].night
    assert len(night.sent) in (168, 169)  # the other cell's first 84 come a call later


def test_one_that_failed_in_flight_is_tried_again_though_its_cell_is_known():
    plan = Scenario(when=ALIKE, shares=(1.0,), problems=100, limits=Limits(concurrency=9))
    asked = stopping_nights.planned(plan)
    beyond, calls = asked[84].trial.trial_id, Counter[str]()

    async def ask(request):
        trial_id = request.trial.trial_id
        calls[trial_id] += 1
        await asyncio.sleep(30.0 if trial_id == beyond else 0.3)
        if trial_id == beyond and calls[trial_id] == 1:
            raise ProviderError(ErrorKind.SERVER_ERROR, "once", http_status=500)
        return RIGHT

    night, _ = one_model(asked, ask)
    virtually(night.go())
    assert calls[beyond] == 2
    assert night.results[beyond].reply == RIGHT
    assert len(night.results) == 85


def test_what_waits_for_its_limits_when_its_cell_is_known_waits_no_longer():
    plan = Scenario(when=ALIKE, shares=(1.0,), problems=100, limits=Limits(rpm=1.0), latency_s=(1.0, 1.0))
    night, _ = one_model(stopping_nights.planned(plan), stopping_nights.Oracle(plan).ask)
    virtually(night.go())
    assert len(night.results) == 84
    assert night.seconds < night.of(Sent)[-1].started_at - EPOCH_S + 2  # and not a minute, for another call


def test_an_answer_that_was_paid_for_is_graded_though_its_cell_is_known():
    stopping, kept = judge()
    one = trials(1)[0]
    stopping.take_known(cell_of(one), [True] * 60)
    needed = Needed(before=Before(right=frozenset(), again={}, skipped={}), stopping=stopping)
    begun = Attempt(trial_id=one.trial_id, attempt=1, model="m", provider="p", started_at=0.0, status="ok")
    answered = History(attempts=1, ended=Ended(attempt=begun, reply=RIGHT))
    assert needed.holds(one, answered)
    assert not needed.holds(one, History(attempts=1, ended=Ended(attempt=begun, reply=None)))
    assert [skipped.trial for skipped in kept] == [one]


def one_model(asked, ask, *, account=None):
    """A night of one model under a rule, and what it skips."""
    night, kept = Night(), list[Skipped]()
    client = night.client(ask, [(one, History()) for one in asked], asked[0].trial.model)
    client.account = account
    client.stopping = Stopping(when=ALIKE, keep=kept.append, counters=client.counters, now=lambda: 0.0)
    before = Before(right=frozenset(), again={}, skipped={})
    stopping_nights.spare(client, asked, {}, Needed(before=before, stopping=client.stopping))
    client.calls.rates = lambda _, __: None  # every call of unknown cost: it costs what was set aside
    night.group([client])
    return night, client


def test_no_money_is_asked_for_what_is_skipped():
    plan = Scenario(when=ALIKE, shares=(1.0,), problems=300, limits=Limits(concurrency=5))
    asked, oracle = stopping_nights.planned(plan), stopping_nights.Oracle(plan)
    free, _ = one_model(asked, oracle.ask)
    virtually(free.go())
    calls = len(free.results)
    ledger = Ledger([Cap(kind="model", of="m", limit=calls)])  # a picodollar a call, and not one more
    account = ledger.open("m", ledger.caps, lambda _, __: 1)
    night, client = one_model(asked, stopping_nights.Oracle(plan).ask, account=account)
    virtually(night.go())
    assert len(night.results) == ledger.caps[0].spent == calls < 100
    assert client.counters.complete
    assert not client.counters.budget_stopped


def test_beside_others_under_a_budget_a_model_is_as_far_as_its_plan_is_settled():
    ledger = Ledger([Cap(kind="sweep", of="s", limit=1_000)])
    account = ledger.open("m", ledger.caps, lambda _, __: 1)
    account.join(Counters(planned=100, done_before=30, skipped=50), asks=lambda: True)
    assert account.progress().share == 0.8
