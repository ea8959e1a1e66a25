"""A bill and a folder side by side: a day or a whole period of one model, and what is between them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from asyncbench.reports.reconciliation.our_costs import Ours

MEASURES: Final[Mapping[str, str]] = {"usd": "dollars", "input_tokens": "input", "output": "output"}
DUST: Final = 1e-9  # a gap of less is none: sums of floats


@dataclass(frozen=True, slots=True, kw_only=True)
class BillSide:
    """What a bill says of some calls; None: it does not say."""

    usd: float | None = None
    input_tokens: int | None = None
    output: int | None = None
    cached_input: int | None = None
    requests: int | None = None
    lines: int = 0  # of the file


@dataclass(frozen=True, slots=True, kw_only=True)
class BillPair:
    """Theirs and ours, of one model."""

    model: str
    day: date | None  # None: of all days
    theirs: BillSide
    ours: Ours

    def gap(self, measure: str) -> float | None:
        """What they have beyond ours; None where the bill does not say."""
        theirs = getattr(self.theirs, measure)
        if theirs is None:
            return None
        gap: float = theirs - getattr(self.ours, measure)
        return gap if abs(gap) > DUST else 0.0


def together(pairs: Iterable[BillPair], *, model: str) -> BillPair:
    """Return all of them as one."""
    ours, sides = Ours(), list[BillSide]()
    for pair in pairs:
        ours.add(pair.ours)
        sides.append(pair.theirs)
    return BillPair(model=model, day=None, theirs=added(sides), ours=ours)


def by_model(days: Sequence[BillPair]) -> list[BillPair]:
    """Return each model over all its days."""
    models = sorted({pair.model for pair in days})
    return [together((pair for pair in days if pair.model == model), model=model) for model in models]


def added(sides: Iterable[BillSide]) -> BillSide:
    """Return the sum of what they tell; None where none of them does."""
    found: dict[str, float] = {}
    for side in sides:
        for name in BillSide.__slots__:
            if (value := getattr(side, name)) is not None:
                found[name] = found.get(name, 0) + value
    return BillSide(**found)  # type: ignore[arg-type]  # counts stay counts


def share_of(gap: float, theirs: float, ours: float) -> float:
    """Return a gap as a part of the larger side, 1 is all."""
    whole = max(abs(theirs), abs(ours))
    return abs(gap) / whole if whole else 0.0
