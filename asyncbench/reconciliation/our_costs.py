"""A results folder's calls by day and model, and what the same calls would cost otherwise."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from math import inf
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute

from asyncbench.errors import ConfigError
from asyncbench.results import (
    OK_STATUS,
    TOKEN_KINDS,
    Calls,
    Column,
    bound_of,
    priced,
    rates_of_calls,
    sum_of,
    with_dollars,
)
from asyncbench.store import LOST

pc: Any = pyarrow.compute  # see `analysis.calls`

TIERS: Final = ("standard", "batch", "flex", "priority")
HOUR_S: Final = 3600


class BillNames(NamedTuple):
    """Of whom calls were made, in the three ways in which a bill may name it."""

    alias: str
    model_id: str | None  # None: of none of its trials is there a result
    served: str | None  # None: no reply, or it does not say


@dataclass(slots=True, kw_only=True)
class UnpricedCalls:
    """Calls of which it is not known what they cost."""

    calls: int = 0
    reserved_usd: float = 0.0  # the most that those can have cost of which that is known
    unbounded: int = 0  # those of which it is not

    def add(self, other: "UnpricedCalls") -> None:
        """Count another's as well."""
        self.calls += other.calls
        self.reserved_usd += other.reserved_usd
        self.unbounded += other.unbounded


@dataclass(slots=True, kw_only=True)
class Ours:
    """What calls used and cost, as the folder has it."""

    calls: int = 0
    usd: float = 0.0
    input_tokens: int = 0
    output: int = 0
    cached_input: int = 0
    cache_write: int = 0
    reasoning: int = 0
    usd_cached: float = 0.0
    usd_written: float = 0.0
    usd_reasoning: float = 0.0
    cached_as_plain_usd: float = 0.0  # how much more, had the cached input cost as any other
    written_1h_usd: float = 0.0  # how much more, had all that was cached been kept for an hour
    otherwise_usd: dict[str, float]  # by tier, and `today`: what it would cost; NaN: not known
    priceless: int = 0  # answered calls without a price
    tokenless: int = 0  # answered calls whose tokens nobody told
    free: int = 0  # calls that failed and are taken to have cost nothing
    lost: UnpricedCalls
    cut: UnpricedCalls  # timed out, cut off, unreadable: perhaps billed
    most_usd: float = 0.0  # of one answered call
    most_input: int = 0
    most_output: int = 0

    @classmethod
    def none(cls) -> "Ours":
        """Return what no calls used."""
        return cls(otherwise_usd={}, lost=UnpricedCalls(), cut=UnpricedCalls())

    def add(self, other: "Ours") -> None:
        """Count another's calls as well."""
        for one in fields(self):
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            if isinstance(mine, UnpricedCalls):
                mine.add(theirs)
            elif isinstance(mine, dict):
                for name, value in theirs.items():
                    mine[name] = mine.get(name, 0.0) + value
            else:
                whole = max(mine, theirs) if one.name.startswith("most_") else mine + theirs
                setattr(self, one.name, whole)


Used = Mapping[tuple[BillNames, date], Ours]


def of_provider(calls: Calls, provider: str) -> Calls:
    """Return the calls that one provider answers for.

    Raises:
        ConfigError: none is; names those that are in the folder.
    """
    here = sorted(pc.unique(calls.table["provider"]).to_pylist())
    if provider not in here:
        raise ConfigError(
            f"--provider {provider}: no call here is of it; there are: {', '.join(here) or 'none'}"
        )
    kept = calls.table.filter(pc.equal(calls.table["provider"], provider))
    unended = tuple(one for one in calls.unended if one.provider == provider)
    return replace(calls, table=kept, unended=unended)


def providers_of(calls: Calls) -> dict[str, str]:
    """Return whose models they are, by alias."""
    pairs = calls.table.group_by(["model", "provider"]).aggregate([]).to_pylist()
    return {row["model"]: row["provider"] for row in pairs} | {
        one.model: one.provider for one in calls.unended
    }


def used(calls: Calls, *, now: datetime, shift_h: float = 0.0) -> Used:
    """Return what the calls of a folder used, by whom was asked and the day on which the call began.

    Args:
        calls: of a folder.
        now: whose prices `today` are.
        shift_h: hours to add to UTC before the day is taken.
    """
    rows = _measured(calls, now).append_column("day", days(calls.table["started_at"], shift_h))
    keys = ["model", "model_id", "model_served", "day"]
    measures = [name for name in rows.schema.names if name not in keys]
    kinds: list[Any] = [(name, "max" if name.startswith("most_") else "sum") for name in measures]
    found: dict[tuple[BillNames, date], Ours] = {}
    for row in rows.group_by(keys).aggregate([([], "count_all"), *kinds]).to_pylist():
        asked = BillNames(row["model"], row["model_id"], row["model_served"])
        found.setdefault((asked, row["day"]), Ours.none()).add(_ours(row))
    for alias, day, unended in _unended(calls, shift_h):
        ours = found.setdefault((BillNames(alias, calls.model_ids.get(alias), None), day), Ours.none())
        ours.calls += 1
        ours.lost.add(unended)
    return found


def days(started: Column, shift_h: float = 0.0) -> Column:
    """Return the day on which each call began, `shift_h` hours east of UTC."""
    shifted = pc.add(started, pa.scalar(timedelta(hours=shift_h), pa.duration("us")))
    return shifted.cast(pa.timestamp("us")).cast(pa.date32())


def _unended(calls: Calls, shift_h: float) -> Iterator[tuple[str, date, UnpricedCalls]]:
    for sent in calls.unended:
        day = datetime.fromtimestamp(sent.started_at + shift_h * HOUR_S, UTC).date()
        reserved = bound_of(sent)
        yield (
            sent.model,
            day,
            UnpricedCalls(calls=1, reserved_usd=reserved or 0.0, unbounded=int(reserved is None)),
        )


def _measured(calls: Calls, now: datetime) -> pa.Table:
    """Return the keys, and columns whose sums, or largest values, `Ours` is made of."""
    rows = with_dollars(calls)
    usd, answered = rows["cost_usd"], pc.equal(rows["status"], OK_STATUS)
    unknown, lost = pc.is_null(usd), pc.equal(rows["status"], LOST)
    cut = pc.and_(unknown, pc.invert(pc.or_(answered, lost)))
    told = pc.add(rows["input_tokens"], rows["output_tokens"])
    columns = {
        **{name: rows[name] for name in ("model", "model_id", "model_served")},
        "usd": usd,
        "input_tokens": rows["input_tokens"],
        "output": rows["output_tokens"],
        "cached_input": rows["cached_input_tokens"],
        "cache_write": rows["cache_write_tokens"],
        "reasoning": rows["reasoning_tokens"],
        "usd_cached": rows["usd_cached_input"],
        "usd_written": pc.add(rows["usd_cache_write_5m"], rows["usd_cache_write_1h"]),
        "usd_reasoning": rows["usd_reasoning"],
        "priceless": _ones(pc.and_(pc.and_(answered, unknown), pc.is_valid(told))),
        "tokenless": _ones(pc.and_(answered, pc.is_null(told))),
        "free": _ones(pc.and_(pc.invert(answered), pc.fill_null(pc.equal(usd, 0.0), False))),
        "most_usd": usd,
        "most_input": rows["input_tokens"],
        "most_output": rows["output_tokens"],
    }
    for name, chosen in (("lost", pc.and_(unknown, lost)), ("cut", cut)):
        columns[f"{name}.calls"] = _ones(chosen)
        columns[f"{name}.reserved_usd"] = pc.if_else(chosen, rows["bound_usd"], pa.scalar(None, pa.float64()))
        columns[f"{name}.unbounded"] = _ones(pc.and_(chosen, pc.is_null(rows["bound_usd"])))
    return pa.table(columns | _otherwise(calls, usd, now))


def _otherwise(calls: Calls, usd: Column, now: datetime) -> dict[str, Column]:
    """Return what each priced call would cost otherwise; NaN where that is not known."""
    rows, rates = calls.table, rates_of_calls(calls)
    dearer = {
        "cached_as_plain_usd": ("cached_input", pc.subtract(rates["uncached_input"], rates["cached_input"])),
        "written_1h_usd": ("cache_write_5m", pc.subtract(rates["cache_write_1h"], rates["cache_write_5m"])),
    }
    more = {name: pc.multiply(rows[f"tokens_{kind}"], by) for name, (kind, by) in dearer.items()}
    tiers = {
        f"otherwise.{tier}": _known(usd, priced(calls, tier=None if tier == "standard" else tier))
        for tier in TIERS
    }
    return more | tiers | {"otherwise.today": _known(usd, priced(calls, at_s=now.timestamp()))}


def _known(usd: Column, parts: Mapping[str, Column]) -> Column:
    """Return whole costs: 0 where the call cost nothing, NULL where its cost is unknown, NaN for no price."""
    whole = pc.fill_null(sum_of([parts[kind] for kind in TOKEN_KINDS]), float("nan"))
    whole = pc.if_else(pc.equal(usd, 0.0), pa.scalar(0.0), whole)
    return pc.if_else(pc.is_valid(usd), whole, pa.scalar(None, pa.float64()))


def _ones(chosen: Column) -> Column:
    return pc.cast(chosen, pa.int64())


def _ours(row: Mapping[str, Any]) -> Ours:
    found: dict[str, Any] = {"calls": row["count_all"], "otherwise_usd": {}, "lost": {}, "cut": {}}
    for name, value in row.items():
        measure, _, how = name.rpartition("_")
        if how not in ("sum", "max") or measure == "":
            continue
        group, _, part = measure.partition(".")
        if group == "otherwise":
            found["otherwise_usd"][part] = value or 0.0
        elif part:
            found[group][part] = value or 0
        else:
            found[measure] = value or 0
    return Ours(**found | {"lost": UnpricedCalls(**found["lost"]), "cut": UnpricedCalls(**found["cut"])})


def most_of(unknown: UnpricedCalls, ours: Ours) -> float:
    """Return the most that calls of unknown cost can have cost: by their bounds, else as the dearest."""
    if not unknown.unbounded:
        return unknown.reserved_usd
    return unknown.reserved_usd + (unknown.unbounded * ours.most_usd if ours.most_usd else inf)
