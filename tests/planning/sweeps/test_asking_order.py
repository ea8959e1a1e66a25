"""The order in which problems are asked: every beginning is balanced, whatever the order of the file."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from asyncbench import generate
from asyncbench.planning.trials import AT_ONCE, OPERATION, TrialSource, balanced_rows, trial_sources
from asyncbench.problems.opening import open_set
from tests.tiers import first_rows

MADE: dict[str, dict[str, Any]] = {
    "llm_arithmetic": {"trials": 3},
    "nupa": {"per_length": 2, "lengths": "1-20"},
    "integer_addition": {"tries": 300},
}


def made(tmp_path, suite):
    return generate(suite, tmp_path / f"{suite}.parquet", seed=5, **MADE[suite])


def asked_rows(problems):
    """The problems of a set as they are asked."""
    table = pq.read_table(problems.path)
    return table.take(balanced_rows(problems))


def operations(rows):
    return list(zip(*(rows[name].to_pylist() for name in OPERATION), strict=True))


@pytest.mark.long
@pytest.mark.parametrize("suite", MADE)
@pytest.mark.parametrize("shuffle", first_rows(2, [None, 7, "sorted", "backwards", 8]))
def test_every_beginning_asks_each_operation_and_then_each_length_equally_often(tmp_path, suite, shuffle):
    problems = made(tmp_path, suite)
    table = pq.read_table(problems.path)
    if shuffle == "sorted":
        table = table.sort_by([("length", "ascending"), ("task", "ascending")])
    elif shuffle is not None:
        rows = list(range(len(table)))
        rows.reverse() if shuffle == "backwards" else random.Random(shuffle).shuffle(rows)
        table = table.take(rows)
    pq.write_table(table, problems.path)
    order = asked_rows(open_set(problems.path))
    cells = list(zip(operations(order), order["length"].to_pylist(), strict=True))
    left, asked = Counter(cells), Counter[object]()
    operations_left, operations_asked = Counter(operations(order)), Counter[object]()
    for operation, length in cells:
        fewest = min(operations_asked[other] for other, more in operations_left.items() if more)
        assert operations_asked[operation] == fewest
        lengths = [cell for cell, more in left.items() if more and cell[0] == operation]
        assert asked[operation, length] == min(asked[cell] for cell in lengths)
        for count, what in ((asked, (operation, length)), (operations_asked, operation)):
            count[what] += 1
        left[operation, length] -= 1
        operations_left[operation] -= 1


def test_twenty_problems_of_arithmetic_are_of_every_operation_and_of_short_and_long_numbers(tmp_path):
    first = asked_rows(made(tmp_path, "llm_arithmetic")).slice(0, 20)
    assert sorted(Counter(first["task"].to_pylist()).values()) == [2] * 4 + [3] * 4
    lengths = Counter(first["length"].to_pylist())
    assert set(lengths) == set(range(2, 11))
    assert max(lengths.values()) <= 3


@pytest.mark.parametrize("suite", MADE)
def test_problems_of_one_operation_and_length_keep_the_order_of_the_file(tmp_path, suite):
    problems = made(tmp_path, suite)
    order = balanced_rows(problems)
    assert sorted(order.tolist()) == list(range(problems.rows))
    table = pq.read_table(problems.path)
    cells = list(zip(operations(table), table["length"].to_pylist(), strict=True))
    last = dict[object, int]()
    for row in order.tolist():
        assert last.get(cells[row], -1) < row
        last[cells[row]] = row


# ── reading in that order ────────────────────────────────────────────────────────────────────


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_part_of_the_order_is_read_as_it_stands(tmp_path_factory, data):
    problems = generate(
        "llm_arithmetic", tmp_path_factory.mktemp("set") / "p.parquet", seed=1, depths="2-4", trials=4
    )
    table = pq.read_table(problems.path)
    order = np.array(data.draw(st.permutations(range(len(table)))), np.int32)
    asked = TrialSource(problems=problems, tasks=problems.tasks, order=order)
    start = data.draw(st.integers(0, len(table)))
    rows = data.draw(st.integers(start, len(table)))
    found = pa.Table.from_batches(asked.batches(["problem_id", "question"], rows, start=start))
    assert found.equals(table.select(["problem_id", "question"]).take(order[start:rows]))
    if rows:
        assert asked.problem(rows - 1).problem_id == table["problem_id"][int(order[rows - 1])].as_py()


@pytest.mark.long
def test_a_large_set_is_read_in_pieces(tmp_path):
    problems = generate("integer_addition", tmp_path / "p.parquet", seed=1, tries=AT_ONCE + 5_000)
    (asked,) = trial_sources([problems])
    sizes = [batch.num_rows for batch in asked.batches(["problem_id"])]
    assert sizes == [AT_ONCE, 5_000]
    ids = pa.Table.from_batches(asked.batches(["problem_id"]))
    assert ids.equals(pq.read_table(problems.path, columns=["problem_id"]).take(asked.order))


@pytest.mark.long
def test_long_questions_are_read_fewer_at_a_time(tmp_path):
    own = tmp_path / "own.jsonl"
    own.write_text("".join(f'{{"question": "{n}{"x" * 2_000_000}", "answer": "{n}"}}\n' for n in range(40)))
    asked = trial_sources([open_set(own, suite="custom", grader="exact")])
    sizes = [batch.num_rows for batch in asked[0].batches()]
    assert sum(sizes) == 40
    assert max(sizes) < 40


# ── whole runs ───────────────────────────────────────────────────────────────────────────────
