"""What SQL of a user may say: one SELECT, or one condition, that reads the views and nothing else."""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from asyncbench.errors import ConfigError

if TYPE_CHECKING:
    import duckdb

TABLE_FUNCTIONS: Final = {
    *("generate_series", "range", "repeat", "repeat_row", "unnest"),
    *("histogram", "histogram_values", "json_each", "json_tree"),
}
_SELECTS = {"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE"}  # in the parser's tree


def check_select(
    connection: "duckdb.DuckDBPyConnection", query: str, views: Collection[str], *, said: str = "sql"
) -> None:
    """Refuse all but one SELECT, by the tree of DuckDB's own parser: a COPY may stand in a CTE.

    Without files and settings, DuckDB could still write to where it spills; some functions take addresses.

    Args:
        connection: whose parser is asked.
        query: the user's words.
        views: what it may read, for the message.
        said: what the message begins with.

    Raises:
        ConfigError: it is something else.
        duckdb.Error: its syntax is wrong.
    """
    parts = _parsed(connection, query, said)
    kinds = {str(part.get("type")) for part in parts}
    written = {kind for kind in kinds if kind.endswith("_NODE")} - _SELECTS
    if parts[-1]["error"] or len(parts[-1]["statements"]) != 1 or written:
        raise ConfigError(
            f"{said}: give one SELECT statement. Nothing else runs, because nothing may change."
        )
    functions = [part["function"] for part in parts if part.get("type") == "TABLE_FUNCTION"]
    if refused := {one["function_name"].lower() for one in functions} - TABLE_FUNCTIONS:
        raise ConfigError(
            f"{said}: a query reads only the views {', '.join(views)}, so it cannot use "
            f"{', '.join(sorted(refused))}(). After FROM you can use {', '.join(sorted(TABLE_FUNCTIONS))}"
        )


def _parsed(connection: "duckdb.DuckDBPyConnection", query: str, said: str) -> list[Mapping[str, Any]]:
    """Return every object of a query's tree, the outermost last."""
    parts: list[Mapping[str, Any]] = []

    def keep(part: Mapping[str, Any]) -> Mapping[str, Any]:
        parts.append(part)
        return part

    connection.extract_statements(query)  # tells where the syntax is wrong
    ((tree,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    try:
        json.loads(tree, object_hook=keep)
    except RecursionError:
        raise ConfigError(
            f"{said}: the query is nested too deeply to be checked. Write it flatter."
        ) from None
    return parts


def line_of(error: Exception) -> str:
    """Return an error's words without the query that DuckDB repeats below them."""
    words = str(error).partition("\n\nLINE ")[0]
    lines = (line.strip().rstrip(".!") for line in words.splitlines())
    # DuckDB knows names of its own catalogue that no query here may use.
    return "; ".join(line for line in lines if line and not line.startswith("Did you mean"))
