"""Error → try again when, or give up. Pure: the caller draws the jitter and reads the clock."""

from asyncbench.errors import WORTH_ANOTHER_TRY, ProviderError
from asyncbench.records import RetryPolicy

BELIEVED = 3  # times in a row that a Retry-After alone says how long to wait


def wait_before_retry(
    error: ProviderError, *, attempt: int, elapsed_s: float, policy: RetryPolicy, jitter: float
) -> float | None:
    """Return the seconds until the next attempt, or None to give up.

    A provider's own Retry-After is never undercut; without one, or where it was too short again and again,
    the wait doubles from `first_s` to `longest_s`, half of it fixed and half of it jitter.

    Args:
        error: how the attempt ended.
        attempt: which attempt of this run it was, from 1.
        elapsed_s: since the first attempt of this run was sent.
        policy: the caps.
        jitter: in [0, 1), drawn by the caller.
    """
    if error.kind not in WORTH_ANOTHER_TRY or attempt >= policy.attempts:
        return None
    wait_s = _back_off(attempt, policy, jitter)
    if error.retry_after_s is not None:
        # Spread over a little more than was asked for, or all who were sent away return at once.
        wait_s = error.retry_after_s * (1 + jitter / 10)
        if attempt > BELIEVED:
            wait_s = max(wait_s, _back_off(attempt - BELIEVED, policy, jitter))
    return wait_s if elapsed_s + wait_s <= policy.total_s else None


def _back_off(attempt: int, policy: RetryPolicy, jitter: float) -> float:
    doubled_s = policy.first_s * 2.0 ** min(attempt - 1, 30)  # bounded: attempt may be any number
    return min(policy.longest_s, doubled_s) * (0.5 + jitter / 2)
