"""Calls of a results folder by day and model: dollars and tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.errors import ConfigError
from asyncbench.records import BATCH
from asyncbench.reports.cost.counts import keep_calls
from asyncbench.store.schema import LOST

_UNKNOWN: Final = "cost_usd IS NULL"
# What `Ours` is made of. Nobody knows the cost of a lost call, or of one that timed out or could not be read.
_SUMS: Final = f"""
SELECT model AS alias, model_id, model_served AS served,
    make_timestamp(epoch_us(started_at) + $shift_us)::DATE AS day,
    max(provider) AS provider, count(*) AS calls,
    sum_usd(cost_usd) AS usd, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output,
    sum(cached_input_tokens) AS cached_input, sum(reasoning_tokens) AS reasoning,
    count(*) FILTER (status = 'ok' AND {_UNKNOWN} AND input_tokens + output_tokens IS NOT NULL) AS priceless,
    count(*) FILTER (status = '{LOST}' AND {_UNKNOWN}) AS lost_calls,
    count(*) FILTER (status NOT IN ('ok', '{LOST}') AND {_UNKNOWN}) AS cut_calls,
    count(*) FILTER (mode = '{BATCH}') AS batched
FROM calls WHERE coalesce(provider = $provider, true) GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone


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
    reasoning: int = 0
    batched: int = 0  # requests of batches
    priceless: int = 0  # answered calls without a price
    lost_calls: int = 0
    cut_calls: int = 0

    def add(self, other: "Ours") -> None:
        """Count another's calls as well."""
        for name in (field.name for field in fields(self)):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderUse:
    """What the calls of a folder used, by whom was asked and when a call began."""

    by_day: Mapping[tuple[BillNames, date], Ours]
    providers: Mapping[BillNames, str]
    simulated_note: str  # what to say if the simulator answered any of them; empty: it did not


def use_of(folder: Path, provider: str | None, *, shift_h: float = 0.0) -> FolderUse:
    """Return what the calls of a folder used.

    Args:
        folder: the results folder.
        provider: only the calls that this one answers for; None: all.
        shift_h: hours to add to UTC before the day is taken.

    Raises:
        ConfigError: no call is of that provider; names those that are in the folder.
        StoreError: what the folder holds cannot be read.
    """
    return counted(chosen(folder, loaded=True), lambda views: _use(views, provider, shift_h))


def _use(views: FolderViews, provider: str | None, shift_h: float) -> FolderUse:
    calls = keep_calls(views)
    here = [row["provider"] for row in views.rows("SELECT DISTINCT provider FROM calls ORDER BY ALL")]
    if provider is not None and provider not in here:
        raise ConfigError(
            f"--provider {provider}: the folder has no calls to it. It has: {', '.join(here) or 'none'}."
        )
    sums = views.rows(_SUMS, {"shift_us": round(shift_h * 3.6e9), "provider": provider})
    by_day = {_key(row, "day"): _of(row) for row in sums}
    providers = dict(_key(row, "provider") for row in sums)
    for sent in views.unended:
        if provider in (None, sent.provider):
            day = datetime.fromtimestamp(sent.started_at + shift_h * 3600, UTC).date()
            names = BillNames(sent.model, calls.model_ids.get(sent.model), None)
            by_day.setdefault((names, day), Ours()).add(Ours(calls=1, lost_calls=1))
            providers.setdefault(names, sent.provider)
    return FolderUse(by_day=by_day, providers=providers, simulated_note=calls.simulated_note)


def _key(row: dict[str, Any], when: str) -> tuple[BillNames, Any]:
    return BillNames(row["alias"], row["model_id"], row["served"]), row[when]


def _of(row: dict[str, Any]) -> Ours:
    return Ours(**{name: row[name] or 0 for name in Ours.__slots__ if name in row})
