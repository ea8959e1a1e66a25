"""The example of a gate in GitHub Actions: its shell steps, run on main and on pull requests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.commands import CLEAN, ROOT

pytestmark = pytest.mark.long

WORKFLOW = ROOT / "examples" / "github-gate.yml"
SWEEP = """
name: gate
problems: [{suite: llm_arithmetic, seed: 1, trials: 8}]
models: [{model: %s, alias: small, max_tokens: 400, price: {input: 1, output: 2}}]
"""


def run_steps(folder: Path, event: str) -> dict[str, int]:
    """Run the steps of a checkout up to the first that fails, and return their exit codes by name.

    Left out are steps of GitHub's own, and the install: the environment has asyncbench.
    """
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    codes = dict[str, int]()
    for step in job["steps"]:
        condition = step.get("if", f"github.event_name == '{event}'")
        if "run" not in step or step["name"] == "Install" or condition != f"github.event_name == '{event}'":
            continue
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=folder, env=CLEAN | {"PATH": path}, capture_output=True, check=False
        )
        codes[step["name"]] = done.returncode
        if done.returncode:
            break
    return codes


def test_a_pull_request_passes_with_the_same_model_and_fails_with_a_worse_one(tmp_path):
    (tmp_path / "evals").mkdir()

    def checked_out(model: str) -> None:
        (tmp_path / "evals" / "gate.yaml").write_text(SWEEP % model)

    checked_out("simulated/oracle")
    assert run_steps(tmp_path, "push") == {"Ask": 0, "Keep as the baseline": 0}
    assert run_steps(tmp_path, "pull_request") == {"Ask": 0, "Compare with main": 0}
    checked_out("simulated/noisy")
    assert run_steps(tmp_path, "pull_request") == {"Ask": 0, "Compare with main": 4}
    assert '<failure message="small in now, worse: accuracy' in (tmp_path / "gate.xml").read_text()


def test_each_step_of_githubs_own_names_its_version():
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    assert all("@v" in step["uses"] for step in job["steps"] if "uses" in step)
