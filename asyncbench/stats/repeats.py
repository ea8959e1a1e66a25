"""A problem asked several times: would one of k answers be right, would all k be?"""

from math import comb

from asyncbench.errors import ConfigError


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that at least one of `k` answers is right, given `c` right of `n` (k ≤ n).

    The unbiased estimator of Chen et al. (2021, arXiv 2107.03374): 1 - C(n - c, k) / C(n, k).

    Raises:
        ConfigError: k is below 1 or above n.
    """
    return 1 - pass_hat_k(n, n - c, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Return the chance that all of `k` answers are right, given `c` right of `n` (k ≤ n).

    The unbiased estimator of Yao et al. (2024, arXiv 2406.12045): C(c, k) / C(n, k).

    Raises:
        ConfigError: k is below 1 or above n.
    """
    if not 1 <= k <= n:
        raise ConfigError(f"k = {k}: a problem with {n} answers tells of k from 1 to {n}; ask more repeats.")
    return comb(c, k) / comb(n, k)
