"""A load over real sockets, with the server's own clock as witness, and queues with known answers."""

import asyncio
import json
from dataclasses import asdict

import pytest

from asyncbench import read_attempts, read_steps, run_load
from tests.commands import asyncbench_here
from tests.lanes.load.test_queues import QUEUES, figures
from tests.sweep_files import entry, simulator, sweep

pytestmark = pytest.mark.long

THERE_AND_BACK_S = 0.003  # of a call over the loopback, which no theory knows
QUIET = {"warmup": 0, "drain": "60s", "rest": 0}


def loaded(planned):
    return asyncio.run(run_load(planned, progress=False))


@pytest.mark.long
@pytest.mark.parametrize("vendor", ["simulated-http", "simulated", "simulated-anthropic"])
def test_the_clock_of_the_server_agrees_with_that_of_the_client(problems, tmp_path, vendor):
    with simulator(problems, slots=2, service="exponential", latency_s=0.05) as server:
        load = QUIET | {"rates": [40], "duration": "1s"}
        loaded(sweep(tmp_path / "out", problems, entry(server, f"{vendor}/oracle"), load=load))
        seen = {arrival.request_id: arrival for arrival in server.arrivals()}

    calls = read_attempts(tmp_path / "out").to_pylist()
    assert {call["request_id"] for call in calls} == seen.keys()
    waited = []
    for call in calls:
        arrival = seen[call["request_id"]]
        began_s, first_s, last_s = (
            (at_s or 0.0) - arrival.arrived_s
            for at_s in (arrival.started_s, arrival.first_byte_s, arrival.last_byte_s)
        )
        assert 0 <= began_s < first_s <= last_s
        assert call["ttft_s"] >= first_s - 1e-6  # what the client waits for is in its times, and more
        assert call["latency_s"] >= last_s - 1e-6
        waited.append(began_s)
    assert max(waited) > 0.01


def test_more_than_this_computer_can_send_gives_no_verdict(problems, tmp_path):
    with simulator(problems) as server:
        told = asyncbench_here(
            "load", "--model", "simulated/oracle", "--base-url", f"{server.url}/v1", "--problems", problems,
            "--rates", "5000", "--slo", "latency=60,share=0.5", "--arrivals", "constant", "--warmup", "0s",
            "--duration", "0.25s", "--drain", "60s", "--rest", "0s", "--out", tmp_path / "out", "--json",
        )  # fmt: skip
        came = sorted(arrival.arrived_s for arrival in server.arrivals())

    (step,) = json.loads(told.stdout)["steps"]
    assert (told.returncode, step["client_bound"], step["verdict"]) == (3, True, "client_bound")
    assert step["offered"] == 1250 == len(came) + step["dropped"]
    assert came[-1] - came[0] > 0.25  # the server, too, has seen fewer a second than were due
    assert read_steps(tmp_path / "out")["verdict"].to_pylist() == ["client_bound"]


@pytest.mark.soak
@pytest.mark.parametrize("name", QUEUES)
def test_a_load_over_sockets_measures_what_the_theory_says(problems, tmp_path, name):
    queue = QUEUES[name]
    pace = {key: value for key, value in asdict(queue.pace).items() if value is not None} | {"chunks": 1}
    load = QUIET | {"rates": [queue.rate], "arrivals": queue.arrivals, "seed": queue.seed}
    load |= {"warmup": queue.warmup, "duration": queue.seconds}
    with simulator(problems, seed=queue.seed, **pace) as server:
        loaded(sweep(tmp_path / "out", problems, entry(server, "simulated-http/oracle"), load=load))
    (step,) = read_steps(tmp_path / "out").to_pylist()
    if step["client_bound"]:
        pytest.skip(f"this machine is too busy: calls were {1000 * step['late_p99_s']:.0f} ms late")
    calls = [row for row in read_attempts(tmp_path / "out").to_pylist() if row["phase"] == "measured"]
    assert len(calls) == step["offered"] == step["answered"]

    found = figures([call["late_s"] + call["latency_s"] for call in calls], queue.latency, moment_s=0.02)
    waited = figures([call["late_s"] + call["ttft_s"] for call in calls], queue.wait, moment_s=0.02)
    if queue.pace.slots is not None:  # of short waits, the way there and back is a part
        waited.pop("share")
    known = queue.latency | {f"wait {key}": queue.wait[key] for key in waited}
    found |= {f"wait {key}": value for key, value in waited.items()}
    print(f"{name}, late p99 {1000 * step['late_p99_s']:.1f} ms; found, known:")
    for key, value in known.items():
        print(f"  {key:10}{found[key]:8.4f}{value:8.4f}{100 * (found[key] / value - 1):+7.1f} %")
    for key, value in known.items():
        own = 0.0 if key == "wait share" else THERE_AND_BACK_S
        assert 0.95 * value < found[key] < 1.05 * value + own
