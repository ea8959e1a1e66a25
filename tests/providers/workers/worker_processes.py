"""The worker processes of a run of ours, as the system sees them."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from asyncbench.simulator.process import Simulator
from tests.sweep_files import entry

PROGRAMS = ("from asyncbench.providers.workers.worker import main", "-m tests.cluster.processes")


def workers_of(pid: int | None = None) -> dict[int, str]:
    """Return the arguments of the workers that a process has started, by their process id."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = status.read_text().splitlines()
            parent = next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))
            words = (status.parent / "cmdline").read_bytes().decode().split("\0")
        except (OSError, StopIteration):  # it has ended meanwhile
            continue
        said = " ".join(words)
        if parent == (pid or os.getpid()) and any(program in said for program in PROGRAMS):
            found[int(status.parent.name)] = said
    return found


def environment_of(pid: int) -> Mapping[str, str]:
    """Return the environment that a process was started with."""
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def memory_of(pid: int) -> bytes:
    """Return all that a process may write and read again: what it holds."""
    found = []
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, permissions, *_ = line.split()
            if permissions.startswith("rw"):
                begin, end = (int(part, 16) for part in span.split("-"))
                with suppress(OSError):  # what is mapped and not there
                    memory.seek(begin)
                    found.append(memory.read(end - begin))
    return b"".join(found)


def models_of_one_adapter(server: Simulator, **keys: object) -> list[dict[str, object]]:
    """Three models whose workers import no SDK: each that is killed is followed by one that starts anew."""
    asked = {"noisy": "noisy", "oracle": "oracle", "warmer": "noisy"}
    return [
        entry(server, f"simulated-http/{name}", alias=alias, temperature=float(alias == "warmer"), **keys)
        for alias, name in asked.items()
    ]
