"""How an endpoint departs from the wire format that it speaks: choices, held by a row of `endpoints.toml`."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from asyncbench.providers.rate_headers import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """The ways of one endpoint; what is left out is OpenAI's own way.

    A name with points in it is a path: `reasoning.effort` is sent as {"reasoning": {"effort": …}}.
    Anthropic's messages are written in one way alone: of all this only `rejects` and `requests_per` matter
    there.
    """

    max_tokens: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"  # in chat
    seed: str | None = "seed"  # or random_seed; None: refused
    effort: str | None = "reasoning_effort"  # in chat; None: cannot be asked for
    thinking: str | None = None  # in chat: where a budget of thinking tokens is written; None: nowhere
    usage_in_streams: Literal["ask", "unasked"] = "ask"  # by stream_options; or told (or not) without
    max_price: str | None = None  # of a router: where the dearest price is written that may serve a call
    rejects: Collection[str] = frozenset()  # keys of a model entry that it refuses, such as temperature
    requests_per: Span = "minute"  # what its headers tell a limit of requests for, without saying so
