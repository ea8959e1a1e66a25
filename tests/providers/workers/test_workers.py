"""Workers make the calls of a run: what comes of it is what it would be without them, whatever dies."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress

import pytest
import yaml

from asyncbench import read_attempts, read_grades, read_trials, run_load
from asyncbench.errors import ConfigError
from asyncbench.run.summary import Exit
from asyncbench.store.catalog import read_lanes
from tests.processes import Forked, until
from tests.providers.workers.worker_processes import models_of_one_adapter, workers_of
from tests.sweep_files import ADAPTERS, Said, entry, outcomes, run, simulator, sweep

PRICE = {"input": 1.0, "output": 2.0}
OF_TIME = {"queued_s", "ttft_s", "latency_s", "finished_at", "request_id"}


def kill_if_there(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def facts(table):
    """Return the rows of a table without what differs from run to run, in an order of their own."""
    rows = table.drop_columns([name for name in table.column_names if name in OF_TIME]).to_pylist()
    return sorted(rows, key=repr)


def every_adapter(server):
    """Models through each adapter: one that errs now and then, and one whose answers are streamed."""
    return [
        entry(server, f"{name}/{kind}", alias=f"{name}-{kind}", price=PRICE, stream=kind == "oracle")
        for name in ADAPTERS
        for kind in ("noisy", "oracle")
    ]


@pytest.mark.long
def test_with_workers_a_sweep_has_the_same_trials_replies_grades_and_dollars(tmp_path, problems):
    with simulator(problems) as server:
        models = every_adapter(server)
        alone = run(sweep(tmp_path / "alone", problems, *models))
        before = server.stats()["requests"]
        shared = run(sweep(tmp_path / "shared", problems, *models), workers=2)
        assert server.stats()["requests"] == 2 * before == 2 * 6 * 72

    assert (alone.exit, shared.exit) == (Exit.COMPLETE, Exit.COMPLETE)
    for read in (read_trials, read_grades):
        assert facts(read(tmp_path / "shared")) == facts(read(tmp_path / "alone"))
    calls = read_attempts(tmp_path / "shared").to_pylist()
    assert {call["worker"] for call in calls} == {"1", "2"}
    assert {call["worker"] for call in read_attempts(tmp_path / "alone").to_pylist()} == {None}
    assert {call["latency_s"] > 0 for call in calls} == {True}
    assert {(call["ttft_s"] is None) for call in calls if call["model"].endswith("oracle")} == {False}
    assert workers_of() == {}


@pytest.mark.long
def test_recorded_answers_come_through_workers_as_they_were_given(tmp_path):
    from tests.test_recorded import CHANCE, FILE

    models = [
        {"model": name, "replay": str(FILE), "params": {"simulate": {"speedup": 1000}}} for name in CHANCE
    ]
    for out, workers in (("alone", 0), ("shared", 2)):
        run({"name": "r", "models": models, "out": str(tmp_path / out)}, workers=workers, limit=60)
    assert facts(read_trials(tmp_path / "shared")) == facts(read_trials(tmp_path / "alone"))


@pytest.mark.long
def test_a_single_model_is_shared_by_all_workers(tmp_path, problems):
    with simulator(problems, latency_s=0.2) as server:
        run(sweep(tmp_path / "out", problems, entry(server, "simulated/oracle", concurrency=8)), workers=2)
    by = Counter(call["worker"] for call in read_attempts(tmp_path / "out").to_pylist())
    assert min(by["1"], by["2"]) > 20


@pytest.mark.long
@pytest.mark.parametrize("workers", [0, 2])
def test_a_folder_begun_without_a_shared_limit_goes_on_under_it(tmp_path, problems, workers):
    with simulator(problems) as server:
        models = [entry(server, f"simulated/{name}", alias=name) for name in ("oracle", "noisy")]
        run(sweep(tmp_path / "out", problems, *models), limit=10)
        address = models[0]["base_url"]
        limits = {address: {"rpm": 60_000, "shared": True}}
        run(sweep(tmp_path / "out", problems, *models, limits=limits), workers=workers)
        assert server.stats()["requests"] == 2 * 72
    lanes = Counter[tuple[str, float | None]]()
    for row in read_lanes(tmp_path / "out").to_pylist():
        lanes[row["lane"], row["requests_limit"]] += row["requests"]
    assert lanes == {("oracle", None): 10, ("noisy", None): 10, (address, 60_000): 2 * 62}


@pytest.mark.long
def test_no_worker_is_started_where_none_could_make_a_call(tmp_path, monkeypatch):
    def started(*_, **__):
        raise AssertionError("workers were started")

    model = {"model": "simulated/oracle", "price": {"input": 0, "output": 0}}
    asked = {
        "name": "s",
        "problems": [{"suite": "integer_addition", "tries": 1}],
        "models": [model],
        "out": str(tmp_path / "out"),
        "workers": 1,
    }
    monkeypatch.setattr("asyncbench.run.model_clients.Workers", started)
    with monkeypatch.context() as patched:
        patched.setattr("asyncbench.run.state.makes_own_calls", lambda _: True)
        assert run(asked).exit == 0
    assert run(asked).exit == 0  # all is finished
    batched = asked | {"models": [model | {"mode": "batch"}], "out": str(tmp_path / "batched")}
    assert run(batched | {"batch": {"fallback": "none"}}).exit == 0
    with pytest.raises(AssertionError, match="workers were started"):
        run(batched | {"out": str(tmp_path / "may fall back")})


@pytest.mark.long
def test_errors_of_a_worker_s_calls_are_those_of_any_call(tmp_path, problems):
    faults = ("429=0.1", "500=0.1", "reset=0.05", "stall=0.02")
    with simulator(problems, faults=faults) as server:
        models = [
            entry(server, f"{name}/oracle", retry={"attempts": 30}, timeouts={"total": 4})
            for name in ADAPTERS
        ]
        summary = run(sweep(tmp_path / "out", problems, *models), workers=2)
        stats = server.stats()
    assert summary.exit is Exit.COMPLETE
    calls = read_attempts(tmp_path / "out").to_pylist()
    by = Counter(call["status"] for call in calls)
    assert set(by) >= {"ok", "rate_limited", "server_error", "unreachable", "timeout"}
    assert by["ok"] == 216
    assert 0 < by["rate_limited"] <= stats["rate_limited"]  # one that came too late is a timeout here
    assert all(call["worker"] for call in calls)


@pytest.mark.long
def test_a_load_and_batches_go_on_as_without_workers(tmp_path, problems):
    load = {"arrivals": "constant", "rates": [20], "warmup": "0.5s", "duration": "1.5s", "rest": 0}
    with simulator(problems) as server:
        asyncio.run(
            run_load(
                sweep(tmp_path / "load", problems, entry(server, "simulated/oracle"), load=load), workers=2
            )
        )
    calls = read_attempts(tmp_path / "load").to_pylist()
    assert {call["worker"] for call in calls} == {"1", "2"}
    for call in calls:
        assert call["late_s"] >= 0 < call["ttft_s"] <= call["ttfo_s"] <= call["latency_s"]

    models = [{"model": "simulated/oracle", "mode": "batch"}, {"model": "simulated-http/oracle"}]
    summary = run(sweep(tmp_path / "batch", problems, *models), workers=2)
    assert summary.exit is Exit.COMPLETE
    by = Counter(
        (call["mode"], call["worker"] is None) for call in read_attempts(tmp_path / "batch").to_pylist()
    )
    assert by == {("batch", True): 72, ("realtime", False): 72}


# ── death ────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def meanwhile(work):
    """Do something in a thread while the block lasts, until it says that it has had enough."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.long
def test_workers_that_are_killed_lose_their_calls_and_nothing_else(tmp_path, problems):
    killed: list[int] = []

    def kill(over):
        while not over.is_set() and len(killed) < 6:
            done = server.stats()["delivered"]
            while not over.is_set() and server.stats()["delivered"] < done + 40:
                time.sleep(0.02)
            for pid in [pid for pid in workers_of() if pid not in killed][:1]:
                killed.append(pid)
                kill_if_there(pid)

    out, said = tmp_path / "out", Said()
    with simulator(problems, latency_s=0.1) as server:
        keys = {"price": PRICE, "max_tokens": 64, "concurrency": 4, "timeouts": {"total": 20}}
        models = models_of_one_adapter(server, **keys)
        with meanwhile(kill):
            asked = sweep(out, problems, *models, budget_usd=1.0, repeats=4)
            summary = run(asked, workers=2, screen=said)
        stats = server.stats()

    assert summary.exit is Exit.COMPLETE
    assert len(killed) == 6
    assert len([line for line in said.lines if "died (signal SIGKILL)" in line]) == 6
    assert len(outcomes(out)) == 3 * 72 * 4
    calls = read_attempts(out).to_pylist()
    lost = [call for call in calls if call["status"] == "lost"]
    assert 0 < len(lost) <= 6 * 12
    assert all(call["worker"] and call["reserved_usd"] > 0 and call["cost_usd"] is None for call in lost)
    assert Counter(call["status"] for call in calls)["ok"] == 3 * 72 * 4
    # What the server answered is here, or was lost with the worker that had asked.
    assert 3 * 72 * 4 <= stats["delivered"] <= stats["requests"] <= len(calls)
    (cap,) = summary.budget.as_mapping()["caps"]
    assert cap["spent_usd"] >= stats["delivered"] * 20e-6


@pytest.mark.long
def test_workers_that_die_again_and_again_end_the_run_in_order(tmp_path, problems):
    def kill(over):
        while not over.is_set():
            for pid in workers_of():
                if server.stats()["in_flight"]:
                    kill_if_there(pid)
            time.sleep(0.02)

    out, said = tmp_path / "out", Said()
    with simulator(problems, latency_s=600.0, latency_sigma=0.0) as server, meanwhile(kill):
        summary = run(sweep(out, problems, entry(server, "simulated-http/oracle")), workers=1, screen=said)
    assert summary.exit is Exit.UNFINISHED
    assert "5 times in a row. Stopping" in said.lines[-1]
    calls = read_attempts(out).to_pylist()
    assert {call["status"] for call in calls} - {"unreachable"} == {"lost"}  # one that no worker got
    assert all(call["cost_usd"] == 0 for call in calls if call["status"] == "unreachable")
    assert workers_of() == {}
    with simulator(problems) as server:
        again = run(sweep(out, problems, entry(server, "simulated-http/oracle")))
    assert again.exit is Exit.COMPLETE
    assert len(outcomes(out)) == 72


@pytest.mark.parametrize(
    ("python", "why"),
    [("/bin/false", "ended as it began (exit code 1)"), ("/nowhere/python", "No such file or directory")],
)
def test_a_worker_that_does_not_start_is_told_before_anything_is_spent(
    tmp_path, problems, monkeypatch, python, why
):
    with simulator(problems) as server:
        monkeypatch.setattr(sys, "executable", python)
        with pytest.raises(ConfigError, match="worker 1 ") as told:
            run(sweep(tmp_path / "out", problems, entry(server, "simulated-http/oracle")), workers=1)
        assert server.stats()["requests"] == 0
    assert why in str(told.value)


@pytest.mark.long
def test_a_key_that_no_header_can_hold_is_refused_before_anything_is_spent(tmp_path, problems):
    with simulator(problems) as server:
        asked = [entry(server, f"{name}/oracle", key_env="BAD") for name in ADAPTERS[:1]]
        for workers in (0, 2):
            planned = sweep(tmp_path / f"out{workers}", problems, *asked)
            with pytest.raises(ConfigError, match="key"):
                run(planned, workers=workers, env={"BAD": "sk-abcdefgh ijkl0123"})
        assert server.stats()["requests"] == 0


@pytest.mark.long
def test_no_file_of_the_folder_that_a_run_is_started_in_is_imported(tmp_path, problems):
    for name in ("openai", "aiohttp", "types"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not this one')")
    with simulator(problems) as server:
        process, _, out = started(tmp_path, server, problems, cwd=tmp_path)
        assert process.wait() == 0
    assert len(outcomes(out)) == 3 * 72


@pytest.mark.long
def test_a_worker_that_cannot_be_started_again_ends_the_run_in_order(tmp_path, problems, monkeypatch):
    def kill(_):
        until(lambda: server.stats()["in_flight"] > 2)
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        for pid in workers_of():
            kill_if_there(pid)

    out, said = tmp_path / "out", Said()
    with simulator(problems, latency_s=0.5) as server, meanwhile(kill):
        summary = run(sweep(out, problems, entry(server, "simulated-http/oracle")), workers=1, screen=said)
    assert summary.exit is Exit.UNFINISHED
    assert "worker 1 cannot be started again" in said.lines[-1]
    assert "lost" in {call["status"] for call in read_attempts(out).to_pylist()}


def started(folder, server, problems, *words, cwd=None):
    file, out = folder / "sweep.yaml", folder / "out"
    models = [entry(server, f"{name}/noisy", concurrency=20) for name in ADAPTERS]
    said = {"name": "s", "problems": [str(problems)], "models": models, "out": str(out), "workers": 2}
    file.write_text(yaml.safe_dump(said))
    return Forked("asyncbench", "run", file, "--quiet", *words, cwd=cwd), file, out


@pytest.mark.long
def test_workers_end_with_a_run_that_is_killed_and_the_next_run_completes_it(tmp_path, problems):
    with simulator(problems, latency_s=0.5) as server:
        process, file, out = started(tmp_path, server, problems)
        until(lambda: server.stats()["delivered"] > 20)
        workers = list(workers_of(process.pid))
        process.kill()
        process.wait()
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))
        until(lambda: not server.stats()["in_flight"])
        assert len(workers) == 2
    with simulator(problems) as server:
        said = yaml.safe_load(file.read_text())
        models = [model | {"base_url": entry(server, model["model"])["base_url"]} for model in said["models"]]
        summary = run(said | {"models": models}, workers=3)
    assert summary.exit is Exit.COMPLETE
    assert len(outcomes(out)) == 3 * 72


@pytest.mark.long
def test_ctrl_c_lets_the_calls_of_workers_end(tmp_path, problems):
    with simulator(problems, latency_s=1.0, latency_sigma=0.0) as server:
        process, _, out = started(tmp_path, server, problems)
        until(lambda: server.stats()["in_flight"] > 10)
        workers = list(workers_of(process.pid))
        assert len(workers) == 2
        process.send_signal(signal.SIGINT)
        assert process.wait() == Exit.INTERRUPTED
        stats = server.stats()
    calls = Counter(call["status"] for call in read_attempts(out).to_pylist())
    assert calls == {"ok": stats["delivered"]}
    assert stats["left"] == 0
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))


@pytest.mark.long
def test_a_second_ctrl_c_closes_the_connections_of_workers(tmp_path, problems):
    with simulator(problems, latency_s=60.0, latency_sigma=0.0) as server:
        process, _, out = started(tmp_path, server, problems)
        until(lambda: server.stats()["in_flight"] > 10)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait() == Exit.INTERRUPTED
        until(lambda: not server.stats()["in_flight"])
    assert {call["status"] for call in read_attempts(out).to_pylist()} == {"lost"}
