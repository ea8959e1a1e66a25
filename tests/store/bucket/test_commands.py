"""The commands on results in a bucket, and a run that is killed there."""

import json
import signal
from pathlib import Path

import pytest
import yaml

import asyncbench as ab
from tests.commands import CLEAN, asyncbench, succeeded
from tests.processes import Forked
from tests.store.bucket.s3_server import Answer, Request, S3Server, nothing
from tests.sweep_files import problem_set

pytestmark = pytest.mark.long

URL = "s3://bucket/mine/night"
KILLED_AT = (4, 9, 14, 19)  # the request: while it claims, uploads for the first time, uploads at the end


@pytest.fixture
def env(s3: S3Server, tmp_path: Path) -> dict[str, str]:
    return {**s3.env, "XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def sweep_file(tmp_path: Path, mapping: dict[str, object]) -> Path:
    (tmp_path / "night.yaml").write_text(yaml.safe_dump(mapping))
    return tmp_path / "night.yaml"


def test_a_sweep_is_typed_run_and_read_with_an_address(env, tmp_path):
    words = ["--model", "simulated/oracle", "--problems", problem_set(tmp_path, trials=1), "--out", URL]
    done = asyncbench("run", *words, "--limit", "5", "--journal", tmp_path / "here", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"copied to {URL}" in done.stdout
    assert (tmp_path / "here" / "manifest.json").exists()

    count = asyncbench("sql", URL, "SELECT count(*) AS n FROM trials", "--json", env=env)
    assert json.loads(count.stdout) == [{"n": 5}]
    for command in ("report", "status", "regrade"):
        read = asyncbench(command, URL, env=env)
        assert (read.returncode, read.stderr) == (0, ""), command
    assert f"{URL} is sound" in asyncbench("status", URL, "--verify", env=env).stdout


def test_a_page_of_a_bucket_needs_a_file(env, sweep_file, tmp_path):
    asyncbench("run", sweep_file, "--limit", "2", "--quiet", env=env)
    refused = asyncbench("report", URL, "--html", env=env)
    assert refused.returncode == 2
    assert "--out" in refused.stderr
    page = tmp_path / "page.html"
    assert asyncbench("report", URL, "--html", "--out", page, env=env).returncode == 0
    assert page.stat().st_size > 100_000


@pytest.mark.parametrize("at", KILLED_AT)
@pytest.mark.long
def test_a_run_that_is_killed_at_a_request_loses_nothing_that_is_paid(
    at, s3: S3Server, env, sweep_file, tmp_path
):
    with (tmp_path / "log").open("wb") as log:
        streams = {"stdout": log.fileno(), "stderr": log.fileno()}
        running = Forked("asyncbench", "run", sweep_file, "--quiet", **streams, env=CLEAN | env)

        def kill(count: int, _: Request) -> Answer | None:
            if count == at:
                running.send_signal(signal.SIGKILL)
                return Answer(503)
            return None

        s3.before = kill
        running.wait()
        s3.before = nothing
    succeeded(asyncbench("run", sweep_file, "--quiet", env=env))
    statuses = ab.read_attempts(URL, ["status"])["status"].to_pylist()
    assert statuses.count("ok") == len(ab.read_trials(URL)) == 72
