"""Departures of other providers from OpenAI's wire formats: a subclass of `Vendor` for each.

A server plays one of them (`Settings.like`), or as many as the names of models choose: `mistral:noisy` is
answered as `noisy` is, in the form that Mistral gives it. Sources are the vendors' pages and SDKs, answers
that users published, and real servers, all of late 2026.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from asyncbench.simulator.limits import ToldAllowance
from asyncbench.simulator.openai_wire import limit_headers
from asyncbench.simulator.wire import (
    Exchange,
    Json,
    RefusedError,
    StreamUsage,
    Vendor,
    VendorWire,
    Why,
    WireAnswer,
    three_counts,
)

OWN = "openai"
SEPARATOR = ":"
OPENROUTER_CREDITS = 1e-6  # a token, of whatever kind
DAY_MIN = 24 * 60


class Compatible(Vendor):
    """Says when to come again in whole seconds, without OpenAI's milliseconds."""

    def retry_headers(self, _wire: VendorWire, wait_s: float) -> dict[str, str]:
        return {"retry-after": str(math.ceil(wait_s))}


class WithoutLimits(Compatible):
    """Tells no limits."""

    def limit_headers(self, _wire: VendorWire, _allowances: Mapping[str, ToldAllowance]) -> dict[str, str]:
        return {}


class Mistral(Compatible):
    """Content is a list of parts when there is thinking; `seed` is `random_seed`, and refused."""

    reasoning = "content"

    def check(self, body: Json) -> None:
        if "seed" in body:
            raise RefusedError(Why.REJECTED_PARAMETER, "seed: Extra inputs are not permitted.")

    def error(self, refused: RefusedError, status: int, body: object) -> tuple[int, object]:
        if refused.why is not Why.REJECTED_PARAMETER:
            return status, body
        fault = {"type": "extra_forbidden", "loc": ["body", "seed"], "msg": refused.message}
        return 422, {"detail": [fault]}

    def message(self, answer: WireAnswer) -> Json:
        if not answer.reasoning:
            return {"content": answer.text}
        text: list[Json] = [{"type": "text", "text": answer.text}] if answer.text else []
        return {"content": [_thinking(answer.reasoning), *text]}

    def thought(self, text: str) -> Json:
        return {"content": [_thinking(text)]}

    def usage(self, answer: WireAnswer) -> Json:
        return three_counts(answer)

    def limit_headers(self, _wire: VendorWire, allowances: Mapping[str, ToldAllowance]) -> dict[str, str]:
        by_name = {
            f"{'req' if what == 'requests' else what}-minute": allowance
            for what, allowance in allowances.items()
        }
        return limit_headers(by_name, reset=None)


def _thinking(text: str) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


class DeepSeek(WithoutLimits):
    """Comments and blank lines keep a connection alive; usage tells what came from the prompt cache."""

    reasoning = "reasoning_content"
    waiting = b": keep-alive\n\n"
    blank = b"\n\n\n"

    def usage(self, answer: WireAnswer) -> Json:
        cache = {"prompt_cache_hit_tokens": 0, "prompt_cache_miss_tokens": answer.input_tokens}
        return {**_brief_usage(answer), **cache}


class OpenRouter(WithoutLimits):
    """Tells who answered and what it cost; an error's code is a status, also in a 200."""

    reasoning = "reasoning"
    stream_usage = StreamUsage.ALWAYS
    waiting = b": OPENROUTER PROCESSING\n\n"

    def usage(self, answer: WireAnswer) -> Json:
        prompt_usd, completion_usd = (
            OPENROUTER_CREDITS * count for count in (answer.input_tokens, answer.output_tokens)
        )
        costs = {
            "upstream_inference_cost": None,
            "upstream_inference_prompt_cost": prompt_usd,
            "upstream_inference_completions_cost": completion_usd,
        }
        return {
            **super().usage(answer),
            "cost": prompt_usd + completion_usd,
            "is_byok": False,
            "cost_details": costs,
        }

    def adorn(self, body: Json, _exchange: Exchange) -> Json:
        return {**body, "provider": "Simulated"}

    def error(self, refused: RefusedError, status: int, _body: object) -> tuple[int, object]:
        code = 502 if refused.why is Why.UPSTREAM else status
        return status, {"error": {"code": code, "message": refused.message}}


class Groq(Compatible):
    """Requests are limited by the day; `x_groq` has an id at the start and usage at the end."""

    reasoning = "reasoning"

    def usage(self, answer: WireAnswer) -> Json:
        return _brief_usage(answer)

    def adorn(self, body: Json, exchange: Exchange) -> Json:
        choice = _choice(body)
        delta, finish = choice.get("delta"), choice.get("finish_reason")
        if finish is None and not (isinstance(delta, dict) and "role" in delta):
            return body
        used = {} if delta is None else {"usage": three_counts(exchange.answer)}
        return {**body, "x_groq": {"id": f"req_{exchange.request_id}", **(used if finish else {})}}

    def limit_headers(self, _wire: VendorWire, allowances: Mapping[str, ToldAllowance]) -> dict[str, str]:
        return limit_headers(_daily(allowances))


class Cerebras(Compatible):
    """Requests are limited by the day; names say the span, and resets are seconds."""

    reasoning = "reasoning"

    def usage(self, answer: WireAnswer) -> Json:
        return _brief_usage(answer)

    def limit_headers(self, _wire: VendorWire, allowances: Mapping[str, ToldAllowance]) -> dict[str, str]:
        by_name = {
            f"{what}-{'day' if what == 'requests' else 'minute'}": allowance
            for what, allowance in _daily(allowances).items()
        }
        return limit_headers(by_name, reset=str)


class Gemini(WithoutLimits):
    """A rate limit is a list with Google's error, in which the wait stands."""

    def usage(self, answer: WireAnswer) -> Json:
        return three_counts(answer)

    def retry_headers(self, _wire: VendorWire, _wait_s: float) -> dict[str, str]:
        return {}

    def error(self, refused: RefusedError, status: int, body: object) -> tuple[int, object]:
        if refused.why is not Why.RATE_LIMITED:
            return status, body
        wait = f"{math.ceil(refused.retry_after_s or 0)}s"
        info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": wait}
        error = {"code": status, "message": refused.message, "status": "RESOURCE_EXHAUSTED"}
        return status, [{"error": {**error, "details": [info]}}]


class XAI(Compatible):
    """Completion tokens leave reasoning out, the total does not."""

    reasoning = "reasoning_content"

    def usage(self, answer: WireAnswer) -> Json:
        return {**super().usage(answer), "completion_tokens": answer.output_tokens - answer.reasoning_tokens}


class Azure(Vendor):
    """Says what the content filter found; of the prompt in a first chunk without choices or id."""

    def adorn(self, body: Json, _exchange: Exchange) -> Json:
        if not (choice := _choice(body)):
            return body
        filtered = {**body, "choices": [{**choice, "content_filter_results": _HARMLESS}]}
        return filtered if "delta" in choice else {**filtered, "prompt_filter_results": _PROMPT_FILTERED}

    def opening_chunks(self) -> Sequence[Json]:
        first = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
        return [{**first, "prompt_filter_results": _PROMPT_FILTERED}]


class VLLM(WithoutLimits):
    """Tells neither limits nor the id of a request, as all servers of one's own."""

    reasoning: str | None = "reasoning"
    request_id = False

    def usage(self, answer: WireAnswer) -> Json:
        return three_counts(answer)


class LlamaCpp(VLLM):
    """Closes the connection after each stream, though it announces keep-alive."""

    reasoning = "reasoning_content"
    closes_streams = True


class Transformers(VLLM):
    """The Responses API streams unless `stream` is false; no `[DONE]`, and usage in the finish chunk."""

    reasoning = None
    stream_usage = StreamUsage.IN_FINISH
    done = b""
    streams_unasked = True


_HARMLESS = {
    name: {"filtered": False, "severity": "safe"} for name in ("hate", "self_harm", "sexual", "violence")
}
_PROMPT_FILTERED = [{"prompt_index": 0, "content_filter_results": _HARMLESS}]


def _brief_usage(answer: WireAnswer) -> Json:
    details = {"reasoning_tokens": answer.reasoning_tokens}
    return {**three_counts(answer), "completion_tokens_details": details}


def _choice(body: Json) -> Json:
    choices = body.get("choices")
    return choices[0] if isinstance(choices, list) and choices else {}


def _daily(allowances: Mapping[str, ToldAllowance]) -> dict[str, ToldAllowance]:
    """Return allowances with a day's worth of requests, less what is not yet refilled."""
    by_name = dict(allowances)
    if requests := by_name.get("requests"):
        a_day = requests.per_minute * DAY_MIN
        remaining = a_day - requests.reset_s * requests.per_minute / 60
        by_name["requests"] = replace(requests, per_minute=a_day, remaining=remaining)
    return by_name


VENDORS: Mapping[str, Vendor] = {
    OWN: Vendor(),
    "mistral": Mistral(),
    "deepseek": DeepSeek(),
    "openrouter": OpenRouter(),
    "groq": Groq(),
    "cerebras": Cerebras(),
    "gemini": Gemini(),
    "xai": XAI(),
    "azure": Azure(),
    "ollama": VLLM(),
    "vllm": VLLM(),
    "llamacpp": LlamaCpp(),
    "transformers": Transformers(),
}


def split(name: str) -> tuple[Vendor | None, str]:
    """Return how a model's name wants it played, and the rest: `mistral:noisy` → Mistral's way, `noisy`."""
    prefix, separator, rest = name.partition(SEPARATOR)
    return (VENDORS[prefix], rest) if separator and prefix in VENDORS else (None, name)
