"""Records as rows: every column in its place, and what is not known stays NULL."""

from dataclasses import replace

import orjson
import pytest

from asyncbench.engine.limits import DAY
from asyncbench.records import Attempt, Condition, Limits, Reply, waits
from asyncbench.store.rows import attempt_row, grade_rows, lane_row, skipped_row, step_row, trial_row
from asyncbench.store.schema import ATTEMPTS, GRADES, LIMITS, OF_THE_TRIAL, SCHEMAS
from tests.store.made import AT, ended, minute, model, reply, result, skipped, step, trial

ROWS = {
    "trials": trial_row(result(trial(1), reply(1))),
    "grades": dict.fromkeys(OF_THE_TRIAL) | grade_rows(result(trial(1), reply(1)))[0],
    "attempts": attempt_row(ended(trial(1), reply(1)).attempt),
    "lanes": lane_row(minute()),
    "skipped": skipped_row(skipped(1)),
    "steps": step_row(step()),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_row_has_its_tables_columns_in_their_order(name):
    assert list(ROWS[name]) == SCHEMAS[name].names


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
    words = {waits.WORK, waits.CONCURRENCY, waits.BUDGET, waits.PAUSE, waits.CLIENT, waits.RAMP}
    words |= {waits.RETRIES, waits.FIRST_ANSWER, waits.RESUME}
    assert set(waits.REASONS) == words | {DAY} | set(Limits().per_minute)
    assert set(LIMITS) == set(Limits().per_minute)
