"""Runs asyncbench and writes down what it brought onto the disk: what a power failure would leave.

    python -m tests.crash.recorded LOG run sweep.yaml

A line of the log is a file (its inode and its bytes) or a folder (its names and their inodes), as they were
when an fsync of them began that has succeeded since.
"""

import json
import os
import stat
import sys
from pathlib import Path

from asyncbench.cli import main

_fsync = os.fsync


def record(log: int, descriptor: int) -> None:
    """Bring a file or a folder onto the disk, then say so."""
    found = os.fstat(descriptor)
    said: list[object] = [found.st_ino, found.st_size]
    if stat.S_ISDIR(found.st_mode):
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        said = [path, {entry.name: entry.inode() for entry in os.scandir(path)}]
    _fsync(descriptor)
    os.write(log, json.dumps(said).encode() + b"\n")


def cut_power(folder: Path, log: Path) -> None:
    """Take from a folder, of which no process writes any more, all that no fsync had covered."""
    sizes: dict[int, int] = {}
    names: dict[str, dict[str, int]] = {}
    for line in log.read_bytes().splitlines():
        what, said = json.loads(line)
        if isinstance(what, str):
            names[what] = said
        else:
            sizes[what] = said
    for path in sorted(folder.rglob("*"), reverse=True):  # what is in a folder before the folder
        inode = path.lstat().st_ino
        durable = names.get(str(path.parent), {}).get(path.name) == inode
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif not durable or inode not in sizes:
            path.unlink()
        elif path.stat().st_size > sizes[inode]:
            os.truncate(path, sizes[inode])


if __name__ == "__main__":
    written = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.fsync = lambda descriptor: record(written, descriptor)  # type: ignore[assignment,arg-type]  # it takes files, too
    main()
