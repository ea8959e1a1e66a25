"""A mark in a results folder while a run goes on: what a killed run, or a power cut, leaves behind."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from asyncbench.files import sync_to_disk
from asyncbench.store.durable import write_durably
from asyncbench.store.staging import TEMPORARY

MARK = ".running"  # holds when the run began: UTC, ISO 8601


def set_mark(folder: Path) -> None:
    """Say that a run begins; only while the folder is held for writing.

    Raises:
        StoreError: the disk does not take it.
    """
    began_at = datetime.now(UTC).isoformat(timespec="seconds")
    write_durably(folder / MARK, f"{began_at}\n".encode(), temporary=folder / TEMPORARY / MARK)


def take_away(folder: Path) -> None:
    """Say that the run has ended, however it did; a disk that fails is told of elsewhere."""
    with suppress(OSError):
        (folder / MARK).unlink(missing_ok=True)
        sync_to_disk(folder)  # or it were back when the power fails


def left_mark(folder: Path) -> str | None:
    """Return when a run began that is going on, or died; None: there is none."""
    try:
        return (folder / MARK).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
