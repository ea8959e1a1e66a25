"""What files of others say of trials: JSON, read exactly, each field checked.

A ValueError says what was found, and the rule.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as shown
from typing import Any, TypeVar

from asyncbench.config.models import check_alias
from asyncbench.errors import ConfigError, ProviderError
from asyncbench.records import REALTIME, Condition, Draft, Model, Reply
from asyncbench.suites.numbers import MAX_DIGITS

# model → condition → suite → task → trials
Planned = Mapping[str, Mapping[str, Mapping[str, Mapping[str, int]]]]
Fields = Mapping[str, Any]  # Any: JSON, which is checked field by field
MOST = 2**31 - 1  # of a count, of dollars, of seconds: what a column of results holds, and more than enough

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a file says of one trial."""

    draft: Draft
    model: Model
    condition: Condition = field(default_factory=Condition)
    reply: Reply | None  # None: none came
    attempts: int = 1
    latency_s: float | None = None
    cost_usd: float | None = None
    accounting: Mapping[str, object] | None = None  # as it stood: an export writes the same again
    at: float  # when it ended: UTC, seconds since 1970
    timed: bool = True  # it tells that itself; else the time is its file's
    error: ProviderError | None = None  # why no reply came, where that is told
    price_source: str = "recorded"
    mode: str = REALTIME
    batch_id: str | None = None
    trial_id: str | None = None  # of a trial of ours; None: it is made of what the file says
    repeat: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What one file holds: a run."""

    run: str
    path: Path
    trials: tuple[Recorded, ...]  # in file order
    left_out: tuple[str, ...]  # entries that cannot be used: where, what, found, rule
    planned: Planned


def sifted(
    entries: Iterable[tuple[str, T]], read: Callable[[T], Recorded]
) -> tuple[tuple[Recorded, ...], tuple[str, ...]]:
    """Return the trials that could be read, and the complaints about the others, each with its place."""
    trials, left_out = list[Recorded](), list[str]()
    for place, entry in entries:
        try:
            trials.append(read(entry))
        except ValueError as error:
            left_out.append(f"{place}: {error}")
    return tuple(trials), tuple(left_out)


def content(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. Name a file that you can read.") from None


def lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each line that is not empty, with its place."""
    for count, line in enumerate(content(path).split(b"\n"), start=1):
        if line.strip():
            yield f"{path}, line {count}", line


def parsed(data: bytes) -> object:
    """Return the value of a JSON text; integers of any length up to 4,300 digits stay exact."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        odd = error.object[error.start]
        raise ValueError(f"is not UTF-8 text: it holds the byte 0x{odd:02x} at {error.start + 1}") from None
    try:
        return json.loads(text, parse_int=_integer, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"{shown(text)} is not JSON ({error.msg} at character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError(f"{shown(text)} is nested too deeply") from None


def _integer(digits: str) -> int:
    if len(digits.removeprefix("-")) > MAX_DIGITS:
        raise ValueError(f"{shown(digits)} has more than {MAX_DIGITS:,} digits")
    return int(digits)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def mapping(value: object, what: str) -> Fields:
    if not isinstance(value, dict):
        raise ValueError(f"{shown(value)} is not {what}, a JSON object")
    return value


def inner(fields: Fields, key: str) -> Fields:
    """Return the object that stands under a key; read its fields `within` the key."""
    value = told(fields, key)
    if not isinstance(value, dict):
        raise ValueError(f"{key!r} is {shown(value)}, not a JSON object")
    return value


@contextmanager
def within(key: str) -> Iterator[None]:
    """Say of complaints where they are from: two objects of a record may have fields of the same name."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"in {key!r}, {error}") from None


def told(fields: Fields, key: str) -> Any:
    """Return the value of a field that has to be there."""
    if key not in fields:
        raise ValueError(f"{key!r} is missing; found: {shown(list(fields))}")
    return fields[key]


def text(fields: Fields, key: str) -> str:
    value = told(fields, key)
    if not isinstance(value, str):
        raise ValueError(f"{key!r} is {shown(value)}, not a text")
    return value


def flag(fields: Fields, key: str) -> bool:
    """Return a yes or no; missing or null is no."""
    value = fields.get(key)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{key!r} is {shown(value)}, not true or false")
    return bool(value)


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(fields: Fields, key: str, *, least: int = 0) -> int:
    value = told(fields, key)
    if not is_whole(value) or not least <= value <= MOST:
        raise ValueError(f"{key!r} is {shown(value)}, not a whole number from {least} to {MOST:,}")
    return int(value)


def number(fields: Fields, key: str) -> float:
    value = told(fields, key)
    if not (is_whole(value) or isinstance(value, float)) or not 0 <= value <= MOST or math.isnan(value):
        raise ValueError(f"{key!r} is {shown(value)}, not a number from 0 to {MOST:,}")
    return float(value)


def model_of(fields: Fields, *, simulated: bool) -> Model:
    """Return the model that a record names; it is not known how it was reached."""
    name = text(fields, "model")
    try:
        check_alias(name, place="'model'")
    except ConfigError as error:
        raise ValueError(str(error)) from None
    provider = "simulated" if simulated else "imported"
    return Model(alias=name, provider=provider, model_id=name, api="imported", simulated=simulated)
