"""Every call of a results folder with its tokens by kind, and what it costs: as served, or otherwise.

`keep_calls` reads the calls of some views into their table `calls`, `CallPrices.put_rates` puts a table of
what tokens cost beside it, and `PRICED` are the calls with their dollars.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.notes import note_of_simulated
from asyncbench.analysis.repricing import known_rates
from asyncbench.pricing import PERIOD_S, Rates, RatesAt, tier_of
from asyncbench.providers.endpoints import is_simulated
from asyncbench.records import BATCH, REALTIME, Sent

TOKEN_KINDS: Final = ("uncached_input", "cached_input", "cache_write_5m", "cache_write_1h", "output")
AS_SERVED: Final = "as served"
OPEN: Final = "open"  # suite, task and outcome of a trial that is not finished
NEAR: Final = 1e-9  # of a call's cost: by no more may its parts miss it

_RATE_OF: Final = {
    "uncached_input": "input",
    "cached_input": "cached_input",
    "cache_write_5m": "cache_write",
    "cache_write_1h": "cache_write_1h",
    "output": "output",
}
_SERVED: Final = ("model", "model_id", "service_tier", "speed", "place", "period")  # what a price depends on
_WAYS: Final = f"SELECT DISTINCT {', '.join(_SERVED)} FROM calls"  # noqa: S608  made of our own words alone
_MOST: Final = 2**63 - 1  # input tokens of a request: no bracket ends above

# `period`: the quarters of an hour since 1970. `speed` and `place` are Anthropic's words, as `tier_of` takes
# them. `tokens_…` of each kind are NULL where any is unknown, or where parts exceed their whole.
_CALLS = f"""
WITH asked AS (
    SELECT trial_id, suite, task, outcome, model_id, model_served, service_tier FROM trials
), made AS (
    SELECT attempts.model, coalesce(asked.model_id, alone.model_id) AS model_id, model_served,
        coalesce(mode, '{REALTIME}') AS mode,
        CASE mode WHEN '{BATCH}' THEN '{BATCH}' WHEN '{REALTIME}' THEN nullif(service_tier, '{BATCH}')
            ELSE service_tier END AS service_tier,
        coalesce(regexp_extract(raw_usage, '"speed":"([^"]*)"', 1), '') AS speed,
        coalesce(regexp_extract(raw_usage, '"inference_geo":"([^"]*)"', 1), '') AS place,
        epoch_us(started_at) // {PERIOD_S * 1_000_000} AS period, started_at,
        coalesce(suite, '{OPEN}') AS suite, coalesce(task, '{OPEN}') AS task,
        coalesce(outcome, '{OPEN}') AS outcome, provider, status, attempt,
        input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost_usd,
        coalesce(reserved_usd, most_usd) AS bound_usd,
        coalesce(cached_input_tokens, 0) AS cached, coalesce(cache_write_tokens, 0) AS written,
        CASE WHEN written > 0 THEN coalesce(TRY_CAST(
            json_extract(raw_usage, '$.cache_creation.ephemeral_1h_input_tokens') AS BIGINT
        ), 0) ELSE 0 END AS hour,
        input_tokens - cached - written >= 0 AND written >= hour AND output_tokens IS NOT NULL AS fits
    FROM attempts LEFT JOIN asked USING (trial_id) LEFT JOIN alone ON alone.model = attempts.model
)
SELECT * EXCLUDE (cached, written, hour, fits),
    CASE WHEN fits THEN input_tokens - cached - written END AS tokens_uncached_input,
    CASE WHEN fits THEN cached END AS tokens_cached_input,
    CASE WHEN fits THEN written - hour END AS tokens_cache_write_5m,
    CASE WHEN fits THEN hour END AS tokens_cache_write_1h,
    CASE WHEN fits THEN output_tokens END AS tokens_output
FROM made
"""  # noqa: S608  made of our own words alone


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPrices:
    """What the calls of a folder cost, which its views have as the table `calls`."""

    views: FolderViews
    rates: Mapping[tuple[str, str | None], RatesAt]  # by alias and model id; by alias alone for open trials
    model_ids: Mapping[str, str]  # by alias, of models that have one only
    simulated_note: str  # what to say if the simulator answered any of it; empty: it did not

    def put_rates(self, name: str, *, tier: str | None = AS_SERVED, at_s: float | None = None) -> None:
        """Put a table of what a token of each kind costs in each call, USD; NULL where no price is known.

        Args:
            name: of the table, for `joined`.
            tier: as if served so, None: the standard way; `AS_SERVED`: as each was.
            at_s: as if made then, seconds since 1970; None: when each was.
        """
        rows: list[dict[str, object]] = []
        for served in self.views.rows(_WAYS):
            said = {"speed": served["speed"] or None, "inference_geo": served["place"] or None}
            way = tier_of(served["service_tier"], said) if tier == AS_SERVED else tier
            rates = self.rates.get((served["model"], served["model_id"]))
            found = rates(way, served["period"] * PERIOD_S if at_s is None else at_s) if rates else None
            rows += ({**served, **bracket} for bracket in _brackets(found))
        self.views.put(name, pa.Table.from_pylist(rows, _RATES))


_RATES: Final = pa.schema(
    [
        *(pa.field(name, pa.int64() if name == "period" else pa.string()) for name in _SERVED),
        *(pa.field(name, pa.int64()) for name in ("above", "up_to")),
        *(pa.field(kind, pa.float64()) for kind in TOKEN_KINDS),
    ]
)


def _brackets(rates: Rates | None) -> list[dict[str, object]]:
    """Return a model's rates, USD for a token, with the input tokens of the requests that they hold for."""
    if rates is None:
        return [{"above": -1, "up_to": _MOST}]
    starts = [-1, *(bracket.above for bracket in rates.brackets[1:]), _MOST]
    return [
        {"above": starts[n], "up_to": starts[n + 1]}
        | {kind: float(getattr(bracket, rate).scaleb(-6)) for kind, rate in _RATE_OF.items()}
        for n, bracket in enumerate(rates.brackets)
    ]


def keep_calls(views: FolderViews) -> CallPrices:
    """Keep every call that is over, with its trial, as the table `calls`; `rates` are those as served.

    Raises:
        ConfigError: the sweep.yaml of the folder cannot be read.
        StoreError: what it holds cannot be read.
    """
    rates = known_rates(views, lambda: views.rows("SELECT DISTINCT model, provider, model_id FROM trials"))
    ids: dict[str, set[str]] = {}
    for alias, model_id in rates:
        if model_id is not None:
            ids.setdefault(alias, set()).add(model_id)
    model_ids = {alias: min(known) for alias, known in ids.items() if len(known) == 1}
    views.put("alone", pa.table({"model": [*model_ids], "model_id": [*model_ids.values()]}, _ALONE))
    views.keep("calls", _CALLS)
    providers = [row["provider"] for row in views.rows("SELECT DISTINCT provider FROM calls")]
    known = bool(views.manifest.get("simulated")) or any(map(is_simulated, providers))
    note = note_of_simulated(views, known=known)
    found = CallPrices(views=views, rates=rates, model_ids=model_ids, simulated_note=note)
    found.put_rates("rates")
    return found


_ALONE: Final = pa.schema([("model", pa.string()), ("model_id", pa.string())])


def bound_of(sent: Sent) -> float | None:
    """Return the most that a call without an end counts for, USD; None: nobody knows."""
    return sent.most_usd if sent.reserved_usd is None else sent.reserved_usd


def joined(name: str) -> str:
    """Return the join of `calls` with a table of rates."""
    alike = " AND ".join(f"calls.{column} IS NOT DISTINCT FROM {name}.{column}" for column in _SERVED)
    inputs = "coalesce(calls.input_tokens, 0)"
    return f"JOIN {name} ON {alike} AND {inputs} > {name}.above AND {inputs} <= {name}.up_to"


def whole(name: str) -> str:
    """Return what a call costs by a table of rates, USD; NULL where its tokens or their price are unknown."""
    return " + ".join(f"tokens_{kind} * {name}.{kind}" for kind in TOKEN_KINDS)


def _part(usd: str) -> str:
    part = f"CASE WHEN split AND cost_usd <> 0 THEN coalesce({usd}, 0) ELSE 0 END"
    return f"CASE WHEN cost_usd IS NOT NULL THEN {part} END"


# The calls with `usd_…` of each kind of token, `usd_reasoning` (of output) and `usd_not_split`,
# and `rate_…`, USD for a token. What a call
# costs is what was written down when it was made. It is split where today's price table, at the call's own
# day and tier, comes to the same; else all of it is `usd_not_split`: a provider's own bill, a recorded cost,
# another version of the table. NULL where the cost is unknown.
PRICED: Final = f"""
SELECT calls.*,
    coalesce(abs({whole("rates")} - cost_usd) <= abs(cost_usd) * {NEAR}, false) OR cost_usd = 0 AS split,
    {", ".join(f"{_part(f'tokens_{kind} * rates.{kind}')} AS usd_{kind}" for kind in TOKEN_KINDS)},
    {_part("reasoning_tokens * rates.output")} AS usd_reasoning,
    {", ".join(f"rates.{kind} AS rate_{kind}" for kind in TOKEN_KINDS)},
    CASE WHEN cost_usd IS NOT NULL THEN CASE WHEN split THEN 0 ELSE cost_usd END END AS usd_not_split
FROM calls {joined("rates")}
"""  # noqa: S608  made of our own words alone
