"""Dollars add up exactly, whatever the order of rows; a spoiled part is told in its reader's words."""

import math
import random

import duckdb
import pyarrow as pa
import pytest

from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import counted, open_views
from asyncbench.errors import ConfigError, StoreError
from asyncbench.store.reading import take_snapshot
from asyncbench.store.schema import CELL
from asyncbench.store.sealing import part_files
from tests.reports.answered import Asked, folder_of
from tests.upkeep.regrading.made import as_now, fill, right, sums


@pytest.fixture
def folder(tmp_path):
    fill(tmp_path / "night", sums(1, 2, 3), right, graders=as_now)
    return tmp_path / "night"


def summed(folder, costs):
    def work(views):
        views.put("calls", pa.table({"usd": pa.array(costs, pa.float64())}))
        return views.rows("SELECT sum_usd(usd) AS usd FROM calls")[0]["usd"]

    return counted(folder, work)


@pytest.mark.long
def test_dollars_add_up_as_by_fsum_in_any_order(folder):
    rng = random.Random(5)
    for _ in range(3):
        costs = [rng.uniform(0.5, 1) * 10.0 ** rng.randint(-7, 2) for _ in range(5_000)]
        exact = math.fsum(costs)
        assert summed(folder, costs) == exact
        rng.shuffle(costs)
        assert summed(folder, costs) == exact != sum(costs)


def test_unknown_costs_are_left_out_and_no_known_one_is_unknown(folder):
    assert summed(folder, [0.1, None, 0.2]) == 0.1 + 0.2
    assert summed(folder, [None, None]) is None


def test_a_filter_that_fails_on_some_rows_is_told_to_whoever_reads_them(folder):
    of = chosen(folder, where="length > 0")
    with (
        pytest.raises(ConfigError, match=r"--where length > 0: .*Could not convert"),
        open_views(of, take_snapshot(folder)) as views,
    ):
        views.rows("SELECT model::INT FROM trials")


def test_values_are_given_by_name(folder):
    query = "SELECT count(*) AS n FROM trials WHERE outcome = $outcome"
    assert counted(folder, lambda views: views.rows(query, {"outcome": "correct"})) == [{"n": 3}]
    assert counted(folder, lambda views: views.rows(query, {"outcome": "'; DROP VIEW trials"})) == [{"n": 0}]


def test_rows_that_are_kept_are_read_once_and_counted_by_later_queries(folder):
    def work(views):
        views.keep("correct", "SELECT trial_id, task FROM trials WHERE outcome = $o", {"o": "correct"})
        return views.rows("SELECT count(*) AS n, count(DISTINCT task) AS tasks FROM correct")

    assert counted(folder, work) == [{"n": 3, "tasks": 1}]


def test_a_part_that_cannot_be_read_is_told_in_its_readers_words(folder):
    part = part_files(folder, "trials")[0]
    part.write_bytes(part.read_bytes()[:-100] + bytes(100))
    with pytest.raises(StoreError, match=r"trials"):
        counted(folder, lambda views: views.rows("SELECT count(outcome) FROM trials"))


def test_views_open_no_file(folder, tmp_path):
    (other := tmp_path / "other.csv").write_text("a\n1\n")
    with pytest.raises(duckdb.Error):
        counted(folder, lambda views: views.rows("FROM read_csv($file)", {"file": str(other)}))


def test_nothing_is_drawn_over_what_a_program_prints(folder):
    shown = "SELECT current_setting('enable_progress_bar') AS shown"
    assert counted(folder, lambda views: views.rows(shown)) == [{"shown": False}]


def test_a_cell_has_the_grades_of_its_own_trials_whether_or_not_its_model_has_several_conditions(tmp_path):
    asked = [
        Asked(model="a", condition="plain", outcomes="+-t"),
        Asked(model="a", condition="careful", outcomes="++x"),
        Asked(model="b", outcomes="+-?", suite="llm_arithmetic"),
    ]
    folder = folder_of(tmp_path / "f", asked)
    by_trial = f"""
        SELECT {", ".join(CELL)}, count(*) FILTER (format_ok) AS ok, count(format_ok) AS known,
            coalesce(sum(digits_right), 0)::BIGINT AS digits
        FROM trials LEFT JOIN (
            SELECT trial_id, format_ok, digits_right FROM grades WHERE headline
        ) USING (trial_id) GROUP BY ALL ORDER BY ALL
    """  # noqa: S608  names of ours
    by_cell = f"SELECT {', '.join(CELL)}, format_ok, format_known, digits_right FROM ({{}}) ORDER BY ALL"  # noqa: S608  names of ours
    told, wanted = counted(
        folder,
        lambda views: [
            views.table(query).to_pylist() for query in (by_cell.format(views.sums_query("cells")), by_trial)
        ],
    )
    assert [[*row.values()] for row in told] == [[*row.values()] for row in wanted]
    assert sum(row["format_known"] for row in told) > 1
