"""Marks as bits: whatever is asked of them equals what counting one by one gives."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings, strategies as st

from asyncbench.analysis.counting import counted
from asyncbench.analysis.pairing import Marks, marked, pair, places, read_model, skipped_problems
from asyncbench.store.manifest import MANIFEST
from tests.reports.answered import Asked, folder_of

PROBLEMS, TURNS = 9, 3
CELLS = [(n, turn) for n in range(PROBLEMS) for turn in range(TURNS)]
answers = st.dictionaries(st.sampled_from(CELLS), st.booleans())


def marks(right):
    """Marks of {(problem, turn): right}."""
    return Marks(
        asked=tuple(sum(1 << n for n, turn in right if turn == t) for t in range(TURNS)),
        right=tuple(
            sum(1 << n for (n, turn), yes in right.items() if turn == t and yes) for t in range(TURNS)
        ),
    )


@given(answers, answers)
@settings(max_examples=150)
def test_a_pair_is_what_counting_trial_by_trial_gives(a, b):
    found, common = pair(marks(a), marks(b)), a.keys() & b.keys()
    counts = Counter((a[cell], b[cell]) for cell in common)
    assert (found.both, found.only_a) == (counts[True, True], counts[True, False])
    assert (found.only_b, found.neither) == (counts[False, True], counts[False, False])
    asked = Counter(n for n, _ in common)
    by = {n: sum(a[n, turn] - b[n, turn] for own, turn in common if own == n) for n in asked}
    assert found.problems == len(asked)
    assert found.by_problem == Counter((by[n], asked[n]) for n in asked)
    assert found.differences == Counter(by.values())


@pytest.mark.parametrize(
    ("a", "b", "share"),
    [
        # Asked once: two of four problems were solved by one alone.
        ({(n, 0): n < 2 for n in range(4)}, {(n, 0): n == 0 or n == 3 for n in range(4)}, 2 / 4),
        # Asked twice: differences in accuracy of 1, 1/2 and 0, so (1 + 1/4 + 0) / 3.
        (
            {(n, turn): n == 0 or (n == 1 and turn == 0) for n in range(3) for turn in range(2)},
            {(n, turn): False for n in range(3) for turn in range(2)},
            5 / 12,
        ),
        # Of four problems one three times: differences of 3 and 1 right answers; six trials, 1.5 a problem.
        (
            {(0, 0): True, (0, 1): True, (0, 2): True, (1, 0): True, (2, 0): False, (3, 0): False},
            {(0, 0): False, (0, 1): False, (0, 2): False, (1, 0): False, (2, 0): False, (3, 0): False},
            (9 + 1) / 4 / 1.5**2,
        ),
    ],
    ids=["once", "twice", "unequally often"],
)
def test_the_discordant_share_is_the_mean_square_of_a_problems_difference(a, b, share):
    assert pair(marks(a), marks(b)).discordant_share == pytest.approx(share)


@given(answers)
@settings(max_examples=80)
def test_repeats_are_counted_by_problem(a):
    expected = Counter[tuple[int, int]]()
    for n in {n for n, _ in a}:
        own = [a[n, turn] for turn in range(TURNS) if (n, turn) in a]
        expected[sum(own), len(own)] += 1
    assert marks(a).problem_counts() == expected


@given(st.sets(st.integers(min_value=0, max_value=200)))
def test_bits_tell_their_places(found):
    assert places(sum(1 << n for n in found)) == sorted(found)


def test_problems_outside_are_left_out():
    every = marks(dict.fromkeys(CELLS, True))
    assert pair(every, every, within=0b11).trials == 2 * TURNS
    assert every.restrict(0b101).problems == 0b101


def test_those_who_were_asked_nothing_have_nothing_in_common():
    found = pair(Marks(asked=(), right=()), marks({(0, 0): True}))
    assert (found.problems, found.trials, found.by_problem) == (0, 0, {})


@pytest.fixture
def folder(tmp_path):
    return folder_of(tmp_path, [Asked(model="a/b", outcomes="+-"), Asked(model="c", outcomes="+")])


def test_marks_are_the_trials_of_each_by_problem(folder):
    found = counted(folder, marked)
    a, c = (found.marks["night", model, "plain"] for model in ("a/b", "c"))
    assert (a.trials, a.correct, c.trials, c.correct) == (2, 1, 1, 1)
    assert [len(found.problem_ids), found.problems_of().bit_count()] == [2, 2]
    assert (a.right, a.asked) == (c.right, (0b11,))


def test_a_skipped_problem_is_marked_where_it_has_a_place(folder):
    def look(views):
        found = marked(views)
        rows = {"run": ["night"] * 2, "model": ["c"] * 2, "condition": ["plain"] * 2}
        skipped = [found.problem_ids[1], "asked of nobody"]
        views.put("held_skips", pa.table(rows | {"problem_id": skipped}))
        return skipped_problems(views, found)

    assert counted(folder, look) == {("night", "c", "plain"): 0b10}


def test_one_models_parts_are_read_alone(folder):
    manifest = folder / MANIFEST  # of a folder without a list of its parts, which would miss them at once
    manifest.write_bytes(b'{"schema_version": 1, "sweep": "s"}')
    for part in (folder / "trials").rglob("model=c/*.parquet"):
        part.write_bytes(b"damaged")
    found = read_model(folder, "a/b", ["model"], pc.field("repeat") == 0)
    assert found["model"].to_pylist() == ["a/b", "a/b"]
