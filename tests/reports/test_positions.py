"""`report --style positions`: accuracy by the place of the right choice, and how often each is chosen."""

import json
from dataclasses import replace
from typing import Any

import pytest

import asyncbench as ab
from asyncbench.problems.schema import identified
from asyncbench.records import Condition, Draft, Model, Outcome, Reply, Trial
from asyncbench.stats.proportions import wilson
from asyncbench.store.folder import Store
from tests.reports.answered import Asked, folder_of
from tests.store import made

RIGHT = "ABCD" * 5
ANSWERS = {"always a": "A" * 20, "right": RIGHT, "silent": "ABC." * 5}  # a dot: no answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder in which three models answered twenty questions of four choices."""
    path = tmp_path_factory.mktemp("positions") / "out"
    kind: dict[str, Any] = {
        "suite": "custom",
        "task": "custom",
        "representation": "text",
        "answer_type": "text",
    }
    drafts = [Draft(**kind, length=None, question=f"q{n}", expected=letter) for n, letter in enumerate(RIGHT)]
    with Store.open(path, sweep="s") as store:
        number = 0
        for alias, answers in ANSWERS.items():
            for problem, answer in zip(identified(drafts), answers, strict=True):
                trial = Trial(
                    trial_id=made.trial_id(number),
                    run="s",
                    sweep="s",
                    problem_set="s",
                    problem=problem,
                    model=Model(alias=alias, provider="openai", model_id="m", api="chat"),
                    condition=Condition(name="plain"),
                )
                number += 1
                right = Outcome.CORRECT if answer == problem.expected else Outcome.WRONG
                outcome = Outcome.NO_ANSWER if answer == "." else right
                reply = Reply(text=answer)
                grade = made.grade(None if answer == "." else answer, outcome, grader="choice")
                closed = replace(made.result(trial, reply), grades=(grade,))
                made.keep(store, made.ended(trial, reply), closed)
        store.write_manifest({"runs": {"s": {"planned": {}}}})
    return path


def rows_of(folder, name):
    """Return the rows of a model by letter."""
    data = json.loads(ab.report(folder, "positions").as_json())
    return {row["letter"]: row for row in data["rows"] if row["name"] == name}


def test_a_model_that_always_takes_the_first_is_right_there_alone(folder):
    rows = rows_of(folder, "always a")

    assert [row["accuracy"] for row in rows.values()] == [1, 0, 0, 0]
    assert [(row["trials"], row["chosen"]) for row in rows.values()] == [(5, 20), (5, 0), (5, 0), (5, 0)]
    assert [row["chosen_share"] for row in rows.values()] == [1, 0, 0, 0]
    assert rows["A"]["interval"] == list(wilson(1, 5))
    assert rows["A"]["chosen_interval"] == list(wilson(1, 20))


def test_a_model_without_a_bias_chooses_each_as_often_as_it_is_right(folder):
    rows = rows_of(folder, "right")

    assert (
        {row["chosen_share"] for row in rows.values()} == {0.25} == {r["right_share"] for r in rows.values()}
    )


def test_a_trial_without_an_answer_chose_nothing_and_is_wrong(folder):
    rows = rows_of(folder, "silent")

    assert [row["chosen"] for row in rows.values()] == [5, 5, 5, 0]
    assert rows["D"]["accuracy"] == 0
    assert rows["A"]["chosen_share"] == pytest.approx(1 / 3)


def test_a_folder_without_letters_says_what_to_ask(tmp_path):
    text = ab.report(folder_of(tmp_path, [Asked(model="m", outcomes="+-")]), "positions").as_text()

    assert "no trial was graded by 'choice'" in text
    assert "`columns: {choices: …}`" in text
