"""What became of the limits: told by lane and by minute, from the rows that the lanes left."""

import json
from dataclasses import replace

import pytest

from asyncbench.reports.quota import MOST_ROWS, quota_report_on
from tests.store.made import AT, folder_of, minute

LIMITS = {"requests": 600.0, "output_tokens": 1_000.0}


def test_a_lane_tells_how_much_of_each_limit_it_used(tmp_path):
    first = replace(minute(), requests=600, output_tokens=400.0, limits=LIMITS)
    second = replace(
        minute(), started_at=AT + 60, seconds=30.0, requests=150, output_tokens=500.0, limits=LIMITS
    )

    report = quota_report_on(folder_of(tmp_path / "night", first, second))

    (lane,) = report.lanes
    assert lane.shares == {"requests": pytest.approx(750 / 900), "output_tokens": pytest.approx(900 / 1_500)}
    assert [one.shares["requests"] for one in report.minutes] == [1.0, 0.5]
    assert "83.3%" in report.as_text()
    assert "60.0%" in report.as_text()


def test_a_lane_is_bound_by_what_it_waited_for_most_but_for_work(tmp_path):
    waited = {"work": 40.0, "tokens": 5.0, "pause": 12.0}
    report = quota_report_on(folder_of(tmp_path / "night", replace(minute(), waited_s=waited)))

    assert report.lanes[0].bound_by == "pause"
    shown = report.as_markdown()
    assert "waiting: 429 pause" in shown
    assert "20.0%" in shown
    assert "waiting: concurrency" not in shown  # nothing was


def test_a_lane_that_waited_for_nothing_is_bound_by_nothing(tmp_path):
    report = quota_report_on(folder_of(tmp_path / "night", replace(minute(), waited_s={"work": 60.0})))
    assert report.lanes[0].bound_by is None


def test_lanes_stand_apart_and_their_refusals_add_up(tmp_path):
    rows = [replace(minute(lane), refused=n) for n, lane in enumerate(("b", "a", "b"))]
    report = quota_report_on(folder_of(tmp_path / "night", *rows))
    assert {one.lane: one.refused for one in report.lanes} == {"a": 1, "b": 2}


def test_a_long_night_is_shown_by_the_hour_and_given_whole_as_json(tmp_path):
    rows = [replace(minute(), started_at=AT + 60 * n) for n in range(MOST_ROWS + 1)]
    report = quota_report_on(folder_of(tmp_path / "night", *rows))

    assert "By hour" in report.as_text()
    assert "By minute" not in report.as_text()
    told = json.loads(report.as_json())
    assert len(told["minutes"]) == MOST_ROWS + 1
    assert told["lanes"][0]["used"]["requests"] == 100 * (MOST_ROWS + 1)


def test_a_folder_that_nothing_was_run_in_says_so(tmp_path):
    assert "no record of rate limits" in quota_report_on(folder_of(tmp_path / "night")).as_text()


def test_markdown_holds_the_same_tables(tmp_path):
    shown = quota_report_on(folder_of(tmp_path / "night", minute())).as_markdown()
    assert "### By lane" in shown
    assert "### By minute" in shown


def test_what_was_used_before_there_was_a_limit_is_no_share_of_it(tmp_path):
    before = replace(minute(), requests=600, limits={})
    after = replace(minute(), started_at=AT + 60, requests=300, limits={"requests": 600.0})
    (lane,) = quota_report_on(folder_of(tmp_path / "night", before, after)).lanes
    assert (lane.used["requests"], lane.shares) == (900, {"requests": 0.5})


def test_what_a_change_by_hand_leaves_of_a_minute_is_no_row(tmp_path):
    rest = replace(minute(), started_at=AT + 60, seconds=0.2, requests=0)
    report = quota_report_on(folder_of(tmp_path / "night", minute(), rest))
    assert len(report.minutes) == 2
    assert report.as_text().count("0:00:00") == 0
    assert report.as_text().count("0:01:00") == 2  # of the lane, and of its minute
