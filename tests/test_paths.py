"""`~` means the home wherever a path is taken, also where no shell has seen it."""

import os
import re
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import asyncbench as ab
from asyncbench.cli import app
from asyncbench.errors import AsyncbenchError, ConfigError
from asyncbench.files import home_expanded
from asyncbench.upkeep.exporting import export_table

SWEEP = """
name: homely
problems: [{path: ~/own.csv, suite: custom, grader: number}]
models: [simulated/oracle]
conditions: [{name: shown, shots: ~/shots.jsonl}]
out: ~/results
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    (folder / "own.csv").write_text("question,answer\n1+1?,2\n")
    (folder / "shots.jsonl").write_text('{"question": "2+2?", "answer": "4"}\n')
    (folder / "sweep.yaml").write_text(SWEEP)
    return folder


async def test_the_home_is_meant_by_every_key_and_by_python(home, tmp_path):
    await ab.run_sweep("~/sweep.yaml")
    assert ab.read_trials("~/results").num_rows == 1
    assert ab.sql("~/results", "FROM trials").num_rows == 1
    assert ab.inspect_problems("~/own.csv").problems == 1
    export_table("csv", "~/results", "~/trials.csv")
    assert (home / "trials.csv").exists()
    assert sorted(os.listdir(tmp_path)) == ["home"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~", "{home}"),
        ("~/a b", "{home}/a b"),
        ("a/~", "a/~"),
        ("./~/zz", "{here}/~/zz"),
        ("./~root", "{here}/~root"),
        ("file:x%20y*?[1]#", "{here}/file:x%20y*?[1]#"),
        ("x%20y*?[1]#", "x%20y*?[1]#"),
        ("s3://bucket/x", "s3:/bucket/x"),
    ],
)
def test_only_a_tilde_at_the_beginning_is_the_home(written, meant, home, tmp_path):
    assert home_expanded(written) == Path(meant.format(home=home, here=tmp_path))


def test_a_user_who_is_not_there_is_named():
    with pytest.raises(ConfigError, match="~nobody-of-that-name/x: no home of ~nobody-of-that-name is known"):
        home_expanded("~nobody-of-that-name/x")


def path_options() -> list[tuple[str, str]]:
    """Return each option and argument of every command that takes a path: the command and its name."""
    commands = get_command(app).commands  # type: ignore[attr-defined]  # a group has them
    return [
        (name, max(param.opts, key=len))
        for name, command in sorted(commands.items())
        if name != "demo"  # it would run for a minute
        for param in command.params
        if re.search(r"pathlib\.\S*Path", repr(param.type_descriptor.annotation))  # 3.13: pathlib._local.Path
    ]


@pytest.mark.long
@pytest.mark.parametrize(("command", "option"), path_options())
def test_no_command_takes_a_name_for_something_else(command, option, home):
    before = sorted(home.rglob("*"))
    for name in ("~/own.csv", "-a*?[b]\nc'd", "file:a%20b::c#d"):
        typed = f"{option}=./{name}" if option.startswith("-") else f"./{name}"
        result = CliRunner().invoke(app, [command, typed])
        assert isinstance(result.exception, AsyncbenchError | SystemExit | None), (name, result.exception)
    assert sorted(home.rglob("*")) == before


@pytest.mark.usefixtures("home")
def test_a_folder_called_tilde_is_meant_where_it_is_written_so(tmp_path):
    results = [CliRunner().invoke(app, ["problems", "inspect", f"{place}/own.csv"]) for place in ("~", "./~")]
    assert results[0].exit_code == 0
    assert f"{tmp_path}/~/own.csv: no such file" in str(results[1].exception)


async def test_odd_names_of_inputs_and_results_are_taken_as_they_are(home, tmp_path):
    for name in ("file:a%20b", "a*?[b]", "-a", "a::b", "a\nb", "a#b'c", "./~"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "own.csv").write_bytes((home / "own.csv").read_bytes())
        problems = [{"path": f"{name}/own.csv", "suite": "custom", "grader": "number"}]
        out = f"{name}/out"
        await ab.run_sweep({"name": "odd", "problems": problems, "models": ["simulated/oracle"], "out": out})
        assert (folder / "out" / "manifest.json").exists()
        assert ab.read_trials(out).num_rows == ab.sql(out, "FROM trials").num_rows == 1
        export_table("csv", out, f"{name}/trials.csv")
        assert (folder / "trials.csv").exists()
