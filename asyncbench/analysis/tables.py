"""How figures are written, in every table: shares, dollars, seconds, and the line for simulated results."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

SIMULATED = "SIMULATED: these replies were made up by asyncbench's own loopback server; no model was asked."
PIPED_WIDTH = 200  # characters; nobody resizes a pipe
LEAST_NAME = 12  # characters; names are folded no further

Cell = str | Text  # Text has a style, which shows on a terminal only


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
        head: the names of the columns.
        rows: as many cells each.
        labels: the first so many columns are names.
        title: stands above it.
        gap: characters between columns.
    """
    table = Table(
        title=title, title_justify="left", box=None, pad_edge=False, padding=(0, gap), collapse_padding=True
    )
    for i, name in enumerate(head):
        named = i < labels
        table.add_column(name, justify="left" if named else "right", overflow="fold", no_wrap=not named)
    for row in rows:
        table.add_row(*row)
    return table


def markdown(head: Sequence[str], rows: Sequence[Sequence[Cell]], *, labels: int, title: str) -> str:
    """Return the same as a Markdown table under a heading."""
    rule = "|" + "---|" * labels + "---:|" * (len(head) - labels)
    lines = (f"| {' | '.join(map(_escaped, row))} |" for row in rows)
    return "\n".join([f"### {title}", "", f"| {' | '.join(head)} |", rule, *lines, ""])


def _escaped(cell: Cell) -> str:
    return str(cell).replace("|", "\\|")  # in a model's name


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
        # Not the table's own title, which would be folded at the table's width.
        title = Text(self.title, style="bold")
        return f"{as_lines(title, width=width)}\n{as_lines(table, width=width)}"

    def as_markdown(self) -> str:
        """Return it as a Markdown table under a heading."""
        return markdown(self.head, self.rows, labels=self.labels, title=self.title)

    def _table(self, head: Sequence[str], *, gap: int) -> Table:
        return columns(head, self.rows, labels=self.labels, gap=gap)

    def _head_in_two(self) -> list[str]:
        """Return the head with breaks before brackets and, where columns are close, within a task's name."""
        head = [name.replace(" (", "\n(") for name in self.head]
        return [name.replace("_", "_\n") for name in head] if self.gap == 1 else head

    def _head_packed(self) -> list[str]:
        """Return the head as narrow as words are; names can fold by themselves."""
        figures = [name.replace(" ", "\n").replace("_", "_\n") for name in self.head[self.labels :]]
        return [*self.head[: self.labels], *figures]


class Pages:
    """A report that is some notes and then some tables, for a terminal or in Markdown."""

    __slots__ = ()

    def as_text(self, *, width: int | None = None) -> str:
        """Return tables for a terminal; `width` in characters, None: as wide as the terminal."""
        tables = (sheet.as_text(width=width) for sheet in self._sheets())
        return "\n\n".join(["\n".join(self._notes()), *tables])

    def as_markdown(self) -> str:
        """Return the same tables in Markdown."""
        tables = (sheet.as_markdown() for sheet in self._sheets())
        return "\n".join([*(f"**{note}**\n" for note in self._notes()), *tables])

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
    """Return USD with four decimals; what is not known is said to be unknown."""
    return "unknown" if cost is None else f"${cost:,.4f}"


def seconds(value: float | None) -> str:
    """Return seconds with three decimals."""
    return "-" if value is None else f"{value:.3f} s"
