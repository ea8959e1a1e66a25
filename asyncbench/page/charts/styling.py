"""Rows of blocks as charts need them, with names and colours; the page's script does the same."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from asyncbench.analysis.entrants import Asked
from asyncbench.page.charts.themes import colours_of

Row = dict[str, Any]  # Any: text, number, bool or None, by column

MOST_LIT: Final = 8  # lines of a panel that people tell apart


def with_style(
    rows: Iterable[Mapping[str, Any]],  # Any: likewise
    roster: Asked,
    *,
    theme: str = "light",
    lit: Collection[int] | None = None,
) -> list[Row]:
    """Return rows with the names and colours that their places stand for.

    `asked` gives `model` and `colour`, `kind` gives `task`. Of a pair `a` gives `model`, `b` all else.

    Args:
        rows: of a block.
        roster: the entrants and kinds that have the places.
        theme: `light` or `dark`.
        lit: the places of the entrants that keep their colour where lines are many; None: all do.
    """
    return [{**row, **_names(row, roster, theme, lit)} for row in rows]


def _names(row: Mapping[str, Any], roster: Asked, theme: str, lit: Collection[int] | None) -> Row:
    if "a" in row:
        first, second = (roster.entrants[row[end]].short for end in "ab")
        return {
            "pair": f"{first} − {second}",
            "model": first,
            "other": second,
            "colour": _colour(row["b"], theme),
            "asked": row["b"],
        }
    place: int | None = row["asked"]
    if place is None:
        return {}
    named: Row = {
        "model": roster.entrants[place].short,
        "colour": _colour(place, theme),
        "lit": lit is None or place in lit,
    }
    if row.get("kind") is not None:
        named["task"] = roster.kinds[row["kind"]].called
    return named


def _colour(place: int, theme: str) -> str:
    return colours_of(place)[theme == "dark"]


def columnar(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:  # Any: likewise; JSON
    """Return rows column by column, which is shorter; all of them have the columns of the first."""
    all_rows = list(rows)
    names = [*all_rows[0]] if all_rows else []
    return {"columns": {name: [row[name] for row in all_rows] for name in names}}
