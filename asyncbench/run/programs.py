"""Programs that a run starts beside itself: a message on standard input, and an end that it waits for."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress


async def run_program(
    command: Sequence[str], message: bytes, env: Mapping[str, str], *, hear: bool = False
) -> tuple[int | None, str]:
    """Run a program on a message; return its exit code, and what it wrote to standard error.

    It prints nowhere. Where the caller is cancelled, it ends with all that it started.

    Args:
        command: the program and its words.
        message: what it finds on its standard input.
        env: its environment.
        hear: whether to read its standard error, until all that it started have closed that. [discard it]

    Raises:
        OSError: it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE if hear else asyncio.subprocess.DEVNULL,
        env=env,
        start_new_session=True,  # a Ctrl-C meant for the run is not meant for it
    )
    try:
        _, complaint = await process.communicate(message)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode, (complaint or b"").decode(errors="replace")
