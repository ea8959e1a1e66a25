"""The account of a lane: each minute of the clock on the wall, written down when it is over."""

import pytest

from asyncbench.engine.limits import Amounts
from asyncbench.engine.telemetry import Minutes
from asyncbench.records import LaneMinute
from asyncbench.records.waits import WORK

LIMITS = {"requests": 600.0}


def account(*, epoch_s: float = 1_200.0, at_s: float = 0.0) -> tuple[Minutes, list[LaneMinute]]:
    kept: list[LaneMinute] = []
    return Minutes("m", epoch_s=epoch_s, at_s=at_s, keep=kept.append), kept


def close(minutes: Minutes, at_s: float, *, share: float = 1.0, in_flight: int = 0) -> None:
    minutes.close(at_s, LIMITS, share, in_flight=in_flight)


def test_a_minute_ends_with_that_of_the_clock_on_the_wall():
    minutes, _ = account(epoch_s=1_200.0 + 45.0)
    assert minutes.left_s(0.0) == pytest.approx(15.0)
    assert minutes.left_s(10.0) == pytest.approx(5.0)
    assert minutes.left_s(16.0) == 0.0


def test_what_was_counted_is_written_down_once():
    minutes, kept = account()
    for in_flight in (1, 2, 3):
        minutes.admitted(in_flight)
    minutes.settled(Amounts(1.0, 30.0, 20.0, 10.0))
    minutes.settled(Amounts(1.0, 3.0, 2.0, 1.0))
    minutes.refused += 1
    close(minutes, 60.0, share=0.9)
    row = kept[0]
    assert (row.lane, row.requests, row.refused, row.most_in_flight) == ("m", 3, 1, 3)
    assert (row.tokens, row.input_tokens, row.output_tokens) == (33.0, 22.0, 11.0)
    assert (row.limits, row.share) == (LIMITS, 0.9)
    minutes.admitted(1)
    close(minutes, 120.0)
    assert (kept[1].requests, kept[1].refused, kept[1].tokens) == (1, 0, 0.0)


def test_calls_that_go_on_into_the_next_minute_are_in_flight_there_from_its_start():
    minutes, kept = account()
    minutes.admitted(4)
    close(minutes, 60.0, in_flight=3)
    minutes.waited(WORK, 60.0)
    close(minutes, 120.0)
    assert [row.most_in_flight for row in kept] == [4, 3]


def test_a_later_change_of_the_limits_does_not_change_what_was_written():
    minutes, kept = account()
    limits = dict(LIMITS)
    minutes.admitted(1)
    minutes.close(60.0, limits, 1.0, in_flight=0)
    limits["requests"] = 1.0
    assert kept[0].limits == LIMITS


def test_nothing_is_written_of_no_time_at_all():
    minutes, kept = account()
    close(minutes, 0.0)
    assert kept == []
