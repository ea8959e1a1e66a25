"""Trackers at the end of a run: a process of its own sends the figures, with the packages that this takes."""

import asyncio
import os
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Final

import orjson

from asyncbench.config.run_entries import check_installed
from asyncbench.config.sweep import Sweep
from asyncbench.errors import ConfigError
from asyncbench.files import quoted
from asyncbench.planning.preflight import secret_variables
from asyncbench.providers.workers.process import withhold_keys
from asyncbench.run.interrupts import catching_interrupts
from asyncbench.run.programs import run_program
from asyncbench.run.summary import Summary

SENDING: Final = "from asyncbench.trackers.tracking import main; main()"
_OF_TRACKERS: Final = ("MLFLOW_", "WANDB_", "OTEL_")  # their own keys, which they need


def check_trackers(sweep: Sweep) -> None:
    """Refuse a tracker that a run could not send to at its end.

    Raises:
        ConfigError: its package is not installed, or the sweep is a load, of which no tracker has figures.
    """
    if sweep.track is None:
        return
    key = f"{sweep.file or sweep.name}: track"
    if sweep.load is not None:
        raise ConfigError(f"{key}: a load has no figures for trackers. Remove `track` from this sweep")
    for tracker in sweep.track.targets:
        check_installed(tracker, place=f"{key}.{tracker}")


async def send_to_trackers(
    sweep: Sweep, summary: Summary, began_at: datetime, say: Callable[[str], None]
) -> None:
    """Send the figures of a folder, closed by now, to the sweep's trackers; each failure is said once.

    No failure changes the run or its exit code. Ctrl-C gives the sending up.
    """
    if sweep.track is None or not summary.models:
        return
    keyless = withhold_keys(os.environ, named=secret_variables(sweep))
    of_trackers = {name: value for name, value in os.environ.items() if name.startswith(_OF_TRACKERS)}
    sending = {
        tracker: asyncio.create_task(
            _send(sweep, tracker, target, began_at, {**keyless, **of_trackers}), name=f"track {tracker}"
        )
        for tracker, target in sweep.track.targets.items()
    }

    def give_up() -> None:
        for task in sending.values():
            task.cancel()

    with catching_interrupts(give_up):
        await asyncio.wait(sending.values(), timeout=sweep.track.timeout_s)
    for tracker, task in sending.items():
        why = None if task.done() else f"took longer than {sweep.track.timeout_s:g} s"
        if task.cancel():
            await asyncio.wait([task])
        if task.cancelled():
            why = why or "interrupted"
        elif why is None:
            why = task.result()
        if why is not None:
            # What to type: an address is not repeated, since it may hold a password.
            target = {"mlflow": "URI", "otel": "ADDRESS", "wandb": sweep.track.wandb or ""}[tracker]
            say(
                f"track: {tracker}: {why}. The results are whole. To send them again: "
                f"asyncbench track {quoted(sweep.place)} --{tracker} {target}"
            )


async def _send(
    sweep: Sweep, tracker: str, target: str, began_at: datetime, environment: dict[str, str]
) -> str | None:
    """Send to one tracker; return why it failed, or None."""
    order = orjson.dumps({"folder": str(sweep.out), tracker: target, "since": began_at})
    command = (sys.executable, "-c", SENDING)  # an address may hold a password: it is no word of the command
    try:
        code, complaint = await run_program(command, order, environment, hear=True)
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    lines = complaint.strip().splitlines() or [f"ended with exit code {code}"]
    return lines[-1].rstrip(".") if code else None
