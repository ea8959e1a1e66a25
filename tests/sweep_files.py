"""Sweeps against a simulator in another process: what the end-to-end tests share."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from asyncbench import generate, run_sweep
from asyncbench.config.sweep import Sweep, sweep_from
from asyncbench.run.progress import Quiet
from asyncbench.simulator.process import Simulator
from asyncbench.simulator.settings import Settings, parse_fault
from asyncbench.store.catalog import read_trials
from tests.simulators import running

ADAPTERS = (
    "simulated",
    "simulated-anthropic",
    "simulated-http",
)  # the openai SDK, the anthropic SDK, aiohttp


@contextmanager
def simulator(*problems: Path, faults: tuple[str, ...] = (), **settings: object) -> Iterator[Simulator]:
    """Run a simulator that knows these problem sets; faults as on the command line."""
    parsed = tuple(map(parse_fault, faults))
    with running(Settings(problems=problems, faults=parsed, **settings)) as server:  # type: ignore[arg-type]  # checked by Settings
        yield server


class Said(Quiet):
    """A screen that remembers what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


def problem_set(folder: Path, *, trials: int = 2, name: str = "problems") -> Path:
    """Make a set of 72 × `trials` arithmetic problems."""
    path = folder / f"{name}.parquet"
    generate("llm_arithmetic", path, seed=5, trials=trials)
    return path


def base_url(server: Simulator, provider: str) -> str:
    return server.url if provider == "simulated-anthropic" else f"{server.url}/v1"


def entry(server: Simulator, model: str, **keys: object) -> dict[str, object]:
    """A model of the sweep that is answered by this server."""
    return {"model": model, "base_url": base_url(server, model.split("/")[0]), **keys}


def sweep(
    out: Path | str, problems: Path | list[Path], *models: Mapping[str, object] | str, **keys: object
) -> Sweep:
    paths = [str(path) for path in (problems if isinstance(problems, list) else [problems])]
    return sweep_from({"name": "test", "problems": paths, "models": list(models), "out": str(out), **keys})


def sweep_file(folder: Path, problems: Path, *models: object, **keys: object) -> Path:
    """Write a sweep file `s` into a folder, whose results go to `out` beside it."""
    path = folder / "sweep.yaml"
    content = {"name": "s", "problems": [str(problems)], "models": list(models), "out": str(folder / "out")}
    path.write_text(yaml.safe_dump(content | keys))
    return path


def run(*arguments: Any, **keywords: Any) -> Any:
    """Run a sweep to its end."""
    return asyncio.run(run_sweep(*arguments, **keywords))


def swept(
    folder: Path,
    *models: tuple[str, Any],
    suite: str = "llm_arithmetic",
    faults: tuple[str, ...] = (),
    parameters: Mapping[str, Any] | None = None,
    **keys: object,
) -> tuple[Path, Path]:
    """Ask models, each with its keys, a few problems; return the results folder and the problem set."""
    problems = folder / "problems.parquet"
    generate(suite, problems, seed=3, **(parameters or {"depths": "2-3", "trials": 1}))
    with simulator(problems, faults=faults) as server:
        entries = [entry(server, model, retry={"attempts": 1}, **more) for model, more in models]
        run(sweep(folder / "night", problems, *entries, **keys))
    return folder / "night", problems


def calls(server: Simulator) -> int:
    """How many calls a simulator got."""
    return server.stats()["requests"]


def contents(folder: Path) -> dict[Path, bytes]:
    """What a folder holds, each file by its path within it."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def outcomes(out: Path) -> dict[str, str]:
    """Every trial's outcome, by id; a trial that stands twice fails the test."""
    trials: pa.Table = read_trials(out, columns=["trial_id", "outcome"])
    found = {row["trial_id"]: row["outcome"] for row in trials.to_pylist()}
    assert len(found) == trials.num_rows, "a trial stands twice"
    return found
