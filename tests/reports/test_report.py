"""The core report and the status of a folder, over results made by hand."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from asyncbench.analysis.counting import counted
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Attempt, Ended, Reply, Result, Usage
from asyncbench.reports.overview import overview_of
from asyncbench.reports.status.report import status_of
from asyncbench.stats.proportions import Proportion
from asyncbench.store.folder import Store
from asyncbench.suites.table import grade
from asyncbench.tables.report import SIMULATED
from tests.reports.answered import Asked, folder_of
from tests.store import made
from tests.world.night import MODEL, requests

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
USAGE = Usage(input_tokens=100, output_tokens=10)


def result(request, reply, *, cost_usd=None, latency_s=1.0):
    """One closed trial of integer_addition whose right answer is 4."""
    problem = replace(request.trial.problem, suite="integer_addition", task="integer_addition")
    return Result(
        trial=replace(request.trial, problem=problem),
        reply=reply,
        error=None if reply else ProviderError(ErrorKind.SERVER_ERROR, "broken", http_status=500),
        grades=grade(problem, reply),
        attempts=1,
        cost_usd=cost_usd,
        price_source=None,
        queued_s=0.0,
        ttft_s=None,
        latency_s=latency_s if reply else None,
        finished_at=1.0,
    )


def call(request, reply, *, cost_usd=None, status="ok", made_at=NOON, number=1):
    """One call of a trial."""
    model = request.trial.model
    made = Attempt(
        trial_id=request.trial.trial_id,
        attempt=number,
        model=model.alias,
        provider=model.provider,
        started_at=made_at.timestamp(),
        status=status,
        usage=reply.usage if reply else None,
        raw_usage=reply.raw_usage if reply else None,
        cost_usd=cost_usd,
    )
    return Ended(attempt=made, reply=reply)


@pytest.fixture
def folder(tmp_path):
    """Seven trials: three right, one wrong, one cut off, one unread, one failed; two models priced or not."""
    right, wrong = Reply(text="4", usage=USAGE), Reply(text="5", usage=USAGE)
    cut = Reply(text="the sum is", finish_reason="length", usage=USAGE)
    replies = [right, right, right, wrong, cut, Reply(text="no idea"), None]
    with Store.open(tmp_path, sweep="s") as store:
        for number, (request, reply) in enumerate(zip(requests(7), replies, strict=True), 1):
            cost = 0.25 if reply and reply.usage else None
            made.keep(store, *made.with_calls(result(request, reply, cost_usd=cost, latency_s=float(number))))
        store.keep(call(requests(8)[7], Reply(text="4"), cost_usd=0.5))  # of a trial that is still open
        store.write_manifest(
            {"runs": {"night": {"planned": {"m": {"plain": {"s": {"t": 8}}}}}}, "simulated": True}
        )
    return tmp_path


def test_accuracy_has_two_denominators_and_every_outcome_is_counted(folder):
    (line,) = counted(folder, overview_of).suites
    assert (line.model, line.suite, line.trials) == ("m", "integer_addition", 7)
    assert line.outcomes == {
        "correct": 3,
        "wrong": 1,
        "truncated": 1,
        "no_answer": 1,
        "failed": 1,
        "refused": 0,
    }
    assert line.accuracy == pytest.approx(3 / 7)
    assert line.accuracy_of_answered == pytest.approx(3 / 4)


def test_the_report_says_who_graded_and_what_became_of_all_trials(folder):
    text = counted(folder, overview_of).as_text(width=300)
    assert "Graders: integer_addition by int v3." in text
    assert "7 trials: 1 failed, 0 empty replies, 1 truncated." in text
    assert "Accuracy: 42.86% of all trials, 75.00% of the 4 answered ones." in text


def test_replies_without_text_are_counted(tmp_path):
    with Store.open(tmp_path, sweep="s") as store:
        for request, reply in zip(requests(2), [Reply(text=" "), None], strict=True):
            made.keep(store, *made.with_calls(result(request, reply)))
    assert counted(tmp_path, overview_of).empty == 1


def test_tokens_cost_and_latency_are_those_of_the_answers(folder):
    (line,) = counted(folder, overview_of).suites
    assert (line.input_tokens, line.output_tokens) == (500, 50)
    assert (line.cost_usd, line.priced_trials) == (pytest.approx(1.25), 5)
    assert (line.latency_p50_s, line.latency_p95_s) == (3.5, pytest.approx(5.75))


def test_what_was_spent_counts_every_attempt_those_of_open_trials_too(folder):
    (spent,) = counted(folder, overview_of).spending
    assert spent == {"model": spent["model"], "attempts": 8, "priced_attempts": 6, "cost_usd": 1.75}


def test_thinking_and_the_first_token_are_shown_where_they_are_known(tmp_path):
    usage = Usage(input_tokens=100, output_tokens=10, reasoning_tokens=7)
    with Store.open(tmp_path, sweep="s") as store:
        for number, request in enumerate(requests(3, replace(MODEL, effort="high")), 1):
            closed = result(request, Reply(text="4", usage=usage))
            made.keep(store, *made.with_calls(replace(closed, ttft_s=number / 8)))
    report = counted(tmp_path, overview_of)
    (line,) = report.suites
    assert (line.reasoning_tokens, line.efforts) == (21, ("high",))
    assert (line.ttft_p50_s, line.ttft_p95_s) == (0.25, pytest.approx(0.3625))
    assert "0.250 s" in report.as_text()


def test_answers_that_were_not_streamed_have_no_first_token(folder):
    (line,) = counted(folder, overview_of).suites
    assert (line.ttft_p50_s, line.ttft_p95_s, line.reasoning_tokens) == (None, None, None)


def test_unknown_cost_is_shown_as_unknown(tmp_path):
    with Store.open(tmp_path, sweep="s") as store:
        made.keep(store, *made.with_calls(result(requests(1)[0], Reply(text="4"))))
    report = counted(tmp_path, overview_of)
    assert report.suites[0].cost_usd is None
    assert "unknown" in report.as_text()
    assert "0 of 1" in report.as_text()


def test_simulated_results_say_so_in_every_form(folder):
    report = counted(folder, overview_of)
    assert SIMULATED in report.as_text()
    assert SIMULATED in report.as_markdown()
    assert json.loads(report.as_json())["simulated"] is True


def test_results_of_real_models_do_not_say_so(tmp_path):
    (request,) = requests(1, replace(MODEL, provider="openai"))
    with Store.open(tmp_path, sweep="s") as store:
        made.keep(store, *made.with_calls(result(request, Reply(text="4"))))
    assert SIMULATED not in counted(tmp_path, overview_of).as_text()


def test_a_markdown_table_has_as_many_cells_in_every_row(folder):
    rows = [line for line in counted(folder, overview_of).as_markdown().splitlines() if line.startswith("|")]
    widths = {row.count("|") for row in rows[:3]}
    assert len(widths) == 1


def test_status_tells_planned_done_failed_and_dollars(folder):
    (one,) = status_of(folder).models
    assert (one.planned, one.done, one.failed, one.attempts) == (8, 7, 1, 8)
    assert (one.cost_usd, one.unpriced_attempts) == (pytest.approx(1.75), 2)
    assert "≥ $1.7500 + 2 calls of unknown cost" in status_of(folder).as_text()


def test_a_planned_model_without_results_is_shown(tmp_path):
    with Store.open(tmp_path, sweep="s") as store:
        store.write_manifest({"runs": {"night": {"planned": {"later": {"plain": {"s": {"t": 10}}}}}}})
    (one,) = status_of(tmp_path).models
    assert (one.model, one.planned, one.done, one.cost_usd) == ("later", 10, 0, 0.0)


@pytest.mark.long
def test_repeats_of_a_problem_make_the_interval_no_narrower_and_that_is_said(tmp_path):
    once = [Asked(model="m", outcomes="+++-")]
    often = [Asked(model="m", outcomes="+++-", repeat=repeat) for repeat in range(3)]
    one, other = (
        counted(folder_of(tmp_path / str(len(asked)), asked), overview_of) for asked in (once, often)
    )
    assert [(line.trials, line.repeats) for line in (*one.suites, *other.suites)] == [(4, 1), (12, 3)]
    assert one.suites[0].accuracy_interval == other.suites[0].accuracy_interval
    assert one.suites[0].accuracy_of_answered_interval == other.suites[0].accuracy_of_answered_interval
    assert "counts once in the intervals" in other.as_text()
    assert "counts once in the intervals" not in one.as_text()


TWO_WAYS = [
    Asked(model="a", outcomes="+" * 80 + "-" * 20, condition="zero"),
    *(
        Asked(model="a", outcomes="+" * 8 + "-" * 2, condition=way, suite="string_reversal", first=200)
        for way in ("zero", "five")
    ),
    Asked(model="b", outcomes="+-" * 5, condition="zero"),
]


def test_conditions_are_lines_of_their_own_and_their_answers_are_not_pooled(tmp_path):
    report = counted(folder_of(tmp_path, TWO_WAYS), overview_of)
    lines = {(line["name"], line["suite"]): line for line in json.loads(report.as_json())["suites"]}
    assert sorted(lines) == [
        ("a (five)", "string_reversal"),
        ("a (zero)", "nupa"),
        ("a (zero)", "string_reversal"),
        ("b", "nupa"),
    ]
    for condition in ("zero", "five"):
        line = lines[f"a ({condition})", "string_reversal"]
        assert (line["run"], line["model"], line["condition"]) == ("night", "a", condition)
        assert (line["trials"], line["repeats"]) == (10, 1)
        assert tuple(line["accuracy_interval"]) == Proportion(successes=8, trials=10).interval
        assert len([one for one in report.tasks if one.name == f"a ({condition})"]) == len(
            [one for one in report.suites if one.name == f"a ({condition})"]
        )
    assert report.as_text(width=200).count("a (five)") == 3  # by suite, by task, and what it took


def test_the_same_problems_in_two_runs_are_lines_of_their_own(tmp_path):
    asked = [Asked(model="a", outcomes="++-", run=run, repeat=n) for n, run in enumerate(("x", "y"))]
    lines = counted(folder_of(tmp_path, asked), overview_of).suites
    assert [(line.name, line.run, line.trials) for line in lines] == [
        ("a, run x", "x", 3),
        ("a, run y", "y", 3),
    ]


def test_each_condition_has_its_own_plan(tmp_path):
    plans_of = {way: {"string_reversal": {"add": n}} for way, n in (("five", 10), ("zero", 30))}
    planned: dict[str, object] = {"a": plans_of}
    lines = counted(folder_of(tmp_path, TWO_WAYS, planned=planned), overview_of).suites
    plans = {(line.condition, line.suite): (line.planned, line.open) for line in lines if line.model == "a"}
    assert plans["five", "string_reversal"] == (10, 0)
    assert plans["zero", "string_reversal"] == (30, 20)
    assert plans["zero", "nupa"] == (None, None)


@pytest.mark.long
def test_sums_over_conditions_say_so(tmp_path):
    text = counted(folder_of(tmp_path / "two", TWO_WAYS), overview_of).as_text(width=200)
    assert "130 trials (all 3 rows of models together): 0 failed" in text
    assert "all attempts (a model's conditions and runs together)" in text
    alone = counted(folder_of(tmp_path / "one", TWO_WAYS[:1]), overview_of).as_text(width=200)
    assert "together" not in alone


def test_lost_trials_are_told_of_each_condition(tmp_path):
    asked = [Asked(model="a", outcomes="+" * 10, condition="zero")]
    asked += [Asked(model="a", outcomes="+" * 9 + "t", condition="five")]
    text = counted(folder_of(tmp_path, asked), overview_of).as_text(width=200)
    assert "for 1 of 2" in text
    assert "a (five) 90.0%-100.0%" in text
