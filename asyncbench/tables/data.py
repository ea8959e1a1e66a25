"""Records as data for programs: their fields, and what their properties add.

@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    calls: int
    by_kind: Kinds = field(metadata=INSIDE)  # its entries stand among the others
    rows: Sequence[Row] = field(metadata=HIDDEN)  # not in the data

    @property
    @in_data("usd_per_call")
    def each(self) -> float: ...
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

HIDDEN: Final = {"data": "hidden"}  # of a field that the data does not have
INSIDE: Final = {"data": "inside"}  # of a field whose entries stand among those of its record

Values = dict[str, Any]  # Any: whatever JSON can hold
Method = TypeVar("Method", bound=Callable[..., object])
_KEYS: Final = dict[object, str | None]()  # of the methods of properties


def in_data(key: str | None) -> Callable[[Method], Method]:
    """Return a mark for the method of a property: the data of its record has it by this key.

    None: it has the entries of the property among its own.
    """

    def mark(method: Method) -> Method:
        _KEYS[method] = key
        return method

    return mark


def data_of(value: Any) -> Any:  # Any: JSON
    """Return a value with each record in it as a mapping, and tuples and iterators as lists.

    The mapping of a record has its fields, then its properties that are marked.
    """
    if is_dataclass(value):
        keys = {
            each.name: None if each.metadata == INSIDE else each.name
            for each in fields(value)
            if each.metadata != HIDDEN
        }
        for name, method in vars(type(value)).items():
            if isinstance(method, property) and method.fget in _KEYS:
                keys[name] = _KEYS[method.fget]

        data = dict[str, Any]()
        for name, key in keys.items():
            entry = data_of(getattr(value, name))
            data.update(entry if key is None else {key: entry})
        return data

    if isinstance(value, Mapping):
        return {name: data_of(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple | Iterator):
        return list(map(data_of, value))
    return value
