"""An address is no folder of this machine: it is refused wherever something would be written or read."""

import asyncio
from pathlib import Path

import pytest

from asyncbench import export_folder, generate, import_files, merge_folders, run_sweep
from asyncbench.config.sweep import sweep_from
from asyncbench.errors import ConfigError
from asyncbench.files import creating, local, replacing
from asyncbench.page.charts.figure_files import write_figures
from asyncbench.page.writing import write_page
from asyncbench.planning.sweep_plan import plan
from asyncbench.problems.opening import open_set
from asyncbench.store.folder import Store
from tests.store.made import add, answered
from tests.sweep_files import problem_set
from tests.upkeep.exchange.made import jsonl, trial

BUCKET = "gs://bucket/night"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in, with a problem set, a file to import and two results folders."""
    monkeypatch.chdir(tmp_path)
    problem_set(tmp_path, trials=1)
    jsonl(tmp_path / "x.jsonl", trial())
    for name in "ab":
        add(tmp_path / name, *answered(1))
    return tmp_path


def sweep(**said):
    return sweep_from({"name": "s", "problems": ["problems.parquet"], "models": ["simulated/oracle"]} | said)


WAYS = {
    "run": lambda to: asyncio.run(run_sweep(sweep(out=to))),
    "plan": lambda to: plan(sweep(out=to)),
    "store": lambda to: Store.open(to, sweep="night"),
    "merge": lambda to: merge_folders(["a", "b"], to),
    "import": lambda to: import_files("llm-arithmetic", ["x.jsonl"], to),
    "export": lambda to: export_folder("llm-arithmetic", "a", to),
    "generate": lambda to: generate("integer_addition", to, tries=1),
    "figures": lambda to: write_figures("a", to),
    "page": lambda to: write_page("a", to),
    "init": lambda to: creating(Path(to)).__enter__(),
    "sql --parquet": lambda to: replacing(Path(to)).__enter__(),
    "problems": lambda to: open_set(to),
    "a sweep's problems": lambda to: plan(sweep(problems=[to])),
    "a custom set": lambda to: plan(sweep(problems=[{"path": to, "suite": "custom", "grader": "exact"}])),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_address_is_refused_and_nothing_is_made(way, here):
    before = sorted(here.rglob("*"))
    with pytest.raises(
        ConfigError, match=r"^gs:/.*addresses are not supported. Copy the data to this machine"
    ):
        WAYS[way](BUCKET)
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize("address", ["hf://datasets/a/b", "file:///tmp/x", "GS://b/x", Path("s3://b/x")])
def test_an_address_is_known_by_its_scheme(address):
    with pytest.raises(ConfigError, match="addresses are not supported"):
        local(address)


@pytest.mark.parametrize("name", ["a:b/night", "http:", "c:", "x/s3:/night"])
def test_a_name_with_a_colon_is_no_address(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Store.open(name, sweep="night").close()
    assert (tmp_path / name / "manifest.json").is_file()
