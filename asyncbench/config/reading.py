"""YAML that people hand us, read within bounds: no file takes minutes or all memory.

A few hundred bytes of YAML can nest without end, or stand for gigabytes through aliases. So depth and size
are counted while the file is read, an alias as often as it stands.
"""

from pathlib import Path
from typing import Any, Final

import yaml

from asyncbench.config.place import Place, quoted, shortened
from asyncbench.errors import ConfigError
from asyncbench.files import MOST_BYTES, text_of

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
            said = shortened(" ".join(filter(None, (error.context, error.problem))), _LONGEST_FAULT)
            where = f"{path}, line {mark.line + 1}, column {mark.column + 1}"
            raise ConfigError(f"{where}: cannot be read as YAML: {said}") from None
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
        given = self._anchored.get(event.anchor, (0, 1)) if alias else (_A_NODE, 1)
        before, outside = self._size, self._deepest
        self._size += given[0] + len(getattr(event, "value", ""))
        self._depth += 1
        self._deepest = self._depth + given[1] - 1
        if self._deepest > DEEPEST:
            raise _refused(f"nested deeper than {DEEPEST} levels; write it flatter", event.start_mark)
        if self._size > MOST_BYTES:
            said = f"more than {MOST_BYTES:,} bytes with its aliases written out; use fewer"
            raise _refused(said, event.start_mark)
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
