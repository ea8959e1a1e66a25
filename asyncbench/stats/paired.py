"""Two models on the same problems: p values and intervals of the difference, and the problems it needs.

What counts are the problems that tell the two apart. A difference is the successes of A on a problem minus
those of B; with one repeat it is 1 (only A), -1 (only B) or 0.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from math import ceil, cos, erfc, exp, fsum, inf, pi, prod, sin, sqrt
from random import Random
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]  # Any: of whole or of real numbers

# ── Quantiles, many p values, groups of equals, Pareto's front


def quantile(sorted_values: Sequence[float], q: float) -> float | None:
    """Return the q-quantile (0 ≤ q ≤ 1) of ascending values, linear between neighbours; None of none."""
    if not sorted_values:
        return None
    position = q * (len(sorted_values) - 1)
    below = int(position)
    above = min(below + 1, len(sorted_values) - 1)
    return sorted_values[below] + (sorted_values[above] - sorted_values[below]) * (position - below)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p values adjusted for all being looked at (Holm 1979), in the same order, at most 1."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return tuple(adjusted)


def tied(
    names_best_first: Sequence[str], p_of: Callable[[str, str], float], alpha: float = 0.05
) -> tuple[tuple[str, ...], ...]:
    """Return groups of names that are statistically tied: a leader and all below not different from it.

    `p_of(leader, other)`: the adjusted p of the two being equal; different is p ≤ alpha. Each name is in one
    group, the best leader's that it is not different from; so two of a group may well differ.
    """
    groups = []
    remaining = list(names_best_first)
    while remaining:
        leader, *below = remaining
        level = [name for name in below if p_of(leader, name) > alpha]
        groups.append((leader, *level))
        remaining = [name for name in below if name not in level]
    return tuple(groups)


def undominated(points: Sequence[tuple[float, float]]) -> tuple[bool, ...]:
    """Return of each (spent, gained) whether none gains as much for as little, and more or for less.

    Equals stand together. In time n log n.
    """
    front, best = set[tuple[float, float]](), -inf
    for spent, gained in sorted(points, key=lambda point: (point[0], -point[1])):
        if gained > best:
            front.add((spent, gained))
            best = gained
    return tuple(point in front for point in points)


# ── Tests on pairs


SIGMAS = 9.0  # beyond so many standard deviations of a sum lies less than 1e-16 of it
NEARLY_NORMAL = 100.0  # the variance from which a binomial is drawn as a normal with its skewness
NEGLIGIBLE = 1e-9  # a chance, beside the likeliest, that thousands of draws cannot tell from none
FEWEST, MOST = 2_000, 10_000  # resamples: their noise moves an end by 6 %, 3 % of a standard error
MOST_KINDS = 100  # of problems that are drawn apart
DRAWS = FEWEST * MOST_KINDS  # of binomials: two tenths of a second
STEPS = 60  # of halving: beyond the precision of a float

Kind = tuple[float, float]  # of problems: the difference of successes, the trials
Kinds = Mapping[Kind, int]  # → problems
Repeated = Mapping[tuple[int, int], int]  # (times right, times asked) → problems


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p of the two being equally good (McNemar 1947, as a binomial test).

    `only_a`, `only_b`: the problems that only A, only B solved. Exact but for rounding; time grows with the
    number of such problems, some 5 ms for a million.
    """
    discordant, fewer = only_a + only_b, min(only_a, only_b)
    # Binomial coefficients relative to the central one: no power of two to overflow or to round.
    places = np.arange(discordant // 2 + 1, 0, -1.0)
    places[0] = (discordant + 1) / 2  # the central one is 1
    coefficients = np.cumprod(places / (discordant - places + 1))
    half = np.cumsum(coefficients)[-1]
    tail = np.cumsum(coefficients[discordant // 2 - fewer :])[-1]
    central = 0.0 if discordant % 2 else 1.0  # counted in both halves
    return min(1.0, float(2 * tail / (2 * half - central)))


def sign_flip(differences: Mapping[int, int], *, seen: int | None = None) -> float:
    """Return the exact two-sided p of the two being equally good, for any number of repeats.

    `differences`: difference of successes → problems. Were the two equal, each problem's difference could as
    well have had the other sign (Fisher 1935): p is the share of all signs whose sum is as far from 0.
    With differences of one size this is `mcnemar`. Otherwise true to 1e-10; the bound of Hoeffding (1963),
    which is above it, where that is below 1e-17. `seen`: a sum to look at instead of theirs.
    """
    sizes = Counter[int]()
    for difference, problems in differences.items():
        sizes[abs(difference)] += problems
    sizes = Counter({size: problems for size, problems in sizes.items() if size and problems})
    if seen is not None:
        return _chance_of(sizes, abs(seen)) if seen and sizes else 1.0
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
    for root in range(1, roots // 2 + 1):
        angle = 2 * pi * root / roots
        characteristic = prod(cos(size * angle) ** problems for size, problems in sizes.items())
        nearer.append(characteristic * sin((seen - 0.5) * angle) / sin(angle / 2))
    only_these_signs = 2.0 ** (1 - sum(sizes.values()))
    return min(1.0, max(only_these_signs, 1 - 2 * fsum(nearer) / roots))


def bootstrap_difference(
    differences: Mapping[tuple[int, int], int], *, seed: int, resamples: int | None = None
) -> tuple[float, float]:
    """Return the 95 % interval of A's accuracy minus B's, in [-1, 1]: problems are drawn again, in pairs.

    `differences`: (difference of successes, trials) of a problem → problems; the accuracies are over trials.
    `resamples`: 10,000, or fewer (2,000 at least) with more than twenty such kinds of problems.

    The percentile interval (Efron 1979) over the problems asked and two more, one that only A and one that
    only B always solves: the addition of Bonett & Price (2012) for paired proportions. Without it the
    interval is too short where few problems differ, and a point where none does. Both are asked as often as
    the problem of a trial picked at random: it is the often asked ones that decide.
    """
    trials = sum(of_problem * problems for (_, of_problem), problems in differences.items())
    squares = sum(of_problem * of_problem * problems for (_, of_problem), problems in differences.items())
    usual = squares / trials if trials else 1.0
    with_two_more = Counter[Kind](differences) + Counter([(usual, usual), (-usual, usual)])
    kinds = _few(with_two_more)
    times = resamples or max(FEWEST, min(MOST, DRAWS // len(kinds)))
    drawn = np.sort(_resampled(kinds, times, _Draws(seed))).tolist()
    low, high = (quantile(drawn, q) or 0.0 for q in (0.025, 0.975))
    return low, high


def _few(kinds: Kinds) -> Kinds:
    """Return at most `MOST_KINDS`: those that move the difference about as much go together, at their mean.

    Where the furthest lie ten standard deviations out, a third of a percent of the variance is lost.
    """
    if len(kinds) <= MOST_KINDS:
        return kinds
    difference, trials = _mean(kinds)
    moves = {kind: kind[0] - kind[1] * difference / trials for kind in kinds}
    lowest, furthest = min(moves.values()), max(moves.values())
    together: dict[int, Counter[Kind]] = {}
    for kind in sorted(kinds, key=moves.__getitem__):
        step = round((MOST_KINDS - 1) * (moves[kind] - lowest) / (furthest - lowest))
        together.setdefault(step, Counter())[kind] = kinds[kind]
    return {_mean(alike): alike.total() for alike in together.values()}


def _mean(kinds: Kinds) -> Kind:
    problems = sum(kinds.values())
    return (
        sum(difference * count for (difference, _), count in kinds.items()) / problems,
        sum(trials * count for (_, trials), count in kinds.items()) / problems,
    )


def _resampled(kinds: Kinds, times: int, draws: "_Draws") -> Numbers:
    """Return the difference in accuracy over as many problems, drawn again with replacement, so many times.

    Of each kind of problem a binomial number is drawn, so that time grows with the kinds alone.
    """
    # The rarest first: what they leave over varies little, and equal draws are made together.
    *rarer, ((last_difference, last_asked), _) = sorted(kinds.items(), key=lambda kind: (kind[1], kind[0]))
    problems = sum(kinds.values())
    undrawn = np.full(times, problems, np.int64)
    differences, trials = np.zeros(times), np.zeros(times)
    for (difference, of_problem), count in rarer:
        drawn = draws.binomials(undrawn, count / problems)
        undrawn = undrawn - drawn
        differences += difference * drawn
        trials += of_problem * drawn
        problems -= count
    resampled: Numbers = (differences + last_difference * undrawn) / (trials + last_asked * undrawn)
    return resampled


class _Draws:
    """Random draws over arrays, in the order of `random.Random`: the same seed gives the same."""

    def __init__(self, seed: int) -> None:
        _, (*keys, position), _ = Random(seed).getstate()  # noqa: S311  to be repeatable, not to be secret
        self._uniform = np.random.RandomState()
        self._uniform.set_state(("MT19937", np.array(keys, np.uint32), position, 0, 0.0))
        self._spare: float | None = None  # normal draws come in pairs

    def binomials(self, trials: Numbers, chance: float) -> Numbers:
        """Return a binomial draw (0 < chance < 1) for each number of trials."""
        numbers, first, which, counts = np.unique(
            trials, return_index=True, return_inverse=True, return_counts=True
        )
        alike = np.split(np.argsort(which, kind="stable"), np.cumsum(counts)[:-1])
        drawn = np.zeros(len(trials), np.int64)
        for n in np.argsort(first):  # equal ones together, in the order in which they come
            number, times = int(numbers[n]), len(alike[n])
            mean = number * chance
            variance = mean * (1 - chance)
            if variance < NEARLY_NORMAL:
                successes, chances = _chances(number, chance)
                limits = np.array(list(accumulate(chances)))
                places = np.searchsorted(limits, self._uniform.random_sample(times) * limits[-1], "right")
                drawn[alike[n]] = successes[0] + np.minimum(places, len(limits) - 1)
            else:  # Cornish & Fisher (1938), to the skewness
                spread, skew = sqrt(variance), (1 - 2 * chance) / 6
                z = self._normal(times)
                drawn[alike[n]] = np.clip(np.rint(mean + spread * z + skew * (z * z - 1)), 0, number)
        return drawn

    def _normal(self, times: int) -> Numbers:
        """Return standard normal draws, by Box & Muller (1958)."""
        spare = [] if self._spare is None else [self._spare]
        pairs = (times - len(spare) + 1) // 2
        angles, distances = self._uniform.random_sample(2 * pairs).reshape(pairs, 2).T
        angles, distances = angles * 2 * pi, np.sqrt(-2.0 * np.log(1.0 - distances))
        normal = np.concatenate(
            [spare, np.stack([np.cos(angles) * distances, np.sin(angles) * distances]).T.ravel()]
        )
        self._spare = float(normal[times]) if len(normal) > times else None
        return normal[:times]


def _chances(trials: int, chance: float) -> tuple[range, list[float]]:
    """Return the numbers of successes that are drawn at all, and how likely each is beside the likeliest."""
    odds = chance / (1 - chance)
    mode = int((trials + 1) * chance)
    below, above = [1.0], [1.0]
    for n in range(mode, 0, -1):
        if below[-1] < NEGLIGIBLE:
            break
        below.append(below[-1] * n / ((trials - n + 1) * odds))
    for n in range(mode, trials):
        if above[-1] < NEGLIGIBLE:
            break
        above.append(above[-1] * (trials - n) * odds / (n + 1))
    return range(mode - len(below) + 1, mode + len(above)), [*reversed(below), *above[1:]]


def stratified(strata: Iterable[tuple[Repeated, Repeated]]) -> float:
    """Return the two-sided p of two being equally good on problems of the same kinds, but not the same ones.

    `strata`: the problems of A and of B, for each kind. A problem counts once, as its share right: its
    repeats are not independent. A's sum is compared with A's part of both sums in each kind, so easy and
    hard kinds do not mix. The variance is that of dealing the problems of a kind to A and B at random
    (Landis et al. 1978), so it holds in small kinds, too. With one answer each, this is the test of Cochran
    (1954) and Mantel & Haenszel (1959) with its continuity correction. 1 where nothing differs.
    """
    excess, variance = 0.0, 0.0
    for of_a, of_b in strata:
        (n_a, sum_a, squares_a), (n_b, sum_b, squares_b) = map(_moments, (of_a, of_b))
        n, mean = n_a + n_b, (sum_a + sum_b) / max(1, n_a + n_b)
        if n_a and n_b:
            excess += sum_a - n_a * mean
            variance += n_a * n_b / n * max(0.0, squares_a + squares_b - n * mean * mean) / (n - 1)
    if not variance:
        return 1.0
    return erfc(max(0.0, abs(excess) - 0.5) / sqrt(2 * variance))


def _moments(problems: Repeated) -> tuple[int, float, float]:
    """Return how many problems there are, and the sums of their shares right and of the squares."""
    shares = [(right / times, count) for (right, times), count in problems.items()]
    return (
        sum(problems.values()),
        fsum(share * count for share, count in shares),
        fsum(share * share * count for share, count in shares),
    )


def pooled_z(successes_a: int, trials_a: int, successes_b: int, trials_b: int) -> float:
    """Return the two-sided p of two independent shares being equal (z test with the pooled variance).

    For comparison only: where both were asked the same problems `mcnemar` sees what this cannot. 1 where
    nothing differs or nothing was asked.
    """
    if not (trials_a and trials_b):
        return 1.0
    pooled = (successes_a + successes_b) / (trials_a + trials_b)
    variance = pooled * (1 - pooled) * (1 / trials_a + 1 / trials_b)
    if not variance:
        return 1.0
    return erfc(abs(successes_a / trials_a - successes_b / trials_b) / sqrt(2 * variance))


# ── The smallest difference that problems can show ───────────────────────────────────────────────


def smallest_detectable(
    problems: int, discordant_share: float, *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Return the smallest true difference in accuracy that so many problems would show with this power.

    `discordant_share`: the share of problems that one model solves and the other does not, in [0, 1] (with
    repeats `Pair.discordant_share`, which may be above 1); a difference above it takes as large a share. None
    where even a difference of 1 would not show.
    """
    if _needed(1.0, discordant_share, power, alpha) > problems:
        return None
    hidden, shown = 0.0, 1.0
    for _ in range(STEPS):
        middle = (hidden + shown) / 2
        if _needed(middle, discordant_share, power, alpha) > problems:
            hidden = middle
        else:
            shown = middle
    return shown


def problems_needed(
    difference: float, discordant_share: float, *, power: float = 0.8, alpha: float = 0.05
) -> int | None:
    """Return how many problems would show a true difference with this power; None for no difference.

    `difference`: of the accuracies, in [-1, 1]; `discordant_share` as in `smallest_detectable`.
    """
    return ceil(_needed(abs(difference), discordant_share, power, alpha)) if difference else None


def _needed(difference: float, discordant_share: float, power: float, alpha: float) -> float:
    """Return the problems that McNemar's test needs, whole or not (difference > 0).

    The unconditional formula of Miettinen (1968) and Connor (1987): with n problems, a difference d and a
    discordant share s, n d = z(alpha / 2) sqrt(n s) + z(power) sqrt(n (s - d²)). The right side gets the 1 of
    Edwards' (1948) continuity correction besides, since the exact test needs that much more.
    """
    share = max(discordant_share, difference)
    normal = NormalDist()
    spread = normal.inv_cdf(1 - alpha / 2) * sqrt(share)
    spread += normal.inv_cdf(power) * sqrt(share - difference**2)
    root = (spread + sqrt(spread**2 + 4 * difference)) / (2 * difference)
    return root**2
