"""Points and names in order: quantiles, groups of equals, p values of many comparisons, Pareto's front."""

from collections.abc import Callable, Sequence
from math import inf


def quantile(sorted_values: Sequence[float], q: float) -> float | None:
    """Return the q-quantile (0 ≤ q ≤ 1) of ascending values, linear between neighbours; None of none."""
    if not sorted_values:
        return None
    place = q * (len(sorted_values) - 1)
    below = int(place)
    above = min(below + 1, len(sorted_values) - 1)
    return sorted_values[below] + (sorted_values[above] - sorted_values[below]) * (place - below)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p values adjusted for all being looked at (Holm 1979), in the same order, at most 1."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return tuple(adjusted)


def tied(
    names_best_first: Sequence[str], p_of: Callable[[str, str], float], alpha: float = 0.05
) -> tuple[tuple[str, ...], ...]:
    """Return groups of names that are statistically tied: a leader and all below not different from it.

    `p_of(leader, other)`: the adjusted p of the two being equal; different is p ≤ alpha. Each name is in one
    group, the best leader's that it is not different from; so two of a group may well differ.
    """
    groups = []
    left = list(names_best_first)
    while left:
        leader, *below = left
        level = [name for name in below if p_of(leader, name) > alpha]
        groups.append((leader, *level))
        left = [name for name in below if name not in level]
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
