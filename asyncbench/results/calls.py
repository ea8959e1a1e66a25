"""Every call of a results folder with its trial, its tokens by kind, and its dollars by kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute

from asyncbench.pricing import PERIOD_S, Rates, RatesAt, tier_of
from asyncbench.providers import from_anthropic, is_simulated, mapping_in
from asyncbench.records import Sent
from asyncbench.results.repricing import known_rates
from asyncbench.store import Snapshot, read_manifest, steady

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar", which no arithmetic accepts
Column = Any  # pa.ChunkedArray or pa.Array, of any type

TOKEN_KINDS: Final = ("uncached_input", "cached_input", "cache_write_5m", "cache_write_1h", "output")
AS_SERVED: Final = "as served"
NEAR: Final = 1e-9  # of a call's cost: by no more may its parts miss it
ROWS: Final = 65_536  # at a time: the accounts of a million calls are large

_TOKENS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
_OF_CALLS = (
    *("trial_id", "attempt", "model", "provider", "started_at", "status", *_TOKENS),
    *("cost_usd", "reserved_usd", "most_usd", "raw_usage"),
)
_OF_TRIALS = (
    *("trial_id", "run", "suite", "task", "outcome"),
    *("model_id", "model_served", "service_tier", "price_source"),
)
_ALL_TRIALS = (
    *(*_OF_TRIALS, "model", "provider", "reused_from"),
    *("input_tokens", "output_tokens", "cost_usd"),
)

RatesOf = Mapping[tuple[str, str | None], RatesAt]  # by alias and model id; by alias alone for open trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls of a folder.

    `table` has a row for each call that is over: columns of `attempts` and of its trial (NULL where that is
    open), `bound_usd` (what was set aside for it, or else the most that it could cost), `tokens_…` of each of
    `TOKEN_KINDS`, NULL where they are unknown, and `way`, what the account says of how it was served beside
    the service tier.
    """

    table: pa.Table
    trials: pa.Table  # model, suite, task, outcome, reused_from …: one row a finished trial
    unended: tuple[Sent, ...]  # calls without an end: in flight, or lost when no run is going
    rates: RatesOf
    model_ids: Mapping[str, str]  # by alias, of models that have one only
    simulated: bool  # whether any of it was answered by the simulator


def calls_of(folder: Path) -> Calls:
    """Return every call of a results folder.

    Raises:
        ConfigError: it is not a results folder, or its sweep.yaml cannot be read.
        StoreError: what it holds cannot be read.
    """
    trials, made, unended = steady(folder, _read)
    joined = made.join(trials.select(list(_OF_TRIALS)), "trial_id")
    rates = known_rates(
        folder, lambda: trials.group_by(["model", "provider", "model_id"]).aggregate([]).to_pylist()
    )
    model_ids = _model_ids(rates)
    return Calls(
        table=_by_kind(_of_open_trials(joined, model_ids)),
        trials=trials,
        unended=unended,
        rates=rates,
        model_ids=model_ids,
        simulated=bool(read_manifest(folder).get("simulated")) or _any_simulated(made),
    )


def _model_ids(rates: RatesOf) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for alias, model_id in rates:
        if model_id is not None:
            found.setdefault(alias, set()).add(model_id)
    return {alias: ids.pop() for alias, ids in found.items() if len(ids) == 1}


def _of_open_trials(rows: pa.Table, model_ids: Mapping[str, str]) -> pa.Table:
    """Return the calls with the model ids of those whose trial has no row yet."""
    places = pc.index_in(rows["model"], value_set=pa.array(list(model_ids), pa.string()))
    known = pc.take(pa.array(list(model_ids.values()), pa.string()), places)
    column = pc.coalesce(rows["model_id"], known)
    return rows.set_column(rows.schema.get_field_index("model_id"), "model_id", column)


def _any_simulated(made: pa.Table) -> bool:
    return any(map(is_simulated, pc.unique(made["provider"]).to_pylist()))


def _read(snapshot: Snapshot) -> tuple[pa.Table, pa.Table, tuple[Sent, ...]]:
    trials = snapshot.read("trials", _ALL_TRIALS)
    batches = [_lighter(batch) for batch in snapshot.batches("attempts", _OF_CALLS, rows=ROWS)]
    if not batches:
        batches = [_lighter(snapshot.read("attempts", _OF_CALLS).combine_chunks())]
    return trials, pa.concat_tables(batches), tuple(snapshot.unfinished.sent.values())


def _lighter(batch: pa.RecordBatch | pa.Table) -> pa.Table:
    """Return calls with what their provider's accounts tell beyond token counts, instead of the accounts."""
    rows = pa.table(batch) if isinstance(batch, pa.RecordBatch) else batch
    written = pc.fill_null(pc.greater(rows["cache_write_tokens"], pa.scalar(0)), False)
    rows = rows.append_column("cache_write_1h_tokens", _written_1h(rows["raw_usage"], written))
    rows = rows.append_column("bound_usd", pc.coalesce(rows["reserved_usd"], rows["most_usd"]))
    rows = rows.append_column("way", _ways(rows["raw_usage"]))
    return rows.drop_columns(["raw_usage", "reserved_usd", "most_usd"])


def _written_1h(raw: Column, written: Column) -> Column:
    """Return the tokens written to a cache for an hour; only accounts of calls that wrote any are opened."""
    counts = [0] * len(raw)
    for place in pc.indices_nonzero(written).to_pylist():
        said = mapping_in(orjson.loads(raw[place].as_py() or "{}"))
        counts[place] = from_anthropic(said).cache_write_1h_tokens or 0
    return pa.array(counts, pa.int64())


def _ways(raw: Column) -> Column:
    """Return the words for speed and place, as Anthropic's accounts have them, as one text."""
    words = []
    for name in ("speed", "inference_geo"):
        found = pc.extract_regex(raw, pattern=rf'"{name}":"(?P<word>[^"]*)"')
        words.append(pc.fill_null(pc.struct_field(found, "word"), ""))
    return pc.binary_join_element_wise(words[0], words[1], "\n")


def _by_kind(rows: pa.Table) -> pa.Table:
    """Add the tokens of each kind; NULL where any is unknown, or where parts exceed their whole."""
    cached, written, hour = (
        pc.fill_null(rows[name], 0)
        for name in ("cached_input_tokens", "cache_write_tokens", "cache_write_1h_tokens")
    )
    uncached = pc.subtract(pc.subtract(rows["input_tokens"], cached), written)
    minutes = pc.subtract(written, hour)
    fits = pc.and_(pc.greater_equal(uncached, 0), pc.greater_equal(minutes, 0))
    fits = pc.fill_null(pc.and_(fits, pc.is_valid(rows["output_tokens"])), False)
    for kind, counts in zip(
        TOKEN_KINDS, (uncached, cached, minutes, hour, rows["output_tokens"]), strict=True
    ):
        rows = rows.append_column(f"tokens_{kind}", pc.if_else(fits, counts, pa.scalar(None, pa.int64())))
    return rows


# ── what they cost ───────────────────────────────────────────────────────────────────────────


def with_dollars(calls: Calls) -> pa.Table:
    """Return the calls with `usd_…` of each kind of token, `usd_reasoning` (of output) and `usd_not_split`.

    What a call cost is what was written down when it was made. It is split where today's price table, at
    the call's own day and tier, comes to the same; else all of it is `usd_not_split`: a provider's own
    bill, a recorded cost, another version of the table. NULL where the cost is unknown.
    """
    rows = calls.table
    found = priced(calls)
    whole = sum_of([found[kind] for kind in TOKEN_KINDS])
    cost = rows["cost_usd"]
    near = pc.less_equal(pc.abs(pc.subtract(whole, cost)), pc.multiply(pc.abs(cost), NEAR))
    split = pc.or_kleene(pc.fill_null(near, False), pc.equal(cost, pa.scalar(0.0)))  # NULL: cost unknown
    for name, parts in found.items():
        rows = rows.append_column(f"usd_{name}", _if_split(split, cost, parts))
    return rows.append_column("usd_not_split", _if_known(cost, pc.if_else(split, pa.scalar(0.0), cost)))


def _if_split(split: Column, cost: Column, parts: Column) -> Column:
    known = pc.if_else(split, pc.fill_null(parts, 0.0), pa.scalar(0.0))
    return _if_known(cost, pc.if_else(pc.equal(cost, pa.scalar(0.0)), pa.scalar(0.0), known))


def _if_known(cost: Column, amounts: Column) -> Column:
    return pc.if_else(pc.is_valid(cost), amounts, pa.scalar(None, pa.float64()))


def priced(calls: Calls, *, tier: str | None = AS_SERVED, at_s: float | None = None) -> dict[str, Column]:
    """Return what each call costs by the price table: USD by kind, and `reasoning`, a part of the output.

    Args:
        calls: of one folder.
        tier: as if served so, None: the standard way; `AS_SERVED`: as each was.
        at_s: as if made then, seconds since 1970; None: when each was.
    """
    rows, rates = calls.table, rates_of_calls(calls, tier=tier, at_s=at_s)
    dollars = {kind: pc.multiply(rows[f"tokens_{kind}"], rates[kind]) for kind in TOKEN_KINDS}
    reasoning = pc.multiply(pc.fill_null(rows["reasoning_tokens"], 0), rates["output"])
    return dollars | {"reasoning": reasoning}


def rates_of_calls(
    calls: Calls, *, tier: str | None = AS_SERVED, at_s: float | None = None
) -> dict[str, Column]:
    """Return what a token of each kind costs in each call, USD; NULL where no price is known."""
    rows = calls.table
    which, distinct = _distinct(rows, tier, at_s)
    brackets, places = _brackets([_rates(calls.rates, one) for one in distinct], which, rows["input_tokens"])
    return {kind: pc.take(pa.array(column, pa.float64()), places) for kind, column in brackets.items()}


_Served = tuple[str, str | None, str | None, float]  # alias, model id, tier, seconds since 1970


def _distinct(rows: pa.Table, tier: str | None, at_s: float | None) -> tuple[Column, list[_Served]]:
    """Return for each call which of the distinct ways of being priced it has, and these ways."""
    period_us = PERIOD_S * 1_000_000
    started = rows["started_at"].cast(pa.int64())
    periods = pc.divide(started, period_us) if at_s is None else pc.multiply(started, 0)
    columns = [rows["model"], rows["model_id"], rows["service_tier"], rows["way"], periods]
    places, values = numbered(columns)
    return places, [
        (
            model,
            model_id,
            _tier(service_tier, way) if tier == AS_SERVED else tier,
            period * PERIOD_S if at_s is None else at_s,
        )
        for model, model_id, service_tier, way, period in values
    ]


def _tier(service_tier: str | None, way: str) -> str | None:
    speed, _, place = way.partition("\n")
    return tier_of(service_tier, {"speed": speed or None, "inference_geo": place or None})


def numbered(columns: Sequence[Column]) -> tuple[Column, list[tuple[Any, ...]]]:
    """Return for each row the number of its combination of values, and the combinations, by number."""
    code: Column = None
    values: list[list[Any]] = []
    for column in columns:
        found = column.combine_chunks().dictionary_encode(null_encoding="encode")
        values.append(found.dictionary.to_pylist())
        own = found.indices.cast(pa.int64())
        code = own if code is None else pc.add(pc.multiply(code, len(values[-1])), own)
    codes = code.dictionary_encode()
    return codes.indices, [_apart(one, values) for one in codes.dictionary.to_pylist()]


def _apart(code: int, values: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    parts = []
    for column in reversed(values):
        code, place = divmod(code, len(column))
        parts.append(column[place])
    return tuple(reversed(parts))


def _rates(rates: RatesOf, served: _Served) -> Rates | None:
    model, model_id, tier, at_s = served
    found = rates.get((model, model_id))
    return found(tier, at_s) if found else None


_Columns = dict[str, list[float | None]]


def _brackets(found: Sequence[Rates | None], which: Column, inputs: Column) -> tuple[_Columns, Column]:
    """Return the rates of all brackets as columns, USD for a token, and where in them each call's are."""
    most = max((len(one.brackets) for one in found if one), default=1)
    columns: _Columns = {kind: [] for kind in TOKEN_KINDS}
    above: list[list[int]] = [[] for _ in range(most)]
    for one in found:
        brackets = one.brackets if one else ()
        for n in range(most):
            bracket = brackets[min(n, len(brackets) - 1)] if brackets else None
            above[n].append(bracket.above if bracket else -1)
            for kind, rate in _RATE_OF.items():
                columns[kind].append(None if bracket is None else _per_token(getattr(bracket, rate)))
    reached: Column = pc.multiply(which.cast(pa.int64()), most)
    step: Column = pa.chunked_array([pa.nulls(len(which), pa.int64()).fill_null(0)])
    for n in range(1, most):
        over = pc.greater(inputs, pc.take(pa.array(above[n], pa.int64()), which))
        step = pc.if_else(pc.fill_null(over, False), pa.scalar(n, pa.int64()), step)
    return columns, pc.add(pa.chunked_array([reached]), step)


_RATE_OF: Final = {
    "uncached_input": "input",
    "cached_input": "cached_input",
    "cache_write_5m": "cache_write",
    "cache_write_1h": "cache_write_1h",
    "output": "output",
}


def _per_token(usd_a_million: Any) -> float:
    return float(usd_a_million.scaleb(-6))


def sum_of(columns: Sequence[Column]) -> Column:
    """Return their sum, row by row; NULL where any is."""
    whole = columns[0]
    for column in columns[1:]:
        whole = pc.add(whole, column)
    return whole
