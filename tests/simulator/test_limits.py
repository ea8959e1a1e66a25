"""A bucket admits its burst at once and its rate for ever, and tells the truth about the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncbench.simulator.limits import Gate, TokenBucket

steps = st.lists(st.tuples(st.floats(0, 30), st.integers(1, 50)), max_size=200)


def bucket(per_minute=600.0, *, burst_s=1.0):
    return TokenBucket(per_minute, burst_s=burst_s, at_s=0)


def admitted(limit, amount, at_s):
    if limit.wait_s(amount, at_s):
        return False
    limit.take(amount, at_s)
    return True


@given(steps)
def test_never_more_than_the_burst_and_the_rate_in_any_time(steps):
    limit, at_s, taken = bucket(), 0.0, 0
    for pause_s, amount in steps:
        at_s += pause_s
        taken += amount * admitted(limit, amount, at_s)
        largest = 50  # a larger amount than the bucket leaves a debt
        assert taken <= 10 + at_s * 10 + largest


@given(steps)
def test_who_waits_as_long_as_told_is_admitted(steps):
    limit, at_s = bucket(), 0.0
    for pause_s, amount in steps:
        at_s += pause_s
        at_s += limit.wait_s(amount, at_s)
        assert admitted(limit, amount, at_s)


@pytest.mark.parametrize(
    ("per_minute", "burst_s", "at_once"),
    [(600, 1, 10), (600, 3, 30), (60, 1, 1), (6, 1, 1)],
    ids=["a second's worth", "three seconds' worth", "one", "at least one"],
)
def test_the_burst_is_admitted_at_once(per_minute, burst_s, at_once):
    limit = bucket(per_minute, burst_s=burst_s)

    assert [admitted(limit, 1, 0.0) for _ in range(at_once + 1)] == [True] * at_once + [False]


def test_a_steady_caller_at_the_rate_is_never_refused():
    limit = bucket(60)

    assert all(admitted(limit, 1, float(second)) for second in range(1000))


def test_more_than_the_bucket_holds_waits_for_a_full_one_and_leaves_a_debt():
    limit = bucket(600)

    assert admitted(limit, 100, 0.0)
    assert limit.wait_s(1, 0.0) == pytest.approx(9.1)
    assert limit.wait_s(100, 0.0) == pytest.approx(10)


def test_the_allowance_says_what_is_left_and_when_it_is_full_again():
    limit = bucket(600)
    limit.take(4, 0.0)
    allowance = limit.allowance(0.0)

    assert (allowance.per_minute, allowance.remaining) == (600, 6)
    assert allowance.reset_s == pytest.approx(0.4)
    assert limit.allowance(0.4).reset_s == pytest.approx(0)


def test_a_debt_leaves_nothing_rather_than_less():
    limit = bucket(600)
    limit.take(100, 0.0)

    assert limit.allowance(0.0).remaining == 0


def test_a_request_is_charged_to_all_limits_or_to_none():
    gate = Gate({"requests": bucket(600), "tokens": bucket(6)})
    cost = {"requests": 1.0, "tokens": 1.0}

    assert gate.admit(cost, 0.0) == 0
    assert gate.admit(cost, 0.0) == pytest.approx(10)  # the longer of the two waits
    assert gate.allowances(0.0)["requests"].remaining == 9


def test_without_limits_everything_is_admitted():
    assert all(Gate({}).admit({"requests": 1}, 0.0) == 0 for _ in range(1000))
