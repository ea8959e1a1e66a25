"""Files that are either not there or there whole, and stay there when the power fails."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from asyncbench.files import make_folder as make_folder
from asyncbench.files import storing
from asyncbench.files import sync_to_disk as sync_to_disk

OWNERS: Final = 0o700  # of a results folder: questions, replies and bills are for whoever asked


def sync_folders(top: Path) -> None:
    """Wait until the names in a folder, and in all folders below it, are on the disk."""
    for folder, _, _ in os.walk(top):
        sync_to_disk(Path(folder))


def write_durably(path: Path, data: bytes, *, temporary: Path) -> None:
    """Write a file in one step: a reader finds the old bytes or the new, never a part of them.

    Raises:
        StoreError: the disk is full, or the folder may not be written.
    """
    with storing(path):
        make_folder(temporary.parent)
        temporary.write_bytes(data)
        publish(temporary, path)


def publish(temporary: Path, path: Path) -> None:
    """Give a finished file its name, in place of any file of that name."""
    make_folder(path.parent)
    sync_to_disk(temporary)
    temporary.replace(path)
    sync_to_disk(path.parent)


def discard(folder: Path) -> None:
    """Remove a folder of files that are worth nothing, and give their room free at once."""
    for path in folder.rglob("*"):
        with suppress(OSError):
            os.truncate(path, 0)  # some may be open still: removed alone, they would keep their room
    shutil.rmtree(folder, ignore_errors=True)
