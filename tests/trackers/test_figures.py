"""What trackers are told of a results folder, and what is refused before anything is sent."""

import pytest

import asyncbench as ab
from asyncbench.config.run_entries import check_installed
from asyncbench.errors import ConfigError
from asyncbench.run.tracking import check_trackers
from asyncbench.trackers.figures import figures_of
from tests.reports.answered import Asked, folder_of


def test_each_entrant_has_its_settings_and_the_figures_that_are_known(tmp_path):
    folder = folder_of(
        tmp_path / "night",
        [Asked(model="a", outcomes="+++-"), Asked(model="b", outcomes="+---", condition="few")],
    )
    told = figures_of(folder)
    assert told.sweep == "s"
    a, b = told.entrants
    suite = next(name.partition("/")[0] for name in a.figures)
    assert a.figures[f"{suite}/accuracy"] == 0.75
    assert a.figures[f"{suite}/accuracy_low"] < 0.75 < a.figures[f"{suite}/accuracy_high"]
    assert (a.figures[f"{suite}/correct"], a.figures[f"{suite}/wrong"]) == (3, 1)
    assert (b.settings["model"], b.settings["condition"]) == ("b", "few")
    assert a.key != b.key
    assert None not in a.figures.values()
    assert f"{suite}/score" not in a.figures  # no grader gave one, so it is unknown


def test_an_entrant_keeps_its_key_where_the_folder_is_moved(tmp_path):
    folder = folder_of(tmp_path / "night", [Asked(model="a", outcomes="+-")])
    before = [entrant.key for entrant in figures_of(folder).entrants]
    moved = folder.rename(tmp_path / "archive")
    assert [entrant.key for entrant in figures_of(moved).entrants] == before


def test_a_tracker_is_named_and_its_package_is_there(tmp_path, monkeypatch):
    folder = folder_of(tmp_path / "night", [Asked(model="a", outcomes="+-")])
    with pytest.raises(ConfigError, match=r"no tracker is named\. Give --mlflow URI"):
        ab.track(folder)
    monkeypatch.setitem(check_installed.__globals__["TRACKERS"], "mlflow", "no_such_package.of_mlflow")
    with pytest.raises(ConfigError, match=r"--mlflow: this needs the extra `mlflow`: pip install"):
        ab.track(folder, mlflow="http://127.0.0.1:9")


def test_a_run_is_refused_before_it_asks_where_it_could_not_send_its_figures(monkeypatch):
    sweep = {
        "name": "night",
        "problems": [{"suite": "integer_addition"}],
        "models": ["simulated/noisy"],
        "track": {"otel": "http://127.0.0.1:4318"},
    }
    monkeypatch.setitem(check_installed.__globals__["TRACKERS"], "otel", "no_such_package")
    with pytest.raises(ConfigError, match=r"night: track.otel: this needs the extra `otel`"):
        check_trackers(ab.load_sweep(sweep))
    with pytest.raises(ConfigError, match="a load has no figures for trackers"):
        check_trackers(ab.load_sweep({**sweep, "load": {"rates": [1], "duration": "10s"}}))
    with pytest.raises(ConfigError, match=r"`track` names no tracker\. Set `mlflow`, `wandb`, `otel`"):
        ab.load_sweep({**sweep, "track": {}})


def test_no_address_of_a_tracker_is_shown():
    sweep = {
        "name": "night",
        "problems": [{"suite": "integer_addition"}],
        "models": ["simulated/noisy"],
        "track": {"otel": "ftp://me:secret@host"},
    }
    with pytest.raises(ConfigError) as refused:
        ab.load_sweep(sweep)
    assert "secret" not in str(refused.value)
    known = ab.load_sweep({**sweep, "track": {"mlflow": "http://me:secret@host"}})
    assert "secret" not in repr(known)
