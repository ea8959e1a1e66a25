"""Calls of a results folder with their tokens by kind and their cost.

`keep_calls` reads the calls of some views into their table `calls`, and puts `rates`, the price of tokens,
beside it. `PRICED` are the calls with their dollars.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.served import note_of_simulated
from asyncbench.analysis.views import CALLS_OF_ENTRANTS, counts_by
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.pricing import PERIOD_S, RatesAt, rates_at, tier_of
from asyncbench.providers.endpoints import is_simulated, known_endpoints
from asyncbench.providers.prices import rates_of
from asyncbench.records import BATCH, REALTIME, Sent
from asyncbench.store.manifest import kept_sweep_file
from asyncbench.store.schema import ENTRANT, LOST
from asyncbench.tables.data import in_data
from asyncbench.tables.numbers import known_cost

TOKEN_KINDS: Final = ("uncached_input", "cached_input", "cache_write_5m", "cache_write_1h", "output")
OPEN: Final = "open"  # suite, task and outcome of a trial that is not finished
NEAR: Final = 1e-9  # the sum of a call's parts may differ from its cost by this share of it

_RATE_OF: Final = {
    "uncached_input": "input",
    "cached_input": "cached_input",
    "cache_write_5m": "cache_write",
    "cache_write_1h": "cache_write_1h",
    "output": "output",
}
_SERVED: Final = ("model", "model_id", "service_tier", "speed", "place", "period")  # what a price depends on
_SERVICES: Final = f"SELECT DISTINCT {', '.join(_SERVED)} FROM calls"  # noqa: S608  made of our own words alone
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


def _put_rates(views: FolderViews, rates: Mapping[tuple[str, str | None], RatesAt]) -> None:
    """Put the table `rates`: USD of a token of each kind in each call; NULL where no price is known.

    A price may have brackets: each is a row, with the input tokens of the requests that it holds for.
    """
    rows: list[dict[str, object]] = []
    for served in views.rows(_SERVICES):
        usage = {"speed": served["speed"] or None, "inference_geo": served["place"] or None}
        tier = tier_of(served["service_tier"], usage)
        rates_then = rates.get((served["model"], served["model_id"]))
        price = rates_then(tier, served["period"] * PERIOD_S) if rates_then else None
        if price is None:
            rows.append({**served, "above": -1, "up_to": _MOST})
            continue
        starts = [-1, *(bracket.above for bracket in price.brackets[1:]), _MOST]
        for n, bracket in enumerate(price.brackets):
            usd = {kind: float(getattr(bracket, rate).scaleb(-6)) for kind, rate in _RATE_OF.items()}
            rows.append({**served, "above": starts[n], "up_to": starts[n + 1], **usd})
    views.put("rates", pa.Table.from_pylist(rows, _RATES))


_RATES: Final = pa.schema(
    [
        *(pa.field(name, pa.int64() if name == "period" else pa.string()) for name in _SERVED),
        *(pa.field(name, pa.int64()) for name in ("above", "up_to")),
        *(pa.field(kind, pa.float64()) for kind in TOKEN_KINDS),
    ]
)


def keep_calls(views: FolderViews) -> tuple[str, dict[str, str]]:
    """Keep every call that has ended, with its trial, as the table `calls`, and put the table `rates`.

    Returns:
        The note that results are simulated, empty if they are not; and the model id of each alias that has
        only one.

    Raises:
        ConfigError: the sweep.yaml of a folder cannot be read.
        StoreError: a folder cannot be read.
    """
    rates = _known_rates(views)
    ids: dict[str, set[str]] = {}
    for alias, model_id in rates:
        if model_id is not None:
            ids.setdefault(alias, set()).add(model_id)
    model_ids = {alias: min(names) for alias, names in ids.items() if len(names) == 1}
    views.put("alone", pa.table({"model": [*model_ids], "model_id": [*model_ids.values()]}, _ALONE))
    views.keep("calls", _CALLS)
    providers = [row["provider"] for row in views.rows("SELECT DISTINCT provider FROM calls")]
    simulated = bool(views.manifest.get("simulated")) or any(map(is_simulated, providers))
    _put_rates(views, rates)
    return note_of_simulated(views, simulated=simulated), model_ids


def _known_rates(views: FolderViews) -> dict[tuple[str, str | None], RatesAt]:
    """Return the prices of every model, by (alias, model id), and by (alias, None) for trials that are open.

    An imported folder has no sweep: there, the provider that its trials name gives its list price.
    """
    sweeps = {label: sweep_file for label, path in views.folders if (sweep_file := kept_sweep_file(path))}
    models = list[tuple[str, str, RatesAt]]()
    if len(sweeps) < len(views.chosen.paths):
        for row in views.rows("SELECT DISTINCT model, provider, model_id FROM trials"):
            endpoint = known_endpoints().get(row["provider"])
            vendor = endpoint.prices if endpoint else None
            models.append(
                (row["model"], row["model_id"], rates_at(row["model_id"], price=None, vendor=vendor))
            )
    for label, sweep_file in sweeps.items():
        from asyncbench.config.sweep import priced_models

        models += (
            (views.called(label, model.alias), model.model_id, rates_of(model))
            for model in priced_models(sweep_file)
        )
    return {key: rates for alias, model_id, rates in models for key in ((alias, model_id), (alias, None))}


_ALONE: Final = pa.schema([("model", pa.string()), ("model_id", pa.string())])


def bound_of(sent: Sent) -> float | None:
    """Return the most USD that a call without an end may cost, or None if that is unknown."""
    return sent.most_usd if sent.reserved_usd is None else sent.reserved_usd


_ALIKE: Final = " AND ".join(f"calls.{column} IS NOT DISTINCT FROM rates.{column}" for column in _SERVED)
_INPUT: Final = "coalesce(calls.input_tokens, 0)"
_BY_RATES: Final = " + ".join(f"tokens_{kind} * rates.{kind}" for kind in TOKEN_KINDS)


def _part(usd: str) -> str:
    amount = f"CASE WHEN split AND cost_usd <> 0 THEN coalesce({usd}, 0) ELSE 0 END"
    return f"CASE WHEN cost_usd IS NOT NULL THEN {amount} END"


# What reading from a cache saved, less what writing to it cost more than plain input.
_SAVED: Final = (
    "tokens_cached_input * (rates.uncached_input - rates.cached_input)"
    " - tokens_cache_write_5m * (rates.cache_write_5m - rates.uncached_input)"
    " - tokens_cache_write_1h * (rates.cache_write_1h - rates.uncached_input)"
)

# The calls with `usd_…` of each kind of token, `usd_reasoning` (of output) and `usd_not_split`, and
# `usd_saved` by caches.
# What a call costs is what was written down when it was made. It is split where today's price table, at the
# call's own day and tier, comes to the same; else all of it is `usd_not_split`: a provider's own bill, a
# recorded cost, another version of the table. NULL where the cost is unknown.
PRICED: Final = f"""
SELECT calls.*,
    coalesce(abs({_BY_RATES} - cost_usd) <= abs(cost_usd) * {NEAR}, false) OR cost_usd = 0 AS split,
    {", ".join(f"{_part(f'tokens_{kind} * rates.{kind}')} AS usd_{kind}" for kind in TOKEN_KINDS)},
    {_part("reasoning_tokens * rates.output")} AS usd_reasoning,
    {_part(_SAVED)} AS usd_saved,
    CASE WHEN cost_usd IS NOT NULL THEN CASE WHEN split THEN 0 ELSE cost_usd END END AS usd_not_split
FROM calls JOIN rates ON {_ALIKE} AND {_INPUT} > rates.above AND {_INPUT} <= rates.up_to
"""  # noqa: S608  made of our own words alone

# ── Where a folder's money went: its calls counted by model, suite, task, outcome, and kind of token


OK_STATUS: Final = "ok"
NO_TOKENS: Final = "the provider reported no tokens"
NO_PRICE: Final = "no price is known"
MAYBE_BILLED: Final = "unknown whether it was billed"
CostKey = tuple[str, ...]
CELL_KEYS: Final = ("model", "suite", "task", "outcome", "status")
GROUPS: Final = ((), ("model",), ("suite", "task"), ("outcome",), ("status",), ("mode",), CELL_KEYS)
_KEYS: Final = (*CELL_KEYS, "mode")
_USD = (*TOKEN_KINDS, "reasoning", "not_split")
_TOKENS = (*TOKEN_KINDS, "reasoning")

_COSTS = f"""
SELECT {", ".join(_KEYS)}, count(*) AS calls,
    count(*) FILTER (cost_usd IS NULL) AS unknown,
    sum_usd(CASE WHEN cost_usd IS NULL THEN bound_usd END) AS unknown_reserved_usd,
    count(*) FILTER (cost_usd IS NULL AND bound_usd IS NULL) AS unknown_unbounded,
    count(*) FILTER (untold) AS unbilled_tokens,
    sum_usd(CASE WHEN untold THEN bound_usd END) AS unbilled_reserved_usd,
    count(*) FILTER (untold AND bound_usd IS NULL) AS unbilled_unbounded,
    sum_usd(cost_usd) AS usd, sum_usd(usd_saved) AS usd_saved,
    {", ".join(f"sum_usd(usd_{kind}) AS usd_{kind}" for kind in _USD)},
    {", ".join(f"sum(tokens_{kind})::BIGINT AS tokens_{kind}" for kind in _TOKENS)},
    sum(told)::BIGINT AS tokens, (sum(told) FILTER (cost_usd IS NOT NULL))::BIGINT AS priced_tokens,
    count(*) FILTER (attempt > 1) AS calls_again,
    sum_usd(CASE WHEN attempt > 1 THEN cost_usd END) AS usd_again
FROM (
    SELECT *, reasoning_tokens AS tokens_reasoning, input_tokens + output_tokens AS told,
        cost_usd IS NULL AND status = '{OK_STATUS}' AND told IS NULL AS untold
    FROM ({PRICED})
) GROUP BY GROUPING SETS ({", ".join(f"({', '.join(keys)})" for keys in GROUPS)})
ORDER BY {", ".join(_KEYS)}
"""  # noqa: S608  made of our own words alone


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCosts:
    """What a group of calls used and cost; dollars are of the calls whose cost is known."""

    calls: int
    unknown: int  # calls whose cost is unknown
    unknown_reserved_usd: float  # the most that these can have cost, of those that have an upper limit
    unknown_unbounded: int  # the number of these that have no upper limit
    unbilled_tokens: int  # answered calls of unknown cost because the provider reported no tokens
    unbilled_reserved_usd: float  # the most that these can have cost, of those that have an upper limit
    unbilled_unbounded: int  # the number of these that have no upper limit
    usd: float
    usd_saved: float  # by caches, where the cost is split by kind; negative: writing cost more than it saved
    usd_by_kind: Mapping[str, float]  # with `reasoning`, which is included in the output
    tokens_by_kind: Mapping[str, int]
    tokens: int  # input and output
    priced_tokens: int  # the tokens of calls whose cost is known
    calls_again: int  # calls of a trial after its first
    usd_again: float

    @property
    @in_data("usd")
    def known_usd(self) -> float | None:
        """The dollars of all calls, or None if no call has a known cost."""
        return known_cost(self.usd, unknown=self.unknown)

    @property
    @in_data("cached_share")
    def cached_share(self) -> float | None:
        """The share of the input that was read from a cache; 1 is all of it."""
        kinds = self.tokens_by_kind
        whole = sum(kinds[kind] for kind in TOKEN_KINDS if kind != "output")
        return kinds["cached_input"] / whole if whole else None


def call_costs(views: FolderViews) -> dict[tuple[str, ...], dict[CostKey, CallCosts]]:
    """Return the costs of calls by each of `GROUPS`, and by its values; call `keep_calls` first.

    Calls of open trials have `OPEN` for suite, task and outcome.
    """
    costs: dict[tuple[str, ...], dict[CostKey, CallCosts]] = {keys: {} for keys in GROUPS}
    for row in views.rows(_COSTS):
        group = {key: value for key in _KEYS if (value := row.pop(key)) is not None}
        row = {name: value or 0 for name, value in row.items()}
        usd = {kind: row.pop(f"usd_{kind}") for kind in _USD}
        tokens = {kind: row.pop(f"tokens_{kind}") for kind in _TOKENS}
        costs[(*group,)][(*group.values(),)] = CallCosts(usd_by_kind=usd, tokens_by_kind=tokens, **row)
    return costs


# Calls without a known cost by what is missing, the commonest first. `reserved_usd`: the most that they can
# have cost, of those that have an upper limit; `unbounded`: the number of those that have none.
_UNKNOWN: Final = f"""
SELECT CASE WHEN status = '{LOST}' THEN 'ended unseen: {MAYBE_BILLED}'
        WHEN status <> '{OK_STATUS}' THEN status || ': {MAYBE_BILLED}'
        WHEN input_tokens + output_tokens IS NULL THEN '{NO_TOKENS}' ELSE '{NO_PRICE}' END AS cause,
    count(*) AS calls, sum_usd(bound_usd) AS reserved_usd, count(*) - count(bound_usd) AS unbounded
FROM calls WHERE cost_usd IS NULL GROUP BY ALL ORDER BY calls DESC, cause
"""  # noqa: S608  made of our own words alone


def unknown_by_cause(views: FolderViews) -> list[dict[str, Any]]:
    """Return the calls without a cost by what is missing; call `keep_calls` first."""
    return [row | {"reserved_usd": row["reserved_usd"] or 0} for row in views.rows(_UNKNOWN)]


# ── replies without a count ──────────────────────────────────────────────────────────────────


# Replies of a model without a count of their output tokens, and an estimate by their length: the characters
# of replies, and of the thinking that they show. `measured`: on the model's replies with a count, of whose
# tokens hidden thinking is no part; else assumed. The estimate stands alone: no sum takes it up, and thinking
# that a reply does not show is not in it.
_REPLIES: Final = f"""
SELECT model, replies, characters,
    CASE WHEN measured THEN told_characters / told_tokens ELSE {CHARACTERS_PER_TOKEN} END::DOUBLE
        AS characters_per_token,
    measured, round_even(characters / characters_per_token, 0)::BIGINT AS estimated_output_tokens
FROM (
    SELECT model, count(*) FILTER (output_tokens IS NULL) AS replies,
        (sum(characters) FILTER (output_tokens IS NULL))::BIGINT AS characters,
        coalesce(sum(characters) FILTER (output_tokens IS NOT NULL), 0)::BIGINT AS told_characters,
        coalesce(sum(output_tokens - hidden), 0)::BIGINT AS told_tokens,
        told_characters > 0 AND told_tokens > 0 AS measured
    FROM (
        SELECT model, output_tokens, length(reply_text)  -- thinking may stand in it
            + if(contains(reply_text, coalesce(reasoning_text, '')), 0, length(reasoning_text)) AS characters,
            CASE WHEN reasoning_text IS NULL THEN coalesce(reasoning_tokens, 0) ELSE 0 END AS hidden
        FROM trials WHERE reused_from IS NULL AND reply_text IS NOT NULL
    ) GROUP BY model HAVING replies > 0
) ORDER BY model
"""  # noqa: S608  made of our own words alone


def untold_in(views: FolderViews) -> list[dict[str, Any]]:
    """Return the replies without a count, by model; all replies are read."""
    return views.rows(_REPLIES)


# ── What was spent on each entrant: its calls, dollars and tokens, beside its trials


# A sum is of the calls that report the amount; NULL: no call does. The cost is unknown of calls without an
# answer (they may be billed or not), and of calls whose provider reported no tokens. Answers taken over from
# another sweep cost nothing here and do not count. Calls of open trials have neither run nor condition where
# the model has several.
_SPENT: Final = f"""
WITH {CALLS_OF_ENTRANTS}, spent AS (
    SELECT run, model, condition, count(*) AS calls, count(*) FILTER (cost_usd IS NULL) AS unknown,
        count(*) FILTER (cost_usd IS NULL AND status <> 'ok') AS unknown_failed,
        count(*) FILTER (cost_usd IS NULL AND status = 'ok'
            AND (input_tokens IS NULL OR output_tokens IS NULL)) AS unknown_tokens,
        spent_usd(cost_usd) AS cost_usd,
        sum(input_tokens)::BIGINT AS input_tokens, sum(cached_input_tokens)::BIGINT AS cached_input_tokens,
        sum(output_tokens)::BIGINT AS output_tokens, sum(reasoning_tokens)::BIGINT AS reasoning_tokens
    FROM entrant_calls GROUP BY ALL
), here AS (
    SELECT run, model, condition, trials, correct
    FROM ({counts_by("(FROM trials WHERE reused_from IS NULL AND load IS NULL)", ENTRANT)})
)
SELECT coalesce(run, '') AS run, model, coalesce(condition, '') AS condition,
    spent.* EXCLUDE (run, model, condition), coalesce(trials, 0) AS trials, coalesce(correct, 0) AS correct,
    1000 * cost_usd / nullif(trials, 0) AS per_1000, cost_usd / nullif(correct, 0) AS per_correct,
    cached_input_tokens / nullif(input_tokens, 0) AS cached_share
FROM spent LEFT JOIN here USING (run, model, condition) ORDER BY ALL
"""  # noqa: S608  made of our own words alone


def spending_by_entrant(views: FolderViews) -> list[dict[str, Any]]:
    """Return the spending on each entrant."""
    return views.rows(_SPENT)
