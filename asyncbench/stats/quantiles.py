"""Quantiles of a sample."""

from collections.abc import Sequence


def quantile(sorted_values: Sequence[float], q: float) -> float | None:
    """Return the q-quantile (0 ≤ q ≤ 1) of ascending values, linear between neighbours; None of none."""
    if not sorted_values:
        return None
    place = q * (len(sorted_values) - 1)
    below = int(place)
    above = min(below + 1, len(sorted_values) - 1)
    return sorted_values[below] + (sorted_values[above] - sorted_values[below]) * (place - below)
