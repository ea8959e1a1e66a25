"""How figures are written, in every table: shares, dollars, seconds, and the line for simulated results."""

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

SIMULATED = "SIMULATED: these replies were made up by asyncbench's own loopback server; no model was asked."
PIPED_WIDTH = 200  # characters; nobody resizes a pipe


def as_lines(table: Table, *, width: int | None = None) -> str:
    """Return a table as plain text.

    Args:
        table: what to print.
        width: in characters; None: as wide as the terminal, or `PIPED_WIDTH` where there is none.
    """
    terminal = Console()
    out = io.StringIO()
    width = width or (terminal.width if terminal.is_terminal else PIPED_WIDTH)
    Console(file=out, width=width, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, labels: int, title: str | None = None
) -> Table:
    """Return a table whose first `labels` columns are names and whose others are figures."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for i, name in enumerate(head):
        table.add_column(name, justify="left" if i < labels else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], *, labels: int, title: str) -> str:
    """Return the same as a Markdown table under a heading."""
    rule = "|" + "---|" * labels + "---:|" * (len(head) - labels)
    lines = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([f"### {title}", "", f"| {' | '.join(head)} |", rule, *lines, ""])


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
