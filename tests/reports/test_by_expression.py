"""`report --by "length % 3"`: accuracy for each value of an SQL expression over the columns of `trials`."""

import json

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.stats.proportions import wilson
from tests.reports.answered import Asked, folder_of
from tests.rows import each_row

OUTCOMES = "++-+-x+++-" * 3 + "-++tt+-+++"  # ten problems of each length, from 1 to 4


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    again = Asked(model="small", outcomes=OUTCOMES, repeat=1)
    others = [Asked(model="small", outcomes=OUTCOMES), again, Asked(model="large", outcomes="+" * 40)]
    return folder_of(tmp_path_factory.mktemp("by") / "night", others)


def test_each_value_has_its_trials_and_a_problem_counts_once_in_its_interval(night):
    rows = json.loads(ab.report(night, by="length % 3").as_json())["rows"]
    small = {row["value"]: row for row in rows if row["name"] == "small"}
    assert [*small] == ["0", "1", "2"]
    for value, row in small.items():
        marks = [mark for n, mark in enumerate(OUTCOMES) if (1 + n // 10) % 3 == int(value)]
        share = marks.count("+") / len(marks)
        assert (row["trials"], row["problems"]) == (2 * len(marks), len(marks))
        assert row["accuracy"] == pytest.approx(share)
        assert row["interval"] == pytest.approx(wilson(share, len(marks)))


def test_a_column_is_an_expression_and_filters_hold(night):
    report = ab.report(night, by="length > 2", models=["large"], where="length < 4")
    rows = json.loads(report.as_json())["rows"]
    assert [(row["name"], row["value"], row["trials"]) for row in rows] == [
        ("large", "false", 20),
        ("large", "true", 10),
    ]
    assert len(json.loads(ab.report(night, by="length").as_json())["rows"]) == 8


@each_row(
    ("expression", "message"),
    [
        ("length %", "Parser Error"),
        ("lenght % 3", 'such as "length % 3"'),
        ("length); DROP TABLE trials; SELECT (1", "--by length); DROP"),
        ("(SELECT count(*) FROM read_csv('x.csv'))", "cannot use read_csv"),
        ("problem_id || model", "40 values"),
        ("efort", "What varies there: nothing. You can also write an SQL expression"),
    ],
)
def test_what_is_no_expression_is_refused(night, monkeypatch, expression, message):
    monkeypatch.setattr("asyncbench.reports.by_expression.MOST_VALUES", 39)
    with pytest.raises(ConfigError) as refused:
        ab.report(night, by=expression, models=["small"])
    assert message in str(refused.value)
