"""How a number of things is written."""

import pytest

from asyncbench.tables.numbers import number_of


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0 problems"), (1, "1 problem"), (2, "2 problems"), (2000, "2,000 problems")]
)
def test_one_thing_is_no_things(value, said):
    assert number_of(value, "problem") == said
