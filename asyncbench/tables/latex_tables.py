r"""Tables in LaTeX (booktabs): the size in which each is set, and how one without room is shared out.

Widths and heights are estimates, as fonts differ. What may be too wide for its line is also narrowed there.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, product
from math import ceil
from typing import Final

from asyncbench.tables.latex import COLUMN, caption, escaped, placed, shown

# Points, as `COLUMN` is.
LINE: Final = 455.0  # across both columns of ACL's papers
SURE: Final = 170.0  # what is no wider by our estimate has room in any column
PAGE: Final = 520.0  # of the height of `article` on A4, without a caption of some lines

MOST_KEYS: Final = 2  # columns of names that stand in each part of a table
FOLDED: Final = 0.45  # of the line: how wide a column of sentences is
ROTATED: Final = 1.2  # ems of a line of an upright name, across
LONG: Final = 9.0  # ems of an upright name that stands on one line

_BREAK: Final = re.compile(r"[ /,_-]+")
_APART: Final = "\\vspace{3pt}\n"  # many classes set a table right below its caption
_NARROWED: Final = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"
_EMS: Final = {  # of letters in Computer Modern, which is wider than Times
    letter: ems
    for letters, ems in (("ijl.,:;'!", 0.28), ("frstI()[]- ", 0.39), ("bdhknpqu", 0.56), ("mwMW%@", 0.85))
    for letter in letters
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A size in which tables are set, in points of a document whose letters have 10."""

    command: str
    em: float
    line: float  # from one row to the next
    gap: float  # between two columns


SIZES: Final = (
    Size(command="\\footnotesize", em=8.5, line=9.5, gap=8),
    Size(command="\\footnotesize", em=8.5, line=9.5, gap=5),
    Size(command="\\scriptsize", em=8, line=8, gap=5),
    Size(command="\\scriptsize", em=8, line=8, gap=4),
)


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a column as LaTeX, and how many ems it is wide and high."""

    latex: str
    wide: float
    high: float = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a table is set: in which room and size, and which names and widths its columns have, in points."""

    room: float
    size: Size
    names: Sequence[Name]
    widths: Sequence[float]
    folded: Collection[int] = ()  # columns of sentences

    @property
    def head(self) -> float:
        """The height of the names of its columns, and of the rules of the table."""
        return 10 + self.size.em * max(name.high for name in self.names)

    def width(self, columns: Iterable[int]) -> float:
        """Return how wide some of its columns are beside each other."""
        return sum(self.widths[n] for n in columns) - self.size.gap

    def tabular(self, rows: Iterable[Sequence[str]], columns: Sequence[int], *, labels: int) -> str:
        """Return some rows of some columns, narrowed to the line where that may be shorter."""
        lines = [" & ".join(self.names[n].latex for n in columns)]
        for row in rows:
            cells = (
                rf"\parbox[t]{{{FOLDED}\linewidth}}{{\raggedright {escaped(row[n])}}}"
                if n in self.folded
                else escaped(row[n])
                for n in columns
            )
            lines.append(" & ".join(cells))
        # A bracket or star would be an argument of what ends the line above.
        head, *body = (f"{'{}' if line.startswith(('[', '*')) else ''}{line} \\\\" for line in lines)

        kinds = "".join("l" if n < labels else "r" for n in columns)
        inner = "\n".join(
            (f"\\begin{{tabular}}{{@{{}}{kinds}@{{}}}}\n\\toprule", head, "\\midrule", *body, "\\bottomrule")
        )
        inner += "\n\\end{tabular}"
        shown_inner = f"{_NARROWED}{{{inner}}}" if self.width(columns) > SURE else inner
        return f"{self.size.command}\\setlength{{\\tabcolsep}}{{{self.size.gap / 2:g}pt}}\n{shown_inner}"


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    labels: int,
    title: str,
    legend: str = "",
    upright: bool = False,
    label: str = "",
) -> str:
    r"""Return a table as a float with its caption, or as several where a page has no room for it.

    It stands in a column of the paper if it fits there in any size, and else across both. What has no room
    follows in further tables, each with as many columns and rows, and with the first names.

    Args:
        head: the names of the columns, as plain text.
        rows: as many cells each, as plain text.
        labels: the first so many columns are names, set to the left; the others are figures.
        title: the caption, as plain text.
        legend: what its signs say, which follows the caption.
        upright: names of figures stand upright where they have no room else.
        label: for `\ref`. Empty: it has none.
    """
    layout = _layout(head, rows, labels=labels, upright=upright)
    heights = [1] * len(rows)
    if layout.width(range(len(head))) > layout.room:
        layout, heights = _with_folded_sentences(layout, rows, labels)

    # Columns and rows are shared out among as many tables as they need.
    keys = range(min(labels, MOST_KEYS, len(head)))
    figures = range(len(keys), len(head))
    beside = layout.room - layout.width(keys)
    column_shares = _shares(figures, [layout.widths[n] for n in figures], beside)
    below = max(PAGE - layout.head, PAGE / 2) / layout.size.line
    row_shares = _shares(range(len(rows)), heights, below)

    tables = list[str]()
    for columns, shared_rows in product(column_shares, row_shares):
        above = caption(f"{title}, continued") if tables else caption(title, legend, label)
        inner = layout.tabular([rows[n] for n in shared_rows], [*keys, *columns], labels=labels)
        wide = layout.width([*keys, *columns]) > COLUMN
        height = layout.head + layout.size.line * sum(heights[n] for n in shared_rows)
        tables.append(placed("table", f"{above}\n{_APART}{inner}", wide=wide, height=height))
    return "\n".join(tables)


def _layout(head: Sequence[str], rows: Sequence[Sequence[str]], *, labels: int, upright: bool) -> Layout:
    """Return the first layout in which a table has room: in one column before two, large before small.

    Where a page is too short for all rows, it is the smallest that has room for all columns, or the last.
    """
    cells = [max(map(_ems, column)) for column in zip(*rows, strict=True)] if rows else [0.0] * len(head)
    plain = [Name(escaped(name), _ems(name)) for name in head]
    sides = ["l" if n < labels else "r" for n in range(len(head))]
    named = [plain, [*map(_stacked, head, sides, cells)]]
    if upright:
        named.append([*plain[:labels], *map(_upright, head[labels:])])

    narrow = None
    for room, size, names in product((COLUMN, LINE), SIZES, named):
        ems = [max(name.wide, cell) for name, cell in zip(names, cells, strict=True)]
        layout = Layout(room=room, size=size, names=names, widths=[size.em * wide + size.gap for wide in ems])
        if layout.width(range(len(head))) <= room:
            if layout.head + size.line * len(rows) <= PAGE:
                return layout
            if size is SIZES[-1] and narrow is None:
                narrow = layout
    return narrow or layout


def _stacked(name: str, side: str, wide: float) -> Name:
    """Return a name whose words stand on several lines, about as wide as the cells below it."""
    words = re.split(r" +(?!%)", name.strip())
    wide = max([wide, *map(_ems, words)])
    lines = words[:1]
    for word in words[1:]:
        if _ems(f"{lines[-1]} {word}") <= wide:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    if len(lines) < 2:
        return Name(escaped(name), _ems(name))
    stack = r"\\".join(map(escaped, lines))
    return Name(f"\\shortstack[{side}]{{{stack}}}", max(map(_ems, lines)), 1.2 * len(lines))


def _upright(name: str) -> Name:
    """Return a name from bottom to top: a long one on two lines, where a word or a part of it ends."""
    breaks = [end for end in (found.end() for found in _BREAK.finditer(name)) if end < len(name)]
    if _ems(name) <= LONG or not breaks:
        return Name(f"\\rotatebox{{90}}{{{escaped(name)}}}", ROTATED, _ems(name))
    middle = min(breaks, key=lambda end: abs(_ems(name[:end]) - _ems(name[end:])))
    halves = name[:middle].strip(), name[middle:].strip()
    lines = r"\\".join(map(escaped, halves))
    return Name(f"\\rotatebox{{90}}{{\\shortstack[l]{{{lines}}}}}", 2 * ROTATED, max(map(_ems, halves)))


def _with_folded_sentences(
    layout: Layout, rows: Sequence[Sequence[str]], labels: int
) -> tuple[Layout, list[int]]:
    """Return a layout whose columns of sentences are folded, and how many lines each row then has."""
    fold, em = FOLDED * layout.room, layout.size.em
    lengths = {n: [em * _ems(row[n]) for row in rows] for n in range(labels)}
    folded = {
        n: column
        for n, column in lengths.items()
        if max(column, default=0) > fold
        and all(em * _ems(word) <= fold for row in rows for word in row[n].split())
    }
    widths = [fold if n in folded else width for n, width in enumerate(layout.widths)]
    lines = [
        max((ceil(column[row] / fold) for column in folded.values()), default=1) for row in range(len(rows))
    ]
    return replace(layout, widths=widths, folded=folded), [max(1, count) for count in lines]


def _shares(items: range, sizes: Sequence[float], room: float) -> list[range]:
    """Return items in as few shares as have room, each about as large as the others."""
    total = sum(sizes)
    middles = [end - size / 2 for end, size in zip(accumulate(sizes), sizes, strict=True)]
    for count in range(1, len(items)):
        starts = [bisect_left(middles, total * n / count) for n in range(count)]
        bounds = [(start, end) for start, end in pairwise([*starts, len(items)]) if start < end]
        if all(sum(sizes[start:end]) <= room for start, end in bounds):
            return [items[start:end] for start, end in bounds]
    return [items[n : n + 1] for n in range(len(items))] or [items]


def _ems(text: str) -> float:
    """Return about how wide a text is in Computer Modern."""
    return sum(
        _EMS.get(sign) or (0.52 * 6 if shown(sign).startswith("U+") else 0.75 if sign.isupper() else 0.52)
        for sign in text
    )
