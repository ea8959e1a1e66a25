"""What every vendor's wire format says in its own way: a question, an answer, a refusal, a limit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from asyncbench.simulator.limits import ToldAllowance
from asyncbench.simulator.script import Script

Json = dict[str, object]
LimitHeaders = Callable[[Mapping[str, ToldAllowance]], dict[str, str]]  # what is limited → headers
RetryHeaders = Callable[[float], dict[str, str]]  # seconds to wait → headers


class Why(Enum):
    """Why a request is refused."""

    BAD_REQUEST = auto()
    REJECTED_PARAMETER = auto()
    UNKNOWN_QUESTION = auto()
    RECORDED_FAILURE = auto()
    BAD_KEY = auto()
    NO_SUCH_MODEL = auto()
    NO_SUCH_PAGE = auto()
    WRONG_METHOD = auto()
    TOO_LARGE = auto()
    RATE_LIMITED = auto()
    NO_QUOTA = auto()
    SERVER_ERROR = auto()
    OVERLOADED = auto()
    UPSTREAM = auto()  # told with status 200


class RefusedError(Exception):
    """A request that gets an error for an answer; never leaves the simulator."""

    def __init__(self, why: Why, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.why = why
        self.message = f"{message} (simulated)"
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """A request, whatever its wire format."""

    model: str
    question: str  # the text of the last user message
    without_roles: bool = False  # the question is a prompt, in which more may stand before the question
    prompt_characters: int  # of all messages and the system prompt
    max_tokens: int | None
    think_tokens: int = 0  # the most to think with; 0: thinking was not asked for
    stream: bool | None  # None: the request does not say
    stream_usage: bool = False  # OpenAI's `stream_options.include_usage`
    summary: bool = False  # of the thinking: OpenAI's `reasoning.summary`
    pace: Mapping[str, float] = field(default_factory=dict)  # fields of Pace, where the request itself says


@dataclass(frozen=True, slots=True, kw_only=True)
class WireAnswer:
    """A reply, whatever its wire format."""

    model: str
    text: str
    reasoning: str = ""
    cut: bool  # ended by max_tokens
    input_tokens: int
    output_tokens: int  # those of the reasoning among them
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question with its answer: all that a page or a stream is written from."""

    asked: WireRequest
    answer: WireAnswer
    like: "Like"
    request_id: str
    chunks: int | None = None  # pieces that a streamed text is cut into at most


class StreamUsage(Enum):
    """Where a stream tells its usage."""

    ASKED = auto()  # in a chunk of its own, where the request asks for it
    ALWAYS = auto()  # in a chunk of its own
    IN_FINISH = auto()  # in the chunk with the finish reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Where a provider puts text and reasoning in chat completions."""

    message: Callable[[WireAnswer], Json]  # of a whole answer
    thought: Callable[[str], Json] | None  # a piece of reasoning → delta; None: reasoning is not shown
    said: Callable[[str], Json]  # a piece of text → delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """How a provider writes what it shares with OpenAI; rows of the table in `likes`.

    `content`, `adorn` and `before` are of chat completions alone, `usage` and `stream_usage` of plain
    completions, too; the rest holds for every wire format.
    """

    check: Callable[[Json], None]  # raises RefusedError where the provider refuses a field
    content: Content
    usage: Callable[[WireAnswer], Json]
    adorn: Callable[[Json, Exchange], Json]  # a body or chunk → the same with the provider's own fields
    before: Callable[[Exchange], Sequence[Json]]  # chunks before the first
    stream_usage: StreamUsage
    done: bytes  # what ends a stream
    waiting: bytes  # sent now and then until a stream's first token
    blank: bytes  # before the JSON of a whole answer
    error: Callable[
        [RefusedError, int, object], tuple[int, object]
    ]  # status and body as the provider has them
    request_id: bool  # told in a header
    limit_headers: LimitHeaders | None  # None: the wire format's own
    retry_headers: RetryHeaders | None
    closes_streams: bool  # ends the connection after a stream, though keep-alive was announced
    streams_unasked: bool  # the Responses API streams unless `stream` is false


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorWire:
    """One vendor's way to write it all down. `read` raises RefusedError when a body breaks its rules."""

    request_id_header: str
    read: Callable[[Json], WireRequest]
    reply: Callable[[Exchange], Json]  # a whole answer
    script: Callable[[Exchange], Script]  # a streamed one
    error: Callable[[RefusedError, str], tuple[int, Json]]  # the refusal and its request id → status, body
    retry_headers: RetryHeaders
    limit_headers: LimitHeaders
    models: Callable[[Sequence[str]], Json]  # names → the list of models
    may_stream_unasked: bool = False  # by providers that do


def tokens(characters: int) -> int:
    """Return about how many tokens a text of so many characters is: a quarter, and at least one."""
    return max(1, -(-characters // 4))


def answer_of(asked: WireRequest, text: str, reasoning: str = "") -> WireAnswer:
    """Make an answer of a whole text and reasoning, cut where the request wants no more tokens.

    The reasoning comes first: a limit within it leaves no text.
    """
    reasoning_tokens = tokens(len(reasoning)) if reasoning else 0
    output_tokens, most = reasoning_tokens + tokens(len(text)), asked.max_tokens
    cut = most is not None and output_tokens > most
    if most is not None and cut:
        reasoning, reasoning_tokens = reasoning[: 4 * most], min(reasoning_tokens, most)
        text, output_tokens = text[: 4 * (most - reasoning_tokens)], most
    return WireAnswer(
        model=asked.model,
        text=text,
        reasoning=reasoning,
        cut=cut,
        input_tokens=tokens(asked.prompt_characters),
        output_tokens=output_tokens,
        reasoning_tokens=reasoning_tokens,
    )
