"""Sums of what the calls of one alias cost, or may have cost; they outlast the rows."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from asyncbench.pricing import dollars_of, picodollars
from asyncbench.records import Sent

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

COLUMNS = ("cost_usd", "reserved_usd", "most_usd", "provider", "input_tokens", "output_tokens")  # read here
JsonObject = dict[str, Any]  # Any: JSON of our own


class Charges(NamedTuple):
    """What calls count for a cap, picodollars."""

    charged: int = 0  # what they cost, else what was set aside for them, or they could cost
    reserved: int = 0  # for calls without an end: in flight, or lost
    doubted: int = 0  # of `charged`: what calls only could cost
    doubted_calls: int = 0
    unended_calls: int = 0


class KnownCosts(NamedTuple):
    """What calls cost."""

    usd: float = 0.0  # of those whose cost is known
    unknown_calls: int = 0  # the others


class UnknownCost(NamedTuple):
    """Of a call: neither what it cost is known, nor what it could cost at most when it was made."""

    provider: str
    input_tokens: int | None
    output_tokens: int | None


@dataclass(slots=True, kw_only=True)
class Spending:
    """What the calls of one alias cost: picodollars, by the provider that was asked."""

    charged_at: Counter[str] = field(default_factory=Counter)  # what they cost, else what they could
    reserved_at: Counter[str] = field(default_factory=Counter)  # for calls without an end: in flight, or lost
    doubted_at: Counter[str] = field(default_factory=Counter)  # of `charged_at`: what calls only could cost
    doubted: Counter[str] = field(default_factory=Counter)  # those calls
    unended: Counter[str] = field(default_factory=Counter)  # calls for which `reserved_at` is
    unknown: Counter[UnknownCost] = field(default_factory=Counter)
    overrun: Fraction = Fraction(1)  # the most that a call cost, as a multiple of what it could
    least: int = 0  # the most that a call cost which could cost nothing
    dearest: int | None = None  # of the most that each could cost, or did; None: of none is it known

    def charges(self, provider: str | None = None) -> Charges:
        """Return the charges of its calls, or of those that one provider was asked for."""
        sums = (self.charged_at, self.reserved_at, self.doubted_at, self.doubted, self.unended)
        return Charges(*(sum_at.total() if provider is None else sum_at[provider] for sum_at in sums))

    def known(self) -> KnownCosts:
        """Return the known costs of calls that ended."""
        usd = dollars_of(self.charged_at.total() - self.doubted_at.total())
        return KnownCosts(usd, self.doubted.total() + self.unknown.total())

    def add(self, rows: pa.Table) -> None:
        """Add calls that ended: rows of `attempts`."""
        for provider in pc.unique(rows["provider"]).to_pylist():
            of_provider = rows.filter(pc.equal(rows["provider"], pa.scalar(provider)))
            cost, reserved, bound = (of_provider[name] for name in ("cost_usd", "reserved_usd", "most_usd"))
            set_aside = pc.coalesce(reserved, bound)
            charged = pc.coalesce(cost, set_aside)
            self.charged_at[provider] += _exact_sum(charged)
            doubted = set_aside.filter(pc.is_null(cost)).drop_null()
            self.doubted_at[provider] += _exact_sum(doubted)
            self.doubted[provider] += len(doubted)
            for row in of_provider.filter(pc.is_null(charged)).select(list(UnknownCost._fields)).to_pylist():
                self.unknown[UnknownCost(**row)] += 1
            self._raise_dearest(pc.max(pc.max_element_wise(charged, set_aside)).as_py())

            # Calls that cost more than they could, by what was known when they were made.
            costs = pa.table({"cost": cost, "bound": pc.coalesce(bound, reserved)})
            for row in costs.filter(pc.greater(costs["cost"], costs["bound"])).to_pylist():
                actual, bound_pico = picodollars(row["cost"]), picodollars(row["bound"])
                if bound_pico:
                    self.overrun = max(self.overrun, Fraction(actual, bound_pico))
                else:
                    self.least = max(self.least, actual)

    def add_open(self, sent: Sent) -> None:
        """Add a call without an end."""
        reserved = sent.most_usd if sent.reserved_usd is None else sent.reserved_usd
        if reserved is None:
            self.unknown[UnknownCost(sent.provider, None, None)] += 1
            return
        self.reserved_at[sent.provider] += picodollars(reserved)
        self.unended[sent.provider] += 1
        self._raise_dearest(reserved)

    def _raise_dearest(self, usd: float | None) -> None:
        if usd is not None:
            self.dearest = max(self.dearest or 0, picodollars(usd))

    def json_object(self) -> JsonObject:
        """Return the cost of calls that ended for JSON, which has no integers so large, so they are text.

        Calls that nothing bounds are taken together, each for the longest of them.
        """
        unknown: dict[tuple[str, bool], list[int]] = {}
        for call, count in self.unknown.items():
            bare = call.input_tokens is None or call.output_tokens is None
            figures = unknown.setdefault((call.provider, bare), [0, 0, 0])
            figures[0] += count
            figures[1] = max(figures[1], call.input_tokens or 0)
            figures[2] = max(figures[2], call.output_tokens or 0)
        return {
            "charged": {provider: str(pico) for provider, pico in self.charged_at.items()},
            "doubted": {provider: str(pico) for provider, pico in self.doubted_at.items()},
            "doubted_calls": dict(self.doubted),
            "unknown": [[provider, bare, *figures] for (provider, bare), figures in unknown.items()],
            "overrun": str(self.overrun),
            "least": str(self.least),
            "dearest": None if self.dearest is None else str(self.dearest),
        }

    def add_json(self, entry: Mapping[str, Any]) -> None:  # Any: JSON of our own
        """Add what `json_object` returned of other calls."""
        for sums, key in ((self.charged_at, "charged"), (self.doubted_at, "doubted")):
            sums.update({provider: int(pico) for provider, pico in entry[key].items()})
        self.doubted.update(entry["doubted_calls"])
        for provider, bare, count, *tokens in entry["unknown"]:
            self.unknown[UnknownCost(provider, *((None, None) if bare else tokens))] += count
        self.overrun = max(self.overrun, Fraction(entry["overrun"]))
        self.least = max(self.least, int(entry["least"]))
        if entry["dearest"] is not None:
            self.dearest = max(self.dearest or 0, int(entry["dearest"]))


def _exact_sum(usd: "pa.ChunkedArray[Any]") -> int:
    """Return the sum of amounts, picodollars: each is made whole by itself, for a sum of floats is off."""
    amounts = pc.value_counts(usd.drop_null()).to_pylist()
    return sum(picodollars(amount["values"]) * amount["counts"] for amount in amounts)
