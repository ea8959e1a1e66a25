"""Text and tables that fit a terminal: control characters are removed, and no line is too long.

On a terminal a table is as wide as that. In a pipe it is plain, and as wide as COLUMNS or `PIPED_WIDTH` says.
"""

import io
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rich.cells import cell_len, chop_cells
from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 200  # characters; nobody resizes a pipe
NARROWEST = 24  # characters; a screen that is narrower gets as many
LEAST_NAME = 12  # characters; names are folded no further
USUAL_TEXT = 24  # characters of a text beside figures, where there is no room for all of it
MOST_KEYS = 2  # names that stand in every part of a table
LONGEST_CELL = 200  # characters of others' text
LONGEST_NOTE = 10_000  # a note may name every model

Cell = str | Text  # Text has a style, which shows on a terminal only


def safe(text: str, *, most: int | None = LONGEST_CELL) -> str:
    """Return a text that does nothing but stand there, on one line; what is left of a long one says so.

    Controls (terminal escapes, newlines), marks that turn the direction of writing, characters without width
    and unusual spaces are written as Python does: `\\x1b`, `\\n`, `\\u202e`.

    Args:
        text: whatever somebody wrote.
        most: characters of it that are shown; None: all.
    """
    whole = most is None or len(text) <= most
    shown = text if whole else text[:most]
    if not shown.isprintable():
        shown = "".join(
            character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
            for character in shown
        )
    return shown if whole else f"{shown}… ({len(text):,} characters)"


def safe_note(text: str) -> str:
    """Return a sentence of ours, with names of others in it, for a terminal."""
    return safe(text, most=LONGEST_NOTE)


def safe_notes(notes: Iterable[str], *, width: int | None = None) -> list[str]:
    """Return sentences for a terminal, folded between words; width None: as COLUMNS or a terminal says."""
    width = width or _terminal_width()
    shown = map(safe_note, notes)
    return list(shown) if width is None else [folded(note, width) for note in shown]


def _safe_cell(cell: Cell) -> Cell:
    return cell if isinstance(cell, Text) and cell.plain.isprintable() else safe(str(cell))


def render(shown: Table | Text, *, width: int | None = None) -> str:
    """Return a table as lines, with styles only for a terminal that shows colours and may (NO_COLOR unset).

    A table is not folded: `fitted` does that.

    Args:
        shown: what to print.
        width: in characters; None: as `shown_width` has it.
    """
    terminal = Console()
    styled = terminal.color_system is not None and not terminal.no_color
    least = natural_width(shown) if isinstance(shown, Table) else 0
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
    """Return how wide tables may be, in characters: as COLUMNS or the terminal says, else `PIPED_WIDTH`."""
    return _terminal_width() or PIPED_WIDTH


def _terminal_width() -> int | None:
    """Return the width that COLUMNS or a terminal gives, or None if neither does."""
    setting = os.environ.get("COLUMNS", "")
    if setting.isdecimal() and int(setting):
        return int(setting)
    terminal = Console()
    return terminal.width if terminal.is_terminal else None


def natural_width(table: Table) -> int:
    """Return the characters that a table takes when nothing in it is folded."""
    _, gap, *_ = table.padding
    return sum(column.width or 0 for column in table.columns) + gap * max(0, len(table.columns) - 1)


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
    """Return a table whose first `labels` columns are names and whose others are figures.

    Args:
        head: the names of the columns; breaks in them are kept.
        rows: as many cells each.
        labels: the first so many columns are names.
        title: stands above it.
        gap: characters between columns.
    """
    shown_columns = []
    for n, name in enumerate(head):
        safe_head = "\n".join(map(safe, name.split("\n")))
        cells = [_safe_cell(row[n]) for row in rows]
        shown_columns.append(Column(head=safe_head, cells=cells, named=n < labels))
    return _table_of(shown_columns, gap=gap, title=title and safe(title))


# ── Fitting a width


def fits(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    labels: int,
    gap: int = 2,
    width: int,
) -> bool:
    """Return whether a table needs no folding to fit into a width."""
    return natural_width(columns(_split_head(head, rows, labels, gap), rows, labels=labels, gap=gap)) <= width


def fitted(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    labels: int,
    gap: int = 2,
    width: int | None = None,
) -> str:
    """Return a table of which no line is wider than asked for.

    What does not fit is packed. Then names fold, between their parts, and the last columns stand in tables
    below, each beside the same names. A figure that is too wide even alone folds between words; what has no
    such place is left out, and a line says so. No number is broken.

    Args:
        head: the names of the columns.
        rows: as many cells each.
        labels: the first so many columns are names, or other text.
        gap: characters between columns, where there is room.
        width: in characters; None: as `shown_width` has it.
    """
    width = max(width or shown_width(), NARROWEST)
    if fits(head, rows, labels=labels, gap=gap, width=width):
        return render(
            columns(_split_head(head, rows, labels, gap), rows, labels=labels, gap=gap), width=width
        )

    # Heads of figures become as narrow as their words or cells are. Names can fold by themselves.
    packed = []
    for n, title in enumerate(map(safe, head)):
        cells = [_safe_cell(row[n]) for row in rows]
        if n >= labels:
            longest_word = max(cell_len(word) for word in re.split(r"\s|(?<=_)", title))
            title = folded(title, max([min(longest_word, LEAST_NAME), *map(_cell_width, cells)]))
        packed.append(Column(head=title, cells=cells, named=n < labels))

    # What has no room stands in tables below, each beside the same names.
    keys = min(labels, MOST_KEYS)
    parts, left_out = below_each_other(packed[:keys], packed[keys:], width)
    texts = [render(_table_of(group), width=width) for group in parts]
    if left_out:
        names = ", ".join(" ".join(column.head.split()) for column in left_out)
        note = f"Too wide for {width} characters: {names}. A wider terminal or --json has it."
        texts.append(render(Text(note), width=width))
    return "\n\n".join(texts)


def _split_head(head: Sequence[str], rows: Sequence[Sequence[Cell]], labels: int, gap: int) -> list[str]:
    """Return a head with breaks before brackets, and in the middle of what is longer than its figures.

    Where columns are close, names of tasks are broken, too.
    """
    names = [safe(name).replace(" (", "\n(") for name in head]
    for n in range(labels, len(names)):
        figures = max((_cell_width(row[n]) for row in rows), default=0)
        if cell_len(names[n]) > max(figures, LEAST_NAME) and "\n" not in names[n]:
            # On two lines, broken at the space that is nearest to the middle.
            name = names[n]
            spaces = [index for index, letter in enumerate(name) if letter == " "]
            if spaces:
                distances = [abs(2 * index - len(name) + 1) for index in spaces]
                middle = spaces[distances.index(min(distances))]
                names[n] = f"{name[:middle]}\n{name[middle + 1 :]}"
    return [name.replace("_", "_\n") for name in names] if gap == 1 else names


_PIECES = re.compile(r"[^-\s/_.:,=+]*[-/_.:,=+]*\s*")  # of a name: it may be broken after each
_NUMBER = re.compile(r"[-+(“]*\d[\d.,/e+-]*[…)”]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; breaks in its cells are where they are broken."""

    head: str
    cells: Sequence[Cell]
    named: bool  # it has names, or other text: at the left, and it may fold

    @property
    def width(self) -> int:
        """Width when nothing more is folded, in characters."""
        return max(map(_cell_width, [self.head, *self.cells]))

    def least(self, limit: int) -> int:
        """Return how wide it is at least: text may be folded to so many characters, figures may not."""
        return min(self.width, limit) if self.named else self.width

    def fold(self, width: int) -> "Column":
        """Return it folded: text between the parts of names, figures between words."""
        if self.width <= width:
            return self
        fold = partial(folded, width=width, whole_words=not self.named)
        cells = [cell if _cell_width(cell) <= width else fold(str(cell)) for cell in self.cells]
        return replace(self, head=fold(self.head), cells=cells)


def below_each_other(
    keys: Sequence[Column], others: Sequence[Column], width: int
) -> tuple[list[list[Column]], list[Column]]:
    """Return the columns of tables that fit into a width, and those that fit into none.

    Args:
        keys: stand in each table.
        others: each stands in one.
        width: of the tables, in characters, with a character between columns.
    """
    usual = sum(allotted([column.width for column in keys], max(width // 2, _least(keys)))) + len(keys)
    room = width - _least(keys) - len(keys)
    parts: list[list[Column]] = [[]]
    taken, left_out = usual, list[Column]()
    for column in others:
        fitting = (
            column if column.named else column.fold(room)
        )  # text folds when all its neighbours are known
        if fitting.width > room and not fitting.named:
            left_out.append(column)
            continue
        needed = fitting.least(min(USUAL_TEXT, room)) + 1
        if parts[-1] and taken + needed > width + 1:
            parts.append([])
            taken = usual
        parts[-1].append(fitting)
        taken += needed

    # In each table text has the room that figures do not need.
    tables = []
    for group in (group for group in parts if group or not others):
        figures = sum(column.width for column in (*keys, *group) if not column.named)
        texts = [column.width for column in (*keys, *group) if column.named]
        shares = iter(allotted(texts, width - figures - len(keys) - len(group) + 1))
        tables.append([column.fold(next(shares)) if column.named else column for column in (*keys, *group)])
    return tables, left_out


def _least(columns: Iterable[Column]) -> int:
    return sum(column.least(LEAST_NAME) for column in columns)


def allotted(wanted: Sequence[int], total: int) -> list[int]:
    """Return how many of so many characters each gets: the widest give way first.

    >>> allotted([5, 30, 40], 45)
    [5, 20, 20]
    """
    widths = list(wanted)
    while sum(widths) > total and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def folded(text: str, width: int, *, whole_words: bool = False) -> str:
    """Return a text on lines of so many characters: broken between words, then between parts of names.

    A number that is too long loses its middle; of other words, what has no parts is broken anywhere.

    Args:
        text: the text.
        width: in characters.
        whole_words: a word that is too long stays as it is.
    """
    pieces = list[str]()
    for word in re.findall(r"\S+\s*", text.replace("\n", " ") if whole_words else text):
        if whole_words or cell_len(word.rstrip()) <= width:
            pieces.append(word)
        elif _NUMBER.fullmatch(word.strip()):
            pieces.append(f"{middle_cut(word.rstrip(), width)} ")
        else:
            for part in filter(None, _PIECES.findall(word)):
                pieces += [part] if cell_len(part.rstrip()) <= width else chop_cells(part, width)

    lines = [""]
    for piece in pieces:
        if cell_len(lines[-1]) + cell_len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines if line)


def middle_cut(text: str, limit: int) -> str:
    """Return a text without its middle where it is too long: what is alike differs at the end."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def _table_of(columns: Sequence[Column], *, gap: int = 1, title: str | None = None) -> Table:
    """Return columns as they are; their widths are told, as rich would measure each cell several times."""
    table = Table(
        title=title,
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, gap),
        collapse_padding=True,
    )
    for column in columns:
        justify: JustifyMethod = "left" if column.named else "right"
        table.add_column(column.head, justify=justify, no_wrap=True, width=column.width)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    return table
