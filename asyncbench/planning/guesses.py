"""Guesses of the tokens, the time and the cost of a trial.

Where no finished trial tells, it is guessed: the guesses are named here and shown below every plan. They
are of the size of what 26 models were recorded to use on arithmetic (the published runs of llm_arithmetic,
2025 and 2026): plain ones 0.5 to 1.5 tokens for a character of the answer, a few of them far more, and
those that think 500 to 4,500 tokens.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Final, NamedTuple

from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.planning.finished import SeenUse
from asyncbench.planning.records import Needs
from asyncbench.pricing import Rates
from asyncbench.providers.params import effort_asked, longest_reply_of
from asyncbench.providers.prices import rates_of, tier_asked
from asyncbench.records import BATCH, Condition, Limits, Model
from asyncbench.suites.requests import characters_before_question

TOKENS_PER_ANSWER_CHARACTER: Final = 2  # of a reply that is little more than the answer
THINKING_SHARE: Final = 0.25  # of a thinking budget that is used up
USUAL_EFFORT: Final = "medium"  # of models that think unasked
ADAPTIVE_EFFORT: Final = "high"  # of `thinking: adaptive` without an effort
EFFORT_TOKENS: Final[Mapping[str, int]] = {
    "none": 0,
    "minimal": 100,
    "low": 300,
    "medium": 1000,
    "high": 2500,
    "xhigh": 5000,
    "max": 10_000,
}
UNSEEN_LATENCY_S: Final = 1.0  # to the first token of a reply
UNSEEN_TOKENS_PER_S: Final = 60  # of one reply
UNKNOWN_IN_FLIGHT: Final = 32  # where the lane has to find out how many calls pay off

# Names of models that are known to think unless told not to. A hint for estimates, and for nothing else.
_THINKS_UNASKED: Final = re.compile(
    r"\bo[134]\b|gpt-5(-(mini|nano|pro|codex))?(-\d{4}.*)?$|gpt-oss"
    r"|gemini-(2\.5|[3-9])(?!.*lite)|grok-(3-mini|4)(?!.*non-reasoning)"
    r"|qwen-?3(?!.*(instruct|coder))|glm-(4\.[5-9]|5)|magistral|qwq|minimax-m|\br1\b"
    r"|(?<!non-)(reason|think)",
    re.IGNORECASE,
)


# The least tokens that Claude caches, by model; all others 1,024. Less is not cached, and nothing says so.
# platform.claude.com/docs, "Prompt caching", and anthropic-sdk-python#1194 (2026).
LEAST_CACHED: Final = 1024
_LEAST_CACHED: Final[Mapping[re.Pattern[str], int]] = {
    re.compile(r"(opus|fable|mythos)-5"): 512,
    re.compile(r"sonnet-4-6|opus-4-7|haiku-3|3-5-haiku"): 2048,
    re.compile(r"opus-4-[56]|haiku-4-5"): 4096,
}


class CachedPrefix(NamedTuple):
    """The tokens that all questions begin with, and how many of them a cache must be given at least."""

    tokens: int
    least: int

    @property
    def read(self) -> int:
        """The tokens that are probably read from the cache."""
        return self.tokens if self.tokens >= self.least else 0


def cached_prefix(model: Model, condition: Condition) -> CachedPrefix | None:
    """Return the beginning that a model is asked to cache (`prompt_cache`), or None without one."""
    if model.prompt_cache is None:
        return None
    least = (tokens for name, tokens in _LEAST_CACHED.items() if name.search(model.model_id))
    tokens = int(characters_before_question(model, condition) / CHARACTERS_PER_TOKEN)
    return CachedPrefix(tokens, next(least, LEAST_CACHED))


class Tokens(NamedTuple):
    """The tokens that one trial will use."""

    input: int
    output: int
    output_most: int | None  # None: nothing limits them


def tokens_of(
    model: Model, condition: Condition, *, question: int, answer: int, seen: SeenUse | None
) -> Tokens:
    """Return the tokens that a trial will use, whole and rounded up.

    `question`: its characters as the suite words it; `answer`: those that are expected; `seen`: what finished
    trials asked alike used.
    """
    input_tokens, output_tokens = (seen.mean_input, seen.mean_output) if seen else (None, None)
    if input_tokens is None:
        input_tokens = (question + characters_before_question(model, condition)) / CHARACTERS_PER_TOKEN
    if output_tokens is None:
        output_tokens = answer * TOKENS_PER_ANSWER_CHARACTER + thinking(model, condition)
    output, longest = math.ceil(output_tokens), longest_reply_of(model, condition)
    return Tokens(math.ceil(input_tokens), output if longest is None else min(output, longest), longest)


def effort_of(model: Model, condition: Condition) -> str | None:
    """Return how hard a model will think, by the sweep or its name, or None if it does not think."""
    if (effort := effort_asked(model.under(condition), condition.params)) is not None:
        return effort
    if model.thinking is not None:
        return ADAPTIVE_EFFORT
    thinks_unasked = not model.simulated and _THINKS_UNASKED.search(model.model_id)
    return USUAL_EFFORT if thinks_unasked else None


def thinking(model: Model, condition: Condition) -> float:
    """Return the tokens that a model probably thinks with before a reply."""
    if model.thinking_tokens is not None:
        return model.thinking_tokens * THINKING_SHARE
    effort = effort_of(model, condition)
    return 0 if effort is None else EFFORT_TOKENS.get(effort, EFFORT_TOKENS[USUAL_EFFORT])


def assumption(model: Model, condition: Condition) -> str:
    """Return how the length of a model's replies was guessed, in a sentence."""
    answer = f"{TOKENS_PER_ANSWER_CHARACTER} tokens per character of the expected answer"
    if model.thinking_tokens is not None:
        return f"replies with a thinking budget: {answer}, and {THINKING_SHARE:.0%} of the budget"
    effort = effort_of(model, condition)
    if effort is None:
        return f"replies without thinking: {answer}"
    chosen = effort_asked(model.under(condition), condition.params) or model.thinking
    thinkers = f"with effort {effort}" if chosen else "of models that think by default"
    return f"replies {thinkers}: {answer}, and {thinking(model, condition):,.0f} thinking tokens"


# ── the time of a lane


class LanePace(NamedTuple):
    """The seconds that a lane takes, and what holds it back."""

    seconds: float
    bound_by: str | None  # rpm, tpm, input_tpm, output_tpm or concurrency; None: there is nothing to do


def latency_of(output_tokens: float) -> float:
    """Return the seconds that a call will probably take where no finished trial tells."""
    return UNSEEN_LATENCY_S + output_tokens / UNSEEN_TOKENS_PER_S


def pace(limits: Limits, needs: Needs, *, longest_s: float) -> LanePace:
    """Return how long a lane takes when each trial is answered at once; `longest_s`: of one call."""
    trials, input_tokens, output_tokens = needs.trials, round(needs.input_tokens), round(needs.output_tokens)
    if not trials:
        return LanePace(0.0, None)
    latency_s = needs.latency_s
    if latency_s is None:
        latency_s = trials * latency_of(needs.output_tokens / trials)
    limited = any(limits.per_minute.values())
    in_flight = limits.concurrency or (limits.most_in_flight if limited else UNKNOWN_IN_FLIGHT)
    bounds = [LanePace(max(latency_s / in_flight, longest_s), "concurrency")]
    bounds += [
        LanePace(amount / (per_minute * limits.fraction) * 60, name)
        for name, per_minute, amount in (
            ("rpm", limits.rpm, trials),
            ("tpm", limits.tpm, input_tokens + output_tokens),
            ("input_tpm", limits.input_tpm, input_tokens),
            ("output_tpm", limits.output_tpm, output_tokens),
        )
        if per_minute is not None
    ]
    return max(bounds)


# ── prices


def rates_asked(model: Model, condition: Condition, at_s: float) -> Rates | None:
    """Return a model's prices in the tier that a sweep asks for; `at_s`: UTC, seconds since 1970."""
    return rates_of(model)(tier_asked(model, condition), at_s)


def batch_rates_of(model: Model, at_s: float) -> Rates | None:
    """Return the price of a model's batches, or None if neither a table nor the sweep tells it."""
    if model.price is not None and model.price.batch is None and model.mode != BATCH:
        return None
    return rates_of(model)(BATCH, at_s)


def prices_of(rates: Iterable[Rates | None]) -> list[dict[str, float]]:
    """Return prices in USD for a million tokens, each bracket once; an unknown price is left out."""
    brackets = dict.fromkeys(
        bracket for model_rates in rates if model_rates is not None for bracket in model_rates.brackets
    )
    return [{name: float(usd) for name, usd in asdict(bracket).items()} for bracket in brackets]
