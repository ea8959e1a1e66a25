"""The place of a value in a sweep, by file and line or by its keys, and bounded reading of YAML."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from asyncbench.errors import ConfigError
from asyncbench.files import MOST_BYTES, text_of
from asyncbench.providers.secrets import without_pasted_key

_LONGEST: Final = 60  # characters of a name or a value in a message


def shortened(text: str, most: int = _LONGEST) -> str:
    """Return what a message shows of a text that somebody wrote: no API key, and not pages of it."""
    text = without_pasted_key(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


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
        """The line of the file; None: there is no file, or none of the keys is in it."""
        nodes = list(_nodes(self.root, self._written))
        return nodes[-1].start_mark.line + 1 if nodes else None

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


def _nodes(node: yaml.Node | None, keys: tuple[str | int, ...]) -> Iterator[yaml.Node]:
    """Yield what stands on the way to a value: of mappings the keys, of lists the items."""
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            pairs = [pair for pair in node.value if pair[0].value == key]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            pairs = [(item, item) for item in node.value[key : key + 1]]
        else:
            return
        if not pairs:
            return
        key_node, node = pairs[-1]  # a key that is merged (`<<`) stands before the mapping's own
        yield key_node


# ── reading YAML within bounds of time and memory
# A few hundred bytes of YAML can nest without end, or stand for gigabytes through aliases. So depth and
# size are counted while the file is read, an alias as often as it stands.


DEEPEST: Final = 100  # levels of lists and mappings; JSON is sent with at most 254
_A_NODE: Final = 32  # bytes that a value counts beside its text
_LONGEST_NUMBER: Final = 100  # characters; 64 bits need fewer, even in binary
_LONGEST_FAULT: Final = 200  # characters of what the library says; it quotes what it cannot read


def yaml_of(path: Path) -> tuple[object, Place]:
    """Return what a YAML file holds, and the place that knows the line of each value.

    Raises:
        ConfigError: it cannot be read, is not YAML, says a key twice, or is too deep or too large.
    """
    text = text_of(path, place=str(path), way_out="Give the path of a sweep file")
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
