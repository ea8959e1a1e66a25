"""Whom nobody beats: as many pay as little for as much."""

from hypothesis import given
from hypothesis import strategies as st

from asyncbench.stats import undominated

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
