"""The process of a `GradingProcess`: a question a line, an answer a line, until its input or its parent ends.

    python -P -m asyncbench.suites.grading_worker asyncbench.suites.math_reading

The system ends it where one question takes more CPU time than it may: SymPy and regular expressions compute
where no exception of Python arrives.
"""

import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from threading import Thread
from typing import Final

LIMIT_S: Final = 5.0  # of CPU time, for one question; time of CPU, so that a busy machine changes no grade
MEMORY: Final = 4_000_000_000  # bytes of addresses
LOOK_S: Final = 1.0  # between two looks whether the parent lives


def main(name: str) -> None:
    """Answer each line, `[function, arguments]`, by a function of a module, whose result becomes JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which ends this process
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    with suppress(ValueError, OSError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    module = import_module(name)  # takes seconds, which no question pays for

    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        try:
            function, arguments = json.loads(line)
            answered = getattr(module, function)(**arguments)
        except Exception:  # of a library that reads whatever a model wrote
            answered = {}
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(answered), file=answers, flush=True)


def _end_with(parent: int) -> None:
    """End this process once its parent has ended, however that ended; what it computes is of no use then."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
