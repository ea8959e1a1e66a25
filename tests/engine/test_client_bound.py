"""When our own event loop is what holds calls up: fewer are started, and it is said."""

import asyncio
from dataclasses import replace

import pytest

from asyncbench.engine.telemetry import LoopLag
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Ended, LaneMinute, Reply, Request, RetryPolicy
from tests.world.clock import virtually
from tests.world.night import MODEL, Desk, Night, fresh

ONCE = replace(MODEL, retry=RetryPolicy(attempts=1))


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


def night_late_for(
    seconds: float, desk: Desk, *, trials: int = 200, model=MODEL, workers: tuple[float, ...] = ()
) -> Night:
    async def night() -> Night:
        told = Night(lag=Late(until_s=seconds))
        told.lag.others = lambda: workers
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
    assert said.endswith("With `--workers auto`, other cores make the calls.")
    assert night.lanes[0].clients[0].counters.client_bound


def test_workers_are_not_advised_to_who_has_them():
    (said,) = night_late_for(20.0, Desk(), workers=(0.0,)).said
    assert said.endswith("a lower concurrency, are not slower.")


def test_a_moment_is_not_worth_a_word():
    night = night_late_for(2.0, Desk())
    assert night.said == []
    assert not night.lanes[0].clients[0].counters.client_bound


def test_an_attempt_says_how_late_the_loop_was_at_worst_meanwhile():
    night = night_late_for(3.0, Desk(latency_s=10.0), trials=1)
    assert [ended.attempt.loop_lag_s for ended in night.of(Ended)] == [1.0]


def test_a_timeout_while_the_loop_was_late_may_be_no_fault_of_the_provider():
    late = night_late_for(3.0, Desk(5.0, q0=[_timeout()]), trials=1, model=ONCE)
    calm = night_late_for(0.0, Desk(5.0, q0=[_timeout()]), trials=1, model=ONCE)
    assert "the event loop of this computer was late" in str(late.results["t0"].error)
    assert "event loop" not in str(calm.results["t0"].error)


def test_an_attempt_says_which_worker_made_it_and_how_late_that_was_if_it_was_later_than_we():
    class Worker(Desk):
        async def ask(self, request: Request) -> Reply:
            return replace(await super().ask(request), worker="2", loop_lag_s=0.5)

    for late_s, lag_s in ((0.0, 0.5), (3.0, 1.0)):
        (ended,) = night_late_for(late_s, Worker(10.0), trials=1).of(Ended)
        assert (ended.attempt.worker, ended.attempt.loop_lag_s) == ("2", lag_s)


def test_a_call_of_this_process_has_no_worker():
    night = night_late_for(0.0, Desk(q0=[_timeout()]), trials=1, model=ONCE)
    assert [(ended.attempt.worker, ended.attempt.status) for ended in night.of(Ended)] == [(None, "timeout")]


def test_a_timeout_while_its_worker_was_late_may_be_no_fault_of_the_provider():
    for late_s, told in ((0.4, True), (0.2, False)):
        error = _timeout()
        error.worker, error.loop_lag_s = "1", late_s
        night = night_late_for(0.0, Desk(q0=[error]), trials=1, model=ONCE)
        assert ("the event loop of this computer was late" in str(night.results["t0"].error)) is told
        assert [ended.attempt.worker for ended in night.of(Ended)] == ["1"]


def test_an_error_is_made_again_from_what_it_holds():
    error = ProviderError(ErrorKind.TIMEOUT, "no reply", http_status=504)
    assert vars(ProviderError(**vars(error))) == vars(error)


def _timeout() -> ProviderError:
    return ProviderError(ErrorKind.TIMEOUT, "no reply")
