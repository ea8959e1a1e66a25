"""An MLflow server, the package of Weights & Biases and a collector get what a run found: `make trackers`."""

import gzip
import json
import os
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest

import asyncbench as ab
from tests.commands import CLEAN, asyncbench, succeeded

PYTHON = os.environ.get("MLFLOW_PYTHON")  # of an environment with an MLflow server
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        PYTHON is None,
        reason="trackers have environments of their own: `make trackers` makes them and runs this",
    ),
]
SWEEP = """
name: night
problems: [{{suite: integer_addition}}]
models:
  - {{model: simulated/noisy, alias: large, temperature: 0.5}}
  - {{model: simulated/noisy-2, alias: small}}
track: {track}
out: results/night
"""


def ran(folder, track, *, env=None):
    """Run the sweep with a tracker, and return what the screen said."""
    (folder / "night.yaml").write_text(SWEEP.format(track=json.dumps(track)))
    return succeeded(asyncbench("run", "night.yaml", "--limit", "8", cwd=folder, env=env)).stderr


@pytest.fixture(scope="module")
def mlflow_server(tmp_path_factory):
    """An MLflow server with a database and artifacts of its own; its address."""
    place = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kept = [
        "--backend-store-uri",
        f"sqlite:///{place}/db.sqlite",
        "--artifacts-destination",
        str(place / "art"),
    ]
    server = subprocess.Popen(
        [
            str(PYTHON),
            "-m",
            "mlflow",
            "server",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--workers",
            "1",
            *kept,
        ],
        env=CLEAN | {"MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        while server.poll() is None:
            try:
                httpx2.get(f"{address}/health", timeout=5)
                break
            except httpx2.HTTPError:
                time.sleep(0.2)
        yield address
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def mlflow_says(address, path, **asked):
    return httpx2.post(f"{address}/api/2.0/mlflow/{path}", json=asked, timeout=60).json()


def test_a_run_sends_its_figures_and_its_page_to_mlflow_and_a_resume_updates_them(tmp_path, mlflow_server):
    for _ in range(2):
        assert "track:" not in ran(tmp_path, {"mlflow": mlflow_server})
    [experiment] = [
        each
        for each in mlflow_says(mlflow_server, "experiments/search", max_results=10)["experiments"]
        if each["name"] == "night"
    ]
    runs = mlflow_says(mlflow_server, "runs/search", experiment_ids=[experiment["experiment_id"]])["runs"]
    by_name = {each["info"]["run_name"]: each for each in runs}
    assert sorted(by_name) == ["SIMULATED large", "SIMULATED night: page", "SIMULATED small"]

    rows = {
        row["model"]: row for row in json.loads(ab.report(tmp_path / "results/night").as_json())["suites"]
    }
    for model, row in rows.items():
        data = by_name[f"SIMULATED {model}"]["data"]
        metrics = {each["key"]: each["value"] for each in data["metrics"]}
        assert metrics["integer_addition/accuracy"] == row["accuracy"]
        assert metrics["integer_addition/trials"] == 8
        assert "integer_addition/cost_usd" not in metrics  # no price is known
        settings = {each["key"]: each["value"] for each in data["params"]}
        assert settings["model"] == model
        assert settings.get("temperature") == {"large": "0.5"}.get(model)

    page = by_name["SIMULATED night: page"]["info"]["run_id"]
    listed = httpx2.get(f"{mlflow_server}/api/2.0/mlflow/artifacts/list?run_id={page}", timeout=60).json()
    assert [file["path"] for file in listed["files"]] == ["report.html"]


def test_a_server_that_is_gone_changes_nothing_and_the_screen_says_what_to_type(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, and nobody listens
        said = ran(tmp_path, {"mlflow": f"http://me:secret@127.0.0.1:{closed.getsockname()[1]}"})
    assert "track: mlflow: " in said
    assert "The results are whole. To send them again: asyncbench track results/night --mlflow URI" in said
    assert "secret" not in said


def test_weights_and_biases_keeps_the_figures_offline(tmp_path):
    said = ran(tmp_path, {"wandb": "numbers"}, env={"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path)})
    assert "track:" not in said
    logs = [log.read_bytes() for log in tmp_path.glob("wandb/offline-run-*/run-*.wandb")]
    assert len(logs) == 3  # two models and the page
    assert sum(b"integer_addition/accuracy" in log for log in logs) == 2
    assert sum(b"report.html" in log for log in logs) == 1


@contextmanager
def collector():
    """A server that takes OTLP over HTTP; yields its address and the spans that it got."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    spans: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                spans.extend(span for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", spans
        server.shutdown()


def test_each_call_is_a_span_by_the_conventions_and_a_later_run_sends_only_its_own(tmp_path):
    with collector() as (address, spans):
        assert "track:" not in ran(tmp_path, {"otel": address})
        calls = ab.read_attempts(tmp_path / "results/night").to_pylist()
        assert len(spans) == len(calls) == 16
        assert len({span.span_id for span in spans}) == 16
        attributes = [{each.key: each.value for each in span.attributes} for span in spans]
        for span, known in zip(spans, attributes, strict=True):
            assert known["gen_ai.operation.name"].string_value == "chat"
            assert span.name == f"chat {known['gen_ai.request.model'].string_value}"
            assert known["gen_ai.usage.input_tokens"].int_value > 0
            assert known["gen_ai.response.finish_reasons"].array_value.values
        lasting = sorted(span.end_time_unix_nano - span.start_time_unix_nano for span in spans)
        assert lasting == sorted(round(call["latency_s"] * 1e9) for call in calls)

        ran(tmp_path, {"otel": address})  # complete: it makes no call
        assert len(spans) == 16
        ab.track(tmp_path / "results/night", otel=address)
        assert len({span.span_id for span in spans}) == 16  # sent once more, with the same ids
        assert len(spans) == 32
