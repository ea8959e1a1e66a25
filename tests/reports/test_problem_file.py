"""`problems inspect`: what was guessed, what is asked, and the lines that ask it."""

import json
from pathlib import Path

import pytest
import yaml

import asyncbench as ab
from asyncbench.problems.opening import open_set
from tests.commands import asyncbench_here

GSM: list[dict[str, object]] = [
    {"id": n, "question": f"{n} + 1?", "answer": f"{n} + 1 = {n + 1}\n#### {n + 1}"} for n in range(12)
]


def written(folder: Path, rows: list[dict[str, object]] = GSM, name: str = "gsm.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_file_shows_its_columns_ten_questions_and_the_lines_for_a_sweep(tmp_path):
    path = written(tmp_path)
    done = asyncbench_here("problems", "inspect", path)

    assert done.returncode == 0
    for said in (
        "12 problems",
        "question is read from column 'question'.",
        "expected is read from column 'answer' (guessed from its name).",
        "Other columns are not used: id.",
        "Replies are graded by 'number' (guessed from the expected answers).",
    ):
        assert said in done.stdout
    shown = [line for line in done.stdout.splitlines() if line.endswith("+ 1?")]
    assert shown == [row["question"] for row in GSM[:10]]
    (entry,) = yaml.safe_load(done.stdout.partition("For your sweep file:")[2])["problems"]
    assert list(open_set(**entry).read()) == list(open_set(path, suite="custom", grader="number").read())


def test_a_problem_is_shown_as_its_suite_words_it_and_its_own_set_is_named_alone(monkeypatch):
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    found = ab.inspect_problems("data/nupa-mini.parquet")

    assert found.sweep == "problems: [data/nupa-mini.parquet]\n"
    assert [message["role"] for message in found.examples[0].messages] == ["system", "user"]
    assert {shown.outcome for shown in found.examples} == {"correct"}
    assert (found.columns, found.grader) == ({}, None)


@pytest.mark.parametrize(
    ("answers", "grader"),
    [
        (["7", "1,200", "#### 1.50"], "number"),
        (["A", "(b)", "C."], "choice"),
        (["Paris", "7"], "exact"),
        (["A", "7"], "exact"),
    ],
)
def test_the_grader_is_one_that_reads_every_expected_answer(answers, grader, tmp_path):
    rows: list[dict[str, object]] = [{"prompt": "?", "target": answer} for answer in answers]
    found = ab.inspect_problems(written(tmp_path, rows))

    assert (found.grader, found.grader_guessed) == (grader, True)
    assert {shown.outcome for shown in found.examples} == {"correct"}


def test_what_you_name_is_taken_and_a_wrong_choice_is_told(tmp_path):
    path = written(tmp_path, [{"q": "1 + 1?", "a": "it is 2 or so", "b": "2"}])
    columns = "question=q,expected=a"
    done = asyncbench_here("problems", "inspect", path, "--columns", columns, "--grader", "exact", "--json")
    found = json.loads(done.stdout)

    assert found["columns"] == {"question": "q", "expected": "a"}
    assert (found["guessed"], found["unused"], found["grader_guessed"]) == ([], ["b"], False)
    refused = asyncbench_here("problems", "inspect", path, "--columns", "q")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "Write it as question=YOUR_COLUMN" in refused.stderr
    refused = asyncbench_here("problems", "inspect", path)
    assert refused.returncode == 2
    assert "line 1: it has no column 'question'. Its columns: q, a, b. Name the column" in refused.stderr


def test_long_questions_and_numbers_are_cut_on_the_screen_and_whole_in_json(tmp_path):
    question, number = "seven" * 1_000, "7" * 5_000
    found = ab.inspect_problems(written(tmp_path, [{"question": question, "answer": number}]))

    assert found.as_text().count("(5,000 characters in all)") == 3  # expected, and as it is read, too
    for text in (question, number):
        assert text not in found.as_text(width=10_000)
        assert text in found.as_json()
