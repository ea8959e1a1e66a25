"""What a fresh process imports: a command waits for nothing that it does not use."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import CLEAN, ROOT
from tests.sweep_files import base_url, problem_set, simulator

PROGRAM = """
import sys
from asyncbench.__main__ import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
HEAVY = {
    "aiohttp",
    "anthropic",
    "azure",
    "botocore",
    "duckdb",
    "google.auth",
    "google.genai",
    "httpx2",
    "openai",
}
HEAVY |= {"pandas", "pyarrow"}
OPEN_DOORS = ["providers", "records", "suites"]  # rooms that name what packages of yours use
SDK = {"openai": "simulated", "anthropic": "simulated-anthropic", "http": "simulated-http"}


def imported(*arguments: object) -> set[str]:
    """Return the modules that a command has loaded at its end."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=CLEAN, check=True)
    return set(done.stderr.splitlines()[-1].split())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, set[str]]]:
    """For each way to ask: the results folder of a run, and what the run has loaded."""
    folder = tmp_path_factory.mktemp("runs")
    problems = problem_set(folder, trials=1)
    found = {}
    with simulator(problems) as server:
        for way, provider in SDK.items():
            model = {"model": f"{provider}/oracle", "base_url": base_url(server, provider)}
            sweep = {"name": way, "problems": [str(problems)], "models": [model], "out": str(folder / way)}
            (file := folder / f"{way}.yaml").write_text(json.dumps(sweep), "utf-8")
            found[way] = (folder / way, imported("run", file, "--quiet", "--limit", 1))
    return found


@pytest.mark.parametrize("asked", ["--version", "--help", "run --help"])
def test_what_only_talks_of_itself_loads_no_library_of_a_run(asked):
    assert imported(*asked.split()) & HEAVY == set()


@pytest.mark.long
@pytest.mark.parametrize("way", SDK)
def test_a_run_loads_the_sdk_that_it_asks_through_and_no_other(runs, way):
    _, loaded = runs[way]
    assert loaded & HEAVY == {way, "aiohttp", "httpx2", "pyarrow"} - {"http"}
    assert {name for name in loaded if name.startswith("asyncbench.simulator.")} == set()


@pytest.mark.long
@pytest.mark.parametrize(("sdk", "most"), [("openai", 100), ("anthropic", 400)])
def test_of_an_sdk_it_loads_what_a_call_needs(runs, sdk, most):
    _, loaded = runs[sdk]
    assert sum(name.startswith(f"{sdk}.") for name in loaded) < most


@pytest.mark.long
@pytest.mark.parametrize(("command", "used"), [("status", {"pyarrow"}), ("report", {"pyarrow", "duckdb"})])
def test_who_looks_at_results_waits_for_no_library_that_calls_nor_one_that_it_does_not_count_with(
    runs, command, used
):
    assert imported(command, runs["http"][0]) & HEAVY == used


@pytest.mark.long
def test_pyarrow_finds_pandas_where_a_data_frame_is_asked_for(runs):
    out, _ = runs["http"]
    code = f"""
import sys
from asyncbench.lazy_imports import NoPandas
sys.meta_path.insert(0, NoPandas())
import asyncbench as ab
table = ab.read_trials({str(out)!r})
print("pandas" in sys.modules, type(table.to_pandas()).__name__, NoPandas in map(type, sys.meta_path))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "False DataFrame False\n"


# What an `__init__` has that only names, that names what a module is called, and that does more.
PACKAGE = {
    "__init__.py": """
from . import plain
from .other import thing, renamed as again
from .plain import *
from .deep import inner
MADE = thing() + 1
print("run")
def __getattr__(name):
    if name == "computed":
        return "computed"
    raise AttributeError(name)
""",
    "plain.py": "starred = 4",
    "other.py": "def thing():\n    return 1\nrenamed = 2",
    "thing.py": "",
    "deep/__init__.py": "",
    "deep/inner.py": "",
}
ALL_THERE = "print(p.again, p.thing(), p.MADE, p.computed, p.starred, p.inner.__name__, p.plain.starred)"


@pytest.fixture
def package(tmp_path):
    """Return what a fresh process prints that imports a package, as it is used or at once."""
    for name, text in PACKAGE.items():
        (path := tmp_path / "pack" / name).parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, "utf-8")

    def said(code: str, *, as_used: bool = True) -> list[str]:
        start = "import sys\nfrom asyncbench import lazy_imports as lazy\n"
        start += "lazy._TOPS = ('pack',)\nlazy.import_lazily()\n" if as_used else ""
        words = [sys.executable, "-c", f"{start}import pack as p\n{code}"]
        env = CLEAN | {"PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            words, capture_output=True, text=True, env=env, check=True, cwd=ROOT
        ).stdout.split("\n")[:-1]

    return said


def test_a_package_is_loaded_as_far_as_it_is_used(package):
    told = package(
        "print(p.again, 'pack.plain' in sys.modules)\nprint(p.plain.starred, p.deep.inner.__name__)"
    )
    assert told == ["2 False", "4 pack.deep.inner"]


def test_a_name_that_is_only_made_runs_the_package_once(package):
    assert package(ALL_THERE) == ["run", "2 1 2 computed 4 pack.deep.inner 4"]
    assert package(ALL_THERE, as_used=False) == package(ALL_THERE)
    assert package("from pack import *\nprint(MADE, again)") == ["run", "2 2"]


def test_a_name_stays_what_the_package_names_so(package):
    assert package("import pack.thing\nprint(p.thing())") == ["1"]


def test_a_name_that_nobody_knows_is_none(package):
    code = "print(hasattr(p, 'unknown'), hasattr(p, 'unknown'))"
    assert package(code) == ["run", "False False"]


@pytest.mark.long
def test_the_names_of_a_room_are_those_of_its_modules():
    """As its `__init__` would say: nothing is lost by not running it."""
    code = f"""
import importlib
from asyncbench.lazy_imports import import_lazily
import_lazily()
for room in {OPEN_DOORS}:
    door = importlib.import_module(f"asyncbench.{{room}}")
    named = dict(vars(door)["__named__"])
    assert named
    for name in named:
        getattr(door, name)
    lazily = {{name: vars(door)[name] for name in named}}
    vars(door)["__waits__"].exec_module(door)
    assert {{name: vars(door)[name] for name in named}} == lazily, room
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


DATACLASSES = """
from asyncbench import lazy_imports
import sys
if "lazily" in sys.argv:
    lazy_imports.import_lazily()
from dataclasses import FrozenInstanceError, dataclass, field, replace
@dataclass(frozen=True, slots=True, order=True)
class Point:
    x: int
    y: int = 2
    def __post_init__(self):
        print("made", self.x)
@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Point):
    name: str = "n"
    def __repr__(self):
        return f"{Point.__repr__(self)} {self.name}"
@dataclass
class Loose:
    kept: list = field(default_factory=list)
a, b = Point(1), Point(1, 2)
print(a, a == b, hash(a) == hash(b), {a: 1}[b], a < Point(2), replace(a, y=5), Point.__init__.__qualname__)
print(Named(x=3, name="m"), Named(x=3) == Named(x=3), Named(x=3) == Point(3), Loose(), Loose() == Loose([1]))
wrong = [lambda: Point(), lambda: Point(1, z=2), lambda: hash(Loose())]
for change in (lambda: setattr(a, "x", 3), lambda: delattr(a, "x"), *wrong):
    try:
        change()
    except (FrozenInstanceError, TypeError) as error:
        print(type(error).__name__, error)
"""


def test_a_dataclass_is_the_same_where_its_methods_are_compiled_when_they_are_called():
    plain, lazily = (
        subprocess.run(
            [sys.executable, "-c", DATACLASSES, *how], capture_output=True, text=True, cwd=ROOT, check=True
        ).stdout
        for how in ((), ("lazily",))
    )
    assert lazily == plain
