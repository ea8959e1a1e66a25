"""Every behaviour of the table as a run: a healthy model beside it finishes, and memory stays small."""

import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from asyncbench.errors import ErrorKind
from asyncbench.run.summary import Exit
from tests.commands import CLEAN, ROOT
from tests.providers.asking import ADAPTERS
from tests.providers.hostile import BEHAVIOURS, LATE, Behaviour
from tests.providers.raw_server import RawServer, raw_server
from tests.sweep_files import ADAPTERS as NAMES, problem_set

MOST_MB = 400
LOOK_EVERY_S = 0.02
QUESTIONS = 2  # put to each hostile server, twice at most


def sweep_file(folder: Path, behaviour: Behaviour, servers: list[RawServer]) -> Path:
    problems, few = problem_set(folder), folder / "few.parquet"
    pq.write_table(pq.read_table(problems).slice(0, QUESTIONS), few)
    hostile = [
        {
            "model": f"{name}/hostile",
            "base_url": server.url + adapter.base,
            "problems": [str(few)],
            "max_tokens": 50,
            "stream": behaviour.stream,
            "retry": {"attempts": 2, "total_s": 60},
            "timeouts": {"total": 1 if behaviour.ends is LATE else 20},
        }
        for name, adapter, server in zip(NAMES, ADAPTERS, servers, strict=True)
    ]
    sweep = {
        "name": "hostile",
        "out": str(folder / "out"),
        "problems": [str(problems)],
        "models": ["simulated/oracle", *hostile],
    }
    file = folder / "sweep.yaml"
    file.write_text(yaml.safe_dump(sweep))
    return file


def most_resident_mb(pid: int) -> float:
    """Return the most memory that a process had, once it is gone."""
    most_kb = 0
    while True:
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            return most_kb / 1000
        peak = next((line for line in lines if line.startswith("VmHWM:")), None)
        if peak is None:  # it has ended, and nobody has asked how
            return most_kb / 1000
        most_kb = int(peak.split()[1])
        time.sleep(LOOK_EVERY_S)


@pytest.mark.soak
@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.name)
async def test_a_hostile_server_costs_a_healthy_model_nothing(behaviour, tmp_path):
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(raw_server()) for _ in ADAPTERS]
        for server, adapter in zip(servers, ADAPTERS, strict=True):
            server.manner = behaviour.manner(adapter)
        file = await asyncio.to_thread(sweep_file, tmp_path, behaviour, servers)
        words = ("-m", "asyncbench", "run", str(file), "--json")
        pipe = asyncio.subprocess.PIPE
        run = await asyncio.create_subprocess_exec(
            sys.executable, *words, cwd=ROOT, env=CLEAN, stdout=pipe, stderr=pipe
        )
        most_mb, (out, errors) = await asyncio.gather(
            asyncio.to_thread(most_resident_mb, run.pid), run.communicate()
        )

    print(f"{behaviour.name}: {most_mb:,.0f} MB, exit {run.returncode}")
    assert run.returncode == (Exit.UNFINISHED if isinstance(behaviour.ends, ErrorKind) else Exit.COMPLETE), (
        errors
    )
    told = json.loads(out)["models"]
    assert told["simulated/oracle"]["outcomes"]["correct"] == told["simulated/oracle"]["planned"] == 144
    assert {one["faults"] + one["grader_errors"] for one in told.values()} == {0}, errors
    assert most_mb < MOST_MB
