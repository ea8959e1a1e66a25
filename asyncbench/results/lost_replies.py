"""The loud line: whose accuracy says less than it seems to, because trials were truncated or failed."""

from collections.abc import Mapping

from asyncbench.records import Outcome
from asyncbench.stats import Accuracy

NAMED = 5  # the worst; more are counted

Outcomes = Mapping[str, int]  # outcome → trials


def lost_notes(found: Mapping[str, Outcomes]) -> list[str]:
    """Return the line as a sentence; none where no more than 1 % of anybody's trials was lost.

    Args:
        found: name → its trials by outcome.
    """
    loud = {name: one for name, one in found.items() if Accuracy.of(one).loud}
    if not loud:
        return []
    worst_first = sorted(loud, key=lambda name: -(Accuracy.of(loud[name]).lost_share or 0.0))
    named = "; ".join(f"{name} {_lost(loud[name])}" for name in worst_first[:NAMED])
    more = f"; and {len(loud) - NAMED} more" if len(loud) > NAMED else ""
    return [
        f"LOST TRIALS: over 1 % truncated or failed for {len(loud)} of {len(found)}, which says nothing of "
        f"what they can do. Accuracy if all of these had been wrong, and right: {named}{more}."
    ]


def lost_briefly(outcomes: Outcomes) -> str:
    """Return which trials were lost: `2,100 truncated, 12 failed, 4.2%`."""
    counts = ((outcomes.get(one, 0), one.value) for one in (Outcome.TRUNCATED, Outcome.FAILED))
    said = ", ".join(f"{count:,} {name}" for count, name in counts if count)
    return f"{said}, {Accuracy.of(outcomes).lost_share or 0:.1%}"


def _lost(outcomes: Outcomes) -> str:
    accuracy = Accuracy.of(outcomes)
    return f"{accuracy.lowest or 0:.1%}-{accuracy.highest or 0:.1%} ({lost_briefly(outcomes)})"
