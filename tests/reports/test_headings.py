"""A heading means the same in every report: each is in one list, with its meaning."""

import re
from dataclasses import asdict, replace

import pytest

import asyncbench as ab
from asyncbench.analysis.anatomy.error import UNCLASSIFIED
from asyncbench.providers.workers.process import WorkerCounts
from asyncbench.records import Outcome
from asyncbench.reports.regrading import regrade_report
from asyncbench.reports.styles import STYLES
from asyncbench.tables.headings import HEADINGS
from asyncbench.tables.report import Sheet
from tests.reports import answered
from tests.reports.loaded import folder_of as load_of, step
from tests.reports.paid import Call, folder_of, trials
from tests.reports.test_cost import forecast, with_forecasts
from tests.reports.test_quota import by_workers
from tests.store.made import folder_of as lanes_of, minute

# Headings that a folder makes: models, tasks, suites, lengths, ranges of them, causes, outcomes.
MADE = re.compile(r"\d+(-\d+|\+)?|pass[@^]\d+|waiting: .*|add|sub|task|model|[ab]|nupa/.*|integer_addition")
WORKER = WorkerCounts(name="1", pid=7, in_flight=3, calls=90, calls_per_s=9.0, lag_s=0.001, deaths=0)
APART = ("load", "morning")  # whose folders and screen are others
NAMES = [name for name, style in STYLES.items() if not style.published | style.single and name not in APART]


@pytest.fixture(scope="module")
def sheets(tmp_path_factory):
    """The sheets of all reports on folders that have something for each of them."""
    place = tmp_path_factory.mktemp("headings")
    asked = [
        answered.Asked(model=model, task=task, outcomes=outcomes * 5, repeat=repeat)
        for model, outcomes in (("a", "++-+?tx+"), ("b", "+--+??-+"))
        for task in ("add", "sub")
        for repeat in (0, 1)
    ]
    night = answered.folder_of(place / "night", asked)
    paid = folder_of(place / "paid", trials(3, Call(usage=None)), trials(2, Call(cost_usd=None)))
    with_forecasts(paid, forecast(4, 1, low=0, high=9_000))
    lanes = lanes_of(place / "lanes", minute(), *by_workers(60))
    reports = [ab.report(folder, style) for folder in (night, paid, lanes) for style in NAMES]
    reports.append(ab.report(night, "card", models=["a"]))
    loaded = load_of(place / "load", step(8, [0.1] * 80), step(8, [0.2, None] * 40, round_=2, first=1000))
    reports.append(ab.report(loaded, "load"))
    going = replace(ab.status(night), workers=(asdict(WORKER),))
    reports += [ab.compare("a", "b", night, unpaired=True), going, regrade_report(night)]
    return [part for report in reports for part in report.content() if isinstance(part, Sheet)]


@pytest.mark.long
def test_every_heading_of_every_report_has_one_meaning(sheets):
    heads = {" ".join(name.split()) for sheet in sheets for name in sheet.head}
    known = {*HEADINGS, *Outcome, UNCLASSIFIED, ""}
    assert len(heads & HEADINGS.keys()) > 60
    assert sorted(name for name in heads - known if not MADE.fullmatch(name)) == []


def test_no_two_headings_differ_only_in_their_case_or_their_brackets():
    plain = [re.sub(r" \(.*\)", "", name).lower() for name in HEADINGS]
    twice = sorted({name for name in plain if plain.count(name) > 1})
    # with an interval or without; for 5 minutes or an hour; counted or estimated; corrected or not
    assert twice == ["a − b", "cache write", "output tokens", "p"]


def test_a_meaning_is_a_short_line():
    assert {name for name, meaning in HEADINGS.items() if not 3 <= len(meaning) <= 110} == set()
