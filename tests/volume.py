"""Runs a large sweep in a process of its own and prints how much memory and disk it needed on the way."""

import asyncio
import json
import os
import sys
from pathlib import Path

import psutil

from asyncbench import generate, run_sweep
from asyncbench.config.sweep import sweep_from
from asyncbench.run.progress import Quiet
from asyncbench.simulator.process import running
from asyncbench.simulator.settings import Settings


class Scales(Quiet):
    """Weighs the process instead of showing progress."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._process = psutil.Process(os.getpid())
        self.readings: list[tuple[int, int, int]] = []  # trials done, bytes of memory, bytes of journal

    async def show(self, lanes, caps=()) -> None:  # noqa: ARG002  as a screen is called
        while True:
            done = sum(one.done for one in lanes.values())
            journal = sum(path.stat().st_size for path in list(self._journal.glob("*.wal")) if path.exists())
            self.readings.append((done, self._process.memory_info().rss, journal))
            await asyncio.sleep(0.05)


def peak_bytes() -> int:
    """Return the most memory this process ever held, that of sealing at the end too.

    Not `ru_maxrss`: on Linux that starts with what the parent held before the exec.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main(folder: Path, trials: int) -> None:
    problems = generate("llm_arithmetic", folder / "p.parquet", seed=1, trials=-(-trials // 72))
    scales = Scales(folder / "out" / "journal")
    with running(Settings(problems=(problems.path,))) as server:
        model = {"model": "simulated-http/noisy", "base_url": f"{server.url}/v1", "concurrency": 256}
        given = {"name": "v", "problems": [str(problems.path)], "models": [model], "out": str(folder / "out")}
        summary = asyncio.run(run_sweep(sweep_from(given), screen=scales))
    done = next(iter(summary.models.values())).done
    scales.readings.append((done, peak_bytes(), 0))
    print(json.dumps({"done": done, "planned": problems.rows, "readings": scales.readings}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
