"""How many calls stay in flight at servers that break answers off, told by simulated nights."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from asyncbench.engine.throttle import OverloadDetector
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Limits, Request, RetryPolicy
from tests.world.night import MODEL, RIGHT, Night, night_of

BREAKS = [ErrorKind.BAD_REPLY, ErrorKind.UNREACHABLE]


class Server:
    """Answers after a second or so; breaks off what `breaks` says of so many in flight."""

    def __init__(self, breaks: Callable[[int], bool], *, kind: ErrorKind = ErrorKind.BAD_REPLY) -> None:
        self.breaks, self.kind = breaks, kind
        self.in_flight = self.broken = 0
        self.seen: list[int] = []  # in flight, at each call
        self._rng = random.Random(0)

    async def ask(self, _request: Request):
        self.in_flight += 1
        self.seen.append(self.in_flight)
        try:
            breaks = self.breaks(self.in_flight)
            await asyncio.sleep(self._rng.uniform(0.1, 0.5) if breaks else self._rng.uniform(0.5, 1.5))
        finally:
            self.in_flight -= 1
        if breaks:
            self.broken += 1
            raise ProviderError(self.kind, f"broke off {len(self.seen)}")
        return RIGHT


def asked(server: Server, count: int, concurrency: int | None, *, attempts: int = 40) -> Night:
    model = replace(MODEL, limits=Limits(concurrency=concurrency), retry=RetryPolicy(attempts=attempts))
    return night_of(server.ask, count, model)


@pytest.mark.long
@pytest.mark.parametrize("concurrency", [None, 8, 32, 200])
@pytest.mark.parametrize("bears", [1, 2, 6])
def test_a_server_that_bears_few_calls_is_asked_few_at_a_time(bears, concurrency):
    server = Server(lambda in_flight: in_flight > bears)
    night = asked(server, 120, concurrency)
    assert len(night.results) == 120
    assert server.broken < 30 + (concurrency or 16)  # those of the first wave, and tries
    assert night.said[0].startswith("m: replies break off with ")


def test_what_fails_before_a_call_is_no_answer_that_breaks_off():
    calls = 0

    async def ask(_request: Request):
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.1)
        if 20 < calls < 60:
            failure = ProviderError(ErrorKind.UNREACHABLE, "no credentials", never_sent=True)
            failure.before_call = True
            raise failure
        return RIGHT

    night = night_of(ask, 100, replace(MODEL, limits=Limits(concurrency=8), retry=RetryPolicy()))

    assert len(night.results) == 100
    assert not [message for message in night.said if "break off" in message]


@pytest.mark.long
def test_most_of_what_it_bears_is_used_and_little_breaks():
    server = Server(lambda in_flight: in_flight > 20)
    asked(server, 3_000, 200)
    late = server.seen[1_500:3_000]
    assert sum(late) / len(late) > 0.75 * 20
    assert server.broken < 0.1 * 3_000


@pytest.mark.long
@pytest.mark.parametrize("kind", BREAKS)
def test_where_the_more_calls_the_more_break_there_are_fewer(kind):
    rng = random.Random(1)
    server = Server(lambda in_flight: rng.random() < in_flight / 100, kind=kind)
    asked(server, 2_000, 64)
    late = server.seen[-1_000:]
    assert sum(late) / len(late) < 32


@pytest.mark.long
def test_it_climbs_again_when_the_server_bears_more():
    server = Server(lambda in_flight: in_flight > 3 and len(server.seen) < 300)
    asked(server, 3_000, 40)
    assert max(server.seen[100:300]) <= 12
    late = server.seen[2_000:2_900]
    assert sum(late) / len(late) > 36


@pytest.mark.long
@pytest.mark.parametrize("part", [0.08, 0.3, 0.6])
def test_answers_that_break_whatever_is_in_flight_do_not_slow_a_lane_down(part):
    rng = random.Random(2)
    server = Server(lambda _: rng.random() < part)
    asked(server, 2_000, 40)
    late = server.seen[500:-100]
    assert sum(late) / len(late) > 0.7 * 40


def test_a_model_whose_replies_are_never_valid_is_asked_a_few_times():
    server = Server(lambda _: True)
    night = asked(server, 1_000, 40, attempts=2)
    assert len(server.seen) < 2 * 40
    assert night.lanes[0].clients[0].counters.suspended is not None
    assert night.results == {}


def test_a_break_now_and_then_changes_nothing():
    detector = OverloadDetector()
    for n in range(2_000):
        detector.ended(float(n), n + 1.0, in_flight=50, broke=n % 40 == 0)
        assert detector.bound == float("inf")


def test_calls_that_began_before_a_number_was_lowered_do_not_lower_it_again():
    detector = OverloadDetector()
    for _ in range(40):
        detector.ended(0.0, 1.0, in_flight=40, broke=True)
    assert detector.bound == 10
    detector.ended(2.0, 3.0, in_flight=40, broke=True)  # nor those that were about to
    assert detector.bound == 10
