"""Shares and accuracies: intervals that hold, quantiles, and what lost trials could change."""

import statistics

import pytest
from hypothesis import given, strategies as st

from asyncbench.records import Outcome
from asyncbench.stats.paired import quantile
from asyncbench.stats.proportions import Accuracy, Proportion


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
    rounding = 1e-9  # of sums of values up to a million that cancel out
    assert quantile(ordered, 0.5) == pytest.approx(statistics.median(ordered), abs=rounding)
    assert quantile(ordered, 0.95) == pytest.approx(cuts[-1], abs=rounding)


def test_there_is_no_quantile_of_nothing():
    assert quantile([], 0.5) is None


NIGHT = {"correct": 60, "wrong": 20, "no_answer": 5, "refused": 5, "truncated": 7, "failed": 3}


def test_every_trial_counts_in_the_accuracy_over_all():
    over_all = Accuracy.of(NIGHT).over_all
    assert (over_all.successes, over_all.trials, over_all.share) == (60, 100, 0.6)


def test_only_trials_whose_answer_was_read_count_in_the_accuracy_over_answered():
    over_answered = Accuracy.of(NIGHT).over_answered
    assert (over_answered.successes, over_answered.trials, over_answered.share) == (60, 80, 0.75)


def test_the_bounds_are_what_failed_and_truncated_trials_could_make_of_it():
    accuracy = Accuracy.of(NIGHT)
    assert (accuracy.lowest, accuracy.highest) == (0.6, 0.7)
    assert accuracy.lost_share == 0.1


@pytest.mark.parametrize(("lost", "loud"), [(10, False), (11, True)])
@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TRUNCATED])
def test_more_than_one_in_a_hundred_lost_is_loud(outcome, lost, loud):
    assert Accuracy.of({"correct": 1_000 - lost, outcome: lost}).loud is loud


def test_refusals_and_unread_replies_are_the_models_own_and_not_lost():
    accuracy = Accuracy.of({"correct": 5, "no_answer": 4, "refused": 1})
    assert accuracy.lost_share == 0
    assert accuracy.highest == 0.5


def test_without_trials_there_is_no_accuracy_and_nothing_loud():
    nothing = Accuracy.of({})
    assert (nothing.lowest, nothing.highest, nothing.lost_share, nothing.loud) == (None, None, None, False)
    assert nothing.over_answered.share is None
