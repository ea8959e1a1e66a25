"""JSON that others wrote: read exactly, each field checked; a ValueError says what was found and the rule."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as shown
from typing import Any

from asyncbench.config import check_alias
from asyncbench.errors import ConfigError
from asyncbench.records import Model
from asyncbench.suites import MAX_DIGITS

Fields = Mapping[str, Any]  # Any: JSON, which is checked field by field
MOST = 2**31 - 1  # of a count, of dollars, of seconds: what a column of results holds, and more than enough


def content(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; name a file that can be read") from None


def parsed(data: bytes) -> object:
    """Return the value of a JSON text; integers of any length up to 4,300 digits stay exact."""
    text = _decoded(data)
    try:
        return json.loads(text, parse_int=_integer, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"{shown(text)} is not JSON ({error.msg} at character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError(f"{shown(text)} is nested too deeply") from None


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        odd = error.object[error.start]
        raise ValueError(f"is not UTF-8 text: it holds the byte 0x{odd:02x} at {error.start + 1}") from None


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
    value = field(fields, key)
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


def field(fields: Fields, key: str) -> Any:
    if key not in fields:
        raise ValueError(f"{key!r} is missing; found: {shown(list(fields))}")
    return fields[key]


def text(fields: Fields, key: str) -> str:
    value = field(fields, key)
    if not isinstance(value, str):
        raise ValueError(f"{key!r} is {shown(value)}, not a text")
    return value


def flag(fields: Fields, key: str) -> bool:
    """Return a yes or no; missing or null is no."""
    value = fields.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise ValueError(f"{key!r} is {shown(value)}, not true or false")
    return value


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(fields: Fields, key: str, *, least: int = 0) -> int:
    value = field(fields, key)
    if not is_whole(value) or not least <= value <= MOST:
        raise ValueError(f"{key!r} is {shown(value)}, not a whole number from {least} to {MOST:,}")
    return int(value)


def number(fields: Fields, key: str) -> float:
    value = field(fields, key)
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
