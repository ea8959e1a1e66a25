"""How many tokens a trial will probably use, and how many at most.

Where no finished trial tells, it is guessed: the guesses are named here and shown below every plan. They
are of the size of what 26 models were recorded to use on arithmetic (the published runs of llm_arithmetic,
2025 and 2026): plain ones 0.5 to 1.5 tokens for a character of the answer, a few of them far more, and
those that think 500 to 4,500 tokens.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from asyncbench.engine import CHARACTERS_PER_TOKEN
from asyncbench.planning.forecast.seen_use import SeenUse
from asyncbench.prompting import said_before
from asyncbench.providers import effort_asked, longest_reply_of
from asyncbench.records import Condition, Model

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

# Names of models that are known to think unless told not to. A hint for estimates, and for nothing else.
_THINKS_UNASKED: Final = re.compile(
    r"\bo[134]\b|gpt-5(-(mini|nano|pro|codex))?(-\d{4}.*)?$|gpt-oss"
    r"|gemini-(2\.5|[3-9])(?!.*lite)|grok-(3-mini|4)(?!.*non-reasoning)"
    r"|qwen-?3(?!.*(instruct|coder))|glm-(4\.[5-9]|5)|magistral|qwq|minimax-m|\br1\b"
    r"|(?<!non-)(reason|think)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What one trial will use, tokens."""

    input: int
    output: int
    output_most: int | None  # None: nothing limits them


def tokens_of(
    model: Model, condition: Condition, *, question: int, answer: int, seen: SeenUse | None
) -> Tokens:
    """Return what a trial will use, whole tokens, rounded up.

    Args:
        model: who is asked.
        condition: how.
        question: characters of the question as its suite words it.
        answer: characters of the expected answer.
        seen: what finished trials asked alike used; None: there are none.
    """
    sent = question + said_before(model, condition)
    seen_input, seen_output = (seen.mean_input, seen.mean_output) if seen else (None, None)
    told = math.ceil(sent / CHARACTERS_PER_TOKEN if seen_input is None else seen_input)
    replied = math.ceil(answer * TOKENS_PER_ANSWER_CHARACTER + thinking(model, condition))
    if seen_output is not None:
        replied = math.ceil(seen_output)
    most = longest_reply_of(model, condition)
    return Tokens(
        input=told,
        output=replied if most is None else min(replied, most),
        output_most=most,
    )


def effort_of(model: Model, condition: Condition) -> str | None:
    """Return how hard a model will think, as far as the sweep or its name tells; None: it does not."""
    if (asked := effort_asked(model, condition.params)) is not None:
        return asked
    if model.thinking is not None:
        return ADAPTIVE_EFFORT
    return USUAL_EFFORT if thinks_unasked(model) else None


def thinks_unasked(model: Model) -> bool:
    """Whether a model is known by its name to think unless told not to."""
    return not model.simulated and _THINKS_UNASKED.search(model.model_id) is not None


def thinking(model: Model, condition: Condition) -> float:
    """Return the tokens that a model probably thinks with before a reply."""
    if model.thinking_tokens is not None:
        return model.thinking_tokens * THINKING_SHARE
    effort = effort_of(model, condition)
    return 0 if effort is None else EFFORT_TOKENS.get(effort, EFFORT_TOKENS[USUAL_EFFORT])


def assumption(model: Model, condition: Condition) -> str:
    """Return how the length of a model's replies was guessed, in a sentence."""
    answer = f"{TOKENS_PER_ANSWER_CHARACTER} tokens for a character of the expected answer"
    if model.thinking_tokens is not None:
        return f"replies with a thinking budget: {answer}, and {THINKING_SHARE:.0%} of the budget"
    effort = effort_of(model, condition)
    if effort is None:
        return f"replies without thinking: {answer}"
    asked = effort_asked(model, condition.params) or model.thinking
    whose = f"with effort {effort}" if asked else "of models known to think unasked"
    return f"replies {whose}: {answer}, and {thinking(model, condition):,.0f} tokens of thinking"
