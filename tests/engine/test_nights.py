"""Two hundred nights, each drawn from its seed, and what must hold in all; `make test` plays forty."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from asyncbench.errors import ErrorKind
from asyncbench.records import Ended, Limits, Result, RetryPolicy, Sent
from asyncbench.simulator.limits import LIMIT_MODELS
from tests.tiers import first_rows, shared_out
from tests.world import nights
from tests.world.night import DAY_S
from tests.world.nights import Played, Scenario, play, scenario, used
from tests.world.seeds import SEED, hold

NIGHTS = 200
A_TEST = 20
# Nights of a soak in which a rule was broken, each by another fault: a call that waited for a slot while a
# limit of tokens was told took none of it; a model whose first answers were refusals was given up after a
# minute; and so was one that had waited for its next day as it was told to.
FOUND = (10110, 10158, 11284)


@pytest.mark.parametrize("first", shared_out(range(0, NIGHTS, A_TEST), first=1, long=9))
def test_whatever_happens_in_a_night_the_rules_hold(first):
    hold(nights.broken, range(first, first + A_TEST))


@pytest.mark.long
@pytest.mark.parametrize("seed", FOUND)
def test_a_rule_that_was_broken_once_holds(seed):
    hold(nights.broken, [seed])


@pytest.mark.long
def test_the_night_of_a_seed():
    hold(nights.broken, [SEED])


def test_a_seed_always_draws_and_plays_the_same_night():
    assert scenario(11) == scenario(11)
    first, again = (play(scenario(11))[0] for _ in range(2))
    assert [call.sent_s for call in first.service.calls] == [call.sent_s for call in again.service.calls]


def test_the_nights_differ_in_all_that_may_happen():
    drawn = [scenario(seed) for seed in range(NIGHTS)]
    assert {one.limit_model for one in drawn} == set(LIMIT_MODELS)
    assert {one.models for one in drawn} == {1, 2, 3}
    for happens in (
        lambda one: one.stop_s,
        lambda one: one.dies_s,
        lambda one: one.a_day and one.told,
        lambda one: one.changes and one.told,
        lambda one: one.longest_wait_s > DAY_S,
        lambda one: one.silent and one.faulty,
        lambda one: one.cursed,
        lambda one: not one.real,
    ):
        assert sum(bool(happens(one)) for one in drawn) >= 5


# ── a rule that is broken is found ───────────────────────────────────────────────────────────


def an_event_twice(one: Played) -> None:
    one.night.kept.append(one.night.of(Result)[0])


def a_result_less(one: Played) -> None:
    one.night.kept.remove(one.night.of(Result)[0])


def a_model_suspended(one: Played) -> None:
    one.night.lanes[0].clients[0].counters.suspended = "auth: no"


def a_lower_limit(one: Played) -> None:
    one.plan = replace(one.plan, configured=Limits(rpm=400))


def a_lower_limit_told(one: Played) -> None:
    one.service.told.append((20.0, "requests", 400.0))


def two_in_another_order(one: Played) -> None:
    kept = one.night.kept
    first, second, *_ = (i for i, event in enumerate(kept) if isinstance(event, Sent))
    kept[first], kept[second] = kept[second], kept[first]


def many_attempts(one: Played) -> None:
    one.night.kept += [one.night.of(Sent)[0]] * one.plan.retry.attempts


def asked_again_at_once(one: Played) -> None:
    end = one.night.of(Ended)[0]
    refused = replace(end, attempt=replace(end.attempt, retry_after_s=60.0))
    one.night.kept[one.night.kept.index(end)] = refused
    again = next(sent for sent in one.sent if sent.trial_id == end.attempt.trial_id)
    one.night.kept.append(replace(again, started_at=again.started_at + 30.0))


def a_minute_less(one: Played) -> None:
    one.night.kept.remove(one.minutes[0])


def seconds_put_down_to_nothing(one: Played) -> None:
    row = one.minutes[0]
    one.night.kept[one.night.kept.index(row)] = replace(row, waited_s={"requests": row.seconds / 2})


def a_wait_for_a_limit_that_was_not_used(one: Played) -> None:
    row = one.minutes[1]
    one.night.kept[one.night.kept.index(row)] = replace(row, requests=row.requests // 2)


def a_lane_that_stood_still(one: Played) -> None:
    one.idle_s.append(7.0)


def a_lane_that_came_back_late(one: Played) -> None:
    one.plan = replace(one.plan, spells=(nights.Spell(begins_s=-900.0, ends_s=-600.0, kind=None),))


@pytest.mark.long
@pytest.mark.parametrize(
    ("tamper", "rule"),
    [
        (an_event_twice, nights.every_trial_ends_exactly_once),
        (a_result_less, nights.every_trial_ends_exactly_once),
        (a_model_suspended, nights.a_model_is_suspended_only_on_proof),
        (a_lower_limit, nights.no_limit_is_broken),
        (a_lower_limit_told, nights.no_limit_is_broken),
        (two_in_another_order, nights.first_come_first_served),
        (many_attempts, nights.attempts_are_capped),
        (asked_again_at_once, nights.a_retry_after_is_never_undercut),
        (a_minute_less, nights.minutes_add_up),
        (seconds_put_down_to_nothing, nights.every_wait_is_explained),
        (a_wait_for_a_limit_that_was_not_used, nights.every_wait_is_explained),
        (a_lane_that_stood_still, nights.no_lane_is_idle),
        (a_lane_that_came_back_late, nights.a_lane_is_back_soon_after_its_provider),
    ],
)
def test_a_rule_that_is_broken_is_found(
    tamper: Callable[[Played], None], rule: Callable[[list[Played]], None]
):
    plan = Scenario(trials=900, configured=Limits(rpm=600), real={"requests": 600.0})
    played = play(plan)
    for check in nights.INVARIANTS:
        check(played)
    tamper(played[0])
    with pytest.raises(AssertionError):
        rule(played)


# ── steady nights ────────────────────────────────────────────────────────────────────────────

REQUESTS = Scenario(
    trials=2_400,
    configured=Limits(rpm=600),
    real={"requests": 600.0},
    latency="lognormal",
    way_s=0.03,
)
EVEN_TOKENS = Scenario(
    trials=2_400,
    configured=Limits(tpm=120_000),
    real={"tokens": 120_000.0},
    max_tokens=100,
    input_tokens=(100, 100),
    output_tokens=(100, 100),
    latency="lognormal",
    way_s=0.03,
)
TOKENS = Scenario(
    trials=2_400,
    configured=Limits(tpm=200_000),
    real={"tokens": 200_000.0},
    max_tokens=1_000,
    input_tokens=(20, 300),
    output_tokens=(1, 300),
    latency="lognormal",
)
IN_AND_OUT = Scenario(
    trials=2_400,
    configured=Limits(rpm=4_000, input_tpm=120_000, output_tpm=80_000),
    real={"requests": 4_000.0, "input_tokens": 120_000.0, "output_tokens": 80_000.0},
    input_tokens=(20, 400),
    output_tokens=(1, 120),
    latency="growing",
    latency_s=0.5,
)
EVEN = [
    pytest.param(REQUESTS, "requests", id="requests"),
    pytest.param(EVEN_TOKENS, "tokens", id="tokens"),
]
UNEVEN = [
    pytest.param(TOKENS, "tokens", id="tokens"),
    pytest.param(IN_AND_OUT, "input_tokens", id="input and output"),
]
BY_THE_SECOND = "quanta"


@pytest.mark.long
@pytest.mark.parametrize("told", [False, True], ids=["untold", "told"])
@pytest.mark.parametrize("limit_model", sorted(LIMIT_MODELS))
@pytest.mark.parametrize(("plan", "what"), EVEN)
def test_a_limit_is_used_to_99_percent_with_next_to_no_refusals(plan, what, limit_model, told):
    use = used(replace(plan, limit_model=limit_model, told=told), what)
    least, most_refused = (0.98, 0.005) if limit_model == BY_THE_SECOND else (0.99, 0.001)
    assert least <= use.share <= 1.0
    assert use.refused <= most_refused


@pytest.mark.long
@pytest.mark.parametrize("told", [False, True], ids=["untold", "told"])
@pytest.mark.parametrize("limit_model", sorted(set(LIMIT_MODELS) - {BY_THE_SECOND}))
@pytest.mark.parametrize(("plan", "what"), UNEVEN)
def test_with_replies_of_unknown_length_a_limit_is_used_to_98_percent(plan, what, limit_model, told):
    use = used(replace(plan, limit_model=limit_model, told=told), what)
    assert 0.98 <= use.share <= 1.0
    assert use.refused <= 0.005


@pytest.mark.long
@pytest.mark.parametrize("told", [False, True], ids=["untold", "told"])
@pytest.mark.parametrize(("plan", "what"), UNEVEN)
def test_where_each_second_counts_for_itself_some_long_calls_are_refused_and_most_is_used(plan, what, told):
    # A dozen calls fit into a second: how many more or fewer is a matter of their lengths.
    use = used(replace(plan, limit_model=BY_THE_SECOND, told=told), what)
    assert 0.8 <= use.share <= 1.0
    assert use.refused <= 0.02


# ── limits that nobody tells ─────────────────────────────────────────────────────────────────

UNTOLD = Scenario(
    trials=2_400,
    configured=Limits(concurrency=60),
    real={"requests": 600.0},
    latency="lognormal",
    retry=RetryPolicy(attempts=50),
)


@pytest.mark.parametrize(
    ("limit_model", "retry_after"),
    first_rows(
        2,
        [
            ("token_bucket", "minute"),
            ("gcra", "nothing"),
            *((name, "exact") for name in sorted(LIMIT_MODELS)),
        ],
    ),
)
def test_a_limit_that_nobody_tells_is_found(limit_model, retry_after):
    played = play(replace(UNTOLD, limit_model=limit_model, retry_after=retry_after))[0]
    minutes = (played.ended_s - played.began_s) / 60
    assert played.statuses["ok"] / minutes >= 0.6 * UNTOLD.real["requests"]


@pytest.mark.long
@pytest.mark.parametrize("seed", first_rows(1, [0, 5, 6]))  # three of the worst
@pytest.mark.parametrize("concurrency", [None, 60])
def test_failures_that_are_about_no_limit_do_not_slow_a_night_down(concurrency, seed):
    always = nights.Spell(
        begins_s=0, ends_s=DAY_S, kind=ErrorKind.RATE_LIMITED, retry_after_s=1.0, share=0.08
    )
    plan = replace(UNTOLD, seed=seed, configured=Limits(concurrency=concurrency), real={}, trials=1_000)
    played = play(replace(plan, latency_s=0.3, faulty=0.08, spells=(always,)))[0]
    assert played.ended_s - played.began_s < 240  # a fast one takes 10 s; without a second thought, hours
