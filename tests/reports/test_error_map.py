"""`report --style error-map`: wrong digits by place, part and length, counted again from single answers."""

import json
import re
from collections import Counter
from itertools import zip_longest

import pytest

import asyncbench as ab
from asyncbench.analysis.anatomy.places import PARTS
from asyncbench.published.reports import DrawnReport
from asyncbench.stats.proportions import wilson
from tests.published.test_nupa_report import SUM, keep, problems, result, right
from tests.suites.made import problem

FLOATS, FRACTIONS, POWERS = (
    "add_Float_Float_Float",
    "add_Fraction_Fraction_Fraction",
    "to_scient_Float_none_ScientificNotation",
)
LONG = "max_Integer_Integer_Integer"
NAMES = {
    ".": ("integer", "decimals"),
    "/": ("numerator", "denominator"),
    "e": ("integer", "decimals", "exponent"),
}


def slipped(text, number):
    """A number with a digit that is one higher, without its first, or without its last."""
    place = [index for index, character in enumerate(text) if character.isdigit()][number % 3]
    changed = f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}"
    return (
        changed,
        text[1:] if text[1:2].isdigit() else changed,
        text[:-1] if text[-2:-1].isdigit() else changed,
    )[number % 3]


@pytest.fixture(scope="module")
def answers():
    """What was answered to sums of all forms: right, wrong in three ways, without a number, or not at all."""
    asked = [
        *problems(SUM, {3: 5, 4: 5}),
        *problems(FLOATS, {3: 4, 5: 4}),
        *problems(FRACTIONS, {2: 4, 3: 4}),
        *problems(POWERS, {4: 6}),
    ]
    said = {}
    for number, one in enumerate(asked):
        wrong = slipped(one.expected, number)
        said[one] = (one.expected, wrong, wrong, "nothing", None)[number % 5]
    return said


@pytest.fixture(scope="module")
def folder(answers, tmp_path_factory):
    texts = {
        one: said if said in (None, "nothing") else f"The answer is {said}" for one, said in answers.items()
    }
    return keep(
        tmp_path_factory.mktemp("errors") / "night", *(result(one, text) for one, text in texts.items())
    )


def cells_of(folder, **options):
    return json.loads(ab.report(folder, "error-map", **options).as_json())["cells"]


def parts_of(text):
    separator = next((sign for sign in "e/." if sign in text), "")
    return dict(zip(NAMES.get(separator, ("integer",)), re.split("[./e]", text), strict=True))


def test_each_cell_counts_the_wrong_digits_of_answers_that_were_read(answers, folder):
    digits, wrong = Counter[tuple[object, ...]](), Counter[tuple[object, ...]]()
    for one, said in answers.items():
        if said in (None, "nothing"):
            continue
        read = parts_of(said)
        for part, true in parts_of(one.expected).items():
            step = -1 if PARTS[part] else 1
            pairs = zip_longest(true[::step], read[part][::step][: len(true)])
            for place, (digit, answer) in enumerate(pairs, 1):
                cell = one.task, one.representation, part, one.length, place
                digits[cell] += 1
                wrong[cell] += digit != answer
    found = {
        (cell["task"], cell["representation"], cell["part"], cell["lengths"][0], cell["places"][0]): cell
        for cell in cells_of(folder)
    }
    assert {cell: each["digits"] for cell, each in found.items()} == digits
    assert {cell: each["wrong"] for cell, each in found.items() if each["wrong"]} == +wrong
    assert {each["part"] for each in found.values()} == PARTS.keys()
    for each in found.values():
        assert each["interval"] == pytest.approx(wilson(each["wrong"] / each["digits"], each["answers"]))


def test_right_digits_of_all_places_are_those_that_digit_match_counts(folder):
    query = (
        "SELECT sum(digits_right)::INT AS digits FROM grades WHERE grader = 'strict' AND answer IS NOT NULL"
    )
    (digits,) = ab.sql(folder, query)["digits"].to_pylist()
    assert sum(cell["digits"] - cell["wrong"] for cell in cells_of(folder)) == digits
    assert digits


def test_long_numbers_have_bins_of_lengths_and_of_places(tmp_path):
    asked = problems(LONG, {5: 1, 48: 1, 60: 1})
    cells = cells_of(keep(tmp_path, *(result(one, right(one)) for one in asked)))
    assert {tuple(cell["lengths"]) for cell in cells} == {(1, 5), (46, 50), (56, 60)}
    places = sorted(tuple(cell["places"]) for cell in cells if cell["lengths"] == [46, 50])
    assert places == [(first, first + 4) for first in range(1, 50, 5)]
    assert [
        cell["digits"] for cell in cells if cell["places"] == [46, 50] and cell["lengths"] == [46, 50]
    ] == [3]


def test_an_answer_that_is_right_in_other_words_has_no_wrong_digit_and_left_out_zeros_are_digits(tmp_path):
    asked = [
        problem("llm_arithmetic", expected, task="float_add", kind="float")
        for expected in ("12.5000", "2.2500")
    ]
    texts = ("12.5", "2.21")
    results = [result(one, text, model=f"m{text}") for one, text in zip(asked, texts, strict=True)]
    found = {
        (cell["model"], cell["part"], cell["places"][0]): cell["wrong"]
        for cell in cells_of(keep(tmp_path, *results))
    }
    assert {cell for cell, wrong in found.items() if wrong} == {("m2.21", "decimals", 2)}
    assert len([cell for cell in found if cell[1] == "decimals"]) == 8


def test_the_map_is_written_as_the_part_is_and_names_its_worst_place(folder):
    shown = ab.report(folder, "error-map")
    assert isinstance(shown, DrawnReport)
    maps = {picture.name: picture for picture in shown.pictures()}
    whole, decimals = maps["error-map-add-integer-integer"], maps["error-map-add-float-decimals"]
    assert [*whole.x_order] == [str(place) for place in range(len(whole.x_order), 0, -1)]
    assert [*decimals.x_order] == [str(place) for place in range(1, len(decimals.x_order) + 1)]
    assert [*whole.y_order] == ["3", "4"]
    assert "from the right" in whole.notes[0]
    assert "from the left" in decimals.notes[0]
    assert "| m | add integer | integer |" in shown.as_markdown()


def test_a_folder_without_numbers_says_so(tmp_path):
    (one,) = problems(SUM, {3: 1})
    assert "no answer is a number" in ab.report(keep(tmp_path, result(one, "nothing")), "error-map").as_text()


@pytest.mark.long
def test_a_cell_is_drawn_for_each_place_that_a_right_answer_has(folder, tmp_path):
    paths = ab.write_figures(folder, tmp_path / "out", "error-map", pictures=["add-fraction"])
    drawn = {path.name: path.read_text("utf-8") for path in paths if path.suffix == ".svg"}
    svg = drawn["error-map-add-fraction-numerator.svg"]
    cells = [cell for cell in cells_of(folder) if cell["part"] == "numerator"]
    assert svg.count('aria-roledescription="rect mark"') == len(cells) > 4
    assert (tmp_path / "out" / "error-map-add-fraction-numerator.md").exists()
