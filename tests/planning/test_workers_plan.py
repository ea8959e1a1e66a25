"""Whether workers help: what the limits of a sweep allow beside what processes carry."""

import asyncio
import json
from dataclasses import replace

import pytest

from asyncbench import plan, run_sweep
from asyncbench.checkup import capacity_for
from asyncbench.config import load_sweep, sweep_from
from asyncbench.fleet import CallCost, keep_costs, kinds_of
from asyncbench.planning import WorkersPlan, load_plan, sampled_plans, sets_of, workers_plan
from asyncbench.planning.records import ModelPlan
from tests.commands import asyncbench_here
from tests.sweep_files import Said, entry, problem_set, simulator, sweep

COST = CallCost(alone_s=1 / 1100, call_s=0.6e-3, hand_s=0.04e-3)
KNOWN = {"cores": 8, "allowed_per_s": 412.0, "unlimited": (), "cost": COST}


def found(**known):
    return WorkersPlan(**{"wanted": 2, **KNOWN, **known})


# ── in words ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("known", "said"),
    [
        pytest.param(
            {},
            "workers: 2, but workers cannot help here: the limits of this sweep allow 412 calls a second; "
            "one process carries about 1,100.",
            id="limits are the bound",
        ),
        pytest.param(
            {"allowed_per_s": 4120.0},
            "workers: 2. The limits of this sweep allow 4,120 calls a second; one process carries about "
            "1,100, and 2 workers about 2,900.",
            id="one process is the bound",
        ),
        pytest.param(
            {"wanted": 0, "allowed_per_s": 4120.0},
            "Workers help: the limits of this sweep allow 4,120 calls a second; one process carries about "
            "1,100, and 2 workers about 2,900. Set `--workers 2`.",
            id="nobody asked",
        ),
        pytest.param({"wanted": 0}, None, id="nobody asked, and they cannot help"),
        pytest.param({"wanted": 0, "unlimited": ("fast",)}, None, id="nobody asked, and nobody can tell"),
        pytest.param(
            {"cores": 1},
            "workers: 2, but workers cannot help here: only one core can be used; the limits of this sweep "
            "allow 412 calls a second; one process carries about 1,100.",
            id="one core",
        ),
        pytest.param(
            {"allowed_per_s": 1102.0},
            "workers: 2, but workers cannot help here: the limits of this sweep allow 1,102 calls a second; "
            "one process carries about 1,100.",
            id="limits that one process carries but for a little",
        ),
        pytest.param(
            {"packaged": True, "allowed_per_s": None, "cost": None},
            "workers: 2, but workers cannot help here: a package's own code makes all calls.",
            id="no call is for workers",
        ),
        pytest.param(
            {"cores": 1, "wanted": 0, "auto": True},
            "workers: auto starts none here, for only one core can be used.",
            id="auto with one core",
        ),
        pytest.param(
            {"allowed_per_s": None, "unlimited": ("fast", "slow")},
            "workers: 2. One process carries about 1,100 calls a second, and 2 workers about 2,900. No "
            "limit of fast, slow is known, so they may not help.",
            id="no limit is known",
        ),
        pytest.param(
            {"allowed_per_s": None, "untimed": ("slow",)},
            "workers: 2. One process carries about 1,100 calls a second, and 2 workers about 2,900. No "
            "latency of slow is known, so they may not help.",
            id="no latency is known",
        ),
        pytest.param(
            {"unlimited": ("fast",), "untimed": ("slow",)},
            "workers: 2. The limits of this sweep allow 412 calls a second besides fast, slow; one process "
            "carries about 1,100, and 2 workers about 2,900. No limit of fast and no latency of slow is "
            "known, so they may not help.",
            id="neither is known",
        ),
        pytest.param(
            {"unlimited": tuple("abcde")},
            "workers: 2. The limits of this sweep allow 412 calls a second besides a, b, c and 2 more; one "
            "process carries about 1,100, and 2 workers about 2,900. No limit of a, b, c and 2 more is "
            "known, so they may not help.",
            id="some limits are known",
        ),
        pytest.param(
            {"allowed_per_s": 4120.0, "unlimited": ("fast",)},
            "workers: 2. The limits of this sweep allow 4,120 calls a second besides fast; one process "
            "carries about 1,100, and 2 workers about 2,900.",
            id="known limits alone are more than one process carries",
        ),
        pytest.param(
            {"cost": None},
            "workers: 2. What one process carries is not measured, so nobody knows if they help: `asyncbench "
            "doctor SWEEP --capacity` measures it.",
            id="nothing is measured",
        ),
        pytest.param(
            {"cost": None, "why": "exit code 1"},
            "workers: 2. What one process carries is not measured, so nobody knows if they help: "
            "exit code 1.",
            id="it cannot be measured",
        ),
        pytest.param(
            {"wanted": 1, "allowed_per_s": 4120.0, "cost": replace(COST, call_s=0.9e-3)},
            "workers: 1, but workers cannot help here: the limits of this sweep allow 4,120 calls a second; "
            "one process carries about 1,100, and 1 worker no more.",
            id="one worker that carries what one process does",
        ),
        pytest.param(
            {"allowed_per_s": 1.25, "load": True},
            "workers: 2, but workers cannot help here: the steps of this load ask for 1.2 calls a second; "
            "one process carries about 1,100.",
            id="a load",
        ),
        pytest.param(
            {"allowed_per_s": 1.0},
            "workers: 2, but workers cannot help here: the limits of this sweep allow 1 call a second; one "
            "process carries about 1,100.",
            id="one call a second",
        ),
    ],
)
def test_what_a_run_and_a_plan_say(known, said):
    assert found(**known).said == said


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (
            {},
            "8 cores can be used. One process carries about 1,100 calls a second, and 1 worker about "
            "1,600. The limits of this sweep allow 412 calls a second. Workers cannot help.",
        ),
        (
            {"allowed_per_s": 4120.0},
            "8 cores can be used. One process carries about 1,100 calls a second, and 2 workers about "
            "2,900. The limits of this sweep allow 4,120 calls a second. Workers help: `--workers 2`.",
        ),
        (
            {"allowed_per_s": None, "unlimited": ("fast",)},
            "8 cores can be used. One process carries about 1,100 calls a second, and 2 workers about "
            "2,900. No limit of fast is known. Nobody can tell whether workers help.",
        ),
        (
            {"allowed_per_s": None, "untimed": ("slow",)},
            "8 cores can be used. One process carries about 1,100 calls a second, and 2 workers about "
            "2,900. No latency of slow is known. Nobody can tell whether workers help.",
        ),
        (
            {"packaged": True, "allowed_per_s": None, "cost": None},
            "8 cores can be used. A package's own code makes all calls. Workers cannot help.",
        ),
        (
            {"cores": 1},
            "1 core can be used. One process carries about 1,100 calls a second. The limits of this sweep "
            "allow 412 calls a second. Workers cannot help.",
        ),
        (
            {"cost": None, "why": "exit code 1"},
            "8 cores can be used. How many calls a second one process carries is not known: exit code 1. The "
            "limits of this sweep allow 412 calls a second. Nobody can tell whether workers help.",
        ),
    ],
)
def test_what_doctor_says(known, said):
    assert found(wanted=0, **known).in_full == said


# ── the limits ───────────────────────────────────────────────────────────────────────────────


def planned(alias, *, left=10, input_tokens=100, output_tokens=20):
    """A model's plan, of which only what is left matters here: tokens are those of one call."""
    return ModelPlan(
        model=alias,
        trials=left,
        done=0,
        left=left,
        input_tokens=left * input_tokens,
        output_tokens=left * output_tokens,
        output_tokens_most=None,
        cost_usd=None,
        cost_usd_most=None,
        batch_usd=None,
        price_source=None,
        prices=(),
        group=None,
        seconds=0.0,
        bound_by=None,
        max_tokens=None,
        max_tokens_required=False,
    )


DEAR = CallCost(alone_s=4 * COST.alone_s, call_s=4 * COST.call_s, hand_s=COST.hand_s)


def allowed(*entries, left=None, out="nowhere", **keys):
    """Return what workers do for a sweep of these models; all calls but those of `chat` are dear."""
    raw = {"name": "s", "problems": [{"suite": "integer_addition"}], "models": list(entries), "out": str(out)}
    sweep = sweep_from(raw | keys)
    plans = [planned(model.alias, left=(left or {}).get(model.alias, 10)) for model in sweep.models]
    kinds = kinds_of(sweep.models)
    costs = {kind.name: COST if kind.api == "chat" else DEAR for kind in kinds}
    return workers_plan(sweep, sweep.models, plans, costs=costs)


@pytest.mark.parametrize(
    ("limits", "per_s"),
    [
        ({"rpm": 600}, 10),
        ({"rpm": 600, "fraction": 0.5}, 5),
        ({"tpm": 7200}, 1),
        ({"input_tpm": 6000}, 1),
        ({"output_tpm": 2400}, 2),
        ({"rpm": 600, "tpm": 7200, "output_tpm": 2400}, 1),
    ],
)
def test_a_lane_may_make_as_many_calls_as_the_lowest_of_its_limits_allows(limits, per_s):
    assert allowed({"model": "openai/gpt-4.1", **limits}).allowed_per_s == pytest.approx(per_s)


def test_lanes_add_up_and_a_lane_without_limits_is_named():
    models = [
        {"model": "openai/gpt-4.1", "rpm": 600},
        {"model": "anthropic/claude-haiku-4-5", "rpm": 300},
        {"model": "http/m", "alias": "own", "base_url": "http://localhost:8000/v1"},
    ]
    seen = allowed(*models)
    assert (seen.allowed_per_s, seen.unlimited) == (pytest.approx(15), ("own",))


def test_models_of_a_group_share_its_limits():
    models = [{"model": f"openai/gpt-4.1{name}", "rpm": 600, "group": "all"} for name in ("", "-mini")]
    assert allowed(*models).allowed_per_s == pytest.approx(10)


def test_models_that_wait_for_each_other_never_call_at_the_same_time():
    one = {"model": "openai/gpt-4.1", "rpm": [600, 1200]}
    assert allowed(one).allowed_per_s == pytest.approx(20)


def test_models_in_batches_or_with_nothing_left_make_no_calls():
    finished, batched = "openai/gpt-4.1", {"model": "openai/gpt-4.1-mini", "mode": "batch"}
    assert allowed(finished, batched, left={finished: 0}) is None
    asked = allowed({"model": "openai/gpt-4.1-nano", "rpm": 60}, finished, batched, left={finished: 0})
    assert (asked.allowed_per_s, asked.unlimited) == (pytest.approx(1), ())


@pytest.mark.parametrize(
    "keys", [{"rates": [4, 25]}, {"find": {"lowest": 1, "highest": 25}, "slo": {"latency": 9}}]
)
def test_a_load_asks_for_its_highest_rate_of_every_model(keys):
    seen = allowed("openai/gpt-4.1", "openai/gpt-4.1-mini", load=keys)
    assert (seen.allowed_per_s, seen.load) == (pytest.approx(50), True)


def test_callers_have_a_rate_only_where_a_latency_is_known():
    seen = allowed("openai/gpt-4.1", load={"arrivals": "closed", "rates": [4]})
    assert (seen.allowed_per_s, seen.unlimited, seen.untimed) == (None, (), ("openai/gpt-4.1",))


def test_limits_that_earlier_runs_were_told_and_their_latency_count(tmp_path):
    problems, out = problem_set(tmp_path, trials=1), tmp_path / "out"
    told = {"name": "s", "problems": [str(problems)], "models": ["simulated/oracle"], "out": str(out)}
    asyncio.run(run_sweep(told))
    assert allowed("simulated/oracle", out=out).allowed_per_s is None  # the server told no limits
    seen = allowed({"model": "simulated/oracle", "concurrency": 8}, out=out)
    assert seen.allowed_per_s > 8  # calls take less than a second here
    other = allowed({"model": "simulated/noisy", "concurrency": 8}, out=out)
    assert (other.allowed_per_s, other.unlimited) == (None, ())
    assert other.untimed == ("simulated/noisy",)  # it was never asked


@pytest.mark.parametrize(
    ("served", "asked", "now", "per_s"),
    [
        pytest.param(6000, 60_000, 60_000, 100, id="told less than is set"),
        pytest.param(60_000, 6000, 6000, 100, id="told more than is set"),
        pytest.param(6000, None, 60_000, 100, id="told where none was set"),
        pytest.param(None, 6000, 60_000, 1000, id="told nothing, and more is set now"),
    ],
)
def test_of_a_limit_that_is_set_and_one_that_was_told_the_lower_counts(tmp_path, served, asked, now, per_s):
    problems, out = problem_set(tmp_path, trials=1), tmp_path / "out"
    with simulator(problems, rpm=served) as server:
        known = {} if asked is None else {"rpm": asked}
        asyncio.run(run_sweep(sweep(out, problems, entry(server, "simulated/oracle", **known)), limit=1))
    assert allowed({"model": "simulated/oracle", "rpm": now}, out=out).allowed_per_s == pytest.approx(per_s)


# ── what a call costs ────────────────────────────────────────────────────────────────────────

CHEAP_MODEL, DEAR_MODEL = "openai/gpt-4.1", "anthropic/claude-haiku-4-5"


def dear_part(seen):
    """Return which part of the calls of a second are the dear ones."""
    return (seen.cost.alone_s - COST.alone_s) / (DEAR.alone_s - COST.alone_s)


def test_lanes_side_by_side_count_by_their_rates():
    models = [{"model": CHEAP_MODEL, "rpm": 5400}, {"model": DEAR_MODEL, "rpm": 600}]
    assert dear_part(allowed(*models, left={DEAR_MODEL: 10**6})) == pytest.approx(0.1)


def test_lanes_without_a_known_rate_count_by_what_is_left_of_them():
    seen = allowed(CHEAP_MODEL, DEAR_MODEL, left={CHEAP_MODEL: 5, DEAR_MODEL: 99_995})
    assert dear_part(seen) == pytest.approx(0.99995)
    beside = {"model": "openai/gpt-4.1-mini", "rpm": 600}
    seen = allowed(beside, CHEAP_MODEL, DEAR_MODEL, left={CHEAP_MODEL: 25, DEAR_MODEL: 75})
    assert dear_part(seen) == pytest.approx(0.5)  # as if each of the three made ten calls a second


def test_models_of_a_group_count_by_what_is_left_of_them():
    group = {"rpm": 600, "group": "all"}
    models = [{"model": CHEAP_MODEL, **group}, {"model": "openai/o3", "api": "responses", **group}]
    assert dear_part(allowed(*models, left={CHEAP_MODEL: 5, "openai/o3": 15})) == pytest.approx(0.75)


def test_models_that_wait_for_each_other_count_as_one():
    waiting = {"model": CHEAP_MODEL, "rpm": [600, 600.5]}
    seen = allowed(waiting, {"model": DEAR_MODEL, "rpm": 600.5})
    assert dear_part(seen) == pytest.approx(0.5)


def test_what_is_left_is_counted_of_all_trials_and_its_tokens_by_the_first(tmp_path):
    problems = problem_set(tmp_path, trials=4)
    asked = sweep(tmp_path / "out", problems, "simulated/oracle", repeats=2)
    sets = sets_of(asked, asked.models, tmp_path)
    (whole,) = plan(asked).models
    (told,) = sampled_plans(asked, asked.models, sets, limit=None, finished=())
    assert told.left == whole.left == 2 * 288
    assert told.input_tokens == pytest.approx(whole.input_tokens, rel=0.1)
    (few,) = sampled_plans(asked, asked.models, sets, limit=3, finished=())
    assert few.left == 2 * 3


# ── where it is said ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """This machine carries 1,100 calls a second in one process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("asyncbench.planning.allowed_rates.usable_cores", lambda: 4)
    keep_costs({"openai chat": COST, "openai chat streamed": COST})


def swept(tmp_path, **keys):
    model = {"model": "simulated/oracle", "rpm": 24_720, "price": {"input": 0, "output": 0}, **keys}
    return {
        "name": "s",
        "problems": [{"suite": "integer_addition", "tries": 1}],
        "models": [model],
        "out": str(tmp_path / "out"),
    }


@pytest.mark.usefixtures("kept")
def test_a_plan_says_that_workers_cannot_help(tmp_path):
    sweep = swept(tmp_path)
    text = plan(sweep, workers=2).as_text()
    assert "workers: 2, but workers cannot help here: the limits of this sweep allow 412 calls a" in text
    assert "orkers" not in plan(sweep | {"out": "out"}).as_text()
    assert "workers: 2, but" in plan(sweep | {"workers": 2}).as_text()


@pytest.mark.usefixtures("kept")
def test_a_plan_says_how_many_workers_help_where_nobody_asked(tmp_path):
    told = plan(swept(tmp_path, rpm=247_200))
    assert "Workers help: the limits of this sweep allow 4,120 calls a second" in told.as_text()
    assert "`--workers 2`" in told.as_text()
    figures = json.loads(told.as_json())["workers"]
    assert (figures["allowed_per_s"], figures["enough"], figures["help"]) == (pytest.approx(4120), 2, True)
    assert figures["one_process_per_s"] == pytest.approx(1100)


def test_a_plan_says_nothing_on_a_machine_that_measured_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert plan(swept(tmp_path, rpm=247_200)).workers is None
    assert "`asyncbench doctor SWEEP --capacity` measures it" in plan(swept(tmp_path), workers=2).as_text()


@pytest.mark.usefixtures("kept")
def test_the_plan_of_a_load_says_so_of_its_steps(tmp_path):
    sweep = load_sweep(swept(tmp_path, rpm=None) | {"load": {"rates": [5, 10]}, "workers": 2})
    told = load_plan(sweep)
    assert "workers cannot help here: the steps of this load ask for 10 calls a second" in told.as_text()
    assert json.loads(told.as_json())["workers"]["help"] is False


@pytest.mark.long
@pytest.mark.usefixtures("kept")
def test_the_first_line_of_a_run_says_so(tmp_path):
    asyncio.run(run_sweep(swept(tmp_path, rpm=600)))
    screen, none, asked = Said(), Said(), swept(tmp_path) | {"repeats": 2}
    asyncio.run(run_sweep(asked, workers=1, screen=screen))
    found = "workers: 1, but workers cannot help here: the limits of this sweep allow 412 calls a second"
    assert screen.lines[0].startswith(found)  # not the limit that was set before
    asyncio.run(run_sweep(asked, workers=1, screen=none))
    assert not [line for line in none.lines if "workers" in line]  # nothing is left to ask
    other = swept(tmp_path) | {"models": ["simulated/noisy"], "workers": 1}
    screen = Said()
    asyncio.run(run_sweep(other, screen=screen))
    assert screen.lines[0].startswith("workers: 1. One process carries about 1,100 calls a second")


@pytest.mark.long
@pytest.mark.usefixtures("kept")
def test_a_run_a_plan_and_doctor_leave_out_models_that_are_finished(tmp_path, monkeypatch):
    monkeypatch.setattr("asyncbench.checkup.client_speed.measured_costs", lambda *_: {"openai chat": COST})
    slow = {"model": "simulated/noisy", "rpm": 600, "price": {"input": 0, "output": 0}}
    asked = swept(tmp_path, rpm=240_000) | {"workers": 1}
    asyncio.run(run_sweep(asked | {"workers": 0}))
    asked["models"].append(slow)
    said, screen = "the limits of this sweep allow 10 calls a second", Said()
    assert said in plan(asked).as_text()
    assert said.capitalize() in (capacity_for([asked]).said or "")
    asyncio.run(run_sweep(asked, screen=screen))
    assert said in screen.lines[0]


@pytest.mark.long
@pytest.mark.usefixtures("kept")
def test_no_worker_is_started_where_none_could_make_a_call(tmp_path, monkeypatch):
    def started(*_, **__):
        raise AssertionError("workers were started")

    asked = swept(tmp_path) | {"workers": 1}
    monkeypatch.setattr("asyncbench.run.driving.Workers", started)
    with monkeypatch.context() as patched:
        patched.setattr("asyncbench.run.state.makes_own_calls", lambda _: True)
        assert asyncio.run(run_sweep(asked)).exit == 0
    assert asyncio.run(run_sweep(asked)).exit == 0  # all is finished
    batched = swept(tmp_path, mode="batch") | {"workers": 1, "out": str(tmp_path / "batched")}
    assert asyncio.run(run_sweep(batched | {"batch": {"fallback": "none"}})).exit == 0
    with pytest.raises(AssertionError, match="workers were started"):
        asyncio.run(run_sweep(batched | {"out": str(tmp_path / "may fall back")}))


def test_the_command_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    keep_costs({"openai chat": COST})
    file = tmp_path / "s.yaml"
    file.write_text(json.dumps(swept(tmp_path)))
    assert "workers: 2" in asyncbench_here("plan", file, "--workers", "2").stdout
