"""What calls cost on a machine: what that lets one process carry, and workers; and how it is kept."""

import json
import os

import pytest
from hypothesis import given, strategies as st

from asyncbench.config import sweep_from
from asyncbench.fleet import CallCost, CallKind, keep_costs, kept_costs, kinds_of
from asyncbench.fleet.capacity import APIS

MANY = 64
CHAT = CallKind(via="openai", api="chat")
COST = CallCost(alone_s=400e-6, call_s=200e-6, hand_s=50e-6)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder in which nothing is kept yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


# ── what is carried ──────────────────────────────────────────────────────────────────────────


def test_one_process_carries_one_call_in_the_time_that_a_call_takes_it():
    assert COST.per_s == COST.carried_by(0, cores=MANY) == pytest.approx(2500)


@pytest.mark.parametrize(
    ("workers", "cores", "carried"),
    [
        pytest.param(1, MANY, 1 / 250e-6, id="the worker is the bound"),
        pytest.param(
            2, MANY, 1 / 250e-6, id="the run itself is the bound: 200 of its own, and 50 to hand over"
        ),
        pytest.param(2, 1, 1 / 500e-6, id="one core does all, and the handing over on top"),
        pytest.param(2, 2, 2 / 500e-6, id="two cores"),
    ],
)
def test_workers_carry_what_they_the_run_and_the_cores_can(workers, cores, carried):
    assert COST.carried_by(workers, cores=cores) == pytest.approx(carried)


seconds = st.floats(min_value=1e-6, max_value=0.1)


@given(seconds, seconds, seconds, st.integers(1, 64), st.integers(1, 64))
def test_more_workers_never_carry_less(alone_s, call_s, hand_s, workers, cores):
    cost = CallCost(alone_s=alone_s, call_s=call_s, hand_s=hand_s)
    assert cost.carried_by(workers + 1, cores) >= cost.carried_by(workers, cores) > 0


def test_calls_of_several_kinds_cost_what_they_do_by_their_shares():
    dear = CallCost(alone_s=800e-6, call_s=600e-6, hand_s=70e-6)
    mean = CallCost.mean([(COST, 30.0), (dear, 10.0)])
    assert (mean.alone_s, mean.call_s, mean.hand_s) == pytest.approx((500e-6, 300e-6, 55e-6))


def models(*entries):
    raw = {"name": "s", "problems": [{"suite": "integer_addition"}], "models": list(entries)}
    return sweep_from(raw).models


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"model": "openai/gpt-4.1"}, "openai chat"),
        ({"model": "openai/gpt-4.1", "api": "responses", "stream": True}, "openai responses streamed"),
        ({"model": "openai/gpt-4.1", "door": "sdk"}, "openai chat by its SDK"),
        ({"model": "anthropic/claude-haiku-4-5", "stream": False}, "anthropic messages"),
        ({"model": "http/m", "base_url": "http://localhost:8000/v1"}, "http chat"),
    ],
)
def test_a_call_has_the_kind_of_its_adapter_format_and_stream(entry, kind):
    (model,) = models(entry)
    assert [known.name for known in kinds_of([model])] == [kind]


def test_each_kind_is_measured_once():
    asked = models("openai/gpt-4.1", "openai/gpt-4.1-mini", "simulated-anthropic/oracle")
    assert [kind.name for kind in kinds_of(asked)] == ["openai chat", "anthropic messages"]


# ── how it is kept ───────────────────────────────────────────────────────────────────────────


def test_what_was_measured_is_kept_beside_what_is_known_of_other_kinds(cache):
    assert kept_costs() == {}
    other = CallCost(alone_s=1e-3, call_s=5e-4, hand_s=6e-5)
    keep_costs({"openai chat": other, "http chat": other})
    keep_costs({"openai chat": COST})
    assert kept_costs() == {"openai chat": COST, "http chat": other}
    assert [file.parent for file in cache.rglob("*.*")] == [cache / "asyncbench"]


def test_another_machine_with_the_same_home_has_a_file_of_its_own(cache, monkeypatch):
    keep_costs({"openai chat": COST})
    monkeypatch.setattr("platform.node", lambda: "another")
    assert kept_costs() == {}
    keep_costs({"http chat": COST})
    assert len(list(cache.rglob("*.json"))) == 2


def test_without_a_folder_for_caches_it_is_kept_in_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    keep_costs({"openai chat": COST})
    assert kept_costs() == {"openai chat": COST}
    assert len(list((tmp_path / ".cache" / "asyncbench").iterdir())) == 1


def test_where_nothing_can_be_written_nothing_is_kept_and_nothing_fails(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    keep_costs({"openai chat": COST})
    assert kept_costs() == {}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"calls": 5}',
        '{"calls": {"openai chat": {"alone_s": 1}}}',
        '{"calls": {"openai chat": {"alone_s": 0, "call_s": 0.1, "hand_s": 0.1}}}',
        '{"calls": {"openai chat": {"alone_s": "x", "call_s": 0.1, "hand_s": 0.1}}}',
        "\udcff",
    ],
)
def test_a_file_that_says_nothing_sound_is_as_good_as_none(cache, content):
    keep_costs({"openai chat": COST})
    (file,) = cache.rglob("*.json")
    file.write_bytes(os.fsencode(content))
    assert kept_costs() == {}
    keep_costs({"openai chat": COST})
    assert json.loads(file.read_text())["calls"].keys() == {"openai chat"}


def test_the_kinds_that_can_be_measured_are_those_of_the_adapters():
    assert set(APIS) == {"openai", "anthropic", "http"}
