"""Wire formats: a request as a body, a body or a stream of events as a reply; and their JSON, leniently read.

Pure: knows neither SDK nor connection. `Api` names them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, Literal, Protocol

import orjson

from asyncbench.providers.rate_headers import Span, allowances
from asyncbench.records import Allowance, Condition, Model, Reply, Request
from asyncbench.suites.requests import merged_params

# ── JSON, of which a value of an unexpected shape counts as absent

MOST_VALUES: Final = 250_000  # of one body or event: in memory each takes a hundred times its bytes
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BEGIN_VALUES: Final = (b"[", b"{", b",")  # one at least stands before each value but the first
EXACT: Final = 2**53  # beyond it a float, as some servers write counts, is no exact number of things


class UnreadableError(ValueError):
    """The text is no JSON, however leniently it is read, or holds more than any reply."""


def read(written: bytes, notes: list[str]) -> object:
    """Return the value in JSON. Forbidden forms are mended, for the reply that holds them was paid for.

    Bytes that are no text, and half a surrogate pair, become U+FFFD; NaN and numbers beyond floats null.

    Args:
        written: a body, or an event.
        notes: is told when it had to be mended.

    Raises:
        UnreadableError: it is no JSON, nests too deep, or holds more than `MOST_VALUES`.
    """
    # How many values it holds at most, and nearly always without a look at its strings.
    if (
        len(written) > MOST_VALUES
        and sum(map(written.count, _BEGIN_VALUES)) > MOST_VALUES
        and sum(map(_STRING.sub(b"", written).count, _BEGIN_VALUES)) > MOST_VALUES
    ):
        raise UnreadableError(f"it holds more than {MOST_VALUES:,} values")
    try:
        return orjson.loads(written)
    except orjson.JSONDecodeError as error:
        fault = str(error)

    # It is mended, and then read once more as the standard has it.
    try:
        value = json.loads(
            written.decode(json.detect_encoding(written), "replace"),
            strict=False,
            parse_int=_number,
            parse_float=_number,
            parse_constant=lambda _: None,
        )
        mended = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
        value = orjson.loads(mended.decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        raise UnreadableError(fault) from None
    notes.append("the reply was not valid JSON and was repaired")
    return value


def _number(written: str) -> float | None:
    if len(written) < 20 and written.lstrip("-").isdigit():
        return int(written)
    number = float(written)
    return number if isfinite(number) else None


def mapping_in(value: object) -> dict[str, object]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str | None:
    """Return `value` if it is text with something in it."""
    return value if isinstance(value, str) and value else None


def count_in(value: object, *, maximum: int = EXACT) -> int | None:
    """Return `value` if it is a number of things, up to `maximum`; some servers write 12.0 for 12."""
    if type(value) is int:  # and no bool
        return value if 0 <= value <= maximum else None
    return count_in(int(value), maximum=maximum) if isinstance(value, float) and value.is_integer() else None


# ── Wire formats

Api = Literal["chat", "completions", "responses", "messages", "contents"]

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
    objects = (body, mapping_in(body.get("message")), mapping_in(body.get("response")))
    ids = (*(fields.get("id") for fields in objects), body.get("responseId"))
    return next(filter(None, map(text, ids)), None)


@dataclass(slots=True, kw_only=True)
class Response:
    """Status, headers and the whole body; not frozen, for each call makes one."""

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
    def service_tier(self) -> str | None:
        """How Gemini served the call: `flex`, `priority`, `standard` (ai.google.dev, priority inference)."""
        return self.headers.get("x-gemini-service-tier")

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

    def end(self) -> None:
        """Note that the stream says that it is complete: what came of a reply by then is all of it."""
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
        """Return the body of a request: the sweep's parameters where they are set, and `params` last."""
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
    for additions in (model.budget_params, {**model.params, **condition.params}):
        if additions:
            fields = merged_params(fields, additions)
    return fields


def nest(path: str | None, value: object) -> dict[str, object]:
    """Return an object with a value at a path such as `reasoning.effort`; an empty one without either."""
    if path is None or value is None:
        return {}
    first, point, rest = path.partition(".")
    return {first: nest(rest, value) if point else value}


def text_and_thinking(content: object) -> tuple[str, str | None]:
    """Return the words of a model, and its thoughts before them; parts of one kind are joined as they are."""
    if isinstance(content, str):
        return content, None
    blocks = [mapping_in(block) for block in items(content)]
    thinking = ""
    for thought in (block.get("thinking") for block in blocks):
        # Text from Anthropic, again a list of blocks from Mistral.
        thinking += thought if isinstance(thought, str) else _joined_text(map(mapping_in, items(thought)))
    return _joined_text(blocks), thinking or None


def _joined_text(blocks: Iterable[dict[str, object]]) -> str:
    return "".join(text(block.get("text")) or "" for block in blocks)
