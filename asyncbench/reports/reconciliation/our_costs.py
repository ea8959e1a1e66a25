"""A results folder's calls by day and model, and what the same calls would cost otherwise."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.errors import ConfigError
from asyncbench.records import BATCH
from asyncbench.reports.cost.counts import PRICED, bound_of, joined, keep_calls, whole
from asyncbench.store.schema import LOST

TIERS: Final = ("standard", "batch", "flex", "priority")
HALF_HOUR_S: Final = 1800

_UNKNOWN: Final = "cost_usd IS NULL"
_OPEN: Final = {  # calls of which it is not known what they cost
    "lost": f"{_UNKNOWN} AND status = '{LOST}'",
    "cut": f"{_UNKNOWN} AND status NOT IN ('ok', '{LOST}')",  # timed out, cut off, unreadable: perhaps billed
}
_OTHERWISE: Final = (*TIERS, "today")
# Each call with its dollars, the rates of a token, and what it would cost otherwise: NaN where no price is
# known, NULL where its own cost is unknown.
_WITH_OTHER_COSTS: Final = f"""
SELECT calls.*, {
    ", ".join(
        f"CASE WHEN cost_usd IS NOT NULL THEN coalesce({whole(f'{name}_rates')}, 'nan') END AS {name}_usd"
        for name in _OTHERWISE
    )
}
FROM ({PRICED}) AS calls {" ".join(joined(f"{name}_rates") for name in _OTHERWISE)}
WHERE coalesce(provider = $provider, true)
"""  # noqa: S608  made of our own words alone
# What `Ours` is made of.
_SUMS: Final = f"""
SELECT model AS alias, model_id, model_served AS served,
    make_timestamp(epoch_us(started_at) + $shift_us)::DATE AS day,
    max(provider) AS provider, count(*) AS calls,
    sum_usd(cost_usd) AS usd, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output,
    sum(cached_input_tokens) AS cached_input, sum(cache_write_tokens) AS cache_write,
    sum(reasoning_tokens) AS reasoning, sum_usd(usd_cached_input) AS usd_cached,
    sum_usd(usd_cache_write_5m + usd_cache_write_1h) AS usd_written, sum_usd(usd_reasoning) AS usd_reasoning,
    sum_usd(tokens_cached_input * (rate_uncached_input - rate_cached_input)) AS cached_as_plain_usd,
    sum_usd(tokens_cache_write_5m * (rate_cache_write_1h - rate_cache_write_5m)) AS written_1h_usd,
    {
    ", ".join(f"fsum(CASE cost_usd WHEN 0 THEN 0 ELSE {name}_usd END) AS {name}_usd" for name in _OTHERWISE)
},
    count(*) FILTER (status = 'ok' AND {_UNKNOWN} AND input_tokens + output_tokens IS NOT NULL) AS priceless,
    count(*) FILTER (status = 'ok' AND input_tokens + output_tokens IS NULL) AS tokenless,
    count(*) FILTER (status <> 'ok' AND cost_usd = 0) AS free,
    {
    ", ".join(
        f"count(*) FILTER ({which}) AS {name}_calls, sum_usd(CASE WHEN {which} THEN bound_usd END)"
        f" AS {name}_bound_usd, count(*) FILTER ({which} AND bound_usd IS NULL) AS {name}_unbounded"
        for name, which in _OPEN.items()
    )
},
    count(*) FILTER (mode = '{BATCH}') AS batched,
    fsum(CASE mode WHEN '{BATCH}' THEN standard_usd - cost_usd END) AS batched_as_realtime_usd,
    max(cost_usd) AS most_usd, max(input_tokens) AS most_input, max(output_tokens) AS most_output
FROM ({_WITH_OTHER_COSTS}) GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  likewise
_HALF_HOURS: Final = f"""
SELECT model AS alias, model_id, model_served AS served,
    epoch_us(started_at) // {HALF_HOUR_S * 1_000_000} AS half_hour,
    sum_usd(cost_usd) AS usd, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output
FROM calls WHERE coalesce(provider = $provider, true) GROUP BY ALL
"""  # noqa: S608  likewise


class BillNames(NamedTuple):
    """Of whom calls were made, in the three ways in which a bill may name it."""

    alias: str
    model_id: str | None  # None: of none of its trials is there a result
    served: str | None  # None: no reply, or it does not say


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
    standard_usd: float = 0.0  # what it would cost in another tier, or at today's prices; NaN: not known
    batch_usd: float = 0.0
    flex_usd: float = 0.0
    priority_usd: float = 0.0
    today_usd: float = 0.0
    batched: int = 0  # requests of batches
    batched_as_realtime_usd: float = 0.0  # how much more, had they been asked in real time; NaN: not known
    priceless: int = 0  # answered calls without a price
    tokenless: int = 0  # answered calls whose tokens nobody told
    free: int = 0  # calls that failed and are taken to have cost nothing
    lost_calls: int = 0
    lost_bound_usd: float = 0.0  # the most that those can have cost of which that is known
    lost_unbounded: int = 0  # those of which it is not
    cut_calls: int = 0
    cut_bound_usd: float = 0.0
    cut_unbounded: int = 0
    most_usd: float = 0.0  # of one answered call
    most_input: int = 0
    most_output: int = 0

    def add(self, other: "Ours") -> None:
        """Count another's calls as well."""
        for name in (field.name for field in fields(self)):
            mine, theirs = getattr(self, name), getattr(other, name)
            setattr(self, name, max(mine, theirs) if name.startswith("most_") else mine + theirs)

    def most_of(self, which: str) -> float:
        """Return the most that `lost` or `cut` calls can have cost: by their bounds, else as the dearest."""
        unbounded: int = getattr(self, f"{which}_unbounded")
        beyond = unbounded * (self.most_usd or inf) if unbounded else 0.0
        bound: float = getattr(self, f"{which}_bound_usd")
        return bound + beyond


HalfHours = Mapping[tuple[str, int], Ours]  # by a model's name in the comparison, and half hour since 1970


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderUse:
    """What the calls of a folder used, by whom was asked and when a call began."""

    by_day: Mapping[tuple[BillNames, date], Ours]
    by_half_hour: Mapping[tuple[BillNames, int], Ours]  # dollars and tokens alone
    providers: Mapping[BillNames, str]
    simulated_note: str  # what to say if the simulator answered any of them; empty: it did not

    def half_hours(self, names: Mapping[BillNames, str]) -> HalfHours:
        """Return the same by the names that are compared."""
        sums: defaultdict[tuple[str, int], Ours] = defaultdict(Ours)
        for (asked, half), ours in self.by_half_hour.items():
            if asked in names:
                sums[names[asked], half].add(ours)
        return sums


def use_of(folder: Path, provider: str | None, *, now: datetime, shift_h: float = 0.0) -> FolderUse:
    """Return what the calls of a folder used.

    Args:
        folder: the results folder.
        provider: only the calls that this one answers for; None: all.
        now: whose prices `today` are.
        shift_h: hours to add to UTC before the day is taken.

    Raises:
        ConfigError: no call is of that provider; names those that are in the folder.
        StoreError: what the folder holds cannot be read.
    """
    return counted(chosen(folder, loaded=True), lambda views: _use(views, provider, now, shift_h))


def _use(views: FolderViews, provider: str | None, now: datetime, shift_h: float) -> FolderUse:
    calls = keep_calls(views)
    here = [row["provider"] for row in views.rows("SELECT DISTINCT provider FROM calls ORDER BY ALL")]
    if provider is not None and provider not in here:
        raise ConfigError(
            f"--provider {provider}: the folder has no calls to it. It has: {', '.join(here) or 'none'}."
        )
    for tier in TIERS:
        calls.put_rates(f"{tier}_rates", tier=None if tier == "standard" else tier)
    calls.put_rates("today_rates", at_s=now.timestamp())
    sums = views.rows(_SUMS, {"shift_us": round(shift_h * 3.6e9), "provider": provider})
    by_day = {_key(row, "day"): _of(row) for row in sums}
    providers = dict(_key(row, "provider") for row in sums)
    for sent in views.unended:
        if provider in (None, sent.provider):
            day = datetime.fromtimestamp(sent.started_at + shift_h * 3600, UTC).date()
            names = BillNames(sent.model, calls.model_ids.get(sent.model), None)
            bound = bound_of(sent)
            lost = Ours(calls=1, lost_calls=1, lost_bound_usd=bound or 0.0, lost_unbounded=int(bound is None))
            by_day.setdefault((names, day), Ours()).add(lost)
            providers.setdefault(names, sent.provider)
    halves = views.rows(_HALF_HOURS, {"provider": provider})
    return FolderUse(
        by_day=by_day,
        by_half_hour={_key(row, "half_hour"): _of(row) for row in halves},
        providers=providers,
        simulated_note=calls.simulated_note,
    )


def _key(row: dict[str, Any], when: str) -> tuple[BillNames, Any]:
    return BillNames(row["alias"], row["model_id"], row["served"]), row[when]


def _of(row: dict[str, Any]) -> Ours:
    return Ours(**{name: row[name] or 0 for name in Ours.__slots__ if name in row})
