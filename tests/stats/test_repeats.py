"""Problems asked several times: clustered shares, pass@k and pass^k."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, strategies as st

from asyncbench.errors import ConfigError
from asyncbench.stats.proportions import Proportion, wilson
from asyncbench.stats.repeats import (
    Clustered,
    Votes,
    clustered,
    majority_at_k,
    pass_at_k,
    pass_hat_k,
    worth_by_k,
)

PROBLEMS = st.lists(
    st.integers(1, 10).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))), min_size=1
)


def interval(counts) -> tuple[float, float]:
    found = clustered(counts).interval
    assert found is not None
    return found


@given(st.lists(st.integers(0, 1), min_size=1))
def test_with_one_trial_a_problem_the_interval_is_wilsons(outcomes):
    plain = Proportion(successes=sum(outcomes), trials=len(outcomes))
    assert interval([(right, 1) for right in outcomes]) == pytest.approx(plain.interval, abs=1e-12)


@given(st.lists(st.integers(0, 1), min_size=1), st.integers(1, 10))
def test_asking_again_what_is_always_answered_alike_teaches_nothing(outcomes, repeats):
    once = interval([(right, 1) for right in outcomes])
    again = interval([(right * repeats, repeats) for right in outcomes])
    assert again == pytest.approx(once, abs=1e-9)


@given(PROBLEMS)
def test_an_interval_holds_its_share_and_lies_within_zero_and_one(counts):
    found = clustered(counts)
    low, high = interval(counts)
    assert found.share is not None
    assert 0 <= low <= found.share <= high <= 1


@pytest.mark.long
@given(PROBLEMS)
def test_it_is_as_wide_as_for_independent_trials_at_least(counts):
    low, high = interval(counts)
    plain = Proportion(successes=sum(right for right, _ in counts), trials=sum(n for _, n in counts)).interval
    assert plain is not None
    assert high - low >= plain[1] - plain[0] - 1e-12


def test_twenty_problems_never_solved_in_ten_repeats_are_worth_twenty_trials():
    none_right = Proportion(successes=0, trials=20).interval
    assert interval([(0, 10)] * 20) == pytest.approx(none_right)


@pytest.mark.parametrize("right", [0, 1, 2, 3])
def test_a_few_problems_that_were_asked_often_are_worth_fewer_than_they_count(right):
    counts = [*((10, 10) for _ in range(right)), *((0, 10) for _ in range(3 - right)), *[(1, 1), (0, 1)] * 15]
    low, high = interval(counts)
    trials, squares = 3 * 10 + 30, 3 * 100 + 30
    assert trials**2 / squares == pytest.approx(10.9, abs=0.01)  # of 33 problems, as their shares count
    share = (10 * right + 15) / trials
    plain_low, plain_high = wilson(share, trials**2 / squares)
    assert low < plain_low < plain_high < high


def test_one_problem_tells_no_standard_error():
    found = clustered([(3, 4)])
    assert (found.share, found.standard_error, found.clusters, found.trials) == (0.75, None, 1, 4)


def test_a_problem_without_trials_is_no_problem():
    assert clustered([(1, 2), (0, 0), (2, 2)]) == clustered([(1, 2), (2, 2)])


def test_without_trials_there_is_nothing_to_tell():
    nothing = Clustered(share=None, standard_error=None, interval=None, clusters=0, trials=0)
    assert clustered([]) == clustered([(0, 0)]) == nothing


@given(st.integers(1, 9), st.data())
def test_both_are_the_share_of_all_choices_of_k_answers(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    choices = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, choices)) / len(choices))


def test_thousands_of_answers_do_not_overflow():
    assert pass_at_k(10_000, 1, 5_000) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("most", "later"),
    [(0, []), (3, []), (10, []), (12, [12]), (100, [20, 50, 100]), (201, [20, 50, 100, 200, 201])],
)
def test_each_k_is_told_up_to_ten_and_few_after_that(most, later):
    told = [at.k for at in worth_by_k({Votes(most, most // 2, (most // 3,)): 1} if most else {})]
    assert told == [*range(1, min(most, 10) + 1), *later]


@pytest.mark.parametrize("k", [0, 6])
def test_k_beyond_what_was_asked_is_refused(k):
    with pytest.raises(ConfigError, match=f"k = {k}.*1 to 5"):
        pass_at_k(5, 2, k)


# ── majorities ───────────────────────────────────────────────────────────────────────────────

RIGHT, NONE = "right", None


def votes_of(answers) -> Votes:
    counts = Counter(answers)
    wrong = sorted((times for answer, times in counts.items() if answer not in (RIGHT, NONE)), reverse=True)
    return Votes(trials=len(answers), right=counts[RIGHT], wrong=tuple(wrong))


def won(answers) -> float:
    """The chance that a right answer is drawn of the most frequent ones, counted by hand."""
    counts = Counter(answer for answer in answers if answer is not NONE)
    most = [answer for answer, times in counts.items() if times == max(counts.values())]
    return 1 / len(most) if RIGHT in most else 0.0


@given(st.lists(st.sampled_from([RIGHT, "5", "6", "7", "8", NONE]), min_size=1, max_size=8), st.data())
def test_a_majority_is_the_mean_over_all_choices_of_k_answers(answers, data):
    k = data.draw(st.integers(1, len(answers)))
    choices = list(combinations(answers, k))
    assert majority_at_k(votes_of(answers), k) == pytest.approx(sum(map(won, choices)) / len(choices))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([RIGHT, "5"], 1 / 2),
        ([RIGHT, "5", "6"], 1 / 3),
        ([RIGHT, "5", "5"], 0),
        ([RIGHT, RIGHT, "5"], 1),
        ([RIGHT, NONE, NONE], 1),
        ([NONE, NONE], 0),
    ],
    ids=["a tie of two", "a tie of three", "outvoted", "outvoting", "none has no vote", "no answer at all"],
)
def test_a_tie_counts_as_its_chance_and_who_gave_no_answer_has_no_vote(answers, expected):
    assert majority_at_k(votes_of(answers), len(answers)) == pytest.approx(expected)


def test_a_majority_of_more_than_was_asked_is_refused():
    with pytest.raises(ConfigError, match=r"k = 3.*1 to 2"):
        majority_at_k(Votes(2, 1, (1,)), 3)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_of_one_answer_all_three_are_the_accuracy_with_its_interval(rights):
    first = next(iter(worth_by_k(Counter(Votes(3, right, (3 - right,)) for right in rights))))
    accuracy = clustered([(right, 3) for right in rights])
    for found in (first.pass_at_k, first.pass_hat_k, first.majority_at_k):
        assert found.share == pytest.approx(accuracy.share)
        assert found.interval == pytest.approx(accuracy.interval)


def test_of_all_answers_they_are_shares_of_problems():
    problems = {Votes(3, 3, ()): 5, Votes(3, 1, (2,)): 4, Votes(3, 0, (1, 1, 1)): 1}
    *_, last = worth_by_k(problems)
    assert last.k == 3
    for found, right in ((last.pass_at_k, 9), (last.pass_hat_k, 5), (last.majority_at_k, 5)):
        assert found.share == pytest.approx(right / 10)
        assert found.interval == pytest.approx(wilson(right / 10, 10))


def test_of_unequal_repeats_each_k_is_over_the_problems_asked_so_often():
    one, two = worth_by_k({Votes(1, 1, ()): 3, Votes(2, 1, (1,)): 1})
    assert (one.pass_at_k.clusters, one.pass_at_k.share) == (4, pytest.approx(3.5 / 4))
    assert (two.pass_at_k.clusters, two.pass_at_k.share, two.pass_hat_k.share) == (1, 1.0, 0.0)


def test_without_problems_there_is_no_k():
    assert list(worth_by_k({})) == []
