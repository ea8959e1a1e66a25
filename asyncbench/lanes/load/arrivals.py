"""Due times of calls: a pure function of the seed, the same list on every machine.

Draws come from `random.Random` seeded with a text, whose `random()` is the same everywhere, and from `log`
and `exp`, whose last bit may differ between libraries of C. So times are rounded to whole microseconds: two
machines could differ by one of these in one time of some ten billion.

A gap is drawn for each call and is not rescaled: how many calls are due within a time is chance, as it is
for users. Whoever shares the work takes a slice of the list, never a generator of its own.
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import count, pairwise, takewhile
from math import erfc, exp, log, sqrt
from random import Random
from statistics import fmean
from typing import Final

CONSTANT, POISSON, GAMMA = "constant", "poisson", "gamma"
MICRO: Final = 1_000_000
FEWEST_GAPS: Final = 20  # of which a test says anything
WINDOW_GAPS: Final = 10  # mean gaps in a window whose calls are counted
FEWEST_WINDOWS: Final = 10


def due_times(
    pattern: str,
    rate: float,
    seconds: float,
    *,
    seed: int,
    model: str,
    round_: int,
    burstiness: float = 1.0,
) -> "array[float]":
    """Return the seconds from the start of a step at which calls are due, rising, all below `seconds`.

    Args:
        pattern: constant, poisson or gamma.
        rate: calls a second, in the mean.
        seconds: the length of the step.
        seed, model, round_: others give another list; of `constant` there is one. Models of one server that
            had the same would load it in pairs.
        burstiness: the shape of gamma's gaps; 1 is an exponential one.
    """
    random = Random(f"{seed} {model} {round_} {pattern} {rate!r} {burstiness!r}")  # noqa: S311  guards nothing
    exact = _arrivals(pattern, rate, burstiness, random)
    return array("d", takewhile(lambda at_s: at_s < seconds, (round(at_s * MICRO) / MICRO for at_s in exact)))


def _arrivals(pattern: str, rate: float, burstiness: float, random: Random) -> Iterator[float]:
    if pattern == CONSTANT:
        yield from (n / rate for n in count())
    at_s = 0.0
    while True:
        if pattern == POISSON:
            at_s -= log(1.0 - random.random()) / rate  # of (0, 1]
        else:
            at_s += random.gammavariate(burstiness, 1.0 / (burstiness * rate))
        yield at_s


# ── Tests of Poisson arrivals ────────────────────────────────────────────────────────────────────


def ks_p(times: Sequence[float], rate: float) -> float | None:
    """Return how probable gaps as unlike an exponential's of this rate would be (Kolmogorov and Smirnov).

    It sees no dependence between gaps: see `dispersion_p`. None: there are too few.
    """
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    if (n := len(gaps)) < FEWEST_GAPS:
        return None
    shares = [1.0 - exp(-rate * gap) for gap in gaps]
    distance = max(max((i + 1) / n - share, share - i / n) for i, share in enumerate(shares))
    scaled = (sqrt(n) + 0.12 + 0.11 / sqrt(n)) * distance
    terms = ((-1) ** (k - 1) * exp(-2.0 * (k * scaled) ** 2) for k in range(1, 101))
    return min(1.0, max(0.0, 2.0 * sum(terms))) if scaled > _SURE else 1.0


_SURE: Final = 0.2  # below it the series converges slowly, and the probability is 1 but for 1e-10


def dispersion_p(times: Sequence[float], rate: float, begin_s: float, end_s: float) -> float | None:
    """Return how probable counts as uneven, or as even, would be: their index of dispersion is χ².

    Args:
        times: when calls came, rising.
        rate: calls a second, by which the windows are cut: of ten mean gaps each.
        begin_s, end_s: the time that is cut.

    Returns:
        The probability on both sides, by Wilson and Hilferty's cube root; None: there are too few windows.
    """
    windows = int((end_s - begin_s) * rate / WINDOW_GAPS)
    if windows < FEWEST_WINDOWS:
        return None
    counts = [0] * windows
    for at_s in times:
        if 0 <= (window := int((at_s - begin_s) * rate / WINDOW_GAPS)) < windows:
            counts[window] += 1
    if not (mean := fmean(counts)):
        return None
    free = windows - 1
    ratio = sum((number - mean) ** 2 for number in counts) / mean / free
    spread = 2.0 / (9.0 * free)
    return erfc(abs(ratio ** (1 / 3) - (1.0 - spread)) / sqrt(2.0 * spread))
