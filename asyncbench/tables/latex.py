r"""Tables in LaTeX (booktabs). Characters with a meaning in TeX are escaped.

What is shown is plain text for every engine: signs that an 8-bit engine has no letter for are written by
their number, as `U+4E2D`.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

LONGEST_PAGE: Final = 48  # rows; what is longer is broken over pages
LONG: Final = 36  # rows; what is longer is set in \scriptsize
# Characters in which a table's widest cells lie side by side, `GAP` between two columns:
COLUMN: Final = 45  # fit in one of two columns of a page; what is wider stands across both
USUAL: Final = 65  # fit on a line of `article` in its usual size
SMALL: Final = 105  # in \scriptsize
WIDEST: Final = 112  # narrowed to the line, are still read without a glass
GAP: Final = 3
TIGHT: Final = 2  # characters between two columns of what is wider than a line
FOLDED: Final = r"p{.4\linewidth}"  # of a column of sentences in a table of several pages
MOST_KEYS: Final = 2  # columns of names that stand in each part of a table
MOST_WAITING: Final = 12  # tables that look for a place on a page

NEEDS: Final = (
    "% needs \\usepackage{booktabs}, \\usepackage{graphicx} (wide tables are narrowed)"
    " and, for tables of several pages, \\usepackage{longtable}\n"
)

_FLOAT: Final = "\\begin{table"
_OVER_PAGES: Final = "\\begin{longtable}"
_NARROWED: Final = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"
_SMALLER: Final = (
    "\\begingroup\\scriptsize\\setlength{\\tabcolsep}{3pt}\n"  # of a longtable, which has no box
)
_TEX_FORMS: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"\textquotedblright{}",  # some languages make a command of it; OT1 has it in typewriter only
    "×": r"\ensuremath{\times}",
    "÷": r"\ensuremath{\div}",
    "−": r"\ensuremath{-}",
    "±": r"\ensuremath{\pm}",
    "≤": r"\ensuremath{\le}",
    "≥": r"\ensuremath{\ge}",
    "≈": r"\ensuremath{\approx}",
    "≠": r"\ensuremath{\ne}",
    "∞": r"\ensuremath{\infty}",
    "·": r"\ensuremath{\cdot}",
    "→": r"\ensuremath{\to}",
    "°": r"\ensuremath{^\circ}",
    "…": r"\ldots{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "‹": r"\ensuremath{\langle}",
    "›": r"\ensuremath{\rangle}",
    "²": r"\ensuremath{^2}",
    "³": r"\ensuremath{^3}",
    "⋅": r"\ensuremath{\cdot}",
    "⏎": r"\ensuremath{\hookleftarrow}",
    "½": r"\ensuremath{\frac12}",
    "✓": r"\ensuremath{\surd}",
    "µ": r"\ensuremath{\mu}",
}
_CODE: Final = re.compile(r"`([^`]+)`")
_JOINED: Final = re.compile(r"([-,'])(?=\1)")  # two of these make another sign
# Letters that every engine has; these four are not in OT1, which pdflatex starts with.
_LATIN: Final = frozenset(map(chr, range(0xC0, 0x100))) - set("ÐÞðþ")


def escaped(text: str) -> str:
    """Return a text as LaTeX that shows just these characters, on one line."""
    return _JOINED.sub(r"\1{}", "".join(map(_shown, text)))


def _shown(character: str) -> str:
    if character in _TEX_FORMS:
        return _TEX_FORMS[character]
    if " " <= character <= "~" or character in _LATIN:
        return character
    return f"U+{ord(character):04X}"


def sentence(text: str) -> str:
    """Return a sentence of ours, its `code` without the marks around it."""
    return escaped(_CODE.sub(r"\1", text))


def paragraph(text: str) -> str:
    """Return a sentence as a paragraph of its own."""
    return f"\\noindent {sentence(text)}\\par\n"


def document(parts: Iterable[str]) -> str:
    """Return paragraphs and tables one after the other, told what they need.

    Tables that wait for their place are set before one of several pages, which waits for none; after every
    few, as TeX gives up where a hundred wait; and at the end of several.
    """
    texts, waiting = [NEEDS], 0
    for text in parts:
        floats = text.count(_FLOAT)
        if waiting and (_OVER_PAGES in text or waiting + floats > MOST_WAITING):
            texts.append("\\clearpage\n")
            waiting = 0
        texts.append(text)
        waiting += floats
    if waiting > 1:
        texts.append("\\clearpage\n")
    return "\n".join(texts)


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    labels: int,
    title: str,
    legend: str = "",
    upright: bool = False,
) -> str:
    r"""Return a table with its caption: a float, or a longtable where it does not fit on a page.

    It needs the packages that `NEEDS` names. What is wider than one of two columns stands across both, and
    what is wider than the text is set smaller; of what would be too small to read, columns follow in further
    tables, each with the first names.

    Args:
        head: the names of the columns, as plain text.
        rows: as many cells each, as plain text.
        labels: the first so many columns are names, set to the left; the others are figures.
        title: the caption, as plain text.
        legend: what its signs say, which follows the caption.
        upright: names of figures stand upright where a line has no room for them.
    """
    # Which columns stand in which table: the keys in each, of the others as many as are legible.
    keys, widths = min(labels, MOST_KEYS), _widths(head, rows, GAP)
    room, gap = (WIDEST, TIGHT) if len(rows) <= LONGEST_PAGE else (SMALL, GAP)
    turned = labels if upright and sum(widths) > room else len(head)  # the first column whose name is upright
    if turned < len(head):
        widths = _widths([*head[:labels], *("" for _ in head[labels:])], rows, gap)
    parts, taken = [list(range(keys))], sum(widths[:keys])
    for n in range(keys, len(head)):
        if taken + widths[n] > room and len(parts[-1]) > keys:
            parts.append(list(range(keys)))
            taken = sum(widths[:keys])
        parts[-1].append(n)
        taken += widths[n]

    tables = []
    for number, columns in enumerate(parts):
        letters = "".join("l" if n < labels else "r" for n in columns)
        cells = [[row[n] for n in columns] for row in rows]
        names = [
            f"\\rotatebox{{90}}{{{escaped(head[n])}}}" if n >= turned else escaped(head[n]) for n in columns
        ]
        name = escaped(f"{title}{', continued' if number else ''}")
        caption = f"\\caption{{{name}}}"
        if legend and not number:
            caption = f"\\caption[{{{name}}}]{{{name}. {sentence(legend)}}}"
        taken = sum(widths[n] for n in columns)
        tables.append(_table(names, cells, letters=letters, caption=caption, width=taken))
    return "\n".join(tables)


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]], gap: int) -> list[int]:
    """Return how many letters wide columns are."""
    return [
        gap
        + max(
            # A sign without a letter is as long as its code point: U+200B.
            sum(len(shown) if shown.startswith("U+") else 1 for shown in map(_shown, text))
            for text in column
        )
        for column in zip(head, *rows, strict=True)
    ]


def _table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, letters: str, caption: str, width: int
) -> str:
    """Return one table; the names of its columns and its caption are LaTeX already."""
    kinds = list(letters)
    if len(rows) > LONGEST_PAGE and width > SMALL:
        widths = _widths([""] * len(head), rows, GAP)
        kinds[widths.index(max(widths))] = FOLDED
    columns = f"@{{}}{''.join(kinds)}@{{}}"
    top, body = f"\\toprule\n{_line(head)}\n\\midrule", "\n".join(_line(map(escaped, row)) for row in rows)
    wide = width > USUAL
    if len(rows) <= LONGEST_PAGE:
        inner = f"\\begin{{tabular}}{{{columns}}}\n{top}\n{body}\n\\bottomrule\n\\end{{tabular}}"
        shown = f"{_NARROWED}{{{inner}}}" if width > COLUMN else inner
        size = "\\scriptsize{}" if len(rows) > LONG else ""
        tight = "\\setlength{\\tabcolsep}{3pt}" if wide else ""
        name = "table*" if width > COLUMN else "table"
        return f"\\begin{{{name}}}[htbp]\n\\centering\n{caption}\n{size}{tight}{shown}\n\\end{{{name}}}\n"
    begin, end = (_SMALLER, "\\endgroup\n") if wide else ("", "")
    return (
        f"{begin}{_OVER_PAGES}{{{columns}}}\n{caption}\\\\\n{top}\n\\endfirsthead\n{top}\n\\endhead\n"
        f"{body}\n\\bottomrule\n\\end{{longtable}}\n{end}"
    )


def _line(cells: Iterable[str]) -> str:
    line = " & ".join(cells)
    # a bracket or star would be an argument of what ends the line above
    return f"{'{}' if line.startswith(('[', '*')) else ''}{line} \\\\"
