"""What installed packages add to a table of ours, by entry points: imported when it is looked up."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Generic, TypeVar

from asyncbench.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where something that a package adds comes from."""

    kind: str  # suites, graders or providers
    name: str
    package: str
    version: str  # of the package
    source: str  # SHA-256 of the package's Python files: 64 hexadecimal characters


class WithPackages(Mapping[str, T], Generic[T]):
    """A table of ours, and after it what packages add to it."""

    def __init__(
        self,
        kind: str,
        ours: Mapping[str, T],
        taken: Callable[[object, Origin], T],
        *,
        reserved: Collection[str] = (),
    ) -> None:
        """Look for nothing yet.

        Args:
            kind: the end of the group of entry points: `asyncbench.` and this.
            ours: what asyncbench has itself.
            taken: makes a value of what an entry point leads to; raises ValueError with the rule.
            reserved: more names that no package may add.
        """
        self._kind, self._ours, self._taken = kind, ours, taken
        self._reserved = {*ours, *reserved}
        self._loaded: dict[str, tuple[T, Origin]] = {}

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        found: dict[str, EntryPoint] = {}
        for entry in entry_points(group=f"asyncbench.{self._kind}"):
            if entry.name in self._reserved or found.setdefault(entry.name, entry).value != entry.value:
                raise ConfigError(
                    f"{_named(entry)} adds {entry.name!r} to asyncbench's {self._kind}, which have that name "
                    "already. Uninstall it, or one of the two packages."
                )
        return found

    def __getitem__(self, name: str) -> T:
        return self._ours[name] if name in self._ours else self._load(name)[0]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._ours, *self._entries])

    def __len__(self) -> int:
        return len(self._ours) + len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._ours or name in self._entries

    def origins(self, names: Collection[str]) -> list[dict[str, str]]:
        """Return where those of the names come from that a package adds, for results."""
        return [asdict(self._load(name)[1]) for name in sorted(names) if name in self._entries]

    def _load(self, name: str) -> tuple[T, Origin]:
        if name not in self._loaded:
            entry = self._entries[name]  # a KeyError where there is none, as of any mapping
            try:
                thing = entry.load()
                origin = _origin(entry, self._kind)
                self._loaded[name] = self._taken(thing, origin), origin
            except (Exception, SystemExit) as error:
                said = " ".join(str(error).split()).rstrip(".")
                raise ConfigError(
                    f"{_named(entry)} adds {name!r} to asyncbench's {self._kind}, but it cannot be used: "
                    f"{type(error).__name__}: {said}. Update or uninstall the package."
                ) from error
        return self._loaded[name]


def _named(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name if entry.dist else entry.module}"


def _origin(entry: EntryPoint, kind: str) -> Origin:
    package, version = (entry.dist.name, entry.dist.version) if entry.dist else (entry.module, "")
    return Origin(kind=kind, name=entry.name, package=package, version=version, source=_digest(entry))


def _digest(entry: EntryPoint) -> str:
    """Return the digest of a package's Python files; of one that is installed in place: of its module."""
    listed = (entry.dist.files if entry.dist else None) or []
    sources = {str(file): Path(str(file.locate())) for file in listed if file.suffix == ".py"}
    if not sources:
        sources = {entry.module: Path(str(sys.modules[entry.module].__file__))}
    digest = sha256()
    for name, path in sorted(sources.items()):
        digest.update(f"{name}\n{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
