"""Where a value of a sweep stands, by file and line or else by its keys, and how a message quotes it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import yaml

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
        shown = (f"[{key + 1}]" if isinstance(key, int) else f".{shortened(key)}" for key in self._written)
        return "".join(shown).removeprefix(".")

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
            found = [pair for pair in node.value if pair[0].value == key]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            found = [(item, item) for item in node.value[key : key + 1]]
        else:
            return
        if not found:
            return
        shown, node = found[-1]  # a key that is merged (`<<`) stands before the mapping's own
        yield shown
