"""Requests of batches count for accuracy and cost; reports on time and limits leave them out and say so."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pyarrow import parquet

from asyncbench.analysis.counting import counted
from asyncbench.analysis.sql import sql
from asyncbench.errors import ErrorKind
from asyncbench.page.writing import contents_of
from asyncbench.published.integer_addition.report import integer_addition_report_on
from asyncbench.reports.overview import overview_of
from asyncbench.reports.quota import quota_of
from asyncbench.reports.standings.report import standings_of
from asyncbench.reports.status.run_overview import run_overview_of
from asyncbench.store.checksums import stamp
from asyncbench.store.folder import Store
from asyncbench.store.sealing import part_files
from asyncbench.store.status import trial_counts
from tests.reports.answered import Asked, folder_of
from tests.store import made

SAID = "Asked in batches: both (2 of 5 requests), later (all 4 requests)."


@pytest.fixture
def folder(tmp_path):
    """Three models: one asked in batches, one in both modes, one in real time."""
    return folder_of(
        tmp_path / "night",
        [
            Asked(model="later", outcomes="++--", batch="batch_1"),
            Asked(model="both", outcomes="++", batch="batch_2"),
            Asked(model="both", outcomes="+--", first=2),
            Asked(model="now", outcomes="+---"),
        ],
    )


def rows_of(folder, query):
    return sql(folder, query).to_pylist()


def test_the_columns_tell_the_mode_and_the_batch(folder):
    rows = rows_of(
        folder,
        "SELECT DISTINCT model, mode, batch_id, epoch(batch_ended_at) AS at FROM attempts ORDER BY ALL",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("both", "batch", "batch_2", made.AT + 3600),
        ("both", "realtime", None, None),
        ("later", "batch", "batch_1", made.AT + 3600),
        ("now", "realtime", None, None),
    ]
    times = rows_of(folder, "SELECT latency_s, ttft_s, queued_s FROM attempts WHERE mode = 'batch'")
    assert {value for row in times for value in row.values()} == {None}


@pytest.mark.long
def test_latency_and_throughput_leave_batches_out(folder):
    found = rows_of(folder, "SELECT model, answered FROM latency ORDER BY model")
    assert [(row["model"], row["answered"]) for row in found] == [("both", 3), ("now", 4)]
    minutes = rows_of(folder, "SELECT model, calls FROM minutes")
    assert [(row["model"], row["calls"]) for row in minutes] == [("both", 3), ("now", 4)]
    load = counted(folder, run_overview_of).load
    assert load == {"calls": 13, "rate_limited": 0, "most_at_once": 7, "in_batches": 6}


def test_the_view_of_cost_counts_both_and_tells_the_part_of_batches(folder):
    rows = rows_of(
        folder, "SELECT model, calls, cost_usd, batch_requests, batch_cost_usd FROM cost ORDER BY 1"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("both", 5, 1.25, 2, 0.5),
        ("later", 4, 1.0, 4, 1.0),
        ("now", 4, 1.0, 0, None),
    ]


@pytest.mark.long
@pytest.mark.parametrize("report", [overview_of, standings_of, quota_of])
def test_reports_name_who_was_asked_in_batches_in_text_and_json(folder, report):
    found = counted(folder, report)
    assert SAID in found.as_text()
    assert json.loads(found.as_json())["batches"] == [
        {"model": "both", "requests": 2, "calls": 5},
        {"model": "later", "requests": 4, "calls": 4},
    ]


@pytest.mark.long
def test_the_page_says_it_and_shows_no_times_of_batches(folder):
    blocks: Any = contents_of(folder)
    (said,) = (note["words"] for note in blocks["head"]["notes"] if "batches" in note["words"])
    assert said.startswith(SAID)
    models = [entrant["model"] for entrant in blocks["head"]["entrants"]]
    times = {(models[row["asked"]], row["quantity"]): row["calls"] for row in blocks["time"]["times"]}
    assert times == {
        ("both", "latency"): 3,
        ("both", "queued"): 3,
        ("now", "latency"): 4,
        ("now", "queued"): 4,
    }


@pytest.mark.long
def test_the_morning_says_how_many_requests_were_in_batches(folder):
    assert "6 of 13 requests were in batches." in counted(folder, run_overview_of).as_text()


@pytest.mark.long
def test_where_nothing_was_in_a_batch_nothing_is_said_of_it(tmp_path):
    folder = folder_of(tmp_path / "f", [Asked(model="now", outcomes="+-")])
    for report in (overview_of, standings_of, quota_of, run_overview_of):
        assert "batch" not in counted(folder, report).as_text()
    blocks: Any = contents_of(folder)
    assert not any("batch" in note["words"] for note in blocks["head"]["notes"])


def test_durations_of_integer_addition_are_those_of_calls_in_real_time(tmp_path):
    asked = Asked(model="later", outcomes="++", suite="integer_addition", task="integer_addition", batch="b")
    report = integer_addition_report_on(folder_of(tmp_path / "f", [asked]))
    assert report.lines[0].latency_p50_s is None
    assert "Durations are those of the calls in real time." in report.as_text()


@pytest.mark.long
def test_a_folder_from_before_there_were_batches_reads_as_one_of_real_time(tmp_path):
    folder = folder_of(tmp_path / "f", [Asked(model="now", outcomes="+-")])
    (part,) = part_files(folder, "attempts")
    table = parquet.ParquetFile(part).read()
    parquet.write_table(table.drop_columns(["mode", "batch_id", "batch_ended_at"]), part)
    stamp(part)
    made.without_list(folder)
    rows = rows_of(folder, "SELECT DISTINCT mode, batch_id, batch_ended_at FROM attempts")
    assert [tuple(row.values()) for row in rows] == [(None, None, None)]
    assert rows_of(folder, "SELECT answered FROM latency") == [{"answered": 2}]
    assert "batch" not in counted(folder, overview_of).as_text()


def test_a_model_is_suspended_by_the_last_batch_that_ended(tmp_path):
    """A batch is created before calls that end earlier: when it ended counts."""
    with Store.open(tmp_path / "f", sweep="s") as store:
        refused = made.in_batch(made.ended(made.trial(1), None), "batch_1")
        store.keep(replace(refused, attempt=replace(refused.attempt, status=ErrorKind.NO_QUOTA.value)))
        answered = made.ended(made.trial(2), made.reply(2))
        store.keep(replace(answered, attempt=replace(answered.attempt, started_at=made.AT + 60)))
    assert trial_counts(tmp_path / "f").models["small"].suspended == ErrorKind.NO_QUOTA.value
