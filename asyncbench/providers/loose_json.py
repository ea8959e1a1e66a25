"""JSON that others wrote: what is not of the expected shape counts as absent."""

from typing import Final

EXACT: Final = 2**53  # beyond it a float, as some servers write counts, is no exact number of things


def mapping(value: object) -> dict[str, object]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str | None:
    """Return `value` if it is text with something in it."""
    return value if isinstance(value, str) and value else None


def count(value: object, *, most: int = EXACT) -> int | None:
    """Return `value` if it is a number of things, up to `most`; some servers write 12.0 for 12."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= most else None
    return count(int(value), most=most) if isinstance(value, float) and value.is_integer() else None
