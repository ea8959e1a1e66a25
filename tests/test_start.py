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
from asyncbench.__main__ import NoPandas
sys.meta_path.insert(0, NoPandas())
import asyncbench as ab
table = ab.read_trials({str(out)!r})
print("pandas" in sys.modules, type(table.to_pandas()).__name__, NoPandas in map(type, sys.meta_path))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "False DataFrame False\n"
