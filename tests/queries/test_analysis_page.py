"""docs/analysis.md: every recipe runs as it is written, on a small folder of a simulated night."""

import asyncio
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import asyncbench as ab
from asyncbench.cli import app
from asyncbench.views.views import VIEWS
from tests.sweep_files import entry, problem_set, simulator, sweep

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "analysis.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PRICE = {"input": 1, "output": 2}


def blocks(kind):
    return [block for name, block in BLOCKS if name == kind]


def commands():
    return [line.removeprefix("asyncbench ") for block in blocks("console") for line in block.splitlines()]


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """A folder above results/overnight: two models, one streamed, some calls refused on the way."""
    place = tmp_path_factory.mktemp("night")
    problems = problem_set(place, trials=1)
    with simulator(problems, faults=("429=0.05",)) as server:
        models = [
            entry(server, "simulated-http/noisy", price=PRICE, alias="one"),
            entry(server, "simulated-http/noisy-2", price=PRICE, alias="other", stream=True),
        ]
        asyncio.run(ab.run_sweep(sweep(place / "results" / "overnight", problems, *models)))
    return place


@pytest.fixture(autouse=True)
def _there(night, monkeypatch):
    monkeypatch.chdir(night)


def test_the_python_recipes_run_as_written(capsys):
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "docs/analysis.md", "exec"), names)  # noqa: S102  our own page
    told = capsys.readouterr().out
    assert "alone right" in told
    assert "client_busy" not in told


@pytest.mark.parametrize("query", blocks("sql"), ids=range(len(blocks("sql"))))
def test_the_queries_run_as_written(query):
    assert ab.sql("results/overnight", query).num_columns >= 2


@pytest.mark.parametrize("command", commands())
def test_the_commands_run_as_written(command):
    done = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
    assert done.exit_code == 0


def test_every_view_is_described():
    described = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE[PAGE.index("## SQL") :], re.MULTILINE)
    assert {name for cell in described for name in re.findall(r"`(\w+)`", cell)} == set(VIEWS)
