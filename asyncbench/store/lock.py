"""One writer for each results folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asyncbench.errors import StoreError
from asyncbench.store.durable import storing

LOCK = ".lock"  # in a results folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a results folder for writing; the lock ends with the process, however it ends.

    Raises:
        StoreError: another process holds it; names that process.
    """
    path = folder / LOCK
    with storing(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _take(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> None:
    with storing(path):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = path.read_text().strip() or "unknown"
            raise StoreError(
                f"{path.parent} is being written by process {holder}: wait until it is done, or give this "
                "sweep another `out:`."
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"%d\n" % os.getpid())
