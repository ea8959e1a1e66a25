"""Heatmaps of accuracy: what stands where, and that a terminal shows them shaded and a pipe plain."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len

from asyncbench.analysis.counting import counted
from asyncbench.reports.heatmap import FEW, MARK, MOST_LENGTHS, accuracy_maps_of, range_text, ranges_of
from asyncbench.tables.numbers import whole_percent
from tests.reports.answered import Asked, folder_of

TASKS = ("add", "max", "sub")


def tables(report, width=200):
    """The tables by title, as (head, rows) split at spaces; empty cells are not there."""
    found = {}
    for table in report.as_text(width=width).split("\n\n")[1:]:
        title, head, *rows = table.splitlines()
        found[title] = (head.split(), [row.split() for row in rows])
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Lengths 1 to 3 of ten problems each; `good` breaks at the third, `bad` at the second."""
    asked = [
        Asked(model=model, outcomes=outcomes, task=task)
        for model, outcomes in (("bad", "+" * 9 + "-" * 21), ("good", "+" * 25 + "-" * 5))
        for task in TASKS
    ]
    return folder_of(tmp_path_factory.mktemp("maps"), asked)


def test_models_and_tasks_stand_side_by_side_with_the_best_first(folder):
    head, rows = tables(counted(folder, accuracy_maps_of))["Accuracy by task and model"]
    assert head == ["task", "good", "bad"]
    assert rows == [[task, "83", "30"] for task in TASKS]


def test_tasks_stand_over_lengths_for_each_model_so_that_one_sees_where_it_breaks(folder):
    found = tables(counted(folder, accuracy_maps_of))
    for model, shares in (("good", ["100", "100", "50"]), ("bad", ["90", "0", "0"])):
        head, rows = found[f"{model}, nupa: accuracy by task and length"]
        assert head == ["task", "1", "2", "3"]
        assert rows == [[task, *shares] for task in TASKS]


def test_of_fewer_tasks_than_models_each_has_models_over_lengths(tmp_path):
    asked = [Asked(model=model, outcomes="+" * n + "-" * (20 - n)) for model, n in (("a", 5), ("b", 15))]
    found = tables(counted(folder_of(tmp_path, asked), accuracy_maps_of))
    assert found["add: accuracy by model and length"] == (
        ["model", "1", "2"],
        [["b", "100", "50"], ["a", "50", "0"]],
    )
    assert found["Accuracy by model and task"] == (["model", "add"], [["b", "75"], ["a", "25"]])


def test_what_was_not_asked_is_blank(tmp_path):
    asked = [
        Asked(model="a", outcomes="+" * 20),
        Asked(model="b", outcomes="-" * 10, first=10),
        Asked(model="b", outcomes="+" * 10, task="sub"),
    ]
    report = counted(folder_of(tmp_path, asked), accuracy_maps_of)
    assert re.search(r"^add        0$", report.as_text(width=200), re.MULTILINE)  # of `b`, by length
    assert re.search(r"^sub  100$", report.as_text(width=200), re.MULTILINE)
    assert "| add |  |   0 |" in report.as_markdown()


def test_conditions_and_runs_are_not_pooled(tmp_path):
    asked = [Asked(model="a", outcomes="+" * 10, condition="x"), Asked(model="a", outcomes="-" * 10)]
    report = counted(folder_of(tmp_path, asked), accuracy_maps_of)
    assert [(one.entrant[2], one.accuracy) for one in report.tasks] == [("plain", 0.0), ("x", 1.0)]
    assert report.as_text(width=200).count("a (x)") == 2


def test_tasks_of_one_name_in_two_suites_are_told_apart(tmp_path):
    asked = [Asked(model="a", outcomes="+" * 10, suite=suite) for suite in ("nupa", "llm_arithmetic")]
    _, rows = tables(counted(folder_of(tmp_path, asked), accuracy_maps_of))["Accuracy by task and model"]
    assert [row[0] for row in rows] == ["llm_arithmetic/add", "nupa/add"]


def test_few_problems_are_marked_however_often_they_were_asked(tmp_path):
    often = [Asked(model="often", outcomes="+" * (FEW - 1), repeat=repeat) for repeat in range(3)]
    asked = [*often, Asked(model="once", outcomes="-" * FEW)]
    report = counted(folder_of(tmp_path, asked), accuracy_maps_of)
    _, rows = tables(report)["Accuracy by model and task"]
    assert rows == [["often", f"{MARK}100"], ["once", "0"]]
    assert f"{MARK} marks a number from fewer than {FEW} problems." in report.as_text(width=300)


def test_where_no_share_is_of_few_problems_nothing_is_said_of_it(folder):
    assert MARK not in counted(folder, accuracy_maps_of).as_text(width=200)


def test_many_lengths_stand_in_ranges_that_the_head_tells(tmp_path):
    folder = folder_of(tmp_path, [Asked(model="a", outcomes="+" * 150 + "-" * 150)])  # lengths 1 to 30
    head, rows = tables(counted(folder, accuracy_maps_of))["a, nupa: accuracy by task and length"]
    assert head[:3] == ["task", "1-3", "4-6"]
    assert len(head) == 11
    assert rows == [["add", *["100"] * 5, *["0"] * 5]]


@given(st.sets(st.integers(min_value=0, max_value=10**6), max_size=200))
def test_each_length_is_in_one_range_and_ranges_are_few_and_do_not_meet(lengths):
    ranges = ranges_of(lengths)
    assert set(ranges) == lengths
    assert all(first <= length <= last for length, (first, last) in ranges.items())
    ascending = sorted(set(ranges.values()))
    assert len(ascending) <= MOST_LENGTHS
    assert all(a[1] < b[0] for a, b in pairwise(ascending))
    if len(lengths) <= MOST_LENGTHS:
        assert [range_text(one) for one in ascending] == [str(one) for one in sorted(lengths)]


@given(st.integers(min_value=1, max_value=10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_all_and_nothing_are_shown_only_where_it_is_all_and_nothing(counts):
    right, trials = counts
    shown = whole_percent(right / trials)
    assert (shown == "100", shown == "0") == (right == trials, right == 0)
    assert abs(int(shown) - 100 * right / trials) <= 1


def test_a_terminal_shows_colours_and_a_pipe_the_same_figures_plain(folder, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    plain = counted(folder, accuracy_maps_of).as_text(width=100)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = counted(folder, accuracy_maps_of).as_text(width=100)
    assert "\x1b" not in plain
    assert re.search(r"\x1b\[38;2;\d+;\d+;\d+;48;2;\d+;\d+;\d+m 90", shown)
    without = [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()]
    assert without == plain.splitlines()


@pytest.mark.long
@pytest.mark.parametrize("width", [60, 40, 30])
def test_a_narrow_screen_has_every_share(tmp_path, width):
    name = "provider/a-model-with-a-rather-long-name"
    report = counted(folder_of(tmp_path, [Asked(model=name, outcomes="+" * 7 + "-" * 113)]), accuracy_maps_of)
    text = report.as_text(width=width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "Too wide" not in text
    by_length = text[text.index("length") :].split()
    assert [word for word in by_length if word in ("70", "0")] == ["70", *["0"] * 11]
