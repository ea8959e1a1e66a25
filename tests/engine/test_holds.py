"""How long a provider's word is believed that nothing remains of a limit; on a clock that is told."""

import pytest

from asyncbench.engine.limits import Amounts, Gate
from asyncbench.records import Allowance, Limits

A_DAY_S = 86_400.0


@pytest.fixture
def gate():
    return Gate(Limits(), at_s=0.0)


def gone(reset_s: float, *, what: str = "tokens", period_s: float = 60.0) -> Allowance:
    return Allowance(what=what, period_s=period_s, limit=6_000, remaining=0, reset_s=reset_s)


def wait_s(gate: Gate, at_s: float) -> float:
    wait = gate.wait(Amounts(1, 0), at_s)
    return wait.seconds if wait else 0.0


def test_where_nothing_remains_nothing_is_taken_until_the_reset(gate):
    gate.hold(gone(20.0), 0.0)
    assert gate.wait(Amounts(1, 0), at_s=5.0) == (15.0, "tokens")
    assert wait_s(gate, 20.5) == 0


def test_a_minutes_limit_is_back_after_a_minute_whatever_its_reset_says(gate):
    gate.hold(gone(360.0), 0.0)
    assert wait_s(gate, 0.0) == 60


def test_a_pause_of_more_than_ten_seconds_is_told_once_with_its_cause(gate):
    assert Gate(Limits(), at_s=0.0).hold(gone(9.0), 0.0) is None
    pause = gate.hold(gone(360.0), 0.0)
    assert pause is not None
    assert pause.why == "the provider reports no tokens left for 360 s; waiting 60 s"
    assert gate.hold(gone(360.0), 1.0) is None


def test_a_day_that_is_used_up_stops_a_lane_until_its_reset_and_says_so_once(gate):
    day = gone(7_200.0, what="requests", period_s=A_DAY_S)
    pause = gate.hold(day, 0.0)
    assert pause is not None
    assert pause.why == "the daily limit of requests is used up; waiting 2.0 hours until it resets"
    assert gate.hold(day, 0.0) is None
    assert gate.wait(Amounts(), at_s=1.0) == (7_199.0, "day")


@pytest.mark.parametrize("told", [gone(360.0), gone(30_000.0, what="requests", period_s=A_DAY_S)])
def test_of_two_waits_that_contradict_each_other_the_shorter_is_tried(gate, told):
    gate.hold(told, 0.0, sent_s=-1.0, retry_after_s=1.0)
    assert wait_s(gate, 0.0) == 1.0


def test_a_try_that_is_admitted_ends_the_belief_in_the_longer_wait(gate):
    gate.hold(gone(360.0), 0.0, sent_s=-1.0, retry_after_s=1.0)
    gate.holds.admitted(1.1)
    for at_s in (2.0, 100.0):
        assert gate.hold(gone(360.0), at_s, sent_s=at_s - 0.1, retry_after_s=1.0) is None
        assert gate.hold(gone(360.0), at_s) is None
        assert wait_s(gate, at_s) == 0


def test_a_try_that_is_refused_proves_the_longer_wait(gate):
    gate.hold(gone(40.0), 0.0, sent_s=-1.0, retry_after_s=1.0)
    gate.hold(gone(38.8), 1.2, sent_s=1.1, retry_after_s=1.0)
    assert wait_s(gate, 1.2) == pytest.approx(38.8)
    gate.holds.admitted(40.0)  # after it: no proof against it
    gate.hold(gone(40.0), 50.0)
    assert wait_s(gate, 50.0) == 40.0


def test_refusals_of_calls_that_were_on_their_way_prove_nothing(gate):
    for at_s in (0.0, 0.1, 0.2):
        gate.hold(gone(360.0), at_s, sent_s=-1.0, retry_after_s=1.0)
    assert wait_s(gate, 0.2) == 1.0


def test_a_call_that_is_admitted_after_a_minute_disproves_a_reset_of_six(gate):
    gate.hold(gone(360.0), 0.0)
    gate.holds.admitted(60.1)
    assert gate.hold(gone(360.0), 61.0) is None


@pytest.mark.parametrize("sent_s", [-1.0, 18.0])
def test_an_answer_proves_nothing_against_a_reset_that_was_to_come_soon(gate, sent_s):
    gate.hold(gone(20.0), 0.0, sent_s=-1.0, retry_after_s=17.0)
    gate.holds.admitted(sent_s)
    gate.hold(gone(20.0), 30.0)
    assert wait_s(gate, 30.0) == 20.0
