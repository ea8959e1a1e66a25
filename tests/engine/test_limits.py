"""The limits of a lane: buckets that are taken from, given back to and set right, on a clock that is told."""

import pytest
from hypothesis import given, settings, strategies as st

from asyncbench.engine.limits import HEADROOM, OWED_S, Amounts, Bucket, Counting, Gate, counted, demanded
from asyncbench.records import Allowance, Limits, Usage


def about(value: float | list[float]) -> object:
    return pytest.approx(value, rel=1e-3, abs=1e-3)


def served(bucket: Bucket, amounts: list[float]) -> list[float]:
    """Take one amount after the other, each as soon as it may be; return when each was."""
    at_s, times = 0.0, []
    for amount in amounts:
        at_s += bucket.wait_s(amount, at_s)
        bucket.take(amount, at_s)
        times.append(at_s)
    return times


def gate(**limits) -> Gate:
    return Gate(Limits(**limits), at_s=0.0)


def told(what="requests", *, limit=None, remaining=None, reset_s=None, period_s=60.0) -> Allowance:
    return Allowance(what=what, period_s=period_s, limit=limit, remaining=remaining, reset_s=reset_s)


def paced(gate: Gate, amounts: Amounts, *, for_s: float) -> int:
    """Take calls as fast as the gate lets them through; return how many within `for_s` seconds."""
    at_s, taken = 0.0, 0
    while (at_s := at_s + (wait.seconds if (wait := gate.wait(amounts, at_s)) else 0.0)) < for_s:
        gate.take(amounts, at_s)
        taken += 1
    return taken


def test_a_bucket_starts_with_one_unit_so_there_is_no_burst_at_the_start():
    assert served(Bucket(600, burst_s=1.0, at_s=0.0), [1, 1, 1]) == about([0.0, 0.1, 0.2])


@settings(max_examples=50)
@given(st.lists(st.floats(0.1, 30), min_size=1, max_size=60))
def test_no_window_gets_more_than_the_rate_and_one_bucket(amounts):
    per_s, times = 10.0, served(Bucket(600, burst_s=1.0, at_s=0.0), amounts)
    assert len(times) == len(amounts)
    for first, since_s in enumerate(times):
        # An amount beyond the bucket waits for a full one and leaves a debt, paid before the next.
        used = sum(amounts[first:-1])
        assert used <= per_s * (times[-1] - since_s) + 11 + max(amounts) + 1e-6


def test_more_than_a_bucket_is_let_through_and_leaves_a_debt():
    first_s, second_s = served(Bucket(600, burst_s=1.0, at_s=0.0), [100, 1])
    assert first_s == about(1.0)  # full: eleven, of which one was there
    assert second_s - first_s == about((100 - 11 + 1) / 10)


def test_what_was_not_used_is_given_back_at_once():
    bucket = Bucket(600, burst_s=1.0, at_s=0.0)
    bucket.take(101, at_s=0.0)
    assert bucket.wait_s(1, at_s=0.0) == about(10.1)
    bucket.take(-95, at_s=0.0)
    assert bucket.wait_s(1, at_s=0.0) == about(0.6)


def test_a_bucket_follows_a_change_of_rate_and_keeps_its_debt():
    bucket = Bucket(600, burst_s=1.0, at_s=0.0)
    bucket.take(11, at_s=0.0)
    bucket.set_rate(6_000, at_s=0.0)
    assert bucket.wait_s(1, at_s=0.0) == about(0.11)


@pytest.mark.parametrize("rpm", [3, 60, 6_000, 60_000])
def test_requests_are_paced_at_any_rate_and_a_little_is_left(rpm):
    seconds = max(60.0, 600 / rpm)
    share = paced(gate(rpm=rpm), Amounts(), for_s=seconds) / (rpm * seconds / 60)
    assert HEADROOM - 0.01 <= share <= 1 or rpm == 3
    assert paced(gate(rpm=rpm), Amounts(), for_s=seconds) <= rpm * seconds / 60 * HEADROOM + 1


def test_a_call_passes_all_limits_at_once_and_the_slowest_says_how_long():
    both = gate(rpm=60, input_tpm=6_000)
    both.take(Amounts(1, 0, 1_000, 0), at_s=0.0)
    wait = both.wait(Amounts(1, 0, 10, 0), at_s=0.0)
    assert wait is not None
    assert wait.limit == "input_tokens"
    assert wait.seconds > 9


def test_a_call_that_has_to_wait_for_one_limit_takes_nothing_of_another():
    both = gate(rpm=60, tpm=60)
    both.take(Amounts(1, 2), at_s=0.0)
    assert both.wait(Amounts(1, 1), at_s=1.5) is not None  # for tokens
    assert both.wait(Amounts(1, 0), at_s=1.5) is None  # requests were left alone


def test_a_fraction_of_every_limit_is_used():
    assert gate(rpm=600, tpm=9_000, fraction=0.5).limits_in_force() == {"requests": 300, "tokens": 4_500}
    shared = gate(fraction=0.5)
    shared.follow(told(limit=600), at_s=0.0)
    assert shared.limits_in_force() == {"requests": 300}


def test_a_refusal_that_stands_alone_takes_what_seemed_to_be_saved_up():
    lane, ten = gate(output_tpm=6_000), Amounts(output_tokens=10)
    assert lane.wait(ten, at_s=5.0) is None
    lane.refuse(ten, at_s=5.0)  # one of many: they may be about something else
    assert lane.wait(ten, at_s=5.0) is None
    lane.refuse(ten, at_s=5.0, alone=True)
    wait = lane.wait(ten, at_s=5.0)
    assert wait is not None
    assert wait.seconds == about(10 / (100 * HEADROOM) + OWED_S)


def test_a_lower_limit_that_the_provider_tells_is_followed_and_said_once():
    lane = gate(rpm=6_000)
    news = lane.follow(told(limit=600, remaining=599, reset_s=0.1), at_s=0.0)
    allowed = "the provider's headers allow 600 requests a minute, your sweep 6,000"
    assert news == f"{allowed}. asyncbench uses the lower limit"
    assert lane.limits_in_force() == {"requests": 600}
    assert lane.follow(told(limit=600), at_s=1.0) is None
    assert lane.follow(told(limit=500), at_s=2.0) is None  # followed, and not said again
    assert lane.limits_in_force() == {"requests": 500}


def test_a_higher_limit_than_configured_is_left_unused():
    lane = gate(rpm=60)
    assert lane.follow(told(limit=6_000), at_s=0.0) is None
    assert lane.limits_in_force() == {"requests": 60}


def test_a_limit_that_rises_again_is_followed_again():
    lane = gate(rpm=6_000)
    for limit in (600, 1_800, 9_000):
        lane.follow(told(limit=limit), at_s=0.0)
    assert lane.limits_in_force() == {"requests": 6_000}


def test_limits_that_are_not_configured_start_from_what_the_provider_tells():
    lane = gate()
    assert not lane.limited
    lane.follow(told("input_tokens", limit=50_000), at_s=0.0)
    assert lane.limits_in_force() == {"input_tokens": 50_000}


def test_a_limit_of_a_day_is_not_taken_for_one_of_a_minute():
    lane = gate()
    lane.follow(told(limit=14_400, remaining=14_000, period_s=86_400), at_s=0.0)
    assert lane.limits_in_force() == {}


def test_a_guessed_limit_holds_until_it_is_forgotten_or_the_provider_tells_one():
    lane = gate()
    lane.guess(600, at_s=0.0)
    lane.take(Amounts(), at_s=0.0)
    assert lane.wait(Amounts(), at_s=0.0) is not None
    assert (lane.limited, lane.limits_in_force()) == (False, {})  # nobody said so
    lane.forget_guess()
    assert lane.wait(Amounts(), at_s=0.0) is None

    lane.guess(600, at_s=0.0)
    lane.follow(told(limit=60), at_s=0.0)
    assert lane.limits_in_force() == {"requests": 60}


def test_a_share_of_the_limits_slows_all_of_them():
    lane = gate(rpm=6_000)
    lane.use(0.5, at_s=0.0)
    assert paced(lane, Amounts(), for_s=60) == pytest.approx(3_000, rel=0.01)


CACHED = Usage(input_tokens=1_000, cached_input_tokens=900, output_tokens=50)
RESERVED = Amounts(1.0, 700.0, 1_100.0, 300.0)


@pytest.mark.parametrize(
    ("counting", "amounts"),
    [
        (Counting.USED, Amounts(1.0, 1_050.0, 1_000.0, 50.0)),
        (Counting.UNCACHED, Amounts(1.0, 150.0, 100.0, 50.0)),
        (Counting.DEMANDED, Amounts(1.0, 700.0, 1_000.0, 50.0)),
    ],
)
def test_what_a_call_is_counted_for_is_the_providers_own_way(counting, amounts):
    assert counted(CACHED, RESERVED, counting) == amounts


@pytest.mark.parametrize("usage", [None, Usage(), Usage(input_tokens=5)])
def test_an_unknown_usage_counts_as_reserved(usage):
    assert counted(usage, RESERVED, Counting.USED) == RESERVED


def test_openai_counts_max_tokens_or_the_prompt_where_that_is_more():
    assert demanded(4_000, 500) == 1_000
    assert demanded(4_000, 5_000) == 5_000
    assert demanded(4_000, None) == 1_000
