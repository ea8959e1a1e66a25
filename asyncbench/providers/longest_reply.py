"""What the body of a request may call the longest reply, whoever wrote it: the sweep or its `params`."""

from collections.abc import Mapping
from typing import Final

# By wire format; of two names in one body the first counts.
LONGEST_REPLY: Final[Mapping[str, tuple[str, ...]]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "completions": ("max_tokens",),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
}
ANY_LONGEST_REPLY: Final = frozenset(name for names in LONGEST_REPLY.values() for name in names)
