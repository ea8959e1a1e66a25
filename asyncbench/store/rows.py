"""Records as rows of the tables, and any value as JSON that every reader accepts."""

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from asyncbench.errors import StoreError
from asyncbench.records import (
    UNSTORED,
    Attempt,
    Condition,
    LaneMinute,
    Model,
    Result,
    Skipped,
    StepResult,
    Usage,
    waits,
)
from asyncbench.store.id_set import strung
from asyncbench.store.schema import (
    GRADES,
    LIMITS,
    LONGEST_ERROR,
    OF_THE_TRIAL,
    SCHEMAS,
    STEPS,
)
from asyncbench.suites.requests import recorded_parameters
from asyncbench.suites.thinking import reasoning_of

Row = dict[str, object]

# Records are opened by us: what is not to be stored is left out.
_OURS: Final = orjson.OPT_PASSTHROUGH_DATACLASS
_STORED: Final[dict[type, tuple[str, ...] | None]] = {}  # by type, once it was met
# By the ids of the two records; an entry holds both, so no other record gets their ids.
_SHARED: Final[dict[tuple[int, int], tuple[Model, Condition, Row, str]]] = {}
_MOST_SHARED: Final = 1000
_NO_USAGE: Final = Usage()


def trial_row(result: Result) -> Row:
    """Return the row of `trials` that closes a trial; times are microseconds since 1970."""
    trial, reply, error, headline = result.trial, result.reply, result.error, result.grades[0]
    problem, response = trial.problem, error or reply
    shared, params = _shared_columns(trial.model, trial.condition)
    return {
        "trial_id": trial.trial_id,
        "run": trial.run,
        "sweep": trial.sweep,
        "problem_set": trial.problem_set,
        "problem_id": problem.problem_id,
        "suite": problem.suite,
        "task": problem.task,
        "variant": problem.variant,
        "representation": problem.representation,
        "length": problem.length,
        "repeat": trial.repeat,
        **shared,
        "model_served": reply and reply.model_served,
        "fingerprint": reply and reply.fingerprint,
        "upstream": reply and reply.upstream,
        "service_tier": reply and reply.service_tier,
        "effort": trial.model.effort,
        "params": params,
        "expected": problem.expected,
        "reply_text": reply and reply.text,
        "reasoning_text": reply and reasoning_of(reply),
        "finish_reason": reply and reply.finish_reason,
        "grader": headline.grader,
        "answer": headline.answer,
        "outcome": headline.outcome,
        "exact_match": headline.exact_match,
        **_token_columns(reply.usage if reply else None),
        "price_source": result.price_source,
        "cost_usd": result.cost_usd,
        "attempts": result.attempts,
        "queued_s": result.queued_s,
        "ttft_s": result.ttft_s,
        "latency_s": result.latency_s,
        "finished_at": _microseconds(result.finished_at),
        "error_kind": error and error.kind,
        "error_message": error and error.message,
        "http_status": response and response.http_status,
        "request_id": response and response.request_id,
        "reused_from": result.reused_from,
        "load": trial.load,
    }


def grade_rows(result: Result) -> list[Row]:
    """Return the fields that rows of `grades` add to a trial's row, one row a grader, headline first."""
    return [
        {
            "grader": grade.grader,
            "grader_version": grade.grader_version,
            "headline": grade.headline,
            "answer": grade.answer,
            "classification": grade.classification,
            "reason": grade.reason,
            "outcome": grade.outcome,
            "exact_match": grade.exact_match,
            "format_ok": grade.format_ok,
            "digits_right": grade.digits_right,
            "digits_total": grade.digits_total,
            "length_error": grade.length_error,
            "length_error_total": grade.length_error_total,
            "abs_error": grade.abs_error,
            "rel_error": None if grade.rel_error is None else repr(grade.rel_error),  # JSON has no infinity
            "flags": grade.flags,
            "score": grade.score,
        }
        for grade in result.grades
    ]


def attempt_row(attempt: Attempt) -> Row:
    """Return the row of `attempts` of one call; times are microseconds since 1970."""
    return {
        "trial_id": attempt.trial_id,
        "attempt": attempt.attempt,
        "model": attempt.model,
        "provider": attempt.provider,
        "started_at": _microseconds(attempt.started_at),
        "queued_s": attempt.queued_s,
        "ttft_s": attempt.ttft_s,
        "latency_s": attempt.latency_s,
        "status": attempt.status,
        "http_status": attempt.http_status,
        "retry_after_s": attempt.retry_after_s,
        "request_id": attempt.request_id,
        **_token_columns(attempt.usage),
        "cost_usd": attempt.cost_usd,
        "in_flight": attempt.in_flight,
        "loop_lag_s": attempt.loop_lag_s,
        "raw_usage": None if attempt.raw_usage is None else canonical(attempt.raw_usage),
        "max_tokens": attempt.max_tokens,
        "reserved_usd": attempt.reserved_usd,
        "most_usd": attempt.most_usd,
        "error": attempt.error and attempt.error[:LONGEST_ERROR],
        "note": attempt.note,
        "mode": attempt.mode,
        "batch_id": attempt.batch_id,
        "batch_ended_at": None if attempt.batch_ended_at is None else _microseconds(attempt.batch_ended_at),
        "load": attempt.load,
        "due_at": None if attempt.due_at is None else _microseconds(attempt.due_at),
        "late_s": attempt.late_s,
        "phase": attempt.phase,
        "ttfo_s": attempt.ttfo_s,
        "connect_s": attempt.connect_s,
        "chunks": attempt.chunks,
        "gap_p50_s": attempt.gap_p50_s,
        "gap_p99_s": attempt.gap_p99_s,
        "gap_max_s": attempt.gap_max_s,
        "output_chars": attempt.output_chars,
        "worker": attempt.worker,
        "kept_connection": attempt.kept_connection,
        "gap_counts": attempt.gap_counts,
    }


def lane_row(minute: LaneMinute) -> Row:
    """Return the row of `lanes` of one minute; times are microseconds since 1970."""
    return {
        "lane": minute.lane,
        "started_at": _microseconds(minute.started_at),
        "seconds": minute.seconds,
        **{name: round(getattr(minute, name)) for name in LIMITS},
        **{f"{name}_limit": minute.limits.get(name) for name in LIMITS},
        "share": minute.share,
        "most_in_flight": minute.most_in_flight,
        "refused": minute.refused,
        **{f"waited_for_{name}_s": minute.waited_s.get(name, 0.0) for name in waits.REASONS},
        "pauses": "\n".join(minute.pauses) or None,
        "changes": "\n".join(minute.changes) or None,
    }


def step_row(step: StepResult) -> Row:
    """Return the row of `steps` of one step; times are microseconds since 1970."""
    row = {name: getattr(step, name) for name in STEPS.names}
    slo = None if step.slo is None else canonical(step.slo)
    return row | {"began_at": _microseconds(step.began_at), "slo": slo}


def skipped_row(skipped: Skipped) -> Row:
    """Return the row of `skipped` of a trial that is not asked; times are microseconds since 1970."""
    trial = skipped.trial
    of_problem = ("suite", "task", "variant", "representation", "length", "problem_id")
    return {
        "trial_id": trial.trial_id,
        "run": trial.run,
        "model": trial.model.alias,
        "condition": trial.condition.name,
        **{name: getattr(trial.problem, name) for name in of_problem},
        "repeat": trial.repeat,
        **{name: getattr(skipped.stop, name) for name in ("rule", "asked", "correct", "low", "high")},
        "skipped_at": _microseconds(skipped.skipped_at),
    }


def _shared_columns(model: Model, condition: Condition) -> tuple[Row, str]:
    """Return the columns that a model's rows under a condition share, and its parameters."""
    key = (id(model), id(condition))
    if (entry := _SHARED.get(key)) is None:
        if len(_SHARED) >= _MOST_SHARED:
            _SHARED.clear()
        row: Row = {
            "condition": condition.name,
            "style": condition.style,
            "condition_params": canonical(condition.described),
            "model": model.alias,
            "provider": model.provider,
            "model_id": model.model_id,
        }
        entry = _SHARED[key] = (model, condition, row, canonical(recorded_parameters(model)))
    return entry[2:]


def _token_columns(usage: Usage | None) -> Row:
    usage = usage or _NO_USAGE
    return {
        "input_tokens": usage.input_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }


def _microseconds(seconds: float) -> int:
    return round(seconds * 1_000_000)


def encode_json(value: object) -> bytes:
    """Return `value` as one line of JSON: records as objects, NaN and infinity as null.

    Fields that are `UNSTORED` are left out. What JSON or Arrow cannot hold is kept as near as can be: half a
    surrogate pair becomes U+FFFD, an integer beyond 64 bits its decimal text, anything else unknown its
    `str`.
    """
    return _dumped(value, _OURS)


def canonical(value: Mapping[str, object]) -> str:
    """Return `value` as `encode_json` does, as text with its keys in order: equal values, equal text."""
    return _dumped(value, _OURS | orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()


def _dumped(value: object, option: int) -> bytes:
    try:
        return orjson.dumps(value, default=_plain, option=option)
    except TypeError as error:  # rare: only then is every value looked at
        if isinstance(error.__cause__, KeyboardInterrupt):  # it came while a record was opened
            raise error.__cause__ from None
        return orjson.dumps(_storable(value), default=str, option=option)


def _plain(value: object) -> object:
    if (names := _stored(value)) is not None:
        return {name: getattr(value, name) for name in names}
    return dict(value) if isinstance(value, Mapping) else str(value)


def _stored(value: object) -> tuple[str, ...] | None:
    """Return the fields of a record that are stored, or None without a record."""
    kind = type(value)
    if kind not in _STORED:
        _STORED[kind] = None
        if dataclasses.is_dataclass(kind):
            fields = dataclasses.fields(kind)
            _STORED[kind] = tuple(field.name for field in fields if field.metadata != UNSTORED)
    return _STORED[kind]


def _storable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, Mapping):
        return {_storable(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    if (names := _stored(value)) is not None:
        return {name: _storable(getattr(value, name)) for name in names}
    return value


# ── lines of the journal as tables ───────────────────────────────────────────────────────────────


Tables = Mapping[str, pa.Table]  # by name: trials, grades, attempts, lanes, skipped, steps


def tables(payloads: Sequence[bytes], *, place: Path) -> Tables:
    """Return the lines as the tables of a results folder, in their order.

    Raises:
        StoreError: a value is not of its column's type; names `place`.
    """
    lines = defaultdict[str, list[bytes]](list)  # by their first key
    for payload in payloads:
        lines[payload[2 : payload.index(b'"', 2)].decode()].append(payload)
    made = dict(_EMPTY)
    try:
        for name, key in _KEYS.items():
            if key in lines:
                parsed = _parsed(lines[key], _WRITTEN[name])
                made[name] = pa.Table.from_struct_array(parsed[key]).cast(SCHEMAS[name])
                if name == "trials":
                    # The grades of all trials one after the other, with the columns they share with theirs.
                    grades = parsed["grades"]
                    parents = pc.list_parent_indices(grades.combine_chunks())
                    shared = made["trials"].select(list(OF_THE_TRIAL)).take(parents)
                    graded = pa.Table.from_struct_array(pc.list_flatten(grades))  # type: ignore[arg-type]  # the stubs lose the items' type
                    columns = [*shared.columns, *graded.columns]
                    made["grades"] = pa.table(columns, names=GRADES.names).cast(GRADES)
    except ValueError as error:  # Arrow's too
        raise StoreError(f"{place} holds a value of the wrong type: {error}") from error
    return made


def joined(columns: Iterable["pa.ChunkedArray[pa.StringScalar]"]) -> "pa.Array[pa.StringScalar]":
    """Return columns of text as one array."""
    return strung(columns).combine_chunks()


def _written(schema: pa.Schema, *, without: Collection[str] = ()) -> pa.DataType:
    """Return a row of `schema` as JSON has it: times are whole microseconds, `rel_error` is text."""
    types = {
        field.name: pa.int64() if pa.types.is_timestamp(field.type) else field.type
        for field in schema
        if field.name not in without
    }
    if "rel_error" in types:
        types["rel_error"] = pa.string()
    return pa.struct(list(types.items()))


# By table, the first key of the lines that become its rows; that of trials holds its grades beside it.
_KEYS: Final = {
    "trials": "trial",
    "attempts": "attempt",
    "lanes": "lane",
    "skipped": "skipped",
    "steps": "step",
}
_WRITTEN: Final = {name: pa.schema([(key, _written(SCHEMAS[name]))]) for name, key in _KEYS.items()}
_WRITTEN["trials"] = _WRITTEN["trials"].append(
    pa.field("grades", pa.list_(_written(GRADES, without=OF_THE_TRIAL)))
)
_EMPTY: Final = {name: schema.empty_table() for name, schema in SCHEMAS.items()}  # made once: it takes long


def _parsed(lines: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    text = b"\n".join(lines)
    return pj.read_json(
        pa.BufferReader(text),  # type: ignore[arg-type]  # the stubs forget Arrow's own files
        read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),  # no line in two blocks
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
