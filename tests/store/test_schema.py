"""Records as rows: every column in its place, and what is not known stays NULL."""

from dataclasses import replace

import orjson
import pyarrow as pa
import pytest

from asyncbench.engine import minutes
from asyncbench.engine.limits import DAY
from asyncbench.records import Attempt, Condition, Limits, Reply
from asyncbench.store.rows import attempt_row, grade_rows, lane_row, skipped_row, step_row, trial_row
from asyncbench.store.schema import (
    ATTEMPTS,
    GRADES,
    LIMITS,
    OF_THE_TRIAL,
    SCHEMA_VERSION,
    SCHEMAS,
    TRIALS,
    WAITS,
)
from tests.store.made import AT, ended, minute, model, reply, result, skipped, step, trial

COLUMNS = {
    "trials": """
        trial_id run sweep problem_set problem_id suite task variant representation length repeat condition
        style condition_params model provider model_id model_served fingerprint upstream service_tier effort
        params expected reply_text reasoning_text finish_reason grader answer outcome exact_match
        input_tokens cached_input_tokens cache_write_tokens output_tokens reasoning_tokens price_source
        cost_usd attempts queued_s ttft_s latency_s finished_at error_kind error_message http_status
        request_id reused_from load
        """,
    "grades": """
        trial_id run suite model task variant representation length load grader grader_version headline answer
        classification reason outcome exact_match format_ok digits_right digits_total length_error
        length_error_total abs_error rel_error flags
        """,
    "attempts": """
        trial_id attempt model provider started_at queued_s ttft_s latency_s status http_status retry_after_s
        request_id input_tokens cached_input_tokens cache_write_tokens output_tokens reasoning_tokens cost_usd
        in_flight loop_lag_s raw_usage max_tokens reserved_usd
        most_usd error note mode batch_id batch_ended_at load due_at late_s phase ttfo_s connect_s chunks
        gap_p50_s gap_p99_s gap_max_s output_chars worker kept_connection gap_counts
        """,
    "lanes": """
        lane started_at seconds requests tokens input_tokens output_tokens requests_limit tokens_limit
        input_tokens_limit output_tokens_limit share most_in_flight refused waited_for_requests_s
        waited_for_tokens_s waited_for_input_tokens_s waited_for_output_tokens_s waited_for_day_s
        waited_for_concurrency_s waited_for_pause_s waited_for_client_s waited_for_ramp_s waited_for_retries_s
        waited_for_work_s waited_for_budget_s waited_for_first_answer_s waited_for_resume_s pauses changes
        """,
    "skipped": """
        trial_id run model condition suite task variant representation length problem_id repeat rule asked
        correct low high skipped_at
        """,
    "steps": """
        load model arrivals rate round began_at warmup_s seconds offered dropped sent answered refused failed
        unfinished late_p50_s late_p99_s loop_lag_p99_s in_flight_mean in_flight_max in_flight_slope ks_p
        dispersion_p client_bound saturated met slo verdict asked
        """,
}
ROWS = {
    "trials": trial_row(result(trial(1), reply(1))),
    "grades": dict.fromkeys(OF_THE_TRIAL) | grade_rows(result(trial(1), reply(1)))[0],
    "attempts": attempt_row(ended(trial(1), reply(1)).attempt),
    "lanes": lane_row(minute()),
    "skipped": skipped_row(skipped(1)),
    "steps": step_row(step()),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_table_has_the_columns_that_others_rely_on_in_their_order(name):
    assert SCHEMAS[name].names == COLUMNS[name].split()


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_row_has_its_tables_columns_in_their_order(name):
    assert list(ROWS[name]) == SCHEMAS[name].names


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_table_says_which_version_of_the_columns_it_has(name):
    assert SCHEMAS[name].metadata == {b"asyncbench.schema_version": str(SCHEMA_VERSION).encode()}


def test_times_of_day_are_utc():
    assert TRIALS.field("finished_at").type == pa.timestamp("us", tz="UTC")
    assert ATTEMPTS.field("started_at").type == pa.timestamp("us", tz="UTC")
    assert attempt_row(ended(trial(1), None).attempt)["started_at"] == AT * 1_000_000


def test_params_are_what_is_sent_the_models_own_params_last():
    asked = replace(
        trial(1),
        model=replace(
            model(),
            system="Be brief.",
            temperature=0.0,
            seed=7,
            max_tokens=10,
            params={"seed": 8, "logprobs": True},
        ),
    )
    row = trial_row(result(asked, None))
    assert orjson.loads(str(row["params"])) == {
        "system": "Be brief.",
        "temperature": 0.0,
        "seed": 8,
        "max_tokens": 10,
        "logprobs": True,
    }


@pytest.mark.parametrize(
    "params",
    [{"a": 1, "b": {"d": 2, "c": 3}}, {"b": {"c": 3, "d": 2}, "a": 1}],
    ids=["as is", "turned round"],
)
def test_equal_params_are_equal_text(params):
    asked = replace(trial(1), condition=Condition(described=params), model=replace(model(), params=params))
    row = trial_row(result(asked, None))
    assert row["params"] == row["condition_params"] == '{"a":1,"b":{"c":3,"d":2}}'


def test_the_headline_grade_is_the_trials():
    closed = result(trial(1), reply(1))
    lenient = replace(closed.grades[1], answer="999")
    row = trial_row(replace(closed, grades=(closed.grades[0], lenient)))
    assert (row["grader"], row["answer"], row["outcome"], row["exact_match"]) == (
        "number",
        "101",
        "correct",
        True,
    )


def test_every_grader_has_a_row_headline_first():
    rows = grade_rows(result(trial(1), reply(1)))
    assert [(row["grader"], row["headline"]) for row in rows] == [("number", True), ("lenient", False)]


def test_a_trial_says_who_served_it_and_how_hard_it_was_asked_to_think():
    asked = replace(trial(1), model=replace(model(), effort="high"))
    served = replace(reply(1), fingerprint="fp_1", upstream="Together", service_tier="flex")
    row = trial_row(result(asked, served))
    assert [row[name] for name in ("fingerprint", "upstream", "service_tier", "effort")] == [
        "fp_1",
        "Together",
        "flex",
        "high",
    ]


def test_a_failed_trial_has_its_error_and_no_reply():
    row = trial_row(result(trial(1), None))
    assert (row["outcome"], row["error_kind"], row["error_message"]) == ("failed", "overloaded", "busy")
    assert (row["http_status"], row["request_id"]) == (529, "req-529")
    assert {row[name] for name in ("reply_text", "finish_reason", "model_served", "input_tokens")} == {None}


def test_an_empty_reply_is_not_a_missing_one():
    assert trial_row(result(trial(1), Reply(text="")))["reply_text"] == ""


def test_what_is_not_known_is_null_and_never_zero():
    bare = Attempt(trial_id="a", attempt=1, model="m", provider="p", started_at=AT, status="timeout")
    known = {name for name, value in attempt_row(bare).items() if value is not None}
    assert known == {field.name for field in ATTEMPTS if not field.nullable} | {"mode"}


def test_a_grade_that_says_nothing_more_leaves_the_rest_null():
    row = grade_rows(result(replace(trial(1), problem=replace(trial(1).problem, length=None)), None))[0]
    nullable = {field.name for field in GRADES if field.nullable}
    assert {name for name, value in row.items() if value is None} == nullable - set(OF_THE_TRIAL)


def test_whatever_a_lane_waits_for_has_its_column():
    words = {minutes.WORK, minutes.CONCURRENCY, minutes.BUDGET, minutes.PAUSE, minutes.CLIENT, minutes.RAMP}
    words |= {minutes.RETRIES, minutes.FIRST_ANSWER, minutes.RESUME}
    assert set(WAITS) == words | {DAY} | set(Limits().per_minute)
    assert set(LIMITS) == set(Limits().per_minute)
