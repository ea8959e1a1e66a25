"""Values as JSON that every reader accepts, whatever a provider put into them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import orjson

# Records are opened by us: what is not to be stored is left out.
_OURS: Final = orjson.OPT_PASSTHROUGH_DATACLASS
_STORED: Final[dict[type, tuple[str, ...] | None]] = {}  # by type, once it was met


def encode_json(value: object) -> bytes:
    """Return `value` as one line of JSON: records as objects, NaN and infinity as null.

    Fields that are `UNSTORED` are left out. What JSON or Arrow cannot hold is kept as near as can be: half a
    surrogate pair becomes U+FFFD, an integer beyond 64 bits its decimal text, anything else unknown its
    `str`.
    """
    return _dumped(value, _OURS)


def canonical(value: Mapping[str, object]) -> str:
    """Return `value` as `encode_json` does, as text with its keys in order: equal values, equal text."""
    return _dumped(value, _OURS | orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()


def _dumped(value: object, option: int) -> bytes:
    try:
        return orjson.dumps(value, default=_open, option=option)
    except TypeError:  # rare: only then is every value looked at
        return orjson.dumps(_storable(value), default=str, option=option)


def _open(value: object) -> object:
    if (names := _stored(value)) is not None:
        return {name: getattr(value, name) for name in names}
    return dict(value) if isinstance(value, Mapping) else str(value)


def _stored(value: object) -> tuple[str, ...] | None:
    """Return the fields of a record that are stored; None: no record."""
    kind = type(value)
    if kind not in _STORED:
        _STORED[kind] = _fields(kind) if dataclasses.is_dataclass(kind) else None
    return _STORED[kind]


def _fields(record: type[Any]) -> tuple[str, ...]:  # Any: of a dataclass
    return tuple(one.name for one in dataclasses.fields(record) if one.metadata.get("stored", True))


def _storable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, Mapping):
        return {_storable(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    if (names := _stored(value)) is not None:
        return {name: _storable(getattr(value, name)) for name in names}
    return value
