"""A function in a source file: `my_module:function`, found beside the sweep file or in the working directory.

No other place is looked in, and nothing else of that folder can be imported by it.
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from asyncbench.errors import ConfigError
from asyncbench.files import found_input, input_path


@dataclass(frozen=True, kw_only=True)
class OwnFunction:
    """A function that is none of ours."""

    name: str  # as results name it
    call: Callable[..., Any]  # Any: what somebody else's function returns
    digest: str  # SHA-256 of its source file: 64 hexadecimal characters
    source: bytes | None = None  # of that file; None: it is of a package, which other machines have, too

    def __reduce__(self) -> tuple[object, ...]:
        """Be pickled as its source: another machine has no such file."""
        if self.source is None:
            return super().__reduce__()  # type: ignore[return-value]  # of an object it is a tuple
        return function_of, (self.name, self.source)

    @cached_property
    def version(self) -> int:
        """What stands for the source where a version is a number."""
        return version_of(self.digest)


def version_of(digest: str) -> int:
    """Return the number that the first seven digits of a source's digest are."""
    return int(digest[:7], 16)


def is_in_file(name: str) -> bool:
    """Return whether a name means a function in a file, rather than one of ours or of a package."""
    return ":" in name


def file_named(name: str, near: Path | None) -> str:
    """Return the same name with the path of its file, so that it needs no sweep file `near` it."""
    path, function = _parts(name)
    return f"{input_path(path, near)}:{function}"


def function_named(name: str, near: Path | None, *, place: str, takes: tuple[str, ...]) -> OwnFunction:
    """Import the file of a function and return it; the same source is imported once.

    Args:
        name: `my_module:function`, or with a path: `graders/my_module.py:function`.
        near: the sweep file that names it; its folder is looked in first, then the working directory.
        place: where the name stands, for messages.
        takes: what the function is called with, in order.

    Raises:
        ConfigError: there is no such file or function, the import fails, or it takes something else.
    """
    path, function = _parts(name)
    way_out = "Put the file beside the sweep file, or correct the name"
    found = found_input(path, near, place=place, way_out=way_out)
    try:
        source = found.read_bytes()
    except OSError as error:
        raise ConfigError(f"{place}: {found} cannot be read: {error.strerror}. {way_out}.") from None
    digest = sha256(source).hexdigest()
    call = getattr(_imported(source, found, digest, place=place), function, None)
    checked = checked_callable(call, function, place=f"{place}: {found}", takes=takes)
    return OwnFunction(name=f"{path.stem}:{function}", call=checked, digest=digest, source=source)


def function_of(name: str, source: bytes) -> OwnFunction:
    """Return a function that was found and checked on another machine, of the source of its file.

    Raises:
        ConfigError: the import fails here.
    """
    path, function = _parts(name)
    digest = sha256(source).hexdigest()
    call = getattr(_imported(source, path, digest, place=f"grader {name!r} on this worker"), function)
    return OwnFunction(name=name, call=call, digest=digest, source=source)


def checked_callable(call: object, name: str, *, place: str, takes: tuple[str, ...]) -> Callable[..., Any]:
    """Return what can be called with so many arguments.

    Raises:
        ConfigError: it is no function, an asynchronous one, or takes something else.
    """
    wanted = f"`def {name}({', '.join(takes)})`"
    if not callable(call):
        raise ConfigError(f"{place}: it has no function {name!r}. Define {wanted}.")
    if inspect.iscoroutinefunction(call):
        raise ConfigError(f"{place}: {name!r} is asynchronous. Define it without `async`: {wanted}.")
    try:
        inspect.signature(call).bind(*takes)
    except TypeError:
        raise ConfigError(f"{place}: {name!r} takes other arguments. Define {wanted}.") from None
    except ValueError:
        pass  # a function in C does not say what it takes
    return call


def _parts(name: str) -> tuple[Path, str]:
    file, _, function = name.rpartition(":")
    return Path(file if file.endswith(".py") else f"{file}.py"), function


def _imported(source: bytes, path: Path, digest: str, *, place: str) -> ModuleType:
    name = f"_asyncbench_{path.stem}_{digest[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102  the sweep names this file
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        said = " ".join(str(error).split()).rstrip(".")
        raise ConfigError(
            f"{place}: {path} cannot be imported: {type(error).__name__}: {said}. Correct it. It may import "
            "installed packages, but no file beside it."
        ) from error
    return module
