"""Every recorded problem of the published code comes out the same, to the byte."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from asyncbench.suites.numbers import Parts, parts
from asyncbench.suites.nupa.generation import draft_nupa
from asyncbench.suites.nupa.operands import choose_by_operand
from asyncbench.suites.nupa.tasks import TASKS, NupaTask, template, writing
from tests.recorded import nupa_problems, texts_of

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows(golden: Path) -> list[Row]:
    return list(nupa_problems(golden).values())


def task_of(row: Row) -> NupaTask:
    return TASKS[row["task_name"]]


def numbers_of(row: Row) -> tuple[Parts, ...]:
    texts = texts_of(row)
    kinds = task_of(row).representations_of(len(texts))
    return tuple(parts(text, kind) for text, kind in zip(texts, kinds, strict=True))


def test_every_task_was_recorded(rows):
    assert {row["task_name"] for row in rows} == set(TASKS)
    assert {row["task_name"] for row in rows if row["in_released_list"]} == {
        name for name, task in TASKS.items() if "released" in task.sets
    }


def test_operands_are_prepared_as_published(rows):
    for row in rows:
        if row["raw_a"] is None:
            continue  # picked by hand, not drawn
        task = task_of(row)
        a, b = (parts(row[name], task.representation) for name in ("raw_a", "raw_b"))
        assert writing(task)(task.prepare_as_published(a, b, choose_by_operand)) == texts_of(row), row["id"]


def test_questions_are_asked_as_published(rows):
    for row in rows:
        asked = template(task_of(row), "reference") % texts_of(row)
        assert hashlib.sha256(asked.encode()).hexdigest()[:16] == row["question_sha256"], (row["id"], asked)


def test_only_a_slip_of_the_published_questions_is_corrected(rows):
    for row in rows:
        fixed = row["question"].replace("mininal", "minimal")
        assert template(task_of(row), "fixed") % texts_of(row) == fixed, row["id"]


def test_problems_are_as_long_as_published(rows):
    for row in rows:
        assert task_of(row).length(numbers_of(row)) == row["digit"], row["id"]


@pytest.mark.parametrize(
    ("profile", "column"), [("reference", "groundtruth"), ("fixed", "groundtruth_correct")]
)
def test_answers_are_the_published_ones_and_corrected_the_exact_ones(rows, profile, column):
    for row in rows:
        made = draft_nupa(task_of(row), texts_of(row), profile=profile)
        assert (made.expected, made.length) == (row[column], row["digit"]), row["id"]


def test_the_answer_of_the_other_profile_stands_beside_where_it_differs(rows):
    names = {
        "fixed": ("expected_reference", "groundtruth"),
        "reference": ("expected_exact", "groundtruth_correct"),
    }
    for row in rows:
        for profile, (name, column) in names.items():
            extra = json.loads(draft_nupa(task_of(row), texts_of(row), profile=profile).extra)
            differs = row["groundtruth"] != row["groundtruth_correct"]
            assert extra.get(name) == (row[column] if differs else None), row["id"]
