"""The cells of a usage export: days, counts and dollars; what could mean two things is refused."""

import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Final

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SECONDS: Final = re.compile(r"[0-9]{9,10}(?:\.[0-9]+)?")  # since 1970, of the years 1973 to 2286
_PLAIN: Final = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?|[+-]?\.\d+", re.ASCII)
_GROUPED: Final = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
MOST: Final = 10**15  # tokens, or dollars; more is a fault of who wrote it
_MOST_CHARACTERS: Final = 64  # of a number; a longer one is none

DAY_RULE: Final = "write YYYY-MM-DD, a time in ISO 8601, or seconds since 1970"
COUNT_RULE: Final = "write a whole number of tokens, such as 12345 or 12,345"
USD_RULE: Final = (
    "write US dollars with a point, such as 1234.56, $1,234.56 or 1234.56 USD; a lone comma may be a decimal"
)


def day_of(value: object, shift_h: float = 0.0) -> date:
    """Return the day that a cell names, `shift_h` hours east of UTC; raises ValueError with the rule.

    A day, and a time without a zone, are of those days already; a moment belongs to the one that it falls on.
    """
    text, zone = str(value).strip(), timezone(timedelta(hours=shift_h))
    if _SECONDS.fullmatch(text):
        return datetime.fromtimestamp(float(text), zone).date()
    if not _DAY.match(text):
        raise ValueError(DAY_RULE)
    try:
        at = datetime.fromisoformat(text)
        return (at.astimezone(zone) if at.tzinfo else at).date()
    except (ValueError, OverflowError):  # the first and the last days there are
        raise ValueError(DAY_RULE) from None


def count_of(value: object) -> int:
    """Return a number of tokens or calls; commas part thousands. Raises ValueError with the rule."""
    text = _text(value)
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    number = _number(text, COUNT_RULE)
    if number < 0 or number != number.to_integral_value():
        raise ValueError(COUNT_RULE)
    return int(number)


def usd_of(value: object) -> Decimal:
    """Return US dollars; commas part thousands where a point follows. Raises ValueError with the rule."""
    text = _text(value)
    sign = "-" if text.startswith("-") else ""
    bare = text.removeprefix("-").removeprefix("$")
    bare = re.sub(r"\s*USD$", "", bare, flags=re.IGNORECASE)
    if _GROUPED.fullmatch(bare):
        if "." not in bare and bare.count(",") == 1:
            raise ValueError(USD_RULE)
        bare = bare.replace(",", "")
    return _number(sign + bare, USD_RULE)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return ""
    return repr(value) if isinstance(value, float) else str(value).strip()


def _number(text: str, rule: str) -> Decimal:
    if len(text) > _MOST_CHARACTERS or not _PLAIN.fullmatch(text):
        raise ValueError(rule)
    number = Decimal(text)
    if abs(number) > MOST:
        raise ValueError(rule)
    return number


def decimals_of(usd: Decimal) -> int:
    """Return how many decimals an amount was written with."""
    exponent = usd.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
