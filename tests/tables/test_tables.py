"""How tables and figures are written: on a screen, in Markdown, and what others wrote in them."""

import pytest

from asyncbench.tables.numbers import dollars, per_correct, per_correct_text
from asyncbench.tables.report import Sheet, safe_markdown, safe_note_markdown

NAME = "a-model-with-a-name-of-40-characters-here"


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (None, "unknown"),
        (0.0, "$0.0000"),
        (1234.5, "$1,234.5000"),
        (0.001, "$0.0010"),
        (0.0000469, "$0.0000469"),
        (1.5e-9, "$0.00000000150"),
    ],
)
def test_dollars_are_never_rounded_to_nothing(cost, shown):
    assert dollars(cost) == shown


@pytest.mark.parametrize(
    ("cost", "correct", "shown"),
    [
        (3.0, 2, "$1.5000"),
        (3.0, 0, "-"),
        (0.0, 0, "-"),
        (0.0, 2, "$0.0000"),
        (None, 0, "unknown"),
        (None, 2, "unknown"),
    ],
)
def test_a_right_answer_costs_something_unknown_only_where_no_cost_is_known(cost, correct, shown):
    assert per_correct_text(cost, per_correct(cost, correct)) == shown


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


def test_figures_that_do_not_fit_side_by_side_stand_below_each_other():
    head = ["name", *(f"figure {n}" for n in range(9))]
    sheet = Sheet(title="t", head=head, rows=[["model", *(f"{n}" * 12 for n in range(9))]])
    lines = sheet.as_text(width=40).splitlines()
    assert max(map(len, lines)) <= 40
    shown = [cell for line in lines if line.startswith("model") for cell in line.split()[1:]]
    assert shown == [f"{n}" * 12 for n in range(9)]
    assert lines.count("t") == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a|b", "a\\|b", id="bar"),
        pytest.param("a\\|b", "a\\\\\\|b", id="escaped bar"),
        pytest.param("`x`", "\\`x\\`", id="code"),
        pytest.param("<script>1 < 2</script>", "&lt;script>1 < 2&lt;/script>", id="tags"),
        pytest.param("<!-- -->", "&lt;!-- -->", id="comment"),
        pytest.param("&lt;b>", "&amp;lt;b>", id="entity"),
        pytest.param("[x](javascript:1)", "\\[x\\](javascript:1)", id="link"),
        pytest.param("![](http://x)", "!\\[\\](http&#58;//x)", id="picture"),
        pytest.param("**x**", "\\*\\*x\\*\\*", id="bold"),
        pytest.param("a\n# b", "a\\\\n# b", id="line"),
        pytest.param("Dev&Corr int_add $1.0000", "Dev&Corr int_add $1.0000", id="plain"),
    ],
)
def test_markup_of_others_is_text_in_markdown(text, shown):
    assert safe_markdown(text) == shown


def test_our_own_code_stays_code_in_notes():
    assert safe_note_markdown("`asyncbench regrade`: <b>*x*") == "`asyncbench regrade`: &lt;b>\\*x\\*"


@pytest.mark.parametrize("name", ["a\x1b[31mb\nc", "\u202ea", "<script>"])
def test_cells_heads_and_titles_are_safe_in_text_and_markdown(name):
    sheet = Sheet(title=name, head=["model", name], rows=[[name, name]])
    assert sheet.as_text(width=200).replace("\n", "").isprintable()
    assert sheet.as_text(width=20).replace("\n", "").isprintable()
    assert len(sheet.as_text(width=200).splitlines()) == 3
    text = Sheet(title=name, head=["model", name], rows=[[name, name]]).as_markdown()
    assert text == sheet.as_markdown()
    assert text.replace("\n", "").isprintable()
    assert "<script" not in text
    assert text.count("\n") == 5
