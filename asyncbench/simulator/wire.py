"""What every vendor's wire format says in its own way: a question, an answer, a refusal, a limit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from asyncbench.simulator.limits import Allowance

Json = dict[str, object]


class Why(Enum):
    """Why a request is refused."""

    BAD_REQUEST = auto()
    UNKNOWN_QUESTION = auto()
    NOT_STREAMED = auto()
    BAD_KEY = auto()
    NO_SUCH_MODEL = auto()
    NO_SUCH_PAGE = auto()
    WRONG_METHOD = auto()
    TOO_LARGE = auto()
    RATE_LIMITED = auto()
    NO_QUOTA = auto()
    SERVER_ERROR = auto()
    OVERLOADED = auto()


class RefusedError(Exception):
    """A request that gets an error for an answer; never leaves the simulator."""

    def __init__(self, why: Why, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.why = why
        self.message = f"{message} (simulated)"
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, whatever its wire format."""

    model: str
    question: str  # the text of the last user message
    prompt_characters: int  # of all messages and the system prompt
    max_tokens: int | None
    stream: bool
    latency: tuple[float, float] | None = None  # median seconds and sigma, where the request itself says


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply, whatever its wire format."""

    model: str
    text: str
    cut: bool  # ended by max_tokens
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One vendor's way to write it all down. `read` raises RefusedError when a body breaks its rules."""

    request_id_header: str
    read: Callable[[Json], Asked]
    reply: Callable[[Answer, str], Json]  # the answer and its request id → body
    error: Callable[[RefusedError, str], tuple[int, Json]]  # the refusal and its request id → status, body
    retry_headers: Callable[[float], dict[str, str]]  # seconds to wait → headers
    limit_headers: Callable[[Mapping[str, Allowance]], dict[str, str]]  # what is limited → headers
    models: Callable[[Sequence[str]], Json]  # names → the list of models


def tokens(characters: int) -> int:
    """Return about how many tokens a text of so many characters is: a quarter, and at least one."""
    return max(1, -(-characters // 4))


def answer_of(asked: Asked, text: str) -> Answer:
    """Make an answer of a reply's whole text, cut where the request wants no more tokens."""
    output_tokens, most = tokens(len(text)), asked.max_tokens
    cut = most is not None and output_tokens > most
    if most is not None and cut:
        text, output_tokens = text[: 4 * most], most
    return Answer(
        model=asked.model,
        text=text,
        cut=cut,
        input_tokens=tokens(asked.prompt_characters),
        output_tokens=output_tokens,
    )


def asked_of(body: Json, *, system: object, max_tokens: object) -> Asked:
    """Read what the wire formats have in common.

    Args:
        body: the request.
        system: the content of a system prompt outside the messages; None: there is none.
        max_tokens: the longest reply wanted; None: no limit.

    Raises:
        RefusedError: a part is missing or is not what it should be.
    """
    model, messages = body.get("model"), body.get("messages")
    if not isinstance(model, str):
        raise RefusedError(Why.BAD_REQUEST, "`model` must be the name of a model.")
    if not (isinstance(messages, list) and all(isinstance(message, dict) for message in messages)):
        raise RefusedError(Why.BAD_REQUEST, "`messages` must be a list of messages.")
    texts = [(message.get("role"), _text(message.get("content"))) for message in messages]
    return Asked(
        model=model,
        question=_last_of_user(texts),
        prompt_characters=sum(len(text) for _, text in texts) + len(_text(system)),
        max_tokens=_token_limit(max_tokens),
        stream=body.get("stream") is True,
        latency=_latency(body.get("simulate")),
    )


def _last_of_user(texts: Sequence[tuple[object, str]]) -> str:
    for role, text in reversed(texts):
        if role == "user":
            return text
    raise RefusedError(Why.BAD_REQUEST, "`messages` holds no message of the user.")


def _text(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_text_of_part(part) for part in content)
    raise RefusedError(Why.BAD_REQUEST, "A message's `content` must be text or a list of parts.")


def _text_of_part(part: object) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""  # an image, a tool's result


def _token_limit(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise RefusedError(Why.BAD_REQUEST, "The longest reply must be a whole number of tokens, at least 1.")
    return value


def _latency(simulate: object) -> tuple[float, float] | None:
    """Read `"simulate": {"latency_s": 0.5, "latency_sigma": 0.2}`, an addition of ours to both formats."""
    if simulate is None:
        return None
    if not isinstance(simulate, dict) or simulate.keys() - {"latency_s", "latency_sigma"}:
        raise RefusedError(Why.BAD_REQUEST, "`simulate` must hold latency_s, latency_sigma or both.")
    return _seconds(simulate.get("latency_s", 0)), _seconds(simulate.get("latency_sigma", 0))


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 3600:
        raise RefusedError(Why.BAD_REQUEST, "A simulated latency must be a number from 0 to 3600.")
    return float(value)
