"""Times as providers write them, and the waits that they name: in headers, in a body's fields, in words.

A wait is a number of seconds, a duration (`6m0s` as Go prints it, `30 seconds` as people write it) or a
moment: an HTTP date, RFC 3339, seconds or milliseconds since 1970. From the vendors' pages, and from refusals
in public issues (OpenAI, Azure, Groq, Google, Moonshot, MiniMax, OpenRouter, litellm; read in November 2026).
"""

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from itertools import chain
from typing import Final

# ── Times


_UNITS_S: Final[Mapping[str, float]] = {
    **dict.fromkeys(("ns",), 1e-9),
    **dict.fromkeys(("us", "µs", "μs"), 1e-6),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
}
_AMOUNT: Final = r"\d+(?:\.\d*)?|\.\d+"
_UNIT: Final = rf"(?:{'|'.join(sorted(_UNITS_S, key=len, reverse=True))})(?![a-zµμ])"
_PIECE: Final = rf"(?:{_AMOUNT})\s?{_UNIT}"
_DURATION: Final = (
    rf"{_PIECE}(?:(?:,? (?:and )?)?{_PIECE})*"  # 1m2.5s; 1 hour, 5 min; 2 minutes and 3 seconds
)
_WHOLE_DURATION: Final = re.compile(_DURATION, re.IGNORECASE)
_PIECES: Final = re.compile(rf"({_AMOUNT})\s?({_UNIT})", re.IGNORECASE)
_ENDS: Final = tuple({unit[-1] for unit in _UNITS_S})
_LONGEST_WRITTEN: Final = 64  # characters of a duration
_EPOCH_FROM: Final = 1e9  # a greater number is a moment, in seconds since 1970
_EPOCH_MS_FROM: Final = 1e11  # or in milliseconds


def seconds_until(written: str, date: str | None = None) -> float:
    """Return the seconds of a number or a duration, or those until a moment; NaN: it is none of them.

    Args:
        written: as the provider wrote it.
        date: when that was sent, by the clock of its server, as a header tells it; None: now, by ours.
    """
    if written.endswith(_ENDS):
        return _duration_s(written)
    try:
        due_s = float(written)
        if not due_s > _EPOCH_FROM:
            return due_s
        due_s = due_s / 1000 if due_s > _EPOCH_MS_FROM else due_s
    except ValueError:
        try:
            due = http_date(written) or datetime.fromisoformat(written)
            due_s = (due if due.tzinfo else due.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return math.nan
    sent_s = _sent_s(date)
    return due_s - (time.time() if sent_s is None else sent_s)


def http_date(written: str | None) -> datetime | None:
    """Return the moment that a header such as `date` tells; None when it is none."""
    try:
        date = parsedate_to_datetime(written or "")
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _duration_s(written: str) -> float:
    try:  # most are seconds
        return float(written[:-2]) / 1000 if written.endswith("ms") else float(written.removesuffix("s"))
    except ValueError:
        if len(written) > _LONGEST_WRITTEN or not _WHOLE_DURATION.fullmatch(written):
            return math.nan
    pieces = _PIECES.findall(written)
    return math.fsum(float(number) * _UNITS_S[unit.lower()] for number, unit in pieces)


@lru_cache(maxsize=64)  # one second of a server's clock is told by many responses
def _sent_s(date: str | None) -> float | None:
    sent_at = http_date(date)
    return None if sent_at is None else sent_at.timestamp()


# ── Waits


LONGEST_WAIT_S: Final = 31 * 86_400.0  # a month's money; a longer wait is no word of anybody's
_HEADERS: Final = (  # name, parts of a second it counts in; the first that says a wait wins
    ("retry-after-ms", 1000),
    ("x-ms-retry-after-ms", 1000),
    ("retry-after", 1),
    ("x-retry-after", 1),
    ("llm_provider-retry-after", 1),  # litellm, for a limit of the provider behind it
)
# Of a limit that no name tells apart (OpenRouter, proxies): believed where nothing of it remains.
_LIMITS: Final = ("x-ratelimit", "ratelimit", "x-rate-limit")
_FIELDS: Final[Mapping[str, int]] = {  # of a body, without case and signs; parts of a second
    "retryaftermilliseconds": 1000,
    "retryafterms": 1000,
    "retryafterseconds": 1,
    "retryafters": 1,
    "retryafter": 1,
    "retrydelay": 1,
    "estimatedtime": 1,  # Hugging Face, of a model that is loading
}
_SIGNS: Final = re.compile(r"[^0-9a-z]")
_NAMED: Final = r"\b(?:again|retry|retrying|wait|resets?|available|back)\b[^.,;:\d-]{0,30}?"
_IN_WORDS: Final = re.compile(rf"{_NAMED}(?<![\w.])({_DURATION})", re.IGNORECASE)
_MOMENT: Final = re.compile(
    rf"{_NAMED}(\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|UTC|GMT|[+-]\d\d:?\d\d)\b",
    re.IGNORECASE,
)
_IN_CHINESE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(毫秒|秒|分|小时|天)[钟鐘]?(?:之|以)?[后後]")
_CHINESE_S: Final = {"毫秒": 1e-3, "秒": 1.0, "分": 60.0, "小时": 3600.0, "天": 86_400.0}


def retry_after_s(headers: Mapping[str, str], in_body: float | str | None = None) -> float | None:
    """Return the seconds to wait, more than 0; None when nothing readable says so, or more than a month.

    Args:
        headers: of a refusal; a moment is read against the server's own clock where it sends one.
        in_body: the wait that the body names, where the headers are silent: seconds, or such as "34.5s".
    """
    date = headers.get("date")
    for name, parts in _HEADERS:
        if (wait := _believed(seconds_until(headers.get(name, ""), date) / parts)) is not None:
            return wait
    resets = (headers.get(f"{limit}-reset") for limit in _LIMITS if headers.get(f"{limit}-remaining") == "0")
    for written in (*filter(None, resets), "" if in_body is None else str(in_body)):
        if (wait := _believed(seconds_until(written, date))) is not None:
            return wait
    return None


def wait_in_fields(*objects: Mapping[str, object]) -> float | None:
    """Return the seconds that the first object with a field for it asks to wait, or None."""
    for name, value in chain.from_iterable(fields.items() for fields in objects):
        parts = _FIELDS.get(_SIGNS.sub("", name.lower()))
        if parts is None or type(value) not in (int, float, str):
            continue
        if (wait := _believed(seconds_until(str(value)) / parts)) is not None:
            return wait
    return None


def wait_in_words(message: str) -> float | None:
    """Return the seconds that words such as `Please try again in 1m2.5s` ask to wait, or None.

    A moment counts where its zone is told.
    """
    if match := _MOMENT.search(message):
        zone = match[2] if match[2][0] in "+-" else "+00:00"
        return _believed(seconds_until(f"{match[1]}{zone}"))
    if match := _IN_WORDS.search(message):
        return _believed(_duration_s(match[1]))
    if match := _IN_CHINESE.search(message):
        return _believed(float(match[1]) * _CHINESE_S[match[2]])
    return None


def _believed(wait: float) -> float | None:
    # Nought, a date gone by and a negative wait say nothing: Azure sends nought while a minute's tokens are
    # used up. NaN compares as false.
    return wait if 0 < wait <= LONGEST_WAIT_S else None
