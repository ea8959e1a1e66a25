"""Shares with their intervals, and quantiles."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncbench.stats import Proportion, quantile


def interval(successes, trials) -> tuple[float, float]:
    found = Proportion(successes=successes, trials=trials).interval
    assert found is not None
    return found


def test_the_wilson_interval_of_42_in_100_is_the_published_one():
    low, high = interval(42, 100)
    assert (low, high) == (pytest.approx(0.32798, abs=1e-5), pytest.approx(0.51794, abs=1e-5))


def test_a_perfect_score_is_no_certainty():
    low, high = interval(100, 100)
    assert low == pytest.approx(0.96300, abs=1e-5)
    assert high == 1.0


def test_without_trials_there_is_no_share_and_no_interval():
    nothing = Proportion(successes=0, trials=0)
    assert nothing.share is None
    assert nothing.interval is None


@given(st.integers(1, 10_000), st.data())
def test_an_interval_holds_its_share_and_lies_within_zero_and_one(trials, data):
    successes = data.draw(st.integers(0, trials))
    low, high = interval(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=2))
def test_a_quantile_is_that_of_the_standard_library(values):
    ordered = sorted(values)
    cuts = statistics.quantiles(ordered, n=20, method="inclusive")
    assert quantile(ordered, 0.5) == pytest.approx(statistics.median(ordered))
    assert quantile(ordered, 0.95) == pytest.approx(cuts[-1])


def test_there_is_no_quantile_of_nothing():
    assert quantile([], 0.5) is None
