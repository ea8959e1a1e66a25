"""Disks that fail: full ones, really mounted where that is allowed, and the system's own limit on files."""

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.temporary_root import folder_in_memory


@pytest.fixture
def quick_disk() -> Iterator[Path]:
    """A folder where nobody waits for a disk: processes that are killed lose nothing by it."""
    with folder_in_memory() as folder:
        yield folder


@contextmanager
def disk_for(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes."""
    with limited(resource.RLIMIT_FSIZE, size):
        yield


@contextmanager
def limited(limit: int, most: int) -> Iterator[None]:
    """Lower one of the system's limits for this process."""
    soft, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(limit, (soft, hard))


@contextmanager
def small_disk(place: Path, *, kilobytes: int) -> Iterator[Path]:
    """Mount a file system of that size; skip the test where this is not allowed."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        unmount = ["umount", "--lazy", str(place)]
        subprocess.run(unmount, check=True)
