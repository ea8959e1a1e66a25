"""A provider's limit as its responses tell it: what replies and errors have in common."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A limit, what is left of it and when it is back; None: untold."""

    what: str  # requests, tokens (input and output together), input_tokens or output_tokens
    period_s: float  # what `limit` is for: 60 or 86,400
    limit: float | None
    remaining: float | None
    reset_s: float | None  # from now until all of it is back
