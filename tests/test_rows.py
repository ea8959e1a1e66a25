"""A test of many rows hides none that is wrong."""

import pytest

from tests.rows import each_row


def test_each_row_is_checked_with_each_and_each_that_is_wrong_is_named():
    checked = []

    @each_row("left", [1, pytest.param(2, id="two")])
    @each_row("right, reason", [(1, ""), (2, "why" * 40)])
    def rule(left, right, reason):
        checked.append((left, right))
        with pytest.raises(ZeroDivisionError):
            1 / (left - right)
        assert not reason, "no reason"

    with pytest.raises(AssertionError) as caught:
        rule()

    assert checked == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert str(caught.value).splitlines() == [
        "3 of 4 rows are wrong:",
        f"  left=1, right=2, reason='{('why' * 40)[:59]}…: Failed: DID NOT RAISE ZeroDivisionError",
        "  two, right=1, reason='': Failed: DID NOT RAISE ZeroDivisionError",
        f"  two, right=2, reason='{('why' * 40)[:59]}…: AssertionError: no reason",
    ]


@each_row("number", [1, 2])
def test_what_no_row_fills_in_is_a_fixture(number, tmp_path):
    assert not (tmp_path / str(number)).exists()


def test_a_table_without_a_row_is_refused():
    with pytest.raises(ValueError, match="no row"):
        each_row("number", [])
