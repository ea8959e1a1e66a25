"""Formats of numbers: the same problems with their digits reversed, spaced, grouped, padded or indexed."""
