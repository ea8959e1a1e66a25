"""What went wrong in other harnesses, as traces, and what a lane does instead."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Limits, Outcome, Request, Result, RetryPolicy, Sent, Timeouts
from tests.world.clock import virtually
from tests.world.night import EPOCH_S, MODEL, Desk, Night, fresh, night_of, side_by_side
from tests.world.nights import Played, Scenario, Spell, play

IMPATIENT = RetryPolicy(attempts=10_000, total_s=40 * 86_400)  # caps that would let a trial go on for weeks


def started(played: Played, since_s: float, until_s: float) -> int:
    return sum(since_s <= call.sent_s < until_s for call in played.service.calls)


def refused(played: Played) -> int:
    return sum(call.status == "rate_limited" for call in played.service.calls)


# ── 11: failed attempts' spend was forgotten ─────────────────────────────────────────────────


def test_field_lesson_11_a_failed_attempt_that_may_have_been_billed_is_not_free():
    desk = Desk(q1=[ProviderError(ErrorKind.TIMEOUT, "no reply")])
    night = night_of(desk.ask, 3)
    assert night.results["t1"].grades[0].outcome is Outcome.CORRECT
    assert night.results["t1"].cost_usd is None  # unknown: not only what the second attempt cost
    counters = night.lanes[0].clients[0].counters
    assert (counters.unpriced, counters.lost) == (1, 1)


def test_field_lesson_11_the_tokens_of_a_failed_attempt_stay_used():
    model = replace(MODEL, limits=Limits(tpm=6_000), max_tokens=990, retry=RetryPolicy(attempts=1))
    desk = Desk()
    desk.scripts = {f"q{i}": [ProviderError(ErrorKind.TIMEOUT, "no reply")] for i in range(10)}
    night = night_of(desk.ask, 10, model, characters=lambda _: 40)
    assert night.seconds > 80  # ten calls of a thousand tokens, of which 6,000 come back in a minute


# ── 13: limits that are not kept, not used, or change ────────────────────────────────────────


@pytest.mark.long
@pytest.mark.parametrize("told", [True, False], ids=["told", "untold"])
def test_field_lesson_13_a_limit_of_6000_that_is_1800_for_a_while_is_followed_both_ways(told):
    plan = Scenario(
        trials=8_000,
        configured=Limits(rpm=6_000),
        real={"requests": 6_000.0},
        changes=((30.0, 0.3), (120.0, 1.0)),
        told=told,
    )
    played = play(plan)[0]
    assert len(played.night.results) == plan.trials
    calls = played.service.calls
    assert started(played, 10, 30) >= 0.99 * 100 * 20
    admitted = sum(45 <= call.sent_s < 120 and call.status == "ok" for call in calls)
    assert admitted >= (0.97 if told else 0.85) * 30 * 75
    assert refused(played) <= (0.005 if told else 0.02) * len(calls)
    assert played.ended_s <= (146 if told else 190)  # 143 at best (3,000 + 2,700 + 2,300 calls), 1 alone


@pytest.mark.long
def test_field_lesson_13_thousands_of_calls_take_as_long_as_their_limit_says():
    plan = Scenario(trials=838, configured=Limits(rpm=5_000), real={"requests": 5_000.0}, latency="lognormal")
    played = play(plan)[0]
    assert played.ended_s <= 838 / 5_000 * 60 + 10  # not ten minutes
    assert refused(played) == 0


@pytest.mark.long
def test_field_lesson_13_many_calls_at_once_do_not_overshoot_tokens():
    plan = Scenario(
        trials=2_000,
        configured=Limits(tpm=300_000, concurrency=500),
        real={"tokens": 300_000.0},
        max_tokens=100,
        input_tokens=(100, 100),
        output_tokens=(100, 100),
        latency_s=20.0,
    )
    played = play(plan)[0]
    assert refused(played) == 0
    assert max(row.tokens for row in played.minutes) <= 300_000 * 1.01


# ── 14: waiters served smallest first; a burst at the start ──────────────────────────────────


def test_field_lesson_14_a_long_prompt_is_served_in_its_turn_among_short_ones():
    model = replace(MODEL, limits=Limits(tpm=12_000, concurrency=100))
    desk = Desk()
    night_of(desk.ask, 200, model, characters=lambda one: 32_000 if one.messages[0].content == "q20" else 40)
    assert [question for _, question in desk.calls] == [f"q{i}" for i in range(200)]


def test_field_lesson_14_there_is_no_burst_at_the_start():
    plan = Scenario(trials=600, configured=Limits(rpm=600), real={"requests": 600.0})
    played = play(plan)[0]
    for first_s in (0.0, 0.5, 1.0):
        assert started(played, first_s, first_s + 1.0) <= 11  # ten a second, not 600 at once


def test_field_lesson_14_a_call_larger_than_the_bucket_is_let_through():
    model = replace(MODEL, limits=Limits(tpm=600, concurrency=4))
    night = night_of(Desk().ask, 3, model, characters=lambda _: 40_000)  # 10,000 tokens each
    assert len(night.results) == 3


# ── 15: control that freezes, retries without end ────────────────────────────────────────────

BUSY = Scenario(
    trials=4_500,
    configured=Limits(rpm=600, concurrency=20),
    real={"requests": 600.0},
    latency_s=1.9,
    spells=(Spell(begins_s=60.0, ends_s=75.0, kind=ErrorKind.RATE_LIMITED, retry_after_s=89.0),),
)


@pytest.mark.long
def test_field_lesson_15_an_89_second_retry_after_does_not_freeze_the_lane():
    played = play(BUSY)[0]
    assert played.plan.configured.concurrency == 20
    before = started(played, 20, 60)
    assert max(row.most_in_flight for row in played.minutes if row.started_at < EPOCH_S + 60) >= 18
    # The provider is back after 15 seconds, and says 89: one call a minute sees that it is.
    assert started(played, 63, 120) <= 3
    assert started(played, 260, 300) >= 0.98 * before  # limit and slots are in use again
    assert {row.share for row in played.minutes if row.started_at > EPOCH_S + 300} == {1.0}
    assert len(played.night.results) == 4_500
    assert played.ended_s <= 4_500 / 10 + 100 + 40


def test_field_lesson_15_a_retry_after_delays_its_own_trial_and_not_the_others():
    wait = ProviderError(ErrorKind.RATE_LIMITED, "later", retry_after_s=89)
    desk = Desk(q3=[wait])
    night = night_of(desk.ask, 300)
    assert night.seconds < 1 + 3 + 89 * 1.1 + 2
    sent_s = [at_s for at_s, question in desk.calls if question == "q3"]
    assert sent_s[1] - sent_s[0] >= 89
    assert len([at_s for at_s, _ in desk.calls if at_s < 40]) >= 298  # meanwhile all others were asked


def test_field_lesson_15_a_deterministic_500_is_not_asked_1149_times():
    desk = Desk(q7=[ProviderError(ErrorKind.SERVER_ERROR, "boom", http_status=500) for _ in range(2_000)])
    night = night_of(desk.ask, 400, replace(MODEL, retry=IMPATIENT))
    assert night.results["t7"].grades[0].outcome is Outcome.FAILED
    assert night.results["t7"].attempts <= 5
    assert night.seconds < 300  # not 24 days
    assert len(night.results) == 400


def test_field_lesson_15_retries_mix_with_fresh_work():
    desk = Desk()
    desk.scripts = {f"q{i}": [ProviderError(ErrorKind.SERVER_ERROR, f"no {i}")] for i in range(0, 1_000, 50)}
    night = night_of(desk.ask, 1_000)
    order = [question for _, question in desk.calls]
    for i in range(0, 900, 50):
        first, second = (n for n, question in enumerate(order) if question == f"q{i}")
        assert second - first <= 60, f"q{i} waited for {second - first} others"
    assert len(night.results) == 1_000


# ── 16: a dead key, a long night ─────────────────────────────────────────────────────────────


def broke_after(calls: int, kind: ErrorKind, **details) -> Desk:
    """A provider whose key has nothing left after so many calls."""
    desk = Desk()

    class Broke(Desk):
        async def ask(self, request: Request):
            reply = await desk.ask(request)
            if len(desk.calls) > calls:
                raise ProviderError(kind, "insufficient_quota", http_status=429, **details)
            return reply

    return Broke()


@pytest.mark.long
@pytest.mark.parametrize("one_lane", [False, True], ids=["lanes of their own", "one lane"])
@pytest.mark.parametrize("answered", [0, 100])
def test_field_lesson_16_an_empty_account_costs_few_calls_and_the_others_go_on(answered, one_lane):
    models = {"dead": broke_after(answered, ErrorKind.NO_QUOTA).ask, "live": Desk().ask}
    limited = replace(MODEL, limits=Limits(rpm=600, concurrency=20))
    told = side_by_side(models, 500, limited, one_lane=one_lane)
    calls = Counter(sent.model for sent in told.of(Sent))
    assert answered < calls["dead"] <= answered + 20  # those in flight when the first came back
    assert {name for name in told.results if name.startswith("live")} == {f"live t{i}" for i in range(500)}
    reasons = {one.model.alias: one.counters.suspended for lane in told.lanes for one in lane.clients}
    assert reasons == {"dead": "no_quota: insufficient_quota", "live": None}
    assert told.seconds < 70  # the live one's 500 at 600 a minute


def test_field_lesson_16_a_reset_in_16_days_is_not_waited_for():
    desk = Desk()
    desk.scripts = {
        f"q{i}": [ProviderError(ErrorKind.RATE_LIMITED, "resets in 16 days", retry_after_s=16 * 86_400.0)]
        * 99
        for i in range(500)
    }
    night = night_of(desk.ask, 500)
    suspended = night.lanes[0].clients[0].counters.suspended
    assert suspended is not None
    assert "384 hours" in suspended
    assert len(desk.calls) <= 20
    assert night.seconds < 60
    assert night.results == {}  # all of them are for a later run


# ── 17: stuck requests hold the run ──────────────────────────────────────────────────────────


def test_field_lesson_17_streams_that_never_send_data_hold_up_nothing():
    model = replace(
        MODEL,
        limits=Limits(concurrency=4),
        timeouts=Timeouts(total=600.0),
        retry=RetryPolicy(attempts=2),
    )
    desk, kept_s = Desk(), {}

    async def ask(request: Request):
        if request.messages[0].content in ("q1", "q2"):
            await asyncio.sleep(1e9)
        return await desk.ask(request)

    async def night() -> Night:
        told = Night()
        client = told.lane(ask, fresh(70, model), model)

        def keep(event):
            told.kept.append(event)
            if isinstance(event, Result):
                kept_s[event.trial.trial_id] = asyncio.get_running_loop().time()

        client.records.keep = keep
        return await told.go()

    told = virtually(night())
    assert len(told.results) == 70
    stuck = {"t1", "t2"}
    assert {name for name, one in told.results.items() if one.reply is None} == stuck
    # 68 others, two slots left: each is saved long before anybody knows what becomes of the stuck ones.
    assert max(at_s for name, at_s in kept_s.items() if name not in stuck) < 40
    assert all(told.results[name].attempts == 2 for name in stuck)
    assert told.seconds < 2 * 660
