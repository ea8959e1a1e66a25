"""`aggregate.jsonl`: the sums of a run as llm_arithmetic wrote them, made of the lines of its file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import fsum
from typing import Any

from asyncbench.suites.llm_arithmetic import ARITHMETIC_TASKS
from asyncbench.suites.numbers import fixed

Line = Mapping[str, Any]  # Any: of a result file, by its keys
AGGREGATE = "aggregate.jsonl"


def aggregate(lines: Sequence[Line]) -> dict[str, object]:
    """Return the record of a run: of all its trials, of each variant and of each variant and depth."""
    variants = [name for name in ARITHMETIC_TASKS if any(line["variant"] == name for line in lines)]
    of = {name: [line for line in lines if line["variant"] == name] for name in variants}
    depths = {name: sorted({line["depth"] for line in of[name]}) for name in variants}
    cells = {
        name: {
            f"depth_{depth}": _cell([line for line in of[name] if line["depth"] == depth])
            for depth in depths[name]
        }
        for name in variants
    }
    began = min(line["timestamp"] for line in lines)[:16]  # of the first answer, to the minute
    return {
        "model": lines[0]["model"],
        "date": began.replace("T", "_").replace(":", "-"),
        "trials_per_cell": max(Counter((line["variant"], line["depth"]) for line in lines).values()),
        "overall": _group(lines),
        "per_category": {name: _group(those) for name, those in of.items()},
        "cells": cells,
        **({"simulated": True} if any(line.get("simulated") for line in lines) else {}),
    }


def _group(lines: Sequence[Line]) -> dict[str, object]:
    sums = _sums(lines)
    tokens = {f"total_{name}": sum(line["tokens"][name] for line in lines) for name in _TOKENS}
    first = {"total_trials": len(lines), **tokens, "total_cost": _cost(lines)}
    return first | {name: value for name, value in sums.items() if name not in first}


def _cell(lines: Sequence[Line]) -> dict[str, object]:
    means = {f"avg_{name}": sum(line["tokens"][name] for line in lines) / len(lines) for name in _TOKENS}
    cost = _cost(lines)
    return {**_sums(lines), **means, "total_cost": cost, "avg_cost": cost / len(lines)}


_TOKENS = ("prompt_tokens", "completion_tokens")


def _cost(lines: Sequence[Line]) -> float:
    return fsum(line.get("cost") or 0.0 for line in lines)


def _sums(lines: Sequence[Line]) -> dict[str, object]:
    classes = Counter(line["classification"] for line in lines)
    counts = [classes[name] for name in ("Correct", "NaN", "Deviate")]
    errors = sum((Fraction(line["error"]) for line in lines if line["error"] is not None), Fraction())
    shares = [count / len(lines) for count in counts]
    return {
        "total_trials": len(lines),
        **dict(zip(("correct_count", "nan_count", "deviate_count"), counts, strict=True)),
        **dict(zip(("accuracy", "nan_rate", "deviate_rate"), shares, strict=True)),
        "avg_error": fixed(round(100 * errors / max(counts[-1], 1)), 2),
    }
