"""A folder above several sweeps: `report` and `status` list them, and one that cannot be read is said."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.compute as pc
import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.reports.sweeps import SweepList, SweepRow, in_order
from asyncbench.store.catalog import read_trials
from asyncbench.store.folder import Store
from tests.commands import asyncbench_here, succeeded
from tests.reports.answered import Asked, folder_of


@pytest.fixture
def above(tmp_path) -> Path:
    """A folder with a sweep of two models, one in a folder of its own, a link to it, and other things."""
    results: Path = tmp_path / "results"
    night = [
        Asked(model="mini", outcomes="+++-"),
        Asked(model="haiku", outcomes="+---", cost_usd=None),
    ]
    folder_of(results / "night", night, planned={"mini": {"plain": {"nupa": {"add": 10}}}})
    folder_of(results / "group" / "day", [Asked(model="big", outcomes="++x")])
    (results / "latest").symlink_to("group/day")
    (results / "up").symlink_to("..")
    (results / "app").mkdir()
    (results / "app" / "manifest.json").write_text("{}")  # another program's
    (results / ".hidden").mkdir()
    shutil.copytree(results / "night", results / ".hidden" / "night")
    return results


def test_each_sweep_below_a_folder_is_listed_once_with_its_figures(above):
    listed = ab.list_sweeps(above)
    rows = {row.name: row for row in listed.sweeps}
    assert [*rows] == ["group/day", "night"]
    night, day = rows["night"], rows["group/day"]
    last: datetime = pc.max(read_trials(above / "night")["finished_at"]).as_py()
    assert night.answered_at == last.astimezone(UTC).isoformat("T", "seconds")
    assert night.age_s == pytest.approx((datetime.now(UTC) - last).total_seconds(), rel=0.01)
    assert (night.trials, night.accuracy, night.cost_usd, night.unpriced_attempts) == (8, 0.5, 1.0, 4)
    assert [(model.model, model.accuracy) for model in night.models] == [("haiku", 0.25), ("mini", 0.75)]
    assert (day.trials, day.accuracy, day.running) == (3, 2 / 3, False)


def test_a_sweep_above_all_is_what_the_report_shows_in_every_form(above):
    text = succeeded(asyncbench_here("report", above)).stdout
    assert "2 sweeps" in text
    assert all(word in text for word in ("group/day", "haiku, mini", "25.0% to 75.0%", "≥ $1.0000"))
    assert f"asyncbench report {above}/group/day" in text
    assert "| night | haiku, mini | 8 |" in succeeded(asyncbench_here("report", above, "--markdown")).stdout
    found = json.loads(succeeded(asyncbench_here("report", above, "--json")).stdout)
    assert [sweep["name"] for sweep in found["sweeps"]] == ["group/day", "night"]
    assert [*map(type, (ab.report(above), ab.list_sweeps(above)))] == [SweepList] * 2


def test_one_that_cannot_be_read_says_so_in_its_row(above):
    (above / "torn").mkdir()
    (above / "torn" / "manifest.json").write_text("{")
    (above / "night" / "manifest.json").unlink()
    later = json.loads((above / "group" / "day" / "manifest.json").read_text())
    (above / "later").mkdir()
    (above / "later" / "manifest.json").write_text(json.dumps(later | {"schema_version": 10**6}))
    rows = {row.name: row for row in ab.list_sweeps(above).sweeps}
    assert [*rows] == ["group/day", "later", "night", "torn"]
    assert rows["group/day"].unreadable is None
    assert "Install a later asyncbench" in str(rows["later"].unreadable)
    assert "Restore" in str(rows["night"].unreadable)
    assert (rows["torn"].trials, rows["torn"].cost_usd) == (None, None)
    assert "torn cannot be read: " in ab.list_sweeps(above).as_text()


def test_a_running_sweep_comes_first_with_what_is_planned(above):
    with Store.open(above / "night", sweep="s"):
        listed = ab.list_sweeps(above)
        text = succeeded(asyncbench_here("status", above)).stdout
    assert [(row.name, row.running) for row in listed.sweeps] == [("night", True), ("group/day", False)]
    assert "2 sweeps, 1 running" in text
    assert "planned" in text
    assert f"asyncbench status {above}/night" in text


def test_the_latest_answer_comes_first_and_what_cannot_be_read_last():
    rows = [
        SweepRow(name="torn", folder="", unreadable="why"),
        SweepRow(name="empty", folder=""),
        SweepRow(name="old", folder="", age_s=9.0),
        SweepRow(name="new", folder="", age_s=1.0),
        SweepRow(name="runs", folder="", age_s=5.0, running=True),
    ]
    assert [row.name for row in in_order(rows)] == ["runs", "new", "old", "empty", "torn"]


def test_a_large_sweep_keeps_its_totals_and_counts_again_when_it_has_grown(above, monkeypatch):
    monkeypatch.setattr("asyncbench.analysis.kept.LEAST", 1)
    first = ab.list_sweeps(above)
    kept = [path for path in (above / "night" / ".counts").rglob("*.json") if path.is_file()]
    assert kept
    monkeypatch.setattr("asyncbench.reports.sweeps.count_models", None)  # which is not asked again
    assert [row.models for row in ab.list_sweeps(above).sweeps] == [row.models for row in first.sweeps]
    monkeypatch.undo()
    folder_of(above / "night", [Asked(model="third", outcomes="+", first=90)])
    (grown,) = [row for row in ab.list_sweeps(above).sweeps if row.name == "night"]
    assert [model.model for model in grown.models] == ["haiku", "mini", "third"]


def test_filters_and_other_reports_need_one_sweep(above):
    for words in (["--style", "cost"], ["--models", "mini"], ["--html"]):
        done = asyncbench_here("report", above, *words)
        assert done.returncode == 2
        assert "Name one of them" in done.stderr
    with pytest.raises(ConfigError, match="Name the folder above it"):
        ab.list_sweeps(above / "night")


@pytest.mark.parametrize("command", ["view", "report", "status"])
def test_a_folder_that_does_not_exist_is_said_with_what_is_beside_it(above, command):
    done = asyncbench_here(command, above / "nigt")
    assert done.returncode == 2
    assert f"{above}/nigt does not exist. Name the folder that a run wrote" in done.stderr
    assert "holds latest, night." in done.stderr
    assert "manifest" not in done.stderr
