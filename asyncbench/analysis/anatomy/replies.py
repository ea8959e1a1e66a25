"""Replies in which no answer could be read: what they are instead. Of a long reply its end is looked at."""

import re
from typing import Final

from asyncbench.suites.extraction import layered_number, without_thinking

MOST_READ: Final = (
    20_000  # characters of a reply that are looked at, the thinking before its answer among them
)
MOST: Final = 4000  # characters of its answer

_WORD: Final = (
    r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:thir|four|fif|six|seven|eigh|nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    r"|hundred|thousand|million|billion|trillion)\b"
)
_IN_A_ROW: Final = re.compile(rf"{_WORD}[\s,-]{{1,3}}(?:and\s)?{_WORD}", re.IGNORECASE)
_NOTHING_ELSE: Final = re.compile(
    rf"\W*(?:(?:minus|negative|an?|and|point)\W+)*{_WORD}(?:\W+(?:and|point|{_WORD}))*\W*", re.IGNORECASE
)
_WORK: Final = re.compile(r"\d[\d,._ \t)]{0,80}[-+−–*×·÷/xX⋅][ \t]{0,4}\(?\d[^=\n]{0,200}=")
_POWER: Final = re.compile(r"\d[eE][+-]?\d|\d\s?(?:[×xX·*]|\\times|\\cdot)\s?10\s?(?:\^|[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻])")
_ABOUT: Final = re.compile(
    r"≈|~\s?\d|\b(?i:about|approx\w{0,9}|around|roughly|nearly|million|billion|trillion)\b|\d\s?[kKmM]\b"
)
_SENTENCE: Final = re.compile(r"[^\W\d_]{2,}[^\w\n]{1,3}[^\W\d_]{1,}")  # two words
_GROUPS: Final = re.compile(r"[+-]?\d{1,4}(?:[ ,._'\u00a0\u2009\u202f]\d{1,4})+(?:[.,]\d+)?")
_NUMBER: Final = re.compile(r"[+-]?(?:\d++/\d++|(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?)")
_MOST_DIGITS: Final = re.compile(r"(?<!\d)\d{4000}")  # from where a run begins: a reply may be hostile


def end_of(reply: str) -> str:
    """Return the end of a long reply, of `MOST_READ` characters; one within its thinking begins with that."""
    if len(reply) <= MOST_READ:
        return reply
    before = reply[: len("think>") + 1 - MOST_READ].lower()  # a tag may stand across the cut
    thinks = before.rfind("<think>") > before.rfind("</think>")
    return f"{'<think>' if thinks else ''}{reply[-MOST_READ:]}"


def reply_kind(reply: str) -> str | None:
    """Return what a reply is of which no answer was read; None: it has no name (`kinds.OF_REPLIES`)."""
    if not reply.strip():
        return "empty"
    if _MOST_DIGITS.search(reply):
        return "too_long"
    text = answered(reply)
    if text is None:
        return "thinking_unfinished"
    text = text[-MOST:].strip()
    if not any(map(str.isdigit, text)):
        # "No one can do this" has a number word as well.
        return "number_words" if _IN_A_ROW.search(text) or _NOTHING_ELSE.fullmatch(text) else "no_number"
    return next((kind for kind, found in _LOOKED_FOR if found(text)), None)


def answered(reply: str) -> str | None:
    """Return the reply without what it thought; None: it ends within that."""
    text, unfinished = without_thinking(reply)
    return None if unfinished else text


def number_in(reply: str) -> str | None:
    """Return the number that a lenient reader finds at the end of a reply; None: it finds none."""
    text = answered(reply)
    value = None if text is None else layered_number(text[-MOST:])
    return None if value is None else str(value)


def grouped(reply: str) -> str | None:
    """Return the digits of a reply that is nothing but a number in groups, without what parts them."""
    text = reply.strip()
    if len(text) > MOST or not _GROUPS.fullmatch(text):
        return None
    return re.sub(r"[ ,_'\u00a0\u2009\u202f]", "", text)


def _decorated(text: str) -> bool:
    bare = re.sub(r"\\boxed|\\text|[^\w.+/-]", "", text)
    return bare != text and bool(re.fullmatch(rf"[^\W\d]{{0,8}}(?:{_NUMBER.pattern})[^\W\d]{{0,8}}", bare))


_LOOKED_FOR: Final = (
    ("shown_work", lambda text: _WORK.search(text)),
    ("scientific_notation", lambda text: _POWER.search(text)),
    ("approximate", lambda text: _ABOUT.search(text)),
    ("prose", lambda text: _SENTENCE.search(text)),
    ("grouped_digits", lambda text: _GROUPS.fullmatch(text) and not _NUMBER.fullmatch(text)),
    ("decorated", _decorated),
    ("other_form", lambda text: _NUMBER.fullmatch(text)),
)
