"""How figures are written, in every table: shares, dollars, seconds, and the line for simulated results.

What others wrote (models' names, questions, replies) is made harmless here, in every cell, title and note:
`safe` for a terminal, `safe_markdown` for Markdown, and `latex.escaped` after `safe` for LaTeX. JSON keeps
it exactly.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10

from rich.cells import cell_len
from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from asyncbench.analysis import latex

SIMULATED = "SIMULATED: these replies were made up by asyncbench's own loopback server; no model was asked."
PIPED_WIDTH = 200  # characters; nobody resizes a pipe
LEAST_NAME = 12  # characters; names are folded no further
LONGEST_CELL = 200  # characters of others' text
LONGEST_NOTE = 10_000  # a note may name every model

Cell = str | Text  # Text has a style, which shows on a terminal only

# What would begin markup: spans, links, cells; tags; entities; addresses that become links by themselves.
_MARKS = re.compile(r"[\\`*\[\]|~]")
_TAG, _ENTITY, _ADDRESS = re.compile(r"<(?=[A-Za-z/!?])"), re.compile(r"&(?=#?\w+;)"), re.compile(r":(?=//)")


def safe(text: str, *, most: int = LONGEST_CELL) -> str:
    """Return a text that does nothing but stand there, on one line; what is left of a long one says so.

    Controls (terminal escapes, newlines), marks that turn the direction of writing, characters without width
    and unusual spaces are written as Python does: `\\x1b`, `\\n`, `\\u202e`.

    Args:
        text: whatever somebody wrote.
        most: characters of it that are shown.
    """
    shown = text if len(text) <= most else text[:most]
    if not shown.isprintable():
        shown = "".join(one if one.isprintable() else _visible(one) for one in shown)
    return shown if len(text) <= most else f"{shown}… ({len(text):,} characters)"


def _visible(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def safe_markdown(text: str, *, most: int = LONGEST_CELL) -> str:
    """Return the same with what Markdown or HTML would read as markup escaped."""
    return _without_html(_MARKS.sub(r"\\\g<0>", safe(text, most=most)))


def safe_note(text: str) -> str:
    """Return a sentence of ours, with names of others in it, for a terminal."""
    return safe(text, most=LONGEST_NOTE)


def safe_notes(notes: Iterable[str], *, width: int | None = None) -> list[str]:
    """Return sentences for a terminal, folded between words; width None: the terminal's, none in a pipe."""
    if width is None and (terminal := Console()).is_terminal:
        width = terminal.width
    shown = map(safe_note, notes)
    return list(shown) if width is None else [as_lines(Text(note), width=width) for note in shown]


def safe_note_markdown(text: str) -> str:
    """Return the same for Markdown, with its `code` as it is."""
    marks = _MARKS.sub(lambda mark: mark[0] if mark[0] in "`\\" else f"\\{mark[0]}", safe_note(text))
    return _without_html(marks)


def _without_html(text: str) -> str:
    return _ADDRESS.sub("&#58;", _TAG.sub("&lt;", _ENTITY.sub("&amp;", text)))


def _safe_cell(cell: Cell) -> Cell:
    return cell if isinstance(cell, Text) and cell.plain.isprintable() else safe(str(cell))


def _safe_head(name: str) -> str:
    """Return the name of a column; it may have been broken into lines."""
    return "\n".join(map(safe, name.split("\n")))


def as_lines(shown: Table | Text, *, width: int | None = None) -> str:
    """Return a table as lines, with styles only for a terminal that shows colours and may (NO_COLOR unset).

    A table whose figures do not fit is wider than asked for: a number on two lines would be misread.

    Args:
        shown: what to print.
        width: in characters; None: as `shown_width` has it.
    """
    terminal = Console()
    styled = terminal.color_system is not None and not terminal.no_color
    least = least_width(shown) if isinstance(shown, Table) else 0
    out = io.StringIO()
    Console(
        file=out,
        width=max(width or shown_width(), least),
        highlight=False,
        markup=False,  # names are names: a model may be called x[high]
        emoji=False,
        force_terminal=styled,
        color_system="auto" if styled else None,
    ).print(shown)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def shown_width() -> int:
    """Return how wide tables may be, in characters: as the terminal, or `PIPED_WIDTH` where there is none."""
    terminal = Console()
    return terminal.width if terminal.is_terminal else PIPED_WIDTH


def natural_width(table: Table) -> int:
    """Return the characters that a table takes when nothing in it is folded."""
    return Console(width=10_000, markup=False, emoji=False).measure(table).maximum


def least_width(table: Table) -> int:
    """Return the characters that a table takes when its names are folded as far as they may be."""
    names = (column for column in table.columns if not column.no_wrap)
    widths = (max(map(_cell_width, [column.header, *column.cells])) for column in names)
    return natural_width(table) - sum(max(0, width - LEAST_NAME) for width in widths)


def _cell_width(cell: RenderableType) -> int:
    return max(map(cell_len, str(cell).split("\n")))


def columns(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    labels: int,
    title: str | None = None,
    gap: int = 2,
) -> Table:
    """Return a table whose first `labels` columns are names and whose others are figures, which never fold.

    Args:
        head: the names of the columns; breaks in them are kept.
        rows: as many cells each.
        labels: the first so many columns are names.
        title: stands above it.
        gap: characters between columns.
    """
    table = Table(
        title=title and safe(title),
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, gap),
        collapse_padding=True,
    )
    for i, name in enumerate(head):
        named = i < labels
        justify: JustifyMethod = "left" if named else "right"
        table.add_column(_safe_head(name), justify=justify, overflow="fold", no_wrap=not named)
    for row in rows:
        table.add_row(*map(_safe_cell, row))
    return table


def markdown(head: Sequence[str], rows: Sequence[Sequence[Cell]], *, labels: int, title: str) -> str:
    """Return the same as a Markdown table under a heading."""
    rule = "|" + "---|" * labels + "---:|" * (len(head) - labels)
    lines = (_markdown_row(row) for row in [head, *rows])
    return "\n".join([f"### {safe_markdown(title)}", "", next(lines), rule, *lines, ""])


def _markdown_row(row: Sequence[Cell]) -> str:
    return f"| {' | '.join(safe_markdown(str(cell)) for cell in row)} |"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table before it is text: whatever it is shown in."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    labels: int = 1  # the first so many columns are names
    gap: int = 2  # characters between columns, in text
    instead: Sequence["Sheet"] = ()  # the same in narrower sheets, for where this one does not fit

    def as_text(self, *, width: int | None = None) -> str:
        """Return it for a terminal of so many characters; what does not fit is packed, then names fold."""
        width = width or shown_width()
        table = self._table(self._head_in_two(), gap=self.gap)
        if natural_width(table) > width:
            if self.instead:
                return "\n\n".join(sheet.as_text(width=width) for sheet in self.instead)
            table = self._table(self._head_packed(), gap=1)
        parts = [table] if least_width(table) <= width else list(self._below_each_other(width))
        # Not the table's own title, which would be folded at the table's width.
        title = as_lines(Text(safe(self.title), style="bold"), width=width)
        return "\n".join([title, "\n\n".join(as_lines(part, width=width) for part in parts)])

    def as_markdown(self) -> str:
        """Return it as a Markdown table under a heading."""
        return markdown(self.head, self.rows, labels=self.labels, title=self.title)

    def as_latex(self) -> str:
        """Return it as a LaTeX table (booktabs) with a caption."""
        rows = [[safe(str(cell)) for cell in row] for row in self.rows]
        head = list(map(safe, self.head))
        return latex.table(head, rows, labels=self.labels, title=safe(self.title))

    def _table(self, head: Sequence[str], *, gap: int) -> Table:
        return columns(head, self.rows, labels=self.labels, gap=gap)

    def _below_each_other(self, width: int) -> Iterator[Table]:
        """Yield tables that fit into a width: each has the names, and as many of the figures as fit."""
        head = self._head_packed()
        widths = [
            1 + max(map(_cell_width, [name, *cells]))
            for name, cells in zip(head, self._columns(), strict=True)
        ]
        least = sum(min(LEAST_NAME + 1, one) for one in widths[: self.labels])
        names = max(least, min(sum(widths[: self.labels]), width // 2))
        chosen: list[int] = []
        for n in range(self.labels, len(head)):
            if chosen and names + sum(widths[one] for one in [*chosen, n]) - 1 > width:
                yield self._part(head, chosen)
                chosen = []
            chosen.append(n)
        yield self._part(head, chosen)

    def _columns(self) -> Iterator[list[Cell]]:
        return ([_safe_cell(row[n]) for row in self.rows] for n in range(len(self.head)))

    def _part(self, head: Sequence[str], figures: Sequence[int]) -> Table:
        """Return the names and some of the figures."""
        places = [*range(self.labels), *figures]
        rows = [[row[n] for n in places] for row in self.rows]
        return columns([head[n] for n in places], rows, labels=self.labels, gap=1)

    def _head_in_two(self) -> list[str]:
        """Return the head with breaks before brackets and, where columns are close, within a task's name."""
        head = [safe(name).replace(" (", "\n(") for name in self.head]
        return [name.replace("_", "_\n") for name in head] if self.gap == 1 else head

    def _head_packed(self) -> list[str]:
        """Return the head as narrow as words are; names can fold by themselves."""
        head = list(map(safe, self.head))
        figures = [name.replace(" ", "\n").replace("_", "_\n") for name in head[self.labels :]]
        return [*head[: self.labels], *figures]


def latex_of(parts: Iterable[str | Sheet]) -> str:
    """Return notes and tables in LaTeX, one after the other."""
    texts = (
        part.as_latex() if isinstance(part, Sheet) else latex.paragraph(safe_note(part)) for part in parts
    )
    return "\n".join([latex.NEEDS, *texts])


class Pages:
    """A report that is some notes and then some tables, for a terminal or in Markdown."""

    __slots__ = ()

    def as_text(self, *, width: int | None = None) -> str:
        """Return tables for a terminal; `width` in characters, None: as wide as the terminal."""
        tables = (sheet.as_text(width=width) for sheet in self._sheets())
        return "\n\n".join(["\n".join(safe_notes(self._notes(), width=width)), *tables])

    def as_markdown(self) -> str:
        """Return the same tables in Markdown."""
        tables = (sheet.as_markdown() for sheet in self._sheets())
        return "\n".join([*(f"**{safe_note_markdown(note)}**\n" for note in self._notes()), *tables])

    def as_latex(self) -> str:
        """Return the same tables in LaTeX."""
        return latex_of([*self._notes(), *self._sheets()])

    def _notes(self) -> Iterator[str]:
        raise NotImplementedError

    def _sheets(self) -> Iterator[Sheet]:
        raise NotImplementedError


def percent(share: float | None, interval: tuple[float, float] | None) -> str:
    """Return a share with its interval: 97.5 % as `97.5% (95.0-98.8)`."""
    if share is None or interval is None:
        return "-"
    return f"{share:.1%} ({100 * interval[0]:.1f}-{100 * interval[1]:.1f})"


def count(value: int | None) -> str:
    """Return a number of things; what is not known is said to be unknown."""
    return "unknown" if value is None else f"{value:,}"


def dollars(cost: float | None) -> str:
    """Return USD with four decimals, or three digits where that is less; what is not known is `unknown`."""
    if cost is None:
        return "unknown"
    decimals = 2 - floor(log10(cost)) if 0 < cost < 0.001 else 4
    return f"${cost:,.{decimals}f}"


def seconds(value: float | None) -> str:
    """Return seconds with three decimals."""
    return "-" if value is None else f"{value:.3f} s"
