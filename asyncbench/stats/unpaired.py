"""Two models on different problems."""

from math import erfc, sqrt


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
