"""The house has floors: imports only point down, and nothing goes round in circles."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Bottom to top; a module imports only from the steps before its own. Inside a folder, one way likewise.
LAYERS = """
allowance, interrupts, screen | errors | records, reading, writing | suites, pricing | prompting, turns |
problems, providers, store |
config, known_models, copies | sweep | engine | simulator |
preflight, progress, grading, faults, corrections, longer | summary, reuse, budgeting, forecast, skipping |
plan, starter, notify | run | regrade, merge | exchange, analysis | doctor, listing | cli, __init__ | __main__
"""
IMPORTS_ONLY = {"engine": {"errors", "records", "pricing"}}  # the rest is handed to it
SDKS = {"openai": "providers/openai", "anthropic": "providers/anthropic"}  # the only folder to import each

FLOOR = {
    name.strip(): floor for floor, step in enumerate(LAYERS.split("|")) for name in step.strip().split(",")
}
FILES = sorted((ROOT / "asyncbench").rglob("*.py"))


def room_of(module: str) -> str:
    """asyncbench.engine.lane → engine; asyncbench itself → __init__."""
    return [*module.split("."), "__init__"][1]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    """Every module named by an import statement, wherever it stands in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {_named(node.module or "", alias.name) for alias in node.names}
    return found


def _named(module: str, name: str) -> str:
    """`from asyncbench import preflight` names the module asyncbench.sweeps.preflight."""
    place = ROOT.joinpath(*module.split("."), name)
    return f"{module}.{name}" if place.with_suffix(".py").exists() or place.is_dir() else module


OURS = {
    module_of(path): {name for name in imports_of(path) if name.split(".")[0] == "asyncbench"}
    - {module_of(path)}
    for path in FILES
}


@pytest.mark.parametrize("module", OURS)
def test_a_module_imports_only_from_the_floors_below(module):
    room = room_of(module)
    for imported in OURS[module]:
        other = room_of(imported)
        assert other == room or FLOOR[other] < FLOOR[room], f"{module} imports {imported}"
        assert other in IMPORTS_ONLY.get(room, {other}) | {room}, f"{module} imports {imported}"


def test_every_room_has_a_floor():
    assert {room_of(module) for module in OURS} == set(FLOOR)


def test_no_imports_go_round_in_circles():
    TopologicalSorter({module: OURS[module] & set(OURS) for module in OURS}).prepare()


@pytest.mark.parametrize("sdk", SDKS)
def test_an_sdk_is_imported_by_its_own_folder_alone(sdk):
    importers = {path.relative_to(ROOT / "asyncbench").parent for path in FILES if sdk in _tops(path)}
    assert importers == {Path(SDKS[sdk])}


def _tops(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports_of(path)}
