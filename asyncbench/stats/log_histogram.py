"""A histogram with bins of equal ratio: small, exact to about one percent, and added up without loss."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from math import floor, log2
from typing import Final

import orjson

from asyncbench.stats.order_statistics import fewest_for, rank_of

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
        counts.update({int(place): count for place, count in orjson.loads(text).items()})
    return counts


def histogram_percentile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the middle of the bin in which a percentile lies; None: too few values bound it."""
    if (total := sum(counts.values())) < fewest_for(share):
        return None
    bins, rank = sorted(counts), rank_of(total, share)
    place = next(n for n, upto in enumerate(accumulate(counts[one] for one in bins)) if upto >= rank)
    return float(2 ** ((bins[place] + 0.5) / BINS))
