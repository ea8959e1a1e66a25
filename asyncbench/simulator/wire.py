"""Requests, answers, streams and refusals in one form, and what a wire format does with them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

import orjson

from asyncbench.records import Message
from asyncbench.simulator.limits import ToldAllowance

Json = dict[str, object]

PIECE = 4  # characters of a streamed text, about a token
HOLE = "\x00"  # stands in an event where the text of a piece is filled in
DONE = b"data: [DONE]\n\n"
_HOLE_WRITTEN = orjson.dumps(HOLE)


class Why(Enum):
    """Why a request is refused."""

    BAD_REQUEST = auto()
    REJECTED_PARAMETER = auto()
    UNKNOWN_QUESTION = auto()
    RECORDED_FAILURE = auto()
    BAD_KEY = auto()
    NO_SUCH_MODEL = auto()
    NO_SUCH_PAGE = auto()
    NO_SUCH_OBJECT = auto()
    CONFLICT = auto()
    WRONG_METHOD = auto()
    TOO_LARGE = auto()
    TOO_LONG = auto()
    TIMED_OUT = auto()
    RATE_LIMITED = auto()
    NO_QUOTA = auto()
    SERVER_ERROR = auto()
    OVERLOADED = auto()
    UPSTREAM = auto()  # told with status 200


class RefusedError(Exception):
    """A request that gets an error for an answer; never leaves the simulator."""

    def __init__(
        self, why: Why, message: str, *, retry_after_s: float | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.why = why
        self.message = f"{message} (simulated)"
        self.retry_after_s = retry_after_s
        self.code = code  # None: the usual code of OpenAI for this reason


PaceAsked = Mapping[str, float | str]  # the fields of AnswerPace that a request sets


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedPrefix:
    """The beginning of a request that is to be cached, up to its last mark."""

    digest: bytes
    tokens: int
    hour: bool  # kept for an hour, not for five minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """A request, whatever its wire format."""

    model: str
    question: str  # the text of the last user message
    messages: tuple[Message, ...] = ()  # all of them, a system prompt first; none: there are no roles
    without_roles: bool = False  # the question is a prompt, in which more may stand before the question
    prompt_characters: int  # of all messages and the system prompt
    max_tokens: int | None
    think_tokens: int = 0  # the most to think with; 0: thinking was not asked for
    ignore_eos: bool = False  # the reply is as long as it may be, as vLLM and SGLang write it
    stream: bool | None  # None: the request does not say
    stream_usage: bool = False  # OpenAI's `stream_options.include_usage`
    summary: bool = False  # of the thinking: OpenAI's `reasoning.summary`
    digits: tuple[str, ...] = ()  # the forms of its numbers, where the request itself says
    pace: PaceAsked = field(default_factory=dict)
    prefix: MarkedPrefix | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireAnswer:
    """A reply, whatever its wire format."""

    model: str
    text: str
    reasoning: str = ""
    cut: bool  # ended by max_tokens
    input_tokens: int  # those of a cache among them
    cached_tokens: int = 0  # read from a cache
    written_tokens: int = 0  # written to a cache
    written_for_an_hour: bool = False  # not for five minutes
    output_tokens: int  # those of the reasoning among them
    reasoning_tokens: int = 0


class StreamUsage(Enum):
    """Where a stream tells its usage."""

    ASKED = auto()  # in a chunk of its own, where the request asks for it
    ALWAYS = auto()  # in a chunk of its own
    IN_FINISH = auto()  # in the chunk with the finish reason


def three_counts(answer: WireAnswer) -> Json:
    """Write usage without details."""
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


class Vendor:
    """How a provider departs from OpenAI: this class is OpenAI itself, and others are in `vendors`.

    `message`, `adorn` and `opening_chunks` are for chat completions alone, `usage` also for plain ones; the
    rest holds for every wire format.
    """

    reasoning: str | None = None  # the field of a message with the reasoning; None: it is not shown
    stream_usage = StreamUsage.ASKED
    done = DONE  # what ends a stream
    waiting = b""  # sent now and then until a stream's first token
    blank = b""  # before the JSON of a whole answer
    request_id = True  # told in a header
    closes_streams = False  # ends the connection after a stream, though keep-alive was announced
    streams_unasked = False  # the Responses API streams unless `stream` is false

    def check(self, body: Json) -> None:
        """Raise RefusedError where the provider refuses a field."""

    def message(self, answer: WireAnswer) -> Json:
        """Return the text and the reasoning of a whole answer."""
        shown = {self.reasoning: answer.reasoning} if self.reasoning and answer.reasoning else {}
        return {"content": answer.text, **shown}

    def thought(self, text: str) -> Json:
        """Return a piece of reasoning as a delta, where it is shown."""
        return {self.reasoning: text} if self.reasoning else {}

    def usage(self, answer: WireAnswer) -> Json:
        """Return the account of an answer."""
        return {
            **three_counts(answer),
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": answer.reasoning_tokens,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }

    def adorn(self, body: Json, _exchange: "Exchange") -> Json:
        """Return a body or a chunk with the provider's own fields."""
        return body

    def opening_chunks(self) -> Sequence[Json]:
        """Return the chunks before the first."""
        return ()

    def error(self, _refused: RefusedError, status: int, body: object) -> tuple[int, object]:
        """Return the status and the body of a refusal as the provider has them."""
        return status, body

    def limit_headers(self, wire: "VendorWire", allowances: Mapping[str, ToldAllowance]) -> dict[str, str]:
        """Return the headers that tell limits."""
        return wire.limit_headers(allowances)

    def retry_headers(self, wire: "VendorWire", wait_s: float) -> dict[str, str]:
        """Return the headers that tell when to come again."""
        return wire.retry_headers(wait_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question with its answer: all that a page or a stream is written from."""

    request: WireRequest
    answer: WireAnswer
    vendor: Vendor
    request_id: str
    chunks: int | None = None  # pieces that a streamed text is cut into at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The events of one stream, written out."""

    opening: Sequence[bytes]  # before the first token
    pieces: Sequence[bytes]  # one for each piece of text, with the events that must come with it
    closing: Sequence[bytes]  # why it ended, usage, the terminator
    error: bytes  # the event in which a stream that fails midway says so

    def first_half(self) -> "Script":
        """Return half of the events, never with one that closes the stream."""
        count = (len(self.opening) + len(self.pieces) + len(self.closing)) // 2
        pieces = self.pieces[: max(0, count - len(self.opening))]
        return replace(self, opening=self.opening[:count], pieces=pieces, closing=())


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorWire:
    """One wire format. `read` raises RefusedError when a body breaks its rules."""

    request_id_header: str
    read: Callable[[Json], WireRequest]
    reply: Callable[[Exchange], Json]  # a whole answer
    script: Callable[[Exchange], Script]  # a streamed one
    error: Callable[[RefusedError, str], tuple[int, Json]]  # the refusal and its request id → status, body
    retry_headers: Callable[[float], dict[str, str]]  # seconds to wait → headers
    limit_headers: Callable[[Mapping[str, ToldAllowance]], dict[str, str]]  # what is limited → headers
    models: Callable[[Sequence[str]], Json]  # names → the list of models
    may_stream_unasked: bool = False  # a provider that streams unasked does so in this format


def object_in(value: object) -> Json:
    """Return a value that is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def tokens(characters: int) -> int:
    """Return about how many tokens a text of so many characters is: a quarter, and at least one."""
    return max(1, -(-characters // 4))


def answer_of(request: WireRequest, text: str, reasoning: str = "") -> WireAnswer:
    """Make an answer of a whole text and reasoning, cut where the request wants no more tokens.

    The reasoning comes first: a limit within it leaves no text.
    """
    reasoning_tokens = tokens(len(reasoning)) if reasoning else 0
    output_tokens, max_tokens = reasoning_tokens + tokens(len(text)), request.max_tokens
    cut = max_tokens is not None and output_tokens > max_tokens
    if max_tokens is not None and cut:
        reasoning, reasoning_tokens = reasoning[: 4 * max_tokens], min(reasoning_tokens, max_tokens)
        text, output_tokens = text[: 4 * (max_tokens - reasoning_tokens)], max_tokens
    return WireAnswer(
        model=request.model,
        text=text,
        reasoning=reasoning,
        cut=cut,
        input_tokens=tokens(request.prompt_characters),
        output_tokens=output_tokens,
        reasoning_tokens=reasoning_tokens,
    )


def event(data: object, name: str | None = None) -> bytes:
    """Write an event that holds JSON."""
    head = b"" if name is None else f"event: {name}\n".encode()
    return head + b"data: " + orjson.dumps(data) + b"\n\n"


def deltas(data: object, texts: Sequence[str], name: str | None = None) -> list[bytes]:
    """Write an event for each text: `data` with the text in the place of `HOLE`."""
    # Written once and filled in: a long answer has hundreds of pieces.
    before, _, after = event(data, name).partition(_HOLE_WRITTEN)
    return [before + orjson.dumps(text) + after for text in texts]


def cut_up(text: str, chunks: int | None) -> list[str]:
    """Cut a text into at most `chunks` pieces, or into pieces of `PIECE` characters."""
    size = PIECE if chunks is None else max(1, -(-len(text) // chunks))
    return [text[start : start + size] for start in range(0, len(text), size)]
