"""Percentiles that were observed: their intervals against the binomial distribution, summed up by hand."""

from math import comb, inf

import pytest

from asyncbench.stats.percentiles import fewest_for, percentile


def test_it_takes_so_many_values():
    assert [fewest_for(share) for share in (0.5, 0.9, 0.95, 0.99, 0.999)] == [6, 36, 72, 368, 3688]


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99])
def test_one_value_fewer_is_none_and_one_more_has_an_interval(share):
    fewest = fewest_for(share)
    assert percentile(range(fewest - 1), share) is None
    found = percentile(range(fewest), share)
    assert found is not None
    assert found.low <= found.value <= found.high <= fewest - 1


@pytest.mark.parametrize(
    ("share", "n"), [(0.5, 6), (0.5, 99), (0.9, 36), (0.95, 500), (0.99, 368), (0.99, 999)]
)
def test_the_interval_is_the_shortest_whose_sides_have_two_and_a_half_percent_each(share, n):
    chances = [comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    low = max(rank for rank in range(1, n + 1) if sum(chances[:rank]) <= 0.025)
    high = min(rank for rank in range(1, n + 1) if sum(chances[rank:]) <= 0.025)
    found = percentile(range(1, n + 1), share)
    assert found is not None
    assert (found.low, found.high) == (low, high)


def test_a_percentile_is_a_value_that_was_seen():
    found = percentile([1.0] * 55 + [3.0] * 45, 0.55)
    assert found is not None
    assert found.value == 1.0


def test_values_without_an_end_are_above_all_others():
    known = [float(n) for n in range(1, 91)]
    at_90, at_91 = percentile(known, 0.9, endless=10), percentile(known, 0.91, endless=10)
    assert at_90 is not None
    assert at_91 is not None
    assert (at_90.value, at_90.high, at_91.value) == (90.0, inf, inf)
    assert percentile([], 0.5, endless=6) == (inf, inf, inf)
