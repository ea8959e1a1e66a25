"""Percentiles that were observed, with intervals: the only ones that stand where some values are infinite.

The p-th percentile of n values is the least of them that p % do not exceed (inverse CDF). The ends of its
interval are values, too: which ones, the binomial distribution says, whatever that of the values is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from math import ceil, exp, floor, inf, lgamma, log, log1p, log2, sqrt
from typing import Final, NamedTuple

import orjson

OUTSIDE: Final = 0.025  # the chance of either side of a 95 % interval
SIGMAS: Final = 10.0  # beyond so many standard deviations lies nothing that counts
ROUNDING: Final = 1e-9  # 0.55 of 100 is the 55th value


class Percentile(NamedTuple):
    """A percentile, and the ends of its 95 % interval; inf: it falls on a value without an end."""

    value: float
    low: float
    high: float


def percentile(ordered: Sequence[float], share: float, *, endless: int = 0) -> Percentile | None:
    """Return a percentile of ascending values, and of so many more that are infinite.

    None: so few values do not bound it. An interval takes `fewest_for` of them.

    >>> percentile(range(1, 101), 0.5)
    Percentile(value=50, low=40, high=61)
    """
    n = len(ordered) + endless
    if n < fewest_for(share):
        return None
    low, high = _ranks(n, share)

    def value_at(rank: int) -> float:
        return ordered[rank - 1] if rank <= len(ordered) else inf

    return Percentile(value=value_at(rank_of(n, share)), low=value_at(low), high=value_at(high))


def rank_of(n: int, share: float) -> int:
    """Return the rank of a percentile among n ascending values, from 1."""
    return max(1, ceil(share * n - ROUNDING))


def fewest_for(share: float) -> int:
    """Return how many values it takes until a percentile has an interval: p90 36, p95 72, p99 368."""
    return ceil(log(OUTSIDE) / log(max(share, 1 - share)))


@lru_cache(maxsize=1024)
def _ranks(n: int, share: float) -> tuple[int, int]:
    """Return the two ranks, from 1, that hold a percentile with 95 %; n is at least `fewest_for`.

    How many values lie below it is binomial: the lower end has few enough below, the upper end enough.
    """
    spread = SIGMAS * sqrt(n * share * (1 - share)) + SIGMAS
    first, last = max(0, int(n * share - spread)), min(n, int(n * share + spread) + 1)
    chance = exp(
        lgamma(n + 1)
        - lgamma(first + 1)
        - lgamma(n - first + 1)
        + first * log(share)
        + (n - first) * log1p(-share)
    )
    low, high, below = 0, 0, 0.0  # below: the chance of fewer than k
    for k in range(first, last + 1):
        if below <= OUTSIDE:
            low = k
        if 1 - below <= OUTSIDE + ROUNDING * OUTSIDE:
            high = k
            break
        below += chance
        chance *= (n - k) / (k + 1) * share / (1 - share)
    return max(1, low), high or n


# ── Histograms with bins of equal ratio: small, exact to about one percent, and added without loss


BINS: Final = 32  # for each doubling: a bin is 2.2 % wide, so its middle is wrong by 1.1 % at most
LEAST: Final = 1e-6  # what is smaller counts as this


def histogram_text(values: Iterable[float]) -> str:
    """Return how many values lie in each bin, as JSON: bin `n` goes from 2^(n/32) to 2^((n+1)/32).

    >>> histogram_text([1.0, 1.0, 2.0])
    '{"0":2,"32":1}'
    """
    counts = Counter(floor(BINS * log2(max(value, LEAST))) for value in values)
    return orjson.dumps(counts, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS).decode()


def added_histograms(texts: Iterable[str]) -> Counter[int]:
    """Return how many values lie in each bin of several such texts together.

    >>> added_histograms(['{"0":2}', '{"0":1,"32":1}'])
    Counter({0: 3, 32: 1})
    """
    counts = Counter[int]()
    for text in texts:
        counts.update({int(bin_number): count for bin_number, count in orjson.loads(text).items()})
    return counts


def histogram_percentile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the middle of the bin in which a percentile lies, or None if too few values bound it."""
    if (total := sum(counts.values())) < fewest_for(share):
        return None
    bins, rank = sorted(counts), rank_of(total, share)
    index = next(
        n for n, upto in enumerate(accumulate(counts[bin_number] for bin_number in bins)) if upto >= rank
    )
    return float(2 ** ((bins[index] + 0.5) / BINS))
