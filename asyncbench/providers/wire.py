"""Wire formats: a request as a body, a body or a stream of events as a reply.

Pure: knows neither SDK nor connection. `chat`, `completions`, `responses` and `messages` are the four.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from asyncbench.providers.loose_json import items, mapping_in, text
from asyncbench.providers.rate_headers import Span, allowances
from asyncbench.records import REFUSALS, Allowance, Condition, Model, Reply, Request
from asyncbench.suites.requests import merged_params

# Headers with the id of a request, the first that is there counts: the provider's own, then that of a gateway
# (litellm, AWS, Azure), then that of the network (Cloudflare).
REQUEST_IDS: Final = (
    *("x-request-id", "request-id"),
    *("x-litellm-call-id", "x-amzn-requestid", "apim-request-id"),
    "cf-ray",
)


def header_id(headers: Mapping[str, str]) -> str | None:
    """Return the provider's id of a request, for its support; None where no header tells it."""
    return next(filter(None, map(headers.get, REQUEST_IDS)), None)


def body_id(body: Mapping[str, object]) -> str | None:
    """Return the id of what was answered, by a body or by an event of a stream."""
    places = (body, mapping_in(body.get("message")), mapping_in(body.get("response")))
    return next(filter(None, (text(place.get("id")) for place in places)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Status, headers and the whole body."""

    status: int
    headers: Mapping[str, str]  # looked up in lower case
    body: bytes
    requests_per: Span = "minute"  # what a limit of requests is for, where its header does not say it
    notes: list[str] = field(default_factory=list)  # what of it was mended or is not believed

    @property
    def request_id(self) -> str | None:
        """The provider's id of the request, for its support."""
        return header_id(self.headers)

    @property
    def simulator(self) -> str | None:
        """`SIMULATOR` where asyncbench's simulator answered, whatever name it was asked by; else None."""
        return SIMULATOR if "x-simulated" in self.headers else None

    @property
    def allowances(self) -> tuple[Allowance, ...]:
        """The limits that the headers tell; read anew each time."""
        return allowances(self.headers, requests_per=self.requests_per)


SIMULATOR: Final = "asyncbench simulator"  # as `upstream` of a reply
Json = Mapping[str, object]


class Assembly(Protocol):
    """A streamed reply on its way: events in, one reply out."""

    @property
    def ended(self) -> bool:
        """Return whether an event ended the stream: then nobody waits for the end of the body."""
        ...

    @property
    def answers(self) -> bool:
        """Return whether some of the answer has come: text beside any thinking."""
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


def finished(body: Mapping[str, object], model: Model, condition: Condition) -> dict[str, object]:
    """Return a body without what is not set, what a budget adds and then `params` merged into it last.

    A simulator is told the form of digits, by which alone it knows the question of `22 + 33`.

    Where we write an object ourselves, `params` add to it: `reasoning: {summary: auto}` leaves the effort
    of the sweep in its place.
    """
    fields = {name: value for name, value in body.items() if value is not None}
    if model.simulated and condition.digits:
        fields["simulate"] = {"digits": list(condition.digits)}
    return merged_params(merged_params(fields, model.budget_params), {**model.params, **condition.params})


def at(path: str | None, value: object) -> dict[str, object]:
    """Return an object with a value at a path such as `reasoning.effort`; an empty one without either."""
    if path is None or value is None:
        return {}
    first, point, rest = path.partition(".")
    return {first: at(rest, value) if point else value}


def text_and_thinking(content: object) -> tuple[str, str | None]:
    """Return what the model said, and what it thought before; parts of one kind are joined as they are."""
    if isinstance(content, str):
        return content, None
    parts = [mapping_in(part) for part in items(content)]
    thinking = ""
    for thought in (part.get("thinking") for part in parts):
        # Text from Anthropic, again a list of parts from Mistral.
        thinking += thought if isinstance(thought, str) else _joined(map(mapping_in, items(thought)))
    return _joined(parts), thinking or None


def finish_of(reason: str | None, *, answer: str, refusal: str) -> str | None:
    """Return the provider's own word, or `refusal` where only a refusal in place of a text tells of it."""
    return "refusal" if refusal and not answer and reason not in REFUSALS else reason


def _joined(parts: Iterable[dict[str, object]]) -> str:
    return "".join(text(part.get("text")) or "" for part in parts)
