"""The command line as a person or a script meets it: real processes, their output and exit codes."""

import csv
import fcntl
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import termios
from collections import Counter
from contextlib import contextmanager

import pyarrow.compute as pc
import pytest

from asyncbench import read_trials
from tests.commands import CLEAN, ROOT, asyncbench, asyncbench_here, succeeded, whole
from tests.processes import Forked, until
from tests.sweep_files import entry, outcomes, problem_set, simulator, sweep_file

ASYNCBENCH = [sys.executable, "-m", "asyncbench"]


def from_nothing(*arguments):
    """Run a command as a shell does: in a process that has imported nothing yet."""
    words = [*ASYNCBENCH, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=CLEAN, check=False)


def ad_hoc(problems, out, *more, model="simulated/noisy"):
    return ("run", "--model", model, "--problems", problems, "--out", out, *more)


@pytest.mark.long
def test_suites_are_listed_with_their_parameters_as_they_would_be_typed():
    told = from_nothing("suites").stdout
    assert "--depths" in told
    assert "(default: 2-10)" in told
    assert "None" not in told


def test_help_loads_no_sdk_and_no_arrow():
    heavy = {"openai", "anthropic", "pyarrow", "pydantic", "asyncio", "rich"}
    script = f"import sys; from asyncbench.cli import app; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# Right answers of those who think longest, and of one that goes through the storm.
CHOSEN = {
    "gemini-3.1-pro-preview": 720,
    "claude-opus-4-6-thinking": 719,
    "claude-sonnet-3.7-thinking": 484,
    "o3-mini-low": 539,
}


@pytest.mark.long
def test_the_demo_runs_in_any_folder_holds_a_thousand_requests_in_flight_and_ends_on_one_screen(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = succeeded(asyncbench("demo", "--out", "shown", cwd=tmp_path))
    screen = done.stdout[done.stdout.index("RECORDED: 8 models gave these answers (2025-05 to 2026-06).") :]
    assert len(screen.splitlines()) <= 25
    assert "leads, statistically tied with claude-opus-4-6-thinking" in screen
    in_flight, limited = (
        re.search(rule, screen) for rule in (r"Up to ([\d,]+) in", r"(\d+) calls got a 429")
    )
    assert in_flight
    assert int(in_flight[1].replace(",", "")) >= 1000
    assert limited, "no storm"
    right = read_trials("shown", columns=["model", "outcome"]).filter(pc.field("outcome") == "correct")
    assert CHOSEN.items() <= Counter(right["model"].to_pylist()).items()
    named = screen.splitlines()[-1].rpartition("  asyncbench ")[2]
    paired = succeeded(asyncbench(*shlex.split(named), cwd=tmp_path)).stdout
    assert paired.startswith("SIMULATED")
    assert "on 720 problems in common" in paired


def test_the_sweep_file_of_the_demo_works_from_any_folder(tmp_path):
    (tmp_path / "mine.yaml").write_text(succeeded(asyncbench_here("demo", "--sweep")).stdout)
    planned = json.loads(succeeded(asyncbench("plan", "mine.yaml", "--json", cwd=tmp_path)).stdout)
    assert [model["trials"] for model in planned["models"]] == [720] * 8
    assert [one["rows"] for one in planned["problem_sets"]] == [720] * 8


def test_a_sweep_file_runs_into_another_folder_and_its_tables_are_exported(tmp_path):
    file = sweep_file(tmp_path, problem_set(tmp_path), "simulated/oracle")
    succeeded(asyncbench_here("run", file, "--limit", "3", "--out", tmp_path / "b"))
    asked = outcomes(tmp_path / "b")
    assert len(asked) == 3
    assert not (tmp_path / "out").exists()
    succeeded(asyncbench_here("export", "csv", tmp_path / "b", "--out", tmp_path / "trials.csv"))
    with (tmp_path / "trials.csv").open(newline="") as table:
        assert {row["trial_id"]: row["outcome"] for row in csv.DictReader(table)} == asked
    words = ("export", "jsonl", tmp_path / "b", "--table", "attempts", "--out", tmp_path / "attempts.jsonl")
    assert succeeded(asyncbench_here(*words)).stdout.endswith("attempts.jsonl: 3 rows\n")
    lines = (tmp_path / "attempts.jsonl").read_text().splitlines()
    assert {json.loads(line)["trial_id"] for line in lines} == set(asked)
    check_mistake(asyncbench_here(*words), "exists already")


@pytest.mark.long
def test_a_closed_standard_error_stops_no_sweep(tmp_path):
    problems, out = problem_set(tmp_path), tmp_path / "out"
    words = [*ASYNCBENCH, *map(str, ad_hoc(problems, out))]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=writer, cwd=ROOT, env=CLEAN, check=False)
    os.close(writer)
    assert done.returncode == 0
    assert len(outcomes(out)) == 144


@pytest.mark.long
def test_a_full_standard_output_is_no_bug_of_ours():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [*ASYNCBENCH, "suites"], stdout=full, stderr=subprocess.PIPE, text=True, env=CLEAN, check=False
        )
    assert done.returncode == 5
    assert done.stderr.startswith("asyncbench: cannot write to standard output: No space left on device")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("typed", "place"), [("red,,blue", "2 of 3"), ("", "1 of 1"), ("red, ", "2 of 2")])
def test_an_empty_name_of_a_model_is_refused(tmp_path, typed, place):
    sweep = sweep_file(tmp_path, problem_set(tmp_path), "simulated/oracle")
    for command, path in (("report", tmp_path), ("run", sweep), ("plan", sweep)):
        done = asyncbench_here(command, path, "--models", typed)
        assert done.returncode == 2
        assert f'--models "{typed}": name {place} is empty.' in done.stderr
        assert "red,blue" in done.stderr


def test_a_wrong_key_ends_with_exit_3_and_says_which_model(tmp_path):
    problems = problem_set(tmp_path)
    with simulator(problems, keys=("right",)) as server:
        file = sweep_file(
            tmp_path,
            problems,
            entry(server, "simulated/oracle", key_env="GOOD_KEY"),
            entry(server, "simulated-anthropic/oracle", key_env="BAD_KEY"),
        )
        done = asyncbench("run", file, env={"GOOD_KEY": "right", "BAD_KEY": "wrong-secret"})
    assert done.returncode == 3
    stopped = "simulated-anthropic/oracle: the provider rejects the key in BAD_KEY (HTTP 401"
    assert f"stopped: {stopped}" in done.stdout
    assert (
        "Not complete. 1 of 2 models stopped. 144 trials are left.\nTo continue: asyncbench run"
        in done.stdout
    )
    assert "s: 144/288 done." in done.stdout
    assert done.stderr.count("rejects the key in BAD_KEY") == 1
    assert "unfinished" not in done.stdout, "the overview says again what the summary has said"
    assert "unfinished, run it again" in asyncbench("report", tmp_path / "out", "--style", "morning").stdout
    assert "wrong-secret" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("run", "nowhere.yaml"), "nowhere.yaml: No such file", id="missing-sweep"),
        pytest.param(("run",), "give a sweep file, or --model", id="nothing-given"),
        pytest.param(("run", "configs/demo.yaml", "--suite", "nupa"), "not both", id="file-and-options"),
        pytest.param(ad_hoc("nowhere.parquet", "x"), "nowhere.parquet", id="missing-problems"),
        pytest.param(
            ad_hoc("data/llm_arithmetic.parquet", "x", model="openai/gpt-5-mini"),
            "OPENAI_API_KEY is not set",
            id="missing-key",
        ),
        pytest.param(("run", "configs/demo.yaml", "--retry", "wrong"), "--retry wrong", id="retry-wrong"),
        pytest.param(("generate", "nope", "--out", "x"), "no suite 'nope'", id="unknown-suite"),
        pytest.param(
            ("generate", "llm_arithmetic", "--out", "x", "--depth", "3"),
            "no parameter 'depth'",
            id="parameter",
        ),
        pytest.param(
            ("generate", "llm_arithmetic", "--out", "x", "--depths", "many"), "'many'", id="parameter-value"
        ),
        pytest.param(("generate", "llm_arithmetic", "--out", "x", "oops"), "'oops'", id="stray-word"),
        pytest.param(("status", "data"), "not a results folder", id="status-elsewhere"),
        pytest.param(("report", "data"), "not a results folder", id="report-elsewhere"),
        pytest.param(
            ("simulate", "--problems", "data/llm_arithmetic.parquet", "--fault", "boom=1"), "boom", id="fault"
        ),
        pytest.param(("run", "README.md"), "README.md", id="not-a-sweep"),
        pytest.param(
            ("import", "llm-arithmetic", ".", "--out", "x", "--trials", "9" * 20), "so many of", id="trials"
        ),
        pytest.param(
            ("import", "llm-arithmetic", ".", "--out", "README.md"), "README.md is not a folder", id="out"
        ),
        pytest.param(("import", "csv", "a.jsonl", "--out", "x"), "no format 'csv'", id="format"),
        pytest.param(("import", "llm-arithmetic", "a.jsonl", "--out", "x"), "a.jsonl: No such", id="missing"),
        pytest.param(("export", "xls", ".", "--out", "x"), "no format 'xls'", id="export-format"),
        pytest.param(("export", "csv", "."), "export needs --out", id="export-nowhere"),
        pytest.param(("export", "csv"), "a results folder: asyncbench export csv FOLDER", id="export-what"),
        pytest.param(
            ("export", "csv", ".", "--table", "trails", "--out", "x"), "Did you mean 'trials'", id="table"
        ),
        pytest.param(
            ad_hoc("data/llm_arithmetic.parquet", "x", model="simulated/mistral:nosy"),
            "no model 'mistral:nosy'",
            id="simulated",
        ),
        pytest.param(("export", "llm-arithmetic", ".", "--out", "x"), "not a results folder", id="elsewhere"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(words, said):
    check_mistake(asyncbench_here(*words), said)


@pytest.mark.long
@pytest.mark.parametrize("words", [("run", "nowhere.yaml"), ("run", "--nonsense"), ("report", "--help")])
def test_a_forked_process_says_what_one_from_nothing_says(words):
    forked, started = asyncbench(*words), from_nothing(*words)
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert forked.stderr == started.stderr


@pytest.mark.parametrize(
    ("words", "missing"), [(("sql",), "FOLDER"), (("sql", "."), "QUERY"), (("compare", "a", "b"), "FOLDER")]
)
def test_the_argument_that_is_missing_is_named(words, missing):
    assert f"Missing argument '{missing}'" in asyncbench_here(*words).stderr


def check_mistake(done, said):
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("asyncbench: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


# ── Ctrl-C ───────────────────────────────────────────────────────────────────────────────────


class Started:
    """A command in a process of its own, ended at the latest when the block is left."""

    def __init__(self, *arguments):
        self.words = arguments

    def __enter__(self):
        self.out, self.err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        streams = {"stdout": self.out.fileno(), "stderr": self.err.fileno()}
        self.process = Forked("asyncbench", *self.words, **streams, cwd=ROOT, env=CLEAN)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.out.close()
        self.err.close()

    def signal(self, number):
        self.process.send_signal(number)

    def stdout(self):
        return whole(self.out)

    def stderr(self):
        return whole(self.err)


@contextmanager
def served(folder, *, concurrency=20, **settings):
    """Run a simulator; yields it, and the file of a sweep of 144 trials that it answers."""
    problems = problem_set(folder)
    with simulator(problems, **settings) as server:
        model = entry(server, "simulated/noisy", concurrency=concurrency)
        yield server, sweep_file(folder, problems, model)


def goes_on(server, file, out):
    """Whether all that was delivered is saved, and running it again asks the rest."""
    stats = server.stats()
    assert len(outcomes(out)) == stats["delivered"] == stats["requests"] < 144
    assert asyncbench("run", file).returncode == 0
    assert server.stats()["requests"] == 144
    assert len(outcomes(out)) == 144


@pytest.mark.long
def test_ctrl_c_drains_saves_and_says_so_and_running_again_goes_on(tmp_path):
    with served(tmp_path, latency_s=0.5) as (server, file):
        with Started("run", file) as command:
            until(lambda: server.stats()["delivered"] >= 20)
            command.signal(signal.SIGINT)
            assert command.process.wait() == 130
            told = command.stdout()
            assert "Stopping: waiting up to 30 s for " in command.stderr()
        assert "Interrupted. Everything answered so far is saved." in told
        goes_on(server, file, tmp_path / "out")


def _own_terminal():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # these tests may run under nohup
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def at_a_terminal(*words):
    """Start a command at a terminal of its own; yields the process, and our end of the terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*ASYNCBENCH, *map(str, words)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=CLEAN,
        start_new_session=True,
        preexec_fn=_own_terminal,
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["one process", "workers"])
def test_a_dropped_connection_drains_and_saves_and_running_again_goes_on(tmp_path, workers):
    with served(tmp_path, latency_s=0.5) as (server, file):
        with at_a_terminal("run", file, *workers) as (process, terminal):
            until(lambda: server.stats()["delivered"] >= 20)
            os.close(terminal)
            assert process.wait() == 130
        goes_on(server, file, tmp_path / "out")


@pytest.mark.long
def test_a_shell_that_hangs_up_twice_waits_for_calls_in_flight(tmp_path):
    with served(tmp_path, latency_s=0.5) as (server, file):
        with Started("run", file) as command:
            until(lambda: server.stats()["delivered"] >= 20)
            command.signal(signal.SIGHUP)
            until(lambda: "Stopping" in command.stderr())
            command.signal(signal.SIGHUP)
            assert command.process.wait() == 130
        stats = server.stats()
    assert len(outcomes(tmp_path / "out")) == stats["delivered"] == stats["requests"] < 144


@pytest.mark.long
def test_under_nohup_a_hangup_stops_nothing(tmp_path):
    with served(tmp_path, latency_s=0.1) as (server, file):
        words = ["nohup", *ASYNCBENCH, "run", str(file)]
        with subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT, env=CLEAN
        ) as process:
            until(lambda: server.stats()["delivered"] >= 20)
            process.send_signal(signal.SIGHUP)
            assert process.wait() == 0
    assert len(outcomes(tmp_path / "out")) == 144


@pytest.mark.long
def test_ctrl_c_twice_leaves_at_once_and_what_was_in_flight_is_asked_again(tmp_path):
    out = tmp_path / "out"
    with served(tmp_path, faults=("stall=0.1",), concurrency=100) as (server, file):
        with Started("run", file) as command:
            until(lambda: server.stats()["requests"] == 144)
            command.signal(signal.SIGTERM)
            until(lambda: "Stopping" in command.stderr())
            command.signal(signal.SIGINT)
            assert command.process.wait() == 130
        delivered = server.stats()["delivered"]
    status = json.loads(asyncbench("status", out, "--json").stdout)
    assert [one["done"] for one in status["models"]] == [delivered]
    assert [one["attempts"] for one in status["models"]] == [144]
    with served(tmp_path) as (_, again):
        assert asyncbench("run", again).returncode == 0
    assert len(outcomes(out)) == 144


@pytest.mark.long
def test_a_directory_that_is_gone_is_named_in_words(tmp_path):
    words = shlex.join([*ASYNCBENCH, "run", "sweep.yaml"])
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", f"rmdir {shlex.quote(str(gone))}; {words}"],
        capture_output=True,
        text=True,
        cwd=gone,
        env={**CLEAN, "PYTHONPATH": str(ROOT)},
        check=False,
    )

    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("asyncbench: the current directory is gone: another program removed")
