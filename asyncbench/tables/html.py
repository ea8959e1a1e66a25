"""Notes and tables in HTML, for notebooks. Text of others is escaped."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from rich.style import Style
from rich.text import Text

from asyncbench.tables.headings import HEADINGS
from asyncbench.tables.screen import Cell, safe, safe_note

# Notebooks typeset what stands between dollar signs; these classes keep `$0.12 of $5` as it is.
AS_IT_IS: Final = "tex2jax_ignore mathjax_ignore"

_CODE: Final = re.compile(r"`([^`]+)`")


def document(parts: Iterable[str]) -> str:
    """Return paragraphs and tables one after the other."""
    return f'<div class="{AS_IT_IS}">\n{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    """Return a sentence as a paragraph, with its `code` as code."""
    shown = _CODE.sub(r"<code>\1</code>", escape(safe_note(text)))
    return f"<p>{shown}</p>\n"


def table(head: Sequence[str], rows: Sequence[Sequence[Cell]], *, labels: int, title: str) -> str:
    """Return a table with its caption. A cell keeps its colour; a column without any text is left out.

    Args:
        head: the names of the columns.
        rows: as many cells each.
        labels: the first so many columns are names, set to the left; the others are figures.
        title: the caption.
    """
    shown = [n for n in range(len(head)) if any(str(row[n]) for row in rows)]

    caption = f"<caption>{escape(safe(title))}</caption>\n" if title else ""
    top = _row("th", [name.replace("\n", " ") for name in head], shown, labels=labels)
    body = "".join(_row("td", row, shown, labels=labels) for row in rows)
    return f"<table>\n{caption}<thead>\n{top}</thead>\n<tbody>\n{body}</tbody>\n</table>\n"


def _row(tag: str, cells: Sequence[Cell], columns: Sequence[int], *, labels: int) -> str:
    """Return the cells of some columns as a row; a heading tells its meaning."""
    texts = list[str]()
    for n in columns:
        cell = cells[n]
        style = cell.style if isinstance(cell, Text) and isinstance(cell.style, Style) else Style.null()
        css = f"text-align:{'left' if n < labels else 'right'};{style.get_html_style()}"
        meaning = HEADINGS.get(str(cell)) if tag == "th" else None
        title = f' title="{escape(meaning)}"' if meaning else ""
        texts.append(f'<{tag} style="{escape(css)}"{title}>{escape(safe(str(cell)))}</{tag}>')
    return f"<tr>{''.join(texts)}</tr>\n"
