"""What the body of a request may call the longest reply, whoever wrote it: the sweep or its `params`."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import orjson

from asyncbench.providers.loose_json import count_in, mapping_in
from asyncbench.records import Condition, Model

# By wire format; of two names in one body the first counts.
LONGEST_REPLY: Final[Mapping[str, tuple[str, ...]]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "completions": ("max_tokens",),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
}
ANY_LONGEST_REPLY: Final = frozenset(name for names in LONGEST_REPLY.values() for name in names)


def longest_reply_of(model: Model, condition: Condition) -> int | None:
    """Return the most tokens that one answer may have, thinking included; None: nothing limits it.

    Where a body names it in two ways, which of them counts is the endpoint's choice: here it is the longer
    one.
    """
    params = {**model.params, **condition.params}  # merged in last
    names = LONGEST_REPLY[model.api]
    said = [params[name] for name in names if name in params]
    ours = [] if model.max_tokens is None or (said and len(names) == 1) else [model.max_tokens]
    limits = _counts([*said, *ours])
    return max(limits) if limits else None


@lru_cache(maxsize=256)
def longest_stored(params: str, condition_params: str) -> int | None:
    """Return the longest reply that these two columns of `trials` tell; see `longest_reply_of`."""
    said = mapping_in(orjson.loads(params)) | mapping_in(
        mapping_in(orjson.loads(condition_params)).get("params")
    )
    counts = [found for name in ANY_LONGEST_REPLY if (found := count_in(said.get(name)))]
    return count_in(said.get("max_output_tokens")) or max(counts, default=None)


def _counts(values: Sequence[object]) -> list[int] | None:
    """Return values that are all whole numbers above 0; None: one is not."""
    known = [one for one in values if isinstance(one, int) and not isinstance(one, bool) and one > 0]
    return known if len(known) == len(values) else None
