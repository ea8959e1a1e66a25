"""Interrupted runs: by Ctrl-C, SIGTERM or a lost terminal; or killed, as the next run finds."""

import asyncio
import os
import signal
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from asyncbench.engine.stopping import still_stopped
from asyncbench.errors import AsyncbenchError
from asyncbench.records import StopWhen
from asyncbench.store.lock import read_mark
from asyncbench.store.manifest import planned, read_manifest
from asyncbench.store.status import ModelCounts, trial_counts


@contextmanager
def catching_interrupts(what: Callable[[], None]) -> Iterator[None]:
    """Call `what` in the event loop at every Ctrl-C or SIGTERM while the body lasts; they do nothing else."""
    loop = asyncio.get_running_loop()
    # Only the main thread may: elsewhere (a notebook's worker) the caller cancels the task instead.
    is_main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    for number in signals:
        loop.add_signal_handler(number, what)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


@contextmanager
def catching_hangup(what: Callable[[], None]) -> Iterator[None]:
    """Call `what` in the event loop, once, if the terminal goes while the body lasts, as when ssh drops.

    From then on, nothing is printed to that terminal, and SIGHUP is ignored: a shell sends it a second time.
    Where it was ignored before, as under nohup, the terminal does not count.
    """
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    is_main = threading.current_thread() is threading.main_thread()
    if hangup is None or not is_main or (before := signal.getsignal(hangup)) is signal.SIG_IGN:
        yield
        return
    loop, gone = asyncio.get_running_loop(), False

    def hang_up() -> None:
        nonlocal gone
        if not gone:
            gone = True
            _print_nowhere()
            what()

    loop.add_signal_handler(hangup, hang_up)
    try:
        yield
    finally:
        loop.remove_signal_handler(hangup)
        signal.signal(hangup, signal.SIG_IGN if gone else before)


def _print_nowhere() -> None:
    """Let output that went to a terminal go nowhere: each word to a lost one is an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        with suppress(OSError):  # it is closed
            if stat.S_ISCHR(os.fstat(descriptor).st_mode):  # `isatty` says no of a terminal that is gone
                os.dup2(nowhere, descriptor)
    os.close(nowhere)


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """Known facts of a run that was killed."""

    began_at: str  # UTC, ISO 8601
    written_at: str | None = None  # the last that it wrote; None: nothing yet, or it cannot be read
    models: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # alias → planned, done, open, …


def death_in(folder: Path, when: StopWhen | None = None) -> Death | None:
    """Return how the last run in a folder was broken off, or None if it ended by itself or there was none.

    Trials that the rule `when` skips are not open. While another process runs the sweep, this is of that run.
    """
    if (began_at := read_mark(folder)) is None:
        return None
    try:
        written_at, models = counts_so_far(folder, when)
    except AsyncbenchError:  # whoever opens the folder next complains
        return Death(began_at=began_at)
    written = None if written_at is None else datetime.fromtimestamp(written_at, UTC)
    moment = None if written is None else written.isoformat(timespec="seconds")
    return Death(began_at=began_at, written_at=moment, models=models)


def counts_so_far(folder: Path, when: StopWhen | None) -> tuple[float | None, dict[str, dict[str, int]]]:
    """Return when a folder was written last, seconds since 1970, and its counts by alias, as in `Death`."""
    counts, plan = trial_counts(folder), Counter[str]()
    for (_, alias, _), suites in planned(read_manifest(folder)).items():
        plan[alias] += sum(sum(tasks.values()) for tasks in suites.values())
    models = {}
    for alias in dict.fromkeys([*plan, *counts.models]):
        model_counts = counts.models.get(alias, ModelCounts())
        holds = still_stopped(when, model_counts.skips)
        needless = sum(trials for cell, trials in model_counts.skips.items() if cell in holds)
        models[alias] = {
            "planned": plan[alias],
            "done": model_counts.finished,
            "open": max(0, plan[alias] - model_counts.finished - needless),
            "in_flight": model_counts.in_flight,
        }
    return counts.written_at, models
