"""What those who were asked are called: shortly, and never two alike."""

from itertools import permutations

import pytest

from asyncbench.analysis.entrants import names_of


def names(*asked):
    found = names_of(asked)
    return [found[one] for one in asked]


def test_condition_and_run_are_named_only_where_a_model_has_several():
    assert names(("r", "a", "b"), ("r", "a", "c"), ("r", "d", "b")) == ["a (b)", "a (c)", "d"]
    assert names(("r", "a", "b"), ("s", "a", "b")) == ["a, run r", "a, run s"]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param([("r", "a (b)", "x"), ("r", "a", "b"), ("r", "a", "c")], id="a condition in an alias"),
        pytest.param([("r", "a, run s", "x"), ("r", "a", "x"), ("s", "a", "x")], id="a run in an alias"),
        pytest.param(
            [("r", "a (b)", "c"), ("r", "a (b)", "d"), ("r", "a", "b) (c"), ("r", "a", "e")],
            id="brackets in a condition",
        ),
        pytest.param(
            [
                *[("r", "a (b)", "x"), ("r", "a", "b"), ("r", "a", "c")],
                ("r", "'a' ('b'), run 'r'", "x"),  # as the second is called then
            ],
            id="an alias in the form of the way out",
        ),
    ],
)
def test_no_two_have_one_name_whatever_their_aliases(asked):
    found = names_of(asked)
    assert len(set(found.values())) == len(asked)
    assert all(names_of(order) == found for order in permutations(asked))


def test_who_is_like_nobody_keeps_the_short_name():
    clash = [("r", "a (b)", "x"), ("r", "a", "b"), ("r", "a", "c")]
    assert names(*clash) == ["'a (b)' ('x'), run 'r'", "'a' ('b'), run 'r'", "a (c)"]
