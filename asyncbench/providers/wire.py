"""What a wire format is: a request as a body, a body or a stream of events as a reply.

Pure: knows neither SDK nor connection. `chat`, `completions`, `responses` and `messages` are the four.
"""

from collections.abc import Mapping
from typing import Protocol

from asyncbench.providers.response import Response
from asyncbench.records import Reply, Request

Json = Mapping[str, object]


class Assembly(Protocol):
    """A streamed reply on its way: events in, one reply out."""

    @property
    def ended(self) -> bool:
        """Whether an event said that nothing follows it: then the end of the body is not waited for."""
        ...

    def feed(self, event: Json) -> int:
        """Take in the next event; return how much text or thinking it brought (the first such is TTFT).

        Raises:
            ProviderError: the event is an error.
        """
        ...

    def complete(self) -> Reply:
        """Return the whole reply, at the end of the stream; changes nothing.

        Raises:
            ProviderError: `bad_reply` when the stream ended before it was complete; what its last word means
                when that says that the work failed.
        """
        ...


class Wire(Protocol):
    """One wire format, with the ways of one endpoint."""

    path: str  # after the base URL

    def body(self, request: Request) -> dict[str, object]:
        """Return what is sent: the sweep's parameters where they are set, `params` last, nothing else."""
        ...

    def reply(self, payload: Json, response: Response) -> Reply:
        """Read a whole body; raises ProviderError."""
        ...

    def stream(self, response: Response) -> Assembly:
        """Begin to read a stream, whose status and headers `response` holds."""
        ...
