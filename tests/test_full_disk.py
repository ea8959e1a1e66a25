"""A disk that is full when a command writes: exit code 5, the file is named, none is left half-written."""

import asyncio
import errno
import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from asyncbench import run_sweep
from asyncbench.errors import StoreError
from asyncbench.files import storing, unwritten
from asyncbench.suites.nupa.generation import draft_nupa
from asyncbench.suites.nupa.tasks import TASKS
from tests.commands import asyncbench_here
from tests.store.disk import small_disk
from tests.sweep_files import entry, problem_set, simulator, sweep
from tests.upkeep.exchange.made import jsonl, trial

SUM = "add_Integer_Integer_Integer"


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """What the commands read, beside the disk."""
    place = tmp_path_factory.mktemp("beside")
    problems = problem_set(place, trials=1)
    problem_set(place, trials=20, name="many")
    with simulator(problems) as server:
        model = entry(server, "simulated-http/noisy")
        asyncio.run(run_sweep(sweep(place / "NIGHT", problems, model), limit=30))
    shutil.copytree(place / "NIGHT", place / "AGAIN")
    made = draft_nupa(TASKS[SUM], ("123", "456"), profile="reference")
    (place / "SET").write_text(json.dumps({SUM: {"3": [f"{made.question} {made.expected}"]}}))
    (place / "RECORDED").mkdir()
    jsonl(place / "RECORDED" / "gpt-x.jsonl", trial())
    return place


@pytest.fixture
def disk(tmp_path, beside):
    """A file system with a results folder on it and next to no room."""
    with small_disk(tmp_path / "disk", kilobytes=600) as place:
        shutil.copytree(beside / "NIGHT", place / "night")
        yield place


@pytest.mark.parametrize(
    ("code", "way_out"),
    [
        (errno.EROFS, "get write permission"),
        (errno.EACCES, "get write permission"),
        (errno.ENOSPC, "free disk space"),
        (errno.ENOLCK, "use a folder on a file system with locks"),
        (errno.EIO, "free disk space, or get write permission"),
    ],
)
def test_a_refusal_names_the_file_once_and_the_way_out_of_it(code, way_out):
    lock = Path("night") / ".lock"
    with pytest.raises(StoreError) as of_results, storing(lock):
        raise OSError(code, os.strerror(code), str(lock))
    said = (
        f"{lock} could not be written: {os.strerror(code)}. All results saved before are safe. To continue,"
    )
    assert str(of_results.value) == f"{said} {way_out} and run again."
    named = str(unwritten(lock, OSError(code, os.strerror(code), str(lock))))
    assert named == f"{lock}: cannot be written: {os.strerror(code)}. Choose another path, or {way_out}."


def fill_up(disk, *, leave):
    """Leave so many bytes of room."""
    found = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes(max(0, found.f_bavail * found.f_bsize - leave)))


def files(place):
    """What a reader finds: all but locks, journals and what is being written, by path."""
    found = (path for path in place.rglob("*") if path.is_file())
    passed_over = {".lock", ".tmp", "journal"}
    return {path: path.read_bytes() for path in found if not passed_over.intersection(path.parts)}


def night(out, problems):
    """A sweep file."""
    return yaml.safe_dump(
        {"name": "s", "problems": [problems], "models": ["simulated/oracle"], "out": str(out)}
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "leave", "named"),
    [
        pytest.param("generate llm_arithmetic --out DISK/p.parquet", 4096, "p.parquet", id="generate"),
        pytest.param("init DISK/sweep.yaml --yes", 0, "sweep.yaml", id="init"),
        pytest.param("import nupa-problems SET --out DISK/p.parquet", 0, "p.parquet", id="import-problems"),
        pytest.param("import llm-arithmetic RECORDED --out DISK/out", 4096, "out/", id="import"),
        pytest.param("export llm-arithmetic NIGHT --out DISK/out", 0, "out/", id="export"),
        pytest.param("report DISK/night --html", 4096, "night/report.html", id="page"),
        pytest.param("report NIGHT --figures DISK/out", 4096, "out/", id="figures"),
        pytest.param("merge NIGHT AGAIN --out DISK/out", 4096, ".out.merging/", id="merge"),
        pytest.param("regrade DISK/night --write", 12_288, "night/.tmp/next/trials/", id="regrade"),
        pytest.param("sql NIGHT 'FROM trials' --parquet DISK/t.parquet", 4096, "t.parquet", id="sql"),
        pytest.param("run COPIED --quiet", 32_768, "out/problems/", id="run-copies"),
        pytest.param("run GENERATED --quiet", 32_768, "out/problems/", id="run-generates"),
    ],
)
def test_a_full_disk_is_exit_5_names_the_file_and_leaves_none_half_written(disk, beside, words, leave, named):
    generated = {"suite": "llm_arithmetic", "trials": 40}
    (beside / "COPIED").write_text(night(disk / "out", str(beside / "many.parquet")))
    (beside / "GENERATED").write_text(night(disk / "out", generated))
    fill_up(disk, leave=leave)
    before = files(disk)
    told = asyncbench_here(*(_placed(word, disk, beside) for word in shlex.split(words)))
    assert told.returncode == 5, told.stderr
    assert f"{disk}/{named}" in told.stderr
    assert "Traceback" not in told.stderr
    assert re.search(r"No space left on device.*(free disk space|are safe)", told.stderr)
    after = files(disk)
    assert {path: after.get(path) for path in before} == before
    for path in after.keys() - before.keys():  # whole ones, written while there was room
        assert after[path].endswith((b"</svg>", b"}", b"}\n")), path


def _placed(word, disk, beside):
    if word.isupper():
        return beside / word
    return word.replace("DISK", str(disk))


@pytest.mark.long
def test_a_temporary_folder_that_is_full_is_named(disk, beside, monkeypatch):
    """What needs room beside its results says where it needs it."""
    fill_up(disk, leave=0)
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    (beside / "PLANNED").write_text(night(beside / "none", {"suite": "llm_arithmetic"}))
    told = asyncbench_here("plan", beside / "PLANNED")
    assert told.returncode == 5
    assert re.match(f"asyncbench: {disk}/asyncbench-plan-.*: cannot be written: No space left", told.stderr)
