"""JSON that others wrote: what is not of the expected shape counts as absent."""


def mapping(value: object) -> dict[str, object]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str | None:
    """Return `value` if it is text with something in it."""
    return value if isinstance(value, str) and value else None


def count(value: object) -> int | None:
    """Return `value` if it is a number of things; some servers write 12.0 for 12."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    return count(int(value)) if isinstance(value, float) and value.is_integer() else None
