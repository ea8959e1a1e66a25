"""How small a difference shows, and how many problems would show one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncbench.stats import problems_needed, smallest_detectable


def test_connors_number_of_problems_with_the_correction():
    # 0.2 discordant, 0.1 apart: (1.95996 sqrt(0.2) + 0.84162 sqrt(0.19))² / 0.1² = 154.6, and 2 / 0.1 more.
    assert problems_needed(0.1, 0.2) == 175


def test_unequal_repeats_take_more_problems_than_can_differ():
    # (1.95996 sqrt(2) + 0.84162 sqrt(1.99))² / 0.1² = 1567.4, and 2 / 0.1 more.
    assert problems_needed(0.1, 2.0) == 1_588


@given(st.integers(10, 100_000), st.floats(0.001, 1))
def test_the_smallest_difference_is_the_one_that_needs_so_many_problems(problems, discordant_share):
    smallest = smallest_detectable(problems, discordant_share)
    assert smallest is not None
    needed = problems_needed(smallest, discordant_share)
    assert needed is not None
    assert problems - 1 <= needed <= problems + 1


@given(st.floats(0.01, 0.5), st.floats(0.01, 0.5))
def test_the_rarer_two_models_differ_the_smaller_a_difference_shows(one, other):
    fewer, more = sorted((one, other))
    least, most = smallest_detectable(500, fewer), smallest_detectable(500, more)
    assert least is not None
    assert most is not None
    assert least <= most


def test_no_number_of_problems_shows_no_difference():
    assert problems_needed(0.0, 0.2) is None


def test_the_direction_of_a_difference_does_not_matter():
    assert problems_needed(-0.1, 0.2) == problems_needed(0.1, 0.2)


def test_too_few_problems_show_no_difference_at_all():
    assert smallest_detectable(4, 0.2) is None
    assert smallest_detectable(0, 0.2) is None


def test_more_power_takes_more_problems():
    eighty, ninety = problems_needed(0.1, 0.2), problems_needed(0.1, 0.2, power=0.9)
    assert eighty is not None
    assert ninety is not None
    assert eighty < ninety


@pytest.mark.parametrize("discordant_share", [0.0, 0.05, 0.1])
def test_a_difference_takes_as_large_a_share_of_problems_at_least(discordant_share):
    assert problems_needed(0.1, discordant_share) == problems_needed(0.1, 0.1)
