"""Functions and suites that a program hands over as objects, and the texts by which a sweep names them.

A function at the top of a file is named by it: `/path/mine.py:answer`. Its source says whether it is the same
another time. What a notebook, a lambda or a closure holds nobody can tell, so such a function is named by a
mark of this process: `session:answer@4f0c1b6a92de`.
"""

import ast
import secrets
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any, Final

from asyncbench.errors import ConfigError

SESSION: Final = "session:"
MARK: Final = 12  # hexadecimal digits
_HANDED: Final[dict[str, Any]] = {}  # by the text that names it


def text_of_function(function: Callable[..., Any]) -> str:
    """Return the text that names a function in this process, and make the function known by it."""
    path, called = file_of(function), getattr(function, "__name__", type(function).__name__)
    return _text_of(function, None if path is None else f"{path}:{called}", called.strip("<>"))


def text_of_suite(suite: Any) -> str:  # Any: this module knows no suites
    """Return the text that names a suite in this process, and make the suite known by it.

    A file names it whose top holds both the suite and the function that grades.
    """
    path, module = file_of(suite.grade), sys.modules.get(getattr(suite.grade, "__module__", ""))
    names = [name for name, value in vars(module).items() if value is suite] if module else []
    return _text_of(suite, f"{path}:{names[0]}" if path and names else None, suite.name)


def _text_of(value: Any, in_file: str | None, called: str) -> str:
    earlier = (text for text, other in _HANDED.items() if other is value and text.startswith(SESSION))
    name = in_file or next(earlier, None) or f"{SESSION}{called}@{secrets.token_hex(MARK // 2)}"
    _HANDED[name] = value
    return name


def file_of(function: Callable[..., Any]) -> Path | None:
    """Return the file that holds the whole source of a function, or None if no file does.

    None does of a lambda, a closure, a wrapped function, one of a notebook, and one whose file has changed
    since it was imported.
    """
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or function.__qualname__ != code.co_name or code.co_name == "<lambda>":
        return None
    path = Path(code.co_filename)
    if path.suffix != ".py" or not path.is_file():
        return None
    compiled = compile(path.read_bytes(), code.co_filename, "exec", dont_inherit=True)
    return path.resolve() if code in compiled.co_consts else None


def handed_object(name: str, *, place: str) -> Any:  # Any: a function or a suite
    """Return the object that a text names, or None if it stands in a file and nobody handed it over.

    Raises:
        ConfigError: it was an object of another process.
    """
    if name in _HANDED:
        return _HANDED[name]
    if name.startswith(SESSION):
        raise ConfigError(
            f"{place}: {session_name(name)!r} is of a Python session that has ended. Hand it "
            "over again in Python. To use it from the command line, define it in a file: `mine.py:NAME`."
        )
    return None


def session_name(text: str) -> str:
    """Return the name that a function of a session has in its code."""
    return text.removeprefix(SESSION).partition("@")[0]


def digest_of_definition(source: bytes, name: str) -> str | None:
    """Return a digest of a definition and what it uses of its file, or None if the file lacks the name.

    Other lines of the file, such as those that run a sweep, may change.

    Raises:
        SyntaxError: it is no Python.
    """
    lines, defined = source.splitlines(), dict[str, list[ast.stmt]]()
    for statement in ast.parse(source).body:
        for bound in _names_bound(statement):
            defined.setdefault(bound, []).append(statement)
    if name not in defined:
        return None

    # each statement that it needs, and what that needs in turn
    needed, waiting = set[tuple[int, int]](), [name]
    while waiting:
        for statement in defined.pop(waiting.pop(), ()):
            decorators = [node.lineno for node in getattr(statement, "decorator_list", ())]
            needed.add((min([statement.lineno, *decorators]), statement.end_lineno or statement.lineno))
            waiting += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    texts = [lines[first - 1 : last] for first, last in sorted(needed)]
    return sha256(b"\n".join(line.rstrip() for text in texts for line in text)).hexdigest()


def _names_bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a file defines, also inside `if` and `try`."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names = set[str]()
    for node in ast.walk(statement):
        if isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names
