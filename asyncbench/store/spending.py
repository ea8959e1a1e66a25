"""What the calls of a results folder cost, or may have cost: what a budget is counted by."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute

from asyncbench.pricing import picodollars
from asyncbench.records import Sent
from asyncbench.store.catalog import steady
from asyncbench.store.manifest import read_manifest
from asyncbench.store.quarantine import calls_in, damaged_lines
from asyncbench.store.snapshot import MovedError, Snapshot

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

LOST: Final = "lost"  # the status of a call without an end
ROWS: Final = 65_536  # at a time


class Doubt(NamedTuple):
    """Calls of unknown cost, and the most that they may have cost together, picodollars."""

    most: int = 0
    calls: int = 0


class Unknown(NamedTuple):
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
    unknown: Counter[Unknown] = field(default_factory=Counter)
    overrun: Fraction = Fraction(1)  # the most that a call cost, as a multiple of what it could
    least: int = 0  # the most that a call cost which could cost nothing
    dearest: int | None = None  # of the most that each could cost, or did; None: of none is it known

    @property
    def charged(self) -> int:
        """Return what calls cost or, where that is not known, what was set aside for them, or they could."""
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

    def doubt_under(self, kind: str, of: str) -> tuple[Doubt, Doubt]:
        """Return what of both is not known: of calls that ended, and of those that did not."""
        if kind == "provider":
            return Doubt(self.doubted_at[of], self.doubted[of]), Doubt(self.reserved_at[of], self.unended[of])
        return (
            Doubt(self.doubted_at.total(), self.doubted.total()),
            Doubt(self.reserved, self.unended.total()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What the calls of a folder cost, and what of its journal nobody can read any more."""

    by_alias: Mapping[str, Spending]
    damaged: int = 0  # calls that may have stood in damaged lines of the journal

    @property
    def dearest(self) -> int | None:
        """Return the most that a call cost or could cost, picodollars; None: of none is it known."""
        return max((one.dearest for one in self.by_alias.values() if one.dearest is not None), default=None)

    @property
    def unread(self) -> int:
        """Return what counts for calls in damaged lines, picodollars: each is taken for the dearest."""
        return self.damaged * (self.dearest or 0)

    def under(self, kind: str, of: str, also: Collection[str] = ()) -> tuple[int, int]:
        """Return what a folder's calls count for a cap, picodollars: what is charged, what is set aside.

        Every alias counts for the sweep, and every call of a provider for that, whether or not the sweep
        still holds them: the money is gone all the same. What cannot be read may be a call of anybody.

        Args:
            kind: of the cap: `sweep`, `provider` or `model`.
            of: its name; of a model its alias.
            also: of a model, aliases that it had before.
        """
        sums = [one.under(kind, of) for one in self._held(kind, of, also)]
        return sum(charged for charged, _ in sums) + self.unread, sum(reserved for _, reserved in sums)

    def doubt_under(self, kind: str, of: str, also: Collection[str] = ()) -> tuple[Doubt, Doubt]:
        """Return what of both sums of `under` only may have been spent: of charged calls, of the others."""
        both = [one.doubt_under(kind, of) for one in self._held(kind, of, also)]
        ended, unended = (
            Doubt(sum(one[i].most for one in both), sum(one[i].calls for one in both)) for i in (0, 1)
        )
        return Doubt(ended.most + self.unread, ended.calls + self.damaged), unended

    def _held(self, kind: str, of: str, also: Collection[str]) -> list[Spending]:
        named = {of, *also}
        return [one for alias, one in self.by_alias.items() if kind != "model" or alias in named]


def spending(folder: Path | str) -> Books:
    """Return what the calls cost that a folder's own sweep made; imported runs are others' money.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: its manifest, its journal or a part cannot be read.
    """
    own = str(read_manifest(Path(folder))["sweep"])
    return steady(folder, lambda seen: _books(Path(folder), seen, own))


def _books(folder: Path, snapshot: Snapshot, own: str) -> Books:
    try:
        damaged = sum(map(calls_in, damaged_lines(folder, snapshot.damaged)))
    except FileNotFoundError as error:
        raise MovedError(f"{folder}: {error}. Its journal was being sealed: read it again.") from error
    return Books(by_alias=_spending(snapshot, own), damaged=damaged)


_COLUMNS = ("trial_id", "model", "cost_usd", "reserved_usd", "most_usd", *Unknown._fields)


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
        _add_open(found.setdefault(sent.model, Spending()), sent)
    return found


def _add_open(to: Spending, sent: Sent) -> None:
    """Add a call without an end."""
    most = sent.most_usd if sent.reserved_usd is None else sent.reserved_usd
    if most is None:
        to.unknown[Unknown(sent.provider, None, None)] += 1
        return
    to.reserved_at[sent.provider] += picodollars(most)
    to.unended[sent.provider] += 1
    to.dearest = max(to.dearest or 0, picodollars(most))


def _add(to: Spending, provider: str, rows: pa.Table) -> None:
    """Add calls of a model."""
    cost, reserved = rows["cost_usd"], pc.coalesce(rows["reserved_usd"], rows["most_usd"])
    charged = pc.coalesce(cost, reserved)
    to.charged_at[provider] += _exact_sum(charged)
    doubted = reserved.filter(pc.is_null(cost)).drop_null()
    to.doubted_at[provider] += _exact_sum(doubted)
    to.doubted[provider] += len(doubted)
    for row in rows.filter(pc.is_null(charged)).select(list(Unknown._fields)).to_pylist():
        to.unknown[Unknown(**row)] += 1
    dearest = pc.max(pc.max_element_wise(charged, reserved)).as_py()
    if dearest is not None:
        to.dearest = max(to.dearest or 0, picodollars(dearest))
    _learn(to, cost, pc.coalesce(rows["most_usd"], rows["reserved_usd"]))


def _exact_sum(usd: "pa.ChunkedArray[Any]") -> int:
    """Return the sum of amounts, picodollars: each is made whole by itself, for a sum of floats is off."""
    amounts = pc.value_counts(usd.drop_null()).to_pylist()
    return sum(picodollars(one["values"]) * one["counts"] for one in amounts)


def _learn(to: Spending, cost: "pa.ChunkedArray[Any]", most: "pa.ChunkedArray[Any]") -> None:
    """Note calls that cost more than they could."""
    over = pc.greater(cost, most)
    for row in pa.table({"cost": cost, "most": most}).filter(over).to_pylist():
        actual, bound = picodollars(row["cost"]), picodollars(row["most"])
        if bound:
            to.overrun = max(to.overrun, Fraction(actual, bound))
        else:
            to.least = max(to.least, actual)
