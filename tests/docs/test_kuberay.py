"""The manifest for Kubernetes runs a command that exists, and has no key in it."""

import shlex
import tomllib

import yaml

from tests.commands import ROOT, asyncbench

MANIFEST = ROOT / "examples" / "kuberay.yaml"


def test_the_job_runs_a_command_that_exists(tmp_path):
    job = yaml.safe_load(MANIFEST.read_text("utf-8"))["spec"]
    program, *words = shlex.split(job["entrypoint"])
    assert program == "asyncbench"
    missing = str(tmp_path / "night.yaml")
    done = asyncbench(*(missing if word.endswith(".yaml") else word for word in words))
    assert done.returncode == 2
    assert "night.yaml" in done.stderr, "only the sweep file is missing"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (ray,) = project["optional-dependencies"]["ray"]
    assert job["rayClusterSpec"]["rayVersion"].rpartition(".")[0] in ray


def test_keys_come_from_a_secret_alone():
    cluster = yaml.safe_load(MANIFEST.read_text("utf-8"))["spec"]["rayClusterSpec"]
    pods = [group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]
    for (container,) in (pod["containers"] for pod in pods):
        assert container["envFrom"] == [{"secretRef": {"name": "asyncbench-keys"}}]
        assert not [one["name"] for one in container["env"] if "KEY" in one["name"] or "TOKEN" in one["name"]]
