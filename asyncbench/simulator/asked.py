"""Reading a request: the fields that all wire formats have, and the budget for thinking."""

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from asyncbench.records import Message
from asyncbench.simulator.limits import SERVICES
from asyncbench.simulator.wire import Json, PaceAsked, RefusedError, Why, WireRequest, object_in
from asyncbench.suites.chats import chat_question
from asyncbench.suites.numbers import DIGIT_FORMS
from asyncbench.suites.requests import JOIN
from asyncbench.suites.table import SUITES

LONGEST_S = 3600.0  # the longest time that a request may ask its answer to take
TAILS = 100  # the question of a prompt without roles may begin this many lines before its end

_MORE = ("digits", "batch")  # other keys of `simulate`
_PACES: Mapping[str, tuple[float, float]] = {  # keys of `simulate` that hold a number: from, to
    "latency_s": (0, LONGEST_S),
    "latency_sigma": (0, LONGEST_S),
    "ttft_s": (0, LONGEST_S),
    "chunks": (1, 1_000_000),
    "speedup": (0.001, 1_000_000),
    "longest_s": (0.001, LONGEST_S),
    "storm_s": (0, LONGEST_S),
    "slots": (1, 1_000_000),
    "freeze_at_s": (0, LONGEST_S),
    "freeze_s": (0, LONGEST_S),
    "worse_above_rate": (0, 1_000_000),
    "worse_in_flight": (0, 1_000_000),
    "worse_share": (0, 1),
}
_WHOLE = ("chunks", "slots", "worse_in_flight")
_CHOICES: Mapping[str, Collection[str]] = {"service": tuple(SERVICES)}  # keys that hold one of some words

EFFORTS: Mapping[str, int] = {  # the most tokens to think with; the names are the vendors', the numbers ours
    "none": 0,
    "minimal": 16,
    "low": 64,
    "medium": 256,
    "high": 1024,
    "xhigh": 2048,
    "max": 4096,
}
LONGEST = EFFORTS["max"]  # however large a budget is
UNSAID = "medium"  # the effort of a request that asks for thinking and says no more
_KEYS = frozenset({"reasoning_effort", "reasoning", "thinking", "output_config", "extra_body", "google"})
_OFF = ("disabled", "between_tools")  # Anthropic's `thinking.type`; there are no tools here

_STORY = (
    "This story is simulated. The Hatter poured the tea, and nobody asked what time it was, since it had "
    "been six o'clock for as long as anybody could remember. "
)
_MUSING = (
    "This thinking is simulated. Let me look at the digits one by one and keep track of every carry. "
    "I line the numbers up, work from the right, and check the result once more before I say it. "
)


def asked_of(body: Json, *, messages: object, system: object, max_tokens: object) -> WireRequest:
    """Read what the wire formats have in common.

    Args:
        body: the request.
        messages: a list of messages, each with a role and content.
        system: the content of a system prompt outside the messages; None: there is none.
        max_tokens: the longest reply wanted; None: no limit.

    Raises:
        RefusedError: a part is missing or is not what it should be.
    """
    if not (isinstance(messages, list) and all(isinstance(message, dict) for message in messages)):
        raise RefusedError(Why.BAD_REQUEST, "`messages` must be a list of messages.")
    texts = [(message.get("role"), _text(message.get("content"))) for message in messages]
    question = next((text for role, text in reversed(texts) if role == "user"), None)
    if question is None:
        raise RefusedError(Why.BAD_REQUEST, "`messages` holds no message of the user.")
    if system is not None:
        texts.insert(0, ("system", _text(system)))
    return plainly_asked(
        body,
        max_tokens,
        question=question,
        messages=tuple(Message(role=str(role), content=text) for role, text in texts),
        prompt_characters=sum(len(text) for _, text in texts),
        think_tokens=think_tokens(body),
        summary=_object_at(body, "reasoning").get("summary") is not None,
    )


def plainly_asked(
    body: Json,
    max_tokens: object,
    *,
    question: str,
    messages: tuple[Message, ...] = (),
    prompt_characters: int,
    without_roles: bool = False,
    think_tokens: int = 0,
    summary: bool = False,
) -> WireRequest:
    """Read model, longest reply, streaming, pace and digits; raises RefusedError.

    The caller has read the rest of the request, whose fields differ by format.

    `"simulate": {"latency_s": 0.5, "ttft_s": 0.1}` is an addition of ours to every format. Its keys are those
    of `AnswerPace`; what it leaves out is as the server was started. `digits` are the forms of numbers, and
    `batch` is for batches alone.
    """
    model, stream, simulate = body.get("model"), body.get("stream"), body.get("simulate")
    if not isinstance(model, str):
        raise RefusedError(Why.BAD_REQUEST, "`model` must be the name of a model.")
    if not (stream is None or isinstance(stream, bool)):
        raise RefusedError(Why.BAD_REQUEST, "`stream` must be true or false.")
    longest_reply = None if max_tokens is None else _whole(max_tokens, 1)
    if max_tokens is not None and longest_reply is None:
        raise RefusedError(Why.BAD_REQUEST, "The longest reply must be a whole number of tokens, at least 1.")
    keys = (*_PACES, *_CHOICES, *_MORE)
    if simulate is not None and (not isinstance(simulate, dict) or simulate.keys() - {*keys}):
        raise RefusedError(Why.BAD_REQUEST, f"`simulate` must hold only {', '.join(keys)}.")
    pace = {key: value for key, value in _object_at(body, "simulate").items() if key not in _MORE}
    digits = _object_at(body, "simulate").get("digits", [])
    if not (isinstance(digits, list) and all(form in DIGIT_FORMS for form in digits)):
        raise RefusedError(Why.BAD_REQUEST, f"Simulated digits must be some of {', '.join(DIGIT_FORMS)}.")
    for key, value in pace.items():
        _check_pace(key, value)
    usage = _object_at(body, "stream_options").get("include_usage") is True
    return WireRequest(
        model=model,
        question=question,
        messages=messages,
        without_roles=without_roles,
        prompt_characters=prompt_characters,
        max_tokens=longest_reply,
        think_tokens=think_tokens,
        ignore_eos=longest_reply is not None and body.get("ignore_eos") is True,
        stream=stream,
        stream_usage=usage,
        summary=summary,
        digits=tuple(digits),
        pace=cast("PaceAsked", pace),
    )


def tails(prompt: str) -> Iterator[str]:
    """Yield a prompt without roles whole, then from each of its last lines on: one is the question."""
    yield prompt
    starts: list[int] = []
    newline = len(prompt)
    while len(starts) < TAILS and (newline := prompt.rfind("\n", 0, newline)) >= 0:
        starts.append(newline + 1)
    for start in reversed(starts):
        yield prompt[start:]


def chats_in(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the questions that a request may be as a chat, the longest first.

    Turns of a condition may stand before it, and another system prompt before its own.
    """
    system = [turn for turn in messages[:1] if turn.role == "system"]
    turns = messages[len(system) :]

    # The system prompt stands whole, then from each of its later texts on.
    prompts = list[Message]()
    for turn in system:
        texts = turn.content.split(JOIN)
        ends = [JOIN.join(texts[start:]) for start in range(min(len(texts), TAILS))]
        prompts += [replace(turn, content=end) for end in ends]

    for start in range(0, len(turns), 2):
        yield from (chat_question([prompt, *turns[start:]]) for prompt in prompts)
        if len(turns) - start > 1:
            yield chat_question(turns[start:])


def questions_in(message: str) -> Iterator[str]:
    """Yield the question that a suite would have worded like this message."""
    for suite in SUITES.values():
        if suite.asking and (question := suite.asking.question_in(message)) is not None:
            yield question


def think_tokens(body: Json) -> int:
    """Return the most tokens that a request lets a model think with; 0: it did not ask for thinking.

    Read are `reasoning_effort`, `reasoning` (effort, max_tokens), `thinking` (type, budget_tokens),
    `output_config.effort` and Gemini's `extra_body.google.thinking_config.thinking_budget`.

    Raises:
        RefusedError: no such effort, or a budget that is no number of tokens.
    """
    if body.keys().isdisjoint(_KEYS):  # most requests
        return 0
    reasoning, thinking = _object_at(body, "reasoning"), _object_at(body, "thinking")
    if thinking.get("type") in _OFF:
        return 0
    geminis = object_in(
        object_in((_object_at(body, "extra_body") or body).get("google")).get("thinking_config")
    )
    asked_budget = thinking.get("budget_tokens", reasoning.get("max_tokens", geminis.get("thinking_budget")))
    budget = None if asked_budget is None else _whole(asked_budget, 0)
    if asked_budget is not None and budget is None:
        raise RefusedError(Why.BAD_REQUEST, "A thinking budget must be a whole number of tokens.")
    efforts = (
        body.get("reasoning_effort"),
        reasoning.get("effort"),
        _object_at(body, "output_config").get("effort"),
    )
    effort = next((effort for effort in efforts if effort is not None), None)
    if effort is not None:
        if not isinstance(effort, str) or effort not in EFFORTS:
            raise RefusedError(Why.BAD_REQUEST, f"No effort {effort!r}; there are: {', '.join(EFFORTS)}.")
        return EFFORTS[effort] if budget is None else min(EFFORTS[effort], budget)
    if budget is not None:
        return min(budget, LONGEST)
    return EFFORTS[UNSAID] if thinking.get("type") else 0


def story_of(tokens: int) -> str:
    """Make up a reply of so many tokens."""
    return (_STORY * (4 * tokens // len(_STORY) + 1))[: 4 * tokens]


def reasoning_of(most_tokens: int, seed: str) -> str:
    """Make up reasoning of half to all of `most_tokens`; the same seed, the same text. It holds no number."""
    draw = random.Random(f"thinking/{seed}")
    characters = 4 * draw.randint(-(-most_tokens // 2), most_tokens)
    start = draw.randrange(len(_MUSING))
    return (_MUSING * (characters // len(_MUSING) + 2))[start : start + characters]


def _check_pace(key: str, value: object) -> None:
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            raise RefusedError(Why.BAD_REQUEST, f"Simulated {key} must be {', '.join(_CHOICES[key])}.")
        return
    low, high = _PACES[key]
    kind = int if key in _WHOLE else int | float
    fits = isinstance(value, kind) and not isinstance(value, bool)
    if not fits or math.isnan(value) or not low <= value <= high:  # type: ignore[arg-type, operator]  # a number
        raise RefusedError(Why.BAD_REQUEST, f"Simulated {key} must be a number from {low:g} to {high:g}.")


def _text(content: object) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise RefusedError(Why.BAD_REQUEST, "A message's `content` must be text or a list of parts.")
    texts = (block.get("text") for block in content if isinstance(block, dict))
    return "".join(text for text in texts if isinstance(text, str))  # not an image, nor a tool's result


def _whole(value: object, least: int) -> int | None:
    """Return a whole number of at least `least`, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= least else None


def _object_at(body: Mapping[str, object], key: str) -> Json:
    return object_in(body.get(key))
