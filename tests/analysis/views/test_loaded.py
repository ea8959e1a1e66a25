"""Answers to a load are no second answer to the same question: they count only where they are asked for."""

from dataclasses import replace

import pytest

from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import counted
from asyncbench.analysis.sql import sql
from tests.store.made import answered, ended, folder_of, reply, result, trial

pytestmark = pytest.mark.long


@pytest.fixture
def folder(tmp_path):
    """A night of one trial, and a step of a load that asked the same and another."""
    loaded = [replace(trial(n), load="poisson 8/s #1") for n in (2, 3)]
    return folder_of(
        tmp_path / "night",
        *answered(1),
        *(event for one in loaded for event in (ended(one, reply(0)), result(one, reply(0)))),
    )


def counts(of):
    def work(views):
        direct = len(views.read("trials", ["trial_id"]))
        (row,) = views.rows(f"SELECT sum(trials)::INT AS cells FROM ({views.sums_query('cells')})")  # noqa: S608  our words
        ids = views.read("trials", ["trial_id"])["trial_id"].to_pylist()
        picked = sum(batch.num_rows for batch in views.trial_rows("trials", ["trial_id"], ids))
        (two,) = views.rows("SELECT (SELECT count(*) FROM trials) AS t, (SELECT count(*) FROM grades) AS g")
        return direct, row["cells"], picked, two["t"], two["g"]

    return counted(of, work)


def test_reports_leave_them_out_filtered_or_not(folder):
    assert counts(folder) == counts(chosen(folder, task="add")) == (1, 1, 1, 1, 2)


def test_who_asks_for_them_has_them_and_accuracy_still_has_not(folder):
    assert counts(chosen(folder, loaded=True)) == (3, 1, 3, 3, 6)
    assert counts(chosen(folder, task="add", loaded=True)) == (3, 1, 3, 3, 6)


def test_sql_shows_every_row_and_the_accuracy_at_rest(folder):
    assert sql(folder, "SELECT load, count(*) FROM trials GROUP BY 1 ORDER BY 1")["load"].to_pylist() == [
        "poisson 8/s #1",
        None,
    ]
    assert sql(folder, "SELECT trials FROM accuracy")["trials"].to_pylist() == [1]
