"""What a model's calls cost as a sweep asks for them, and what the same cost in a batch."""

from collections.abc import Iterable
from dataclasses import asdict

from asyncbench.pricing import SWEEP, Rates
from asyncbench.providers import rates_of, tier_asked
from asyncbench.records import Condition, Model

BATCH = "batch"  # the tier, in the words of price tables


def rates_asked(model: Model, condition: Condition, at_s: float) -> Rates | None:
    """Return what a model costs in the tier that a sweep asks for; `at_s`: UTC, seconds since 1970."""
    return rates_of(model)(tier_asked(model, condition), at_s)


def batch_rates_of(model: Model, at_s: float) -> Rates | None:
    """Return what a model costs in a batch; None where no table says, or where the sweep gives its price."""
    rates = rates_of(model)(BATCH, at_s)
    return None if rates is None or rates.source == SWEEP else rates


def prices_of(rates: Iterable[Rates | None]) -> list[dict[str, float]]:
    """Return what tokens cost, USD for a million, each bracket once; an unknown price is left out.

    Args:
        rates: those of a model, one for each way of asking.
    """
    brackets = [bracket for one in rates if one is not None for bracket in one.brackets]
    return [
        {name: float(usd) for name, usd in asdict(bracket).items()} for bracket in dict.fromkeys(brackets)
    ]
