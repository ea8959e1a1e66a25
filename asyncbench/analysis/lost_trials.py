"""Trials that were truncated or failed, and by how much an accuracy may be off for them."""

from collections.abc import Mapping
from typing import Final

from asyncbench.records import Outcome
from asyncbench.stats.proportions import Accuracy
from asyncbench.tables.numbers import percent

MOST_LOST: Final = 5  # names, the worst; more are counted

Outcomes = Mapping[str, int]  # outcome → trials


def lost_notes(outcomes: Mapping[str, Outcomes]) -> list[str]:
    """Return notes on models whose accuracy says less, because trials were truncated or failed.

    It is one sentence, or none where no more than 1 % of anybody's trials was lost.

    Args:
        outcomes: name → its trials by outcome.
    """
    lost = {name: each for name in outcomes if (each := Accuracy.of(outcomes[name])).loud}
    loud = sorted(lost, key=lambda name: -(lost[name].lost_share or 0.0))
    if not loud:
        return []
    named = [
        f"{name} {percent(lost[name].lowest or 0)}-{percent(lost[name].highest or 0)} "
        f"({lost_briefly(outcomes[name])})"
        for name in loud[:MOST_LOST]
    ]
    more = f"; and {len(loud) - MOST_LOST} more" if len(loud) > MOST_LOST else ""
    return [
        f"LOST TRIALS: for {len(loud)} of {len(outcomes)} models, over 1 % of the trials failed or were "
        f"truncated. Accuracy if these were all wrong, or all right: {'; '.join(named)}{more}."
    ]


def lost_briefly(outcomes: Outcomes) -> str:
    """Return the lost trials in short: `2,100 truncated, 12 failed, 4.2%`."""
    kinds = (Outcome.TRUNCATED, Outcome.FAILED)
    counts = ", ".join(f"{count:,} {kind}" for kind in kinds if (count := outcomes.get(kind, 0)))
    return f"{counts}, {percent(Accuracy.of(outcomes).lost_share or 0)}"
