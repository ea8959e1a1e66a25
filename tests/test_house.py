"""The house: imports, public modules, and names that mean one thing."""

import ast
import importlib
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
import typer

import asyncbench
from asyncbench.cli import app
from asyncbench.reports.styles import STYLES
from docs import house

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "asyncbench"

SDKS = {  # the only folders of `providers` that import each
    "openai": {"azure", "openai"},
    "anthropic": {"anthropic", "bedrock", "vertex_anthropic"},
    "azure": {"azure"},
    "botocore": {"bedrock"},
    "google": {"google"},
}
AT_THE_ROOT = {"__init__", "__main__", "cli", "contents", "errors", "files", "pricing"}
# Names for everyone: records flow through all rooms, and packages of yours build on suites and providers.
OPEN_DOORS = {"records", "suites", "providers"}
PROGRAMS = {"providers.workers.worker", "simulator.__main__"}  # run as processes

FILES = sorted(HOUSE.rglob("*.py"))
COMMANDS = [command.name for command in vars(typer.main.get_command(app))["commands"].values()]


def room_of(module: str) -> str:
    """asyncbench.engine.lane → engine; asyncbench itself → __init__."""
    return [*module.split("."), "__init__"][1]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


@cache
def imports_of(path: Path) -> set[str]:
    """Every module named by an import statement, wherever it stands in the file."""
    modules: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            modules |= {_named(node.module or "", alias.name) for alias in node.names}
    return modules


def _named(module: str, name: str) -> str:
    """`from asyncbench.store import journal` names the module asyncbench.store.journal."""
    return whole if (whole := f"{module}.{name}") in MODULES else module


def ours() -> dict[str, set[str]]:
    """Which of our modules each of them imports; not read before a test asks."""
    return {
        module: {name for name in imports_of(path) if name.split(".")[0] == "asyncbench"} - {module}
        for module, path in MODULES.items()
    }


def between_rooms() -> list[tuple[str, str]]:
    pairs = [(module, imported) for module, names in ours().items() for imported in sorted(names)]
    assert len(pairs) > 1000
    return [(module, imported) for module, imported in pairs if room_of(module) != room_of(imported)]


def public_modules(room: str) -> list[str]:
    """The list PUBLIC of a room's `__init__`."""
    for node in tree_of(HOUSE / room / "__init__.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PUBLIC":
            return list(ast.literal_eval(node.value))
    return []


@pytest.mark.long
def test_imports_point_down():
    """The contracts of import-linter in pyproject.toml name the rooms from top to bottom."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_rooms_import_public_modules_of_other_rooms_alone():
    wrong = [
        f"{module} imports {imported}, which is not in PUBLIC of its room"
        for module, imported in between_rooms()
        for room, name in [(room_of(imported), imported.split(".", 2)[2:])]
        if room not in AT_THE_ROOT
        and not (room in OPEN_DOORS and not name)
        and (not name or name[0] not in public_modules(room))
    ]
    assert wrong == []


@pytest.mark.parametrize("room", house.rooms())
def test_a_public_module_is_one_that_another_room_imports(room):
    read = {imported.split(".", 2)[-1] for _, imported in between_rooms() if room_of(imported) == room}
    read |= {style.module.removeprefix(f"{room}.") for style in STYLES.values()}  # imported by name
    assert public_modules(room) == sorted(public_modules(room))
    assert set(public_modules(room)) <= read


def test_the_init_of_a_room_says_what_it_is_for_and_holds_no_code():
    inits = [path for path in FILES if path.name == "__init__.py" and path.parent != HOUSE]
    assert len(inits) > 20
    for init in inits:
        tree = tree_of(init)
        assert ast.get_docstring(tree), init
        for node in tree.body[1:]:
            assert isinstance(node, ast.ImportFrom | ast.Assign), f"{init}:{node.lineno}"


def test_no_module_is_homeless():
    assert {path.stem for path in HOUSE.glob("*.py")} == AT_THE_ROOT


def test_no_imports_go_round_in_circles():
    TopologicalSorter({module: names & set(MODULES) for module, names in ours().items()}).prepare()


def test_the_picture_of_the_house_is_drawn_from_the_code():
    """`python -m docs.house` draws it anew."""
    assert house.PICTURE.read_text("utf-8") == house.svg()


@pytest.mark.parametrize("sdk", SDKS)
def test_an_sdk_is_imported_by_its_own_folder_alone(sdk):
    importers = {path.relative_to(HOUSE).parent for path in FILES if sdk in _tops(path)}
    assert importers == {Path("providers") / folder for folder in SDKS[sdk]}


def _tops(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports_of(path)}


def test_no_class_name_stands_for_two_classes():
    places = defaultdict(set)
    for path in FILES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(str(path.relative_to(HOUSE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


FORMS = {"as_text", "as_markdown", "as_latex", "as_json"}
WRITTEN_ELSEWHERE = {
    "Sheet",  # a part of a report
    "Answer",  # batches of any query's rows
    "Summary",  # of a run, to become a report
    "Written",  # likewise, of a page
}


def test_every_report_is_written_in_one_place():
    writers = {
        node.name
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef)
        and FORMS & {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    }
    assert writers == {"Report"} | WRITTEN_ELSEWHERE


def test_no_room_has_the_name_of_a_public_function():
    assert set(asyncbench.__all__).isdisjoint({*house.rooms(), *AT_THE_ROOT})


@pytest.mark.long
def test_public_names_are_functions_though_every_room_was_imported_before():
    rooms = sorted({*house.rooms(), *AT_THE_ROOT} - {"__init__", "__main__"})
    code = f"""
import {", ".join(f"asyncbench.{room}" for room in rooms)}
print([name for name in asyncbench.__all__ if not callable(getattr(asyncbench, name))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


@pytest.mark.long
@pytest.mark.parametrize(
    "module",
    ["providers.endpoints", "config.sweep", "planning.sweep_plan", "reports.report", "commands.running"],
)
def test_what_makes_no_call_waits_for_no_library_that_does(module):
    code = f"import sys, asyncbench.{module}; print({{'aiohttp', 'openai', 'anthropic'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "set()\n"


@pytest.mark.long
@pytest.mark.parametrize("module", ["page.writing", "page.live.serving", "page.charts.figure_files", "cli"])
def test_extras_are_loaded_where_they_are_used_alone(module):
    extras = "{'huggingface_hub', 'obstore', 'ray', 'vl_convert'}"
    code = f"import sys, asyncbench.{module}; print({extras} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "set()\n"


def test_every_module_can_be_imported():
    for module in MODULES:
        if not module.endswith("__main__"):
            importlib.import_module(module)


def test_a_path_in_a_command_that_a_message_names_is_quoted():
    """Of each f-string the first value after `asyncbench run …`: somebody may copy the command."""
    command = re.compile(rf"asyncbench ({'|'.join(COMMANDS)}) [^`.{{]*$")
    texts = [node for path in FILES for node in nodes_of(path) if isinstance(node, ast.JoinedStr)]
    bare, found = [], 0
    for text in texts:
        for before, value in pairwise(text.values):
            if isinstance(before, ast.Constant) and command.search(str(before.value)):
                found += 1
                word = ast.unparse(value)
                bare += [] if any(one in word for one in ("quote", "join", "keys", "provider")) else [word]
    assert found > 20
    assert not bare
