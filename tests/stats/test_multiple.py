"""Who is tied with whom, once all pairs were looked at."""

from hypothesis import given
from hypothesis import strategies as st

from asyncbench.stats import holm, tied


def told_apart(*pairs):
    """Every other pair is tied."""
    return lambda leader, other: 0.01 if {leader, other} in [set(pair) for pair in pairs] else 0.5


def test_the_published_example_of_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]) == (0.03, 0.06, 0.06, 0.02)


@given(st.lists(st.floats(0, 1)))
def test_adjusting_never_lowers_a_p_and_keeps_their_order(p_values):
    adjusted = holm(p_values)
    assert all(before <= after <= 1 for before, after in zip(p_values, adjusted, strict=True))
    in_order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[place] for place in in_order] == sorted(adjusted)


@given(st.lists(st.floats(0, 1), unique=True))
def test_stepping_down_is_the_largest_of_the_smaller_ones_times_those_left(p_values):
    def stepped(p):
        smaller = [one for one in p_values if one <= p]
        return min(1.0, max(one * sum(other >= one for other in p_values) for one in smaller))

    assert holm(p_values) == tuple(stepped(p) for p in p_values)


def test_a_group_is_its_leader_and_all_below_that_are_not_different_from_it():
    groups = tied("abcd", told_apart(("a", "c"), ("a", "d"), ("b", "d")))
    assert groups == (("a", "b"), ("c", "d"))


def test_one_on_few_problems_is_tied_with_the_leader_although_it_stands_below_another_group():
    assert tied("abc", told_apart(("a", "b"))) == (("a", "c"), ("b",))


def test_p_of_just_alpha_is_a_difference():
    assert tied("ab", lambda *_: 0.05) == (("a",), ("b",))
    assert tied("ab", lambda *_: 0.05, alpha=0.04) == (("a", "b"),)


def test_of_no_models_there_are_no_groups():
    assert tied([], told_apart()) == ()
    assert holm([]) == ()
