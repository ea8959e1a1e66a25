"""The Python API: what `ab.` offers, in which forms it takes sweeps and gives tables."""

import ast
import asyncio
import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

import asyncbench as ab
from asyncbench.config.sweep import as_mapping
from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.store.folder import Store
from tests.store.made import answered, keep
from tests.sweep_files import entry, simulator

HERE = Path(ab.__file__)
ROWS = 3
READERS = (
    "read_trials",
    "read_grades",
    "read_attempts",
    "read_lanes",
    "read_skipped",
    "read_steps",
    "read_problems",
)


@pytest.fixture
def folder(tmp_path):
    with Store.open(tmp_path / "night", sweep="night") as store:
        for n in range(ROWS):
            keep(store, *answered(n))
    return tmp_path / "night"


def test_completion_shows_the_api_and_nothing_else():
    assert sorted(dir(ab)) == sorted([*ab.__all__, "__version__", "errors"])
    assert all(callable(getattr(ab, name)) for name in ab.__all__)


def test_editors_see_every_name_that_is_loaded_when_it_is_used():
    (typed,) = (node for node in ast.parse(HERE.read_text("utf-8")).body if isinstance(node, ast.If))
    imported = {
        alias.asname or alias.name
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {*ab.__all__, "errors"}
    assert (HERE.parent / "py.typed").is_file()


def test_importing_asyncbench_loads_no_room():
    code = "import sys, asyncbench as ab; dir(ab); print([m for m in sys.modules if 'asyncbench' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['asyncbench']"


def test_the_version_is_that_of_the_package():
    assert ab.__version__ == importlib.metadata.version("asyncbench")
    assert ab.errors.ConfigError is ConfigError
    with pytest.raises(AttributeError, match="'asyncbench' has no attribute 'read_trails'"):
        ab.read_trails  # noqa: B018  a slip of the user's


def test_every_public_function_has_a_docstring_that_says_what_comes_out():
    for name in ab.__all__:
        doc = getattr(ab, name).__doc__
        assert "Returns:" in doc or "Arguments" in doc, name
        assert "Raises:" in doc or "errors" in doc, name


@pytest.mark.long
@pytest.mark.parametrize("name", READERS)
def test_a_table_comes_as_the_data_frame_that_is_asked_for(folder, name):
    import pandas as pd
    import polars as pl

    read = getattr(ab, name)
    table = read(folder)
    assert isinstance(table, pa.Table)
    for as_, kind in {"arrow": pa.Table, "pandas": pd.DataFrame, "polars": pl.DataFrame}.items():
        frame = read(folder, as_=as_)
        assert isinstance(frame, kind)
        assert frame.shape == table.shape
    assert "as_" in read.__doc__ or "`read_trials`" in read.__doc__


@pytest.mark.long
def test_columns_and_filters_go_with_any_data_frame(folder):
    chosen = ab.read_trials(folder, ["trial_id", "model"], [("model", "=", "small")], as_="polars")
    assert chosen.shape == (ROWS, 2)
    assert ab.sql(folder, "SELECT count(*) AS n FROM trials", as_="pandas")["n"].item() == ROWS


def test_a_package_that_is_missing_is_told_by_its_name(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ConfigError, match=r"as_='polars' needs .* pip install polars"):
        ab.read_trials(folder, as_="polars")
    with pytest.raises(ConfigError, match=r"as_='excel' .* 'arrow', 'pandas' or 'polars'"):
        ab.read_trials(folder, as_="excel")  # type: ignore[call-overload]  # what a user may try


@pytest.fixture
def sweep(tmp_path):
    ab.generate("integer_addition", tmp_path / "problems.parquet", seed=7, tries=20)
    with simulator(tmp_path / "problems.parquet") as server:
        price = {"input": 1, "output": 2}
        yield {
            "name": "night",
            "problems": [tmp_path / "problems.parquet"],
            "models": [entry(server, "simulated-http/oracle", alias="steady", price=price, max_tokens=100)],
            "out": tmp_path / "out",
        }


@pytest.mark.long
def test_a_sweep_is_a_file_a_dict_or_a_record(sweep, tmp_path):
    file = tmp_path / "night.yaml"
    written = sweep | {"problems": [str(sweep["problems"][0])], "out": str(sweep["out"])}
    file.write_text(yaml.safe_dump(written))
    record = ab.load_sweep(sweep)
    assert ab.load_sweep(record) is record
    assert as_mapping(ab.load_sweep(file)) == as_mapping(record)
    plans = [ab.plan(given, limit=5) for given in (sweep, record, file, str(file))]
    assert {plan.models[0].left for plan in plans} == {5}
    for given in (sweep, record, file, str(file)):
        assert [checkup.fine for checkup in asyncio.run(ab.doctor(given))] == [True]
    done = [asyncio.run(ab.run_sweep(given, limit=n)) for n, given in enumerate((sweep, record, file), 3)]
    assert [summary.models["steady"].done for summary in done] == [3, 4, 5]


@pytest.mark.long
def test_results_show_themselves_in_a_notebook(sweep):
    plan = ab.plan(sweep)
    summary = asyncio.run(ab.run_sweep(sweep, limit=5))
    folder = sweep["out"]
    styles = ("morning", "standings", "heatmap", "anatomy", "cost", "quota", "integer-addition", None)
    shown = [ab.report(folder, style) for style in styles]
    results: list[Any] = [plan, summary, ab.status(folder), *shown]
    for result in results:
        text = result._repr_html_()
        assert "<table>" in text
        assert "steady" in text
    assert "SIMULATED" in summary._repr_html_()


@pytest.mark.long
def test_a_row_of_read_problems_can_be_graded(sweep):
    asyncio.run(ab.run_sweep(sweep, limit=1))
    folder = sweep["out"]
    frame = ab.read_problems(folder, as_="pandas")
    rows = [
        ab.read_problems(folder).to_pylist()[0],
        frame.to_dict("records")[0],
        frame.iloc[0],
        ab.read_problems(folder, as_="polars").row(0, named=True),
    ]
    for row in rows:
        assert ab.grade(row, row["expected"])[0].exact_match
        assert not ab.grade(row, "1")[0].exact_match
    with pytest.raises(ProblemSetError, match=r"has no suite, .*read_problems"):
        ab.grade({"question": "1 + 1", "expected": "2"}, "2")
