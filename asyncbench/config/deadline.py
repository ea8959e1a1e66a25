"""When a sweep has to stop: after a duration, at a time of day, or at a date and time."""

import re
from datetime import date, datetime, timedelta
from typing import Final

from asyncbench.config.entry import seconds_in
from asyncbench.config.place import quoted, shortened
from asyncbench.errors import ConfigError

_FORMS: Final = (
    'Write a duration ("8h", "90m", "1h30m"), a time of day ("07:30") or a date and time ("2026-11-22 07:30")'
)


def deadline_from(given: object, *, place: object) -> str:
    """Return a deadline as it is kept: text of one of the three forms.

    Raises:
        ConfigError: it is of none of them.
    """
    written = str(given) if isinstance(given, date) else given  # YAML reads moments and days by itself
    if not isinstance(written, str):
        raise ConfigError(
            f"{place}: 'deadline' must be text, not {shortened(repr(given))}. "
            f"YAML reads a bare time of day as a number: put it in quotes. {_FORMS}"
        )
    if not (seconds_in(written) or _time_of_day(written) or _moment(written)):
        raise ConfigError(f"{place}: 'deadline' {quoted(written)} is not a time. {_FORMS}")
    return written


def seconds_left(deadline: str, now: datetime) -> float:
    """Return the seconds from `now`, the start of a run with its time zone, to its deadline.

    Raises:
        ConfigError: that moment has passed.
    """
    if seconds := seconds_in(deadline):
        return seconds
    if due := _time_of_day(deadline):
        then = now.replace(hour=due[0], minute=due[1], second=0, microsecond=0)
        return (then - now + timedelta(days=then <= now)).total_seconds()
    moment = _moment(deadline) or now
    left_s = (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)).timestamp() - now.timestamp()
    if left_s <= 0:
        raise ConfigError(f"deadline {deadline!r} has passed. Set a later one, or remove it")
    return left_s


def _time_of_day(written: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", written)
    return (int(found[1]), int(found[2])) if found else None


def _moment(written: str) -> datetime | None:
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        return None
