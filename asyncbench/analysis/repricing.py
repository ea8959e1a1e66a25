"""Cost of a folder's calls at today's prices; the folder stays as it is."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import pyarrow as pa

from asyncbench.analysis.counting import FolderViews
from asyncbench.pricing import RatesAt, cost_usd, rates_at, tier_of
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.prices import rates_of
from asyncbench.providers.usage import from_anthropic
from asyncbench.providers.wire import mapping_in
from asyncbench.records import BATCH, REALTIME, Usage
from asyncbench.store.manifest import kept_sweep_file

_TOKENS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")
TRIAL_COLUMNS = (
    *("trial_id", "model", "provider", "model_id", "service_tier"),
    *(*_TOKENS, "cost_usd", "finished_at", "reused_from"),
)
ATTEMPT_COLUMNS = (
    *("trial_id", "model", "status", "started_at", "mode"),
    *(*_TOKENS, "cost_usd", "raw_usage"),
)
BATCH_ROWS: Final = 4096
Row = Mapping[str, Any]  # Any: of one of the tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpriced:
    """Calls of one model that have no price today, and why."""

    model: str
    why: str
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repriced:
    """The tables with today's `cost_usd`, and who says so."""

    trials: pa.Table
    attempts: pa.Table
    sources: tuple[str, ...]  # whose prices they are, such as `sweep` or `genai-prices 0.2.3`
    unpriced: tuple[Unpriced, ...]


def repriced(views: FolderViews, trials: pa.Table, attempts: pa.Table, *, now: datetime) -> Repriced:
    """Price every answered call again, as if it were made today at the hour at which it was made.

    A price in the folder's sweep.yaml comes first, then the published one of the tier that served the
    call. A provider's own bill is of that day, and does not count. Calls that were refused still cost 0;
    where nobody knows whether a call was billed, its cost stays unknown.

    Args:
        views: of the results folders.
        trials: `trials` with at least `TRIAL_COLUMNS`.
        attempts: `attempts` with at least `ATTEMPT_COLUMNS`.
        now: whose day counts, UTC.

    Raises:
        ConfigError: the folder's sweep.yaml cannot be read.
    """
    prices = _Prices(views, trials, now)
    attempt_costs = [prices.of_attempt(row) for row in _rows(attempts, ATTEMPT_COLUMNS)]
    by_trial: dict[str | None, float | None] = {}  # None: that of any of its calls is unknown
    for trial_id, cost in zip(attempts["trial_id"].to_pylist(), attempt_costs, strict=True):
        before = by_trial.get(trial_id, 0.0)
        by_trial[trial_id] = None if before is None or cost is None else before + cost
    trial_costs = [
        by_trial[row["trial_id"]] if row["trial_id"] in by_trial else prices.of_trial(row)
        for row in _rows(trials, TRIAL_COLUMNS)
    ]
    return Repriced(
        trials=_with_costs(trials, trial_costs),
        attempts=_with_costs(attempts, attempt_costs),
        sources=tuple(sorted(prices.sources)),
        unpriced=tuple(
            Unpriced(model=model, why=why, calls=calls)
            for (model, why), calls in sorted(prices.unpriced.items())
        ),
    )


class _Prices:
    """Today's prices for the calls of a folder, and a note of each that has none."""

    def __init__(self, views: FolderViews, trials: pa.Table, now: datetime) -> None:
        self.sources: set[str] = set()
        self.unpriced: Counter[tuple[str, str]] = Counter()
        self._rates = known_rates(
            views, lambda: trials.group_by(["model", "provider", "model_id"]).aggregate([]).to_pylist()
        )
        served = _rows(trials, ("trial_id", "model_id", "service_tier"))
        self._trials = {row["trial_id"]: (row["model_id"], row["service_tier"]) for row in served}
        self._today = now.astimezone(UTC).date()

    def of_attempt(self, row: Row) -> float | None:
        """Return what a call costs today; what was never answered costs what it cost then."""
        if row["status"] != "ok":
            if row["cost_usd"] is None:
                self.unpriced[row["model"], "unknown whether it was billed"] += 1
            cost: float | None = row["cost_usd"]
            return cost
        raw = mapping_in(orjson.loads(row["raw_usage"])) if row["raw_usage"] else {}
        model_id, service_tier = self._trials.get(row["trial_id"], (None, None))
        usage = _usage(row, cache_write_1h=from_anthropic(raw).cache_write_1h_tokens)
        tier = tier_of(tier_of_call(row["mode"], service_tier), raw)
        return self._cost(row["model"], model_id, usage, tier, row["started_at"])

    def of_trial(self, row: Row) -> float | None:
        """Return what a trial costs today whose calls nobody wrote down: imported, or taken over."""
        if row["reused_from"] is not None:
            return 0.0
        tier = tier_of(row["service_tier"], None)
        return self._cost(row["model"], row["model_id"], _usage(row), tier, row["finished_at"])

    def _cost(
        self, model: str, model_id: str | None, usage: Usage, tier: str | None, made_at: datetime
    ) -> float | None:
        rates = self._rates.get((model, model_id))
        at_s = datetime.combine(self._today, made_at.timetz()).timestamp()
        current = rates(tier, at_s) if rates else None
        cost = cost_usd(usage, current)
        if cost is None:
            self.unpriced[model, _why(rates, tier, at_s, priced=current is not None)] += 1
        elif current is not None:
            self.sources.add(current.source)
        return cost


def tier_of_call(mode: str | None, service_tier: str | None) -> str | None:
    """Return how a call was served whose trial was served so: a trial may be asked in both modes."""
    if mode == BATCH:
        return BATCH
    return None if mode == REALTIME and service_tier == BATCH else service_tier


def _why(rates: RatesAt | None, tier: str | None, at_s: float, *, priced: bool) -> str:
    if rates is None:
        return "no longer in the folder's sweep.yaml"
    if priced:
        return "its tokens are unknown"
    return f"no price is known for tier {tier!r}" if tier and rates(None, at_s) else "no price is known"


def known_rates(
    views: FolderViews, list_models: Callable[[], Iterable[Row]]
) -> dict[tuple[str, str | None], RatesAt]:
    """Return the prices of every model, by alias and model id; by alias alone for trials that are open.

    An imported folder has no sweep: there, providers are taken at their word and at their list price.

    Args:
        views: of the results folders.
        list_models: returns model, provider and model_id of all who were asked; called only where there is
            no sweep.
    """
    sweeps = {label: sweep_file for label, path in views.folders if (sweep_file := kept_sweep_file(path))}
    models = list[tuple[str, str, RatesAt]]()
    if len(sweeps) < len(views.chosen.paths):
        rows = list_models()
        models = [(row["model"], row["model_id"], _listed(row["provider"], row["model_id"])) for row in rows]
    for label, sweep_file in sweeps.items():
        from asyncbench.config.sweep import priced_models

        models += (
            (views.called(label, model.alias), model.model_id, rates_of(model))
            for model in priced_models(sweep_file)
        )
    return {key: rates for alias, model_id, rates in models for key in ((alias, model_id), (alias, None))}


def _listed(provider: str, model_id: str) -> RatesAt:
    endpoint = known_endpoints().get(provider)
    return rates_at(model_id, price=None, vendor=endpoint.prices if endpoint else None)


def _rows(table: pa.Table, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a table, a batch of them at a time: as dicts they take far more room."""
    for batch in table.select(columns).to_batches(max_chunksize=BATCH_ROWS):
        yield from batch.to_pylist()


def _usage(row: Row, *, cache_write_1h: int | None = None) -> Usage:
    return Usage(**{name: row[name] for name in _TOKENS}, cache_write_1h_tokens=cache_write_1h)


def _with_costs(table: pa.Table, costs: Sequence[float | None]) -> pa.Table:
    column = pa.array(costs, pa.float64())
    return table.set_column(table.schema.get_field_index("cost_usd"), "cost_usd", column)
