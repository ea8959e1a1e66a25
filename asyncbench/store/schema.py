"""The five tables of a results folder: their columns, and records as rows of them.

`docs/results.md` says what each column means; a test holds the two together.
"""

from collections.abc import Callable, Mapping

import pyarrow as pa

from asyncbench.prompting import recorded_parameters
from asyncbench.records import Attempt, LaneMinute, Result, Skipped, Usage
from asyncbench.store.encoding import canonical

SCHEMA_VERSION = 1  # raise when a column changes meaning; adding one is not a change

Row = dict[str, object]

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


def trial_row(result: Result) -> Row:
    """Return the row of `trials` that closes a trial; times are microseconds since 1970."""
    trial, reply, error, headline = result.trial, result.reply, result.error, result.grades[0]
    problem, model, condition = trial.problem, trial.model, trial.condition
    response = error or reply
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
        "condition": condition.name,
        "style": condition.style,
        "condition_params": _once(condition, lambda: canonical(condition.described)),
        "model": model.alias,
        "provider": model.provider,
        "model_id": model.model_id,
        "model_served": reply and reply.model_served,
        "fingerprint": reply and reply.fingerprint,
        "upstream": reply and reply.upstream,
        "service_tier": reply and reply.service_tier,
        "effort": model.effort,
        "params": _once(model, lambda: canonical(recorded_parameters(model))),
        "expected": problem.expected,
        "reply_text": reply and reply.text,
        "reasoning_text": reply and reply.reasoning,
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
    }


def grade_rows(result: Result) -> list[Row]:
    """Return what the rows of `grades` of a trial add to its own row, one a grader, headline first."""
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
    }


def lane_row(minute: LaneMinute) -> Row:
    """Return the row of `lanes` of one minute; times are microseconds since 1970."""
    used = (minute.requests, minute.tokens, minute.input_tokens, minute.output_tokens)
    return {
        "lane": minute.lane,
        "started_at": _microseconds(minute.started_at),
        "seconds": minute.seconds,
        **{name: round(amount) for name, amount in zip(LIMITS, used, strict=True)},
        **{f"{name}_limit": minute.limits.get(name) for name in LIMITS},
        "share": minute.share,
        "most_in_flight": minute.most_in_flight,
        "refused": minute.refused,
        **{f"waited_for_{name}_s": minute.waited_s.get(name, 0.0) for name in WAITS},
        "pauses": "\n".join(minute.pauses) or None,
    }


def skipped_row(skipped: Skipped) -> Row:
    """Return the row of `skipped` of a trial that is not asked; times are microseconds since 1970."""
    trial, stop = skipped.trial, skipped.stop
    problem = trial.problem
    return {
        "trial_id": trial.trial_id,
        "run": trial.run,
        "model": trial.model.alias,
        "condition": trial.condition.name,
        "suite": problem.suite,
        "task": problem.task,
        "variant": problem.variant,
        "representation": problem.representation,
        "length": problem.length,
        "problem_id": problem.problem_id,
        "repeat": trial.repeat,
        "rule": stop.rule,
        "asked": stop.asked,
        "correct": stop.correct,
        "low": stop.low,
        "high": stop.high,
        "skipped_at": _microseconds(skipped.skipped_at),
    }


_KNOWN: dict[int, tuple[object, str]] = {}  # by identity, which holding the record keeps its own
_MOST_KNOWN = 1000


def _once(of: object, text: Callable[[], str]) -> str:
    """Return the text of a record that thousands of trials share; it is made for the first of them."""
    if (known := _KNOWN.get(id(of))) is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[id(of)] = (of, text())
    return known[1]


_UNKNOWN = Usage()


def _token_columns(usage: Usage | None) -> Row:
    usage = usage or _UNKNOWN
    return {
        "input_tokens": usage.input_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }


def _microseconds(seconds: float) -> int:
    return round(seconds * 1_000_000)
