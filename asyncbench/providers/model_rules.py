"""Known limits of models, before any call: parameters that a wire format, endpoint or model refuses.

Knows no SDK. `params` are not looked at, but for an effort: they are sent as given.
"""

import re
from collections.abc import Mapping
from typing import Final

from asyncbench.providers.endpoints import KnownEndpoint, Quirks
from asyncbench.providers.params import effort_asked
from asyncbench.records import BATCH, Model


def model_complaint(model: Model, endpoint: KnownEndpoint) -> str | None:
    """Return why a model cannot be asked as the sweep wants it, and the way out; None: it can."""
    if model.thinking is not None and model.thinking_tokens is not None:
        return "`thinking: adaptive` and `thinking_tokens` exclude each other. Remove one"
    complaint = claude_complaint if endpoint.via == "anthropic" else openai_complaint
    return complaint(model) or wire_complaint(model, endpoint.quirks)


def batch_complaint(model: Model, endpoint: KnownEndpoint) -> str | None:
    """Return why a model cannot be asked in batches where it is to be, and the way out; None: it can."""
    if model.mode != BATCH:
        return None
    if not endpoint.batches:
        form = f" (of its own form: {endpoint.own_batches})" if endpoint.own_batches else ""
        gateway = ". If its server has batches of OpenAI's form, name it `http/…` with `base_url`"
        return (
            f"{model.provider} has no batch API that asyncbench speaks{form}. Set `mode: realtime` for this "
            "model, or name it at a provider whose batches are spoken: `asyncbench models` lists them"
            f"{'' if form else gateway}"
        )
    if model.api not in endpoint.batch.apis:
        apis = " or ".join(f"`api: {api}`" for api in endpoint.apis if api in endpoint.batch.apis)
        return f"batches of {model.provider} take no api {model.api!r}. Set {apis}, or `mode: realtime`"
    return None


# Keys of a model entry that a wire format cannot say, whoever speaks it.
_NO_WORDS_FOR: Final[Mapping[str, frozenset[str]]] = {
    "chat": frozenset({"thinking"}),
    "completions": frozenset({"effort", "thinking_tokens", "thinking"}),
    "responses": frozenset({"seed", "thinking_tokens", "thinking"}),
    "messages": frozenset({"seed"}),
}


def wire_complaint(model: Model, quirks: Quirks) -> str | None:
    """Return which of a model's parameters its wire format or its endpoint cannot take, and the way out.

    `params` are not looked at: they are sent as given.
    """
    for name in sorted(_NO_WORDS_FOR[model.api]):
        if getattr(model, name) is not None:
            return f"api {model.api!r} has no {name}. Remove `{name}`"
    for name in sorted({*quirks.rejects, *_unsayable(model.api, quirks)}):
        if getattr(model, name, None) is not None:
            return (
                f"{model.provider} does not accept `{name}`. Remove it, or set its own parameter in `params`"
            )
    budget, most = model.thinking_tokens, model.max_tokens
    # Told of by Anthropic; that the others count thinking within the longest reply too is not verified.
    if budget is not None and most is not None and budget >= most:
        return (
            f"{model.model_id}: max_tokens ({most:,}) includes thinking_tokens ({budget:,}), so it must be "
            "more. Raise `max_tokens` or lower `thinking_tokens`"
        )
    # Gemini and OpenRouter know one or the other in a request; not verified.
    if model.api == "chat" and quirks.thinking and None not in (budget, model.effort):
        return f"{model.provider} accepts `effort` or `thinking_tokens`, not both. Remove one"
    return None


def _unsayable(api: str, quirks: Quirks) -> set[str]:
    words = {
        ("seed", ("chat", "completions")): quirks.seed,
        ("effort", ("chat", "responses")): quirks.effort,
        ("thinking_tokens", ("chat",)): quirks.thinking,
    }
    return {name for (name, apis), word in words.items() if api in apis and word is None}


# Models that reason refuse temperature (but for 1, the default) and top_p; from 5.1 on most take them with
# effort none. developers.openai.com (latest-model guides) and a table of what each model was seen to take
# (community.openai.com 1371738, January 2026).
_NEVER_SAMPLES: Final = re.compile(
    r"o\d(-.*)?"
    r"|gpt-5(-(mini|nano|pro|codex)(-.*)?|-\d.*)?"  # not gpt-5-chat-latest, which does not reason
    r"|gpt-5\.\d-(chat|codex|pro)(-.*)?"
)
_SAMPLES_WITHOUT_EFFORT: Final = re.compile(r"gpt-(5\.\d|[6-9](\.\d+)?)(-.*)?")


def openai_complaint(model: Model) -> str | None:
    """Return why requests to `model` cannot be made as the sweep wants them, and the way out.

    Of `params` only an effort counts: the rest is sent as given. Models of the simulator, which plays any,
    are not looked at.
    """
    if model.simulated or (model.temperature in (None, 1) and model.top_p is None):
        return None
    # gpt-5 of openai/gpt-5 (a router's), gpt-5-mini of ft:gpt-5-mini:us::id
    name = model.model_id.rsplit("/", 1)[-1].removeprefix("ft:").partition(":")[0]
    if _NEVER_SAMPLES.fullmatch(name):
        return f"{model.model_id} always reasons and accepts no temperature or top_p. Remove them"
    if effort_asked(model) != "none" and _SAMPLES_WITHOUT_EFFORT.fullmatch(name):
        return (
            f"{model.model_id} accepts temperature and top_p only if it does not reason. "
            "Remove them, or set `effort: none`"
        )
    return None


# Under the version of the API that the SDK sends (2026-10-21) nobody takes temperature and top_p; models
# up to Claude 4.6 take them under this one, newer ones never do (platform.claude.com, API versioning).
SAMPLING_VERSION: Final = "2023-06-01"
_SAMPLING: Final = frozenset({"temperature", "top_p", "top_k"})
_UP_TO_4_6: Final = re.compile(r"claude-([123]\b.*|[a-z]+-4(-[0-6])?)")

# A budget for thinking is refused from 4.7 on, and adaptive thinking is known from 4.6 on
# (platform.claude.com, extended and adaptive thinking, read in November 2026).
_UP_TO_4_5: Final = re.compile(r"claude-([123]\b.*|[a-z]+-4(-[0-5])?)")
LEAST_THINKING: Final = 1024  # tokens

# The longest reply, tokens. From each model's page under platform.claude.com/docs/en/models and from the
# comparison there (stored copies, read in November 2026), unless a row says otherwise. Unknown ones are
# left out.
_MAX_TOKENS: Final[Mapping[str, int]] = {
    "claude-fable-5-2": 128_000,
    "claude-fable-5-1": 128_000,
    "claude-fable-5": 128_000,
    "claude-mythos-5-2": 128_000,  # the model card on Amazon Bedrock, November 2026
    "claude-opus-5-5": 128_000,
    "claude-opus-5": 128_000,
    "claude-sonnet-5-5": 128_000,
    "claude-sonnet-5": 128_000,
    "claude-haiku-5-5": 128_000,
    "claude-opus-4-8": 128_000,
    "claude-opus-4-7": 128_000,  # not its own page: the release notes of @effect/ai-anthropic 4.0.0-beta.106
    "claude-opus-4-6": 128_000,
    "claude-sonnet-4-6": 128_000,
    "claude-opus-4-5": 64_000,
    "claude-sonnet-4-5": 64_000,
    "claude-haiku-4-5": 64_000,
    "oracle": 4_096,  # our simulator
    "noisy": 4_096,
}
# claude-opus-4-5-20251101 and claude-opus-4-5@20251101 are claude-opus-4-5; noisy-2 is noisy.
_SUFFIX: Final = re.compile(r"[-@]\d{8}$|(?<=^noisy)-.*$")


def default_max_tokens(model_id: str) -> int | None:
    """Return the longest reply the model can give, tokens; None where that is not known."""
    return _MAX_TOKENS.get(_family(model_id))


def needs_sampling_version(body: Mapping[str, object]) -> bool:
    """Tell whether a request sets what only `SAMPLING_VERSION` lets the model take."""
    return not _SAMPLING.isdisjoint(body) and _takes_sampling(str(body.get("model")))


def claude_complaint(model: Model) -> str | None:
    """Return why requests to `model` cannot be made as the sweep wants them, and the way out.

    `params` are not looked at: they are sent as given.
    """
    if model.seed is not None:
        return f"{model.model_id} accepts no seed. Remove `seed`"
    if not _takes_sampling(model.model_id) and _samples(model):
        return (
            f"{model.model_id} accepts no temperature or top_p, like every Claude after 4.6. Remove them, "
            "or choose an older model"
        )
    if default_max_tokens(model.model_id) is None and model.max_tokens is None:
        return f"the longest reply of {model.model_id} is unknown. Set `max_tokens`"
    return _complaint_of_thinking(model)


def _complaint_of_thinking(model: Model) -> str | None:
    """Models of other vendors behind this wire format think in ways of their own: only Claude is known."""
    budget = model.thinking_tokens
    if budget is not None and budget < LEAST_THINKING:
        return f"{model.model_id}: raise `thinking_tokens` from {budget:,} to at least {LEAST_THINKING:,}"
    if not _family(model.model_id).startswith("claude-"):
        return None
    if budget is not None and not _UP_TO_4_6.fullmatch(_family(model.model_id)):
        return f"{model.model_id} accepts no thinking_tokens, as of Claude 4.7. Set `thinking: adaptive`"
    if model.thinking is not None and _UP_TO_4_5.fullmatch(_family(model.model_id)):
        return (
            f"{model.model_id} has no adaptive thinking, like every Claude before 4.6. Set `thinking_tokens`"
        )
    if _samples(model) and (budget, model.thinking) != (None, None):
        return f"{model.model_id} accepts no temperature or top_p while it thinks. Remove one or the other"
    return None


def _samples(model: Model) -> bool:
    return (model.temperature, model.top_p) != (None, None)


def _takes_sampling(model_id: str) -> bool:
    # Models of other vendors behind Anthropic's wire format take it as a matter of course.
    family = _family(model_id)
    return not family.startswith("claude-") or _UP_TO_4_6.fullmatch(family) is not None


def _family(model_id: str) -> str:
    return _SUFFIX.sub("", model_id)
