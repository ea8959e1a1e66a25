"""Processes of our own that start in milliseconds.

Each is forked from a process that has all imported and no thread.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import reduction
from pathlib import Path
from typing import IO

HANG_S = 1200.0  # what waits for an event gives up after it: no machine is so slow
PROCESSES = multiprocessing.get_context("forkserver")
HOUSE = Path(__file__).resolve().parent.parent / "asyncbench"
PROCESSES.set_forkserver_preload(
    [
        *(
            ".".join((HOUSE.name, *path.relative_to(HOUSE).with_suffix("").parts))
            for path in HOUSE.rglob("*.py")
            if not path.stem.startswith("__")
        ),
        "pandas",  # which pyarrow imports with the first array that it makes
        "tests.store.night",
    ]
)


class _Descriptor:
    """A file descriptor that goes with its process."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[object, ...]:
        return _received, (reduction.DupFd(self.number),)


def _received(given: object) -> int:
    number: int = given.detach()  # type: ignore[attr-defined]  # of a class that multiprocessing does not name
    return number


class Forked:
    """What `python -m module words…` does, in a process of its own; used like a `subprocess.Popen`.

    It has its own standard streams, folder, environment, signals and exit code. It has not imported what it
    needs itself: that a command starts from nothing is shown where it is started with `sys.executable`.
    """

    def __init__(
        self,
        module: str,
        *words: object,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start it; a stream that is not given is this process's own, standard input is empty."""
        self.args = [module, *map(str, words)]
        self.stdin: IO[bytes] | None = None  # set by whoever made the pipes
        self.stdout: IO[bytes] | None = None
        empty = os.open(os.devnull, os.O_RDONLY)
        numbers = (empty if stdin is None else stdin, 1 if stdout is None else stdout, stderr or 2)
        streams = tuple(map(_Descriptor, numbers))
        self._process = PROCESSES.Process(
            target=_become, args=(self.args, streams, str(cwd or Path.cwd()), dict(env or os.environ))
        )
        self._process.start()
        os.close(empty)
        self.pid = self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def _become(args: Sequence[str], streams: Sequence[int], folder: str, environment: Mapping[str, str]) -> None:
    """Be the process that was asked for, from its standard streams on."""
    for number, given in enumerate(streams):
        os.dup2(given, number)
        os.close(given)
    sys.stdin = os.fdopen(0, closefd=False)  # of a child it is empty, whatever its descriptor is
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = args[1:]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has ignored it if all runs with `&`
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # likewise, under nohup
    runpy.run_module(args[0], run_name="__main__", alter_sys=True)


def until(reached: Callable[[], bool], *, within_s: float = HANG_S) -> None:
    """Wait for something that must come, however busy the machine is."""
    end_s = time.monotonic() + within_s
    while not reached():
        assert time.monotonic() < end_s, "it never came"
        time.sleep(0.02)
