r"""Numbers as people and models write them, read exactly: 1,234.5, −5, 3/4, 1½, 3.5×10^3, 12,34,567, ٣٫٥.

    last_number("It is 1{,}234 km.")   Decimal("1234")   in a reply: boxed, called its answer, or last
    only_number(r"\frac{3}{4}")        Fraction(3, 4)    of an expected value, which must be one number

A decimal is a `Decimal` and anything with a slash a `Fraction`. Neither is ever rounded, and they compare
exactly. A comma may stand before decimals or between groups of three digits. Where a number can be read both
ways, `decimal` is the mark before its decimals.

A text is first rewritten in one spelling (−, – and － are -, 1\,234 and 1’234 are grouped by U+202F, 1½ is
1 1/2, 10⁶ is 10^6). One pattern then finds the numbers. Time is linear in the length of the text: what a
pattern repeats is possessive or bounded, and only the number that counts is converted.
"""

import re
import unicodedata
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from asyncbench.suites.answer_words import (
    ANSWER_LEADS,
    ANSWER_NOUN,
    ANSWER_NOUN_ALONE,
    CORRECTED,
    QUESTION,
    REJECTED,
    THEREFORE,
)
from asyncbench.suites.boxes import last_box
from asyncbench.suites.numbers import EXACT, MAX_DIGITS, exact
from asyncbench.suites.reply_text import text_before_explanation, text_before_next_question, visible

Number: TypeAlias = Decimal | Fraction
Mark: TypeAlias = Literal[".", ","]  # what stands before decimals

# ── one spelling

GROUP: Final = "\u202f"  # between groups of digits, whatever stood there
_CURRENCY: Final = "$€£¥₹₽₩₺₫₴₱₦₪฿"
_SIGNS: Final = dict.fromkeys(map(ord, "−–‐‑‒﹣－˗➖"), "-") | dict.fromkeys(map(ord, "＋﹢"), "+")
_MARKS: Final = dict.fromkeys(map(ord, "⁄∕／"), "/") | {ord("٬"): GROUP, ord("＄"): "$", ord("￥"): "¥"}
_RAISED: Final = dict(zip(map(ord, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻₀₁₂₃₄₅₆₇₈₉"), "0123456789+-0123456789", strict=True))

_OTHER_DIGIT: Final = re.compile(r"(?![0-9])\d")
_WIDE_MARK: Final = re.compile(r"(?<=[０-９])[，．](?=[０-９])|(?<=\d)[，،](?=\d{3}(?!\d))")
_WIDE_MARKS: Final = str.maketrans("，．،", ",.,")
_CIRCLED: Final = re.compile("[①-⒇❶-➓]")
_NUMERAL: Final = rf"[0-9](?:[0-9.,{GROUP}]*[0-9])?"
_ARGUMENT: Final = rf"(?:\{{\s*([+-]?{_NUMERAL})\s*\}}|([0-9]))"
_POWER: Final = r"([+-]?[0-9]++)"


def _slashed(fraction: re.Match[str]) -> str:
    r"""Return 1 1/2 for 1\frac{1}{2} and for 1½: apart from a whole number before it and a digit behind."""
    vulgar = fraction.re is _VULGAR_FRACTION
    parts = unicodedata.normalize("NFKC", fraction[0]).replace("⁄", "/") if vulgar else ""
    over, digit_over, under, digit_under = (None, None, None, None) if vulgar else fraction.groups()
    text, start, end = fraction.string, fraction.start(), fraction.end()
    before = " " if start and text[start - 1].isdecimal() else ""
    after = " " if end < len(text) and text[end].isdecimal() else ""
    return f"{before}{parts or f'{over or digit_over}/{under or digit_under}'}{after}"


_VULGAR_FRACTION: Final = re.compile("[¼-¾⅐-⅞↉]")
# Behind a number or a letter, such as in x minus 3, it is an operator; of "au moins 3" it is at least.
_SIGN_AS_WORD: Final = re.compile(
    r"(?P<other>(?:[0-9)\]}%]|\b(?:[b-z]|au|al|lo|pelo|ao|ou?|or|oder))[ ])?"
    rf"\b(?:minus|negative|moins|menos|meno|минус|eksi|âm)[ ](?=[\\{_CURRENCY} ]{{0,3}}[0-9])",
    re.IGNORECASE,
)


# In this order. What a text must hold for a step to change it stands first: most texts need none.
_SPELLINGS: Final[tuple[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    ("", re.compile(r"⁻(?=[0-9])"), "-"),
    ("", _SIGN_AS_WORD, lambda word: word[0] if word["other"] else "-"),
    ("", re.compile(r"[负負][ ]?(?=[0-9])|(?:マイナス|마이너스)[ ]?(?=[0-9])"), "-"),
    ("\\", re.compile(r"\\([A-Za-z]++)(?=[0-9])"), r"\\\1 "),  # \frac12, \approx5
    ("\\", re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "×"),
    ("{,}", re.compile(r"(?:\\(?:text|mathord|mathpunct))?\{,\}"), ","),
    ("{", re.compile(r"\{([0-9]++)\}(?=[ ]?\^)"), r"\1"),  # of \times{10}^3
    (" times ", re.compile(r"(?<=[0-9])[ ]times[ ](?=10[ ]?[\^*⁰-⁹])"), "×"),
    ("\\!", re.compile(r"(?<=,)\\!(?=[0-9])"), ""),
    ("\\", re.compile(r"(?<=[0-9])(?:\\[,;:! ]|\{\\,\}|\\thinspace ?)(?=[0-9]{1,3}(?![0-9]))"), GROUP),
    ("", re.compile(r"(?<=[0-9])[\u00a0\u2006-\u200a\u202f](?=[0-9]{1,3}(?![0-9]))"), GROUP),
    ("", re.compile(r"(?<=[0-9])(?:['’＇ʼ]|\\?_|~)(?=[0-9]{3}(?![0-9]))"), GROUP),
    ("\\", re.compile(r"\\[,;:! ]|~"), " "),
    ("", re.compile(r"[\u00a0\u2006-\u200a]"), " "),
    ("frac", re.compile(rf"\\(?:[dtcs]?frac|nicefrac)\s*{_ARGUMENT}\s*{_ARGUMENT}"), _slashed),
    ("", _VULGAR_FRACTION, _slashed),
    ("^", re.compile(rf"(?<=[0-9])[ ]?\^[ ]?(?:\{{\s*{_POWER}\s*\}}|\({_POWER}\)|{_POWER})"), r"^\1\2\3"),
    ("**", re.compile(rf"(?<=[0-9])\*\*{_POWER}"), r"^\1"),
    ("<sup>", re.compile(rf"(?<=[0-9])<sup>{_POWER}</sup>"), r"^\1"),
)
_RAISED_FRACTION: Final = re.compile("(?<![⁰¹²³⁴-⁹])([⁰¹²³⁴-⁹]++)/([₀-₉]++)")
_RAISED_POWER: Final = re.compile("(?<=[0-9])[⁺⁻]?[⁰¹²³⁴-⁹]++")


def _one_spelling(text: str, decimal: Mark) -> str:
    if not text.isascii():
        text = _WIDE_MARK.sub(lambda mark: mark[0].translate(_WIDE_MARKS), text)
        text = _CIRCLED.sub(lambda digit: f"({unicodedata.numeric(digit[0]):.0f})", text)
        text = text.translate(_SIGNS | _MARKS | {ord("٫"): decimal})
        text = _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)
        text = _RAISED_FRACTION.sub(lambda raised: f" {raised[0].translate(_RAISED)}", text)
        text = _RAISED_POWER.sub(lambda raised: f"^{raised[0].translate(_RAISED)}", text)
    for needed, pattern, spelling in _SPELLINGS:
        if needed in text:
            text = pattern.sub(spelling, text)
    return text


# ── finding numbers

# Before a digit: there is no number in H2O, x2 and B12, and one in USD5 and 答案是42.
_LETTER: Final = "A-Za-zÀ-ÖØ-öø-ɏͰ-ϿЀ-ԯḀ-ỿ"
_CODES: Final = (
    *("USD", "EUR", "GBP", "CHF", "JPY", "CNY", "RMB", "INR", "AUD", "CAD", "BRL", "SEK", "NOK", "DKK"),
    *("Rs", "RM", "kr", "Fr"),
)
_NO_CODE: Final = "".join(rf"(?<!\b{code})" for code in _CODES)


def _digits(decimal: Mark) -> str:
    """Return the pattern of digits in groups or not, with decimals or without."""
    point, comma = re.escape(decimal), "," if decimal == "." else r"\."
    first = rf"(?!0[.,{GROUP} ])[0-9]{{1,3}}"
    decimals = rf"(?:[0-9]{{3}}{GROUP}(?=[0-9]))*+[0-9]++"
    either = r"(?:[.,][0-9]++(?![.,]?[0-9]))?"  # of 1 234,5: the comma groups nothing there
    ungrouped = rf"{point}{decimals}" if decimal == "." else rf"(?:{point}{decimals}|\.[0-9]++(?![.,][0-9]))"
    lone_comma = (
        r"(?<![0-9][.,])[0-9]++,[0-9]++(?![.,]?[0-9]|[)\]]|\\\})"  # 1,5; of (1,5) it parts two numbers
    )
    return rf"""(?:
        {first}(?:{comma}[0-9]{{3}})+(?![0-9])(?:{point}{decimals})?          # 1,234.5
      | {first}(?:{point}[0-9]{{3}}){{2,}}(?![0-9])(?:{comma}[0-9]++)?        # 1.234.567,8
      | {first}{point}[0-9]{{3}}{comma}[0-9]++(?![.,]?[0-9])                  # 1.234,56
      | [0-9]{{1,2}}(?:,[0-9]{{2}}){{1,9}},[0-9]{{3}}(?![0-9])(?:\.[0-9]++)?  # 12,34,567.5
      | {first}(?:{GROUP}[0-9]{{3}})+(?![0-9]){either}
      | {first}(?:[ ][0-9]{{3}}){{1,40}}(?![0-9]|[ ][0-9]|[ ]?/){either}      # 1 234 567
      | {lone_comma if decimal == "." else "(?!)"}
      | [0-9]++(?:{ungrouped})?
      | (?<![0-9.,]){point}[0-9]++
    )"""


@lru_cache
def _pattern(decimal: Mark) -> re.Pattern[str]:
    """Return the pattern that finds numbers, and what only looks like one."""
    digits = _digits(decimal)
    return re.compile(
        rf"""
        (?=[0-9.,^_\\])(?:
        (?P<skipped>
            (?<=[{_LETTER})}}\]|])\^\s*+\{{?\s*+[+-]?[0-9]++\}}?     # the 2 of cm^2
          | (?<=[^\W_]|[)}}\]])_\{{?[0-9]++\}}?                      # the 1 of x_1
          | (?<=[{_LETTER}]){_NO_CODE}[0-9]++(?:[.,][0-9]++)*+       # the 2 of H2O
        )
      | (?P<odd>
            0[xX][0-9A-Fa-f]++ | 0[bo][0-7]++
          | [0-9]++\.[0-9]*+\\overline\{{[0-9]++\}} | [0-9]++\.\([0-9]++\)  # digits that repeat
          | \\[dtcs]?frac\s*+(?:\{{(?:[^{{}}]|\{{[^{{}}]*+\}}){{1,99}}+\}}\s*+){{2}}
        )
      | (?P<whole>[0-9]{{1,3}}(?:[,{GROUP}][0-9]{{3}})++|[0-9]++)[ ]{{1,2}}
        (?P<over>[0-9]++)[ ]?/[ ]?(?P<under>[0-9]++)(?![.,]?[0-9]|[ ]?/[ ]?[0-9])
      | (?<!/)(?<!/[ ])(?P<dividend>{digits})[ ]?/[ ]?(?P<divisor>-?{digits})(?![0-9]|[ ]?/[ ]?[0-9])
      | (?P<base>{digits})\^(?P<power>[+-]?[0-9]++)(?![.,]?[0-9])
      | (?P<digits>{digits})
          (?:[eE](?P<exponent>[+-]?[0-9]++)|[ ]{{0,4}}[×xX·⋅∙*][ ]{{0,4}}10\^(?P<scale>[+-]?[0-9]++))?
        )
        """,
        re.VERBOSE,
    )


# ── what a number is worth

_NEAR: Final = 24  # characters beside a number that may change what it is worth
_NO_VALUE_BEHIND: Final = re.compile(r"(?:[±∓√]|\+/-|\\pm|\\mp|\\sqrt(?:\[[0-9]+\])?)[ ]?[{(]?[ ]?$")
_CASE_MATTERS: Final = 3  # letters at most, as in M and Mio
_SCALES: Final = {  # words behind a number, long ones in small letters → the power of ten that they are
    name if len(name) <= _CASE_MATTERS else name.casefold(): power
    for names, power in (
        ("hundred", 2),
        ("k thousand thousands Tausend mille mil mila tys тысяч тысячи тыс 千 천", 3),
        ("百", 2),
        ("万 萬 만", 4),
        ("lakh lakhs", 5),
        ("M mn million millions Mio Millionen millón millones milhão milhões milione milioni miljoen", 6),
        ("mln миллион миллиона миллионов млн 百万 百萬 백만", 6),
        ("crore crores 千万 千萬 천만", 7),
        ("億 亿 억", 8),
        ("B bn billion billions Milliarde Milliarden Mrd milliard milliards bilhão bilhões miliardo", 9),
        ("miliardi miljard mld миллиард миллиарда миллиардов млрд", 9),
        ("T tn trillion trillions Billionen billones", 12),
    )
    for name in names.split()
}
_BESIDE_CURRENCY: Final = re.compile(rf"[{_CURRENCY}][ ]?$")
_LETTERS: Final = "MBT"  # counted beside a currency alone: 5 M may be a mol per litre
_SCALE: Final = re.compile(
    r"(?:[ *_$~]|\\text\{){0,4}(?P<scale>"
    + "|".join(
        f"(?i:{name})" if len(name) > _CASE_MATTERS else name
        for name in sorted(_SCALES, key=len, reverse=True)
        if name not in _LETTERS
    )
    + rf")(?![a-zA-ZÀ-ÿЀ-ӿ克米瓦卡焦帕赫分])|(?<=[0-9])(?P<letter>[{_LETTERS}])(?![\w$])"
)
_NO_VALUE_BEFORE: Final = re.compile(r"[ ]?(?:\\pi(?![A-Za-z])|π|√|\\sqrt)")
_SIGN: Final = re.compile(rf"([+-])(?:\\?[{_CURRENCY}][ ]?|\\left[(])?$|(?<=[=(\[{{$:≈])[ ]?([+-])[ ]$")
# Behind it a sign is an operator or a range: 7-3, x-3, (7)-3, 3个-5个.
_OPERAND: Final = re.compile(rf"(?:[0-9{_LETTER}\u0590-\u07ff)\]}}%°]|[0-9][\u3040-\ud7af]{{1,2}})$")


def _sign(before: str) -> str:
    """Return the sign at the end of what stands before a number."""
    sign = _SIGN.search(before)
    if sign is None or (sign[1] and _OPERAND.search(before, 0, sign.start())):
        return ""
    return sign[1] or sign[2]


def _value(number: re.Match[str], decimal: Mark) -> Number | None:
    """Return the value of a number, or None where digits do not say it, as in √2, 2π, ±5, 3/0 and 0x1F."""
    start, end, text = number.start(), number.end(), number.string
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    if number["odd"] or _NO_VALUE_BEHIND.search(before) or _NO_VALUE_BEFORE.match(after):
        return None
    value = _amount(number, decimal)
    if value is None:
        return None
    if (scale := _SCALE.match(text, end)) and (scale["scale"] or _BESIDE_CURRENCY.search(before)):
        word = scale["scale"] or scale["letter"]
        power = _SCALES.get(word if len(word) <= _CASE_MATTERS else word.casefold(), 0)
        value = value.scaleb(power, EXACT) if isinstance(value, Decimal) else value * 10**power
    if _sign(before) != "-":
        return value
    return value.copy_negate() if isinstance(value, Decimal) else -value  # unary minus rounds a decimal


def _amount(number: re.Match[str], decimal: Mark) -> Number | None:
    """Return the value of a number without its sign."""
    if number["under"] is not None:
        fraction = _quotient(number["over"], number["under"])
        if fraction is None or fraction >= 1:  # in 4 10/3 the 4 is another number
            return fraction
        return _quotient(re.sub(rf"[,{GROUP}]", "", number["whole"]), "1", plus=fraction)
    if number["divisor"] is not None:
        return _quotient(_plain(number["dividend"], decimal), _plain(number["divisor"], decimal))
    if number["power"] is not None:
        base, power = _plain(number["base"], decimal), int(number["power"][:_NEAR])
        if re.fullmatch("10*", base):  # of any size
            return exact(f"1e{(len(base) - 1) * power}")
        if len(base) * abs(power) > MAX_DIGITS or not (value := Fraction(base)):
            return None
        return value ** int(number["power"])
    digits, exponent = _plain(number["digits"], decimal), number["exponent"] or number["scale"]
    return exact(digits if exponent is None else f"{digits}e{exponent}")


def _plain(digits: str, decimal: Mark) -> str:
    """Return digits as Python writes them: 1234.5 for 1,234.5."""
    digits, spaced = re.sub(rf"[ {GROUP}]", "", digits), bool(re.search(rf"[ {GROUP}]", digits))
    marks = [mark for mark in digits if mark in ".,"]
    if not marks:
        return digits
    last = marks[-1]
    groups = marks.count(last) > 1  # no number has two points
    if len(marks) == 1 and last != decimal and not spaced:
        whole, _, rest = digits.rpartition(last)
        groups = len(rest) == 3 and len(whole) <= 3 and whole != "0"
    point = "" if groups else last
    whole, _, rest = digits.rpartition(point) if point else (digits, "", "")
    return f"{whole.replace(',', '').replace('.', '')}{'.' if rest else ''}{rest}"


def _quotient(over: str, under: str, *, plus: Fraction = Fraction(0)) -> Fraction | None:
    """Return over / under + plus, exactly; None where that is no number, or too long a one to divide."""
    if len(over) + len(under) > MAX_DIGITS or not (divisor := Fraction(under)):
        return None
    return Fraction(over) / divisor + plus


# ── the number that counts

_MARKUP_BEFORE: Final = rf"[\s*_`\"'({{\\{_CURRENCY}+-]*"
_REJECTED: Final = re.compile(rf"{REJECTED}{_MARKUP_BEFORE}\Z", re.IGNORECASE)
_OR: Final = re.compile(
    rf"[\s*_`$\\)}}]*(?:text\{{)?\s*(?:or|oder|ou|или|或者?|または|또는)(?!\w)\s*\}}?{_MARKUP_BEFORE}"
    "(?:[a-z] ?= ?)?",
    re.IGNORECASE,
)
_OR_IN_BOX: Final = re.compile(rf"{_OR.pattern}|[\s$]*[,;]\s+{_MARKUP_BEFORE}", re.IGNORECASE)
# What says something of a number, and holds another: "12.5 (rounded to 2 decimals)", "in all.[1]", "7 mod 5".
_REMARK: Final = re.compile(
    r"""
    (?:(?<=[\s0-9%°*_$])(?<![=+\-×*/<>:^~≈,][ ])\(|（)
        (?P<within>(?:[^()（）\n]|\([^()\n]{0,40}\)){1,200}+)[)）]
  | (?<=[\w.!?%)*])\[\^?[0-9]{1,2}\](?!\() | (?<=[0-9.!?%)])[ ]\[\^?[0-9]{1,2}\](?!\()
  | (?:\b(?:to|auf|à|a|até|до)[ ]|保留[^\n0-9]{0,6})[0-9]{1,2}[ ]?
        (?:decimal|d\.?[ ]?p\b|signif|sig\b|s\.?[ ]?f\b|places|digits|Nachkomma|Dezimal|Stellen|décim|chiffres
        |cifras|casas|знак|位)
  | \bto[ ]the[ ]nearest[ ][0-9]++
  | \\?[pb]?mod[ ]?\{?[0-9]++\}?
  | \b(?:because|weil|parce[ ]que|porque|потому)\b(?P<reason>[^.!?\n]{1,300})
  | ^[^\w\n]{0,9}(?:my[ ])?(?:confidence|certainty)\b[^\n]{1,99}
  | \(https?://[^()\s]*\) | \bhttps?://[^\s()<>\]]+
    """
    rf"| {QUESTION}",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_ONE_NUMBER: Final = re.compile(rf"\s*[-+{_CURRENCY}]{{0,2}}[0-9.,]++\s*%?\s*")
_CALLED: Final = re.compile(
    rf"""
    (?P<label>
        \#\#\#\# | \bfinal[ ]answer\b[^\n0-9]{{0,24}}?(?:[:=]|\bis\b)
      | ^[>\#*_ \t]*(?:\w{{1,12}}[ ])?(?:{ANSWER_NOUN}|{ANSWER_NOUN_ALONE})[*_ ]*(?:[:：=]|$)
    )
  | (?:{ANSWER_NOUN}[^.!?\n0-9]{{0,40}}?{ANSWER_LEADS}|{ANSWER_NOUN_ALONE}[^。\n0-9]{{0,12}}?
        (?:[:：=是为為はو]|[은는]\b))
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_LEADS_TO_NUMBER: Final = re.compile(
    rf"(?:[\s*_`\"'“”:：$=≈~(\[{{]|<\w{{1,6}}>|\\(?:text|mathbf|textbf|displaystyle)"
    rf"|\\[(\[]|[-+{_CURRENCY}]|\b[a-zA-Z] ?=|\babout\b|\bapproximately\b)*+"
)
_CORRECTED: Final = re.compile(CORRECTED, re.IGNORECASE)
_CONCLUDED_FROM_REASON: Final = re.compile(rf"[=≈→⇒]|{THEREFORE}|{CORRECTED}", re.IGNORECASE)
_CONCLUDED: Final = re.compile(
    rf"[=≈→⇒]|{THEREFORE}|{CORRECTED}"
    r"|\b(?:i\.e|giving|altogether|total|then|now|is|are|was|has|makes|gives|leaves|gets?|equals)\b",
    re.IGNORECASE,
)


def last_number(text: str, decimal: Mark = ".") -> Number | None:
    """Return the number that a reply gives, exactly: in its last box, called its answer, or its last one.

    None where there is none, where it is rejected ("not 5") or one of two ("4 or 5"), or where what stands
    there is worth no exact number: √2, ±5, 3/0.
    """
    text = _answering_part(visible(text), decimal)
    box = last_box(text)
    spelled = _one_spelling(text if box is None else f"{{{box}}}", decimal)
    for candidate in (_REMARK.sub(_drop_remark, spelled), spelled):
        numbers = [number for number in _pattern(decimal).finditer(candidate) if not number["skipped"]]
        if numbers:
            called = _called_answer(candidate, decimal) if box is None else None
            return _chosen(numbers, called, decimal, boxed=box is not None)
    return None


def _answering_part(text: str, decimal: Mark) -> str:
    """Return a reply without the explanation of its first line, or without the question behind its answer."""
    first = text_before_explanation(text)
    if first is not None:
        spelled = _REMARK.sub(_drop_remark, _one_spelling(first, decimal))
        if sum(not number["skipped"] for number in _pattern(decimal).finditer(spelled)) == 1:
            return first
    first = text_before_next_question(text)
    if first is not None and (last_box(first) or _called_answer(_one_spelling(first, decimal), decimal)):
        return first
    return text


def _chosen(
    numbers: list[re.Match[str]], called: re.Match[str] | None, decimal: Mark, *, boxed: bool
) -> Number | None:
    """Return the value of the number called the answer, or else of the last one that is not rejected."""
    text, last = numbers[0].string, called
    if last is None:
        for number in reversed(numbers):
            if not _REJECTED.search(text, max(0, number.start() - _NEAR), number.start()):
                last = number
                break
        else:
            return None
    value = _value(last, decimal)
    before = [number for number in numbers if number.end() < last.start()]
    between = _OR_IN_BOX if boxed else _OR
    if before and between.fullmatch(text, before[-1].end(), last.start()):
        return value if value == _value(before[-1], decimal) else None
    return value


def _drop_remark(remark: re.Match[str]) -> str:
    """Return the text for a remark: a break, or all of it where it says what the numbers before it make."""
    within = remark["within"] or remark["reason"]
    if within is None:
        return ";"
    line = remark.string[max(0, remark.start() - 2 * _NEAR) : remark.start()].rpartition("\n")[2]
    if _ONE_NUMBER.fullmatch(within):  # 12.5(4) is uncertain in its last digit
        return "" if re.search(r"[0-9][.,][0-9]++$", line) else remark[0]
    concluded = _CONCLUDED if remark["within"] else _CONCLUDED_FROM_REASON
    return remark[0] if concluded.search(within) or not re.search("[0-9]", line) else ";"


def _called_answer(text: str, decimal: Mark) -> re.Match[str] | None:
    """Return the number that a reply calls its answer, where it concludes nothing else behind it."""
    marks = deque(_CALLED.finditer(text), maxlen=1)
    if not marks:
        return None
    last = marks[0]
    leads = _LEADS_TO_NUMBER.match(text, last.end())
    number = _pattern(decimal).match(text, leads.end() if leads else last.end())
    if number is None or number["skipped"]:
        return None
    line, _, below = text[number.end() :].partition("\n")
    concluded = _CONCLUDED.search(line) or (_CORRECTED if last["label"] else _CONCLUDED).search(below)
    return None if concluded else number


# ── an expected value


class NotOneNumberError(ValueError):
    """A text is not one number; its message says why."""


_POINT_BEFORE_DECIMALS: Final = re.compile(r"[0-9]\.(?:[0-9]{1,2}|[0-9]{4,})(?![0-9])|,[0-9]{3},[0-9]{3}")


def decimal_mark(text: str) -> Mark | Literal["unknown"] | None:
    """Return the mark before decimals of an expected value: . of 1.5, unknown of 1,234, None of 12."""
    if _POINT_BEFORE_DECIMALS.search(text):
        return "."
    try:
        point, comma = only_number(text, "."), only_number(text, ",")
    except NotOneNumberError:
        return None
    return None if point == comma else "unknown"


_MONTH: Final = (
    r"(?i:(?:jan(?:uary|uar|v(?:ier)?)?|feb(?:ruary|ruar)?|févr(?:ier)?|mar(?:ch|s|zo)?|mär(?:z)?|mrz|apr(?:il)?"
    r"|avr(?:il)?|may|mai|june?|juni|juin|july?|juli|juil(?:let)?|aug(?:ust)?|août|sept?(?:ember|embre)?"
    r"|o[ck]t(?:ober|obre)?|nov(?:ember|embre)?|de[cz](?:ember)?|déc(?:embre)?|enero|febrero|abril|mayo|junio"
    r"|julio|agosto|septiembre|octubre|noviembre|diciembre|январ[яь]|феврал[яь]|марта?|апрел[яь]|ма[яй]"
    r"|июн[яь]|июл[яь]|августа?|сентябр[яь]|октябр[яь]|ноябр[яь]|декабр[яь])\b)"
)
# What holds one number, or reads like one, and is another thing.
_OTHER_THINGS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    (
        "it is a date",
        re.compile(rf"[0-9](?:st|nd|rd|th)?[-. ]{{1,2}}(?:of |de )?{_MONTH}|\b{_MONTH}[-. ]{{1,2}}[0-9]"),
    ),
    (
        "it is a time",
        re.compile(r"[0-9]\s?(?:[aApP]\.?[mM]\b|o['’]clock|Uhr\b)|[0-9]{1,2}:[0-9]{2}(?![0-9])"),
    ),
    (
        "it is a bound",
        re.compile(
            r"[<>≤≥]|\\[lg]eq?\b|[0-9]\+\s*$|(?i:\b(?:at (?:least|most)|(?:more|less|greater) than|up to)\b)"
        ),
    ),
    ("it holds several values", re.compile(r"[(\[{][^()\[\]{}]*[0-9]\s*[,;][^()\[\]{}]*[)\]}]")),  # (3, 456)
    (
        "its unit makes another number of it",
        re.compile(r"[0-9]\s?dozen|[0-9][MBT]\b"),
    ),
    ("it is a part of an expression", re.compile(r"[0-9](?:[ixyz]|e(?![-+]?[0-9]))\b")),
    ("its digits go on", re.compile(r"[0-9](?:\.{2,}|…|\\[lc]?dots)\s*$")),
)
_LONE_COMMA: Final = re.compile(
    rf"(?<![0-9.,{GROUP} ])(?![1-9][0-9]{{0,2}},[0-9]{{3}}(?![0-9]))[0-9]++,[0-9]++(?![.,]?[0-9])"
)
_MARKUP: Final = re.compile(
    r"\\(?:text|mathrm|textbf|mathbf|textrm|operatorname|displaystyle|left|right|q?quad)(?![A-Za-z])"
    r"|\\degree|\^\{?\\circ\}?|\\[%$()\[\]]|[{}*$\"“”„«»`]"
)
_UNIT: Final = r"(?:[^\W\d_]++(?:-[^\W\d_]++)*+['’.]?(?:\^?-?[1-9]|[²³⁻¹]++)?|[%‰°′″¢$€£¥₹₽₩]++[^\W\d_]*+)"
_BEHIND: Final = re.compile(rf"\s*+(?:[(\[]?\s*+{_UNIT}[)\]]?(?:\s*+[/·⋅∙.,]?\s*+))*+[\s.,。)\]]*+")
_AHEAD: Final = re.compile(r"(?:[^\W\d_]|[\s.,:'’()\[#~≈]|(?<=\w)-(?=\w))*+(?:=\s*+)?")
_FUNCTION: Final = re.compile(r"(?:\b(?:sqrt|log|ln|exp|sin|cos|tan)\b\s*+[({]?|[^\W\d_][(])\s*+$")


def only_number(text: str, decimal: Mark = ".") -> Number | None:
    """Return the number that an expected value is, read as in a reply; None where there is none in it.

    Beside it may stand a unit, a currency, words, or a name with =: 24 cm^2, $5, x = 5, "The answer is 42.".
    Of a text with a box it is what is in the box, and of GSM8K's solutions what is behind ####.

    Raises:
        NotOneNumberError: it is several, a part of an expression, a date, a time, a range or a bound.
    """
    text = visible(text)
    box = last_box(text)
    answer = text.rpartition("####")[2] if "####" in text else text if box is None else f"{{{box}}}"
    spelled = _one_spelling(answer.strip(), decimal)
    numbers = [match for match in _pattern(decimal).finditer(spelled) if not match["skipped"]]
    if not numbers:
        return None
    for reason, pattern in _OTHER_THINGS:
        if pattern.search(spelled):
            raise NotOneNumberError(reason)
    if decimal == "." and any(_LONE_COMMA.search(number[0]) for number in numbers):
        raise NotOneNumberError(
            'its comma groups no three digits. If it stands before decimals, write `decimal: ","` beside the '
            "grader, or --decimal ,"
        )
    if len(numbers) > 1:
        raise NotOneNumberError(f"it holds {len(numbers)} numbers")
    value, digits = _value(numbers[0], decimal), numbers[0][0].strip()
    if value is None or _left_over(numbers[0]):
        raise NotOneNumberError(
            f"{digits!r} is only a part of it" if digits != spelled else "it has no exact value"
        )
    return value


def _left_over(number: re.Match[str]) -> bool:
    """Return whether more stands beside a number than its sign, a unit, words, or a name with =."""
    ahead, behind = number.string[: number.start()], number.string[number.end() :]
    if _sign(ahead[-_NEAR:]) and (signed := _SIGN.search(ahead)):
        ahead = ahead[: signed.start()]
    ahead = _MARKUP.sub("", ahead.rstrip(f"\\{_CURRENCY} "))
    mixed = number["under"] is not None and Decimal(number["over"]) >= Decimal(number["under"])  # 4 10/3
    return mixed or bool(
        _FUNCTION.search(ahead)
        or not _AHEAD.fullmatch(ahead)
        or not _BEHIND.fullmatch(_MARKUP.sub("", behind))
    )
