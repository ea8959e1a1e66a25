"""Two models on the same problems: is the difference real, and how large is it?

What counts are the problems that tell the two apart. A difference is the successes of A on a problem minus
those of B; with one repeat it is 1 (only A), -1 (only B) or 0.
"""

from cmath import phase, rect
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from math import ceil, cos, exp, floor, fsum, pi, prod, sin, sqrt
from random import Random

from asyncbench.analysis.stats.quantiles import quantile

SIGMAS = 9.0  # beyond so many standard deviations of a sum lies less than 1e-16 of it
SIGMAS_DRAWN = 7.0  # less than 1e-11: never seen in thousands of draws
NEGLIGIBLE = 1e-9  # a term of a chance that thousands of draws cannot tell from none


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p of the two being equally good (McNemar 1947, as a binomial test).

    `only_a`, `only_b`: the problems that only A, only B solved. Exact but for rounding; time grows with the
    number of such problems, some 20 ms for a million.
    """
    discordant, fewer = only_a + only_b, min(only_a, only_b)
    # Binomial coefficients relative to the central one: no power of two to overflow or to round.
    term = 1.0
    half = tail = 0.0
    for place in range(discordant // 2, -1, -1):
        half += term
        if place <= fewer:
            tail += term
        term *= place / (discordant - place + 1)
        if not term:
            break
    central = 0.0 if discordant % 2 else 1.0  # counted in both halves
    return min(1.0, 2 * tail / (2 * half - central))


def sign_flip(differences: Mapping[int, int]) -> float:
    """Return the exact two-sided p of the two being equally good, for any number of repeats.

    `differences`: difference of successes → problems. Were the two equal, each problem's difference could as
    well have had the other sign (Fisher 1935): p is the share of all signs whose sum is as far from 0.
    With differences of one size this is `mcnemar`. Otherwise true to 1e-10; the bound of Hoeffding (1963),
    which is above it, where that is below 1e-17.
    """
    sizes = Counter[int]()
    for difference, problems in differences.items():
        sizes[abs(difference)] += problems
    sizes = Counter({size: problems for size, problems in sizes.items() if size and problems})
    if len(sizes) <= 1:
        (size,) = sizes or (0,)
        return mcnemar(differences.get(size, 0), differences.get(-size, 0)) if size else 1.0
    seen = abs(sum(difference * problems for difference, problems in differences.items()))
    return _chance_of(sizes, seen) if seen else 1.0


def _chance_of(sizes: Mapping[int, int], seen: int) -> float:
    """Return the chance that a sum of the sizes with random signs is at least `seen` (> 0) from 0.

    By Fourier inversion: the sum's characteristic function is a product of cosines, taken at roots of unity;
    the Dirichlet kernel adds up the chances of all sums nearer to 0.
    """
    variance = sum(size * size * problems for size, problems in sizes.items())
    if (bound := 2 * exp(-seen * seen / (2 * variance))) < 1e-17:
        return bound
    furthest = min(sum(size * problems for size, problems in sizes.items()), ceil(SIGMAS * sqrt(variance)))
    # So many keep what is further out from folding into the middle; odd: each turn has its mirror.
    roots = (seen + furthest) | 1
    nearer = [seen - 0.5]
    for turn in range(1, roots // 2 + 1):
        angle = 2 * pi * turn / roots
        characteristic = prod(cos(size * angle) ** problems for size, problems in sizes.items())
        nearer.append(characteristic * sin((seen - 0.5) * angle) / sin(angle / 2))
    only_these_signs = 2.0 ** (1 - sum(sizes.values()))
    return min(1.0, max(only_these_signs, 1 - 2 * fsum(nearer) / roots))


def bootstrap_difference(
    differences: Mapping[int, int], *, repeats: int, seed: int, resamples: int = 10_000
) -> tuple[float, float]:
    """Return the 95 % interval of A's accuracy minus B's, in [-1, 1]: problems are drawn again, in pairs.

    `differences`: difference of successes → problems, 0 among them; `repeats`: trials of each problem. The
    percentile interval (Efron 1979) over the problems asked and two more, one that only A and one that only B
    always solves: the addition of Bonett & Price (2012) for paired proportions. Without it the interval is
    too short where few problems differ, and a point where none does.
    """
    asked = {repeats: 0, -repeats: 0, **differences}
    asked[repeats] += 1
    asked[-repeats] += 1
    sums, chances = _resampled_sum(asked)
    drawn = Random(seed).choices(  # noqa: S311  to be repeatable, not to be secret
        sums, cum_weights=list(accumulate(chances)), k=resamples
    )
    drawn.sort()
    trials = repeats * sum(asked.values())
    low, high = (quantile(drawn, q) or 0.0 for q in (0.025, 0.975))
    return low / trials, high / trials


def _resampled_sum(asked: Mapping[int, int]) -> tuple[range, list[float]]:
    """Return what the differences of as many problems, drawn again, can add up to, and the chances of each.

    By Fourier inversion of the exact distribution, so that time grows with its width and hardly with the
    number of problems; sums that are as good as impossible are left out.
    """
    problems = sum(asked.values())
    mean = sum(difference * count for difference, count in asked.items()) / problems
    variance = sum(count * (difference - mean) ** 2 for difference, count in asked.items())
    reach = SIGMAS_DRAWN * sqrt(variance) + 12 * max(asked)  # skewed where few problems differ
    lowest = max(problems * min(asked), floor(problems * mean - reach))
    highest = min(problems * max(asked), ceil(problems * mean + reach))
    sums = range(lowest, lowest + ((highest - lowest + 1) | 1))  # an odd number: each turn has its mirror
    chances = [1 / len(sums)] * len(sums)
    for turn in range(1, len(sums) // 2 + 1):
        angle = 2 * pi * turn / len(sums)
        characteristic = sum(rect(count, difference * angle) for difference, count in asked.items())
        height = abs(characteristic / problems) ** problems
        if height < NEGLIGIBLE:
            continue
        shift = problems * phase(characteristic)
        weight = 2 * height / len(sums)
        chances = [
            chance + weight * cos(shift - angle * one) for chance, one in zip(chances, sums, strict=True)
        ]
    return sums, [max(0.0, chance) for chance in chances]
