"""The five tables of a results folder: their columns, and records as rows of them.

`docs/results.md` says what each column means; a test holds the two together.
"""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from asyncbench.errors import ConfigError

SCHEMA_VERSION = 1  # raise when a column changes meaning; adding one is not a change

ENTRANT = ("run", "model", "condition")  # who was asked, and how: what a ranking ranks
CELL = (*ENTRANT, "suite", "task", "variant", "representation", "length")

TEXT, FLAG, SHORT, LONG, REAL = pa.string(), pa.bool_(), pa.int32(), pa.int64(), pa.float64()
TIME = pa.timestamp("us", tz="UTC")
LABELS = pa.list_(pa.string())


def _always(name: str, kind: pa.DataType) -> "pa.Field[pa.DataType]":
    return pa.field(name, kind, nullable=False)


def _maybe(name: str, kind: pa.DataType) -> "pa.Field[pa.DataType]":
    return pa.field(name, kind)


def _schema(*fields: "pa.Field[pa.DataType]") -> pa.Schema:
    return pa.schema(fields, metadata={"asyncbench.schema_version": str(SCHEMA_VERSION)})


_TOKENS = (
    _maybe("input_tokens", LONG),
    _maybe("cached_input_tokens", LONG),
    _maybe("cache_write_tokens", LONG),
    _maybe("output_tokens", LONG),
    _maybe("reasoning_tokens", LONG),
)

TRIALS = _schema(
    _always("trial_id", TEXT),
    _always("run", TEXT),
    _always("sweep", TEXT),
    _always("problem_set", TEXT),
    _always("problem_id", TEXT),
    _always("suite", TEXT),
    _always("task", TEXT),
    _always("variant", TEXT),
    _always("representation", TEXT),
    _maybe("length", SHORT),
    _always("repeat", SHORT),
    _always("condition", TEXT),
    _always("style", TEXT),
    _always("condition_params", TEXT),
    _always("model", TEXT),
    _always("provider", TEXT),
    _always("model_id", TEXT),
    _maybe("model_served", TEXT),
    _maybe("fingerprint", TEXT),
    _maybe("upstream", TEXT),
    _maybe("service_tier", TEXT),
    _maybe("effort", TEXT),
    _always("params", TEXT),
    _always("expected", TEXT),
    _maybe("reply_text", TEXT),
    _maybe("reasoning_text", TEXT),
    _maybe("finish_reason", TEXT),
    _always("grader", TEXT),
    _maybe("answer", TEXT),
    _always("outcome", TEXT),
    _always("exact_match", FLAG),
    *_TOKENS,
    _maybe("price_source", TEXT),
    _maybe("cost_usd", REAL),
    _always("attempts", SHORT),
    _maybe("queued_s", REAL),
    _maybe("ttft_s", REAL),
    _maybe("latency_s", REAL),
    _always("finished_at", TIME),
    _maybe("error_kind", TEXT),
    _maybe("error_message", TEXT),
    _maybe("http_status", SHORT),
    _maybe("request_id", TEXT),
    _maybe("reused_from", TEXT),
)

# what each row of `grades` repeats of its trial's row, so that it can be read without it
OF_THE_TRIAL = ("trial_id", "run", "suite", "model", "task", "variant", "representation", "length")

GRADES = _schema(
    *(TRIALS.field(name) for name in OF_THE_TRIAL),
    _always("grader", TEXT),
    _always("grader_version", SHORT),
    _always("headline", FLAG),
    _maybe("answer", TEXT),
    _maybe("classification", TEXT),
    _maybe("reason", TEXT),
    _always("outcome", TEXT),
    _always("exact_match", FLAG),
    _maybe("format_ok", FLAG),
    _maybe("digits_right", SHORT),
    _maybe("digits_total", SHORT),
    _maybe("length_error", SHORT),
    _maybe("length_error_total", SHORT),
    _maybe("abs_error", TEXT),
    _maybe("rel_error", REAL),
    _always("flags", LABELS),
)

ATTEMPTS = _schema(
    _always("trial_id", TEXT),
    _always("attempt", SHORT),
    _always("model", TEXT),
    _always("provider", TEXT),
    _always("started_at", TIME),
    _maybe("queued_s", REAL),
    _maybe("ttft_s", REAL),
    _maybe("latency_s", REAL),
    _always("status", TEXT),
    _maybe("http_status", SHORT),
    _maybe("retry_after_s", REAL),
    _maybe("request_id", TEXT),
    *_TOKENS,
    _maybe("cost_usd", REAL),
    _maybe("in_flight", SHORT),
    _maybe("loop_lag_s", REAL),
    _maybe("raw_usage", TEXT),
    _maybe("max_tokens", LONG),
    _maybe("reserved_usd", REAL),
    _maybe("most_usd", REAL),
    _maybe("error", TEXT),
    _maybe("note", TEXT),
)
LONGEST_ERROR = 600  # characters: the longest message of a provider, and what we remark on it

LIMITS = ("requests", "tokens", "input_tokens", "output_tokens")  # what a lane is limited in, a minute
WAITS = (
    *LIMITS,
    "day",
    "concurrency",
    "pause",
    "client",
    "ramp",
    "retries",
    "work",
    "budget",
    "first_answer",
)  # for what no call could start
_LATER_WAITS = frozenset({"budget", "first_answer"})  # unknown to minutes that an earlier version wrote

LANES = _schema(
    _always("lane", TEXT),
    _always("started_at", TIME),
    _always("seconds", REAL),
    *(_always(name, LONG) for name in LIMITS),
    *(_maybe(f"{name}_limit", REAL) for name in LIMITS),
    _always("share", REAL),
    _always("most_in_flight", SHORT),
    _always("refused", LONG),
    *((_maybe if name in _LATER_WAITS else _always)(f"waited_for_{name}_s", REAL) for name in WAITS),
    _maybe("pauses", TEXT),
)

SKIPPED = _schema(
    *(TRIALS.field(name) for name in ("trial_id", *CELL, "problem_id", "repeat")),
    _always("rule", TEXT),
    _always("asked", LONG),
    _always("correct", LONG),
    _always("low", REAL),
    _always("high", REAL),
    _always("skipped_at", TIME),
)

SCHEMAS: Mapping[str, pa.Schema] = {
    "trials": TRIALS,
    "grades": GRADES,
    "attempts": ATTEMPTS,
    "lanes": LANES,
    "skipped": SKIPPED,
}
PARTITIONED_BY: Mapping[str, tuple[str, ...]] = {
    "trials": ("suite", "model"),
    "grades": ("suite", "model"),
    "attempts": ("model",),
    "lanes": ("lane",),
    "skipped": ("suite", "model"),
}


def check_version(what: Path, version: int) -> None:
    """Refuse what a later asyncbench wrote."""
    if version > SCHEMA_VERSION:
        raise ConfigError(
            f"{what} has schema version {version}; this asyncbench knows versions up to {SCHEMA_VERSION}. "
            "Install a later one."
        )
