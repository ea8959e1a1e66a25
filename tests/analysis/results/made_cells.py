"""Cells made by hand: what is drawn of them can be counted on paper."""

from asyncbench.analysis.cells import COUNTS, SUMS
from asyncbench.store.schema import CELL


def cell(model="m", *, task="int_add", suite="llm_arithmetic", length=1, **counted):
    """One cell; what is not given was not counted, and its sums are unknown; problems were asked once."""
    place = {"run": "night", "model": model, "condition": "plain", "suite": suite, "task": task}
    made = dict.fromkeys(CELL, "") | place | {"length": length}
    once = {"independent": float(counted.get("trials", 0))}
    return made | dict.fromkeys(COUNTS, 0) | dict.fromkeys(SUMS) | once | counted


def marked(model="m", *, correct, trials, **others):
    """A cell of which it is known how many trials are right; the rest is wrong."""
    return cell(model, correct=correct, trials=trials, wrong=trials - correct, **others)
