"""`~` means the home wherever a path is taken, also where no shell has seen it."""

import os
from pathlib import Path

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
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
        ("file:x%20y*?[1]#", "file:x%20y*?[1]#"),
    ],
)
def test_only_a_tilde_at_the_beginning_is_the_home(written, meant, home, tmp_path):
    assert home_expanded(written) == Path(meant.format(home=home, here=tmp_path))


def test_a_user_who_is_not_there_is_named():
    with pytest.raises(ConfigError, match="~nobody-of-that-name/x: no home of ~nobody-of-that-name is known"):
        home_expanded("~nobody-of-that-name/x")
