"""A sweep answered by what other results folders hold."""

import asyncio
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from asyncbench import compare, read_trials, run_sweep
from asyncbench.analysis.counting import counted
from asyncbench.config.sweep import sweep_from
from asyncbench.errors import ConfigError
from asyncbench.providers.wire import SIMULATOR
from asyncbench.published.llm_arithmetic.report import llm_arithmetic_report_on
from asyncbench.reports.regrading import regrade_report
from asyncbench.reports.report import report as styled
from asyncbench.reports.status.report import status_of
from asyncbench.reports.status.run_overview import run_overview_of
from asyncbench.run.summary import Exit
from asyncbench.tables.report import SIMULATED
from tests.sweep_files import entry, problem_set, simulator, sweep

REPORTS: tuple[Any, ...] = (
    *(partial(styled, style=style) for style in (None, "standings", "heatmap", "anatomy", "cost", "quota")),
    *(regrade_report, llm_arithmetic_report_on),
)
ROOT = Path(__file__).resolve().parent.parent


def run(out, problems, *models):
    return asyncio.run(run_sweep(sweep(out, problems, *models)))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two folders of 144 trials by one alias: of one model, and of another. Not to be changed."""
    folder = tmp_path_factory.mktemp("recorded")
    problems = problem_set(folder)
    for name in ("noisy", "noisy-2"):
        run(folder / name, problems, {"model": f"simulated/{name}", "alias": "x"})
    return problems


def replies(folder):
    rows = read_trials(folder, columns=["problem_id", "model", "reply_text"]).to_pylist()
    return {(row["model"], row["problem_id"]): row["reply_text"] for row in rows}


@pytest.mark.long
def test_each_model_is_answered_from_its_own_folder(tmp_path, recorded):
    out = tmp_path / "again"
    summary = run(
        out,
        recorded,
        {"model": "simulated/x", "alias": "one", "replay": str(recorded.parent / "noisy")},
        {"model": "simulated-http/x", "alias": "two", "replay": str(recorded.parent / "noisy-2")},
    )
    assert summary.exit is Exit.COMPLETE
    assert [one["delivered"] for one in summary.seen] == [144, 144]
    again = replies(out)
    for alias, name in (("one", "noisy"), ("two", "noisy-2")):
        for (_, problem), text in replies(recorded.parent / name).items():
            assert again[alias, problem] == text


@pytest.mark.long
def test_answers_of_another_folder_are_other_trials(tmp_path, recorded):
    for name in ("noisy", "noisy-2"):
        summary = run(
            tmp_path / "again", recorded, {"model": "simulated/x", "replay": str(recorded.parent / name)}
        )
        (counters,) = summary.models.values()
        assert (counters.done, counters.done_before) == (144, 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "folder", "said"),
    [
        pytest.param("x", "nowhere", "nowhere was not found", id="no-folder"),
        pytest.param(
            "y",
            "noisy",
            "no run and no model is called 'y' in .*noisy. Name one of its runs: test",
            id="no-such-name",
        ),
    ],
)
def test_what_cannot_be_replayed_is_refused_before_anything_is_made(tmp_path, recorded, model, folder, said):
    out = tmp_path / "again"
    with pytest.raises(ConfigError) as caught:
        run(out, recorded, {"model": f"simulated/{model}", "replay": str(recorded.parent / folder)})
    assert re.search(said, str(caught.value))
    assert not out.exists()


@pytest.mark.long
def test_a_simulator_that_is_asked_in_the_name_of_a_vendor_is_called_simulated(tmp_path):
    problems = problem_set(tmp_path, trials=1)
    with simulator(problems) as server:
        asked = sweep(tmp_path / "out", problems, entry(server, "openai/oracle"))
        summary = asyncio.run(run_sweep(asked, env={"OPENAI_API_KEY": "any"}))
    assert summary.exit is Exit.COMPLETE
    assert set(read_trials(tmp_path / "out", columns=["upstream"])["upstream"].to_pylist()) == {SIMULATOR}
    for report in (*REPORTS, partial(styled, style="morning")):
        told = report(tmp_path / "out")
        assert "in the name of openai" in " ".join(told.as_text().split()), report
        assert json.loads(told.as_json())["simulated"] is True


FAST = {"simulate": {"speedup": 1000}}


def of_recording(out, *, replay, **also):
    """Ask three problems of a recording: whom it recorded, or a model that makes its answers up."""
    recording, name = str(ROOT / "data" / "recorded.parquet"), "gpt-4.1-nano-2025-04-14"
    made_up = {"models": [{"model": "simulated/noisy", "alias": "x"}]}
    made_up["problems"] = [{"path": recording, "run": name}]
    replayed = {"models": [{"model": f"simulated/{name}", "alias": "x", "replay": recording, "params": FAST}]}
    asked = sweep_from({"name": "test", "out": str(out), **(replayed if replay else made_up), **also})
    return asyncio.run(run_sweep(asked, limit=3))


@pytest.mark.long
@pytest.mark.parametrize("first", [False, pytest.param(True, marks=pytest.mark.long)])
def test_made_up_answers_of_an_alias_are_not_called_recorded(tmp_path, first):
    summary = of_recording(tmp_path / "out", replay=first)
    assert summary.as_text().startswith("RECORDED: 1 model" if first else SIMULATED)
    for report in (*REPORTS, status_of) if first else ():
        told = report(tmp_path / "out")
        assert told.as_text().startswith("RECORDED: 1 model"), report
        assert json.loads(told.as_json())["simulated"] is True
    assert ("RECORDED: 1 model" in told_by(tmp_path / "out")) is first
    for replay in (not first, True):
        summary = of_recording(tmp_path / "out", replay=replay)
        assert "Some of them are recorded answers, but not all." in summary.as_text().split("\n")[0]
        told = told_by(tmp_path / "out")
        assert "RECORDED" not in told
        assert "SIMULATED" in told
        assert "Some of them are recorded answers, but not all." in told


@pytest.mark.long
def test_notes_on_several_folders_say_which_is_recorded(tmp_path):
    for name in ("recorded", "made_up"):
        of_recording(tmp_path / name, replay=name == "recorded")
    both = [tmp_path / "recorded", tmp_path / "made_up"]
    for told in (*(styled(both, style) for style in (None, "standings", "cost", "quota", "llm-arithmetic")),):
        text = " ".join(told.as_text().split())
        assert "recorded: RECORDED: 1 model gave these answers" in text
        assert "made_up: SIMULATED: these replies came from asyncbench's own server" in text
    alone = styled(both, "standings", where="folder = 'recorded'").as_text()
    assert "RECORDED: 1 model" in alone
    assert "SIMULATED" not in alone
    compared = compare("x in recorded", "x in made_up", both).as_text()
    assert ("RECORDED: 1 model" in compared, "SIMULATED" in compared) == (True, True)


def told_by(folder):
    return " ".join(counted(folder, run_overview_of).as_text(width=100).split())


def test_effects_of_recorded_answers_are_called_recorded(tmp_path):
    conditions = [{"name": "plain"}, {"name": "terse", "system": "Be brief."}]
    of_recording(tmp_path / "out", replay=True, conditions=conditions)
    assert styled(tmp_path / "out", by="condition").as_text().startswith("RECORDED: 1 model")
