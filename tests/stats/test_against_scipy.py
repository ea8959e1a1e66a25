"""Ours against scipy's and statsmodels', on random tables. They load slowly: only where they are used."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from asyncbench.stats.paired import bootstrap_difference, holm, mcnemar, pooled_z, sign_flip, stratified
from asyncbench.stats.proportions import Proportion
from asyncbench.stats.repeats import clustered

pytestmark = pytest.mark.long

on_random_tables = settings(max_examples=60, deadline=None)  # the first example loads the library
COUNTS = st.integers(0, 200)


def in_n(most=500):
    """Successes and trials."""
    return st.integers(1, most).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@on_random_tables
@given(in_n(100_000))
def test_wilson_intervals_are_those_of_statsmodels(table):
    from statsmodels.stats.proportion import proportion_confint

    ours = Proportion(successes=table[0], trials=table[1]).interval
    assert ours == pytest.approx(proportion_confint(*table, method="wilson"), abs=1e-12)


@on_random_tables
@given(st.lists(st.tuples(in_n(40), in_n(40)), min_size=1, max_size=20))
def test_the_stratified_test_is_that_of_statsmodels(strata):
    from statsmodels.stats.contingency_tables import StratifiedTable

    tables = [[[a, n - a], [b, m - b]] for (a, n), (b, m) in strata]
    mixed = [table for table in tables if sum(row[0] for row in table) and sum(row[1] for row in table)]
    ours = stratified(({(1, 1): a, (0, 1): n - a}, {(1, 1): b, (0, 1): m - b}) for (a, n), (b, m) in strata)
    if mixed:
        excess = sum(a - n * (a + b) / (n + m) for (a, n), (b, m) in strata)
        theirs = StratifiedTable(mixed).test_null_odds(correction=True).pvalue
        assert abs(excess) < 0.5 or ours == pytest.approx(theirs, abs=1e-9)
    else:
        assert ours == 1


@on_random_tables
@given(COUNTS, COUNTS)
def test_exact_mcnemar_is_that_of_statsmodels_and_a_binomial_test(only_a, only_b):
    from scipy.stats import binomtest
    from statsmodels.stats.contingency_tables import mcnemar as theirs

    ours = mcnemar(only_a, only_b)
    assert ours == pytest.approx(theirs([[29, only_a], [only_b, 53]], exact=True).pvalue, rel=1e-9)
    if only_a + only_b:
        assert ours == pytest.approx(binomtest(only_a, only_a + only_b).pvalue, rel=1e-9)


@pytest.mark.parametrize(("only_a", "only_b"), [(1_030, 970), (50_500, 49_500), (300, 100)])
def test_exact_mcnemar_holds_for_large_tables(only_a, only_b):
    from scipy.stats import binomtest

    assert mcnemar(only_a, only_b) == pytest.approx(binomtest(only_a, only_a + only_b).pvalue, rel=1e-9)


@on_random_tables
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=9))
def test_flipping_signs_is_scipys_exact_permutation_test(differences):
    import numpy
    from scipy.stats import permutation_test

    theirs = permutation_test(
        (differences,), numpy.sum, permutation_type="samples", n_resamples=numpy.inf, vectorized=True
    )
    ours = sign_flip({one: differences.count(one) for one in differences})
    assert ours == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("pairs", [1, 2, 10, 45])
def test_holm_is_that_of_statsmodels(pairs):
    from statsmodels.stats.multitest import multipletests  # collects garbage at each call: few are enough

    rng = random.Random(pairs)
    p_values = [rng.choice([0.01, rng.random(), rng.random() ** 8]) for _ in range(pairs)]
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1], abs=1e-12)


@on_random_tables
@given(in_n(), in_n())
def test_the_pooled_z_test_is_that_of_statsmodels(a, b):
    from statsmodels.stats.proportion import proportions_ztest

    right, asked = a[0] + b[0], a[1] + b[1]
    theirs = proportions_ztest([a[0], b[0]], [a[1], b[1]])[1] if 0 < right < asked else 1.0
    assert pooled_z(*a, *b) == pytest.approx(theirs, abs=1e-12)


@on_random_tables
@given(st.lists(in_n(10), min_size=2, max_size=40))
def test_clustered_standard_errors_are_those_of_a_regression_on_one_by_problem(counts):
    import numpy
    from statsmodels.regression.linear_model import OLS

    scores = [float(n < right) for right, asked in counts for n in range(asked)]
    problem = [place for place, (_, asked) in enumerate(counts) for _ in range(asked)]
    # Its small-sample factor is g / (g - 1) times (n - 1) / (n - 1): one coefficient.
    fitted = OLS(scores, numpy.ones(len(scores))).fit(cov_type="cluster", cov_kwds={"groups": problem})
    assert clustered(counts).standard_error == pytest.approx(fitted.bse[0], abs=1e-9)


def with_one_more_each_way(kinds):
    """The problems that are drawn again, one by one: differences, trials."""
    import numpy

    differences, trials = numpy.array([one for one, count in kinds.items() for _ in range(count)]).T
    usual = (trials**2).sum() / trials.sum()
    return numpy.append(differences, [usual, -usual]), numpy.append(trials, [usual, usual])


def cut_off_by_chance(interval, drawn, resamples):
    """Whether as many of the resamples lie outside as 2.5 % in each of two samples may differ by."""
    import numpy
    from scipy.stats import binom

    low, high = interval
    apart = sum(0.025 - binom.ppf(1e-6, times, 0.025) / times for times in (drawn.size, resamples))
    return (
        numpy.mean(drawn < low - 1e-9) - apart <= 0.025 <= numpy.mean(drawn <= low + 1e-9) + apart
        and numpy.mean(drawn > high + 1e-9) - apart <= 0.025 <= numpy.mean(drawn >= high - 1e-9) + apart
    )


@pytest.mark.parametrize("most", [1, 2, 3, 10])
@pytest.mark.parametrize("equally", [True, False], ids=["equally often", "unequally often"])
def test_the_bootstrap_is_scipys_over_the_problems_and_one_more_each_way(most, equally):
    from scipy.stats import bootstrap

    rng = random.Random(most)
    asked = [most if equally else rng.choice([1, 1, 1, most]) for _ in range(rng.randint(10, 80))]
    kinds = Counter((rng.randint(-n, n), n) for n in asked)
    drawn = bootstrap(
        with_one_more_each_way(kinds),
        lambda differences, trials, axis: differences.sum(axis) / trials.sum(axis),
        paired=True,
        method="percentile",
        rng=most,
    ).bootstrap_distribution
    assert cut_off_by_chance(bootstrap_difference(kinds, seed=1, resamples=10_000), drawn, 10_000)


def test_many_kinds_of_problems_are_drawn_again_as_each_by_itself():
    import numpy

    rng = numpy.random.default_rng(1)
    asked = rng.integers(1, 40, 3_000)
    both = [rng.binomial(asked, share).tolist() for share in (0.5, 0.4)]
    kinds = Counter(zip((a - b for a, b in zip(*both, strict=True)), asked.tolist(), strict=True))
    assert len(kinds) > 400
    differences, trials = with_one_more_each_way(kinds)
    again = rng.multinomial(differences.size, numpy.full(differences.size, 1 / differences.size), 1_000)
    drawn = (again @ differences) / (again @ trials)
    assert cut_off_by_chance(bootstrap_difference(kinds, seed=1), drawn, 2_000)


@pytest.mark.parametrize(
    ("ahead", "behind", "asked"), [(30, 20, 300), (5_000, 4_000, 100), (60_000, 40_000, 1_000)]
)
def test_the_bootstrap_of_two_kinds_is_a_binomial_however_often_they_were_asked(ahead, behind, asked):
    from scipy.stats import binom

    problems = ahead + behind + 2
    right = binom(problems, (ahead + 1) / problems)
    apart = 0.025 - binom.ppf(1e-6, 10_000, 0.025) / 10_000
    low, high = bootstrap_difference({(asked, asked): ahead, (-asked, asked): behind}, seed=1)
    for end, q in ((low, 0.025), (high, 0.975)):
        # The ends are shares of A alone less B alone.
        assert right.ppf(q - apart) - 0.5 <= (end + 1) / 2 * problems <= right.ppf(q + apart) + 0.5
