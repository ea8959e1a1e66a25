"""What is worth its price: the points that no other beats (Pareto's front)."""

from collections.abc import Sequence
from math import inf


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
