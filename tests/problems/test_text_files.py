"""Files of one's own in every form: what is written stays as it is, and a fault has its line."""

import asyncio
import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.planning.sweep_plan import plan
from asyncbench.problems.making import copy_into
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.run.sweep_run import run_sweep
from tests.sweep_files import Said, outcomes

ROWS = [
    {"question": "Anna has 12 apples, and eats 5.\nHow many are left?", "answer": "12 - 5 = 7\n#### 7"},
    {"question": 'What is "half" of 3?', "answer": "3 / 2 = <<3/2=1.50>>1.50\n#### 1.50"},
    {"question": "Wie viel ist 600 × 2?", "answer": "600 × 2\n#### 1,200"},
    {"question": "Wie viel ist 600 × 2?", "answer": "#### 0012"},
]


def parquet(path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), path)


def table(path: Path, delimiter: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, ["question", "answer"], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(ROWS)


WRITERS = {
    "gsm.parquet": parquet,
    "gsm.csv": table,
    "semicolons.csv": lambda path: table(path, ";"),
    "gsm.TSV": lambda path: table(path, "\t"),
    "gsm.jsonl": lambda path: path.write_text("\n\n".join(map(json.dumps, ROWS))),
    "gsm.json": lambda path: path.write_text(json.dumps(ROWS, indent=2)),
}


def opened(folder: Path, name: str, content: bytes | str, **how: object) -> ProblemSet:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_set(path, suite="custom", **({"grader": "number"} | how))  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize("name", WRITERS)
def test_the_same_rows_are_the_same_problems_in_every_form(name, tmp_path):
    parquet(tmp_path / "rows.parquet")
    WRITERS[name](tmp_path / name)
    same = open_set(tmp_path / "rows.parquet", suite="custom", grader="number")
    problems = open_set(tmp_path / name, suite="custom", grader="number")

    assert list(problems.read()) == list(same.read())
    assert len({problem.problem_id for problem in problems.read()}) == len(ROWS)
    assert [problem.expected for problem in problems.read()] == [row["answer"] for row in ROWS]
    assert list(problems.read(2, 3)) == list(same.read())[3:]
    assert copy_into(problems, tmp_path / "copies").digest == same.digest


LONG = "9" * 40


@pytest.mark.parametrize("written", ["0012", "1.50", LONG, "-0", "1e3", " 7 "])
def test_a_number_in_a_table_stays_as_it_is_written(written, tmp_path):
    (problem,) = opened(tmp_path, "own.csv", f"question,answer\n{written},{written}\n").read()

    assert (problem.question, problem.expected) == (written, written)


@pytest.mark.parametrize("written", ["1.50", LONG, "-0", "1E3", '"0012"'])
def test_a_number_in_json_stays_as_it_is_written(written, tmp_path):
    (problem,) = opened(tmp_path, "own.jsonl", f'{{"question": "?", "answer": {written}}}\n').read()

    assert problem.expected == written.strip('"')


@pytest.mark.parametrize(
    ("header", "question", "expected"),
    [
        ("question,expected,answer", "question", "expected"),
        ("id,problem,solution,answer", "problem", "answer"),
        ("Prompt,Target", "Prompt", "Target"),
        ("input,output", "input", "output"),
        ("instruction,input,output", "input", "output"),
        ("final, question ", "question", "final"),
    ],
)
def test_columns_with_known_names_are_found(header, question, expected, tmp_path):
    names = [name.strip() for name in header.split(",")]
    values = ",".join("3" if name == expected else "1 + 2?" if name == question else "9" for name in names)
    problems = opened(tmp_path, "own.csv", f"{header}\n{values}\n")

    assert [(problem.question, problem.expected) for problem in problems.read()] == [("1 + 2?", "3")]
    assert problems.custom is not None
    assert problems.custom.columns == {"question": question, "expected": expected}  # type: ignore[union-attr]  # it is


def test_other_columns_are_mapped_and_a_length_may_be_empty(tmp_path):
    content = "q,answer,topic,steps\n1+1?,2,sums,3\n2+2?,4,sums,\n"
    columns = {"question": "q", "task": "topic", "length": "steps"}
    problems = opened(tmp_path, "own.csv", content, columns=columns)

    assert [(problem.task, problem.length) for problem in problems.read()] == [("sums", 3), ("sums", None)]


HEAD = "question,answer\n1+1?,2\n"


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.csv", HEAD + "2+2?,4,5\n", "line 3: 3 values, but the header has 2. Put a value with ','"),
        ("a.csv", HEAD + '"a\nb",2\n2+2?\n', "line 5: 1 values, but the header has 2"),
        ("a.csv", HEAD.encode() + b"2+\xe4?,4\n", r"line 3: it is not UTF-8 text \(byte 3: .*Save it as UTF"),
        ("a.csv", HEAD.encode("utf-16") + b"x", "line 3: it is not UTF-16 text"),
        ("a.csv", HEAD + '"2+2?,4\n', "line 3: it cannot be read as CSV: unexpected end"),
        (
            "a.csv",
            HEAD + "2+2?,four\n",
            "line 3: column 'answer': grader 'number' finds no answer in the exp",
        ),
        (
            "a.csv",
            "question,text\n1+1?,2\n",
            "line 2: it has no column 'expected'. Its columns: question, te",
        ),
        ("a.csv", "answer,answer\n1+1?,2\n", "line 1: two columns are called 'answer'. Rename one"),
        ("a.csv", b"question,answer\r1+1?\r", "line 2: 1 values, but the header has 2"),
        ("a.csv", "question,answer\n", "the file holds no problems"),
        ("a.csv", "", "the file is empty"),
        ("a.csv", "\n\n" + HEAD + "2+2?\n", "line 5: 1 values, but the header has 2"),
        ("a.csv", HEAD + " ,4\n", "line 3: column 'question' holds an empty question. Write one, or remove"),
        ("a.csv", "question,Answer,answer\n1+1?,3,2\n", "line 2: it has no column 'expected'"),
        (
            "a.jsonl",
            '{"question": "?", "answer": 2, "answer": 3}',
            "line 1: .*: an object has 'answer' twice",
        ),
        ("a.jsonl", '{"question": "?", "answer": 2}\n{"question": 1', "line 2: it cannot be read as JSON: "),
        (
            "a.jsonl",
            '{"question": "?", "answer": NaN}',
            "line 1: it cannot be read as JSON: NaN is no number",
        ),
        ("a.jsonl", '\n["?", 2]', "line 2: it is not a JSON object. Write it as"),
        ("a.jsonl", '{"question": "?", "answer": {"a": 2}}', "line 1: column 'answer' is an object"),
        ("a.jsonl", '{"question": null, "answer": 2}', "line 1: column 'question' is null, not text"),
        ("a.jsonl", '{"question": "?", "answer": 2}\n{"question": "?"}', "line 2: it has no column 'answer'"),
        ("a.jsonl", '{"question": "\\ud800", "answer": 2}', "line 1: column 'question' holds half of a char"),
        ("a.jsonl", "[" * 100_000, "line 1: it cannot be read as JSON"),
        (
            "a.json",
            '{"question": "?",\n "answer": 2}\n' * 2,
            "it cannot be read as JSON: .*one object per lin",
        ),
        ("a.json", '{"rows": []}', "it is not a list of JSON objects"),
        ("a.json", '[{"question": "?", "answer": 2}, 3]', "object 2: it is not a JSON object"),
    ],
)
def test_a_file_that_cannot_be_taken_is_refused_with_its_line(name, content, complaint, tmp_path):
    with pytest.raises(ProblemSetError, match=f"^{tmp_path / name}(, |: ){complaint}"):
        opened(tmp_path, name, content)


@pytest.mark.parametrize("length", ["two", "1.5", "9" * 12])
def test_a_length_is_a_whole_number(length, tmp_path):
    content = f"question,answer,n\n1+1?,2,{length}\n"
    with pytest.raises(ProblemSetError, match=r"line 2: column 'n' holds '.*', not a whole number below"):
        opened(tmp_path, "own.csv", content, columns={"length": "n"})


@pytest.mark.parametrize("name", ["gone.csv", "gone.jsonl"])
def test_a_file_that_is_not_there_is_named_in_every_form(name):
    with pytest.raises(ProblemSetError, match=f"^{name}: no such file. Correct the path"):
        open_set(name, suite="custom", grader="number")


def test_a_comma_in_a_quoted_name_is_no_separator(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text('question;answer;"source, year"\n1 + 1?;2;"a, 1999"\n')
    (problem,) = open_set(path, suite="custom", grader="number").read()
    assert (problem.question, problem.expected) == ("1 + 1?", "2")


def test_a_text_longer_than_most_tables_hold_is_read_whole(tmp_path):
    question = "7" * 1_000_000
    (problem,) = opened(tmp_path, "own.csv", f'question,answer\n"{question}",2\n').read()

    assert problem.question == question


def test_an_address_is_no_file():
    with pytest.raises(ConfigError, match="addresses are not supported"):
        open_set("gs://bucket/own.csv", suite="custom", grader="number")


def test_a_line_without_end_is_not_read_into_memory(tmp_path):
    with pytest.raises(ProblemSetError, match="line 1: it has more than 16,000,000 bytes"):
        opened(tmp_path, "own.jsonl", b" " * 16_000_001)


def test_guessed_columns_are_told_before_anything_is_asked(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("prompt,answer\n1 + 1?,2\n")
    source = {"path": str(path), "suite": "custom", "grader": "number"}
    sweep = {
        "name": "own",
        "problems": [source],
        "models": ["simulated/oracle"],
        "out": str(tmp_path / "out"),
    }
    screen = Said()
    planned = plan(sweep)
    asyncio.run(run_sweep(sweep, screen=screen))

    columns = "question is read from column 'prompt', expected is read from column 'answer'"
    said = f"{path}: {columns}. To choose others, set `columns`"
    for told in (screen.lines, planned.warnings):
        assert [line for line in told if line.startswith(said)] != []
    assert list(outcomes(tmp_path / "out").values()) == ["correct"]
    again = Said()
    sweep["problems"] = [{**source, "columns": {"question": "prompt", "expected": "answer"}}]
    asyncio.run(run_sweep(sweep, screen=again))
    assert [line for line in again.lines if "is read from" in line] == []


def test_all_broken_rows_are_named_at_once(tmp_path):
    lines = ["1+1?,2", "2+2?,four", " ,3", "3+3?", "4+4?,8,9", *["5+5?,ten"] * 12]
    with pytest.raises(ProblemSetError) as refusal:
        opened(tmp_path, "own.csv", "\n".join(["question,answer", *lines]))
    told = str(refusal.value).splitlines()

    assert [line.partition(": ")[0].rpartition(" ")[2] for line in told[:-1]] == [
        str(n) for n in range(3, 13)
    ]
    assert told[-1] == "  … and 6 more"


@pytest.mark.parametrize("name", ["own.jsonl", "own.parquet"])
def test_broken_rows_of_other_forms_are_named_at_once_too(name, tmp_path):
    rows = [{"question": "1?", "answer": answer} for answer in ("2", "two", "3", "three")]
    if name == "own.jsonl":
        content = "\n".join(map(json.dumps, rows)) + '\n{"question": \n'
        named = ["line 2", "line 4", "line 5"]
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name)
        content, named = (tmp_path / name).read_bytes(), ["row 2", "row 4"]
    with pytest.raises(ProblemSetError) as refusal:
        opened(tmp_path, name, content)
    assert [line.split(": ")[0].split(", ")[-1] for line in str(refusal.value).splitlines()] == named


def test_questions_that_are_there_again_are_named_with_lines_and_other_answers(tmp_path):
    lines = ["1+1?,2", "2+2?,4", "1+1?,2", "3+3?,6", "2+2?,5", "2+2?,4"]
    repeats = opened(tmp_path, "own.csv", "\n".join(["question,answer", *lines])).repeats
    assert repeats is not None
    again, contradicted = repeats.notes

    assert again.startswith("3 distinct questions of 6: ")
    assert again.endswith("line 2 (2) and line 4 (2); line 3 (4) and line 6 (5) and line 7 (4).")
    assert contradicted.startswith("1 of these questions have more than one answer")
    assert "line 3 (4) and line 6 (5). Correct them" in contradicted
    assert opened(tmp_path, "once.csv", HEAD).repeats is None
