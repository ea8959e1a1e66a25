"""Anatomy of a wrong answer: the edit that led to it, by kind, place and digits."""
