"""`asyncbench import` and `asyncbench export` as a person or a script meets them."""

import json
import signal
import subprocess
import sys
import time

import pytest

from asyncbench import generate, read_trials
from tests.commands import CLEAN, asyncbench, succeeded
from tests.upkeep.exchange.made import jsonl, trial

SOME_TRIALS = 20_000  # bytes of a journal: some trials are closed in it, and thousands are still to come


@pytest.fixture
def results(tmp_path):
    """A folder with one imported run of two trials."""
    file = jsonl(tmp_path / "a.jsonl", trial(), trial(raw_response="", failed_to_get_reply=True))
    assert asyncbench("import", "llm-arithmetic", file, "--out", tmp_path / "results").returncode == 0
    return tmp_path / "results"


def test_an_import_tells_what_came_of_each_file(tmp_path):
    files = (
        jsonl(tmp_path / "a.jsonl", trial(), trial(raw_response="7")),
        jsonl(tmp_path / "b.jsonl", trial()),
    )
    done = succeeded(asyncbench("import", "llm-arithmetic", *files, "--out", tmp_path / "results"))
    assert done.stdout.splitlines()[:2] == ["a: 2 trials imported", "b: 1 trials imported"]
    assert done.stderr == ""


def test_bad_lines_are_named_on_standard_error_and_end_with_exit_3(tmp_path):
    file = jsonl(tmp_path / "a.jsonl", trial(), b"{", trial(correct=1))
    done = asyncbench("import", "llm-arithmetic", file, "--out", tmp_path / "results", "--json")
    assert done.returncode == 3
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == [
        f"{file}, line {n}" for n in (2, 3)
    ]
    (run,) = json.loads(done.stdout)["runs"]
    assert (run["run"], run["trials"], run["there_before"]) == ("a", 1, 0)
    assert run["left_out"] == done.stderr.splitlines()


def test_the_plan_can_be_given(tmp_path):
    file = jsonl(tmp_path / "a.jsonl", trial(depth=12))
    words = ("import", "llm-arithmetic", file, "--out", tmp_path / "results")
    refused = asyncbench(*words)
    assert refused.returncode == 2
    assert "'depth' is 12, outside the plan" in refused.stderr
    assert asyncbench(*words, "--depths", "12", "--trials", "5").returncode == 0
    status = json.loads(asyncbench("status", tmp_path / "results", "--json").stdout)
    assert [(one["planned"], one["done"]) for one in status["models"]] == [(8 * 5, 1)]


def test_a_report_says_that_imported_trials_were_simulated(tmp_path):
    file = jsonl(tmp_path / "a.jsonl", trial(simulated=True))
    asyncbench("import", "llm-arithmetic", file, "--out", tmp_path / "results")
    for command in ("report", "status"):
        assert "SIMULATED: imported replies" in asyncbench(command, tmp_path / "results").stdout


def test_no_sweep_can_be_run_into_imported_results(results, tmp_path):
    generate("llm_arithmetic", tmp_path / "p.parquet", trials=1, depths="2")
    words = ("--model", "simulated/oracle", "--problems", tmp_path / "p.parquet", "--out", results)
    done = asyncbench("run", *words)
    assert done.returncode == 2
    assert "holds imported results, and a sweep cannot add to them" in done.stderr


def test_an_export_gives_the_file_back(results, tmp_path):
    done = succeeded(asyncbench("export", "llm-arithmetic", results, "--out", tmp_path / "out"))
    out = tmp_path / "out"
    assert done.stdout == f"{out / 'a.jsonl'}: 2 trials\n{out / 'aggregate.jsonl'}: the sums of each file\n"
    again = asyncbench("export", "llm-arithmetic", results, "--out", tmp_path / "out")
    assert again.returncode == 2
    assert "a.jsonl exists already" in again.stderr


@pytest.mark.long
def test_status_and_reports_work_where_a_file_had_only_bad_lines(tmp_path):
    files = jsonl(tmp_path / "bad.jsonl", 7), jsonl(tmp_path / "good.jsonl", trial())
    assert asyncbench("import", "llm-arithmetic", *files, "--out", tmp_path / "results").returncode == 3
    for words in (("status",), ("report",), ("report", "--style", "llm-arithmetic")):
        done = asyncbench(words[0], tmp_path / "results", *words[1:])
        assert (done.returncode, done.stderr) == (0, "")


def interrupted(folder, *arguments, when):
    """Start a command, press Ctrl-C as soon as `when` is so; return its exit code and what it complained.

    On a busy machine whoever looks comes first, or the command would have ended before.
    """
    words = [sys.executable, "-m", "asyncbench", *map(str, arguments)]
    last = ["nice", "-n", "19"]
    with subprocess.Popen(
        last + words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=CLEAN
    ) as process:
        while not when(folder):
            assert process.poll() is None, "it ended before"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate()
    return process.returncode, complaint.decode()


@pytest.mark.long
def test_ctrl_c_in_an_import_keeps_what_it_has_and_importing_again_goes_on(tmp_path):
    folder, lines = tmp_path / "results", 10_000
    file = jsonl(tmp_path / "a.jsonl", *[trial()] * lines)
    words = ("import", "llm-arithmetic", file, "--out", folder)
    code, complaint = interrupted(
        folder,
        *words,
        when=lambda folder: any(one.stat().st_size > SOME_TRIALS for one in folder.glob("journal/*")),
    )
    assert (code, complaint) == (130, "asyncbench: interrupted; run the same import again to continue\n")
    assert 0 < (kept := len(read_trials(folder, ["trial_id"]))) < lines
    (run,) = json.loads(asyncbench(*words, "--json").stdout)["runs"]
    # Ctrl-C may fall between a trial's last line and the note of it: then that one trial is closed again.
    assert run["there_before"] in (kept - 1, kept)
    assert run["there_before"] + run["trials"] == len(read_trials(folder, ["trial_id"])) == lines


@pytest.mark.long
def test_ctrl_c_in_an_export_leaves_nothing(tmp_path):
    files = [jsonl(tmp_path / f"{name}.jsonl", *[trial()] * 2_000) for name in "abcdefgh"]
    asyncbench("import", "llm-arithmetic", *files, "--out", tmp_path / "results")
    words = ("export", "llm-arithmetic", tmp_path / "results", "--out", tmp_path / "out")
    code, complaint = interrupted(tmp_path / "out", *words, when=lambda folder: any(folder.glob(".export-*")))
    assert (code, complaint) == (130, "asyncbench: interrupted; nothing was exported\n")
    assert list((tmp_path / "out").iterdir()) == []
    assert asyncbench(*words).returncode == 0
