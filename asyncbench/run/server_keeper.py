"""Program that runs another one for as long as its own standard input is open.

asyncbench starts servers through it. However asyncbench ends, also by `kill -9`, the system closes the pipe,
and the server is stopped with all that it has started in its process group. It needs nothing but Python's own
library.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

NOT_STARTED = 127  # an exit code, as a shell has it


def keep(command: Sequence[str], *, patience_s: float) -> int:
    """Run a command until it ends, standard input does or SIGTERM comes.

    Return its exit code, of a signal 128 more. Told to stop, it has `patience_s` to end by itself.
    """
    try:
        server = subprocess.Popen(  # noqa: S603  the user's own command, without a shell
            command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_end_with_parent
        )
    except OSError as error:
        _note(f"cannot start {command[0]}: {error.strerror}")
        return NOT_STARTED
    _note(f"started as process {server.pid}")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    for waiting in (partial(_stop_at_end_of_input, stop), partial(_end_server, stop, server, patience_s)):
        threading.Thread(target=waiting, daemon=True).start()
    code = server.wait()
    _signal(server.pid, signal.SIGKILL)  # what it left behind
    return code if code >= 0 else 128 - code


def _end_with_parent() -> None:
    """Have the system end this process when its parent does, also by SIGKILL; Linux alone can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _stop_at_end_of_input(stop: threading.Event) -> None:
    os.read(0, 1)  # nothing is ever written: it returns when the pipe is closed
    stop.set()


def _end_server(stop: threading.Event, server: "subprocess.Popen[bytes]", patience_s: float) -> None:
    stop.wait()
    _note("stopping it")
    _signal(server.pid, signal.SIGTERM)
    try:
        server.wait(patience_s)
    except subprocess.TimeoutExpired:
        _note(f"it has not ended within {patience_s:g} s, and is killed")
        _signal(server.pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _note(message: str) -> None:
    """Add a line to the server's log."""
    sys.stdout.write(f"asyncbench: {message}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(keep(sys.argv[2:], patience_s=float(sys.argv[1])))
