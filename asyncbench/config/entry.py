"""The base class of every part of a sweep file, and the complaints about wrong values."""

import difflib
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from asyncbench.config.place import Place, quoted, shortened
from asyncbench.errors import ConfigError
from asyncbench.suites.requests import merged_params

# They may hold an API key by mistake, so a message never repeats their value.
MAY_HOLD_A_KEY = frozenset({"key_env", "base_url", "command", "webhook", "webhook_env", "notify"})
_OF_GATEWAYS: Final = frozenset({"headers", "query", "client_cert"})  # likewise, whatever is in them
ENV_VARIABLE: Final = r"^[A-Z_][A-Z0-9_]*$"
HEADER: Final = r"^[A-Za-z0-9!#$%&'*+.^_|~-]+$"
BASE_URL_PATTERN: Final = r"^https?://[^@\s?#]+$"
# They would change who is asked, what, or how.
NOT_IN_PARAMS = frozenset({"model", "messages", "system", "instructions", "input", "prompt", "stream"})


class Entry(BaseModel):
    """One part of a sweep file."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    elsewhere: ClassVar[Mapping[str, str]] = {}  # keys that stand in another place → where

    @model_validator(mode="before")
    @classmethod
    def _as_dict(cls, raw: object) -> object:
        return dict(raw) if isinstance(raw, Mapping) else raw


def _no_flag(value: object) -> object:
    """Refuse `true`, which would be read as 1."""
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "must be a number")
    return value


Number = Annotated[float, Field(gt=0, strict=False)]
Dollars = Annotated[
    float, Field(gt=0, strict=False, allow_inf_nan=False), BeforeValidator(_no_flag)
]  # a flag would be read as a dollar
Share = Annotated[float, Field(ge=0.001, lt=1, strict=False)]  # narrower takes more answers than are asked
Name = Annotated[str, Field(min_length=1)]
Streaming = Literal[True, False, "auto"]


def seconds_in(written: str) -> float | None:
    """Return the seconds of a duration such as 1h30m; None: it is none."""
    if not re.fullmatch(r"(\d+(\.\d+)?[smhd])+", written):
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", written)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def _seconds(raw: object) -> object:
    """Return a duration as seconds; what is none is for the next validator."""
    if isinstance(raw, str):
        if (seconds := seconds_in(raw)) is None:
            raise PydanticCustomError("duration", 'a duration, such as "90s" or "2m"')
        return seconds
    return raw


_SHOWN: Final = WithJsonSchema({"type": ["number", "string"]})
Duration = Annotated[
    NonNegativeFloat, Field(strict=False, allow_inf_nan=False), BeforeValidator(_seconds), _SHOWN
]
Length = Annotated[float, Field(gt=0, strict=False, allow_inf_nan=False), BeforeValidator(_seconds), _SHOWN]


def _as_shell_splits(raw: object) -> object:
    return shlex.split(raw) if isinstance(raw, str) else raw


Words = Annotated[
    list[Name],
    BeforeValidator(_as_shell_splits, json_schema_input_type=str | list[str]),
    Field(min_length=1),
]  # of a command
Mode = Literal["realtime", "batch", "auto"]
Keys = dict[str, object]

E = TypeVar("E", bound=Entry)


def without_unset(mapping: Mapping[str, object]) -> dict[str, object]:
    """Return what an entry has to say: of its keys those that are set."""
    return {name: value for name, value in mapping.items() if value not in (None, {}, [])}


# ── complaints


def read_entry(kind: type[E], raw: object, *, place: Place) -> E:
    """Return `raw` as an entry.

    Raises:
        ConfigError: it holds what it may not; every fault has a line.
    """
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise ConfigError("\n".join(dict.fromkeys(_complaints(kind, raw, error.errors(), place)))) from None


@contextmanager
def collected(faults: list[str]) -> Iterator[None]:
    """Add a complaint to a list, so that all are told at once."""
    try:
        yield
    except ConfigError as error:
        faults.append(str(error))


def suggestion(name: str, known: Collection[str], *, what: str = "") -> str:
    """Return the known name that is meant, or all of them."""
    if close := difflib.get_close_matches(name, known, n=1):
        return f"Did you mean {close[0]!r}?"
    return f"Known{what}: {', '.join(known)}."


def _complaints(kind: type[Entry], raw: object, faults: list[ErrorDetails], place: Place) -> list[str]:
    by_keys: dict[tuple[str | int, ...], list[ErrorDetails]] = {}
    for fault in faults:
        by_keys.setdefault(_keys_of(fault, raw), []).append(fault)
    for keys in [keys for keys, same in by_keys.items() if same[0]["type"] == "float_type"]:
        if any(other[: len(keys)] == keys != other for other in by_keys):
            del by_keys[keys]  # a mapping may stand there, too, and its own complaints tell more
    complaints = list[tuple[int, str]]()
    intended = set[tuple[str | int, ...]]()
    for keys, same in sorted(by_keys.items(), key=lambda item: item[1][0]["type"] == "missing"):
        where = replace(place, keys=(*place.keys, *keys))
        *outer, last = keys or ("",)
        if same[0]["type"] == "extra_forbidden":
            level = _level(kind, keys)
            known = level.model_fields
            intended.update((*outer, key) for key in difflib.get_close_matches(str(last), known, n=1))
            message = _unknown_key(str(last), known, level.elsewhere)
        elif same[0]["type"] == "missing":
            if keys in intended:  # the complaint about its misspelt form is enough
                continue
            message = f"{last!r} is missing"
        elif not isinstance(last, str) and {same[0]["type"], same[0]["loc"][-1]} & _KEY_FAULTS:
            where = replace(where, keys=(*place.keys, *outer, str(last)))  # as the file has it
            message = f"the key {_shown(last)} must be text; put it in quotes"
        else:
            message = _wrong_value(where.name.rpartition(".")[2], same, keys)
        complaints.append((where.line or 0, f"{where if where.root else where.parent}: {message}"))
    return [message for _, message in sorted(complaints, key=lambda one: one[0])]


def _keys_of(fault: ErrorDetails, raw: object) -> tuple[str | int, ...]:
    """Return where a fault stands in what was given; pydantic also names kinds of values on the way."""
    keys = list[str | int]()
    *_, last = fault["loc"] or ("",)
    for key in fault["loc"]:
        listed = isinstance(raw, Sequence) and not isinstance(raw, str) and isinstance(key, int)
        if listed or (isinstance(raw, Mapping) and key in raw):
            raw = raw[key]  # type: ignore[index]  # as was just seen
        elif key == "on" and isinstance(raw, Mapping) and True in raw:  # so YAML reads a bare `on`
            raw = raw[True]
        elif key == "[key]" or not (fault["type"] == "missing" and key is last and isinstance(raw, Mapping)):
            continue
        keys.append(key)
    return tuple(keys)


def _level(kind: type[Entry], keys: Sequence[str | int]) -> type[Entry]:
    """Return the part of a sweep file that a key stands in."""
    for key in keys:
        if isinstance(key, str) and key in kind.model_fields:
            kind = next(_entries(kind.model_fields[key].annotation), kind)
    return kind


def _entries(annotation: Any) -> Iterator[type[Entry]]:
    if isinstance(annotation, type) and issubclass(annotation, Entry):
        yield annotation
    for inner in get_args(annotation):
        yield from _entries(inner)


def _unknown_key(name: str, known: Collection[str], elsewhere: Mapping[str, str]) -> str:
    if name in elsewhere:
        return f"unknown key {quoted(name)}. {elsewhere[name]}"
    if "key_env" in known and _HOLDS_A_KEY.fullmatch(name):
        way_out = "Set `key_env` to the NAME of the environment variable that holds the key"
        return f"unknown key {quoted(name)}. {way_out}"
    return f"unknown key {quoted(name)}. {suggestion(name, known, what=' keys')}"


_PATTERNS: Final = {
    ENV_VARIABLE: "the NAME of an environment variable (capital letters, digits and _), not the key itself",
    HEADER: "the name of a header",
    BASE_URL_PATTERN: "an address that begins with http:// or https:// and holds no password, ? or #",
}
_ALONE: Final = {  # entries that may also be a text
    "ModelEntry": "provider/model, or a mapping",
    "ProblemsEntry": "the path of a file, or a mapping",
    "NotifyEntry": "an address, a command, or a mapping",
}
_RULES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "model_type": lambda rule: _ALONE.get(rule["class_name"], "a mapping of keys to values"),
    "dict_type": lambda _: "a mapping of keys to values",
    "list_type": lambda _: "a list",
    "string_type": lambda _: "text",
    "bool_type": lambda _: "true or false",
    "int_type": lambda _: "a whole number",
    "int_from_float": lambda _: "a whole number",
    "float_type": lambda _: "one number",
    "float_parsing": lambda _: "a number",
    "finite_number": lambda _: "a finite number",
    "literal_error": lambda rule: rule["expected"].replace("True", "true").replace("False", "false"),
    "greater_than": lambda rule: f"more than {rule['gt']:g}",
    "greater_than_equal": lambda rule: f"at least {rule['ge']:g}",
    "less_than": lambda rule: f"less than {rule['lt']:g}",
    "less_than_equal": lambda rule: f"at most {rule['le']:g}",
    "string_pattern_mismatch": lambda rule: _PATTERNS[rule["pattern"]],
}
_KEY_FAULTS: Final = frozenset({"invalid_key", "[key]"})  # what pydantic calls a key that is no text
_HOLDS_A_KEY: Final = re.compile(r"(?!max|thinking).*(key|token|secret|password)", re.IGNORECASE)
_EMPTY: Final = frozenset({"too_short", "string_too_short"})
_SEVERAL: Final = "For several, list the model once per value, each with its own alias."


def _wrong_value(name: str, faults: Sequence[ErrorDetails], keys: Sequence[str | int]) -> str:
    if faults[0]["type"] in _EMPTY:
        return f"{name!r} must not be empty"
    if (why := faults[0].get("ctx", {}).get("error")) is not None:
        return f"{name!r} cannot be read: {why}"
    rules = [
        rule(fault.get("ctx", {})) if (rule := _RULES.get(fault["type"])) else fault["msg"]
        for fault in faults
    ]
    value = faults[0]["input"]
    *outer, last = ("", *(key for key in keys if isinstance(key, str)))
    secret = last in MAY_HOLD_A_KEY or not _OF_GATEWAYS.isdisjoint(outer)
    message = f"{name!r} must be " if name else "must be "
    message += " or ".join(dict.fromkeys(rules))
    if not secret:
        message += f", not {_shown(value)}"
    # {question} without quotes is a mapping in YAML
    unquoted = isinstance(value, int | float | date) or (
        isinstance(value, Mapping) and not any(value.values())
    )
    if faults[0]["type"] == "string_type" and unquoted:
        return f"{message}. Put it in quotes"
    several = isinstance(value, list) and "models" in keys and faults[0]["type"] != "list_type"
    return f"{message}. {_SEVERAL}" if several else message


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    kinds = ((Mapping, "a mapping"), (list | tuple, "a list"), (type(None), "empty"))
    text = str(value) if isinstance(value, date) else repr(value)
    text = f"{value:.10g}" if isinstance(value, float) else text
    return next((name for kind, name in kinds if isinstance(value, kind)), shortened(text))


def params_from(raw: Mapping[str, object], *, place: Place) -> dict[str, object]:
    """Return provider parameters; what `extra_body` holds is merged into them, as both SDKs do.

    Raises:
        ConfigError: one of them is for asyncbench to set.
    """
    params, extra = dict(raw), raw.get("extra_body")
    if extra is not None and not isinstance(extra, Mapping):
        raise ConfigError(
            f"{place / 'params' / 'extra_body'}: 'extra_body' is not a mapping, but {_shown(extra)}. "
            "Write its keys in params"
        )
    if "extra_body" in params and "google" not in (extra or {}):  # Gemini's servers know one of their own
        del params["extra_body"]
        return params_from(merged_params(params, extra or {}), place=place)
    if taken := sorted(NOT_IN_PARAMS & params.keys()):
        raise ConfigError(
            f"{place / 'params' / taken[0]}: {taken[0]!r} cannot stand in params: asyncbench sets it itself"
        )
    return params
