"""Problems are made cell by cell: the same alone as among others, each once, in balanced order, all right."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice, zip_longest
from typing import Any

import pytest

from asyncbench.errors import ConfigError
from asyncbench.problems.making import copy_into, generate
from asyncbench.problems.opening import open_set
from asyncbench.records import Draft
from asyncbench.suites.nupa.generation import PROFILES, generate as make
from asyncbench.suites.nupa.tasks import TASKS
from asyncbench.suites.table import SUITES
from tests.suites.nupa import arithmetic
from tests.suites.nupa.drafts import drafts_of

NUPA = SUITES["nupa"]


def parameters(**given: object) -> dict[str, object]:
    return NUPA.parsed(given, place="test")


def drafts(seed: int = 7, **given: object) -> list[Draft]:
    return list(make(seed, parameters(**given)))


def name_of(draft: Draft) -> str:
    return str(json.loads(draft.extra)["task_name"])


# ── right answers ────────────────────────────────────────────────────────────────────────────


def wrong(made: Iterable[Draft]) -> tuple[list[Draft], Counter[str]]:
    """Return the drafts whose answer is not the exact one, and how many were looked at, by task."""
    odd, seen = [], Counter[str]()
    for draft in made:
        seen[name_of(draft)] += 1
        if draft.expected != arithmetic.answer(draft.task, draft.operands, draft.answer_type):
            odd.append(draft)
    return odd, seen


def test_answers_of_every_task_are_exact():
    odd, seen = wrong(drafts(set="full", per_length=1))

    assert odd == []
    assert set(seen) == set(TASKS)


@pytest.mark.soak
def test_answers_are_exact_on_more_than_100_000_problems():
    odd, seen = wrong(make(11, parameters(set="full", per_length=40)))

    print(f"seed 11: {seen.total():,} problems of {len(seen)} tasks, {len(odd)} wrong")
    assert odd == []
    assert seen.total() >= 100_000
    assert set(seen) == set(TASKS)


@pytest.mark.long
def test_the_published_answers_are_wrong_in_a_tenth_of_sig_alone_and_the_exact_ones_stand_beside():
    made = drafts(set="full", profile="reference", per_length=1) + drafts(
        tasks="sig", profile="reference", per_length=10
    )
    odd, seen = wrong(made)

    assert {draft.task for draft in odd} == {"sig"}
    rate = len(odd) / sum(count for name, count in seen.items() if name.startswith("sig"))
    assert 0.08 < rate < 0.12
    for draft in odd:
        exact = arithmetic.answer(draft.task, draft.operands, draft.answer_type)
        assert json.loads(draft.extra)["expected_exact"] == exact


# ── cells ────────────────────────────────────────────────────────────────────────────────────


def test_every_prefix_is_balanced():
    made = drafts(per_length=3, lengths="10-12", representations="integer,scientific")
    cells = [(name_of(draft), draft.length) for draft in made]
    first = cells[: len(cells) // 3]

    assert len(set(first)) == len(first)
    assert cells == first * 3


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"tasks": "add"}, lambda draft: draft.task == "add"),
        ({"representations": "fraction"}, lambda draft: draft.representation == "fraction"),
        ({"variants": "easy,hard"}, lambda draft: draft.variant != ""),
    ],
)
def test_a_slice_alone_is_as_it_is_among_all(profile, given, kept):
    among = {"profile": profile, "per_length": 6, "lengths": "1-4"}

    assert drafts(**among, **given) == [draft for draft in drafts(**among) if kept(draft)]


@pytest.mark.parametrize("task", ["add", "to_float"])
def test_a_length_alone_is_as_it_is_among_all(task):
    made = TASKS[{"add": "add_Fraction_Fraction_Fraction", "to_float": "to_float_Fraction_none_Float"}[task]]
    alone = [list(islice(drafts_of(made, length, seed=7), 6)) for length in made.lengths]
    among = drafts(tasks=task, representations="fraction", variants="plain", per_length=6)

    assert list(filter(None, chain.from_iterable(zip_longest(*alone)))) == among


def test_a_longer_set_of_the_same_seed_begins_with_the_shorter():
    for representation in ("integer", "fraction"):
        given: dict[str, Any] = {"representations": representation, "lengths": "1-6"}
        shorter = drafts(per_length=3, **given)
        assert drafts(per_length=5, **given)[: len(shorter)] == shorter


def test_another_seed_and_another_profile_draw_others():
    questions = {draft.question for draft in drafts(lengths="20")}

    assert not questions & {draft.question for draft in drafts(8, lengths="20")}
    assert not questions & {draft.question for draft in drafts(profile="reference", lengths="20")}


def test_no_problem_comes_twice_and_a_small_cell_holds_fewer():
    made = drafts(per_length=300, lengths="1-3", representations="fraction")
    per_cell = Counter((name_of(draft), draft.length, draft.question) for draft in made)

    assert set(per_cell.values()) == {1}
    sizes = Counter(name for name, length, _ in per_cell if length == 1)
    assert 15 <= sizes["to_float_Fraction_none_Float"] < 40
    assert sizes["add_Fraction_Fraction_Fraction"] == 300


def test_extra_says_where_a_problem_stands():
    made = drafts(tasks="add", representations="float", lengths="9", per_length=2)

    assert [json.loads(draft.extra) for draft in made] == [
        {
            "profile": "fixed",
            "task_name": "add_Float_Float_Float",
            "rep_b": "Float",
            "rep_out": "Float",
            "length_class": 20,
            "range": "L",
            "index": index,
        }
        for index in (0, 1)
    ]
    assert {draft.answer_type for draft in made} == {"decimal"}


def test_lengths_are_those_drawn_but_of_to_float_those_shown():
    made = Counter(
        (draft.task, draft.length - drawn)
        for name in ("add_Fraction_Fraction_Fraction", "to_float_Fraction_none_Float")
        for drawn in (5, 12, 20)
        for draft in islice(drafts_of(TASKS[name], drawn, seed=7), 200)
        if draft.length is not None
    )

    assert {moved for task, moved in made if task == "add"} == {0}
    assert {-1, 0} <= {moved for task, moved in made if task == "to_float"} <= set(range(-3, 2))


# ── files ────────────────────────────────────────────────────────────────────────────────────

SMALL: dict[str, Any] = {"lengths": "1-3", "per_length": 40, "representations": "fraction"}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return generate("nupa", tmp_path_factory.mktemp("nupa") / "small.parquet", seed=7, **SMALL)


def test_the_file_says_how_many_problems_each_cell_holds(small, tmp_path):
    counted = Counter(
        ("_".join(filter(None, (one.task, one.variant, one.representation))), str(one.length))
        for one in small.read()
    )

    assert {
        (kind, length): n for kind, lengths in small.counts.items() for length, n in lengths.items()
    } == counted
    assert open_set(small.path).counts == small.counts
    assert copy_into(small, tmp_path).counts == small.counts
    assert open_set(copy_into(small, tmp_path).path).counts == small.counts
    assert small.counts["to_float_fraction"]["1"] < 120  # asked for 40 of each of three lengths


def test_an_error_of_the_generator_leaves_nothing(tmp_path):
    def breaks_off(seed: int, parameters: Mapping[str, object]) -> Iterator[Draft]:
        yield from islice(make(seed, parameters), 10)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        generate(replace(NUPA, generate=breaks_off), tmp_path / "made.parquet", **SMALL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"set": "half"}, "'half' is unknown. Known: released, full, paper41"),
        ({"profile": "mine"}, "'mine' is unknown. Known: fixed, reference"),
        ({"tasks": "plus"}, "Known: add, sub, max"),
        ({"tasks": "min"}, "no task of the set has these"),
        (
            {"tasks": "add", "lengths": "50"},
            "has these lengths. They have: add_Integer.* 3-20",
        ),
        ({"per_length": 0}, "too small"),
    ],
)
def test_what_cannot_be_made_is_refused(given, complaint, tmp_path):
    with pytest.raises(ConfigError, match=complaint):
        generate("nupa", tmp_path / "made.parquet", **given)


def test_operands_of_any_length_keep_the_length_of_the_problem_and_the_default_is_not_told(tmp_path):
    given: dict[str, Any] = {
        "seed": 3,
        "per_length": 30,
        "tasks": "add",
        "representations": "integer",
        "lengths": "8",
    }
    usual, half, any_length = (
        generate("nupa", tmp_path / f"{n}.parquet", **given, **more)
        for n, more in enumerate(list[dict[str, Any]]([{}, {"shorter": "half"}, {"shorter": "any"}]))
    )
    assert usual.path.read_bytes() == half.path.read_bytes()
    assert "shorter" not in open_set(usual.path).parameters
    assert open_set(usual.path).parameters["profile"] == "fixed"
    assert open_set(any_length.path).parameters["shorter"] == "any"
    for made, fewest in ((usual, 4), (any_length, 1)):
        lengths = [sorted(map(len, problem.operands)) for problem in made.read()]
        assert {longer for _, longer in lengths} == {8}
        assert min(shorter for shorter, _ in lengths) == fewest
