"""Counts that a folder keeps: the same figures with them and without, whatever was done to the folder."""

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

import asyncbench as ab
from asyncbench.analysis import kept
from asyncbench.analysis.choosing import chosen
from asyncbench.errors import AsyncbenchError
from asyncbench.page.writing import contents_of
from asyncbench.reports.styles import STYLES
from asyncbench.store.folder import Store
from asyncbench.store.snapshot import Snapshot
from tests.commands import asyncbench_here
from tests.processes import HANG_S
from tests.store.made import compacted, ended, reply, result, sent, trial
from tests.sweep_files import entry, problem_set, simulator, sweep_file

QUICK = ("standings", "cost")
NOW = ("made_at", "written_at")


@pytest.fixture(autouse=True)
def _small_folders_keep(monkeypatch):
    monkeypatch.setattr(kept, "LEAST", 1)


@contextmanager
def nothing_kept():
    """Have all counted from rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "LEAST", 10**9)
        yield


def said(folder, styles=STYLES, **filters):
    """What reports say of a folder, or why they cannot."""
    texts = {}
    for style in styles:
        try:
            texts[style] = ab.report(folder, style, **filters).as_json()
        except AsyncbenchError as error:
            texts[style] = str(error)
    return texts


def figures(folder, **filters):
    """All that reports and the page say of a folder, its sums of seconds to twelve digits."""
    page = contents_of(chosen(folder, **filters))
    page["head"] = {name: value for name, value in page["head"].items() if name not in NOW}
    everything = json.dumps(said(folder, **filters) | page, default=str)
    return json.loads(everything, parse_float=lambda text: f"{float(text):.12g}")


def same(folder, *, of=figures, **filters):
    """Hold what a folder says against its rows: as it counts them, and then of what it keeps."""
    with nothing_kept():
        of_rows = of(folder, **filters)
    assert of(folder, **filters) == of_rows
    assert of(folder, **filters) == of_rows


quickly = partial(said, styles=QUICK)


def states(folder):
    return [path.name for path in (folder / kept.COUNTS).iterdir()] if (folder / kept.COUNTS).exists() else []


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """A finished sweep of two models, some of whose trials failed; and what it takes to go on with it."""
    home = tmp_path_factory.mktemp("kept")
    problems = problem_set(home, trials=1)
    with simulator(problems, latency_s=0.0, faults=("500=0.2",)) as server:
        models = [
            entry(server, f"simulated/{name}", price={"input": 1, "output": 2}, retry={"attempts": 1})
            for name in ("oracle", "noisy")
        ]
        asked = sweep_file(home, problems, *models)
        assert asyncbench_here("run", asked, "--quiet", "--limit", 40).returncode == 3
        yield home / "out", asked


@pytest.fixture
def folder(night, tmp_path):
    shutil.copytree(night[0], tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / kept.COUNTS, ignore_errors=True)
    return tmp_path / "out"


@pytest.mark.long
def test_figures_are_those_of_the_rows_after_each_kind_of_operation(night):
    folder, asked = night
    same(folder)

    def done(*words):
        assert asyncbench_here(*words).returncode in (0, 3)
        same(folder)

    done("run", asked, "--quiet")  # the rest of the trials
    done("run", asked, "--quiet", "--retry", "failed")
    done("run", asked, "--quiet", "--retry", "failed", "--workers", 2)
    done("regrade", folder, "--write")
    compacted(folder)
    same(folder)
    other = asked.with_name("other.yaml")
    other.write_text(asked.read_text().replace(str(folder), str(folder.with_name("again"))))
    done("run", other, "--quiet", "--reuse", folder)
    same(folder.with_name("again"))
    done("merge", folder, folder.with_name("again"), "--out", folder.with_name("both"))
    same(folder.with_name("both"))
    assert len(states(folder)) == 1  # those of earlier states are gone


@pytest.mark.long
def test_filters_have_counts_of_their_own(folder):
    same(folder)
    same(folder, models=["simulated/oracle"])
    same(folder, of=quickly, task="int_add")
    same(folder, of=quickly, where="length > 3")


def test_the_second_report_reads_no_row(folder, monkeypatch):
    for style in ("standings", "cost", "anatomy", "heatmap", "providers"):
        ab.report(folder, style).as_text()

    def refuse(*_, **__):
        raise AssertionError("rows are read")

    monkeypatch.setattr(Snapshot, "batches", refuse)
    for style in ("standings", "cost", "anatomy", "heatmap", "providers"):
        ab.report(folder, style).as_text()


@pytest.mark.long
@pytest.mark.parametrize("table", ["trials", "grades", "attempts"])
@pytest.mark.parametrize("damage", ["flipped", "gone", "cut"])
def test_a_part_that_is_damaged_later_is_found(folder, table, damage):
    said(folder, QUICK)
    part = next((folder / table).rglob("*.parquet"))
    data = bytearray(part.read_bytes())
    for at in range(200, len(data) - 200, 97):
        data[at] ^= 1
    part.unlink()
    if damage != "gone":
        part.write_bytes(data if damage == "flipped" else data[: len(data) // 2])
    with nothing_kept():
        of_rows = said(folder, QUICK)
    assert said(folder, QUICK) == of_rows
    assert any(str(part.relative_to(folder)) in text for text in of_rows.values())


@pytest.mark.long
def test_while_a_journal_holds_rows_nothing_is_kept(folder):
    figures(folder)
    with Store.reopen(folder) as store:
        for event in (sent(trial(1)), ended(trial(1), reply(1)), result(trial(1), reply(1))):
            store.keep(event)
        killed = folder.with_name("killed")
        shutil.copytree(folder, killed)
    same(folder, of=quickly)  # sealed: another state
    shutil.rmtree(killed / kept.COUNTS)
    same(killed)
    assert not states(killed)


@pytest.mark.long
@pytest.mark.parametrize(
    "how", ["flipped", "folder", *(pytest.param(how, marks=pytest.mark.long) for how in ("cut", "empty"))]
)
def test_counts_that_are_not_as_they_were_written_are_made_again(folder, how):
    with nothing_kept():
        of_rows = said(folder, QUICK)
    said(folder, QUICK)
    (state,) = states(folder)
    for path in (folder / kept.COUNTS / state).iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.unlink()
        if how == "folder":
            path.mkdir()
        else:
            path.write_bytes({"cut": data[: len(data) // 2], "flipped": data, "empty": b""}[how])
    assert said(folder, QUICK) == of_rows


@pytest.mark.long
def test_one_result_that_is_gone_is_counted_again(folder):
    with nothing_kept():
        of_rows = said(folder, ["standings"])
    said(folder, ["standings"])
    (state,) = states(folder)
    for path in sorted((folder / kept.COUNTS / state).iterdir()):
        path.unlink()
        assert said(folder, ["standings"]) == of_rows


# Copies a folder with counts of an earlier state again and again; who reports on the n-th dies before the
# n-th change in `.counts`, until one gets through.
_KILLED = """
import os, shutil, sys
import asyncbench as ab
from asyncbench.analysis import kept

kept.LEAST = 1
CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}
folder, n, code = sys.argv[1], 0, 9
while code:
    copy, remaining = f"{folder}-{n}", n
    shutil.copytree(folder, copy)
    if not (child := os.fork()):
        def step(event, arguments):
            global remaining
            writes = event == "open" and "w" in str(arguments[1])
            if (event in CHANGES or writes) and kept.COUNTS in str(arguments):
                remaining -= 1
                if remaining == -1:
                    if event == "os.rename":  # as where power fails: half of what it names is there
                        os.truncate(arguments[0], os.path.getsize(arguments[0]) // 2)
                        os.rename(*arguments[:2])
                    os._exit(9)
        sys.addaudithook(step)
        ab.report(copy, "standings").as_text()
        os._exit(0)
    n, code = n + 1, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


@pytest.mark.long
def test_after_a_kill_at_each_step_of_keeping_the_next_reader_has_the_same_figures(folder):
    of_rows = said(folder, ["standings"])["standings"]
    (folder / kept.COUNTS / states(folder)[0]).rename(folder / kept.COUNTS / "earlier")
    subprocess.run([sys.executable, "-c", _KILLED, folder], check=True, timeout=HANG_S)
    killed = sorted(folder.parent.glob("out-*"))
    results = len([*(folder / kept.COUNTS / "earlier").iterdir()])
    assert len(killed) > 2 * results  # each is made, then named
    for copy in killed:
        for _ in range(2):  # of rows and what was kept before, then of what is kept
            assert said(copy, ["standings"])["standings"].replace(str(copy), str(folder)) == of_rows


@pytest.mark.long
def test_a_copied_folder_counts_its_own_rows_and_a_moved_one_keeps_its_counts(folder, tmp_path):
    quickly(folder)
    (before,) = states(folder)
    shutil.copytree(folder, tmp_path / "copy")
    folder.rename(tmp_path / "moved")
    for name in ("copy", "moved"):
        same(tmp_path / name, of=quickly)
    assert states(tmp_path / "moved") == [before] != states(tmp_path / "copy")
    shutil.rmtree(tmp_path / "moved" / kept.COUNTS)  # anybody may, at any time
    same(tmp_path / "moved", of=quickly)


@pytest.mark.long
@pytest.mark.parametrize("place", ["file", "link"])
def test_where_nothing_can_be_kept_reports_are_as_ever(folder, tmp_path, place):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("stays")
    if place == "file":
        (folder / kept.COUNTS).write_text("mine")
    else:
        (folder / kept.COUNTS).symlink_to(elsewhere)
    same(folder, of=quickly)
    assert [path.name for path in elsewhere.iterdir()] == ["mine"]


def test_a_small_folder_keeps_nothing(folder, monkeypatch):
    monkeypatch.setattr(kept, "LEAST", 10_000)
    said(folder, QUICK)
    assert not (folder / kept.COUNTS).exists()


def test_sums_of_dollars_come_back_to_the_last_digit():
    rows: list[dict[str, Any]] = [{"usd": 2**90 + 1, "name": "a"}, {"usd": None, "name": None}]
    content = kept.packed_rows(rows)
    assert content is not None
    assert kept.unpacked_rows(content) == rows


def test_rows_that_would_come_back_otherwise_are_not_kept():
    rows: list[dict[str, Any]] = [{"seconds": 1}, {"seconds": 1.5}]
    assert kept.packed_rows(rows) is None
