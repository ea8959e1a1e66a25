"""A process that grades what may take for ever: it has limits on its time and memory, and is started again.

The system ends it when it exceeds its time, and the next question gets a new one. A signal of Python's own
does not do: only a main thread can take it, and not while a library computes.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any


class GradingProcess:
    """A process that calls functions of a module, started when there is something to ask."""

    def __init__(self, module: str) -> None:
        self._command = [sys.executable, "-P", "-m", "asyncbench.suites.grading_worker", module]
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        atexit.register(self.close)

    def ask(self, function: str, **arguments: Any) -> dict[str, Any] | None:  # Any: JSON
        """Return the result of a function, {} where it raises, or None if its time limit ended it.

        Raises:
            RuntimeError: the process ends for another reason.
        """
        line = json.dumps([function, arguments]) + "\n"
        with self._lock:
            for _ in range(2):  # another may have ended it in between
                if answer := self._exchange(line):
                    answered: dict[str, Any] = json.loads(answer)
                    return answered
                if self._ended() == -signal.SIGPROF:
                    return None
            raise RuntimeError(f"the process of {self._command[-1]} ended unexpectedly.")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._ended()

    def _exchange(self, line: str) -> str:
        if self._process is None:
            # The process has to know where Python's modules are, and no key.
            modules = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
            paths = os.pathsep.join(filter(None, modules))
            self._process = subprocess.Popen(  # noqa: S603  a module of ours
                self._command,
                env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": paths},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
            )
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None  # noqa: S101  both are pipes
        assert answers is not None  # noqa: S101  both are pipes
        try:
            questions.write(line)
            questions.flush()
        except BrokenPipeError:
            return ""
        return answers.readline()

    def _ended(self) -> int:
        """Wait for the process, which has ended, and return its code."""
        assert self._process is not None  # noqa: S101  one was started
        process, self._process = self._process, None
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        return code
