"""Trials in files of others: JSON, read exactly, each field checked.

A ValueError says what was found, and the rule.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os.path import isdir, isfile, lexists
from pathlib import Path
from reprlib import repr as shown
from typing import Any, Final, TypeVar
from urllib.parse import quote

from asyncbench.config.models import check_alias
from asyncbench.errors import ConfigError, ProviderError
from asyncbench.files import local
from asyncbench.records import REALTIME, Condition, Draft, Model, Reply
from asyncbench.suites.numbers import MAX_DIGITS

# ── Places of files and folders, and names of a run and of its files after each other
# What cannot be read or made is refused before anything is spent on it.


LONGEST: Final = 200  # characters once percent-encoded: a run names a file, with room for an ending


def check_file(path: Path) -> None:
    """Refuse what is no file that can be read.

    Raises:
        ConfigError: it is missing, may not be read, or is a pipe or the like.
    """
    try:
        path.stat()
        if not isfile(path):  # before it is opened: a pipe would be waited for
            raise ConfigError(
                f"{path} is not a regular file. Save its content to a file, and name that file."
            )
        path.open("rb").close()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. Name a file that you can read.") from None


def check_folder(path: Path) -> None:
    """Refuse what cannot be a folder, since a file is there or above it.

    Raises:
        ConfigError: so it is, and names that file; or the path is an address.
    """
    there = next(folder for folder in (path, *local(path).absolute().parents) if lexists(folder))
    if not isdir(there):
        raise ConfigError(f"{there} is not a folder. Name a folder, or a new one.")


def run_of(path: Path, ending: str) -> str:
    """Return the run that a file becomes: its name without the ending of its format.

    Raises:
        ConfigError: that can name no file in turn.
    """
    run = path.name.removesuffix(ending)
    try:
        encoded = quote(run, safe="")
    except UnicodeEncodeError:
        raise ConfigError(f"{str(path)!r}: the name is not UTF-8 text. Rename the file.") from None
    if not 1 <= len(encoded) <= LONGEST:
        raise ConfigError(
            f"{path}: the name of the run would be empty, or longer than {LONGEST} characters when "
            "percent-encoded. Rename the file."
        )
    return run


def file_of(run: str, ending: str) -> str:
    """Return the name of the file that an imported run becomes again."""
    return f"{run.replace('/', '%2F')}{ending}"


def problems_file(run: str) -> str:
    """Return where in a results folder the problems of an imported run are."""
    return f"problems/{quote(run, safe='')}.parquet"


# ── recorded


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
