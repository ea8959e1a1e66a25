"""How long a provider asks to wait."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_WAIT_S: Final = 31 * 86_400.0  # a month's money; a longer wait is no word of anybody's
_HEADERS: Final = (  # name, parts of a second it counts in; the first that says a number wins
    ("retry-after-ms", 1000),
    ("retry-after", 1),
    ("llm_provider-retry-after", 1),  # litellm, for a limit of the provider behind it
)


def retry_after_s(headers: Mapping[str, str], body_delay: str | None = None) -> float | None:
    """Return the seconds to wait; None when nothing readable says so, or it is longer than a month.

    Args:
        headers: a number of seconds, or a date (read against the server's own clock where it sends one).
        body_delay: what the body says where the headers are silent, such as "34.5s".
    """
    for name, parts in _HEADERS:
        if (wait := _number(headers.get(name))) is not None:
            return wait / parts
    if (wait := _until(headers.get("retry-after"), headers.get("date"))) is not None:
        return wait
    return _number((body_delay or "").removesuffix("s"))


def _number(written: str | None) -> float | None:
    try:
        wait = float(written or "")
    except ValueError:
        return None
    return _believed(wait)


def _believed(wait: float) -> float | None:
    return max(0.0, wait) if -math.inf < wait <= LONGEST_WAIT_S else None  # NaN is not


def _until(due: str | None, now: str | None) -> float | None:
    due_at = http_date(due)
    if due_at is None:
        return None
    return _believed((due_at - (http_date(now) or datetime.now(UTC))).total_seconds())


def http_date(written: str | None) -> datetime | None:
    """Return the moment that a header such as `date` tells; None when it is none."""
    try:
        date = parsedate_to_datetime(written or "")
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
