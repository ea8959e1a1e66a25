"""When our own event loop is what holds calls up: fewer are started, and it is said."""

import asyncio
from dataclasses import replace

import pytest

from asyncbench.engine.telemetry import LoopLag
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Ended, LaneMinute, RetryPolicy
from tests.engine.night import MODEL, Desk, Night, requests, virtually
from tests.engine.test_lane import fresh


class Late(LoopLag):
    """A loop that reads as late for a while; a virtual one never is."""

    def __init__(self, *, until_s: float) -> None:
        super().__init__(interval_s=0.1)
        self._until_s = until_s

    async def measure(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self.note(loop.time(), 1.0 if loop.time() < self._until_s else 0.0)
            await asyncio.sleep(self.interval_s)


def night_late_for(seconds: float, desk: Desk, *, trials: int = 200, model=MODEL) -> Night:
    async def night() -> Night:
        told = Night(lag=Late(until_s=seconds))
        told.lane(desk.ask, fresh(trials, model), model)
        return await told.go()

    return virtually(night())


def test_no_call_is_started_while_the_loop_is_late_and_the_time_is_put_down_to_the_client():
    desk = Desk()
    night = night_late_for(20.0, desk)
    started_s = [at_s for at_s, _ in desk.calls]
    assert not [at_s for at_s in started_s if 1.0 < at_s < 19.5]
    assert len(night.results) == 200
    waited_s = sum(minute.waited_s.get("client", 0.0) for minute in night.of(LaneMinute))
    assert waited_s == pytest.approx(20.0, abs=1.5)


def test_it_is_said_once_when_it_has_cost_enough():
    night = night_late_for(20.0, Desk())
    (said,) = night.said
    assert said.startswith("This computer, not the provider, limits the speed (event loop up to 1,000 ms")
    assert night.lanes[0].askers[0].counters.client_bound


def test_a_moment_is_not_worth_a_word():
    night = night_late_for(2.0, Desk())
    assert night.said == []
    assert not night.lanes[0].askers[0].counters.client_bound


def test_an_attempt_says_how_late_the_loop_was_at_worst_meanwhile():
    night = night_late_for(3.0, Desk(latency_s=10.0), trials=1)
    assert [ended.attempt.loop_lag_s for ended in night.of(Ended)] == [1.0]


def test_a_timeout_while_the_loop_was_late_may_be_no_fault_of_the_provider():
    once = replace(MODEL, retry=RetryPolicy(attempts=1))
    (request,) = requests(1, once)
    question = request.messages[0].content
    late = night_late_for(3.0, Desk(5.0, **{question: [_timeout()]}), trials=1, model=once)
    calm = night_late_for(0.0, Desk(5.0, **{question: [_timeout()]}), trials=1, model=once)
    assert "the event loop of this computer was late" in str(late.results["t0"].error)
    assert "event loop" not in str(calm.results["t0"].error)


def _timeout() -> ProviderError:
    return ProviderError(ErrorKind.TIMEOUT, "no reply")
