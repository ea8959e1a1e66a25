"""What a pause and other limits mean to a lane, on a clock that runs as fast as it likes."""

import asyncio
from dataclasses import replace

import pytest

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Ended, LaneMinute, Limits, Outcome, RetryPolicy, waits
from asyncbench.run.picture import Pace, picture
from tests.world.clock import virtually
from tests.world.load import Loaded, Queue, load_of
from tests.world.night import MODEL, Desk, Night, fresh, night_of, pausing


def played(desk, *, trials, model, **times) -> Night:
    return night_of(desk.ask, trials, model, beside=lambda lane: pausing(lane, **times))


def test_nothing_is_sent_in_a_pause_and_every_trial_is_answered_once():
    desk, model = Desk(latency_s=0.5), replace(MODEL, limits=Limits(concurrency=4))
    night = played(desk, trials=200, model=model, after_s=5.25, for_s=3600)
    assert {result.grades[0].outcome for result in night.results.values()} == {Outcome.CORRECT}
    assert len(night.results) == len(desk.calls) == 200
    assert not [at_s for at_s, _ in desk.calls if 5.25 < at_s - desk.calls[0][0] < 3605.25]
    waited = [minute.waited_s.get(waits.RESUME, 0.0) for minute in night.of(LaneMinute)]
    assert sum(waited) == pytest.approx(3600, abs=1)
    assert sum(minute.seconds for minute in night.of(LaneMinute)) == pytest.approx(night.seconds)


@pytest.mark.parametrize(("trials", "failing", "after_s"), [(60, "q30", 4.5), (1, "q0", 1.2)])
def test_the_time_for_the_retries_of_a_trial_stands_still_in_a_pause(trials, failing, after_s):
    """Else a trial that failed before it would have no time left after it."""
    policy = RetryPolicy(attempts=5, total_s=60)
    model = replace(MODEL, limits=Limits(concurrency=10), retry=policy)
    fails = {failing: [ProviderError(ErrorKind.SERVER_ERROR, "no") for _ in range(3)]}
    night = played(Desk(1.0, **fails), trials=trials, model=model, after_s=after_s, for_s=7200)
    assert {result.grades[0].outcome for result in night.results.values()} == {Outcome.CORRECT}
    failed = [ended.attempt.trial_id for ended in night.of(Ended) if ended.attempt.status != "ok"]
    assert failed == 3 * [failing.replace("q", "t")]


def test_a_pause_is_no_outage_of_the_provider():
    gone = {f"q{n}": [ProviderError(ErrorKind.UNREACHABLE, "gone") for _ in range(3)] for n in range(20, 30)}
    model = replace(MODEL, limits=Limits(concurrency=2), retry=RetryPolicy(attempts=9))
    night = played(Desk(1.0, **gone), trials=60, model=model, after_s=16.5, for_s=100_000)
    assert len(night.results) == 60
    assert night.lanes[0].clients[0].counters.suspended is None


def test_other_limits_hold_from_then_on():
    model = replace(MODEL, limits=Limits(rpm=600, concurrency=50))
    desk = Desk(latency_s=0.1)

    async def change(lane) -> None:
        await asyncio.sleep(10)
        lane.note("lower")
        lane.set_limits(replace(lane.limits, rpm=60))
        await asyncio.sleep(60)
        lane.set_limits(replace(lane.limits, rpm=None, concurrency=3))

    told = night_of(desk.ask, 400, model, beside=change)
    began_s = desk.calls[0][0]
    first, second = (
        sum(since <= at_s - began_s < until for at_s, _ in desk.calls) for since, until in ((0, 10), (10, 70))
    )
    assert first == pytest.approx(100, abs=15)
    assert second == pytest.approx(60, abs=3)
    assert len(told.results) == len(desk.calls) == 400
    changed = [minute for minute in told.of(LaneMinute) if minute.changes]
    assert [(minute.changes, minute.limits) for minute in changed] == [(("lower",), {"requests": 600})]


def test_who_watches_sees_the_pause_and_who_changed_what():
    async def night() -> str:
        counters = Night().lane(Desk().ask, fresh(9)).counters
        counters.paused, counters.changed = True, "12:00:00 UTC by anna: a: pause"
        return picture({"a": counters}, Pace({"a": counters}), (), width=100, height=30).plain

    shown = virtually(night())
    assert " paused " in shown
    assert "changed 12:00:00 UTC by anna: a: pause" in shown


def test_refusals_are_told_from_the_limit_itself():
    """While only a share of the limit is used, that is what holds the lane."""
    model = replace(MODEL, limits=Limits(rpm=600, concurrency=50))
    seen = set()
    refused = {f"q{n}": [ProviderError(ErrorKind.RATE_LIMITED, "no")] for n in range(40, 70, 2)}

    async def look(lane) -> None:
        while True:
            seen.add(lane.clients[0].counters.waits_for)
            await asyncio.sleep(0.05)

    night_of(Desk(latency_s=0.1, **refused).ask, 300, model, beside=look)
    assert {"requests", waits.BACK_OFF} <= seen


@pytest.mark.parametrize("load", [{"rates": [4]}, {"arrivals": "closed", "rates": [2]}])
def test_a_step_is_measured_again_as_often_as_it_is_paused(load):
    async def night() -> Loaded:
        told = Loaded()
        lane = told.add(Queue(100, lambda: 0.5).ask, load_of(duration="20s", seed=3, **load))

        async def twice() -> None:
            await pausing(lane, after_s=5, for_s=100)
            await pausing(lane, after_s=5, for_s=100)

        await told.live(twice())
        assert lane.complete
        assert lane.clients[0].counters.open == 0
        return told

    steps = virtually(night()).steps
    assert [(step.round, step.verdict) for step in steps] == [(1, "incomplete"), (2, "incomplete"), (3, None)]
    assert steps[2].seconds == 20
    assert steps[2].began_at - steps[1].began_at == pytest.approx(105, abs=1)
