"""The finest groups of trials: each counted once, unknown amounts left unknown."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from asyncbench import sql
from asyncbench.analysis.cells import COUNTS, SUMS
from asyncbench.store.schema import CELL, GRADES, OF_THE_TRIAL, TRIALS
from tests.analysis.views.made import views_of
from tests.reports.test_report import folder

__all__ = ["folder"]

ASKED = {
    "run": "night",
    "model": "m",
    "condition": "plain",
    "suite": "s",
    "task": "t",
    "variant": "",
    "representation": "integer",
    "length": 3,
    "repeat": 0,
}


def table(schema, rows):
    return pa.Table.from_pylist(rows, pa.schema([field.with_nullable(True) for field in schema]))


def trials(*rows):
    return table(
        TRIALS, [{**ASKED, "trial_id": str(n), "outcome": "wrong", **row} for n, row in enumerate(rows)]
    )


def grades(*rows):
    """Rows as grades repeat them of their trials, the n-th of the n-th trial."""
    of = {name: ASKED[name] for name in OF_THE_TRIAL if name in ASKED}
    return table(GRADES, [{**of, "trial_id": str(n), "headline": True, **row} for n, row in enumerate(rows)])


def cells_of(asked, graded=None):
    with views_of(trials=asked, grades=grades() if graded is None else graded) as views:
        return views.rows(views.sums_query("cells"))


def test_a_cell_counts_its_trials_by_what_became_of_them():
    (cell,) = cells_of(trials({"outcome": "correct"}, {"outcome": "correct"}, {"outcome": "failed"}))
    assert {name: cell[name] for name in CELL} == {name: ASKED[name] for name in CELL}
    assert (cell["trials"], cell["correct"], cell["failed"], cell["wrong"]) == (3, 2, 1, 0)


def test_cells_differ_in_any_of_their_columns():
    others = {name: 4 if name == "length" else "other" for name in CELL}
    rows = [{}, *({name: value} for name, value in others.items())]
    assert [cell["trials"] for cell in cells_of(trials(*rows))] == [1] * (1 + len(CELL))


def test_grades_count_by_the_condition_of_their_trial_where_a_model_has_several():
    graded = grades({"format_ok": True}, {"format_ok": False}, {"format_ok": True})
    cells = cells_of(trials({"condition": "a"}, {"condition": "b"}, {"condition": "b"}), graded)
    assert [(cell["condition"], cell["format_ok"], cell["format_known"]) for cell in cells] == [
        ("a", 1, 1),
        ("b", 1, 2),
    ]


def test_an_unknown_length_is_a_cell_of_its_own():
    graded = grades({"length": None, "format_ok": True}, {"format_ok": True})
    cells = cells_of(trials({"length": None}, {}), graded)
    assert [(cell["length"], cell["trials"], cell["format_ok"]) for cell in cells] == [
        (3, 1, 1),
        (None, 1, 1),
    ]


def test_sums_are_of_what_is_known_and_say_of_how_many_trials():
    paid = {"outcome": "correct", "cost_usd": 0.5, "output_tokens": 7, "latency_s": 2.0}
    (cell,) = cells_of(trials(paid, {"cost_usd": 0.25}, {}))
    assert (cell["cost_usd"], cell["priced"], cell["priced_correct"]) == (0.75, 2, 1)
    assert (cell["output_tokens"], cell["known_tokens"]) == (7, 1)
    assert (cell["latency_s"], cell["latencies"]) == (2.0, 1)
    assert (cell["reasoning_tokens"], cell["reasoning_known"]) == (None, 0)


def test_a_cells_trials_are_worth_one_for_each_problem_however_often_it_was_asked():
    asked = [{"repeat": repeat, "length": 4} for repeat in (0, 1, 2)] * 2
    once, often = cells_of(trials({}, {}, *asked))
    assert (once["trials"], once["independent"]) == (2, 2.0)
    assert (often["trials"], often["independent"]) == (6, 2.0)


def test_format_and_digits_are_those_of_the_grades():
    told = {"format_ok": True, "digits_right": 2, "digits_total": 3}
    whole = {"digits_right": 2, "digits_total": 2, "exact_match": True, "length_error": 3}
    (cell,) = cells_of(
        trials(*[{}] * 4), grades(told, told | {"format_ok": False}, {"exact_match": True}, whole)
    )
    assert (cell["format_ok"], cell["format_known"]) == (1, 2)
    assert (cell["digits_right"], cell["digits_total"]) == (6, 8)
    # of answers that tell digits, a share of each, and not of all digits together
    assert (cell["measured"], cell["exact"], cell["length_error"]) == (3, 1, 3)
    assert cell["digit_match"] == pytest.approx(2 / 3 + 2 / 3 + 1)


def test_a_grade_whose_trial_was_not_read_yet_counts_nowhere():
    asked = trials({"condition": "plain"}, {"condition": "terse"})
    cells = cells_of(asked, grades({}, {}, {"format_ok": True}))
    assert [cell["format_known"] for cell in cells] == [0, 0]


def test_no_trials_are_no_cells():
    assert cells_of(trials()) == []


def test_every_count_and_sum_of_a_cell_has_its_column():
    (cell,) = cells_of(trials({}))
    assert list(cell) == [*CELL, *COUNTS, *SUMS]


def test_a_folder_has_all_its_trials_in_cells(folder):
    cells = sql(folder, "FROM cells")
    assert pc.sum(cells["trials"]).as_py() == 7
    assert pc.sum(cells["correct"]).as_py() == 3
    assert pc.sum(cells["cost_usd"]).as_py() == pytest.approx(1.25)
