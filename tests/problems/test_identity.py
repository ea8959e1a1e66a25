"""A problem's id says which question it is; what was seen before is remembered in little memory."""

from collections import Counter
from dataclasses import replace
from hashlib import blake2b

import pytest
from hypothesis import given, settings, strategies as st

from asyncbench.problems.schema import Occurrences, identified
from asyncbench.records import Draft

DRAFT = Draft(
    suite="integer_addition",
    task="add",
    representation="integer",
    length=1,
    question="1 + 1 =",
    expected="2",
    answer_type="integer",
)


def ids(*drafts: Draft) -> list[str]:
    return [problem.problem_id for problem in identified(drafts)]


def test_an_id_is_the_same_on_every_machine():
    framed = b"16:integer_addition3:add7:1 + 1 ="
    by_hand = [blake2b(framed + nth, digest_size=16).hexdigest() for nth in (b"0", b"1")]

    assert ids(DRAFT, DRAFT) == by_hand
    assert by_hand == ["8a56e2490516d65fa44dada456bf5bf0", "e63a14106c71a2611ce262128df7e60a"]


def test_a_problem_keeps_all_that_its_draft_says():
    draft = replace(DRAFT, variant="hard", operands=("1", "1"), extra='{"a": 1}')
    (problem,) = identified([draft])

    assert {name: getattr(problem, name) for name in Draft.__slots__} == {
        name: getattr(draft, name) for name in Draft.__slots__
    }


@pytest.mark.parametrize(
    "change", [{"expected": "3"}, {"variant": "hard"}, {"length": 2}, {"extra": '{"a": 1}'}]
)
def test_a_corrected_problem_keeps_its_id(change):
    assert ids(replace(DRAFT, **change)) == ids(DRAFT)


@pytest.mark.parametrize("change", [{"suite": "custom"}, {"task": "sub"}, {"question": "1 + 1 = ?"}])
def test_another_question_has_another_id(change):
    assert ids(replace(DRAFT, **change)) != ids(DRAFT)


def test_where_the_task_ends_and_the_question_begins_matters():
    assert ids(replace(DRAFT, task="add1", question=" + 1")) != ids(
        replace(DRAFT, task="add", question="1 + 1")
    )


@settings(deadline=None)
@given(st.lists(st.sampled_from(["1 + 1 =", "1 + 2 =", "é"]), max_size=20))
def test_a_question_asked_again_has_an_id_of_its_own_and_always_the_same(questions):
    found = ids(*(replace(DRAFT, question=question) for question in questions))

    assert len(set(found)) == len(questions)
    for question in set(questions):
        own = [id_ for id_, asked in zip(found, questions, strict=True) if asked == question]
        assert own == ids(*[replace(DRAFT, question=question)] * len(own))


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3) | st.sampled_from([0, 8, 16, 2**64 - 8])))
def test_a_digest_is_counted_however_many_others_there_are(digests):
    seen, counted = Occurrences(slots=8), Counter[int]()

    for digest in digests:
        assert seen.add(digest) == counted[digest]
        counted[digest] += 1
