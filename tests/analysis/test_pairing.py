"""Marks as bits: whatever is asked of them equals what counting one by one gives."""

from collections import Counter

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncbench.analysis.pairing import Marks, pair, places, read_coded, read_model
from asyncbench.store.catalog import read_trials
from tests.analysis.answered import Asked, folder_of

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
    by_problem = Counter[int]()
    for n, turn in common:
        by_problem[n] += a[n, turn] - b[n, turn]
        by_problem[n] += 0
    assert found.problems == len({n for n, _ in common})
    assert found.differences == Counter(by_problem[n] for n in {n for n, _ in common})


@given(answers)
@settings(max_examples=80)
def test_repeats_are_counted_by_problem(a):
    expected = Counter[tuple[int, int]]()
    for n in {n for n, _ in a}:
        own = [a[n, turn] for turn in range(TURNS) if (n, turn) in a]
        expected[sum(own), len(own)] += 1
    assert marks(a).by_problem() == expected


@given(st.sets(st.integers(min_value=0, max_value=200)))
def test_bits_tell_their_places(found):
    assert places(sum(1 << n for n in found)) == sorted(found)


def test_problems_outside_are_left_out():
    every = marks(dict.fromkeys(CELLS, True))
    assert pair(every, every, within=0b11).trials == 2 * TURNS
    assert every.within(0b101).problems == 0b101


def test_those_who_were_asked_nothing_have_nothing_in_common():
    found = pair(Marks(asked=(), right=()), marks({(0, 0): True}))
    assert (found.problems, found.trials, found.differences) == (0, 0, {})


@pytest.fixture
def folder(tmp_path):
    return folder_of(tmp_path, [Asked(model="a/b", outcomes="+-"), Asked(model="c", outcomes="+")])


def test_texts_come_as_dictionaries_with_the_same_values(folder):
    coded = read_coded(folder, ["model", "outcome"])
    plain = read_trials(folder, ["model", "outcome"])
    assert {name: coded[name].to_pylist() for name in coded.column_names} == plain.to_pydict()


def test_one_models_parts_are_read_alone(folder):
    for part in (folder / "trials").rglob("model=c/*.parquet"):
        part.write_bytes(b"damaged")
    found = read_model(folder, "a/b", ["model"], pc.field("repeat") == 0)
    assert found["model"].to_pylist() == ["a/b", "a/b"]
