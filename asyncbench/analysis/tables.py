"""How figures are written, in every table: shares, dollars, seconds, and the line for simulated results."""

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

SIMULATED = "SIMULATED: these replies were made up by asyncbench's own loopback server; no model was asked."
PIPED_WIDTH = 200  # characters; nobody resizes a pipe

Cell = str | Text  # Text has a style, which shows on a terminal only


def as_lines(shown: Table | Text, *, width: int | None = None) -> str:
    """Return a table as lines, with styles only for a terminal that shows colours and may (NO_COLOR unset).

    Args:
        shown: what to print.
        width: in characters; None: as `shown_width` has it.
    """
    terminal = Console()
    styled = terminal.color_system is not None and not terminal.no_color
    out = io.StringIO()
    Console(
        file=out,
        width=width or shown_width(),
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


def columns(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    labels: int,
    title: str | None = None,
    gap: int = 2,
) -> Table:
    """Return a table whose first `labels` columns are names and whose others are figures.

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
        table.add_column(name, justify="left" if i < labels else "right", overflow="fold")
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
