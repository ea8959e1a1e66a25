"""Answers that are words, where case, accents, punctuation and articles do not count.

    Paris, The Café, U.S.A., New-York, ＡＢＣ    →    paris, café = cafe, usa, new york = newyork, abc

The rules are those of SQuAD and TriviaQA, with three changes that keep wrong answers apart: what stands
between two digits counts (1.5 is not 15), as does a sign before a number, and no text becomes empty (`+`,
`The` and the A of `vitamin A` stay).
"""

import re
import unicodedata
from functools import cache
from typing import Any, Final, NamedTuple

from asyncbench.records import Problem
from asyncbench.suites.judgement import Judgement
from asyncbench.suites.reply_text import visible

_LETTERS: Final = str.maketrans(  # which Unicode does not take apart, and signs with several forms
    {"ı": "i", "ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe"}
    | {"⁄": "/", "−": "-", "’": "'", "‘": "'", "ʼ": "'"}
)
# Accents of Latin, Greek and Cyrillic letters, vowel points of Hebrew and Arabic. Marks of other scripts,
# such as those of か and が, tell letters apart.
_UNCOUNTED: Final = re.compile("[\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff]")
_DRESSING: Final = re.compile(  # of HTML and LaTeX, around words
    r"</?(?:b|i|u|em|strong|mark|code|p|br|span|s)\b[^<>]{0,80}>"
    r"|\\(?:boxed|text|textbf|textit|textrm|mathrm|mathbf|emph)(?=\s*\{)",
    re.IGNORECASE,
)
_SUPERSCRIPT: Final = re.compile("[⁰¹²³⁴-⁹]+")
_FRACTION: Final = re.compile("[¼-¾⅐-⅞]")
_GROUP_COMMA: Final = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_DASH: Final = re.compile("[‐-―﹘﹣-]")
_ARTICLES: Final = frozenset({"a", "an", "the"})
_NEGATIONS: Final = frozenset(
    {"not", "never", "isnt", "wasnt", "arent", "werent", "cannot", "nicht", "kein", "keine", "keinen"}
    | {"pas", "jamais", "nunca", "nie", "не", "不", "非", "没", "neither", "nor"}
)
_COPULAS: Final = {"be": {"not", "cannot", "cant"}, "es": {"no"}, "e": {"non", "nao"}}  # no es París
_ENDS: Final = frozenset(".!?;:,。、\n")
_PUNCTUATION: Final = r"\p{P}`´^~|$="  # the signs are those of Markdown and LaTeX
_UNSPACED: Final = (  # scripts that write no spaces between words: each sign is a word
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
_PIECE: Final = rf"""
    [{_UNSPACED}]
  | (?:
        [^\s{_PUNCTUATION}{_UNSPACED}]
      | (?<=[0-9])[{_PUNCTUATION}](?=[0-9])        # 1.5, 10:30, 1/2, 10^2
      | (?<![\p{{L}}\p{{N}}])[-.](?=[0-9])           # -5, .5
      | (?<=[\p{{L}}\p{{N}}+#])\#                    # C#
      | (?<=[\p{{L}}\p{{N}}])[.'](?=[\p{{L}}\p{{N}}])  # U.S.A, don't
    )+
  | [.!?;:,。、\n]
    """
_INSIDE_WORD: Final = re.compile(r"(?<![0-9])[.'](?=\w)|(?<=\w)[.'](?![0-9])")


class Words(NamedTuple):
    """The words of a text, and the indices of those with a comma or the end of a sentence before them."""

    words: list[str]
    first: set[int]


def words_of(text: str) -> Words:
    """Return the words of a text without what does not count."""
    # Small letters without accents, and numbers as they are written in ASCII.
    text = _DRESSING.sub(" ", visible(text))
    text = _SUPERSCRIPT.sub(lambda match: f"^{unicodedata.normalize('NFKC', match[0])}", text)
    text = _FRACTION.sub(lambda match: f" {unicodedata.normalize('NFKC', match[0])}", text)
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    letters = unicodedata.normalize("NFC", _UNCOUNTED.sub("", apart).translate(_LETTERS))
    plain = _GROUP_COMMA.sub("", _DASH.sub("-", letters))

    result = Words([], set())
    for piece in _piece().findall(plain):
        if piece in _ENDS:
            result.first.add(len(result.words))
        else:
            result.words.append(_INSIDE_WORD.sub("", piece) if piece[0].isalpha() else piece)
    return result


@cache
def _piece() -> Any:  # Any: the standard re knows no classes of Unicode
    import regex  # type: ignore[import-untyped]  # it ships no types

    return regex.compile(_PIECE, regex.VERBOSE)


def compared_text(text: str) -> str:
    """Return the form in which texts are compared; empty for a blank text alone.

    Spaces count between digits alone: `new york` and `newyork` are the same, `1 2` and `12` are not.
    """
    joined = " ".join(_drop_articles(words_of(text).words))
    return re.sub("(?<![0-9]) | (?![0-9])", "", joined) or text.strip().casefold()


def _drop_articles(words: list[str]) -> list[str]:
    """Return words without the articles before others: the last word is none."""
    return [word for i, word in enumerate(words) if word not in _ARTICLES or i == len(words) - 1]


def equal_text(reply: str, problem: Problem) -> Judgement:
    """Return whether a whole reply is an accepted answer; the answer is the text that is accepted."""
    compared = compared_text(reply)
    for accepted in problem.accepted:
        if compared_text(accepted) == compared:
            return Judgement(correct=True, answer=accepted)
    return Judgement(correct=False, answer=reply.strip())


def contained_text(reply: str, problem: Problem) -> Judgement:
    """Return whether an accepted answer stands in a reply as whole words, without a `not` right before it."""
    words = words_of(reply)
    for accepted in problem.accepted:
        wanted = _drop_articles(words_of(accepted).words)
        if _stands_in(wanted, words) if wanted else accepted.strip() in reply:
            return Judgement(correct=True, answer=accepted)
    return Judgement(correct=False, answer=reply.strip())


def _stands_in(wanted: list[str], reply_words: Words) -> bool:
    """Return whether words stand in a reply one after the other, without a `not` right before them."""
    places = [i for i, word in enumerate(reply_words.words) if word not in _ARTICLES or word in wanted]
    words = [reply_words.words[i] for i in places]
    for n in range(len(words) - len(wanted) + 1):
        if words[n] != wanted[0] or words[n : n + len(wanted)] != wanted:
            continue
        before = [] if places[n] in reply_words.first else words[:n]
        if not before:
            return True
        negated = before[-1] in _NEGATIONS or before[-2:] in (["不", "是"], ["rather", "than"])
        if not negated and not set(before[-2:-1]) & _COPULAS.get(before[-1], set()):
            return True
    return False
