"""How near an answer is: digits right, digits too many or too few, part by part."""

import pytest
from hypothesis import given, strategies as st

from asyncbench.suites.nupa.grading import Nearness, nearness


@pytest.mark.parametrize(
    ("answer", "truth", "kind", "near"),
    [
        pytest.param("1287", "1287", "integer", Nearness(4, 4, 0, 0), id="right"),
        pytest.param("1286", "1287", "integer", Nearness(3, 4, 0, 0), id="one-digit-wrong"),
        pytest.param("007", "7", "integer", Nearness(1, 1, 2, 2), id="leading-zeros-are-surplus"),
        pytest.param("287", "1287", "integer", Nearness(3, 4, 1, 1), id="first-missing"),
        pytest.param("128", "1287", "integer", Nearness(0, 4, 1, 1), id="last-missing-shifts-all"),
        pytest.param("1.50", "1.5", "decimal", Nearness(2, 2, 1, 1), id="decimals-from-the-left"),
        pytest.param("12.5", "1.25", "decimal", Nearness(0, 3, 2, 0), id="one-part-long-one-short"),
        pytest.param("14/26", "7/13", "fraction", Nearness(0, 3, 1, 1), id="fraction-not-reduced"),
        pytest.param("1.5e05", "1.5e5", "scientific", Nearness(3, 3, 1, 1), id="exponent-with-a-zero"),
        pytest.param("15.0e4", "1.5e5", "scientific", Nearness(0, 3, 1, 1), id="mantissa-shifted"),
        pytest.param("５", "5", "integer", Nearness(0, 1, 0, 0), id="full-width-digit"),
        pytest.param(None, "12.5", "decimal", Nearness(0, 3, 3, 3), id="nothing-read"),
    ],
)
def test_digits_are_compared_where_they_stand(answer, truth, kind, near):
    assert nearness(answer, truth, kind) == near


DECIMALS = st.from_regex(r"\A\d{1,40}\.\d{1,40}\Z")


@pytest.mark.long
@given(answer=DECIMALS, truth=DECIMALS)
def test_only_the_same_text_has_every_digit_right_and_none_too_many(answer, truth):
    near = nearness(answer, truth, "decimal")
    perfect = near.digits_right == near.digits_total and near.length_error == 0
    assert perfect is (answer == truth)
    assert 0 <= near.digits_right <= near.digits_total
    assert near.length_error_total <= near.length_error
