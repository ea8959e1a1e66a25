"""What is typed and imported: commands with their options, exit codes, Python names, keys of a sweep file."""

import inspect
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, get_args, get_type_hints
from unittest.mock import patch

import typer
from typer.core import TyperGroup

import asyncbench as ab
from asyncbench import cli, errors
from asyncbench.config.sweep_file import sweep_schema
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.run.summary import Exit
from asyncbench.simulator.counts import ServerStats
from asyncbench.suites.table import SUITES
from tests.commands import asyncbench_here

PLACES = re.compile(r"\b(?:asyncbench|pathlib)(?:\.\w+)*\.(?=\w)|\b(?:typing|collections\.abc)\.")
LATER = {"ServerStats": ServerStats}  # what runs import for type checkers alone
UNION = re.compile(r"Union\[((?:[^\[\]]|\[[^\[\]]*\])*)\]")


# ── commands ─────────────────────────────────────────────────────────────────────────────────


def commands() -> dict[str, Any]:
    """Return every command by its name, with its parameters."""
    group = typer.main.get_command(cli.app)
    assert isinstance(group, TyperGroup)
    return dict(group.commands)


def option_lines() -> list[str]:
    """Return every command with its arguments and options, parameters of suites, and keys of providers."""
    top = vars(typer.main.get_command(cli.app))["params"]
    lines = ["asyncbench", *(_parameter(one) for one in top)]
    for name, command in commands().items():
        lines += [f"asyncbench {name}", *map(_parameter, command.params)]
    for name, suite in SUITES.items():
        graders = ", ".join(suite.graders)
        lines.append(f"generate {name}, version {suite.generator_version}, graders {graders}")
        for option, meaning in suite.parameters.items():
            lines.append(f"  --{option.replace('_', '-')}{_default(meaning.default)}")
    providers = known_endpoints()
    return [*lines, *(f"provider {name}: key in {providers[name].key_env}" for name in providers)]


def _parameter(one: Any) -> str:
    """Return an option or argument as a line: its names, what it takes, and what holds without it."""
    kind, info = one.type_descriptor.annotation, one.type_descriptor.parameter_info
    what = "flag" if getattr(one, "is_flag", False) else _type(kind)
    facts = {"from": info.min, "to": info.max, "variable": one.envvar}
    said = "".join(f", {name} {value}" for name, value in facts.items() if value is not None)
    many = ", repeatable" if one.nargs == -1 or getattr(one, "multiple", False) else ""
    must = ", required" if one.required else _default(one.default)
    hidden = ", hidden" if getattr(one, "hidden", False) else ""
    is_option = one.param_type_name == "option"
    name = "/".join([*one.opts, *one.secondary_opts]) if is_option else one.metavar
    return f"  {one.param_type_name} {name}: {what}{said}{many}{must}{hidden}"


def _default(value: Any) -> str:
    return "" if value is None or value is False else f", default {value!s}"


# ── exit codes ───────────────────────────────────────────────────────────────────────────────


def exit_lines() -> list[str]:
    """Return the exit codes of runs, then the one of each of our errors, of a bug, and of a wrong option."""
    codes = [f"{code.name}: {code.value}" for code in Exit]
    raised = [one for _, one in sorted(inspect.getmembers(errors, _is_error))]
    made = [*map(_raise, raised), ("RuntimeError", lambda: _fail(RuntimeError("a bug")))]
    made.append(("OSError, no room", lambda: _fail(OSError(28, "No space left on device", "/f"))))
    made.append(("MemoryError", lambda: _fail(MemoryError())))
    for name, act in made:
        with patch.object(cli, "app", act):
            codes.append(f"{name}: {asyncbench_here('run').returncode}")
    return [*codes, f"unknown option: {asyncbench_here('run', '--nothing').returncode}"]


def _is_error(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, errors.AsyncbenchError)


def _raise(kind: type[Exception]) -> tuple[str, Callable[[], None]]:
    words = (errors.ErrorKind.AUTH, "said") if kind is errors.ProviderError else ("said",)
    return kind.__name__, lambda: _fail(kind(*words))


def _fail(error: BaseException) -> None:
    raise error


# ── Python ───────────────────────────────────────────────────────────────────────────────────


def python_lines() -> list[str]:
    """Return the functions of the door, then every class that they take or return, in full."""
    functions = [f"asyncbench.{name}{_signature(getattr(ab, name))}" for name in sorted(ab.__all__)]
    classes = sorted(_reachable(), key=lambda found: found.__name__)
    return [*functions, *(line for found in classes for line in _class(found))]


def _signature(function: Any) -> str:
    return plain(str(inspect.signature(function)))


def plain(text: str) -> str:
    """Return an annotation or default without the modules of our classes, which may move, as `A | B`."""
    return UNION.sub(_alternatives, PLACES.sub("", text))


def _alternatives(union: re.Match[str]) -> str:
    """Return a `Union` in the short form: which of the two Python shows depends on its version."""
    return union[1].replace(", ", " | ").replace("NoneType", "None")


def _reachable() -> set[type]:
    """Return our errors, our classes in the signatures of the door, and those in the fields of these."""
    ahead: list[Any] = [getattr(ab, name) for name in ab.__all__]
    ahead += [one for one in vars(errors).values() if inspect.isclass(one) and _is_ours(one)]
    seen = set[Any]()
    while ahead:
        one = ahead.pop()
        if one not in seen:
            seen.add(one)
            ahead += _named_by(one)
    return {one for one in seen if inspect.isclass(one)}


def _named_by(one: Any) -> list[type]:
    """Return the classes of ours in the annotations of a function or class."""
    with suppress(NameError, TypeError):  # of a name that only a type checker imports
        hints = get_type_hints(one, localns=LATER).values()
        return [found for hint in hints for found in _classes_in(hint) if _is_ours(found)]
    return []


def _classes_in(hint: Any) -> Iterator[type]:
    if inspect.isclass(hint) and not get_args(hint):
        yield hint
    for inner in get_args(hint):
        yield from _classes_in(inner)


def _is_ours(one: type) -> bool:
    return one.__module__.startswith("asyncbench") and not one.__name__.startswith("_")


def _class(found: type) -> Iterator[str]:
    """Yield a class with its members, or with its fields and what else of it has a public name.

    What a class redefines of its bases stands with them.
    """
    bases = ", ".join(base.__name__ for base in found.__bases__ if base is not object)
    yield f"class {found.__name__}({bases})"
    if issubclass(found, Enum):
        yield from (f"  {member.name} = {member.value!r}" for member in found)
        return
    if is_dataclass(found):
        yield from (f"  {one.name}: {_type(one.type)}{_field_default(one)}" for one in fields(found))
    elif "__init__" in vars(found):
        yield f"  __init__{_signature(found.__init__)}"
    named = {one.name for one in fields(found)} if is_dataclass(found) else set[str]()
    named |= {name for base in found.__bases__ for name in dir(base)}
    for name, value in sorted(vars(found).items()):
        if not name.startswith("_") and name not in named:
            yield f"  {name}{_member(value)}"


def _member(value: Any) -> str:
    if isinstance(value, property) or not callable(getattr(value, "__func__", value)):
        return ""
    return _signature(getattr(value, "__func__", value))


def _type(kind: Any) -> str:
    return plain(kind if isinstance(kind, str) else inspect.formatannotation(kind))


def _field_default(one: Field[Any]) -> str:
    if isinstance(one.default, frozenset):
        return f" = {sorted(one.default)}"
    if one.default is not MISSING:
        return f" = {plain(repr(one.default))}"
    if one.default_factory is not MISSING:
        return f" = {getattr(one.default_factory, '__name__', 'made')}()"
    return ""


# ── the sweep file ───────────────────────────────────────────────────────────────────────────


def schema_lines() -> list[str]:
    """Return the JSON schema of sweep files without its sentences."""
    return json.dumps(_without_prose(sweep_schema()), indent=1, sort_keys=True).splitlines()


def _without_prose(node: Any) -> Any:
    if isinstance(node, dict):
        said = ("description", "markdownDescription")
        kept = {key: value for key, value in node.items() if not (key in said and isinstance(value, str))}
        return {key: _without_prose(value) for key, value in kept.items()}
    return list(map(_without_prose, node)) if isinstance(node, list) else node
