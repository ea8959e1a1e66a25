"""The overnight sweep in processes of its own: asked, killed, asked again, weighed all the while."""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
import yaml

from asyncbench import generate
from asyncbench.store.folder import SEAL_AT_RESULTS
from tests.sweep_files import entry

ROOT = Path(__file__).resolve().parents[2]
MODELS = int(os.environ.get("ASYNCBENCH_MISSION_MODELS", "20"))
PROBLEMS = int(os.environ.get("ASYNCBENCH_MISSION_PROBLEMS", "50000"))  # for each model
ALIASES = tuple(f"noisy-{number + 1}" for number in range(MODELS))
SDKS = ("simulated", "simulated-anthropic")  # openai's, anthropic's: in turns
TASKS, DEPTHS = ("int_add", "int_mul", "float_sub", "float_div"), "4-8"
CELLS = 20  # of these tasks and depths: PROBLEMS is a multiple of it
AT_ONCE = 25  # calls of a model
RPM = 6_000  # of a model, kept by the server: all twenty together are more than one client asks for
SERVER = {"rpm": RPM, "latency_s": 0.2, "latency_sigma": 0.5}
FAULTS = ("429=0.001", "500=0.001", "reset=0.0005")
LOOK_EVERY_S = 0.2
MOST_GROWTH = 15  # percent: of the last third's peak above the middle third's
MIB = 2**20


class Reading(NamedTuple):
    at_s: float  # since the process was started
    asked: int  # calls that the server has seen since it began
    answered: int  # and answered
    rss: int  # bytes, of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of the run, until it ended or was killed."""

    readings: Sequence[Reading]  # the first before anything was asked
    returncode: int
    summary: str  # JSON; empty of a run that was killed

    @property
    def seconds(self) -> float:
        return self.readings[-1].at_s

    @property
    def first_call_s(self) -> float:
        """When the first call was seen, to `LOOK_EVERY_S`; NaN: there was none."""
        before = self.readings[0].asked
        return next((one.at_s for one in self.readings if one.asked > before), math.nan)

    @property
    def answered(self) -> int:
        return self.readings[-1].answered - self.readings[0].answered

    @property
    def peaks(self) -> tuple[int, int, int]:
        """The most memory in each third of the answers, in bytes; the last has what follows the answers."""
        first, most = self.readings[0].answered, [0, 0, 0]
        for one in self.readings:
            third = min(2, 3 * (one.answered - first) // max(1, self.answered))
            most[third] = max(most[third], one.rss)
        return most[0], most[1], most[2]

    @property
    def sealed_in_each_third(self) -> bool:
        """Whether it is long enough for its thirds to be compared: sealing is what needs memory at times."""
        return self.answered >= 6 * SEAL_AT_RESULTS

    @property
    def flat(self) -> bool:
        _, middle, last = self.peaks
        return last * 100 <= middle * (100 + MOST_GROWTH)


def problem_set(folder: Path) -> Path:
    """Make exactly so many problems as are asked of each model."""
    assert PROBLEMS % CELLS == 0, f"ASYNCBENCH_MISSION_PROBLEMS is {PROBLEMS}: give a multiple of {CELLS}"
    path = folder / "problems.parquet"
    made = generate(
        "llm_arithmetic", path, seed=5, variants=",".join(TASKS), depths=DEPTHS, trials=PROBLEMS // CELLS
    )
    assert made.rows == PROBLEMS
    return path


def sweep_file(folder: Path, server, problems: Path) -> Path:
    keys = {"concurrency": AT_ONCE, "rpm": RPM, "price": {"input": 1.0, "output": 4.0}}
    models = [
        entry(server, f"{SDKS[number % 2]}/{alias}", alias=alias, **keys)
        for number, alias in enumerate(ALIASES)
    ]
    given = {"name": "mission", "problems": [str(problems)], "models": models, "out": str(folder / "out")}
    file = folder / "mission.yaml"
    file.write_text(yaml.safe_dump(given))
    return file


def started(file: Path, server, *, kill_at: int | None = None) -> Start:
    """Run the sweep to its end, or until the server has given so many answers: then SIGKILL."""
    said = file.with_suffix(".json")
    command = [sys.executable, "-m", "asyncbench", "run", str(file), "--json"]
    readings = [_reading(server, began_s=time.monotonic())]
    with said.open("w") as output, subprocess.Popen(command, stdout=output, cwd=ROOT) as process:
        try:
            for reading in _readings(process, server):
                readings.append(reading)
                if kill_at is not None and reading.answered >= kill_at:
                    break
        finally:
            process.kill()  # of one that has ended: nothing
    return Start(readings=readings, returncode=process.returncode, summary=said.read_text())


def _readings(process: subprocess.Popen[bytes], server) -> Iterator[Reading]:
    began_s, watched = time.monotonic(), psutil.Process(process.pid)
    while process.poll() is None:
        yield _reading(server, began_s=began_s, rss=rss(watched))
        time.sleep(LOOK_EVERY_S)


def _reading(server, *, began_s: float, rss: int = 0) -> Reading:
    seen = server.stats()
    return Reading(time.monotonic() - began_s, seen["requests"], seen["delivered"], rss)


def rss(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0


def settled(server):
    """Return the server's counts once it has noticed that its client is gone."""
    while (stats := server.stats())["in_flight"]:
        time.sleep(LOOK_EVERY_S)
    return stats


class Said(NamedTuple):
    told: dict[str, list[dict[str, object]]]
    seconds: float


def command(*words: object) -> Said:
    """Run a command that looks at a folder, with --json."""
    began_s = time.monotonic()
    line = [sys.executable, "-m", "asyncbench", *map(str, words), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return Said(json.loads(done.stdout), time.monotonic() - began_s)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
