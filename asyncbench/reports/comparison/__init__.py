"""Comparison of two models on the same questions."""
