"""The base class of every part of a sweep file, the place of each value, and complaints about wrong ones."""

import difflib
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, get_args

import yaml
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

from asyncbench.contents import text_of
from asyncbench.errors import ConfigError
from asyncbench.files import MOST_BYTES
from asyncbench.providers.secrets import withhold_pasted_key
from asyncbench.suites.requests import merged_params

# ── the place of a value: by file and line, or by its keys


_LONGEST: Final = 60  # characters of a name or a value in a message


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return somebody's text as a message may show it: without an API key, and not pages of it."""
    text = withhold_pasted_key(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def quoted(name: str) -> str:
    """Return a name or a value as a message quotes it."""
    return repr(shortened(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a value: what it was read from, and the keys that lead to it (lists count from 0)."""

    source: str
    keys: tuple[str | int, ...] = ()
    root: yaml.Node | None = field(default=None, repr=False, compare=False)  # None: read from no file
    # Keys of entries that one with lists stands for → where that was written.
    moved: Mapping[tuple[str | int, ...], tuple[str | int, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )

    # Read from a command line: keys → the flags that they were typed as.
    flags: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __truediv__(self, key: str | int) -> "Place":
        return replace(self, keys=(*self.keys, key))

    @property
    def parent(self) -> "Place":
        """The mapping that holds the last key."""
        last = max((i for i, key in enumerate(self.keys) if isinstance(key, str)), default=0)
        last = 0 if self.flags else last  # what holds a flag is the command line
        return replace(self, keys=self.keys[:last])

    @property
    def name(self) -> str:
        """The keys as a message shows them, counted from 1: `models[1].price`; or the flag."""
        if self.flags:
            return next((self.flags[key] for key in map(str, reversed(self.keys)) if key in self.flags), "")
        parts = (f"[{key + 1}]" if isinstance(key, int) else f".{shortened(key)}" for key in self._written)
        return "".join(parts).removeprefix(".")

    @property
    def line(self) -> int | None:
        """The line of the file, or None without a file or without any of the keys in it."""
        node = self.root
        line: int | None = None
        for key in self._written:
            if isinstance(node, yaml.MappingNode):
                pairs = [pair for pair in node.value if pair[0].value == key]
            elif isinstance(node, yaml.SequenceNode) and isinstance(key, int):
                pairs = [(item, item) for item in node.value[key : key + 1]]
            else:
                pairs = []
            if not pairs:
                break
            key_node, node = pairs[-1]  # a key that is merged (`<<`) stands before the mapping's own
            line = key_node.start_mark.line + 1
        return line

    @property
    def _written(self) -> tuple[str | int, ...]:
        """The keys that lead to it in what was written."""
        cuts = (n for n in range(len(self.keys), 0, -1) if self.keys[:n] in self.moved)
        n = next(cuts, 0)
        return (*self.moved.get(self.keys[:n], ()), *self.keys[n:])

    def __str__(self) -> str:
        if self.root is None:
            return ", ".join(filter(None, (self.source, self.name)))
        return self.source if self.line is None else f"{self.source}, line {self.line}"


# ── reading YAML within bounds of time and memory
# A few hundred bytes of YAML can nest without end, or stand for gigabytes through aliases. So depth and
# size are counted while the file is read, an alias as often as it stands.


DEEPEST: Final = 100  # levels of lists and mappings; JSON is sent with at most 254
_A_NODE: Final = 32  # bytes that a value counts beside its text
_LONGEST_NUMBER: Final = 100  # characters; 64 bits need fewer, even in binary
_LONGEST_FAULT: Final = 200  # characters of what the library says; it quotes what it cannot read


def yaml_of(path: Path) -> tuple[object, Place]:
    """Return the content of a YAML file, and the place that knows the line of each value.

    Raises:
        ConfigError: it cannot be read, is not YAML, says a key twice, or is too deep or too large.
    """
    text = text_of(path, subject=str(path), way_out="Give the path of a sweep file")
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        value = None if root is None else loader.construct_document(root)
        return value, Place(source=str(path), root=root)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:  # 2026-13-01, `!!bool x`
        fault = shortened(" ".join(str(error).split()), _LONGEST_FAULT)
        if isinstance(error, yaml.MarkedYAMLError) and (mark := error.problem_mark) is not None:
            # Not the line itself, for who mistypes a key may do so in its place.
            problem = shortened(" ".join(filter(None, (error.context, error.problem))), _LONGEST_FAULT)
            where = f"{path}, line {mark.line + 1}, column {mark.column + 1}"
            raise ConfigError(f"{where}: cannot be read as YAML: {problem}") from None
        raise ConfigError(f"{path}: cannot be read as YAML: {fault}") from None


def _refused(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


class _Loader(yaml.SafeLoader):
    """Reads plain values; counts depth and size as they are once every alias is written out."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = self._deepest = self._size = 0
        self._anchored: dict[str, tuple[int, int]] = {}  # anchor → size, levels

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # it has no types
        alias = isinstance(event, yaml.AliasEvent)
        if alias and event.anchor in self.anchors and event.anchor not in self._anchored:
            raise _refused(f"*{event.anchor} stands within itself; write it out", event.start_mark)
        size, levels = self._anchored.get(event.anchor, (0, 1)) if alias else (_A_NODE, 1)
        before, outside = self._size, self._deepest
        self._size += size + len(getattr(event, "value", ""))
        self._depth += 1
        self._deepest = self._depth + levels - 1
        if self._deepest > DEEPEST:
            raise _refused(f"nested deeper than {DEEPEST} levels; write it flatter", event.start_mark)
        if self._size > MOST_BYTES:
            problem = f"more than {MOST_BYTES:,} bytes with its aliases written out; use fewer"
            raise _refused(problem, event.start_mark)
        node = super().compose_node(parent, index)  # type: ignore[arg-type]  # typed as never None
        if not alias and event.anchor is not None:
            self._anchored[event.anchor] = self._size - before, self._deepest - self._depth + 1
        self._depth -= 1
        self._deepest = max(outside, self._deepest)
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        names = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in names:
                    raise _refused(f"the key {quoted(key.value)} is set twice; keep one", key.start_mark)
                names.add(key.value)
        return node

    def number(self, node: yaml.ScalarNode) -> int | float:
        if len(node.value) > _LONGEST_NUMBER:
            raise _refused(f"a number of more than {_LONGEST_NUMBER} characters", node.start_mark)
        whole = node.tag.endswith(":int")
        return self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.number)


# ── the base class of every part of a sweep file


# They may hold an API key by mistake, so a message never repeats their value.
MAY_HOLD_A_KEY = frozenset(
    {"key_env", "base_url", "command", "webhook", "webhook_env", "notify", "mlflow", "otel"}
)
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
    def _plain_dict(cls, raw: object) -> object:
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
Variable = Annotated[str, Field(pattern=ENV_VARIABLE)]
WebAddress = Annotated[str, Field(pattern=BASE_URL_PATTERN)]
Streaming = Literal[True, False, "auto"]


def seconds_in(written: str) -> float | None:
    """Return the seconds of a duration such as 1h30m, or None if it is no duration."""
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


Words = Annotated[
    list[Name],
    BeforeValidator(
        lambda raw: shlex.split(raw) if isinstance(raw, str) else raw,  # as a shell splits it
        json_schema_input_type=str | list[str],
    ),
    Field(min_length=1),
]  # of a command
Mode = Literal["realtime", "batch", "auto"]
Keys = dict[str, object]

E = TypeVar("E", bound=Entry)


def drop_unset(mapping: Mapping[str, object]) -> dict[str, object]:
    """Return the keys of an entry that are set."""
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


def suggestion(name: str, choices: Collection[str], *, what: str = "") -> str:
    """Return the known name that is meant, or all of them."""
    if close := difflib.get_close_matches(name, choices, n=1):
        return f"Did you mean {close[0]!r}?"
    return f"Known{what}: {', '.join(choices)}."


def _complaints(kind: type[Entry], raw: object, faults: list[ErrorDetails], place: Place) -> list[str]:
    """Return complaints about an entry, one line a value, in the order of the file."""
    by_keys: dict[tuple[str | int, ...], list[ErrorDetails]] = {}
    for fault in faults:
        by_keys.setdefault(_keys_of(fault, raw), []).append(fault)
    for keys in [keys for keys, same in by_keys.items() if same[0]["type"] == "float_type"]:
        if any(inner[: len(keys)] == keys != inner for inner in by_keys):
            del by_keys[keys]  # a mapping may stand there, too, and its own complaints tell more

    complaints = list[tuple[int, str]]()
    intended = set[tuple[str | int, ...]]()
    for keys, same in sorted(by_keys.items(), key=lambda item: item[1][0]["type"] == "missing"):
        where = replace(place, keys=(*place.keys, *keys))
        *outer, last = keys or ("",)
        if same[0]["type"] == "extra_forbidden":
            level = kind  # the part of the sweep file that the key stands in
            for key in keys:
                if isinstance(key, str) and key in level.model_fields:
                    level = next(_entries(level.model_fields[key].annotation), level)
            fields = level.model_fields
            intended.update((*outer, key) for key in difflib.get_close_matches(str(last), fields, n=1))
            message = _unknown_key(str(last), fields, level.elsewhere)
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
    return [message for _, message in sorted(complaints, key=lambda complaint: complaint[0])]


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


def _entries(annotation: Any) -> Iterator[type[Entry]]:
    """Yield the kinds of entries that a field may hold."""
    if isinstance(annotation, type) and issubclass(annotation, Entry):
        yield annotation
    for inner in get_args(annotation):
        yield from _entries(inner)


def _unknown_key(name: str, fields: Collection[str], elsewhere: Mapping[str, str]) -> str:
    """Return the complaint about a key that nothing reads, with the way out."""
    if name in elsewhere:
        return f"unknown key {quoted(name)}. {elsewhere[name]}"
    if "key_env" in fields and _HOLDS_A_KEY.fullmatch(name):
        way_out = "Set `key_env` to the NAME of the environment variable that holds the key"
        return f"unknown key {quoted(name)}. {way_out}"
    return f"unknown key {quoted(name)}. {suggestion(name, fields, what=' keys')}"


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
    "int_parsing": lambda _: "a whole number",
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


def rule_of(fault: ErrorDetails) -> str:
    """Return the rule for a value, such as `at least 1`, or the fault's own message if we have no words."""
    rule = _RULES.get(fault["type"])
    return fault["msg"] if rule is None else rule(fault.get("ctx", {}))


def _wrong_value(name: str, faults: Sequence[ErrorDetails], keys: Sequence[str | int]) -> str:
    if faults[0]["type"] in _EMPTY:
        return f"{name!r} must not be empty"
    if (why := faults[0].get("ctx", {}).get("error")) is not None:
        return f"{name!r} cannot be read: {why}"
    rules = map(rule_of, faults)
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
