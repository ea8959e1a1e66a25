"""How long a lane takes, and which of its limits it waits for."""

from typing import Final, NamedTuple

from asyncbench.records import Limits

UNSEEN_LATENCY_S: Final = 1.0  # to the first token of a reply, where no finished trial tells
UNKNOWN_IN_FLIGHT: Final = 32  # where the lane has to find out how many calls pay off
UNSEEN_TOKENS_PER_S: Final = 60  # of one reply, where no finished trial tells


class LanePace(NamedTuple):
    """The seconds that a lane takes, and what holds it back."""

    seconds: float
    bound_by: str | None  # rpm, tpm, input_tpm, output_tpm or concurrency; None: there is nothing to do


def latency_of(output_tokens: float) -> float:
    """Return the seconds that a call will probably take where no finished trial tells."""
    return UNSEEN_LATENCY_S + output_tokens / UNSEEN_TOKENS_PER_S


def _in_flight(limits: Limits) -> int:
    """Return the calls in flight to reckon with: of a server whose limits nobody knows, not many."""
    known = any(limits.per_minute.values())
    return limits.concurrency or (limits.most_in_flight if known else UNKNOWN_IN_FLIGHT)


def pace(
    limits: Limits,
    *,
    trials: int,
    input_tokens: int,
    output_tokens: int,
    latency_s: float,
    longest_s: float,
) -> LanePace:
    """Return how long a lane takes when each of its trials is answered at once.

    Args:
        limits: the lane's.
        trials: calls to make.
        input_tokens, output_tokens: of all of them.
        latency_s: of all calls together, one after the other.
        longest_s: of one call; no lane is faster.
    """
    if not trials:
        return LanePace(0.0, None)
    bounds = [LanePace(max(latency_s / _in_flight(limits), longest_s), "concurrency")]
    bounds += [
        LanePace(amount / (per_minute * limits.fraction) * 60, name)
        for name, per_minute, amount in (
            ("rpm", limits.rpm, trials),
            ("tpm", limits.tpm, input_tokens + output_tokens),
            ("input_tpm", limits.input_tpm, input_tokens),
            ("output_tpm", limits.output_tpm, output_tokens),
        )
        if per_minute is not None
    ]
    return max(bounds)
