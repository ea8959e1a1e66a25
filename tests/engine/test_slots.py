"""How many calls a lane keeps in flight, told by servers of known capacity."""

import pytest

from asyncbench.engine.admission import FEW, FIRST, ROOM, Slots
from asyncbench.records import MOST_IN_FLIGHT


@pytest.fixture
def slots():
    """Of a lane that finds out by itself."""
    found = Slots(fixed=None)
    found.begin(1)
    return found


def ceiling(slots: Slots) -> int:
    return slots.ceiling(limited=False, share=1.0)


def served(slots: Slots, at_once: float, latency_s: float, *, answers: int, filled: bool = True) -> list[int]:
    """Answer calls like a server that works on `at_once` of them side by side; return the ceilings seen."""
    seen = []
    for _ in range(answers):
        in_flight = ceiling(slots)
        if filled:
            slots.full(None)
        slots.answered(latency_s * max(1.0, in_flight / at_once), in_flight=in_flight)
        seen.append(ceiling(slots))
    return seen


def test_what_the_sweep_says_is_the_ceiling_whatever_the_answers():
    slots = Slots(fixed=5)
    assert set(served(slots, 1, 9.0, answers=500)) == {5}


def test_a_lane_with_a_limit_a_minute_does_not_save_on_slots():
    assert Slots(fixed=None).ceiling(limited=True, share=1.0) == MOST_IN_FLIGHT
    assert Slots(fixed=7).ceiling(limited=True, share=1.0) == 7


def test_a_share_of_the_slots_is_used_while_calls_are_refused_and_never_none():
    slots = Slots(fixed=20)
    assert [slots.ceiling(limited=False, share=share) for share in (1.0, 0.5, 0.01)] == [20, 10, 1]


@pytest.mark.parametrize("in_flight", [1, FIRST, 300])
def test_a_lane_that_finds_out_by_itself_climbs_from_what_is_in_flight_at_the_first_answer(in_flight):
    slots = Slots(fixed=None)
    assert ceiling(slots) == MOST_IN_FLIGHT
    slots.begin(in_flight)
    slots.begin(9)  # the second
    assert ceiling(slots) == max(FIRST, in_flight)


@pytest.mark.parametrize("capacity", [20, 100, 400])
def test_it_climbs_until_more_calls_only_wait_longer_and_stays_near_there(slots, capacity):
    served(slots, capacity, 1.0, answers=capacity * 60)
    seen = served(slots, capacity, 1.0, answers=capacity * 60)
    assert min(seen) >= 0.6 * capacity  # most of the server is in use
    assert max(seen) <= 4 * capacity


def test_what_admitted_calls_need_is_tried_at_once(slots):
    served(slots, 1_000, 8.0, answers=FEW)
    slots.full(50.0)
    assert ceiling(slots) == pytest.approx(ROOM * 50 * 8)


def test_what_admitted_calls_need_is_not_tried_again_where_it_did_not_pay_off(slots):
    highest = before = ceiling(slots)
    while before >= highest:  # until it steps back
        highest = before
        (before,) = served(slots, 20, 1.0, answers=1)
    slots.full(500.0)
    assert ceiling(slots) == before


def test_it_climbs_no_further_than_calls_fill_the_slots(slots):
    assert set(served(slots, 1_000, 1.0, answers=2_000, filled=False)) == {FIRST}


@pytest.mark.long
def test_it_never_climbs_beyond_the_most_that_a_lane_may_have(slots):
    assert max(served(slots, 1e9, 1.0, answers=100_000)) == MOST_IN_FLIGHT


def test_it_steps_back_when_somebody_else_uses_the_server(slots):
    served(slots, 200, 1.0, answers=20_000)
    before = ceiling(slots)
    assert min(served(slots, 20, 1.0, answers=20_000)) < before / 2


@pytest.mark.long
def test_it_comes_back_when_the_server_is_free_again(slots):
    served(slots, 200, 1.0, answers=20_000)
    served(slots, 20, 1.0, answers=20_000)
    served(slots, 200, 1.0, answers=60_000)
    assert min(served(slots, 200, 1.0, answers=10_000)) >= 100


def test_answers_without_a_latency_do_no_harm(slots):
    assert min(served(slots, 1, 0.0, answers=500)) >= 1
