"""A table falls into its groups, whatever order Arrow counts them in."""

import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st

from asyncbench.store.sealing import groups_of

# In this order pyarrow 26.0.1 counts the last two the other way round.
SWAPPED = ["simulated-anthropic/noisy-2", "simulated-http/noisy-4", "simulated-http/noisy-5"]


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.text(max_size=9)), max_size=60))
@example([("a", name) for name in SWAPPED])
def test_every_row_is_in_its_own_group_once_and_in_order(rows):
    named = [(*row, place) for place, row in enumerate(rows)]
    columns = list(zip(*named, strict=True)) or [(), (), ()]
    texts = {
        name: pa.array(column, pa.string()) for name, column in zip(("suite", "model"), columns, strict=False)
    }
    table = pa.table(texts | {"n": pa.array(columns[2], pa.int64())})
    found = {tuple(of.values()): part for of, part in groups_of(table, ("suite", "model"))}
    assert {key: part["n"].to_pylist() for key, part in found.items()} == {
        key: [n for suite, model, n in named if (suite, model) == key] for key in set(rows)
    }
