"""What the calls of a results folder cost, or may have cost: what a budget is counted by."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import fsum
from pathlib import Path
from typing import Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.pricing import picodollars
from asyncbench.store.catalog import steady
from asyncbench.store.manifest import read_manifest
from asyncbench.store.snapshot import Snapshot

LOST: Final = "lost"  # the status of a call without an end
ROWS: Final = 65_536  # at a time


class Unknown(NamedTuple):
    """Of a call: neither what it cost is known, nor what was set aside for it."""

    provider: str
    status: str
    max_tokens: int | None
    input_tokens: int | None
    output_tokens: int | None


@dataclass(slots=True, kw_only=True)
class Spending:
    """What the calls of one alias cost: picodollars, by the provider that was asked."""

    charged_at: Counter[str] = field(default_factory=Counter)  # what they cost, else what was set aside
    reserved_at: Counter[str] = field(default_factory=Counter)  # for calls without an end: in flight, or lost
    unknown: Counter[Unknown] = field(default_factory=Counter)
    overrun: Fraction = Fraction(1)  # the most that a call cost, as a multiple of what was set aside
    least: int = 0  # the most that a call cost for which nothing was set aside

    @property
    def charged(self) -> int:
        """Return what calls cost or, where that is not known, what was set aside for them."""
        return self.charged_at.total()

    @property
    def reserved(self) -> int:
        """Return what is set aside for calls without an end."""
        return self.reserved_at.total()

    def under(self, kind: str, of: str) -> tuple[int, int]:
        """Return what counts for a cap that holds this alias, or its provider's calls: charged, reserved."""
        if kind == "provider":
            return self.charged_at[of], self.reserved_at[of]
        return self.charged, self.reserved


def spent_under(kind: str, of: str, found: Mapping[str, Spending]) -> tuple[int, int]:
    """Return what a folder's calls count for a cap, picodollars: what is charged, what is set aside.

    Every alias counts for the sweep, and every call of a provider for that, whether or not the sweep still
    holds them: the money is gone all the same.

    Args:
        kind: of the cap: `sweep`, `provider` or `model`.
        of: its name; of a model its alias.
        found: from `spending`.
    """
    held = [one for alias, one in found.items() if kind != "model" or alias == of]
    sums = [one.under(kind, of) for one in held]
    return sum(charged for charged, _ in sums), sum(reserved for _, reserved in sums)


def spending(folder: Path | str) -> Mapping[str, Spending]:
    """Return what the calls cost that a folder's own sweep made, by alias; imported runs are others' money.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: its manifest, its journal or a part cannot be read.
    """
    own = str(read_manifest(Path(folder))["sweep"])
    return steady(folder, lambda seen: _spending(seen, own))


_COLUMNS = ("trial_id", "model", "cost_usd", "reserved_usd", *Unknown._fields)


def _spending(snapshot: Snapshot, own: str) -> dict[str, Spending]:
    found: dict[str, Spending] = {}
    imported = snapshot.read("trials", ["trial_id"], pc.field("run") != own)["trial_id"].combine_chunks()
    for batch in snapshot.batches("attempts", _COLUMNS, rows=ROWS):
        rows = pa.table(batch)
        if len(imported):
            rows = rows.filter(pc.invert(pc.is_in(rows["trial_id"], value_set=imported)))
        for keys in rows.group_by(["model", "provider"]).aggregate([]).to_pylist():
            of_model = pc.equal(rows["model"], pa.scalar(keys["model"]))
            at_provider = pc.equal(rows["provider"], pa.scalar(keys["provider"]))
            spent = found.setdefault(keys["model"], Spending())
            _add(spent, keys["provider"], rows.filter(pc.and_(of_model, at_provider)))
    for sent in snapshot.unfinished.sent.values():
        spent = found.setdefault(sent.model, Spending())
        spent.reserved_at[sent.provider] += picodollars(sent.reserved_usd or 0.0)
    return found


def _add(to: Spending, provider: str, rows: pa.Table) -> None:
    """Add calls of a model. A sum of many floats is rounded once: by far less than a picodollar."""
    cost, reserved = rows["cost_usd"], rows["reserved_usd"]
    charged = pc.coalesce(cost, reserved)
    to.charged_at[provider] += picodollars(fsum(cast("list[float]", charged.drop_null().to_pylist())))
    for row in rows.filter(pc.is_null(charged)).select(list(Unknown._fields)).to_pylist():
        to.unknown[Unknown(**row)] += 1
    over = pc.greater(cost, reserved)
    for row in rows.filter(over).select(["cost_usd", "reserved_usd"]).to_pylist():
        actual, bound = picodollars(row["cost_usd"]), picodollars(row["reserved_usd"])
        if bound:
            to.overrun = max(to.overrun, Fraction(actual, bound))
        else:
            to.least = max(to.least, actual)
