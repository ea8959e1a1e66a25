"""JSON as lines of text: which keys it has and of which types, and which figures it holds.

report.suites[] =                                    an object that several commands print, once
  accuracy: null|number
suites[condition=plain model=steady].accuracy: 0.9   a figure of a report, once for all reports
tasks.accuracy: 409 values, digest 0a1b2c3d          a column of a table of hundreds of rows
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from typing import Any

MOST_ROWS = 24  # of a table that shows every figure
TYPES = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string"}
WORD = re.compile(r"[a-z][a-z_-]*")  # of our own, such as `tied`; no sentence, path, time or reply
SHARED_KEYS = 3  # an object with fewer keys is written where it stands
Row = dict[str, Any]


# ── keys and types


@dataclass(slots=True)
class Node:
    """A value of JSON, of all documents of a command together: its types, and what is within it."""

    types: set[str] = field(default_factory=set)
    within: dict[str, "Node"] = field(default_factory=dict)  # by key; `[]`: the items of a list

    def add(self, value: Any, names: Collection[str]) -> None:
        """Add a value; a key that is one of `names`, or a number, is `*`."""
        if isinstance(value, dict):
            self.types.add("object")
            for key, inner in value.items():
                star = key in names or key.isdecimal()
                self.within.setdefault("*" if star else key, Node()).add(inner, names)
        elif isinstance(value, list):
            self.types.add("array")
            for inner in value:
                self.within.setdefault("[]", Node()).add(inner, names)
        else:
            self.types.add(TYPES[type(value)])

    def without_types(self) -> "Node":
        """Return the keys alone, for documents whose types depend on the machine."""
        types = self.types & {"object", "array"}
        return Node(types, {key: inner.without_types() for key, inner in self.within.items()})

    def merge(self, other: "Node") -> None:
        """Add all that another node holds."""
        self.types |= other.types
        for key, inner in other.within.items():
            self.within.setdefault(key, Node()).merge(inner)


class Shapes:
    """Objects of JSON by their keys: one that stands in several places is written once.

    A new field of a record changes one line, in however many commands that record is printed.
    """

    def __init__(self) -> None:
        self._named: dict[frozenset[str], str] = {}  # keys → the first place that has them
        self._nodes: dict[str, Node] = {}  # by that place

    def add(self, place: str, node: Node) -> None:
        """Note the objects within a node, the outermost first."""
        if "object" in node.types and len(node.within) >= SHARED_KEYS:
            name = self._named.setdefault(frozenset(node.within), place)
            self._nodes.setdefault(name, Node()).merge(node)
        for key, inner in sorted(node.within.items()):
            self.add(f"{place}{key}" if key == "[]" else f"{place}.{key}", inner)

    def lines(self) -> list[str]:
        """Return each object with its keys, one a line."""
        return [
            line for name in sorted(self._nodes) for line in (f"{name} =", *self.keys_of(self._nodes[name]))
        ]

    def keys_of(self, node: Node, indent: str = "  ") -> Iterator[str]:
        """Yield the keys of a node; an object that has a name is not written out."""
        for key, inner in sorted(node.within.items()):
            types = inner.types
            if self._is_shared(inner):
                types = (types - {"object"}) | {f"{{{self._named[frozenset(inner.within)]}}}"}
            yield f"{indent}{key}: {'|'.join(sorted(types))}"
            if not self._is_shared(inner):
                yield from self.keys_of(inner, f"{indent}  ")

    def name(self, node: Node) -> str:
        """Return what a command prints: an object or a list of a name, or the few keys that it has."""
        if self._is_shared(node):
            return self._named[frozenset(node.within)]
        keys = (f"{key} {self.name(inner)}".strip() for key, inner in sorted(node.within.items()))
        return ", ".join(keys)

    def _is_shared(self, node: Node) -> bool:
        return "object" in node.types and frozenset(node.within) in self._named


def shape_lines(documents: Iterable[Any], names: Collection[str], *, typed: bool = True) -> list[str]:
    """Return all keys of some documents with their types, one a line, below the key that holds them."""
    root = Node()
    for document in documents:
        root.add(document, names)
    return [
        f"{'  ' * depth}{key}{': ' * typed}{'|'.join(sorted(types)) * typed}"
        for depth, key, types in _walk(root, 1)
    ]


def _walk(node: Node, depth: int) -> Iterator[tuple[int, str, set[str]]]:
    for key, inner in sorted(node.within.items()):
        yield depth, key, inner.types
        yield from _walk(inner, depth + 1)


# ── figures


def figure_lines(document: Any, names: Collection[str], shown: set[str]) -> list[str]:
    """Return all figures of a report, `row.column: value` a line.

    Args:
        document: the report as JSON; of its texts, our own words and names are shown.
        names: of models, tasks and the like.
        shown: the figures of reports before it, which are left out; those of this one are added. A figure is
            the same if its row has the same names, in whichever table.
    """
    tables: dict[str, list[Row]] = {}
    for table, row in _records(document, "", names):
        tables.setdefault(table, []).append(row)
    lines = [line for table, rows in sorted(tables.items()) for line in _table(table, rows)]
    new = {figure: line for line in lines if (figure := line[max(line.find("["), 0) :]) not in shown}
    shown.update(new)
    return list(new.values())


def _table(name: str, rows: list[Row]) -> Iterator[str]:
    """Yield the figures of a table, row by row; of a long one, one digest for each column."""
    columns = sorted({column for row in rows for column in row})
    if len(rows) > MOST_ROWS:
        for column in columns:
            values = [row.get(column, "") for row in rows]
            told = sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]
            yield f"{name}{column}: {len(values)} values, digest {told}"
        return

    alike: Counter[str] = Counter()  # rows with the same names are told apart by their order
    for row in rows:
        labels = {column: value for column, value in row.items() if isinstance(value, str)}
        named = " ".join(f"{column}={value}" for column, value in sorted(labels.items()))
        alike[named] += 1
        number = f"#{alike[named]}" if alike[named] > 1 else ""
        place = f"{name.removesuffix('/')}[{named}{number}]." if named or number else name
        figures = {column: value for column, value in sorted(row.items()) if column not in labels}
        if labels and not figures:
            yield place.removesuffix(".")
        yield from (f"{place}{column}: {json.dumps(value)}" for column, value in figures.items())


def _records(value: Any, table: str, names: Collection[str]) -> Iterator[tuple[str, Row]]:
    """Yield a record as a row of its table, then the rows of the tables within it."""
    row: Row = {}
    within: list[tuple[str, list[Any]]] = []
    for path, leaf in _leaves(value, ""):
        if isinstance(leaf, list) and any(isinstance(item, dict | list) for item in leaf):
            within.append((path, leaf))
        elif not isinstance(leaf, str) or leaf in names or WORD.fullmatch(leaf):
            row[path] = _exact(leaf, path, names)
    yield table, row
    for path, leaf in within:
        for inner in leaf:
            yield from _records(inner, f"{table}{path}/", names)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield path, value
        return
    for key, inner in value.items():
        if key != "examples":  # of questions and replies
            yield from _leaves(inner, f"{path}.{key}" if path else key)


def _exact(value: Any, path: str, names: Collection[str]) -> Any:
    """Return a figure as every machine has it: to 10 digits, p-values to 12, dollars to 12 decimals."""
    match value:
        case float() if isfinite(value):
            digits = 12 if path.split(".")[-1].startswith("p") else 10
            return round(value, 12) if "usd" in path else float(f"{value:.{digits}g}")
        case list():
            texts = (
                item for item in value if not isinstance(item, str) or item in names or WORD.fullmatch(item)
            )
            return [_exact(item, path, names) for item in texts]
    return value


def without_times(document: Any) -> Any:
    """Return the same without what a clock measured: for runs that really took place."""
    match document:
        case Mapping():
            return {key: without_times(value) for key, value in document.items() if not timed(key)}
        case list():
            return [without_times(value) for value in document]
    return document


def timed(key: str) -> bool:
    """Return whether a key is of a time, or of what depends on it."""
    return bool(
        re.search(r"seconds|latency|ttft|ttfo|tpot|itl|_s$|_at$|per_s|in_flight|at_once|minutes|hours", key)
    )
