"""The process of the grader `math`: a question a line, an answer a line, until its input ends.

The system ends it where one question takes more CPU time than it may: SymPy computes where no exception of
Python arrives.
"""

import json
import os
import resource
import signal
import sys
from contextlib import suppress

from asyncbench.suites.math_match import LIMIT_S, MEMORY, judged


def main() -> None:
    """Answer each line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which ends this process
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    with suppress(ValueError, OSError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import math_verify  # noqa: F401  takes seconds, which no question pays for

    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        try:
            verdict = judged(**json.loads(line))
        except Exception:  # of a library that reads whatever a model wrote
            verdict = {"answer": None, "right": False}
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(verdict), file=answers, flush=True)


if __name__ == "__main__":
    main()
