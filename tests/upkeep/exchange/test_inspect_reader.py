"""Inspect's own package reads what `export inspect` writes, in an environment of its own: `make inspect`."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from asyncbench import export_folder, read_trials
from tests.commands import CLEAN
from tests.upkeep.exchange.inspect_sweep import CONDITIONS, MODELS, swept

READER = Path(__file__).with_name("inspect_reader.py")
PYTHON = os.environ.get("INSPECT_PYTHON")  # of an environment that has inspect-ai
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        PYTHON is None,
        reason="inspect-ai has an environment of its own: `make inspect` makes it and runs this",
    ),
]


def by_inspect(*words):
    """Return what its package says, run by its own Python."""
    done = subprocess.run(
        [str(PYTHON), READER, *map(str, words)], env=CLEAN, check=True, capture_output=True, text=True
    )
    return done.stdout


def check(folder, out):
    """Hold what the package reads and counts in the logs of a folder against the folder's tables."""
    files = export_folder("inspect", folder, out).files
    logs = json.loads(by_inspect(out))
    assert {Path(file.path).name for file in files} == set(logs)
    for name, log in logs.items():
        model, _, condition = name.removesuffix(".eval").partition("+")
        wanted = [("model", "==", model), *([("condition", "==", condition)] if condition else [])]
        trials = read_trials(folder, filters=wanted).to_pylist()
        right = sum(row["exact_match"] for row in trials)
        assert log["samples"] == log["summaries"] == len(log["texts"]) == len(trials)
        assert log["right"] == right
        assert log["counted"] == {
            grader: pytest.approx(metrics, abs=1e-12) for grader, metrics in log["said"].items()
        }
        assert log["counted"][log["headline"]]["accuracy"] == pytest.approx(right / len(trials), abs=1e-12)
        assert log["errors"] == sum(row["outcome"] == "failed" for row in trials)
        assert log["output_tokens"] == sum(row["output_tokens"] or 0 for row in trials)
        assert log["found_alone"]
        for row in trials:
            assert log["texts"][row["trial_id"]][1] == (row["reply_text"] or "")
    return logs


def test_it_reads_5000_trials_and_counts_the_same_accuracy(tmp_path):
    folder = swept(tmp_path, "m", depths="2-10", trials=35, repeats=2)
    logs = check(folder, tmp_path / "logs")
    (log,) = logs.values()
    assert (log["status"], log["task"], log["samples"]) == ("success", "llm_arithmetic", 5_040)
    print(f"\n{log['samples']:,} samples: inspect-ai counts {log['counted']}")


def test_it_reads_failures_cut_replies_reasoning_and_earlier_messages(tmp_path):
    folder = swept(tmp_path, *MODELS, repeats=2, conditions=list(CONDITIONS))
    logs = check(folder, tmp_path / "logs")
    assert len(logs) == 10
    assert logs["broken+plain.eval"]["errors"] > 0


def test_it_reads_the_recorded_runs(imported, tmp_path):
    files = export_folder("inspect", imported, tmp_path).files
    logs = json.loads(by_inspect(tmp_path))
    rows = read_trials(imported, ["run", "model", "condition", "exact_match"]).to_pylist()
    assert sum(log["samples"] for log in logs.values()) == len(rows) == 17_153
    assert sum(log["right"] for log in logs.values()) == sum(row["exact_match"] for row in rows)
    assert len(logs) == len(files) == len({(row["run"], row["model"], row["condition"]) for row in rows})


def test_the_schema_is_the_one_of_its_records():
    assert by_inspect("--schema") == READER.with_name("inspect_schema.json").read_text()
