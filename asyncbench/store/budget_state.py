"""Cost of the calls in a results folder, known or possible, as a budget counts it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from asyncbench.pricing import dollars_of, picodollars
from asyncbench.store.bucket.fetching import local_folder
from asyncbench.store.catalog import steady
from asyncbench.store.holdings import listed_calls, lost_calls, manifests_of, unknown_loss
from asyncbench.store.manifest import folders_of, read_manifest
from asyncbench.store.segment import calls_in, damaged_lines
from asyncbench.store.snapshot import MANY_ROWS, MovedError, Snapshot
from asyncbench.store.spending import COLUMNS, Charges, KnownCosts, Spending
from asyncbench.tables.data import HIDDEN

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSpending:
    """What the calls of a folder cost, and what of its journal nobody can read any more."""

    by_alias: Mapping[str, Spending]
    damaged: int = 0  # calls that may have stood in damaged lines of the journal
    unknown_loss: bool = False  # calls are gone of which nobody knows what they cost

    @property
    def dearest(self) -> int | None:
        """Return the most that calls cost or could cost, in picodollars, or None if no cost is known."""
        return max(
            (spending.dearest for spending in self.by_alias.values() if spending.dearest is not None),
            default=None,
        )

    @property
    def unread(self) -> int:
        """Return the picodollars for calls in damaged lines: each counts as the dearest."""
        return self.damaged * (self.dearest or 0)

    def charges(self, kind: str, name: str, also: Collection[str] = ()) -> Charges:
        """Return the charges of a folder's calls for a cap.

        Every alias counts for the sweep, and every call of a provider for that, whether or not the sweep
        still holds them: the money is gone all the same. What cannot be read may be a call of anybody.

        Args:
            kind: of the cap: `sweep`, `provider` or `model`.
            name: of the sweep or the provider; of a model its alias.
            also: of a model, aliases that it had before.
        """
        counted = [
            spending.charges(name if kind == "provider" else None)
            for alias, spending in self.by_alias.items()
            if kind != "model" or alias in {name, *also}
        ]
        unread = Charges(self.unread, 0, self.unread, self.damaged)
        return Charges(*map(sum, zip(unread, *counted, strict=True)))


def known_costs(folder: Path) -> dict[str, KnownCosts]:
    """Return the cost of the calls in a folder's parts, by alias, from its list: no part is read."""
    by_alias: dict[str, Spending] = {}
    for manifest in manifests_of(folder):
        for alias, sums in listed_calls(manifest):
            by_alias.setdefault(alias, Spending()).add_json(sums)
    return {alias: spending.known() for alias, spending in by_alias.items()}


def spending_of(folder: Path | str) -> FolderSpending:
    """Return the cost of the calls that a folder's own sweep made; imported runs are others' money.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: its manifest, its journal or a part cannot be read.
    """
    path = local_folder(folder)

    def counted(seen: Snapshot) -> FolderSpending:
        # Calls that may have stood in damaged lines of the journal.
        damaged, manifests = 0, manifests_of(path)
        try:
            for each in folders_of(path):
                lines = [line for line in seen.damaged if line.segment.parent.parent == each]
                damaged += sum(map(calls_in, damaged_lines(each, lines)))
        except FileNotFoundError as error:
            raise MovedError(
                f"{path}: {error}. Its journal was being sealed. Read the folder again."
            ) from error

        # Calls of parts and of the journal, and calls whose parts are lost.
        # Those of imported trials are left out.
        by_alias: dict[str, Spending] = {}
        imported_only = pc.field("run") != str(manifests[0]["sweep"])
        imported = seen.read("trials", ["trial_id"], imported_only)["trial_id"].combine_chunks()
        for batch in seen.batches("attempts", ("trial_id", "model", *COLUMNS), rows=MANY_ROWS):
            rows = pa.table(batch)
            if len(imported):
                rows = rows.filter(pc.invert(pc.is_in(rows["trial_id"], value_set=imported)))
            for alias in pc.unique(rows["model"]).to_pylist():
                of_alias = rows.filter(pc.equal(rows["model"], pa.scalar(alias)))
                by_alias.setdefault(alias, Spending()).add(of_alias)
        for sent in seen.unfinished.sent.values():
            by_alias.setdefault(sent.model, Spending()).add_open(sent)
        for alias, sums in (call for manifest in manifests for call in lost_calls(manifest)):
            by_alias.setdefault(alias, Spending()).add_json(sums)
        return FolderSpending(
            by_alias=by_alias, damaged=damaged, unknown_loss=any(map(unknown_loss, manifests))
        )

    return steady(path, counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapUse:
    """A budget of a folder's latest run, and what counts against it: of unknown costs the most."""

    kind: str  # sweep, provider or model
    of: str
    limit_usd: float
    spent_usd: float
    doubted_usd: float  # of it: what calls of unknown cost could cost at most
    doubted_calls: int  # those calls
    reserved_usd: float  # for calls without an end
    unended_calls: int = field(metadata=HIDDEN)  # those calls
    also: Collection[str] = field(metadata=HIDDEN)  # of a model: aliases that it had before


def cap_uses(folder: Path) -> Iterator[CapUse]:
    """Yield the budgets of a folder's latest run; raises as `spending_of` does."""
    caps = read_manifest(folder).get("budget") or ()
    spending = spending_of(folder) if caps else FolderSpending(by_alias={})
    for cap in caps:
        also, unknown = cap.get("also", ()), picodollars(cap.get("unknown_usd", 0.0))
        charges = spending.charges(cap["kind"], cap["of"], also)
        yield CapUse(
            kind=cap["kind"],
            of=cap["of"],
            also=also,
            limit_usd=cap["limit_usd"],
            spent_usd=dollars_of(charges.charged + unknown),
            doubted_usd=dollars_of(charges.doubted + unknown),
            doubted_calls=charges.doubted_calls + cap.get("unknown_calls", 0),
            reserved_usd=dollars_of(charges.reserved),
            unended_calls=charges.unended_calls,
        )
