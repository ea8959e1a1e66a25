"""Machines of a Ray cluster, all on this one: for tests that kill them."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.commands import ROOT

LOOPBACK: Final = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # as there: all addresses are 127.0.0.1
    "RAY_USAGE_STATS_ENABLED": "0",
}
os.environ |= LOOPBACK  # before anything imports ray


class Machines:
    """A head without cores, and machines that can be added and killed."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process, self.folder = process, folder
        self.address = self._told()

    def add(self, *, cores: int = 1, **environment: str) -> int:
        """Add a machine; return the number of its raylet's process."""
        assert self._process.stdin is not None
        print(json.dumps({"cores": cores, "environment": environment}), file=self._process.stdin, flush=True)
        return int(self._told())

    def _told(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("told "):
                return line.removeprefix("told ").strip()
        raise RuntimeError(f"the cluster ended with exit code {self._process.wait()}")


@contextmanager
def machines(environment: Mapping[str, str]) -> Iterator[Machines]:
    """Have a Ray cluster whose processes have an environment; without Ray the test is skipped."""
    pytest.importorskip("ray", reason="ray is not installed: `make slow` has it")
    with ray_folder() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.machines"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**environment, **LOOPBACK, "RAY_TMPDIR": str(folder)},
        )
        try:
            yield Machines(process, folder)
        finally:
            process.communicate()


@contextmanager
def ray_folder() -> Iterator[Path]:
    """Have a folder for what Ray writes; its name is short, since sockets are in it."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _main() -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    _tell(cluster.address)
    for line in sys.stdin:
        asked = json.loads(line)
        node = cluster.add_node(num_cpus=asked["cores"], env_vars=dict(os.environ) | asked["environment"])
        _tell(node.all_processes["raylet"][0].process.pid)
    cluster.shutdown()


def _tell(what: object) -> None:
    print("told", what, flush=True)


if __name__ == "__main__":
    _main()
