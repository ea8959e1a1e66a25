"""The house: floors, doors, and names that mean one thing."""

import ast
import importlib
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import asyncbench

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "asyncbench"

# Bottom to top; a module imports only from the steps before its own. Inside a room, one way likewise.
FLOORS = """
lazy_imports | errors | records, files, shown | plugins, bucket | suites, pricing, stats | prompting |
problems | providers | store | views | config | engine | sweeps, batches, load, control, fleet, cluster |
simulator, servers | planning | run | regrading, merging | results | queries, exchange, published |
reports | charts | page | live | reconciliation, checkup | commands | cli, __init__ | __main__
"""
IMPORTS_ONLY = {"engine": {"errors", "records", "pricing"}}  # the rest is handed to it
SDKS = {"openai": "providers/openai", "anthropic": "providers/anthropic"}  # the only folder to import each
AT_THE_ROOT = {"__init__", "__main__", "cli", "errors", "files", "lazy_imports", "pricing"}

FLOOR = {
    name.strip(): floor for floor, step in enumerate(FLOORS.split("|")) for name in step.strip().split(",")
}
FILES = sorted(HOUSE.rglob("*.py"))


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
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {_named(node.module or "", alias.name) for alias in node.names}
    return found


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
    found = [(module, imported) for module, names in ours().items() for imported in sorted(names)]
    assert len(found) > 1000
    return [(module, imported) for module, imported in found if room_of(module) != room_of(imported)]


@pytest.mark.long
def test_a_module_imports_only_from_the_floors_below():
    wrong = [
        f"{module} imports {imported}"
        for module, imported in between_rooms()
        for room, other in [(room_of(module), room_of(imported))]
        if FLOOR[other] >= FLOOR[room] or other not in IMPORTS_ONLY.get(room, {other})
    ]
    assert wrong == []


def test_another_room_is_entered_through_its_door():
    wrong = [
        f"{module} imports {imported}, not its door"
        for module, imported in between_rooms()
        if MODULES[imported].name != "__init__.py" and room_of(imported) not in AT_THE_ROOT
    ]
    assert wrong == []


def test_a_door_says_what_the_room_is_for_and_holds_no_code():
    doors = [path for path in FILES if path.name == "__init__.py" and path.parent != HOUSE]
    assert len(doors) > 30
    for door in doors:
        tree = tree_of(door)
        assert ast.get_docstring(tree), door
        for node in tree.body[1:]:
            assert isinstance(node, ast.ImportFrom), f"{door}:{node.lineno}"


def test_every_room_has_a_floor():
    assert {room_of(module) for module in MODULES} == set(FLOOR)


def test_no_module_is_homeless():
    assert {path.stem for path in HOUSE.glob("*.py")} == AT_THE_ROOT


def test_no_imports_go_round_in_circles():
    TopologicalSorter({module: names & set(MODULES) for module, names in ours().items()}).prepare()


@pytest.mark.parametrize("sdk", SDKS)
def test_an_sdk_is_imported_by_its_own_folder_alone(sdk):
    importers = {path.relative_to(HOUSE).parent for path in FILES if sdk in _tops(path)}
    assert importers == {Path(SDKS[sdk])}


def _tops(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports_of(path)}


def test_no_class_name_stands_for_two_classes():
    places = defaultdict(set)
    for path in FILES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(str(path.relative_to(HOUSE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


FORMS = {"as_text", "as_markdown", "as_latex", "as_json"}
WRITTEN_ELSEWHERE = {
    "Sheet",  # a part of a report
    "Answer",  # batches of any query's rows
    "Summary",  # of a run, to become a report
    "Written",  # likewise, of a page
}


def test_every_report_is_written_in_one_place():
    found = {
        node.name
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef)
        and FORMS & {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    }
    assert found == {"Report"} | WRITTEN_ELSEWHERE


def test_no_room_has_the_name_of_a_public_function():
    assert set(asyncbench.__all__).isdisjoint(FLOOR)


@pytest.mark.long
def test_public_names_are_functions_though_every_room_was_imported_before():
    rooms = sorted(room for room in FLOOR if room not in {"__init__", "__main__"})
    code = f"""
import {", ".join(f"asyncbench.{room}" for room in rooms)}
print([name for name in asyncbench.__all__ if not callable(getattr(asyncbench, name))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


@pytest.mark.long
@pytest.mark.parametrize("room", ["providers", "config", "planning", "reports"])
def test_what_makes_no_call_waits_for_no_library_that_does(room):
    code = f"import sys, asyncbench.{room}; print({{'aiohttp', 'openai', 'anthropic'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "set()\n"


def test_every_module_can_be_imported():
    for module in MODULES:
        if not module.endswith("__main__"):
            importlib.import_module(module)


MOST_LINES, LONGEST_FUNCTION, MOST_METHODS = 460, 57, 20


def test_no_module_function_or_class_is_too_large():
    too_large = []
    for path in FILES:
        source = path.read_text("utf-8")
        if (lines := len(source.splitlines())) > MOST_LINES:
            too_large.append(f"{path.name}: {lines} lines")
        for node in nodes_of(path):
            if isinstance(node, FUNCTION) and (lines := _lines_of(node)) > LONGEST_FUNCTION:
                too_large.append(f"{path.name}: {node.name} has {lines} lines")
            if isinstance(node, ast.ClassDef):
                methods = sum(isinstance(part, FUNCTION) for part in node.body)
                if methods > MOST_METHODS:
                    too_large.append(f"{path.name}: {node.name} has {methods} methods")
    assert too_large == []


FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def _lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of what a function does; a signature and a docstring cost nobody a thought."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (node.end_lineno or node.lineno) - body[0].lineno + 1 if body else 0


def test_no_room_holds_more_than_a_tenth_of_the_lines():
    lines = Counter[str]()
    for path in FILES:
        lines[path.relative_to(HOUSE).parts[0]] += len(path.read_text("utf-8").splitlines())
    assert max(lines.values()) <= sum(lines.values()) / 10


def test_hardly_any_module_is_tiny():
    modules = [path for path in FILES if path.name != "__init__.py"]
    tiny = [path.name for path in modules if len(path.read_text("utf-8").splitlines()) < 60]
    assert len(tiny) <= 20, tiny
