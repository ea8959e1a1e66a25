"""A file of one's own becomes a problem set: its columns mapped to ours, its values as exact text."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from asyncbench import read_trials
from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.making import copy_into
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.records import Problem, Reply
from asyncbench.reports.problem_file import inspect_problems
from asyncbench.suites.custom import grade
from tests.commands import asyncbench_here, succeeded

EXPECTED = {"question": "q", "expected": "a"}


def file(folder: Path, **columns: Any) -> Path:
    path = folder / "mine.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def opened(folder: Path, **columns: Any) -> ProblemSet:
    return open_set(file(folder, **columns), suite="custom", grader="exact")


def test_a_question_and_an_expected_answer_are_enough(tmp_path):
    problems = opened(tmp_path, question=["Capital of France?"], expected=["Paris"])

    assert list(problems.read()) == [
        Problem(
            problem_id=next(problems.read()).problem_id,
            suite="custom",
            task="custom",
            representation="text",
            length=None,
            question="Capital of France?",
            expected="Paris",
            answer_type="text",
            extra='{"grader": "exact"}',
        )
    ]
    assert (problems.name, problems.rows, problems.suites) == ("mine", 1, ("custom",))
    assert (problems.longest_question, problems.seed) == (len("Capital of France?"), None)


def test_columns_are_mapped_by_name(tmp_path):
    path = file(
        tmp_path,
        q=["1+1", "2+2"],
        a=[2, 4],
        kind=["easy sum", "sum"],
        hardness=["easy", ""],
        digits=[1, None],
        form=["integer", "integer"],
        note=["not", "read"],
    )
    columns = EXPECTED | {"task": "kind", "variant": "hardness", "length": "digits", "representation": "form"}
    problems = open_set(path, name="sums", suite="custom", columns=columns, grader="number")

    assert [
        (one.question, one.expected, one.task, one.variant, one.length, one.representation)
        for one in problems.read()
    ] == [("1+1", "2", "easy sum", "easy", 1, "integer"), ("2+2", "4", "sum", "", None, "integer")]
    assert problems.name == "sums"


def test_one_column_may_be_taken_twice(tmp_path):
    path = file(tmp_path, text=["say this"])
    columns = {"question": "text", "expected": "text"}
    (problem,) = open_set(path, suite="custom", columns=columns, grader="exact").read()

    assert (problem.question, problem.expected) == ("say this", "say this")


def test_the_grader_and_its_pattern_go_with_every_problem(tmp_path):
    path = file(tmp_path, question=["1+1"], expected=["2"])
    (problem,) = open_set(path, suite="custom", grader="regex", pattern="= (.*)").read()

    assert json.loads(problem.extra) == {"grader": "regex", "pattern": "= (.*)"}


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_whole_numbers_become_their_exact_text(tmp_path_factory, numbers):
    problems = opened(tmp_path_factory.mktemp("whole"), question=numbers, expected=numbers)

    assert [problem.expected for problem in problems.read()] == [str(number) for number in numbers]


@pytest.mark.parametrize("number", ["0.00000001", "1.50", "-3", "12345678901234567890.123", "0E+3"])
def test_decimals_become_their_exact_text_without_an_exponent(number, tmp_path):
    (problem,) = opened(tmp_path, question=["?"], expected=[Decimal(number)]).read()

    assert Decimal(problem.expected) == Decimal(number)
    assert "E" not in problem.expected


@pytest.mark.parametrize(
    "given_type", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_text_is_text_however_it_is_encoded(given_type, tmp_path):
    (problem,) = opened(tmp_path, question=["?"], expected=pa.array(["x"]).cast(given_type)).read()

    assert problem.expected == "x"


def test_reading_may_start_at_any_row(tmp_path):
    problems = opened(tmp_path, question=["?"] * 10, expected=[str(i) for i in range(10)])
    whole = list(problems.read())

    for start in range(12):
        assert list(problems.read(3, start)) == whole[start:]


COLUMNS: dict[str, list[Any]] = {"q": ["1+1", "2+2"], "a": ["2", "4"]}


@pytest.mark.parametrize(
    ("columns", "mapping", "complaint"),
    [
        pytest.param(
            COLUMNS,
            {"question": "q"},
            r"it has no column 'expected'. Its columns: q, a\. "
            r"Name the column to use as expected: `--columns expected=…`, or `columns: \{expected: …\}`",
            id="a column that is not there",
        ),
        pytest.param(
            COLUMNS | {"a": [0.1, 2.0]},
            EXPECTED,
            "column 'a' has type double, not text. Write it as text. A float may hold",
            id="floats are expected",
        ),
        pytest.param(
            COLUMNS | {"q": [True, False]},
            EXPECTED,
            "column 'q' has type bool, not text",
            id="booleans are asked",
        ),
        pytest.param(
            COLUMNS | {"q": [["1"], ["2"]]},
            EXPECTED,
            "column 'q' has type list<.*, not text",
            id="lists are asked",
        ),
        pytest.param(
            COLUMNS,
            EXPECTED | {"length": "q"},
            "column 'q' has type string, not whole numbers",
            id="a length in text",
        ),
        pytest.param(
            COLUMNS | {"n": [1, 2**40]},
            EXPECTED | {"length": "n"},
            "column 'n': Integer value 1099511627776 not in range",
            id="a length beyond int32",
        ),
        pytest.param(
            COLUMNS | {"form": ["integer", "roman"]},
            EXPECTED | {"representation": "form"},
            "column 'representation' holds 'roman'. Allowed: integer, float",
            id="no such representation",
        ),
        pytest.param(
            COLUMNS | {"a": ["2", None]},
            EXPECTED,
            "column 'a' is NULL in some rows. Fill it in, or remove",
            id="an answer that is NULL",
        ),
        pytest.param(
            COLUMNS | {"a": ["2", "two"]},
            EXPECTED,
            "column 'a': grader 'number' finds no answer in the expected value 'two'. Correct it",
            id="an answer its grader cannot read",
        ),
        pytest.param(
            {"q": pa.array([], pa.string()), "a": pa.array([], pa.string())},
            EXPECTED,
            "the file holds no problems",
            id="no rows",
        ),
    ],
)
def test_a_file_that_cannot_be_taken_is_refused(columns, mapping, complaint, tmp_path):
    path = file(tmp_path, **columns)

    with pytest.raises(ProblemSetError, match=rf"^{path}(, row \d+)?: {complaint}"):
        open_set(path, suite="custom", columns=mapping, grader="number")


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        pytest.param({}, "needs a `grader`: exact, number, choice, regex", id="no grader"),
        pytest.param({"grader": "vibes"}, "unknown grader 'vibes'. Known: exact", id="no such grader"),
        pytest.param({"grader": "regex"}, "pattern", id="no pattern"),
        pytest.param({"grader": "exact", "pattern": "(.*)"}, "takes no pattern", id="a pattern of no use"),
        pytest.param(
            {"grader": "exact", "columns": {"answer": "a"}},
            "columns: asyncbench has no column 'answer'. .*Its names: question, expected, task",
            id="no such column of ours",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(how, complaint, tmp_path):
    path = file(tmp_path, question=["?"], expected=["x"])

    with pytest.raises(ConfigError, match=f"^{path}: .*{complaint}"):
        open_set(path, suite="custom", **how)


def test_its_copy_is_a_problem_set_like_any_other_and_stands_alone(tmp_path):
    path = file(tmp_path, **COLUMNS)
    given = open_set(path, suite="custom", columns=EXPECTED, grader="number")
    made, content = copy_into(given, tmp_path / "problems"), list(given.read())
    path.unlink()

    assert open_set(made.path, name="mine") == made
    assert made.digest == given.digest
    assert list(made.read()) == content


def test_all_expected_values_that_are_not_one_number_are_refused_at_once(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("question,answer\na,1\nb,3:45\nc,x^2+1\n" + "d,3-5\n" * 9)

    with pytest.raises(ProblemSetError) as caught:
        open_set(path, suite="custom", grader="number")
    first, *others, count = str(caught.value).splitlines()
    assert f"{path}, line 3: column 'answer': grader 'number' cannot read the expected value '3:45'" in first
    assert [other.split(":")[0] for other in others] == [f"  {path}, line {line}" for line in range(4, 13)]
    assert count == "  … and 1 more"


@pytest.fixture
def decimal_commas(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("question;answer\nHalve 3.;1,5\nA thousand and a half?;1.000,5\n")
    return path


def test_a_comma_before_decimals_is_refused_with_the_way_to_say_so(decimal_commas):
    with pytest.raises(ProblemSetError, match=r"'1,5': its comma .* write `decimal: .,.`"):
        open_set(decimal_commas, suite="custom", grader="number")


@pytest.mark.parametrize("text", ["1,5", "1.5", "It is 1,50."])
def test_a_comma_before_decimals_holds_in_the_file_and_in_replies(decimal_commas, text):
    (half, _) = open_set(decimal_commas, suite="custom", grader="number", decimal=",").read()

    (one,) = grade(half, Reply(text=text))
    assert one.exact_match


@pytest.mark.long
def test_the_mark_before_decimals_may_be_given_to_a_command(decimal_commas, tmp_path):
    out = tmp_path / "out"
    told = succeeded(asyncbench_here("problems", "inspect", decimal_commas, "--decimal", ",")).stdout
    assert "',' stands before decimals" in told
    model = ("--model", "simulated/oracle", "--suite", "custom", "--grader", "number")
    failed = asyncbench_here("run", *model, "--problems", decimal_commas, "--out", out)
    assert "--decimal ," in failed.stderr
    succeeded(asyncbench_here("run", *model, "--problems", decimal_commas, "--decimal", ",", "--out", out))
    assert {*read_trials(out).column("answer").to_pylist()} == {"1.5", "1000.5"}


def test_a_file_with_commas_before_decimals_is_inspected_as_one(decimal_commas):
    inspected = inspect_problems(decimal_commas)

    assert (inspected.grader, inspected.decimal) == ("number", ",")
    assert "'1,5' is 1.5; '1.000,5' is 1000.5." in inspected.as_text()
    assert "decimal: ','" in inspected.sweep


def test_fractions_are_inspected_as_numbers(tmp_path):
    path = file(tmp_path, question=["?", "?"], answer=["3/4", "1 1/2"])

    assert "'3/4' is 3/4 = 0.75; '1 1/2' is 3/2 = 1.5." in inspect_problems(path).as_text()


@pytest.mark.parametrize("answers", [["1", "3:45"], ["3/4", "x^2"], ["1", "(3, 4)"]])
def test_a_grader_is_proposed_that_fits_all_answers(answers, tmp_path):
    assert inspect_problems(file(tmp_path, question=answers, answer=answers)).grader == "exact"


@pytest.mark.parametrize(
    ("answers", "told"),
    [("1,234;12", False), ("1.234;12", False), ("1,234;1.5", True), ("1,234,567;1,234", True)],
)
def test_a_file_with_semicolons_is_asked_what_stands_before_its_decimals(answers, told, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "question;answer\n" + "".join(f"{n}?;{answer}\n" for n, answer in enumerate(answers.split(";")))
    )
    if told:
        open_set(path, suite="custom", grader="number")
        return

    with pytest.raises(ProblemSetError, match=r"line 2: .* may have three decimals or a group"):
        open_set(path, suite="custom", grader="number")
    for decimal in (".", ","):
        assert open_set(path, suite="custom", grader="number", decimal=decimal).rows == 2
