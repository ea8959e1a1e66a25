"""How tables fit into a width: names fold, figures do not."""

import pytest

from asyncbench.analysis.tables import (
    LEAST_NAME,
    Sheet,
    as_lines,
    columns,
    dollars,
    markdown,
    safe,
    safe_markdown,
    safe_note_markdown,
    safe_notes,
)

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


def test_figures_that_do_not_fit_side_by_side_stand_below_each_other():
    head = ["name", *(f"figure {n}" for n in range(9))]
    sheet = Sheet(title="t", head=head, rows=[["model", *(f"{n}" * 12 for n in range(9))]])
    lines = sheet.as_text(width=40).splitlines()
    assert max(map(len, lines)) <= 40
    shown = [cell for line in lines if line.startswith("model") for cell in line.split()[1:]]
    assert shown == [f"{n}" * 12 for n in range(9)]
    assert lines.count("t") == 1


def test_sentences_fold_between_words_where_a_width_is_known():
    note = "one two three four"
    assert safe_notes([note], width=9) == ["one two\nthree\nfour"]
    assert safe_notes([note]) == [note]  # in a pipe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("gpt-5 ÷ 数 é", "gpt-5 ÷ 数 é", id="what is seen stays"),
        pytest.param("\x1b[2J\x9b1m\x00\x07\x7f", r"\x1b[2J\x9b1m\x00\x07\x7f", id="controls"),
        pytest.param("a\r\nb\tc\u2028d", r"a\r\nb\tc\u2028d", id="lines"),
        pytest.param(
            "1\u202e2\u2066\u2069\u200e\u200f\u061c", r"1\u202e2\u2066\u2069\u200e\u200f\u061c", id="bidi"
        ),
        pytest.param("1\u200b2\ufeff\u00ad\U000e0041", r"1\u200b2\ufeff\xad\U000e0041", id="no width"),
        pytest.param("1\u202f000\u00a0", r"1\u202f000\xa0", id="odd spaces"),
        pytest.param("\ud800", r"\ud800", id="half a character"),
    ],
)
def test_what_could_do_something_is_written_out(text, shown):
    assert safe(text) == shown


def test_a_megabyte_is_cut_and_its_length_told():
    assert safe("7" * 1_000_000, most=5) == "77777… (1,000,000 characters)"
    assert safe("7" * 5, most=5) == "77777"


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
    text = markdown(["model", name], [[name, name]], labels=1, title=name)
    assert text == sheet.as_markdown()
    assert text.replace("\n", "").isprintable()
    assert "<script" not in text
    assert text.count("\n") == 5
