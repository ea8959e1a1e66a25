"""How tables fit into a width: names fold, figures do not."""

import pytest

from asyncbench.analysis.tables import LEAST_NAME, Sheet, as_lines, columns

NAME = "a-model-with-a-name-of-40-characters-here"
FIGURES = ["1,234,567,890", "97.5% (95.0-98.8)", "$12.3456"]


def lines_of(width, *, names=(NAME,), head=None):
    """A table of one row: names, then the figures."""
    head = head or [*("name" for _ in names), "tok.", "share", "cost"]
    return as_lines(columns(head, [[*names, *FIGURES]], labels=len(names)), width=width).splitlines()


@pytest.mark.parametrize("width", [10, 60, 80, 200])
def test_figures_stand_on_one_line_whatever_the_width(width):
    assert "  ".join(FIGURES) in lines_of(width)[1]


@pytest.mark.parametrize(
    ("width", "widest"),
    [
        pytest.param(200, 41 + 44, id="all fits"),
        pytest.param(70, 70, id="the name folds"),
        pytest.param(10, LEAST_NAME + 44, id="the table overflows"),
    ],
)
def test_names_fold_to_a_minimum_before_a_table_overflows(width, widest):
    lines = lines_of(width)
    assert max(map(len, lines)) == widest
    assert "".join(line[: widest - 44].strip() for line in lines[1:]) == NAME


def test_a_short_name_gives_nothing_up():
    assert lines_of(10, names=("m", NAME))[1].startswith(f"m     {NAME[:LEAST_NAME]}  ")


def test_what_does_not_fit_is_packed_before_names_fold():
    sheet = Sheet(title="t", head=["name", "input tok.", "of_all"], rows=[[NAME, "1", "2"]])
    assert sheet.as_text(width=200).splitlines()[1].split() == ["name", "input", "tok.", "of_all"]
    packed = sheet.as_text(width=52).splitlines()
    assert [line.split() for line in packed[1:]] == [
        ["input", "of_"],
        ["name", "tok.", "all"],
        [NAME, "1", "2"],
    ]


def test_sheets_that_are_narrower_stand_in_for_one_that_does_not_fit():
    narrow = [Sheet(title=one, head=["name", one], rows=[["m", "1"]]) for one in ("a", "b")]
    wide = Sheet(title="a, b", head=["name", "a", "b"], rows=[["m", "1", "1" * 40]], instead=narrow)
    assert wide.as_text(width=80).splitlines()[0] == "a, b"
    assert [line for line in wide.as_text(width=20).splitlines() if len(line) == 1] == ["a", "b"]
