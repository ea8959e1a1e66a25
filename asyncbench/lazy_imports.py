"""Lazy imports for the command: it loads only those rooms and SDKs that it uses.

The `__init__` of such a package mostly says where names are. When the package is imported, only these names
are noted. The first use of one loads the module that it comes from, and nothing else. Any other name runs the
`__init__`, whole; so whatever a package does beyond naming is done before it is seen.

Without this, `import anthropic` loads 3,000 modules, of which a call needs 250. It is for our own processes:
whoever imports asyncbench imports all else as ever.
"""

import builtins
import dataclasses
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, resolve_name
from threading import RLock
from types import CodeType, ModuleType
from typing import Any, Final, NamedTuple

_TOPS: Final = ("asyncbench", "anthropic", "openai")
# A module of a few functions, for which 700 others would be loaded; no call of ours is traced.
_RARE: Final = "anthropic.lib._tracing._api_call"

_import: Final = builtins.__import__


class UnrunPackage(ModuleType):
    """A package whose `__init__` has not run."""

    def __getattr__(self, name: str) -> Any:  # whatever its `__init__` would name so
        own = vars(self)
        if (known := own["__named__"].get(name)) is not None:
            own[name] = getattr(_import(known.module, None, None, (known.name,)), known.name)
        elif not name.startswith("__") and find_spec(f"{self.__name__}.{name}"):
            import_module(f"{self.__name__}.{name}")
        elif not _run(self):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        """Keep a name for what the `__init__` names so, where a module is called the same."""
        if not (isinstance(value, ModuleType) and name in vars(self)["__named__"]):
            super().__setattr__(name, value)


class UnrunFunctions(ModuleType):
    """A module that has not run: the first call of one of its functions runs it."""

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # every import looks whether it is a package
            raise AttributeError(name)
        if name.startswith("__") or not name.islower():  # a class must be itself
            _run(self)
            return vars(self)[name]

        def function(*args: object, **named: object) -> Any:
            _run(self)
            return vars(self)[name](*args, **named)

        return function


_running: Final = RLock()


def _run(module: ModuleType) -> bool:
    """Run a module that has not run; return False while it runs."""
    with _running:
        if (loader := vars(module).pop("__waits__", None)) is not None:
            try:
                loader.exec_module(module)
            except BaseException:
                vars(module)["__waits__"] = loader
                raise
            module.__class__ = ModuleType
    return type(module) is ModuleType


class NamedImport(NamedTuple):
    """What `from module import name` would give."""

    module: str
    name: str


class NamesOnly:
    """Stands for a module of which an `__init__` only takes names."""

    __all__ = ()  # of `import *`: nothing is known

    def __init__(self, module: str) -> None:
        self.module = module

    def __getattr__(self, name: str) -> NamedImport:
        return NamedImport(self.module, name)


def _names_in(code: CodeType, package: str) -> dict[str, NamedImport]:
    """Return what the imports of an `__init__` name, up to the first statement that needs one of them.

    The statements before that are run, apart from the package: they import and define.
    """

    def noted(
        name: str,
        of: Any = None,
        place: Any = None,
        names: Sequence[str] | None = (),
        level: int = 0,
    ) -> object:
        module = resolve_name("." * level + name, package) if level else name
        if names and module.partition(".")[0] == package.partition(".")[0]:
            return NamesOnly(module)
        return _import(name, of, place, names or (), level)

    namespace: dict[str, Any] = {"__name__": package, "__builtins__": {**vars(builtins), "__import__": noted}}
    with suppress(Exception):  # all up to there is known; the rest comes when the `__init__` runs
        exec(code, namespace)  # noqa: S102  a package that is being imported
    named = {name: value for name, value in namespace.items() if isinstance(value, NamedImport)}
    return {name: value for name, value in named.items() if value.module != package}  # else its own modules


class LaterRun:
    """Loads a module without running it."""

    def __init__(self, loader: Any) -> None:  # one of those that have code
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the interpreter."""

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__waits__"] = self._loader
        if module.__name__ == _RARE:
            module.__class__ = UnrunFunctions
            return
        vars(module)["__named__"] = _names_in(self._loader.get_code(module.__name__), module.__name__)
        module.__class__ = UnrunPackage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # the package's resources and source


class AsUsed:
    """Finds packages that are loaded as far as they are used."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, *_: object) -> Any:
        if name.partition(".")[0] not in _TOPS:
            return None
        spec = PathFinder.find_spec(name, path)
        waits = spec is not None and (spec.submodule_search_locations is not None or name == _RARE)
        if spec is not None and waits and spec.loader is not None:  # None: a folder without an `__init__`
            spec.loader = LaterRun(spec.loader)  # type: ignore[assignment]  # it has what a loader needs
        return spec


class NoPandas:
    """Tells pyarrow, as soon as it is there, that there is no pandas.

    At its first array of Python objects, pyarrow loads pandas to see whether they belong to it. Where a
    DataFrame is asked for, pyarrow looks for pandas again.
    """

    asking = False

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas" and self.asking:
            raise ModuleNotFoundError(name=name)
        if name.startswith("pyarrow.") and (array := getattr(sys.modules.get("pyarrow"), "array", None)):
            self.asking = True
            array([0])
            sys.meta_path.remove(self)


def _compiled_at_first_call(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes the methods of a dataclass, so that it compiles each when it is first called.

    A dataclass has six, of which most are never called; two hundred classes take 0.2 s.
    """

    def make(name: str, arguments: Any, body: Any, **others: Any) -> Any:  # as `dataclasses` has it
        def method(self: Any, *args: Any, **named: Any) -> Any:
            own = compiled(name, arguments, body, **others)
            own.__qualname__ = method.__qualname__
            for cls in type(self).__mro__:
                if vars(cls).get(name) is method:
                    setattr(cls, name, own)
            return own(self, *args, **named)

        method.__name__ = name
        return method if name.startswith("__") else compiled(name, arguments, body, **others)

    return make


def import_lazily() -> None:
    """Load packages as far as they are used, from now on.

    Of those of `_TOPS` only the modules that are used, pandas for DataFrames alone, and the methods of
    dataclasses when they are called.
    """
    sys.meta_path[:0] = [AsUsed(), NoPandas()]
    if hasattr(dataclasses, "_create_fn"):  # later versions of Python compile those of a class together
        dataclasses._create_fn = _compiled_at_first_call(dataclasses._create_fn)
