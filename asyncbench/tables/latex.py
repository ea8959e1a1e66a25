r"""Tables in LaTeX (booktabs). Characters with a meaning in TeX are escaped.

What is shown is plain text for every engine: signs that an 8-bit engine has no letter for are written by
their number, as `U+4E2D`.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

LONGEST_PAGE: Final = 40  # rows; what is longer is broken over pages
# Characters in which a table's widest cells lie side by side, `GAP` between two columns:
USUAL: Final = 65  # fit on a line of `article` in its usual size
SMALL: Final = 105  # in \scriptsize
WIDEST: Final = 110  # narrowed to the line, are still read without a glass
GAP: Final = 3
FOLDED: Final = r"p{.4\linewidth}"  # of a column of sentences in a table of several pages
MOST_KEYS: Final = 2  # columns of names that stand in each part of a table
MOST_WAITING: Final = 12  # tables that look for a place on a page

NEEDS: Final = (
    "% needs \\usepackage{booktabs}, \\usepackage{graphicx} (wide tables are narrowed)"
    " and, for tables of several pages, \\usepackage{longtable}\n"
)

_FLOAT: Final = "\\begin{table}"
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
    '"': r"\texttt{\char34}",  # some languages make a command of it; of OT1 only this font has it
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
    "µ": r"\ensuremath{\mu}",
}
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


def paragraph(text: str) -> str:
    """Return a sentence as a paragraph of its own."""
    return f"\\noindent {escaped(text)}\\par\n"


def document(parts: Iterable[str]) -> str:
    """Return paragraphs and tables one after the other, told what they need.

    After every few tables the page is ended: TeX gives up where a hundred of them wait for their place.
    """
    texts, waiting = [NEEDS], 0
    for text in parts:
        waiting += text.count(_FLOAT)
        if waiting > MOST_WAITING:
            texts.append("\\clearpage\n")
            waiting = text.count(_FLOAT)
        texts.append(text)
    return "\n".join(texts)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, labels: int, title: str) -> str:
    r"""Return a table with its caption: a float, or a longtable where it does not fit on a page.

    It needs the packages that `NEEDS` names. What is wider than the text is set smaller; of what would be
    too small to read, columns follow in further tables, each with the first names.

    Args:
        head: the names of the columns, as plain text.
        rows: as many cells each, as plain text.
        labels: the first so many columns are names, set to the left; the others are figures.
        title: the caption, as plain text.
    """
    # Which columns stand in which table: the keys in each, of the others as many as are legible.
    keys, widths = min(labels, MOST_KEYS), _widths(head, rows)
    room = WIDEST if len(rows) <= LONGEST_PAGE else SMALL
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
        caption = f"{title}{', continued' if number else ''}"
        tables.append(_table([head[n] for n in columns], cells, letters=letters, title=caption))
    return "\n".join(tables)


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return how many letters wide columns are."""
    return [
        GAP
        + max(
            # A sign without a letter is as long as its code point: U+200B.
            sum(len(shown) if shown.startswith("U+") else 1 for shown in map(_shown, text))
            for text in column
        )
        for column in zip(head, *rows, strict=True)
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, letters: str, title: str) -> str:
    widths, kinds = _widths(head, rows), list(letters)
    if len(rows) > LONGEST_PAGE and sum(widths) > SMALL:
        kinds[widths.index(max(widths))] = FOLDED
    columns, caption = f"@{{}}{''.join(kinds)}@{{}}", f"\\caption{{{escaped(title)}}}"
    top, body = f"\\toprule\n{_line(head)}\n\\midrule", "\n".join(map(_line, rows))
    wide = sum(widths) > USUAL
    if len(rows) <= LONGEST_PAGE:
        inner = f"\\begin{{tabular}}{{{columns}}}\n{top}\n{body}\n\\bottomrule\n\\end{{tabular}}"
        shown = f"{_NARROWED}{{{inner}}}" if wide else inner
        return f"{_FLOAT}[htbp]\n\\centering\n{caption}\n{shown}\n\\end{{table}}\n"
    begin, end = (_SMALLER, "\\endgroup\n") if wide else ("", "")
    return (
        f"{begin}\\begin{{longtable}}{{{columns}}}\n{caption}\\\\\n{top}\n\\endfirsthead\n{top}\n\\endhead\n"
        f"{body}\n\\bottomrule\n\\end{{longtable}}\n{end}"
    )


def _line(cells: Sequence[str]) -> str:
    line = " & ".join(map(escaped, cells))
    # a bracket or star would be an argument of what ends the line above
    return f"{'{}' if line.startswith(('[', '*')) else ''}{line} \\\\"
