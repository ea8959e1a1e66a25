"""How many processes make a run's calls: as a sweep says it, and as this machine has cores."""

import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from asyncbench.config.place import quoted
from asyncbench.errors import ConfigError

AUTO_WORKERS: Final = "auto"
MOST_WORKERS: Final = 64
CGROUP: Final = Path("/sys/fs/cgroup")  # as a container sees its own
_QUOTAS: Final = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))  # of version 2, and of 1
WorkersWanted: TypeAlias = int | Literal["auto"]  # 0: none, the run makes its calls itself
WorkersEntry = Annotated[int, Field(ge=0, le=MOST_WORKERS)] | Literal["auto"]  # as a sweep file has it

_WANTED: Final[TypeAdapter[WorkersWanted]] = TypeAdapter(WorkersEntry)


def workers_given(given: object, *, given_as: str) -> WorkersWanted:
    """Return how many workers somebody asks for, outside of a sweep file.

    Raises:
        ConfigError: that is no number of workers. `given_as` is its name, such as `--workers`.
    """
    try:
        return _WANTED.validate_python(given, strict=True)
    except ValidationError:
        raise ConfigError(
            f"{given_as} {quoted(str(given))}: not a number of processes. Give a whole number from 0 (none) "
            f"to {MOST_WORKERS}, or {AUTO_WORKERS}, which leaves one core to the run itself"
        ) from None


def usable_cores() -> int:
    """Return how many cores this process can use at once: as many as it may run on and its container may use.

    Part of a core, as in `docker run --cpus=1.5`, counts as a whole one.
    """
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1  # macOS
    return max(1, math.ceil(min(here, _quota())))


def _quota() -> float:
    """Return how many cores' time the container of this process may take; infinity: nothing says less."""
    for files in _QUOTAS:
        with suppress(OSError, ValueError):  # it is not there, or sets none: "max"
            said = [number for file in files for number in (CGROUP / file).read_text("ascii").split()]
            quota, period = map(int, said)
            if quota > 0 and period > 0:
                return quota / period
    return math.inf


def workers_here(wanted: WorkersWanted) -> int:
    """Return how many workers to start on this machine; `auto` leaves one core to the run itself."""
    return min(MOST_WORKERS, usable_cores() - 1) if wanted == AUTO_WORKERS else int(wanted)
