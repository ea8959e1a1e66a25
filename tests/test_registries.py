"""Styles of reports, suites and endpoints: one registry each, no second list, no forgotten place."""

import ast
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.provider import PROVIDERS
from asyncbench.published.formats import FORMATS
from asyncbench.reports.styles import EFFECTS, STYLES
from asyncbench.suites.integer_addition import STRING_TASKS
from asyncbench.suites.suite import Suite
from asyncbench.suites.table import SUITES
from tests.contracts.night import PARAMETERS

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "asyncbench"
SOURCES = sorted([*HOUSE.rglob("*.py"), *(ROOT / "tests" / "contracts").glob("*.py")])
FILES = [path.relative_to(ROOT).as_posix() for path in SOURCES]


class Registry(NamedTuple):
    """The names of a kind, and where they stand."""

    names: set[str]
    place: str
    sample: int  # so many of the names in one place are a list of them
    others: Mapping[str, str]  # files that may hold a list, and of what it is


REGISTRIES = {
    "styles": Registry(
        {name for name in STYLES if name},
        "STYLES in asyncbench/reports/styles.py",
        4,
        {"asyncbench/reports/styles.py": "the registry"},
    ),
    "suites": Registry(
        {name for name in SUITES if name not in STRING_TASKS},  # which come with integer_addition
        "SUITES in asyncbench/suites/table.py",
        3,
        {
            "asyncbench/suites/__init__.py": "its modules",
            "tests/contracts/night.py": "a small set of each, held complete by a test beside it",
        },
    ),
    "endpoints": Registry(
        set(known_endpoints()),
        "asyncbench/providers/endpoints.toml",
        4,
        {
            "asyncbench/config/starter.py": "kinds of servers of one's own, some of one endpoint",
            "asyncbench/providers/provider.py": "the adapters: `via` of an endpoint",
            "asyncbench/simulator/vendors.py": "whose limits and errors can be played",
        },
    ),
}


@cache
def nodes_of(path: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse((ROOT / path).read_text("utf-8"))))


@cache
def imported_modules() -> set[str]:
    nodes = (node for path in FILES for node in nodes_of(path))
    return {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def lists_in(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, list[object]]]:
    """Yield the line and the words of each literal collection, and of each enumeration in a text."""
    for node in nodes:
        if isinstance(node, ast.Dict):
            yield node.lineno, [key.value for key in node.keys if isinstance(key, ast.Constant)]
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            yield node.lineno, [item.value for item in node.elts if isinstance(item, ast.Constant)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for words in re.findall(r"(?:`?[\w-]+`?(?:,\s+|\s+(?:or|and)\s+)){2,}`?[\w-]+", node.value):
                yield node.lineno, [*re.findall(r"[\w-]+", words)]


@cache
def lists_of(path: str) -> tuple[tuple[int, list[object]], ...]:
    return tuple(lists_in(nodes_of(path)))


@pytest.mark.parametrize("kind", REGISTRIES)
def test_there_is_no_second_list(kind):
    registry = REGISTRIES[kind]
    second = [
        f"{path}:{line} lists {', '.join(map(str, words))}: read {registry.place} instead"
        for path in FILES
        if path not in registry.others
        for line, words in lists_of(path)
        if len(registry.names & set(words)) >= registry.sample
    ]
    assert second == []


def test_every_suite_that_makes_problems_is_in_the_night_of_the_contracts():
    assert set(PARAMETERS) == {name for name, suite in SUITES.items() if suite.generate is not None}


def test_a_second_list_is_found_in_code_and_in_texts():
    """The shapes in which the styles stood: a tuple, keys, an enumeration in a docstring."""
    for code in ('X = ("cost", "quota", "load")', 'X = {"cost": 1, "quota": 2, "load": 3}'):
        assert ["cost", "quota", "load"] in [words for _, words in lists_in(ast.walk(ast.parse(code)))]
    docstring = ast.parse('"""style: `cost`, `quota` or `load`."""')
    ((_, found),) = lists_in(ast.walk(docstring))
    assert {"cost", "quota", "load"} <= set(found)


# ── a place that was forgotten: the tables of "Where to put it" in docs/explanation/architecture.md


@pytest.mark.parametrize(
    "path", sorted((HOUSE / "reports").rglob("*.py")), ids=lambda path: f"{path.parent.name}.{path.stem}"
)
def test_every_module_of_reports_is_a_style_or_read_by_another(path):
    module = ".".join(path.relative_to(HOUSE).with_suffix("").parts)
    imported = f"asyncbench.{module}" in imported_modules()
    styles = {style.module for style in (*STYLES.values(), EFFECTS)}
    assert module.endswith("__init__") or imported or module in styles, (
        f"no style shows {module}: add a row to STYLES in asyncbench/reports/styles.py"
    )


@pytest.mark.parametrize("name", [name for name in STYLES if name])
def test_every_style_has_its_sentence_and_its_place_on_the_page_of_reports(name):
    style = STYLES[name]
    assert style.about.endswith("."), f"STYLES in asyncbench/reports/styles.py: {name} says nothing of itself"
    assert callable(getattr(importlib.import_module(f"asyncbench.{style.module}"), style.function))
    page = (ROOT / "docs" / "reference" / "reports.md").read_text("utf-8")
    named = re.search(rf"(^## {name}$)|(`(--style )?{name}`)", page, re.MULTILINE)
    assert named, f"docs/reference/reports.md does not describe {name}"


def test_every_suite_is_in_the_table():
    made = [
        (path, node.targets[0])
        for path in FILES
        if path.startswith("asyncbench/suites/")
        for node in ast.iter_child_nodes(nodes_of(path)[0])  # of the module
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) in ("Suite", "_suite")
    ]
    assert len(made) > 3
    for path, target in made:
        module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
        suite = getattr(module, ast.unparse(target))
        assert isinstance(suite, Suite)
        assert SUITES.find(suite.name) is suite, f"{path}: add {suite.name} to _OURS in suites/table.py"


@pytest.mark.parametrize("name", [name for name in SUITES if SUITES[name].generate])
def test_every_suite_that_makes_problems_is_offered_by_init(name):
    suite = SUITES[name]
    assert suite.about, f"{name} does not say what it asks: give its Suite `about`"
    assert suite.first, f"`init` does not offer {name}: give its Suite `first`"
    assert suite.first.parameter in suite.parameters


def test_every_adapter_is_a_provider():
    folders = {path.parent.name.replace("_", "-") for path in (HOUSE / "providers").glob("*/client.py")}
    lacking = folders - set(PROVIDERS)
    assert not lacking, f"{', '.join(lacking)}: add to PROVIDERS in asyncbench/providers/provider.py"


def test_every_published_form_of_files_is_in_the_table():
    folders = {path.parent.name.replace("_", "-") for path in (HOUSE / "published").glob("*/files.py")}
    lacking = folders - set(FORMATS)
    assert not lacking, f"{', '.join(lacking)}: add to FORMATS in asyncbench/published/formats.py"
