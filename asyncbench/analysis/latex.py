r"""Tables in LaTeX (booktabs), with everything escaped that TeX would read as more than a character.

What is shown is plain text for every engine: signs that an 8-bit engine has no letter for are written by
their number, as `U+4E2D`.
"""

import re
from collections.abc import Sequence
from typing import Final

LONGEST_PAGE: Final = 45  # rows; what is longer is broken over pages

NEEDS: Final = "% needs \\usepackage{booktabs} and, for tables of several pages, \\usepackage{longtable}\n"

_MEANT: Final = {
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
    '"': r"\char34{}",  # some languages make a command of it
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
_LATIN: Final = range(0xC0, 0x100)  # letters that every engine has


def escaped(text: str) -> str:
    """Return a text as LaTeX that shows just these characters, on one line."""
    return _JOINED.sub(r"\1{}", "".join(map(_shown, text)))


def _shown(character: str) -> str:
    if character in _MEANT:
        return _MEANT[character]
    if " " <= character <= "~" or ord(character) in _LATIN:
        return character
    return f"U+{ord(character):04X}"


def paragraph(text: str) -> str:
    """Return a sentence as a paragraph of its own."""
    return f"\\noindent {escaped(text)}\\par\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, labels: int, title: str) -> str:
    r"""Return a table with its caption: a float, or a longtable where it does not fit on a page.

    It needs `\usepackage{booktabs}`, and `\usepackage{longtable}` where it is long.

    Args:
        head: the names of the columns, as plain text.
        rows: as many cells each, as plain text.
        labels: the first so many columns are names, set to the left; the others are figures.
        title: the caption, as plain text.
    """
    columns = f"@{{}}{'l' * labels}{'r' * (len(head) - labels)}@{{}}"
    caption, top = f"\\caption{{{escaped(title)}}}", f"\\toprule\n{_line(head)}\n\\midrule"
    body = "\n".join(map(_line, rows))
    if len(rows) <= LONGEST_PAGE:
        inner = f"\\begin{{tabular}}{{{columns}}}\n{top}\n{body}\n\\bottomrule\n\\end{{tabular}}"
        return f"\\begin{{table}}[htbp]\n\\centering\n{caption}\n{inner}\n\\end{{table}}\n"
    return (
        f"\\begin{{longtable}}{{{columns}}}\n{caption}\\\\\n{top}\n\\endfirsthead\n{top}\n\\endhead\n"
        f"{body}\n\\bottomrule\n\\end{{longtable}}\n"
    )


def _line(cells: Sequence[str]) -> str:
    line = " & ".join(map(escaped, cells))
    # a bracket or star would be an argument of what ends the line above
    return f"{'{}' if line.startswith(('[', '*')) else ''}{line} \\\\"
