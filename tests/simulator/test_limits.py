"""A limit admits its burst at once and its rate for ever, and tells the truth about the rest."""

import pytest
from hypothesis import given, strategies as st

from asyncbench.simulator.limits import (
    LIMIT_MODELS,
    FixedWindow,
    ServedLimits,
    SlidingWindow,
    TokenBucket,
)


def bucket(per_minute=600.0, *, burst_s=1.0):
    return TokenBucket(per_minute, burst_s=burst_s, at_s=0)


def admitted(limit, amount, at_s):
    if limit.wait_s(amount, at_s):
        return False
    limit.take(amount, at_s)
    return True


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


# ── every model of a limit ───────────────────────────────────────────────────────────────────

# Sixty-fourths of a second are exact in binary: an amount is due on time, or it is not.
ticks = st.lists(st.tuples(st.integers(0, 1200), st.integers(1, 40)), min_size=1, max_size=120)
rates = st.sampled_from([0.5, 7, 60, 90, 600, 1000, 6000])


@st.composite
def limits(draw):
    """A limit of any model at any rate."""
    return made(draw(st.sampled_from(sorted(LIMIT_MODELS))), draw(rates))


def made(name, per_minute, *, burst_s=1.0, at_s=0.0):
    return LIMIT_MODELS[name](per_minute, burst_s, at_s)


def played(limit, steps):
    """Return (when, how much, admitted) of calls that never wait."""
    at, seen = 0, []
    for pause, amount in steps:
        at += pause
        seen.append((at / 64, amount, admitted(limit, amount, at / 64)))
    return seen


@given(limits(), ticks)
def test_who_waits_as_long_as_any_model_told_is_admitted(limit, steps):
    at_s, waited_s = 0.0, []
    limit.take(100_000, 0.0)  # a debt: the first has to wait
    for pause, amount in steps:
        at_s += pause / 64
        waited_s.append(limit.wait_s(amount, at_s))
        at_s += waited_s[-1]
        assert admitted(limit, amount, at_s)
    assert waited_s[0] > 0


@given(limits(), ticks)
def test_who_comes_any_earlier_than_told_is_refused(limit, steps):
    at_s, waited_s = 0.0, []
    limit.take(100_000, 0.0)  # a debt: the first has to wait
    for pause, amount in steps:
        at_s += pause / 64
        waited_s.append(wait_s := limit.wait_s(amount, at_s))
        assert all(limit.wait_s(amount, at_s + wait_s * share) > 0 for share in (0.25, 0.999) if wait_s > 0.1)
        at_s += wait_s
        limit.take(amount, at_s)
    assert waited_s[0] > 0.1


@given(limits(), ticks)
def test_every_allowance_is_true(limit, steps):
    at_s = 0.0
    for pause, amount in steps:
        at_s += pause / 64
        left = limit.allowance(at_s)
        assert left.remaining >= 0
        assert left.reset_s >= 0
        assert left.remaining < 1 or not limit.wait_s(int(left.remaining), at_s)
        most = limit.allowance(at_s + left.reset_s).remaining
        assert most == pytest.approx(limit.allowance(at_s + left.reset_s + 1e4).remaining, rel=1e-5, abs=1)
        at_s += limit.wait_s(amount, at_s)
        limit.take(amount, at_s)


# Each model as one would define it: all that was admitted is summed up anew at each call. Amounts
# are no larger than what a limit admits at once; larger ones leave debts, and have tests of their own.


def fits_fixed(window_s, each):
    """`each` n: what the nth window admits."""

    def fits(taken, amount, at_s):
        window = at_s // window_s
        return sum(one for when, one in taken if when // window_s == window) + amount <= each(window)

    return fits


def fits_sliding(taken, amount, at_s):
    return sum(one for when, one in taken if at_s - when < 60) + amount <= 100


def fits_bucket(taken, amount, at_s):
    """10 at once and 10 a second: of any time that ends now, no more than both together."""
    begins = [when for when, _ in taken] + [at_s]
    sums = [sum(one for when, one in taken if when >= begin) for begin in begins]
    return all(
        total + amount <= 10 + 10 * (at_s - begin) + 1e-6 for total, begin in zip(sums, begins, strict=True)
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("limit", "fits"),
    [
        pytest.param(lambda: made("token_bucket", 600), fits_bucket, id="token_bucket"),
        pytest.param(lambda: made("gcra", 600), fits_bucket, id="gcra"),
        pytest.param(lambda: made("fixed_window", 100), fits_fixed(60, lambda _: 100), id="fixed_window"),
        pytest.param(lambda: made("sliding_window", 100), fits_sliding, id="sliding_window"),
        pytest.param(lambda: made("quanta", 600), fits_fixed(1, lambda _: 10), id="quanta"),
        pytest.param(
            lambda: made("quanta", 630),
            fits_fixed(1, lambda second: 10 if second % 2 == 0 else 11),
            id="quanta with halves",
        ),
    ],
)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 10)), min_size=1, max_size=150))
def test_no_window_is_overfilled_and_nothing_that_is_due_is_refused(limit, fits, steps):
    taken: list[tuple[float, int]] = []
    for at_s, amount, was_admitted in played(limit(), steps):
        assert was_admitted == fits(taken, amount, at_s)
        if was_admitted:
            taken.append((at_s, amount))


@pytest.mark.long
@pytest.mark.parametrize("name", LIMIT_MODELS)
@given(st.lists(st.tuples(st.floats(0, 20), st.integers(1, 5000)), min_size=1, max_size=100), rates)
def test_amounts_of_any_size_come_to_no_more_than_the_rate(name, steps, per_minute):
    limit, at_s, taken = made(name, per_minute), 0.0, 0
    for pause_s, amount in steps:
        at_s += pause_s
        if admitted(limit, amount, at_s):
            assert taken <= per_minute * (at_s / 60 + 1) + 1  # a minute's worth may be there at the start
            taken += amount
    assert taken  # the first is always admitted


@pytest.mark.long
@pytest.mark.parametrize("name", LIMIT_MODELS)
@pytest.mark.parametrize("per_minute", [20, 600, 6000])
def test_an_even_caller_at_the_rate_is_never_refused_by_any_model(name, per_minute):
    limit = made(name, per_minute)

    assert all(admitted(limit, 1, 60 / per_minute * (i + 0.5)) for i in range(20_000))


@pytest.mark.parametrize(
    ("name", "at_once", "again_s"),
    [
        ("token_bucket", 100, 0.01),
        ("gcra", 100, 0.01),
        ("fixed_window", 6000, 50),
        ("sliding_window", 6000, 60),
        ("quanta", 100, 1),
    ],
)
def test_each_model_has_its_own_burst_and_its_own_pause_after_it(name, at_once, again_s):
    limit = made(name, 6000, at_s=10)

    assert limit.allowance(10).remaining == pytest.approx(at_once)
    assert sum(admitted(limit, 1, 10) for _ in range(10_000)) == at_once
    assert limit.wait_s(1, 10) == pytest.approx(again_s)


@pytest.mark.parametrize("name", LIMIT_MODELS)
def test_less_than_one_a_second_still_admits_one_at_once(name):
    limit = made(name, 6)
    at_once = 6 if name in ("fixed_window", "sliding_window") else 1

    assert limit.allowance(0).remaining == at_once
    assert [admitted(limit, 1, 0.5) for _ in range(at_once + 1)] == [True] * at_once + [False]


@pytest.mark.parametrize(
    ("per_minute", "each"),
    [(6000, [100, 100, 100, 100]), (90, [1, 2, 1, 2]), (100, [1, 2, 2, 1]), (20, [1, 0, 0, 1])],
    ids=["whole", "halves", "thirds", "less than one a second"],
)
def test_a_second_admits_whole_requests_and_carries_the_rest(per_minute, each):
    limit = made("quanta", per_minute)

    assert [sum(admitted(limit, 1, second + 0.5) for _ in range(200)) for second in range(4)] == each


@pytest.mark.parametrize(
    ("limit", "free_s"),
    [(made("quanta", 600), 3), (FixedWindow(10, at_s=0), 180), (SlidingWindow(10), 150.5)],
    ids=["quanta", "fixed window", "sliding window"],
)
def test_more_than_a_window_holds_goes_into_an_untouched_one_and_leaves_a_debt(limit, free_s):
    assert admitted(limit, 25, 0.5)
    assert limit.wait_s(10, 0.5) == pytest.approx(free_s - 0.5)
    assert limit.allowance(0.5).remaining == 0


def test_windows_begin_when_they_are_said_to():
    limit = FixedWindow(10, at_s=-45)

    assert [admitted(limit, 10, at_s) for at_s in (0, 14.9, 16, 74, 75)] == [True, False, True, False, True]


def test_a_sliding_window_forgets_what_has_left_it():
    limit = SlidingWindow(6000)
    for i in range(100_000):
        limit.take(1, i / 100)

    assert len(limit._sums) < 13_000
    assert limit.allowance(999.99).remaining == 0


# ── together ────────────────────────────────────────────────────────────────────────────────


def test_a_request_is_charged_to_all_limits_or_to_none():
    gate = ServedLimits({"requests": bucket(600), "tokens": bucket(6)})
    cost = {"requests": 1.0, "tokens": 1.0}

    assert gate.admit(cost, 0.0) == 0
    assert gate.admit(cost, 0.0) == pytest.approx(10)  # the longer of the two waits
    assert gate.allowances(0.0)["requests"].remaining == 9


def test_without_limits_everything_is_admitted():
    assert all(ServedLimits({}).admit({"requests": 1}, 0.0) == 0 for _ in range(1000))
