"""A program that runs another one for as long as its own standard input is open.

asyncbench starts servers through it. However asyncbench ends, also by `kill -9`, the system closes the pipe,
and the server is stopped with all that it has started in its process group. It needs nothing but Python's own
library.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

NOT_STARTED = 127  # an exit code, as a shell has it


def keep(command: Sequence[str], *, patience_s: float) -> int:
    """Run a command until it ends or standard input does; return its exit code, of a signal 128 more.

    Told to stop, it has `patience_s` to end by itself.
    """
    try:
        server = subprocess.Popen(  # noqa: S603  the user's own command, without a shell
            command, stdin=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        _note(f"cannot start {command[0]}: {error.strerror}")
        return NOT_STARTED
    _note(f"started as process {server.pid}")
    threading.Thread(target=_stop_when_told, args=(server, patience_s), daemon=True).start()
    code = server.wait()
    _signal(server.pid, signal.SIGKILL)  # what it left behind
    return code if code >= 0 else 128 - code


def _stop_when_told(server: "subprocess.Popen[bytes]", patience_s: float) -> None:
    os.read(0, 1)  # nothing is ever written: it returns when the pipe is closed
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


def _note(said: str) -> None:
    """Add a line to the server's log."""
    sys.stdout.write(f"asyncbench: {said}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(keep(sys.argv[2:], patience_s=float(sys.argv[1])))
