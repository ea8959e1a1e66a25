"""Several accepted answers of a problem: lists in cells, and several columns."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.opening import open_set
from asyncbench.records import Problem, Reply
from asyncbench.suites.table import grade

TWO = '["Paris", "Paname"]'


def opened(path, **kind) -> list[Problem]:
    return list(open_set(path, suite="custom", **kind).read())


def csv(folder, *cells: str, head: str = "question,expected"):
    path = folder / "own.csv"
    rows = [
        f"{n}?," + ",".join(f'"{text}"' for text in cell.replace('"', '""').split("|"))
        for n, cell in enumerate(cells)
    ]
    path.write_text("\n".join([head, *rows]))
    return path


CELLS = {  # of a CSV: is a text that is a JSON list of texts opened?
    "text": True,
    "contains": True,
    "number": True,
    "choice": True,
    "exact": False,
    "json": False,
}


@pytest.mark.parametrize(("grader", "is_list"), CELLS.items())
def test_a_text_that_is_a_list_is_opened_for_graders_that_read_no_list(tmp_path, grader, is_list):
    text = '["1", "2"]' if grader == "number" else '["A", "B"]'
    (problem,) = opened(csv(tmp_path, text), grader=grader)
    assert problem.accepted == (tuple(json.loads(text)) if is_list else (text,))
    if not is_list:
        assert json.loads(problem.extra) == {"grader": grader}  # as it always was


def test_columns_as_a_list_open_it_for_any_grader(tmp_path):
    (problem,) = opened(csv(tmp_path, TWO), grader="exact", columns={"expected": ["expected"]})
    assert problem.accepted == ("Paris", "Paname")
    assert [grade(problem, Reply(text=text))[0].exact_match for text in ("Paname", TWO)] == [True, False]


def test_several_columns_are_accepted_and_an_empty_one_says_nothing(tmp_path):
    path = csv(tmp_path, "Paris|Paname", "Roma|", "|Bern", head="question,answer,alias")
    problems = opened(path, grader="exact", columns={"expected": ["answer", "alias"]})
    assert [problem.accepted for problem in problems] == [("Paris", "Paname"), ("Roma",), ("Bern",)]
    assert [problem.expected for problem in problems] == ["Paris", "Roma", "Bern"]


def test_lists_of_json_lines_and_parquet_are_accepted_answers(tmp_path):
    rows = [{"question": "a", "expected": ["1", "2", "1"]}, {"question": "b", "expected": ["3"]}]
    lines, table = tmp_path / "own.jsonl", tmp_path / "own.parquet"
    lines.write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), table)
    for path in (lines, table):
        problems = opened(path, grader="number")
        assert [problem.accepted for problem in problems] == [("1", "2"), ("3",)]
        assert grade(problems[0], Reply(text="It is 2."))[0].exact_match
    ids = [[problem.problem_id for problem in opened(path, grader="number")] for path in (lines, table)]
    assert ids[0] == ids[1]


def test_parquet_columns_may_lack_some_answers(tmp_path):
    table = pa.table({"question": ["a", "b"], "x": ["1", None], "y": pa.array([None, 2], pa.int64())})
    pq.write_table(table, tmp_path / "own.parquet")
    problems = opened(tmp_path / "own.parquet", grader="exact", columns={"expected": ["x", "y"]})
    assert [problem.accepted for problem in problems] == [("1",), ("2",)]


def test_for_json_any_value_of_json_lines_is_the_expected_value(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(
        '{"question": "a", "expected": {"n": 1.50, "of": [1, null]}}\n{"question": "b", "expected": [1]}'
    )
    problems = opened(path, grader="json")
    assert [problem.expected for problem in problems] == ['{"n": 1.50, "of": [1, null]}', "[1]"]


REFUSED = {
    "an empty list": ('{"question": "a", "expected": []}', {}, "no accepted answer"),
    "an object in it": ('{"question": "a", "expected": [{}]}', {}, "an accepted answer is an object"),
    "null in it": ('{"question": "a", "expected": ["a", null]}', {}, "an accepted answer is null"),
    "a blank one": ('{"question": "a", "expected": ["a", " "]}', {}, "finds no answer"),
    "no column": ('{"question": "a", "expected": "a"}', {"columns": {"expected": []}}, "expected is []"),
    "a list of questions": ('{"question": "a"}', {"columns": {"question": ["a"]}}, "Only `expected`"),
    "a column that is not there": (
        '{"question": "a", "expected": "a"}',
        {"columns": {"expected": ["expected", "alias"]}},
        "no column 'alias'",
    ),
}


@pytest.mark.parametrize(("line", "kind", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_list_of_answers_is_refused(tmp_path, line, kind, why):
    path = tmp_path / "own.jsonl"
    path.write_text(line)
    with pytest.raises((ProblemSetError, ConfigError)) as refusal:
        opened(path, grader="exact", **kind)
    assert why in str(refusal.value)


def test_an_assertion_that_asyncbench_does_not_have_is_refused(tmp_path):
    path = csv(tmp_path, "equals: 2", "llm-rubric: polite", head="question,__expected")

    with pytest.raises(
        ProblemSetError, match="line 3: column '__expected': there is no assertion 'llm-rubric'"
    ):
        opened(path, grader="exact")
