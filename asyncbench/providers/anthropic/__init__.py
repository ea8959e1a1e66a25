"""Anthropic's SDK and its wire format, messages."""
