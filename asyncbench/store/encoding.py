"""Values as JSON that every reader accepts, whatever a provider put into them."""

import dataclasses
from collections.abc import Mapping

import orjson


def encode(value: object) -> bytes:
    """Return `value` as one line of JSON: records as objects, NaN and infinity as null.

    What JSON or Arrow cannot hold is kept as near as can be: half a surrogate pair becomes U+FFFD, an
    integer beyond 64 bits its decimal text, anything else unknown its `str`.
    """
    return _dumped(value, 0)


def canonical(value: Mapping[str, object]) -> str:
    """Return `value` as `encode` does, as text with its keys in order: equal values, equal text."""
    return _dumped(value, orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()


def _dumped(value: object, option: int) -> bytes:
    try:
        return orjson.dumps(value, default=_open, option=option)
    except TypeError:  # rare: only then is every value looked at
        return orjson.dumps(_storable(value), default=str, option=option)


def _open(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _storable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, Mapping):
        return {_storable(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {field.name: _storable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value
