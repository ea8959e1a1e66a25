"""What a call costs this machine is measured once, by real runs in a process of their own."""

import asyncio
import json
import sys

import pytest

from asyncbench import run_sweep
from asyncbench.config import sweep_from, usable_cores
from asyncbench.errors import ConfigError
from asyncbench.fleet import CallCost, CallKind, keep_costs, kept_costs
from asyncbench.run import costs_here, measured_costs
from tests.sweep_files import Said

KINDS = [CallKind(via="openai", api="chat"), CallKind(via="http", api="chat", stream=True)]
SWEEP = {
    "name": "s",
    "problems": [{"suite": "integer_addition", "tries": 1}],
    "models": [{"model": "simulated/oracle", "rpm": 6000}],
}
CHECKED = sweep_from(SWEEP)


@pytest.fixture(autouse=True)
def _nothing_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.long
def test_a_call_is_measured_with_and_without_a_worker_and_kept(tmp_path, monkeypatch):
    (tmp_path / "openai.py").write_text("raise SystemExit('the wrong library')")
    monkeypatch.chdir(tmp_path)  # a folder in which no library is looked for
    measured = measured_costs(KINDS, CHECKED)
    assert measured.keys() == {"openai chat", "http chat streamed"}
    assert kept_costs() == measured
    for cost in measured.values():
        assert cost.alone_s > cost.call_s > cost.hand_s > 0, cost  # as any run has more to do than its calls


def test_what_is_kept_is_not_measured_again(monkeypatch):
    kept = {kind.name: CallCost(alone_s=1e-3, call_s=6e-4, hand_s=4e-5) for kind in KINDS}
    keep_costs(kept)
    monkeypatch.setattr(sys, "executable", "no such program")
    assert costs_here(KINDS, CHECKED) == kept
    with pytest.raises(ConfigError, match="the process that measures calls failed"):
        measured_costs(KINDS, CHECKED)
    with pytest.raises(ConfigError, match="the process that measures calls failed"):
        costs_here([*KINDS, CallKind(via="anthropic", api="messages")], CHECKED)


@pytest.mark.long
def test_a_run_goes_on_where_nothing_can_be_measured_and_says_why(tmp_path, monkeypatch):
    asked = SWEEP | {"out": str(tmp_path / "out"), "workers": "auto"}
    monkeypatch.setattr("asyncbench.run.forecasts.costs_here", _fails)
    screen = Said()
    summary = asyncio.run(run_sweep(asked, screen=screen))
    assert summary.exit == 0
    if usable_cores() > 1:
        assert screen.lines[0].startswith("Measuring how many calls a second one process carries")
        assert screen.lines[1].endswith("is not measured, so nobody knows if they help: no room.")


def _fails(*_):
    raise ConfigError("no room")


def test_the_process_that_measures_is_given_no_key(tmp_path, monkeypatch):
    seen = tmp_path / "environment"
    measured_by(f"env > {seen}\nexit 7", tmp_path, monkeypatch)
    for name in ("SOME_API_KEY", "MY_VENDOR", "MY_CHANNEL"):
        monkeypatch.setenv(name, "sk-very-secret")
    monkeypatch.setenv("OTHER", "is told")
    keyed = {"model": "openai/gpt-4.1", "key_env": "MY_VENDOR"}
    notify = {"webhook_env": "MY_CHANNEL"}
    with pytest.raises(ConfigError, match="exit code 7"):
        measured_costs(KINDS, sweep_from(SWEEP | {"models": [keyed], "notify": notify}))
    assert "OTHER=is told" in seen.read_text()
    assert "sk-very-secret" not in seen.read_text()


@pytest.mark.parametrize("second", [0.0, -1e-6, 2.0])
def test_what_cannot_be_the_cost_of_a_call_is_refused_and_not_kept(second, tmp_path, monkeypatch):
    told = json.dumps({"openai chat": {"alone_s": 1e-3, "call_s": second, "hand_s": 1e-4}})
    measured_by(f"echo '{told}'", tmp_path, monkeypatch)
    with pytest.raises(ConfigError, match=r"\(openai chat\).*Run `asyncbench doctor SWEEP --capacity` again"):
        measured_costs(KINDS, CHECKED)
    assert kept_costs() == {}


def measured_by(script, folder, monkeypatch):
    """Have a script stand in for the process that measures."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
