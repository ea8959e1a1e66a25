"""The tables that the benchmarks' own documents print, as small files beside this one.

`data/published.py` made them. They are facts to look at: nothing is pooled with them or tested against them.
"""

import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.errors import ConfigError

PRINTED: Final = Path(__file__).with_name("printed_tables")
_KEYS: Final = ("document", "source", "table", "notes")  # of a table's metadata
MARK: Final = "(published)"  # beside the name of a model that is not of the folder


def published_table(name: str) -> pa.Table:
    """Read a table that a benchmark's own document prints; numbers keep the digits of the print.

        ab.published_table("nupa_table_7").to_pandas()

    Args:
        name: such as `nupa_table_7` or `llm_arithmetic_2025-06-30_overview`; another name's error lists all.

    Returns:
        Its rows. The schema's metadata has `asyncbench.document`, `asyncbench.source`, `asyncbench.table`
        and, as a JSON list, `asyncbench.notes`: what is doubtful about it.

    Raises:
        ConfigError: No such table.
    """
    names = sorted(path.stem for path in PRINTED.glob("*.parquet"))
    if name not in names:
        raise ConfigError(f"published_table: no table is called {name!r}. Choose one of: {', '.join(names)}")
    return pq.read_table(PRINTED / f"{name}.parquet")


def sources_note(tables: Iterable[pa.Table]) -> str:
    """Return of which documents published figures are, and what is to be known of their tables."""
    sentences = []
    for table in tables:
        about = _about(table)
        named = f"{about['table']} of {about['document']} ({about['source']})"
        sentences.append(f"{named}: {' '.join(about['notes'])}")
    return (
        f"Figures marked {MARK} are as their document prints them. They are never pooled with yours, and no "
        f"test compares them. {' '.join(sentences)}"
    )


def printed_mapping(table: pa.Table) -> dict[str, object]:
    """Return a printed table and where it comes from as JSON has them; decimals are the nearest floats."""
    rows = [
        {name: float(value) if isinstance(value, Decimal) else value for name, value in row.items()}
        for row in table.to_pylist()
    ]
    return {**_about(table), "rows": rows}


def _about(table: pa.Table) -> dict[str, Any]:
    about = {name: table.schema.metadata[f"asyncbench.{name}".encode()].decode() for name in _KEYS}
    return {**about, "notes": json.loads(about["notes"])}
