"""Lenient JSON reader: a value of an unexpected shape counts as absent."""

import json
import re
from math import isfinite
from typing import Final

import orjson

MOST_VALUES: Final = 250_000  # of one body or event: in memory each takes a hundred times its bytes
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
EXACT: Final = 2**53  # beyond it a float, as some servers write counts, is no exact number of things


class UnreadableError(ValueError):
    """The text is no JSON, however leniently it is read, or holds more than any reply."""


def read(written: bytes, notes: list[str]) -> object:
    """Return what JSON holds; what the standard forbids is mended, for a reply that holds it was paid for.

    Bytes that are no text, and half a surrogate pair, become U+FFFD; NaN and numbers beyond floats null.

    Args:
        written: a body, or an event.
        notes: is told when it had to be mended.

    Raises:
        UnreadableError: it is no JSON, nests too deep, or holds more than `MOST_VALUES`.
    """
    if _values(written) > MOST_VALUES:
        raise UnreadableError(f"it holds more than {MOST_VALUES:,} values")
    try:
        return orjson.loads(written)
    except orjson.JSONDecodeError as error:
        value = _mended(written, strictly=str(error))
    notes.append("the reply was not valid JSON and was repaired")
    return value


def _values(written: bytes) -> int:
    """Return how many values JSON holds at most, without a look at most of it."""
    if len(written) <= MOST_VALUES or sum(map(written.count, (b"[", b"{", b","))) <= MOST_VALUES:
        return 0
    return sum(map(_STRING.sub(b"", written).count, (b"[", b"{", b",")))


def _mended(written: bytes, *, strictly: str) -> object:
    try:
        text = written.decode(json.detect_encoding(written), "replace")
        value = json.loads(
            text, strict=False, parse_int=_number, parse_float=_number, parse_constant=lambda _: None
        )
        whole = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
        return orjson.loads(whole.decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        raise UnreadableError(strictly) from None


def _number(written: str) -> float | None:
    if len(written) < 20 and written.lstrip("-").isdigit():
        return int(written)
    number = float(written)
    return number if isfinite(number) else None


def mapping_in(value: object) -> dict[str, object]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str | None:
    """Return `value` if it is text with something in it."""
    return value if isinstance(value, str) and value else None


def count_in(value: object, *, most: int = EXACT) -> int | None:
    """Return `value` if it is a number of things, up to `most`; some servers write 12.0 for 12."""
    if type(value) is int:  # and no bool
        return value if 0 <= value <= most else None
    return count_in(int(value), most=most) if isinstance(value, float) and value.is_integer() else None
