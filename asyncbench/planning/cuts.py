"""What a budget or a deadline leaves of a sweep: as its order is balanced, the first of every cell."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The most that some models may still take together: dollars of a budget, seconds of a lane."""

    models: Collection[str]  # by alias
    most: float
    name: str = ""  # what a person calls it
    spare: Mapping[str, float] = field(default_factory=dict)  # of it, what a model cannot use up, by alias


@dataclass(frozen=True, slots=True, kw_only=True)
class StillAsked:
    """What of one model is still asked."""

    model: str  # the alias
    left: int  # trials
    trials: int  # of them that are asked
    per_cell: float  # of them in each cell, on average

    @property
    def share(self) -> float:
        """Of what is left; 1 where nothing is."""
        return self.trials / self.left if self.left else 1.0


def shares(takes: Mapping[str, float], bounds: Sequence[Bound]) -> dict[str, float]:
    """Return the share of its rest that each model is asked: all get on alike until a bound stops some.

    Args:
        takes: what the rest of each model takes, by alias.
        bounds: what they may take; a model may be under several of them.
    """
    return _cut(takes, bounds)[0]


def binding(takes: Mapping[str, float], bounds: Sequence[Bound]) -> tuple[str, ...]:
    """Return the names of those bounds that stop a model."""
    stopping = _cut(takes, bounds)[1]
    return tuple(dict.fromkeys(bound.name for bound in bounds if bound.name in stopping))


def _cut(takes: Mapping[str, float], bounds: Sequence[Bound]) -> tuple[dict[str, float], set[str]]:
    """Return the share of each model, and the names of the bounds that stopped any."""
    found, stopping = dict.fromkeys(takes, 0.0), set[str]()
    going = {alias for alias, amount in takes.items() if amount > 0}
    found |= dict.fromkeys(takes.keys() - going, 1.0)
    while going:
        reached = [
            (_reached(bound, alias, takes, found, going), alias, bound.name)
            for bound in bounds
            for alias in bound.models
            if alias in going
        ]
        level = min([1.0, *(at for at, _, _ in reached)])
        found |= dict.fromkeys(going, level)
        stopped = [one for one in reached if one[0] <= level < 1]
        stopping |= {name for _, _, name in stopped}
        going = going - {alias for _, alias, _ in stopped} if level < 1 else set()
    return found, stopping


def _reached(
    bound: Bound, alias: str, takes: Mapping[str, float], found: Mapping[str, float], going: Collection[str]
) -> float:
    """Return the share at which a bound stops one of its models that still go on."""
    stopped = sum(takes[one] * found[one] for one in bound.models if one in takes and one not in going)
    each = sum(takes[one] for one in bound.models if one in going)
    return max(0.0, bound.most - bound.spare.get(alias, 0.0) - stopped) / each
