"""Suites, graders and providers of installed packages, and functions in source files of the user.

Nothing of them is imported before it is looked up.
"""

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Generic, TypeVar

from asyncbench.errors import ConfigError
from asyncbench.files import found_input, input_path
from asyncbench.suites.handed_functions import SESSION, handed_object, session_name

T = TypeVar("T")
_IMPORTING: Final[ContextVar[Path]] = ContextVar("file of a function that is being imported")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of a suite, grader or provider that is not one of ours."""

    kind: str  # suites, graders or providers
    name: str
    package: str  # of a definition in a file: the name of the file
    version: str  # of the package
    source: str  # SHA-256 of the package's Python files, or of a definition in a file: 64 hex characters


class WithPackages(Mapping[str, T], Generic[T]):
    """Values by name: those of asyncbench, and after them those of packages and of the user's files."""

    def __init__(
        self,
        kind: str,
        ours: Mapping[str, T],
        make_value: Callable[[object, Origin], T],
        *,
        reserved: Collection[str] = (),
    ) -> None:
        """Make the table. Packages are searched when a name is first looked up.

        Args:
            kind: suites, graders or providers; packages add them by entry points such as asyncbench.suites.
            ours: the values of asyncbench itself.
            make_value: checks the object of an entry point and makes a value of it; raises ValueError
                with the rule that is broken.
            reserved: more names that no package may add.
        """
        self._kind, self.ours, self._make_value = kind, ours, make_value
        self._reserved = {*ours, *reserved}
        self._loaded: dict[str, tuple[T, Origin]] = {}

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        entries: dict[str, EntryPoint] = {}
        for entry in entry_points(group=f"asyncbench.{self._kind}"):
            if entry.name in self._reserved or entries.setdefault(entry.name, entry).value != entry.value:
                raise ConfigError(
                    f"{_package(entry)} adds {entry.name!r} to asyncbench's {self._kind}, which have "
                    "that name already. Uninstall it, or one of the two packages."
                )
        return entries

    def __getitem__(self, name: str) -> T:
        return self.ours[name] if name in self.ours else self._load(name)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.ours, *self._entries, *self._loaded]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self.ours or name in self._entries or name in self._loaded

    def add(self, value: T, origin: Origin) -> None:
        """Add a value from a file or a program of the user. It replaces an earlier one of the same name.

        Raises:
            ValueError: its name is one of ours, or of a package.
        """
        if origin.name in self._reserved or origin.name in self._entries:
            raise ValueError(f"the name {origin.name!r} is taken. Choose another")
        self._loaded[origin.name] = value, origin

    def find(self, name: str) -> T | None:
        """Return the value of a name, or None if there is none or a package's value cannot be used."""
        try:
            return self[name]
        except (ConfigError, KeyError):
            return None

    def origins(self, names: Collection[str]) -> list[dict[str, str]]:
        """Return the origins of those names that are not ours, as results record them."""
        added = {*self._entries, *self._loaded}
        return [asdict(self._load(name)[1]) for name in sorted(names) if name in added]

    def _load(self, name: str) -> tuple[T, Origin]:
        if name not in self._loaded:
            entry = self._entries[name]  # a KeyError where there is none, as of any mapping
            try:
                loaded = entry.load()
                package, version = (entry.dist.name, entry.dist.version) if entry.dist else (entry.module, "")
                origin = Origin(
                    kind=self._kind, name=entry.name, package=package, version=version, source=_digest(entry)
                )
                self._loaded[name] = self._make_value(loaded, origin), origin
            except (Exception, SystemExit) as error:
                reason = " ".join(str(error).split()).rstrip(".")
                raise ConfigError(
                    f"{_package(entry)} adds {name!r} to asyncbench's {self._kind}, but it cannot be used: "
                    f"{type(error).__name__}: {reason}. Update or uninstall the package."
                ) from error
        return self._loaded[name]


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name if entry.dist else entry.module}"


def _digest(entry: EntryPoint) -> str:
    """Return the digest of a package's Python files.

    A package that is installed in place lists no files, so its digest is that of one module.
    """
    listed = (entry.dist.files if entry.dist else None) or []
    sources = {str(file): Path(str(file.locate())) for file in listed if file.suffix == ".py"}
    if not sources:
        sources = {entry.module: Path(str(sys.modules[entry.module].__file__))}
    digest = sha256()
    for name, path in sorted(sources.items()):
        digest.update(f"{name}\n{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


# ── functions in source files
# A file is looked for beside the sweep file, then in the working directory. It cannot import its neighbours.


@dataclass(frozen=True, kw_only=True)
class OwnFunction:
    """A function that a user or a package brings, such as a grader."""

    name: str  # as results name it
    call: Callable[..., Any]  # Any: what somebody else's function returns
    digest: str  # SHA-256 of its source file: 64 hexadecimal characters
    source: bytes | None = None  # of that file; None: no file is sent along (a package's, or of a session)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the source of its file along, since another machine does not have that file."""
        if self.source is None:
            return super().__reduce__()  # type: ignore[return-value]  # a tuple: a str is for globals
        return function_of, (self.name, self.source)

    @cached_property
    def version(self) -> int:
        """The version of the function: it changes whenever its source does."""
        return version_of(self.digest)


def version_of(digest: str) -> int:
    """Return the first seven hexadecimal digits of a source's digest, as a number."""
    return int(digest[:7], 16)


def is_in_file(name: str) -> bool:
    """Return whether a name means a definition in a file or a session, not one of ours or of a package."""
    return ":" in name


def defined_name(name: str) -> str:
    """Return the name of a definition in a file or a session: the word behind the colon."""
    return session_name(name) if name.startswith(SESSION) else _parts(name)[1]


def file_named(name: str, near: Path | None) -> str:
    """Return a name with the path of its file, so that it can be found without the sweep file `near` it."""
    if name.startswith(SESSION):
        return name
    path, function = _parts(name)
    return f"{input_path(path, near)}:{function}"


def function_named(
    name: str, near: Path | None, *, place: str, takes: tuple[str, ...], awaited: bool = False
) -> OwnFunction:
    """Return the function that a name means, from its file or as a program handed it over.

    The same source is imported once.

    Args:
        name: `my_module:function`, or with a path: `graders/my_module.py:function`.
        near: the sweep file that names it; its folder is looked in first, then the working directory.
        place: where the name stands, for messages.
        takes: the names of the arguments that it is called with, in order.
        awaited: the function may be asynchronous.

    Raises:
        ConfigError: there is no such file or function, the import fails, or its arguments are others.
    """
    # A function of a session has no file: only the object that was handed over.
    handed = handed_object(name, place=place)
    if handed is not None and name.startswith(SESSION):
        called = session_name(name)
        call = checked_callable(handed, called, place=place, takes=takes, awaited=awaited)
        return OwnFunction(name=f"{SESSION}{called}", call=call, digest=sha256(name.encode()).hexdigest())

    # Any other has one, whose source identifies it. It is not imported again if the object was handed over.
    file, function, source = source_named(name, near, place=place)
    found = handed or getattr(imported(source, file, place=place), function, None)
    checked = checked_callable(found, function, place=f"{place}: {file}", takes=takes, awaited=awaited)
    digest = sha256(source).hexdigest()
    return OwnFunction(name=f"{file.stem}:{function}", call=checked, digest=digest, source=source)


def source_named(name: str, near: Path | None, *, place: str) -> tuple[Path, str, bytes]:
    """Return the file that `mine.py:NAME` means, the name in it, and its source.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
    """
    path, defined = _parts(name)
    way_out = "Put the file beside the sweep file, or correct the name"
    file = found_input(path, near, place=place, way_out=way_out)
    try:
        return file, defined, file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{place}: {file} cannot be read: {error.strerror}. {way_out}.") from None


def function_of(name: str, source: bytes) -> OwnFunction:
    """Make a function from the source of its file, as another machine found and checked it.

    Raises:
        ConfigError: the import fails here.
    """
    path, function = _parts(name)
    call = getattr(imported(source, path, place=f"grader {name!r} on this worker"), function)
    return OwnFunction(name=name, call=call, digest=sha256(source).hexdigest(), source=source)


def checked_callable(
    call: object, name: str, *, place: str, takes: tuple[str, ...], awaited: bool = False
) -> Callable[..., Any]:
    """Return `call` if it is a function that takes these arguments.

    Raises:
        ConfigError: it is no function, is asynchronous though not `awaited`, or takes other arguments.
    """
    wanted = f"`def {name}({', '.join(takes)})`"
    if not callable(call):
        raise ConfigError(f"{place}: it has no function {name!r}. Define {wanted}.")
    if not awaited and inspect.iscoroutinefunction(call):
        raise ConfigError(f"{place}: {name!r} is asynchronous. Define it without `async`: {wanted}.")
    try:
        signature = inspect.signature(call)
        bind = signature.bind_partial if awaited else signature.bind  # a model may take its parameters, too
        bind(*takes)
    except TypeError:
        raise ConfigError(f"{place}: {name!r} takes other arguments. Define {wanted}.") from None
    except ValueError:
        pass  # a function in C has no signature
    return call


def _parts(name: str) -> tuple[Path, str]:
    file, _, function = name.rpartition(":")
    return Path(file if file.endswith(".py") else f"{file}.py"), function


def imported(source: bytes, path: Path, *, place: str) -> ModuleType:
    """Import a source file and return its module; the same source is imported once.

    Raises:
        ConfigError: the import fails.
    """
    name = f"_asyncbench_{path.stem}_{sha256(source).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # a dataclass of the file looks its module up here
    importing = _IMPORTING.set(path)
    try:
        exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102  the sweep names this file
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        reason = " ".join(str(error).split()).rstrip(".")
        raise ConfigError(
            f"{place}: {path} cannot be imported: {type(error).__name__}: {reason}. Correct it. It may "
            "import installed packages, but no file beside it."
        ) from error
    finally:
        _IMPORTING.reset(importing)
    return module


def check_no_import() -> None:
    """Refuse to start a run while a file that a sweep names is being imported.

    Raises:
        ConfigError: the file runs a sweep when it is imported.
    """
    if (file := _IMPORTING.get(None)) is not None:
        raise ConfigError(
            f'{file} runs a sweep when it is imported. Put that under `if __name__ == "__main__":`.'
        )
