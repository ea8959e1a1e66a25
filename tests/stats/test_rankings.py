"""Names and points in order: adjusted p values, groups of equals, Pareto's front."""

from hypothesis import given, strategies as st

from asyncbench.stats.paired import holm, tied, undominated


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


POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


def beats(one, other):
    return one[0] <= other[0] and one[1] >= other[1] and one != other


@given(POINTS)
def test_each_is_ahead_that_none_beats(points):
    found = undominated(points)
    assert found == tuple(not any(beats(other, one) for other in points) for one in points)


def test_equals_are_ahead_together():
    assert undominated([(1.0, 0.5), (1.0, 0.5), (1.0, 0.4), (2.0, 0.5)]) == (True, True, False, False)


def test_what_is_free_and_gains_nothing_is_ahead():
    assert undominated([(0.0, 0.0), (1.0, 0.1)]) == (True, True)
