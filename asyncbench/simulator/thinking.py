"""How much a request lets a model think, and what is thought: made up, by its seed alone."""

import random
from collections.abc import Mapping

from asyncbench.simulator.wire import Json, RefusedError, Why

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

_MUSING = (
    "This thinking is simulated. Let me look at the digits one by one and keep track of every carry. "
    "I line the numbers up, work from the right, and check the result once more before I say it. "
)


def think_tokens(body: Json) -> int:
    """Return the most tokens that a request lets a model think with; 0: it did not ask for thinking.

    Read are `reasoning_effort`, `reasoning` (effort, max_tokens), `thinking` (type, budget_tokens),
    `output_config.effort` and Gemini's `extra_body.google.thinking_config.thinking_budget`.

    Raises:
        RefusedError: no such effort, or a budget that is no number of tokens.
    """
    if body.keys().isdisjoint(_KEYS):  # most requests
        return 0
    reasoning, thinking = _within(body, "reasoning"), _within(body, "thinking")
    if thinking.get("type") in _OFF:
        return 0
    budget = _budget(thinking.get("budget_tokens", reasoning.get("max_tokens", _geminis(body))))
    efforts = (body, "reasoning_effort"), (reasoning, "effort"), (_within(body, "output_config"), "effort")
    effort = next((place[key] for place, key in efforts if place.get(key) is not None), None)
    if effort is not None:
        most = _by_effort(effort)
        return most if budget is None else min(most, budget)
    if budget is not None:
        return min(budget, LONGEST)
    return EFFORTS[UNSAID] if thinking.get("type") else 0


def reasoning_of(most_tokens: int, seed: str) -> str:
    """Make up reasoning of half to all of `most_tokens`; the same seed, the same text. It holds no number."""
    draw = random.Random(f"thinking/{seed}")
    characters = 4 * draw.randint(-(-most_tokens // 2), most_tokens)
    start = draw.randrange(len(_MUSING))
    return (_MUSING * (characters // len(_MUSING) + 2))[start : start + characters]


def _by_effort(effort: object) -> int:
    if isinstance(effort, str) and effort in EFFORTS:
        return EFFORTS[effort]
    raise RefusedError(Why.BAD_REQUEST, f"No effort {effort!r}; there are: {', '.join(EFFORTS)}.")


def _budget(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RefusedError(Why.BAD_REQUEST, "A thinking budget must be a whole number of tokens.")
    return value


def _geminis(body: Json) -> object:
    extra = _within(body, "extra_body") or body  # an SDK merges it into the body
    return _within(_within(extra, "google"), "thinking_config").get("thinking_budget")


def _within(place: Mapping[str, object], key: str) -> Json:
    found = place.get(key)
    return found if isinstance(found, dict) else {}
