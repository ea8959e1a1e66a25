"""Processes that are killed at work, at a step of their own or at any moment."""

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.processes import PROCESSES

CHANGES = frozenset({"open", "os.link", "os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"})
MOVES = frozenset({"os.rename", "shutil.rmtree"})
READING = (os.O_RDONLY, os.O_RDONLY | os.O_CLOEXEC)


def start(work: Callable[..., None], *args: object) -> BaseProcess:
    process = PROCESSES.Process(target=work, args=args)
    process.start()
    return process


def die_at(step: int, work: Callable[[Path], None], folder: Path, changes: frozenset[str]) -> None:
    """Do some work; kill this process just before the `step`-th change that it makes in `folder`."""
    count = 0

    def watch(event: str, args: tuple[object, ...]) -> None:
        nonlocal count
        if event == "open" and args[2] in READING:
            return
        if event in changes and str(args[0]).startswith(str(folder)):
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    work(folder)


def outlives(
    step: int, work: Callable[[Path], None], folder: Path, *, changes: frozenset[str] = CHANGES
) -> bool:
    """Return whether the work is done before its process comes to that step."""
    process = start(die_at, step, work, folder, changes)
    process.join()
    assert process.exitcode in {0, -signal.SIGKILL}
    return process.exitcode == 0


def killed_copies(
    alive: Path, work: Callable[[Path], None], first: int, each: int, *, changes: frozenset[str] = CHANGES
) -> Iterator[tuple[int, Path]]:
    """Yield copies of a folder, each with the step at which its work was killed; the last one outlives it."""
    for step in itertools.count(first, each):
        copy = shutil.copytree(alive, alive.parent / str(step))
        finished = outlives(step, work, copy, changes=changes)
        yield step, copy
        if finished:
            break
    assert step > 10  # or nothing was killed
