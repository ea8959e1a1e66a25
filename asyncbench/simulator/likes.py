"""How other providers depart from OpenAI's wire formats: a row of small functions for each.

A server plays one of them (`Settings.like`), or as many as the names of models choose: `mistral:noisy` is
answered as `noisy` is, in Mistral's way. Sources are the vendors' pages, SDKs and real servers, late 2026; a
part marked [R] is a guess from memory.

    openai        the wire formats as they are; reasoning is counted and, in chat, never shown
    mistral       content is a list of parts when there is thinking; `random_seed`, and 422 for `seed` [R];
                  usage in the finish chunk [R]; headers of limits `-req-minute`, `-tokens-minute` [R]
    deepseek      keep-alive comments and blank lines before the answer; `reasoning_content`; usage tells
                  prompt_cache_hit_tokens and _miss_tokens [R], where whole 64s are hits [R]; no limits told
    openrouter    `: OPENROUTER PROCESSING` comments; `reasoning`; `provider`; usage.cost and cost_details
                  always, in the last chunk; no limits told [R]. Its errors in a 200 are the fault `error_200`
    groq          `reasoning`; requests are limited by the day; `x_groq` with the id, and usage in the finish
                  chunk [R]
    cerebras      `reasoning` [R]; headers `-requests-day`, `-tokens-minute`, in float seconds [R]
    gemini        no headers of limits or Retry-After; a 429 is a list with Google's error and its RetryInfo
                  [R]; reasoning is not shown [R]
    xai           completion_tokens leave reasoning out, total_tokens do not [R]; `reasoning_content` [R]
    azure         content_filter_results, and a first chunk with prompt_filter_results [R]; its `api-key`
                  header is accepted of everybody
    ollama        `reasoning` [R]; usage in streams unasked [R]; no limits, no request id [R]
    vllm          `reasoning` [R]; a stream tells usage only with include_usage; no limits, no request id
    llamacpp      closes the connection after each stream, though it announces keep-alive;
                  `reasoning_content` [R]; no limits, no request id
    transformers  no `[DONE]`; the Responses API streams unless `stream` is false; usage in the finish chunk,
                  unasked; `reasoning_content` [R]; no limits, no request id [R]
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from asyncbench.errors import ConfigError
from asyncbench.simulator.limits import ToldAllowance
from asyncbench.simulator.openai_wire import DONE, go_duration
from asyncbench.simulator.wire import (
    Content,
    Exchange,
    Json,
    Like,
    RefusedError,
    StreamUsage,
    Why,
    WireAnswer,
)

OWN = "openai"
SEPARATOR = ":"

DEEPSEEK_UNIT = 64  # tokens: what its prompt cache keeps are whole units [R]
OPENROUTER_CREDITS = 1e-6  # a token, of whatever kind
DAY_MIN = 24 * 60


def as_it_is(body: Json, _exchange: Exchange) -> Json:
    """Add nothing."""
    return body


def accept(_body: Json) -> None:
    """Refuse no field."""


def no_chunks(_exchange: Exchange) -> Sequence[Json]:
    """Send nothing before the first chunk."""
    return ()


def same_error(_refused: RefusedError, status: int, body: object) -> tuple[int, object]:
    """Write a refusal as OpenAI does."""
    return status, body


def no_limits(_allowances: Mapping[str, ToldAllowance]) -> dict[str, str]:
    """Tell no limits."""
    return {}


def no_retry(_wait_s: float) -> dict[str, str]:
    """Do not say when to come again."""
    return {}


def retry_in_seconds(wait_s: float) -> dict[str, str]:
    """Say when to come again in whole seconds, without OpenAI's milliseconds."""
    return {"retry-after": str(math.ceil(wait_s))}


# ── content ──────────────────────────────────────────────────────────────────────────────────


def text_alone(answer: WireAnswer) -> Json:
    """Write the text; the reasoning stays with the provider."""
    return {"content": answer.text}


def said(text: str) -> Json:
    """Write a piece of text."""
    return {"content": text}


def beside(name: str) -> Content:
    """Return the content with the reasoning in a field of its own; no reasoning, no field."""

    def message(answer: WireAnswer) -> Json:
        return {"content": answer.text, **({name: answer.reasoning} if answer.reasoning else {})}

    def thought(text: str) -> Json:
        return {name: text}

    return Content(message=message, thought=thought, said=said)


def in_parts(answer: WireAnswer) -> Json:
    """Write Mistral's content: a list of parts where there is reasoning, else the text."""
    if not answer.reasoning:
        return {"content": answer.text}
    text: list[Json] = [{"type": "text", "text": answer.text}] if answer.text else []
    return {"content": [_thinking(answer.reasoning), *text]}


def part_of_thought(text: str) -> Json:
    """Write a piece of reasoning as Mistral's part of content."""
    return {"content": [_thinking(text)]}


def _thinking(text: str) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


TEXT_ALONE = Content(message=text_alone, thought=None, said=said)
IN_PARTS = Content(message=in_parts, thought=part_of_thought, said=said)
REASONING, REASONING_CONTENT = beside("reasoning"), beside("reasoning_content")


# ── usage ────────────────────────────────────────────────────────────────────────────────────


def three_counts(answer: WireAnswer) -> Json:
    """Write usage without details."""
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


def full_usage(answer: WireAnswer) -> Json:
    """Write usage with OpenAI's details."""
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


def brief_usage(answer: WireAnswer) -> Json:
    """Write usage with the details of reasoning alone."""
    return {
        **three_counts(answer),
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
    }


def deepseek_usage(answer: WireAnswer) -> Json:
    """Write usage with what came from DeepSeek's prompt cache."""
    hit = answer.input_tokens // DEEPSEEK_UNIT * DEEPSEEK_UNIT
    return {
        **brief_usage(answer),
        "prompt_tokens_details": {"cached_tokens": hit},
        "prompt_cache_hit_tokens": hit,
        "prompt_cache_miss_tokens": answer.input_tokens - hit,
    }


def openrouter_usage(answer: WireAnswer) -> Json:
    """Write usage with what the call cost."""
    asked, answered = (OPENROUTER_CREDITS * count for count in (answer.input_tokens, answer.output_tokens))
    costs = {
        "upstream_inference_cost": None,
        "upstream_inference_prompt_cost": asked,
        "upstream_inference_completions_cost": answered,
    }
    return {**full_usage(answer), "cost": asked + answered, "is_byok": False, "cost_details": costs}


def xai_usage(answer: WireAnswer) -> Json:
    """Write usage whose completion tokens leave reasoning out, and whose total does not."""
    return {**full_usage(answer), "completion_tokens": answer.output_tokens - answer.reasoning_tokens}


# ── fields of a provider's own ───────────────────────────────────────────────────────────────


def openrouter_fields(body: Json, _exchange: Exchange) -> Json:
    """Say who answered behind the router."""
    return {**body, "provider": "Simulated"}


def groq_fields(body: Json, exchange: Exchange) -> Json:
    """Tell Groq's id at the start, and usage once more at the end."""
    choice = _choice(body)
    if choice.get("finish_reason") is None and "role" not in _mapping(choice.get("delta")):
        return body
    own: Json = {"id": f"req_{exchange.request_id}"}
    if "delta" in choice and choice["finish_reason"] is not None:
        own["usage"] = three_counts(exchange.answer)
    return {**body, "x_groq": own}


def azure_fields(body: Json, _exchange: Exchange) -> Json:
    """Say what the content filter found: nothing."""
    if not (choice := _choice(body)):
        return body
    found = {**body, "choices": [{**choice, "content_filter_results": _HARMLESS}]}
    return found if "delta" in choice else {**found, "prompt_filter_results": _PROMPT_FILTERED}


def azure_before(_exchange: Exchange) -> Sequence[Json]:
    """Say what the content filter found in the prompt, in a chunk without choices or id."""
    first = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
    return [{**first, "prompt_filter_results": _PROMPT_FILTERED}]


_HARMLESS = {
    name: {"filtered": False, "severity": "safe"} for name in ("hate", "self_harm", "sexual", "violence")
}
_PROMPT_FILTERED = [{"prompt_index": 0, "content_filter_results": _HARMLESS}]


def _choice(body: Json) -> Json:
    choices = body.get("choices")
    return _mapping(choices[0]) if isinstance(choices, list) and choices else {}


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}


# ── refusals and limits ──────────────────────────────────────────────────────────────────────


def refuse_seed(body: Json) -> None:
    """Refuse `seed`, which Mistral calls `random_seed`."""
    if "seed" in body:
        raise RefusedError(Why.REJECTED_PARAMETER, "seed: Extra inputs are not permitted.")


def mistral_error(refused: RefusedError, status: int, body: object) -> tuple[int, object]:
    """Write a refused field the way Mistral validates a body."""
    if refused.why is not Why.REJECTED_PARAMETER:
        return status, body
    return 422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": refused.message}]}


def gemini_error(refused: RefusedError, status: int, body: object) -> tuple[int, object]:
    """Write a rate limit as Google does, with the wait in its RetryInfo."""
    if refused.why is not Why.RATE_LIMITED:
        return status, body
    wait_s = math.ceil(refused.retry_after_s or 0)
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait_s}s"}
    error = {
        "code": status,
        "message": refused.message,
        "status": "RESOURCE_EXHAUSTED",
        "details": [info],
    }
    return status, [{"error": error}]


def openrouter_error(refused: RefusedError, status: int, _body: object) -> tuple[int, object]:
    """Write an error whose code is a status; that of the provider behind the router is told with a 200."""
    code = 502 if refused.why is Why.UPSTREAM else status
    return status, {"error": {"code": code, "message": refused.message}}


def groq_limits(allowances: Mapping[str, ToldAllowance]) -> dict[str, str]:
    """Write limits in OpenAI's names, requests by the day."""
    headers = {}
    for what, allowance in allowances.items():
        most, remaining = _by_day(allowance) if what == "requests" else _by_minute(allowance)
        headers[f"x-ratelimit-limit-{what}"] = f"{most:.0f}"
        headers[f"x-ratelimit-remaining-{what}"] = str(int(remaining))
        headers[f"x-ratelimit-reset-{what}"] = go_duration(allowance.reset_s)
    return headers


def cerebras_limits(allowances: Mapping[str, ToldAllowance]) -> dict[str, str]:
    """Write limits with their span in the name, resets as seconds."""
    headers = {}
    for what, allowance in allowances.items():
        most, remaining = _by_day(allowance) if what == "requests" else _by_minute(allowance)
        span = "day" if what == "requests" else "minute"
        headers[f"x-ratelimit-limit-{what}-{span}"] = f"{most:.0f}"
        headers[f"x-ratelimit-remaining-{what}-{span}"] = str(int(remaining))
        headers[f"x-ratelimit-reset-{what}-{span}"] = str(allowance.reset_s)
    return headers


def mistral_limits(allowances: Mapping[str, ToldAllowance]) -> dict[str, str]:
    """Write limits with the minute in the name, and no resets."""
    headers = {}
    for what, allowance in allowances.items():
        name = f"{'req' if what == 'requests' else what}-minute"
        headers[f"x-ratelimit-limit-{name}"] = f"{allowance.per_minute:.0f}"
        headers[f"x-ratelimit-remaining-{name}"] = str(int(allowance.remaining))
    return headers


def _by_minute(allowance: ToldAllowance) -> tuple[float, float]:
    return allowance.per_minute, allowance.remaining


def _by_day(allowance: ToldAllowance) -> tuple[float, float]:
    """Return a day's worth, less what is not yet refilled."""
    per_day = allowance.per_minute * DAY_MIN
    return per_day, per_day - allowance.reset_s * allowance.per_minute / 60


# ── the table ────────────────────────────────────────────────────────────────────────────────

OPENAI = Like(
    check=accept,
    content=TEXT_ALONE,
    usage=full_usage,
    adorn=as_it_is,
    before=no_chunks,
    stream_usage=StreamUsage.ASKED,
    done=DONE,
    waiting=b"",
    blank=b"",
    error=same_error,
    request_id=True,
    limit_headers=None,
    retry_headers=None,
    closes_streams=False,
    streams_unasked=False,
)
_COMPATIBLE = replace(OPENAI, retry_headers=retry_in_seconds)
_LOCAL = replace(_COMPATIBLE, usage=three_counts, limit_headers=no_limits, request_id=False)

LIKES: Mapping[str, Like] = {
    OWN: OPENAI,
    "mistral": replace(
        _COMPATIBLE,
        check=refuse_seed,
        content=IN_PARTS,
        usage=three_counts,
        stream_usage=StreamUsage.IN_FINISH,
        error=mistral_error,
        limit_headers=mistral_limits,
    ),
    "deepseek": replace(
        _COMPATIBLE,
        content=REASONING_CONTENT,
        usage=deepseek_usage,
        waiting=b": keep-alive\n\n",
        blank=b"\n\n\n",
        limit_headers=no_limits,
    ),
    "openrouter": replace(
        _COMPATIBLE,
        content=REASONING,
        usage=openrouter_usage,
        adorn=openrouter_fields,
        stream_usage=StreamUsage.ALWAYS,
        waiting=b": OPENROUTER PROCESSING\n\n",
        error=openrouter_error,
        limit_headers=no_limits,
    ),
    "groq": replace(
        _COMPATIBLE, content=REASONING, usage=brief_usage, adorn=groq_fields, limit_headers=groq_limits
    ),
    "cerebras": replace(_COMPATIBLE, content=REASONING, usage=brief_usage, limit_headers=cerebras_limits),
    "gemini": replace(
        _COMPATIBLE,
        usage=three_counts,
        error=gemini_error,
        limit_headers=no_limits,
        retry_headers=no_retry,
    ),
    "xai": replace(_COMPATIBLE, content=REASONING_CONTENT, usage=xai_usage),
    "azure": replace(OPENAI, adorn=azure_fields, before=azure_before),
    "ollama": replace(_LOCAL, content=REASONING, stream_usage=StreamUsage.ALWAYS),
    "vllm": replace(_LOCAL, content=REASONING),
    "llamacpp": replace(_LOCAL, content=REASONING_CONTENT, closes_streams=True),
    "transformers": replace(
        _LOCAL,
        content=REASONING_CONTENT,
        stream_usage=StreamUsage.IN_FINISH,
        done=b"",
        streams_unasked=True,
    ),
}


def check_like(name: str) -> None:
    """Refuse a provider that is not in the table.

    Raises:
        ConfigError: its name is unknown.
    """
    if name not in LIKES:
        raise ConfigError(f"simulator: like is {name!r}; choose of {', '.join(LIKES)}")


def split(name: str) -> tuple[Like | None, str]:
    """Return how a model's name wants it played, and the rest: `mistral:noisy` → Mistral's way, `noisy`."""
    like, separator, rest = name.partition(SEPARATOR)
    return (LIKES[like], rest) if separator and like in LIKES else (None, name)
