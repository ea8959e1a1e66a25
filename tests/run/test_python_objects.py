"""Rows, functions and graders of a program in a sweep: how they fail, and who resumes them."""

import asyncio
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.planning.preflight import open_sources
from asyncbench.records import Outcome
from asyncbench.run.progress import Quiet
from asyncbench.run.summary import Exit, Summary
from tests.rows import each_row

ROWS = [{"question": "2 + 2?", "answer": "4"}, {"question": "3 + 3?", "answer": "6"}]
MINE = """
FACTS = {"2 + 2?": "4", "3 + 3?": "6"}


async def answer(question):
    return FACTS[question]


def talk(messages, temperature):
    assert messages[0] == {"role": "system", "content": "Be brief."}
    return {"text": FACTS[messages[-1]["content"]], "input_tokens": 9, "cost_usd": temperature}


def right(reply, problem):
    return reply == problem.expected
"""


class Frame:
    """A table that is only known by the Arrow protocol, as one of Polars is."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def imported(path: Path) -> Any:
    """Import a file once more."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Said(Quiet):
    """A screen that keeps what it is told."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def say(self, message: str) -> None:
        self.messages.append(message)


def run(out: Path, models: list[object], **keys: object) -> tuple[Summary, list[str]]:
    """Run a sweep of two questions; return its summary, and what it said."""
    said = Said()
    sweep = {"problems": ROWS, "models": models, "out": out, "grader": "number", **keys}
    return asyncio.run(ab.run_sweep(sweep, screen=said)), said.messages


@each_row(
    "rows, answers",
    [
        pytest.param(ROWS, ["4", "6"], id="a list of dicts"),
        pytest.param(pd.DataFrame(ROWS, index=[7, 9]), ["4", "6"], id="pandas, whose index says nothing"),
        pytest.param(
            pd.DataFrame({"question": ["a", "b"], "answer": [4, 6]}), ["4", "6"], id="integers of pandas"
        ),
        pytest.param(
            pd.DataFrame({"question": ["a", "b"], "answer": [4.0, 6.0], "gap": [None, 1.0]}),
            ["4", "6"],
            id="a column of floats that is whole",
        ),
        pytest.param(
            pd.DataFrame({"question": ["a", "b"], "answer": [4.0, 6.5]}), ["4.0", "6.5"], id="other floats"
        ),
        pytest.param(
            pd.DataFrame({"question": ["a", "b"], "answer": [4, "6"]}),
            ["4", "6"],
            id="a column of several types",
        ),
        pytest.param(
            pd.DataFrame({"question": ["a"], "answer": np.array([0.1], dtype="float32")}),
            ["0.1"],
            id="short floats",
        ),
        pytest.param(
            pd.DataFrame({"question": ["a"], "answer": [10**30]}), [f"{10**30}"], id="integers beyond 64 bits"
        ),
        pytest.param(
            pd.DataFrame({"question": ["a", "b"], "answer": pd.arrays.SparseArray([0, 1])}),
            ["0", "1"],
            id="a sparse column",
        ),
        pytest.param(
            pd.DataFrame(
                {
                    "question": pd.Series(["a", "b"], dtype="string"),
                    "answer": pd.Categorical([4, 6]),
                    "gap": pd.array([pd.NA, 1], dtype="Int64"),
                    "day": [pd.NaT, pd.Timestamp("2026-11-29")],
                    "mixed": ["a", pd.NA],
                    "far": [float("inf"), 1.0],
                }
            ),
            ["4", "6"],
            id="nullable, categorical and missing values",
        ),
        pytest.param(
            pd.DataFrame({"answer": [4, 6]}, index=pd.Index(["a", "b"], name="question")),
            ["4", "6"],
            id="an index with a name",
        ),
        pytest.param(
            pl.DataFrame({"question": ["a", "b"], "answer": [4.0, 6.0], "gap": [float("nan"), 1.0]}),
            ["4", "6"],
            id="Polars, with no number in a column of floats",
        ),
        pytest.param([{"question": "a", "answer": np.int64(4)}], ["4"], id="values of numpy"),
        pytest.param(pa.Table.from_pylist(ROWS), ["4", "6"], id="a table of Arrow"),
        pytest.param(Frame(pa.Table.from_pylist(ROWS)), ["4", "6"], id="a table by its protocol"),
        pytest.param(
            [{"path": ROWS, "columns": {"expected": "answer"}}], ["4", "6"], id="rows with columns named"
        ),
        pytest.param([ROWS[0], ROWS[0]], ["4", "4"], id="the same question twice"),
    ],
)
def test_rows_are_asked_as_a_file_of_them_would_be(rows, answers):
    sweep = ab.load_sweep({"problems": rows, "models": ["simulated/oracle"], "grader": "exact"})
    (opened,) = open_sources(sweep, sweep.models).values()
    assert [answer for batch in opened.batches(10) for answer in batch["expected"].to_pylist()] == answers


@each_row(
    "problems, complaint",
    [
        pytest.param(pd.DataFrame({"question": [], "answer": []}), "the table has no rows", id="no rows"),
        pytest.param(
            pd.DataFrame([["a", 1, 2]], columns=["question", "x", "x"]),
            "called x",
            id="two columns of a name",
        ),
        pytest.param([{"question": object()}], "row 1, column 'question': <object object at", id="an object"),
        pytest.param(
            pd.DataFrame({"question": ["a"], "x": [object()]}),
            "column 'x': <object",
            id="an object of pandas",
        ),
        pytest.param(pd.Series(["a"], name="question"), "a Series is here", id="a column alone"),
        pytest.param(pl.DataFrame(ROWS).lazy(), "is a LazyFrame.*`collect", id="a lazy frame"),
        pytest.param((row for row in ROWS), "is a generator", id="a generator"),
    ],
)
def test_rows_that_cannot_be_problems_are_refused(problems, complaint):
    with pytest.raises(ConfigError, match=complaint):
        ab.load_sweep({"problems": problems, "models": ["simulated/oracle"], "grader": "exact"})


def test_a_function_of_a_file_resumes_until_its_source_changes(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    out, mine = tmp_path / "out", imported(file)
    first, _ = run(out, [mine.answer], grader=mine.right)
    assert first.exit is Exit.COMPLETE
    assert first.models["answer"].outcomes[Outcome.CORRECT] == 2

    # another import, and a change elsewhere in the file: the same function
    file.write_text(f"{MINE}\nOTHER = 1\n")
    again, messages = run(out, [imported(file).answer], grader=imported(file).right)
    assert again.models["answer"].done_before == 2
    assert not any("another session" in message for message in messages)

    # what it uses has changed: another function, beside the first
    file.write_text(MINE.replace('"3 + 3?": "6"', '"3 + 3?": "7"'))
    changed, messages = run(out, [imported(file).answer], grader=imported(file).right)
    assert changed.models["answer #2"].outcomes[Outcome.CORRECT] == 1
    assert any("another version of this function" in message for message in messages)
    assert ab.read_trials(out, ["model"])["model"].to_pylist().count("answer") == 2

    file.write_text(MINE.replace('"4"', '"5"'))
    with pytest.raises(ConfigError, match="is not what it was"):
        asyncio.run(ab.run_sweep(out / "sweep.yaml"))


def test_a_sweep_file_names_functions_of_a_file(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "rows.jsonl").write_text('{"question": "2 + 2?", "answer": "4"}\n')
    (tmp_path / "own.yaml").write_text(
        f"name: own\nout: {tmp_path / 'out'}\nmodels:\n"
        "  - mine.py:answer\n"
        "  - {model: mine.py:talk, system: Be brief., temperature: 0.5}\n"
        "problems: [{path: rows.jsonl, suite: custom, grader: mine.py:right}]\n"
    )
    summary = asyncio.run(ab.run_sweep(tmp_path / "own.yaml"))
    assert summary.exit is Exit.COMPLETE
    rows = ab.read_trials(tmp_path / "out", ["model", "outcome", "input_tokens", "cost_usd"]).to_pylist()
    assert sorted(map(tuple, map(dict.values, rows)), key=str) == [
        ("answer", "correct", None, None),
        ("talk", "correct", 9, 0.5),
    ]


@pytest.mark.long
def test_doctor_tries_a_function_without_parameters_that_it_does_not_take(tmp_path):
    sweep = {"problems": ROWS, "models": [f"{tmp_path / 'mine.py'}:short"], "grader": "number"}
    (tmp_path / "mine.py").write_text("async def short(question):\n    return '4'\n")
    checkup = asyncio.run(ab.doctor(sweep))
    assert "unexpected keyword" not in repr(checkup)


def test_functions_that_nobody_can_tell_from_others_say_so(tmp_path):
    async def closure(_):
        return "4"

    _, messages = run(tmp_path, [closure, {"model": lambda _: "6", "alias": "l"}], grader=lambda _, __: 1.0)
    assert any(message.startswith("closure, l: a lambda, a closure or") for message in messages)
    assert any(message.startswith("grader lambda: a lambda") for message in messages)

    # in this process they are the same; the sweep file of the folder cannot bring them back elsewhere
    again, _ = run(tmp_path, [closure], grader="number")
    assert again.models["closure"].done_before == 2
    text = (tmp_path / "sweep.yaml").read_text().replace("closure@", "closure@0000")[:-1]
    assert "python/closure@" in text


def test_another_lambda_as_grader_is_told_without_a_command_that_cannot_know_it(tmp_path):
    run(tmp_path, ["simulated/oracle"], grader=lambda _, __: True)
    _, messages = run(tmp_path, ["simulated/oracle"], grader=lambda _, __: False)
    (note,) = [message for message in messages if "were graded by" in message]
    assert note.startswith("2 trials were graded by another function 'lambda' of a Python session. To grade")
    assert "asyncbench regrade" not in note


def test_a_summary_names_no_command_that_cannot_know_a_function_of_the_session(tmp_path):
    async def fails(_):
        raise ValueError("no")

    summary, _ = run(tmp_path, [fails], grader="number")
    assert summary.exit is Exit.UNFINISHED
    assert "To ask again those without a reply: the same with retry=['failed']" in summary.as_text()
    assert "asyncbench run" not in summary.as_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        pytest.param(lambda _: None, "returned None. Return text, or a dict with `text`", id="returns None"),
        pytest.param(lambda _: 4, "returned 4. Return text", id="returns a number"),
        pytest.param(
            lambda _: {"text": "4", "tokens": 3},
            "returned 'tokens', which says",
            id="returns what says nothing",
        ),
        pytest.param(
            lambda question: question.nothing,
            "raised AttributeError: 'str' object has no attribute 'nothing'",
            id="raises",
        ),
    ],
)
def test_a_function_that_fails_is_no_wrong_answer(function, complaint, tmp_path):
    summary, messages = run(tmp_path / "out", [{"model": function, "alias": "f"}])
    assert summary.exit is Exit.UNFINISHED
    assert summary.models["f"].failed + summary.models["f"].open == 2
    assert any(complaint in message for message in messages), messages
    assert complaint.partition(": ")[2] in (tmp_path / "out" / "faults.txt").read_text()


@pytest.mark.parametrize(
    ("models", "keys", "complaint"),
    [
        pytest.param([lambda _, __: ""], {}, "takes others: missing a required argument", id="two arguments"),
        pytest.param(
            [{"model": lambda _: "", "temperature": 1}],
            {},
            "sets temperature, and the function takes others: got an unexpected",
            id="a parameter",
        ),
        pytest.param(
            [{"model": lambda _: "", "base_url": "http://x/v1"}],
            {},
            "has no base_url and no key",
            id="an address",
        ),
        pytest.param(["nowhere.py:answer"], {}, "nowhere.py was not found", id="no such file"),
        pytest.param(
            ["python/answer@0123456789ab"], {}, "a Python session that has ended", id="of another session"
        ),
        pytest.param(
            ["python/answer"], {}, "names no function. Write its file and its name", id="no function"
        ),
        pytest.param(["simulated/oracle"], {"grader": asyncio.sleep}, "is asynchronous", id="no grader"),
    ],
)
def test_what_cannot_be_called_is_refused_before_the_first_call(models, keys, complaint, tmp_path):
    with pytest.raises(ConfigError, match=complaint):
        run(tmp_path / "out", models, **keys)
    assert not (tmp_path / "out").exists()
