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


def _always(kind: pa.DataType, *names: str) -> "list[pa.Field[pa.DataType]]":
    return [pa.field(name, kind, nullable=False) for name in names]


def _maybe(kind: pa.DataType, *names: str) -> "list[pa.Field[pa.DataType]]":
    return [pa.field(name, kind) for name in names]


def _schema(*fields: "pa.Field[pa.DataType]") -> pa.Schema:
    return pa.schema(fields, metadata={"asyncbench.schema_version": str(SCHEMA_VERSION)})


_TOKENS = (
    *_maybe(LONG, "input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens"),
    *_maybe(LONG, "reasoning_tokens"),
)

TRIALS = _schema(
    *_always(TEXT, "trial_id", "run", "sweep", "problem_set", "problem_id", "suite", "task", "variant"),
    *_always(TEXT, "representation"),
    *_maybe(SHORT, "length"),
    *_always(SHORT, "repeat"),
    *_always(TEXT, "condition", "style", "condition_params", "model", "provider", "model_id"),
    *_maybe(TEXT, "model_served", "fingerprint", "upstream", "service_tier", "effort"),
    *_always(TEXT, "params", "expected"),
    *_maybe(TEXT, "reply_text", "reasoning_text", "finish_reason"),
    *_always(TEXT, "grader"),
    *_maybe(TEXT, "answer"),
    *_always(TEXT, "outcome"),
    *_always(FLAG, "exact_match"),
    *_TOKENS,
    *_maybe(TEXT, "price_source"),
    *_maybe(REAL, "cost_usd"),
    *_always(SHORT, "attempts"),
    *_maybe(REAL, "queued_s", "ttft_s", "latency_s"),
    *_always(TIME, "finished_at"),
    *_maybe(TEXT, "error_kind", "error_message"),
    *_maybe(SHORT, "http_status"),
    *_maybe(TEXT, "request_id", "reused_from"),
)

# what each row of `grades` repeats of its trial's row, so that it can be read without it
OF_THE_TRIAL = ("trial_id", "run", "suite", "model", "task", "variant", "representation", "length")

GRADES = _schema(
    *(TRIALS.field(name) for name in OF_THE_TRIAL),
    *_always(TEXT, "grader"),
    *_always(SHORT, "grader_version"),
    *_always(FLAG, "headline"),
    *_maybe(TEXT, "answer", "classification", "reason"),
    *_always(TEXT, "outcome"),
    *_always(FLAG, "exact_match"),
    *_maybe(FLAG, "format_ok"),
    *_maybe(SHORT, "digits_right", "digits_total", "length_error", "length_error_total"),
    *_maybe(TEXT, "abs_error"),
    *_maybe(REAL, "rel_error"),
    *_always(LABELS, "flags"),
)

ATTEMPTS = _schema(
    *_always(TEXT, "trial_id"),
    *_always(SHORT, "attempt"),
    *_always(TEXT, "model", "provider"),
    *_always(TIME, "started_at"),
    *_maybe(REAL, "queued_s", "ttft_s", "latency_s"),
    *_always(TEXT, "status"),
    *_maybe(SHORT, "http_status"),
    *_maybe(REAL, "retry_after_s"),
    *_maybe(TEXT, "request_id"),
    *_TOKENS,
    *_maybe(REAL, "cost_usd"),
    *_maybe(SHORT, "in_flight"),
    *_maybe(REAL, "loop_lag_s"),
    *_maybe(TEXT, "raw_usage"),
    *_maybe(LONG, "max_tokens"),
    *_maybe(REAL, "reserved_usd", "most_usd"),
    *_maybe(TEXT, "error", "note"),
)
LOST = "lost"  # the status of a call without an end
LONGEST_ERROR = 600  # characters: the longest message of a provider, and what we remark on it

LIMITS = ("requests", "tokens", "input_tokens", "output_tokens")  # what a lane is limited in, a minute
# for what no call could start
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
)
_LATER_WAITS = frozenset({"budget", "first_answer"})  # unknown to minutes that an earlier version wrote

LANES = _schema(
    *_always(TEXT, "lane"),
    *_always(TIME, "started_at"),
    *_always(REAL, "seconds"),
    *_always(LONG, *LIMITS),
    *_maybe(REAL, *(f"{name}_limit" for name in LIMITS)),
    *_always(REAL, "share"),
    *_always(SHORT, "most_in_flight"),
    *_always(LONG, "refused"),
    *_always(REAL, *(f"waited_for_{name}_s" for name in WAITS if name not in _LATER_WAITS)),
    *_maybe(REAL, *(f"waited_for_{name}_s" for name in WAITS if name in _LATER_WAITS)),
    *_maybe(TEXT, "pauses"),
)

SKIPPED = _schema(
    *(TRIALS.field(name) for name in ("trial_id", *CELL, "problem_id", "repeat")),
    *_always(TEXT, "rule"),
    *_always(LONG, "asked", "correct"),
    *_always(REAL, "low", "high"),
    *_always(TIME, "skipped_at"),
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
