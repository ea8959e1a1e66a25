"""Figures as text: shares, differences, dollars, seconds, and the colours of shares.

A share's colour is the published scale: red and dark where it is bad, green and light where it is good.
"""

from collections.abc import Callable, Iterable, Sequence
from colorsys import hls_to_rgb
from decimal import ROUND_HALF_UP, Context, Decimal
from math import floor, isfinite, log10
from typing import Final, TypeVar

from rich.color import Color
from rich.style import Style
from rich.text import Text

NumberT = TypeVar("NumberT", int, float)
_AS_LONG_AS_NEEDED: Final = Context(prec=400)  # digits: the greatest float has 309


def rounded(value: float, decimals: int, *, sign: str = "-") -> str:
    """Return a number with so many decimals, a half rounded up: 95.25 as `95.3`.

    Charts (d3-format) and scripts (`toFixed`) round so. Python's own formats round a half to the even digit.
    `tests/tables/rounding.json` holds the cases in which all of them must agree.

    Args:
        value: what is rounded, as the float has it: 6.35 is a little less than that, so `6.3`.
        decimals: how many.
        sign: `+` to write the sign of positive numbers, too.
    """
    if not isfinite(value):
        return f"{value:{sign},.{decimals}f}"
    exact = Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _AS_LONG_AS_NEEDED)
    return f"{exact:{sign},f}"


def percent(share: float | None, interval: tuple[float, float] | None = None, *, decimals: int = 1) -> str:
    """Return a share, with its interval where one is given: 97.5 % as `97.5% (95.0-98.8)`."""
    if share is None:
        return "-"
    ends = "" if interval is None else "-".join(rounded(100 * end, decimals) for end in interval)
    return f"{rounded(100 * share, decimals)}%" + (f" ({ends})" if ends else "")


def count(value: int | None) -> str:
    """Return a number of things; what is not known is said to be unknown."""
    return "unknown" if value is None else f"{value:,}"


def number_of(value: int, noun: str) -> str:
    """Return a number with what it counts: `1 problem`, `2,000 problems`."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def first_of(names: Sequence[str], limit: int) -> str:
    """Return so many names at most, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def dollars(cost: float | None) -> str:
    """Return USD with four decimals, or three digits where that is less; what is not known is `unknown`."""
    if cost is None:
        return "unknown"
    decimals = 2 - floor(log10(cost)) if 0 < cost < 0.001 else 4
    return f"${rounded(cost, decimals)}"


def at_least(text: str, *, partial: object) -> str:
    """Return a sum of dollars with `≥` where a part of it is unknown; `unknown` and `-` stay as they are."""
    return f"≥ {text}" if partial and text.startswith("$") else text


def known_cost(usd: float | None, *, unknown: int) -> float | None:
    """Return USD of the calls with a known cost. None: no cost is known, but for refusals, which are free.

    Args:
        usd: the sum over those calls.
        unknown: how many others there are.
    """
    return None if unknown and not usd else usd


def complete_sum(values: Iterable[NumberT | None]) -> NumberT | None:
    """Return the sum of values, or None if one of them is unknown."""
    numbers = list(values)
    known_numbers = [number for number in numbers if number is not None]
    return sum(known_numbers) if len(known_numbers) == len(numbers) else None


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum of all known USD, or None if none is known."""
    costs = [*costs]
    known_costs = [usd for usd in costs if usd is not None]
    return sum(known_costs) if known_costs or not costs else None


def per_correct(cost: float | None, correct: int | None) -> float | None:
    """Return USD for each right answer, or None if no answer is right or no cost is known.

    Args:
        cost: of the trials whose cost is known, right and wrong; None: no cost is known.
        correct: how many of these are right.
    """
    return cost / correct if cost is not None and correct else None


def per_correct_text(cost: float | None, each: float | None) -> str:
    """Return the text of a cost of `per_correct`; `unknown`: no cost is known, `-`: nothing is right."""
    return dollars(each) if cost is None or each is not None else "-"


def seconds(value: float | None) -> str:
    """Return seconds with three decimals."""
    return "-" if value is None else f"{value:.3f} s"


def duration(seconds: float) -> str:
    """Return hours, minutes and seconds, rounded up to a second: 90.2 s as `0:01:31`."""
    minutes, rest = divmod(-int(-seconds // 1), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def days(seconds: float) -> str:
    """Return a long time as people say it: `2.5 days`, `7 h`, `12 min`, `40 s`."""
    for unit, size in (("days", 86_400), ("h", 3600)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(0.0, seconds):.0f} s"


def points(difference: float | None, interval: tuple[float, float] | None = None) -> str:
    """Return a difference of shares in points, with its interval: `+1.2 (-0.3 to +2.7)`."""
    if difference is None:
        return "-"
    text, *ends = (rounded(100 * value, 1, sign="+") for value in (difference, *(interval or ())))
    return f"{text} ({' to '.join(ends)})" if ends else text


def p_text(p: float | None) -> str:
    """Return a p value: three decimals, four where it is small."""
    if p is None:
        return "-"
    if p < 0.0001:
        return "<0.0001"
    return f"{p:.3f}" if p >= 0.001 else f"{p:.4f}"


def p_sentence(p: float | None) -> str:
    """Return a p value within a sentence: `p = 0.031`, `p < 0.0001`."""
    text = p_text(p)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def whole_percent(share: float) -> str:
    """Return a share in whole percent; 0 and 100 are exact.

    >>> whole_percent(0.999), whole_percent(1.0)
    ('99', '100')
    """
    whole = int(rounded(100 * share, 0))
    return str(whole if share in (0, 1) else min(99, max(1, whole)))


# ── Colours

MISSING = "-"
SATURATION = 0.5  # the published scale names hue and lightness only
BLACK, WHITE = Color.from_rgb(0, 0, 0), Color.from_rgb(255, 255, 255)
LIGHT = 0.3  # from this goodness on black is the easier to read

Goodness = Callable[[float], float]  # a share in [0, 1] → 0 (bad) to 1 (as good as can be)


def accuracy_goodness(share: float) -> float:
    """Return how good an accuracy is."""
    return share


def deviate_rate_goodness(share: float) -> float:
    """Return how good a rate of wrong numbers is."""
    return 1 - share


def nan_rate_goodness(share: float) -> float:
    """Return how good a rate of unread replies is; steep near 0, where the published rates lie."""
    return 1.0 - float(share**0.3)


def shaded(text: str, goodness: float) -> Text:
    """Return a cell on the colour of its goodness; what is perfect is bold instead."""
    if goodness >= 1:
        return Text(text, style=Style(bold=True))
    ink = WHITE if goodness < LIGHT else BLACK
    return Text(text, style=Style(color=ink, bgcolor=colour(goodness)))


def colour(goodness: float) -> Color:
    """Return the published scale: hue 0° to 120°, lightness 0.3 to 0.7."""
    hue, lightness = goodness / 3, 0.3 + 0.4 * goodness  # hue: a share of the full circle
    return Color.from_rgb(*(round(255 * level) for level in hls_to_rgb(hue, lightness, SATURATION)))


def counted_note(number: int, words: str) -> list[str]:
    """Return a note that begins with a number of things; none where there are none."""
    return [f"{number:,} {words}"] if number else []
