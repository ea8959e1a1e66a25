"""How text and tables fit a screen: names fold, figures do not, and what others wrote does nothing."""

import re

import pytest
from rich.cells import cell_len

from asyncbench.tables.screen import NARROWEST, PIPED_WIDTH, fitted, folded, safe, safe_notes, shown_width

NAME = "a-model-with-a-name-of-40-characters-here"
FIGURES = ["1,234,567,890", "97.5% (95.0-98.8)", "< 1 (< 1 to 8.5) multiply hard fraction", "$12.3456"]
HEAD = ["tok.", "share", "digits at 90 %", "cost"]
WIDTHS = (200, 100, 80, 60, 40, 24)


def lines_of(width, *, names=(NAME,), figures=FIGURES):
    """A table of two rows: names, then the figures."""
    head = [*(f"name {n}" for n in range(len(names))), *HEAD[: len(figures)]]
    rows = [[*names, *figures], [*("m" for _ in names), *("1" for _ in figures)]]
    return fitted(head, rows, labels=len(names), width=width).splitlines()


@pytest.mark.parametrize(
    ("columns", "width"),
    [("80", 80), ("140", 140), ("", PIPED_WIDTH), ("0", PIPED_WIDTH), ("wide", PIPED_WIDTH)],
)
def test_in_a_pipe_columns_says_how_wide_tables_and_notes_are(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert shown_width() == width
    note = "word " * 100
    lines = safe_notes([note])[0].splitlines()
    assert max(map(cell_len, lines)) <= (width if columns in ("80", "140") else len(note))
    assert len(lines) > 1 or columns not in ("80", "140")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("names", [(NAME,), (NAME, "suite/a_task"), (NAME, "s", "what it is that is said")])
def test_no_line_is_longer_than_the_screen_is_wide(width, names):
    assert max(map(cell_len, lines_of(width, names=names))) <= width


@pytest.mark.parametrize("width", [width for width in WIDTHS if width >= 40])
def test_no_number_is_broken_and_none_is_lost(width):
    words = [word for line in lines_of(width) for word in line.split()]
    assert {word for figure in FIGURES for word in figure.split()} <= set(words)


def test_figures_stay_on_one_line_where_they_fit_beside_the_names():
    lines = lines_of(60)
    assert all(any(figure in line for line in lines) for figure in FIGURES)


def test_the_last_columns_give_way_first_and_stand_below_beside_the_names():
    lines = fitted(["name", *"abcdefgh"], [["model", *("1234567" for _ in range(8))]], labels=1, width=40)
    assert [re.sub(" +", " ", line) for line in lines.splitlines()] == [
        *("name a b c d", "model 1234567 1234567 1234567 1234567", ""),
        *("name e f g h", "model 1234567 1234567 1234567 1234567"),
    ]


def test_what_is_too_wide_even_alone_is_left_out_and_a_line_says_so():
    text = fitted(["name", "cost", "digits"], [["model", "1", "9" * 40]], labels=1, width=40)
    assert text.splitlines() == [
        *("name  cost", "model    1", ""),
        *("Too wide for 40 characters: digits. A", "wider terminal or --json has it."),
    ]
    assert "9" * 40 in fitted(["name", "cost", "digits"], [["model", "1", "9" * 40]], labels=1, width=60)


@pytest.mark.parametrize("width", [200, 60])
def test_heads_that_are_names_fold_over_their_figures(width):
    head, row = ["task", *(f"{NAME}-{n}" for n in range(4))], ["add", *("1%" for _ in range(4))]
    assert fitted(head, [row], labels=1, width=width).splitlines()[-1].split() == row


def test_a_head_of_several_words_folds_no_further_than_its_figures_are_wide():
    lines = fitted(
        ["model", "A − B (95 % CI)", "p", "x x x x x x x x x x x"],
        [["m", "-4.2 (-13.7 to +5.5)", "0.48", "1" * 24]],
        labels=1,
        width=56,
    )
    assert re.search(r"^model +A − B \(95 % CI\) +p +x( x)+$", lines, re.MULTILINE)


def test_the_first_two_names_stand_in_every_part_and_other_text_in_one():
    names = ["m", "s/t", "what it is"]
    lines = lines_of(40, names=names)
    beginnings = [line.split()[0] for line in lines if line.startswith("m ")]
    assert len(beginnings) > 2
    assert sum("what it is" in line for line in lines) == 1


def test_a_screen_narrower_than_any_table_gets_one_for_the_narrowest():
    assert lines_of(1) == lines_of(NARROWEST)


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        pytest.param("what it is", 10, ["what it is"], id="fits"),
        pytest.param("what it is", 8, ["what it", "is"], id="between words"),
        pytest.param("claude-sonnet-4-5", 14, ["claude-sonnet-", "4-5"], id="between parts of a name"),
        pytest.param("nupa/digit_add", 11, ["nupa/digit_", "add"], id="a task"),
        pytest.param("abcdefghij", 4, ["abcd", "efgh", "ij"], id="a name without parts"),
        pytest.param("12345678901234 is", 9, ["1234…1234", "is"], id="a number loses its middle"),
        pytest.param("-1234567.890123e45", 9, ["-123…3e45"], id="whatever its form"),
        pytest.param("数数数数", 4, ["数数", "数数"], id="wide characters"),
    ],
)
def test_text_folds_between_words_then_parts_of_names_and_never_in_a_number(text, width, shown):
    assert folded(text, width).split("\n") == shown


def test_sentences_fold_between_words_where_a_width_is_known():
    note = "one two three four"
    assert safe_notes([note], width=9) == ["one two\nthree\nfour"]
    assert safe_notes([note]) == [note]  # in a pipe
    assert safe_notes(["of a-model-2026"], width=11) == ["of a-model-\n2026"]


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
