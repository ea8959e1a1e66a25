"""Accuracy is never told without its denominator, nor without what lost trials could change."""

import pytest

from asyncbench.records import Outcome
from asyncbench.stats import Accuracy

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
