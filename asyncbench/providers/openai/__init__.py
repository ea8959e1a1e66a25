"""OpenAI's SDK and its wire formats: chat, completions, responses."""

from asyncbench.providers.openai.models import openai_complaint

__all__ = [
    "openai_complaint",
]
