r"""Text, tables and pictures in LaTeX. Characters with a meaning in TeX are escaped.

What is shown is plain text for every engine: signs that an 8-bit engine has no letter for are written by
their number, as `U+4E2D`. Tables (`latex_tables`) and pictures are floats, in a column of a paper where they
fit in one, and else across both.
"""

import re
from collections.abc import Iterable
from typing import Final

NEEDS: Final = "% needs \\usepackage{booktabs} and \\usepackage{graphicx}\n"
COLUMN: Final = 219.0  # points of a column of ACL's papers; those of ICML, IEEE and `article` are wider
TALL: Final = 460.0  # points: what is so high has a column or page of its own
PENDING: Final = 18  # floats that may wait for their place in any TeX; for more, room is asked for

_FLOAT: Final = re.compile(r"\\begin\{(?:table|figure)\*?\}")
_ENDS: Final = re.compile(r"\\(?:begin|end)\{(?:table|figure)\*?\}")
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
    return _JOINED.sub(r"\1{}", "".join(map(shown, text)))


def shown(character: str) -> str:
    """Return a character as LaTeX that shows just it."""
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
    """Return paragraphs and floats one after the other, told what they need.

    After several floats a page ends, so that none of them stands in what follows.
    """
    texts = list(parts)
    floats = [len(_FLOAT.findall(text)) for text in texts]
    many = sum(floats) > PENDING
    room = f"\\extrafloats{{{sum(floats)}}}\\maxdeadcycles={100 + 10 * sum(floats)}\n" if many else ""
    end = ["\\clearpage\n"] if sum(map(bool, floats)) > 1 else []
    return _without_lonely("\n".join([f"{NEEDS}{room}", *texts, *end]))


def _without_lonely(text: str) -> str:
    """Return a document in which no float has half a page alone: one between wide ones is wide, too."""
    wide = [begin.endswith("*}") for begin in _FLOAT.findall(text)]
    if not any(wide):
        return text
    lonely = {
        n
        for n, among in enumerate(zip([True, *wide], wide, [*wide[1:], True], strict=False))
        if among == (True, False, True)
    }
    ends = iter(n // 2 for n in range(2 * len(wide)))
    return _ENDS.sub(lambda found: f"{found[0][:-1]}*}}" if next(ends) in lonely else found[0], text)


def figure(name: str, *, title: str, legend: str = "", inches: tuple[float, float]) -> str:
    r"""Return a picture as a float, with its caption and the label `fig:NAME`.

    Args:
        name: of its file, without the ending; `\graphicspath` says in which folder it is.
        title: the caption, as plain text.
        legend: what follows the caption.
        inches: how wide and high it is on paper. It gets smaller where a line or a page has less room.
    """
    width, height = inches
    size = (
        f"width=\\ifdim{width:.2f}in>\\linewidth\\linewidth\\else{width:.2f}in\\fi,"
        f"height=\\ifdim{height:.2f}in>.8\\textheight.8\\textheight\\else{height:.2f}in\\fi,keepaspectratio"
    )
    body = f"\\includegraphics[{size}]{{{name}}}\n{caption(title, legend, f'fig:{name}')}"
    return placed("figure", body, wide=72 * width > 1.2 * COLUMN, height=72 * height)


def placed(kind: str, body: str, *, wide: bool, height: float) -> str:
    """Return a float: at the top of a column or page, or on a page of its own where it is high.

    Args:
        kind: `table` or `figure`.
        body: what is in it, with its caption.
        wide: whether it stands across both columns of a page.
        height: points.
    """
    name = f"{kind}*" if wide else kind
    places = "tp" if height > TALL else "!t"
    return f"\\begin{{{name}}}[{places}]\n\\centering\n{body}\n\\end{{{name}}}\n"


def caption(title: str, legend: str = "", label: str = "") -> str:
    """Return a caption of plain text; lists of tables and figures have its title alone."""
    mark = f"\\label{{{label}}}" if label else ""
    if not legend:
        return f"\\caption{{{escaped(title)}}}{mark}"
    return f"\\caption[{{{escaped(title)}}}]{{{escaped(title)}. {sentence(legend)}}}{mark}"
