"""The six tables of a results folder: their columns, and the meaning of each.

`docs/reference/results.md` shows them. No meaning is in the files: they keep the bytes that they have.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import ConfigError
from asyncbench.records import waits

SCHEMA_VERSION = 1  # raise when a column changes meaning; adding one is not a change

AT_REST = pc.field("load").is_null()  # of trials and grades: those that no load asked
ENTRANT = ("run", "model", "condition")  # who was asked, and how: what a ranking ranks
CELL = (*ENTRANT, "suite", "task", "variant", "representation", "length")
CODED = {  # texts of which there are few: read as dictionaries, which are counted faster
    *(*CELL, "sweep", "problem_set", "provider", "model_id", "model_served", "upstream", "service_tier"),
    *("style", "condition_params", "effort", "params", "price_source", "finish_reason", "outcome", "status"),
    *("mode", "phase", "worker", "grader", "classification", "reason", "error_kind"),
} - {"length"}

TEXT, FLAG, SHORT, LONG, REAL = pa.string(), pa.bool_(), pa.int32(), pa.int64(), pa.float64()
TIME = pa.timestamp("us", tz="UTC")
LABELS = pa.list_(pa.string())


class DescribedColumn(NamedTuple):
    """A column of a table, and what it means."""

    field: "pa.Field[pa.DataType]"
    meaning: str


def _always(kind: pa.DataType, **meanings: str) -> list[DescribedColumn]:
    return [
        DescribedColumn(pa.field(name, kind, nullable=False), meaning) for name, meaning in meanings.items()
    ]


def _maybe(kind: pa.DataType, **meanings: str) -> list[DescribedColumn]:
    fields = (pa.field(name, kind) for name in meanings)
    return [DescribedColumn(*column) for column in zip(fields, meanings.values(), strict=True)]


def _trial_columns(*names: str) -> list[DescribedColumn]:
    trials = {column.field.name: column for column in _TRIALS}
    return [trials[name]._replace(meaning="As in `trials`.") for name in names]


def _schema(columns: Iterable[DescribedColumn]) -> pa.Schema:
    fields = [column.field for column in columns]
    return pa.schema(fields, metadata={"asyncbench.schema_version": str(SCHEMA_VERSION)})


_TOKENS = (
    *_maybe(
        LONG,
        input_tokens="Billed input tokens: fresh, read from a cache and written to it. "
        "NULL: the provider does not say.",
        cached_input_tokens="Input tokens that were read from a cache. NULL: the provider does not say.",
        cache_write_tokens="Input tokens that were written to a cache. NULL: the provider does not say.",
        output_tokens="Billed output tokens, with those for reasoning. NULL: the provider does not say.",
        reasoning_tokens="Output tokens spent on reasoning. NULL: the provider does not say.",
    ),
)

_TRIALS = (
    *_always(
        TEXT,
        trial_id="Hash of the question and of how it was asked. The same trial has the same id everywhere.",
        run="Where the row comes from: the sweep, or the file it was imported from.",
        sweep="Name of the sweep.",
        problem_set="Id of the problem set.",
        problem_id="Hash of suite, task and question. Joins the problems.",
        suite="Name of the suite.",
        task="Kind of question within the suite, such as `add`.",
        variant="A suite's variant of the task. Empty if there is only one.",
        representation="How numbers are written: `integer`, `float`, `fraction`, `scientific` or `text`.",
    ),
    *_maybe(
        SHORT, length="Size of the problem in digits, depth or characters. NULL: the suite does not say."
    ),
    *_always(SHORT, repeat="Number of the repeat of the same question, from 0."),
    *_always(
        TEXT,
        condition="Name of the condition.",
        style="Form of the request that grading must know: `chat`, `completion` or `rules`.",
        condition_params="The rest of the condition, as JSON.",
        model="Alias of the model in the sweep.",
        provider="The provider of the model.",
        model_id="Name of the model with its provider, as requested.",
    ),
    *_maybe(
        TEXT,
        model_served="The model that answered, as the reply names it. NULL: not said, or no reply.",
        fingerprint="The deployment that answered, such as OpenAI's `system_fingerprint`. "
        "NULL: not said, or no reply.",
        upstream="The provider behind a router such as OpenRouter. NULL: not said, or no reply.",
        service_tier="Tier in the provider's word, such as `default`, `flex` or `batch`. It sets the price. "
        " NULL: not said, or no reply.",
        effort="Reasoning effort from the sweep, in the provider's words. NULL: the sweep does not set it.",
    ),
    *_always(
        TEXT,
        params="What was sent beside the messages, as JSON: system prompt, sampling, limits, your `params` "
        "and what a budget adds. Limits that the sweep compares stand here, too.",
        expected="The right answer in its canonical form.",
    ),
    *_maybe(
        TEXT,
        reply_text="The reply, unchanged. Empty if it held no text. NULL: no reply.",
        reasoning_text="The reasoning that the provider shows, or the thinking in `reply_text`. NULL: none.",
        finish_reason="Why the reply ended, in the provider's word. NULL: not said, or no reply.",
    ),
    *_always(TEXT, grader="The grader that decides `outcome`."),
    *_maybe(TEXT, answer="The answer that the grader read in the reply. NULL: none found."),
    *_always(TEXT, outcome="`correct`, `wrong`, `no_answer`, `truncated`, `refused` or `failed` (no reply)."),
    *_always(FLAG, exact_match="Whether the answer equals the expected value exactly."),
    *_TOKENS,
    *_maybe(
        TEXT,
        price_source="Source of the price: `sweep`, `genai-prices` with its version, the provider's bill "
        "(such as `openrouter usage.cost`), `recorded` (imported) or `reused` (cost nothing here). "
        "NULL: no known price, or no reply.",
    ),
    *_maybe(
        REAL,
        cost_usd="Cost of all attempts of the trial up to its answer. NULL: the cost of one is unknown.",
    ),
    *_always(SHORT, attempts="Number of attempts."),
    *_maybe(
        REAL,
        queued_s="Seconds from reading the problem to the start of the attempt. NULL: no reply.",
        ttft_s="Seconds from the written request to the first token. NULL: the reply was not streamed.",
        latency_s="Seconds from the written request to the last byte, without any queue. NULL: no reply.",
    ),
    *_always(TIME, finished_at="Time at which the trial was closed (UTC)."),
    *_maybe(
        TEXT,
        error_kind="Why the last attempt failed. NULL: there was a reply.",
        error_message="The error of the last attempt in words. NULL: there was a reply.",
    ),
    *_maybe(SHORT, http_status="HTTP status of the last attempt. NULL: no response."),
    *_maybe(
        TEXT,
        request_id="The provider's id of the last attempt, for its support. NULL: none given.",
        reused_from="The sweep that paid for the answer, if it was taken over (`--reuse`). NULL: asked here.",
        load="The step of `asyncbench load` that asked it, such as `poisson 8/s #2`. Reports of accuracy "
        "leave such rows out. NULL: no load.",
    ),
)
TRIALS = _schema(_TRIALS)

# what each row of `grades` repeats of its trial's row, so that it can be read without it
OF_THE_TRIAL = ("trial_id", "run", "suite", "model", "task", "variant", "representation", "length", "load")

_GRADES = (
    *_trial_columns(*OF_THE_TRIAL),
    *_always(TEXT, grader="Name of the grader."),
    *_always(
        SHORT,
        grader_version="Version of the grader. It changes when a reply may get another grade. Of a function "
        "of your own: the first 7 hexadecimal digits of the SHA-256 of its file, as a number.",
    ),
    *_always(FLAG, headline="Whether `trials` holds this grade."),
    *_maybe(
        TEXT,
        answer="The answer that this grader read in the reply. NULL: none found.",
        classification="The suite's published word for the grade, such as `Deviate`. NULL: there is none.",
        reason="Reason for the grade, such as `grader_error`. NULL: nothing to add.",
    ),
    *_always(TEXT, outcome="As in `trials`, by this grader."),
    *_always(FLAG, exact_match="As in `trials`, by this grader."),
    *_maybe(
        FLAG,
        format_ok="Whether the reply is only the answer, in the requested form. NULL: not checked.",
    ),
    *_maybe(
        SHORT,
        digits_right="Digits that are right in their place. NULL: this grader does not count digits.",
        digits_total="Digits compared. NULL: this grader does not count digits.",
        length_error="Digits by which the answer is too long or too short, as the suite defines it. "
        "NULL: not counted.",
        length_error_total="The same over all parts of the answer. NULL: not counted.",
    ),
    *_maybe(
        TEXT,
        abs_error="Distance from the right answer, as exact decimal text. NULL: no answer, or no number.",
    ),
    *_maybe(
        REAL,
        rel_error="Distance relative to the right answer. NULL: no answer, no number, or the right one is 0.",
    ),
    *_always(LABELS, flags="What else the grader noticed. May be empty."),
    *_maybe(
        REAL,
        score="Score from 0 to 1 that a grader of your own gave beside right and wrong. NULL: it gave none.",
    ),
)
GRADES = _schema(_GRADES)

_NO_LOAD = "NULL: no load."
_ATTEMPTS = (
    *_always(TEXT, trial_id="Joins `trials`, once the trial is finished."),
    *_always(SHORT, attempt="Number of the attempt of its trial, from 1."),
    *_always(TEXT, model="Alias of the model in the sweep.", provider="The provider that was called."),
    *_always(TIME, started_at="Time at which the call was started, or the batch created (UTC)."),
    *_maybe(
        REAL,
        queued_s="Seconds from reading the problem to the start of the call. Under load: from the due time. "
        "NULL: not measured.",
        ttft_s="Seconds from the written request to the first token. NULL: the reply was not streamed.",
        latency_s="Seconds from the written request to the last byte. Without a reply: from the start of the "
        "call to its end. NULL: not measured.",
    ),
    *_always(
        TEXT,
        status="`ok`, the kind of the error, `lost` (the run or its worker died before the call ended, or a "
        "batch did not return the request), `expired` or `cancelled` (the batch ended before the request "
        "ran), `unfinished` (a step of a load waited no longer), or `failed` (imported, kind unknown).",
    ),
    *_maybe(SHORT, http_status="HTTP status. NULL: no response."),
    *_maybe(REAL, retry_after_s="Seconds that the provider asked to wait. NULL: it did not ask."),
    *_maybe(TEXT, request_id="The provider's id of the call. NULL: none given."),
    *_TOKENS,
    *_maybe(
        REAL,
        cost_usd="Cost of the call. 0: refused before any work. NULL: the price is unknown, or it is unclear "
        "whether the call is billed (timeout, cut reply, `lost`).",
    ),
    *_maybe(SHORT, in_flight="Calls of this lane in flight, with this one. NULL: not measured."),
    *_maybe(
        REAL,
        loop_lag_s="Longest delay of asyncbench's own event loop during the call, or of its worker's. "
        "NULL: not measured.",
    ),
    *_maybe(TEXT, raw_usage="The provider's usage object, as JSON, for pricing again. NULL: none given."),
    *_maybe(LONG, max_tokens="The `max_tokens` that was sent. NULL: none, or not recorded."),
    *_maybe(
        REAL,
        reserved_usd="Dollars that a budget reserved for the call. They count while the cost is unknown. "
        "NULL: no budget.",
        most_usd="The most that the call could cost, with or without a budget. NULL: no bound was known.",
    ),
    *_maybe(
        TEXT,
        error="The provider's message in one line, at most 600 characters, without keys. NULL: answered, or "
        "not recorded.",
        note="What was repaired in the reply, or is not believed. NULL: nothing.",
        mode="How the model was asked: `realtime`, or `batch` for a request of a batch. NULL: an earlier "
        "version wrote the row.",
        batch_id="The provider's id of the batch. NULL: no batch.",
    ),
    *_maybe(TIME, batch_ended_at="Time at which the batch ended (UTC). NULL: no batch, or not told."),
    *_maybe(TEXT, load=f"The step of `asyncbench load` that the call was due in. {_NO_LOAD}"),
    *_maybe(TIME, due_at=f"Time at which the call was due (UTC). {_NO_LOAD}"),
    *_maybe(
        REAL,
        late_s="Seconds from the due time to the written request. `late_s + latency_s` is the latency that a "
        f"user sees, `late_s + ttft_s` the TTFT. {_NO_LOAD}",
    ),
    *_maybe(TEXT, phase=f"`warmup` or `measured`, by the due time. {_NO_LOAD}"),
    *_maybe(
        REAL,
        ttfo_s="Seconds from the written request to the first token of the answer, after any thinking. "
        "NULL: not streamed, or no load.",
        connect_s="Seconds of `late_s` that it took to connect. NULL: the connection was there, or no load.",
    ),
    *_maybe(SHORT, chunks="Pieces of text in which the reply came. NULL: not streamed, or no load."),
    *_maybe(
        REAL,
        gap_p50_s="Median of the seconds between two of these pieces. NULL: fewer than two.",
        gap_p99_s="Their 99th percentile. NULL: fewer than two.",
        gap_max_s="The longest of them. NULL: fewer than two.",
    ),
    *_maybe(LONG, output_chars="Characters of thinking and answer. NULL: no reply, or no load."),
    *_maybe(
        TEXT,
        worker="Name of the worker that made the call, such as `1`. NULL: the run made it itself, or it was "
        "stopped.",
        kept_connection="Of a call whose kept connection the server had closed: `resent` (nothing of it was "
        "read, so it was made again at once) or `lost` (it may have been read). NULL: neither, or no load.",
        gap_counts="Gaps in each bin, as JSON. Bin `n` is from 2^(n/32) to 2^((n+1)/32) seconds. NULL: fewer "
        "than two pieces.",
    ),
)
ATTEMPTS = _schema(_ATTEMPTS)
LOST = "lost"  # the status of a call without an end
LONGEST_ERROR = 600  # characters: the longest message of a provider, and what we remark on it

LIMITS = ("requests", "tokens", "input_tokens", "output_tokens")  # what a lane is limited in, a minute
# unknown to minutes that an earlier version wrote
_LATER_WAITS = frozenset({"budget", "first_answer", "resume"})


def _waited(name: str) -> str:
    older = " NULL: an earlier version wrote the row." if name in _LATER_WAITS else ""
    return f"Seconds in which no call could start because {waits.REASONS[name]}.{older}"


_LANES = (
    *_always(TEXT, lane="Alias of the model, or name of the group."),
    *_always(TIME, started_at="Start of this minute, or of this part of it (UTC)."),
    *_always(REAL, seconds="Seconds of the minute in which the lane ran."),
    *_always(
        LONG,
        requests="Calls started.",
        tokens="Tokens of calls that ended, as the provider counts them against its limit.",
        input_tokens="The input tokens among them.",
        output_tokens="The output tokens among them.",
    ),
    *_maybe(
        REAL,
        **{
            f"{name}_limit": f"Limit on {name.replace('_', ' ')} per minute at the end of the minute. "
            "NULL: no such limit."
            for name in LIMITS
        },
    ),
    *_always(REAL, share="Share of its limits that the lane used at the end: 1, or less after refusals."),
    *_always(SHORT, most_in_flight="Most calls in flight at once."),
    *_always(LONG, refused="Calls refused with 429, 503 or 529."),
    *_always(
        REAL, **{f"waited_for_{name}_s": _waited(name) for name in waits.REASONS if name not in _LATER_WAITS}
    ),
    *_maybe(
        REAL, **{f"waited_for_{name}_s": _waited(name) for name in waits.REASONS if name in _LATER_WAITS}
    ),
    *_maybe(
        TEXT,
        pauses="Why pauses of more than 10 s began, one per line, and how long they are. NULL: none began.",
        changes="Changes by `asyncbench pause`, `resume` and `set` at the end of the row, one per line: time "
        "(UTC), who, and what. A row of 0 s holds nothing else. NULL: none.",
    ),
)
LANES = _schema(_LANES)

_SKIPPED = (
    *_trial_columns("trial_id", *CELL, "problem_id", "repeat"),
    *_always(TEXT, rule="The rule that stopped the cell, with its value, such as `ci_width 0.1`."),
    *_always(
        LONG,
        asked="Problems of the cell that were answered when it was stopped, in the planned order.",
        correct="The correct ones among them.",
    ),
    *_always(
        REAL,
        low="Lower end of the cell's always-valid 95 % interval of the accuracy.",
        high="Upper end of that interval.",
    ),
    *_always(TIME, skipped_at="Time of the decision (UTC)."),
)
SKIPPED = _schema(_SKIPPED)

_STEPS = (
    *_always(
        TEXT,
        load="The step, such as `poisson 8/s #2`. With `model`, it joins `trials` and `attempts`.",
        model="Alias of the model in the sweep.",
        arrivals="How calls came: `constant`, `poisson`, `gamma`, `closed` or `trace`.",
    ),
    *_always(
        REAL,
        rate="Calls a second that were asked for. With `closed`: how many callers. With `trace`: the speed.",
    ),
    *_always(SHORT, round="Number of the step among all of this rate, from 1."),
    *_always(TIME, began_at="Start of the step (UTC)."),
    *_always(
        REAL,
        warmup_s="Seconds from there until calls count. All columns below are of calls due after them.",
        seconds="Seconds in which these calls were due.",
    ),
    *_always(
        LONG,
        offered="Calls that were due. It is drawn, so it differs a little from rate times seconds.",
        dropped="Those of them that were never sent: `max_in_flight` calls were in flight, or this "
        "computer was 30 s behind.",
        sent="The others.",
        answered="Calls with a reply.",
        refused="Calls refused with 429, 503 or 529.",
        failed="Calls that failed in another way.",
        unfinished="Calls without an end when `drain` was over, or the run was stopped.",
    ),
    *_maybe(
        REAL,
        late_p50_s="Median of the seconds from due time to written request, without the time to connect. "
        "NULL: no call was sent.",
        late_p99_s="The 99th percentile of the same. NULL: no call was sent.",
        loop_lag_p99_s="99th percentile of the delay of asyncbench's own event loop. NULL: not measured.",
        in_flight_mean="Calls in flight, mean over the time. NULL: not measured.",
    ),
    *_always(SHORT, in_flight_max="Most calls in flight at once."),
    *_maybe(
        REAL,
        in_flight_slope="Growth of the calls in flight, in calls a second. NULL: too short a step.",
        ks_p="p-value of Kolmogorov and Smirnov: whether the gaps between calls are those of a Poisson "
        "process. NULL: another pattern, or too few calls.",
        dispersion_p="The same by the index of dispersion of the counts, which sees bursts. NULL: likewise.",
    ),
    *_always(FLAG, client_bound="Whether this computer, not the server, was the bottleneck."),
    *_maybe(
        FLAG,
        saturated="Whether calls in flight kept growing: the rate is above the capacity. NULL: too short a "
        "step to tell.",
    ),
    *_maybe(LONG, met="Calls that kept the SLO. NULL: there is none."),
    *_maybe(
        TEXT,
        slo="The SLO, as JSON. NULL: there is none.",
        verdict="`met` or `missed` (the 95 % interval of the share that kept the SLO is on one side of the "
        "promised share) or `unresolved` (it is not). With or without SLO: `client_bound` (its figures are "
        "those of this computer) or `incomplete` (it was stopped; the next run measures it again). NULL: "
        "there is no SLO.",
        asked="Hash of how its calls were asked: the model, the conditions, the problems, `drain`, `think`, "
        "`max_in_flight` and `same_problems`. Only a step with the same hash and SLO counts as measured. "
        "NULL: not known.",
    ),
)
STEPS = _schema(_STEPS)

SCHEMAS: Mapping[str, pa.Schema] = {
    "trials": TRIALS,
    "grades": GRADES,
    "attempts": ATTEMPTS,
    "lanes": LANES,
    "skipped": SKIPPED,
    "steps": STEPS,
}
MEANINGS: Mapping[str, Mapping[str, str]] = {
    table: {column.field.name: column.meaning for column in columns}
    for table, columns in zip(SCHEMAS, (_TRIALS, _GRADES, _ATTEMPTS, _LANES, _SKIPPED, _STEPS), strict=True)
}
PARTITIONED_BY: Mapping[str, tuple[str, ...]] = {
    "trials": ("suite", "model"),
    "grades": ("suite", "model"),
    "attempts": ("model",),
    "lanes": ("lane",),
    "skipped": ("suite", "model"),
    "steps": ("model",),
}


def check_version(what: Path, version: int) -> None:
    """Refuse what a later asyncbench wrote."""
    if version > SCHEMA_VERSION:
        raise ConfigError(
            f"{what} has schema version {version}; this asyncbench knows versions up to {SCHEMA_VERSION}. "
            "Install a later asyncbench."
        )
