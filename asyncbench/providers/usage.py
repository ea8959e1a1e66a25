"""Token counts of every provider in the one form of `records.Usage`."""

from collections.abc import Mapping

from asyncbench.providers.loose_json import count, mapping
from asyncbench.records import Usage


def from_openai(raw: Mapping[str, object]) -> Usage:
    """Read the `usage` of a chat completion; its `prompt_tokens` hold the cached ones already."""
    prompt = mapping(raw.get("prompt_tokens_details"))
    cached = count(prompt.get("cached_tokens"))
    input_tokens = count(raw.get("prompt_tokens"))
    return Usage(
        input_tokens=input_tokens,
        cached_input_tokens=count(raw.get("prompt_cache_hit_tokens"))
        if cached is None
        else cached,  # DeepSeek
        cache_write_tokens=count(prompt.get("cache_write_tokens")),
        output_tokens=_beyond(
            input_tokens, count(raw.get("completion_tokens")), count(raw.get("total_tokens"))
        ),
        reasoning_tokens=count(mapping(raw.get("completion_tokens_details")).get("reasoning_tokens")),
    )


def _beyond(prompt: int | None, completion: int | None, total: int | None) -> int | None:
    """Return the completion, or what the total holds beyond the prompt where that is more.

    Some count reasoning in the total and not in the completion (xAI, by report), and bill it.
    """
    if prompt is None or completion is None or total is None:
        return completion
    return max(completion, total - prompt)


def from_anthropic(raw: Mapping[str, object]) -> Usage:
    """Read the `usage` of a message, whose `input_tokens` leave out what the cache read or wrote."""
    uncached = count(raw.get("input_tokens"))
    cached = count(raw.get("cache_read_input_tokens"))
    written = count(raw.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=None if uncached is None else uncached + (cached or 0) + (written or 0),
        cached_input_tokens=cached,
        cache_write_tokens=written,
        cache_write_1h_tokens=count(mapping(raw.get("cache_creation")).get("ephemeral_1h_input_tokens")),
        output_tokens=count(raw.get("output_tokens")),
        reasoning_tokens=count(mapping(raw.get("output_tokens_details")).get("thinking_tokens")),
    )
