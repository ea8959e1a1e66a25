"""Anthropic's SDK and its wire format, messages."""

from asyncbench.providers.anthropic.models import claude_complaint, default_max_tokens

__all__ = [
    "claude_complaint",
    "default_max_tokens",
]
