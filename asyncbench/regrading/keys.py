"""Two columns of text as one, by which rows of two tables are matched."""

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Column: TypeAlias = "pa.ChunkedArray[Any]"  # of any type: what its values are is known at run time alone


def keys(table: pa.Table, one: str, other: str) -> Column:
    """Return `one/other` of each row; at least one of the two is an id, so that no two pairs look alike."""
    joined: Column = pc.binary_join_element_wise(table[one], table[other], "/")  # type: ignore[call-overload]  # the stubs forget the separator
    return joined
