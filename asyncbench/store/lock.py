"""The lock that gives each results folder one writer, and the mark that a run is going on."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from asyncbench.errors import StoreError
from asyncbench.files import remove_durably, storing, write_durably
from asyncbench.store.parts import TEMPORARY

LOCK = ".lock"  # in a results folder
MARK = ".running"  # holds when the run began: UTC, ISO 8601
GLANCE_S = 0.002  # about as long as whoever only looks for a writer holds the lock
GLANCES = 150  # many short ones: several lookers at once may hold it most of the time


@contextmanager
def locked(folder: Path) -> Iterator[os.stat_result]:
    """Hold a results folder for writing; the lock, whose file it yields, ends with the process, however."""
    path = folder / LOCK
    with storing(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        with storing(path):
            if not _acquire(descriptor, path):
                holder = path.read_text().strip() or "unknown"
                raise StoreError(
                    f"process {holder} is writing to {path.parent}. Wait until it is done, or set another "
                    "folder with `out:`."
                )
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())
        yield os.fstat(descriptor)
    finally:
        os.close(descriptor)


def same_lock(folder: Path, held_lock: os.stat_result) -> bool:
    """Return whether the lock that a process holds is the folder's still."""
    try:
        return os.path.samestat(held_lock, (folder / LOCK).stat())
    except OSError:
        return False


def _acquire(descriptor: int, path: Path) -> bool:
    """Take the lock, unless a process holds it for longer than a glance; return whether it was taken."""
    for _ in range(GLANCES):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # `merge` removes a lock that it made: one that is gone keeps nobody out.
            return os.path.samestat(os.fstat(descriptor), path.stat())
        time.sleep(GLANCE_S)
    return False


def writer_of(folder: Path) -> int | None:
    """Return the id of the process that holds a results folder for writing, or None if it is free.

    Nothing is written: a lock that is free is held for a moment, shared, which a writer waits for. It is 0
    where a process holds it that has not said yet who it is.
    """
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # none yet, or it may not be looked at
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        written = os.read(descriptor, 20).strip()
        return int(written) if written.isdigit() else 0
    except OSError:  # a file system without locks
        return None
    finally:
        os.close(descriptor)
    return None


def set_mark(folder: Path) -> None:
    """Say that a run begins; only while the folder is held for writing."""
    began_at = datetime.now(UTC).isoformat(timespec="seconds")
    write_durably(folder / MARK, f"{began_at}\n".encode(), temporary=folder / TEMPORARY / MARK)


def remove_mark(folder: Path) -> None:
    """Say that the run has ended, however it did; a disk that fails is told of elsewhere."""
    with suppress(OSError):
        remove_durably(folder / MARK)


def read_mark(folder: Path) -> str | None:
    """Return the start of a run that is going on, or died, or None without such a run."""
    try:
        return (folder / MARK).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
