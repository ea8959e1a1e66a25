"""How small a difference a set of problems can show, and how many problems would show one."""

from math import ceil, sqrt
from statistics import NormalDist

STEPS = 60  # of halving: beyond the precision of a float


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
