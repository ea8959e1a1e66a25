"""The text of a reply as a reader sees it, and the part of it in which the answer stands.

    1&nbsp;234    1 234        ~~41~~ 42    42        4\\ufe0f\\u20e3    4

Entities of HTML, signs that nobody sees, and what is struck out are dressing. A reply may go on behind its
answer: with an explanation, or, where the model does not stop, with the next question.
"""

import html
import re
from typing import Final

from asyncbench.suites.answer_words import EXPLAINED, NEXT_QUESTION, RECONSIDERED

INVISIBLE: Final = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\u20e3\ufe0e\ufe0f\ufeff"
_INVISIBLE_SIGN: Final = re.compile(f"[{INVISIBLE}]")
_STRUCK_OUT: Final = re.compile(
    r"~~[^~\n]{1,200}~~|<(s|del|strike)>[^<\n]{1,200}</\1>",
    re.IGNORECASE,
)
_EXPLAINED: Final = re.compile(rf"^[\W_]*{EXPLAINED}", re.IGNORECASE | re.MULTILINE)
_NEXT_QUESTION: Final = re.compile(NEXT_QUESTION, re.IGNORECASE | re.MULTILINE)
_RECONSIDERED: Final = re.compile(RECONSIDERED, re.IGNORECASE)


def visible(text: str) -> str:
    """Return a text as a reader sees it."""
    if "&" in text:
        text = html.unescape(text)
    if not text.isascii():
        text = _INVISIBLE_SIGN.sub("", text)
    return _STRUCK_OUT.sub(" ", text)


def text_before_explanation(text: str) -> str | None:
    """Return the only line before an explanation: 42 of 42\\n\\nExplanation: 6 × 7.

    None where there is none, or where it takes back what that line says.
    """
    text = text.strip()
    first, _, rest = text.partition("\n")
    if _EXPLAINED.match(rest.lstrip()) and not _RECONSIDERED.search(rest):
        return first
    return None


def text_before_next_question(text: str) -> str | None:
    """Return the text before a line with another question, or None where there is no such line."""
    question = _NEXT_QUESTION.search(text)
    return text[: question.start()] if question else None
