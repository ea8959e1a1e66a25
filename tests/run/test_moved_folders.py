"""A results folder that was moved or copied: its own sweep file means that folder, wherever it is."""

import json
import os
import shutil
import signal
import time
from pathlib import Path
from types import MappingProxyType

import pytest
import yaml

from asyncbench import load_sweep, read_trials
from tests.commands import asyncbench, succeeded
from tests.processes import Forked
from tests.sweep_files import base_url, calls, contents, simulator

PROBLEMS = 72
WAYS = [
    pytest.param("simulated", {}, (), id="chat"),
    pytest.param("simulated", {"stream": True}, (), id="streamed"),
    pytest.param("simulated-anthropic", {}, (), id="anthropic"),
    pytest.param("simulated-http", {}, ("--workers", "2"), id="two workers"),
]


@pytest.fixture
def begun(tmp_path, server, problems):
    """Return what makes a folder `s` that holds 20 of 72 answers."""

    def begin(provider="simulated", keys=MappingProxyType({})):
        shutil.copy(problems, tmp_path / "problems.parquet")
        model = {"model": f"{provider}/oracle", "base_url": base_url(server, provider), **keys}
        raw = {"name": "night", "problems": ["problems.parquet"], "models": [model], "out": "s"}
        (tmp_path / "night.yaml").write_text(yaml.safe_dump(raw))
        succeeded(asyncbench("run", "night.yaml", "--limit", "20", "--quiet", cwd=tmp_path))
        return tmp_path / "s"

    return begin


def continued(file, cwd, *words):
    """Run a sweep file to its end; return what the run says of its model, and what stood on the screen."""
    done = succeeded(asyncbench("run", file, *words, "--json", cwd=cwd))
    (counters,) = json.loads(done.stdout)["models"].values()
    return counters, done.stderr


@pytest.mark.long
@pytest.mark.parametrize(("provider", "keys", "words"), WAYS)
def test_a_moved_folder_asks_only_what_is_open(begun, server, provider, keys, words):
    folder = begun(provider, keys)
    moved, before = folder.rename(folder.with_name("moved")), calls(server)
    counters, screen = continued("moved/sweep.yaml", folder.parent, *words)
    assert (counters["done_before"], counters["done"]) == (20, PROBLEMS)
    assert calls(server) - before == PROBLEMS - 20
    assert not folder.exists()
    assert "copy" not in screen
    assert load_sweep(moved / "sweep.yaml").out == moved
    again, _ = continued("moved/sweep.yaml", folder.parent)
    assert (again["done"], calls(server) - before) == (PROBLEMS, PROBLEMS - 20)


@pytest.mark.long
@pytest.mark.parametrize(("provider", "keys", "words"), WAYS)
def test_the_run_of_a_copy_leaves_the_original_byte_for_byte(begun, server, provider, keys, words):
    folder = begun(provider, keys)
    shutil.copytree(folder, folder.with_name("copy"))
    held, before = contents(folder), calls(server)
    _, screen = continued("copy/sweep.yaml", folder.parent, *words)
    assert contents(folder) == held
    assert calls(server) - before == PROBLEMS - 20
    assert "copy is a copy of s, which is still there" in screen
    shutil.copytree(folder.with_name("copy"), folder.with_name("third"))
    held = contents(folder.with_name("copy"))
    continued("third/sweep.yaml", folder.parent)
    assert contents(folder.with_name("copy")) == held
    assert calls(server) - before == PROBLEMS - 20


@pytest.mark.long
@pytest.mark.parametrize(
    "place", ["from inside", "by a link to the folder", "by a link to the file", "by dots"]
)
def test_a_moved_folder_is_known_however_its_sweep_file_is_named(begun, server, place):
    folder = begun()
    moved, before = folder.rename(folder.with_name("moved")), calls(server)
    (folder.parent / "link").symlink_to(moved)
    (folder.parent / "go-on.yaml").symlink_to(moved / "sweep.yaml")
    (moved / "inside").mkdir()
    cwd, file = {
        "from inside": (moved, "sweep.yaml"),
        "by a link to the folder": (folder.parent, "link/sweep.yaml"),
        "by a link to the file": (folder.parent, "go-on.yaml"),
        "by dots": (moved / "inside", "../sweep.yaml"),
    }[place]
    counters, _ = continued(file, cwd)
    assert (counters["done"], calls(server) - before) == (PROBLEMS, PROBLEMS - 20)
    assert not folder.exists()
    assert not (moved / "s").exists()


@pytest.mark.long
def test_a_folder_stands_alone_without_the_problem_files_it_was_made_of(begun, server, tmp_path):
    """On another machine there is nothing but the folder."""
    folder = begun()
    away = tmp_path / "elsewhere" / "s"
    shutil.copytree(folder, away)
    shutil.rmtree(folder)
    (tmp_path / "problems.parquet").unlink()
    before = calls(server)
    planned = succeeded(asyncbench("plan", away / "sweep.yaml", "--json", cwd=tmp_path))
    assert json.loads(planned.stdout)["models"][0]["left"] == PROBLEMS - 20
    counters, _ = continued(away / "sweep.yaml", tmp_path)
    assert (counters["done"], calls(server) - before) == (PROBLEMS, PROBLEMS - 20)


@pytest.mark.long
def test_every_command_takes_a_moved_folder_for_itself(begun, server):
    folder = begun()
    shutil.copytree(folder, folder.with_name("moved"))
    before = calls(server)
    asyncbench("report", "s", cwd=folder.parent)
    held = contents(folder)
    for words in (
        ("plan", "moved/sweep.yaml"),
        ("status", "moved"),
        ("status", "moved", "--verify"),
        ("report", "moved"),
        ("regrade", "moved", "--write"),
        ("cancel", "moved", "--yes"),
    ):
        done = asyncbench(*words, cwd=folder.parent)
        assert done.returncode == 0, (words, done.stderr)
    assert "moved" in asyncbench("plan", "moved/sweep.yaml", cwd=folder.parent).stdout
    assert contents(folder) == held
    succeeded(asyncbench("merge", "s", "moved", "--out", "both", cwd=folder.parent))
    assert len(read_trials(folder.with_name("both"))) == 20
    assert calls(server) == before


@pytest.mark.long
def test_a_copy_of_a_folder_with_open_batches_says_who_else_waits_for_them(begun):
    folder = begun()
    raw = yaml.safe_load((folder.parent / "night.yaml").read_text())
    raw["models"][0] |= {"mode": "batch", "max_tokens": 64}
    (folder.parent / "night.yaml").write_text(yaml.safe_dump(raw))
    succeeded(asyncbench("run", "night.yaml", "--detach", "--quiet", cwd=folder.parent))
    shutil.copytree(folder, folder.with_name("copy"))
    held = contents(folder)
    taken = succeeded(asyncbench("run", "copy/sweep.yaml", "--detach", cwd=folder.parent))
    assert f"{PROBLEMS} trials are in open batches that s waits for, too" in taken.stderr
    assert contents(folder) == held


@pytest.mark.long
def test_a_copy_made_while_a_run_writes_is_continued_by_itself(begun, tmp_path, problems):
    """What is in flight meanwhile may be paid twice, as after a crash; no answer that was copied is."""
    with simulator(problems, latency_s=0.2) as slow:
        folder = begun(keys={"base_url": base_url(slow, "simulated"), "concurrency": 2})
        run = Forked("asyncbench", "run", "night.yaml", "--quiet", cwd=tmp_path)
        while len(read_trials(folder)) < 30:
            assert run.poll() is None
            time.sleep(0.05)
        os.kill(run.pid, signal.SIGSTOP)  # between two bytes, perhaps
        shutil.copytree(folder, tmp_path / "copy")
        held = contents(folder)
        copied = len(read_trials(tmp_path / "copy"))
        before = calls(slow)
        counters, _ = continued("copy/sweep.yaml", tmp_path)
        assert (counters["done_before"], counters["done"]) == (copied, PROBLEMS)
        assert calls(slow) - before == PROBLEMS - copied
        assert contents(folder) == held
        os.kill(run.pid, signal.SIGCONT)
        assert run.wait() == 0
        assert len(read_trials(folder)) == PROBLEMS


def test_a_plain_sweep_file_means_the_out_that_it_names(begun, server):
    """Also a copy of a folder's own sweep file, once it lies outside of the folder."""
    folder = begun()
    shutil.copy(folder / "sweep.yaml", folder.parent / "mine.yaml")
    assert load_sweep(folder.parent / "mine.yaml").out == Path("s")
    before = calls(server)
    continued("mine.yaml", folder.parent)
    assert calls(server) - before == PROBLEMS - 20
