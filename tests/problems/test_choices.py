"""Choices of a file of one's own: how they are asked, what an answer names, and what is refused."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.opening import open_set

FOUR = {"question": "q?", "choices": ["w", "x", "y", "z"]}


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "own.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def opened(path: Path, grader: str = "choice", **options: Any) -> list[tuple[str, str]]:
    """Return the questions and the expected answers of a file with a column of choices."""
    columns = {"choices": "choices"} | options.pop("columns", {})
    problems = open_set(path, suite="custom", grader=grader, columns=columns, **options)
    return [(problem.question, problem.expected) for problem in problems.read()]


@pytest.mark.parametrize(
    ("wording", "asked"),
    [
        (None, "q?\n\nA. w\nB. x\nC. y\nD. z\n\nAnswer with one letter."),
        ("{question}\n{choices}\nLetter:", "q?\nA. w\nB. x\nC. y\nD. z\nLetter:"),
        ("{context}: {question}", "Read {this}: q?"),
        ("{{{question}}}", "{q?}"),
    ],
)
def test_the_wording_shows_question_choices_and_any_column(wording, asked, tmp_path):
    path = written(tmp_path, FOUR | {"context": "Read {this}", "answer": "C"})

    assert opened(path, wording=wording) == [(asked, "C")]


def test_a_file_without_choices_has_a_wording_too(tmp_path):
    path = written(tmp_path, {"passage": "It rains.", "question": "Is it wet?", "answer": "yes"})
    (problem,) = open_set(path, suite="custom", grader="text", wording="{passage} {question}").read()

    assert problem.question == "It rains. Is it wet?"


def test_several_answers_are_all_accepted(tmp_path):
    path = written(tmp_path, FOUR | {"answer": ["x", "z"]})
    (problem,) = open_set(path, suite="custom", grader="choice", columns={"choices": "choices"}).read()

    assert problem.accepted == ("B", "D")


def test_choices_make_a_question_another_one(tmp_path):
    path = written(tmp_path, FOUR | {"answer": "A"}, FOUR | {"choices": ["a", "b"], "answer": "A"})
    problems = open_set(path, suite="custom", grader="choice", columns={"choices": "choices"})

    assert problems.repeats is None


@pytest.mark.parametrize(
    ("answers", "form", "letters"),
    [
        ((1, 2), None, "BC"),  # 0 and 4 are not there: as datasets of the Hub count
        ((1, 2), "position", "AB"),
        ((1, 4), None, "AD"),
        ((0, 3), None, "AD"),
        (("0", "3.0"), None, "AD"),
        (("b", "(C)."), None, "BC"),
        (("X", "y"), None, "BC"),
    ],
)
def test_the_form_of_the_answers_is_that_which_fits_all(answers, form, letters, tmp_path):
    rows = [FOUR | {"question": f"{n}?", "answer": answer} for n, answer in enumerate(answers)]

    assert "".join(expected for _, expected in opened(written(tmp_path, *rows), answer_form=form)) == letters


@pytest.mark.parametrize(
    ("row", "options", "complaint"),
    [
        ({"answer": "E"}, {"answer_form": "letter"}, "line 1: 'E' names none of the 4 choices as a letter"),
        ({"answer": 4}, {"answer_form": "index"}, "'4' names none of the 4 choices as a number from 0"),
        (
            {"choices": ["w"], "answer": "A"},
            {},
            r'holds 1 choices, not 2 to 26. Write a list such as \["Rome"',
        ),
        ({"choices": "w, x", "answer": "A"}, {}, "holds 0 choices"),
        ({"choices": ["w", None, "y"], "answer": "A"}, {}, "column 'choices': choice B is empty"),
        ({"choices": ["w", ["x"]], "answer": "A"}, {}, "choice B is no text"),
        ({"choices": ["1", "2"], "answer": "1"}, {}, "may be a number from 0 or the text of a choice. Write"),
        ({"answer": "A"}, {"grader": "number"}, "'number' finds no answer in the expected value 'A'"),
    ],
)
def test_what_is_no_choice_is_refused(row, options, complaint, tmp_path):
    with pytest.raises(ProblemSetError, match=complaint):
        opened(written(tmp_path, FOUR | row), **options)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"wording": "{choices}"}, "does not say where the question goes"),
        ({"wording": "{question} {contxt}"}, "unknown field {contxt}. Known: question, choices, answer"),
        ({"wording": "{question"}, "a brace without its other half"),
        ({"answer_form": "number"}, "unknown answer_form 'number'. Known: letter, index, position, text"),
        ({"columns": {"choices": []}}, "Only `expected` and `choices` take a list"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, complaint, tmp_path):
    with pytest.raises(ConfigError, match=complaint):
        opened(written(tmp_path, FOUR | {"answer": "A"}), **options)


# ── the order of choices

HUNDRED: list[dict[str, Any]] = [
    {"question": f"q{n}?", "choices": ["no", "yes", "perhaps", "never"], "answer": 1} for n in range(100)
]


def test_choices_are_shuffled_by_a_seed_and_the_right_letter_follows(tmp_path):
    path = written(tmp_path, *HUNDRED)
    shuffled = opened(path, shuffle_choices=7)

    assert all(f"{letter}. yes" in question for question, letter in shuffled)
    letters = Counter(letter for _, letter in shuffled)
    assert sorted(letters) == ["A", "B", "C", "D"]
    assert min(letters.values()) > 10
    assert "".join(letter for _, letter in shuffled[:8]) == "ACDAAABD"  # the same everywhere
    assert opened(path, shuffle_choices=7) == shuffled != opened(path, shuffle_choices=0)


def test_the_order_of_the_file_has_no_part_in_that_of_shuffled_choices(tmp_path):
    rows = [row | {"choices": row["choices"][::-1], "answer": 2} for row in HUNDRED]
    before = opened(written(tmp_path, *HUNDRED), shuffle_choices=7)

    assert opened(written(tmp_path, *rows), shuffle_choices=7) == before


def test_equal_choices_and_several_answers_stay_right_when_they_are_shuffled(tmp_path):
    path = written(tmp_path, {"question": "q?", "choices": ["x", "y", "x", "z"], "answer": ["x", "z"]})
    columns = {"choices": "choices"}
    (problem,) = open_set(path, suite="custom", grader="choice", columns=columns, shuffle_choices=3).read()
    lines = dict(line.split(". ") for line in problem.question.splitlines() if ". " in line)

    assert sorted(lines[letter] for letter in problem.accepted) == ["x", "x", "z"]


@pytest.mark.parametrize(
    ("columns", "wording", "said"),
    [
        ({"choices": "choices"}, "{question}", "`shuffle_choices` needs the choices in `wording`"),
        (None, None, "`shuffle_choices` needs choices"),
    ],
)
def test_shuffling_needs_choices_that_are_asked(columns, wording, said, tmp_path):
    path, keys = written(tmp_path, *HUNDRED), {"columns": columns, "wording": wording}
    with pytest.raises(ConfigError, match=said):
        open_set(path, suite="custom", grader="choice", shuffle_choices=0, **keys)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"grader": "number"}, True),
        ({"grader": "choice", "columns": {"choices": "choices"}, "shuffle_choices": 0}, False),
    ],
)
def test_a_plan_tells_of_choices_that_no_question_shows(keys, said, tmp_path):
    source = {"path": str(written(tmp_path, *HUNDRED)), "suite": "custom", **keys}
    sweep = {
        "name": "own",
        "problems": [source],
        "models": ["simulated/oracle"],
        "out": str(tmp_path / "out"),
    }
    notes = [note for note in ab.plan(sweep).warnings if "no question shows the choices" in note]

    way_out = "To ask them as A-D, set `grader: choice` and `columns: {choices: choices}`."
    assert [way_out in note for note in notes] == [True] * said
