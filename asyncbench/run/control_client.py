"""Pause, resume or set the limits of a run, from a terminal or from Python."""

import asyncio
import math
import os
import shlex
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from asyncbench.config.sweep import load_sweep
from asyncbench.errors import AsyncbenchError, ConfigError
from asyncbench.run.control_server import SocketNote
from asyncbench.store.bucket.claiming import run_folder
from asyncbench.store.bucket.fetching import display_name
from asyncbench.store.lock import read_mark, writer_of
from asyncbench.store.manifest import SWEEP_FILE, read_manifest
from asyncbench.tables.report import Report

REPLY_WITHIN_S: Final = 30.0  # of a run whose event loop is busy
STATUS_WITHIN_S: Final = 2.0  # of a status that may do without
KINDS: Final = ("rpm", "tpm", "input_tpm", "output_tpm", "concurrency")  # of limits, as a sweep says them
NONE: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Controlled(Report):
    """Result of a request to a run."""

    folder: str
    paused: bool
    notes: tuple[str, ...]
    lanes: tuple[Mapping[str, object], ...]  # how each stands now

    def _notes(self) -> Iterator[str]:
        yield from self.notes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """State of a run that is going on."""

    lanes: tuple[Mapping[str, object], ...] = ()
    workers: tuple[Mapping[str, object], ...] = ()  # none where the run makes its calls itself


async def pause_run(folder: Path | str) -> Controlled:
    """Pause the run in a results folder: it sends nothing new until it is resumed.

        print((await ab.pause_run("results/night")).as_text())

    Calls in flight end, and batches that were created go on. A deadline and Ctrl-C still end the run.

    Args:
        folder: the results folder.

    Returns:
        A `Controlled`: what was done, and the state of each lane.

    Raises:
        ConfigError: No run of yours is going on in the folder.
    """
    return await asyncio.to_thread(send_request, Path(folder), {"do": "pause"})


async def resume_run(folder: Path | str) -> Controlled:
    """Resume a run that was paused. A run that has ended is continued by `run_sweep`.

        print((await ab.resume_run("results/night")).as_text())

    Args:
        folder: the results folder.

    Returns:
        A `Controlled`: what was done, and the state of each lane.

    Raises:
        ConfigError: No run of yours is going on in the folder.
    """
    return await asyncio.to_thread(send_request, Path(folder), {"do": "resume"})


async def set_limits(
    folder: Path | str,
    limits: Mapping[str, float | None],
    *,
    model: str | None = None,
) -> Controlled:
    """Set other limits for a run while it goes on.

        await ab.set_limits("results/night", {"rpm": 30, "concurrency": 4}, model="large")

    Args:
        folder: the results folder.
        limits: `rpm`, `tpm`, `input_tpm`, `output_tpm` (per minute) or `concurrency` (calls in flight);
            None: no such limit.
        model: the alias of a model. [all]

    Returns:
        A `Controlled`: what was done, and the state of each lane.

    Raises:
        ConfigError: A limit or a model is unknown, or no run of yours is going on in the folder.
    """
    request = {"do": "set", "limits": checked_limits(limits), "model": model}
    return await asyncio.to_thread(send_request, Path(folder), request)


def limits_typed(words: Sequence[str]) -> dict[str, float | None]:
    """Return limits that were typed as `rpm=30`; raises ConfigError."""
    limits: dict[str, float | None] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"{word}: not a limit. Type its name and number, such as rpm=30")
        try:
            limits[name] = None if value == NONE else float(value)
        except ValueError:
            raise ConfigError(f"{word}: {value!r} is not a number. Type one, such as {name}=30") from None
    return checked_limits(limits)


def checked_limits(limits: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return limits that can be set; raises ConfigError."""
    if not limits:
        raise ConfigError(f"no limit to set. Known: {', '.join(KINDS)}")
    for name, limit in limits.items():
        if name not in KINDS:
            raise ConfigError(f"{name}: unknown limit. Known: {', '.join(KINDS)}")
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < math.inf:
            typed = f"{limit:.10g}" if isinstance(limit, float) else limit
            raise ConfigError(
                f"{name}={typed}: not a number above 0. To send nothing, use `asyncbench pause`; for no such "
                f"limit, {name}={NONE}"
            )
        if name == KINDS[-1] and limit != int(limit):
            raise ConfigError(f"{name}={limit}: not a whole number")
    return dict(limits)


def send_request(folder: Path, request: Mapping[str, object]) -> Controlled:
    """Return what the run in a folder did; raises ConfigError."""
    reply = _reply_of(run_folder(folder), request)
    if "error" in reply:
        raise ConfigError(str(reply["error"]))
    return Controlled(
        folder=display_name(folder),
        paused=bool(reply["paused"]),
        notes=tuple(reply["notes"]),
        lanes=tuple(reply["lanes"]),
    )


def progress_of_run(folder: Path) -> RunProgress:
    """Return how the run in a folder stands; nothing where there is none, or nobody may know.

    Nothing, too, where this is the process that runs it: its event loop may be waiting for us.
    """
    try:
        note = SocketNote.read(folder)
        if note is None or note.pid == os.getpid():
            return RunProgress()
        reply = _talk(note, {"do": "look"}, within_s=STATUS_WITHIN_S)
        return RunProgress(lanes=tuple(reply.get("lanes", ())), workers=tuple(reply.get("workers", ())))
    except (OSError, ValueError, AttributeError):
        return RunProgress()


def _reply_of(folder: Path, request: Mapping[str, object]) -> Mapping[str, Any]:
    read_manifest(folder)
    try:
        if (note := SocketNote.read(folder)) is None:
            raise FileNotFoundError
        return _talk(note, request, within_s=REPLY_WITHIN_S)
    except PermissionError:
        raise ConfigError(
            f"the run in {folder} is another user's. Only the user who started it can control it"
        ) from None
    except TimeoutError:
        raise ConfigError(
            f"the run in {folder} did not answer within {REPLY_WITHIN_S:.0f} s. This computer may be busy. "
            f"See `asyncbench status {folder}`"
        ) from None
    except (OSError, ValueError):
        raise ConfigError(_nobody(folder, str(request["do"]))) from None


def _talk(note: SocketNote, request: Mapping[str, object], *, within_s: float) -> Mapping[str, Any]:
    """Return the reply to one request; raises OSError, ValueError."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(within_s)
        connection.connect(note.socket)
        connection.sendall(orjson.dumps(request) + b"\n")
        with connection.makefile("rb") as lines:
            reply: Mapping[str, Any] = orjson.loads(lines.readline())
    return reply


def _nobody(folder: Path, wanted: str) -> str:
    """Return what to say where no run answers."""
    if (process := writer_of(folder)) is not None:
        return (
            f"process {process or 'unknown'} is writing to {folder}, but takes no commands: it is starting, "
            "ending, or no run. Try again in a moment"
        )
    killed = ", the last one was killed" if read_mark(folder) is not None else ""
    only = "`resume` only goes on with a paused run. " if wanted == "resume" else ""
    return f"no run is going on in {folder}{killed}. {only}To continue the sweep: {_continuing(folder)}"


def _continuing(folder: Path) -> str:
    file = folder / SWEEP_FILE
    try:
        name = "run" if load_sweep(file).load is None else "load"
    except AsyncbenchError:  # whoever runs it is told
        name = "run"
    return f"asyncbench {name} {shlex.quote(str(file))}"
