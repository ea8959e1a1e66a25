"""Two models on the same problems: exact tests, resampled differences, and how many problems show one."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from asyncbench.stats.paired import (
    bootstrap_difference,
    mcnemar,
    pooled_z,
    problems_needed,
    sign_flip,
    smallest_detectable,
)

COUNTS = st.integers(0, 60)
HISTOGRAMS = st.dictionaries(st.integers(-4, 4), st.integers(0, 8), max_size=9)
KINDS = st.integers(1, 30).flatmap(lambda asked: st.tuples(st.integers(-asked, asked), st.just(asked)))
MIXTURES = st.dictionaries(KINDS, st.integers(0, 8), max_size=9)


def flipped_exactly(differences) -> Fraction:
    """Every choice of signs, counted in whole numbers."""
    ways = Counter({0: 1})
    for difference, problems in differences.items():
        for _ in range(problems if difference else 0):
            grown = Counter[int]()
            for total, count in ways.items():
                grown[total + difference] += count
                grown[total - difference] += count
            ways = grown
    seen = abs(sum(difference * problems for difference, problems in differences.items()))
    far = sum(count for total, count in ways.items() if abs(total) >= seen)
    return Fraction(far, sum(ways.values()))


def test_what_looks_like_chance_on_different_problems_is_none_on_the_same():
    # 100 problems: 29 solved by both, 15 by A alone, 3 by B alone.
    assert round(pooled_z(29 + 15, 100, 29 + 3, 100), 3) == 0.080
    assert round(mcnemar(15, 3), 3) == 0.008


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (1, 0), (7, 7), (7, 8)])
def test_models_that_differ_by_one_problem_at_most_are_not_told_apart(only_a, only_b):
    assert mcnemar(only_a, only_b) == 1.0


@given(COUNTS, COUNTS)
def test_the_order_of_the_two_models_does_not_matter(only_a, only_b):
    assert mcnemar(only_a, only_b) == mcnemar(only_b, only_a)
    assert sign_flip({2: only_a, -1: only_b}) == sign_flip({-2: only_a, 1: only_b})


@given(COUNTS, COUNTS, st.integers(1, 10), COUNTS)
def test_with_differences_of_one_size_flipping_signs_is_mcnemar(only_a, only_b, size, same):
    assert sign_flip({size: only_a, -size: only_b, 0: same}) == mcnemar(only_a, only_b)


@given(HISTOGRAMS)
def test_flipping_signs_is_the_count_of_all_choices_of_signs(differences):
    assert sign_flip(differences) == pytest.approx(float(flipped_exactly(differences)), rel=0, abs=1e-12)


def test_thousands_of_problems_and_repeats_are_counted_exactly_too():
    differences = {0: 300, 1: 260, -1: 240, 2: 120, -2: 101, 3: 21, -3: 20, 5: 2}
    assert sign_flip(differences) == pytest.approx(float(flipped_exactly(differences)), rel=0, abs=1e-12)


def test_a_difference_beyond_doubt_is_told_by_a_bound_above_its_p():
    certain = sign_flip({1: 200, 2: 200})
    assert 2.0**-399 < certain < 1e-17


def seen(kinds) -> float:
    trials = sum(asked * problems for (_, asked), problems in kinds.items())
    return sum(by * problems for (by, _), problems in kinds.items()) / trials if trials else 0.0


@pytest.mark.long
@given(MIXTURES)
def test_an_interval_holds_the_difference_that_was_seen_whatever_the_mixture_of_repeats(kinds):
    low, high = bootstrap_difference(kinds, seed=1, resamples=1_000)
    assert -1 <= low <= seen(kinds) <= high <= 1


@pytest.mark.parametrize("often", [50, 1_000])
def test_one_problem_asked_far_more_often_makes_nothing_certain(often):
    kinds = {(often, often): 1, (0, 1): 99}
    low, high = bootstrap_difference(kinds, seed=1)
    assert low < 0 < seen(kinds) < high


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(2, 10))
def test_asking_again_what_is_always_answered_alike_makes_no_interval_narrower(only_a, only_b, same, asked):
    once = {(1, 1): only_a, (-1, 1): only_b, (0, 1): same}
    again = {(by * asked, asked): problems for (by, _), problems in once.items()}
    interval = bootstrap_difference(again, seed=1, resamples=100)
    assert interval == bootstrap_difference(once, seed=1, resamples=100)


def test_an_interval_is_the_same_for_the_same_seed_and_hardly_another_for_another():
    kinds = {(1, 1): 15, (-1, 1): 3, (0, 1): 82}
    first = bootstrap_difference(kinds, seed=1)
    assert first == bootstrap_difference(dict(reversed(kinds.items())), seed=1)
    assert bootstrap_difference(kinds, seed=2) == pytest.approx(first, abs=1 / 102 + 1e-9)


def test_two_models_that_never_differed_are_not_certain_to_be_equal():
    low, high = bootstrap_difference({(0, 1): 20}, seed=1)
    assert low == pytest.approx(-high, abs=1 / 22 + 1e-9)
    assert high > 0.05


def test_half_a_million_problems_that_differ_are_drawn_again_too():
    low, high = bootstrap_difference({(1, 1): 251_000, (-1, 1): 249_000, (0, 1): 500_000}, seed=1)
    # The normal interval, which is right here: ±1.96 sqrt(0.5 / 1e6).
    assert (low, high) == (pytest.approx(0.002 - 0.00139, abs=1e-4), pytest.approx(0.002 + 0.00139, abs=1e-4))


@pytest.mark.parametrize("counts", [(5, 5, 7, 7), (0, 5, 0, 7), (0, 0, 3, 4)])
def test_shares_that_cannot_differ_are_not_told_apart(counts):
    assert pooled_z(*counts) == 1.0


def test_connors_number_of_problems_with_the_correction():
    # 0.2 discordant, 0.1 apart: (1.95996 sqrt(0.2) + 0.84162 sqrt(0.19))² / 0.1² = 154.6, and 2 / 0.1 more.
    assert problems_needed(0.1, 0.2) == 175


def test_unequal_repeats_take_more_problems_than_can_differ():
    # (1.95996 sqrt(2) + 0.84162 sqrt(1.99))² / 0.1² = 1567.4, and 2 / 0.1 more.
    assert problems_needed(0.1, 2.0) == 1_588


@given(st.integers(10, 100_000), st.floats(0.001, 1))
def test_the_smallest_difference_is_the_one_that_needs_so_many_problems(problems, discordant_share):
    smallest = smallest_detectable(problems, discordant_share)
    assert smallest is not None
    needed = problems_needed(smallest, discordant_share)
    assert needed is not None
    assert problems - 1 <= needed <= problems + 1


def test_no_number_of_problems_shows_no_difference():
    assert problems_needed(0.0, 0.2) is None


def test_the_direction_of_a_difference_does_not_matter():
    assert problems_needed(-0.1, 0.2) == problems_needed(0.1, 0.2)


def test_too_few_problems_show_no_difference_at_all():
    assert smallest_detectable(4, 0.2) is None
    assert smallest_detectable(0, 0.2) is None


def test_more_power_takes_more_problems():
    eighty, ninety = problems_needed(0.1, 0.2), problems_needed(0.1, 0.2, power=0.9)
    assert eighty is not None
    assert ninety is not None
    assert eighty < ninety


@pytest.mark.parametrize("discordant_share", [0.0, 0.05, 0.1])
def test_a_difference_takes_as_large_a_share_of_problems_at_least(discordant_share):
    assert problems_needed(0.1, discordant_share) == problems_needed(0.1, 0.1)
