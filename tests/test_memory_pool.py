"""Where Arrow takes its memory from, and a command that gets too little: each in a process of its own."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FREED = """
import ctypes
import sys
import numpy as np
from asyncbench.commands.reading import return_freed_memory

if sys.argv[1:]:
    return_freed_memory()
np.ones(31 << 20, np.uint8)  # from now on glibc takes arrays up to this size from its own heap
arrays, small = [], []
for _ in range(50):
    arrays.append(np.ones(4 << 20, np.uint8))
    small.append(bytearray(100_000))  # stays, above all holes, so that the heap cannot shrink
arrays.clear()


class Mallinfo2(ctypes.Structure):
    _fields_ = [("arena", ctypes.c_size_t), ("others", ctypes.c_size_t * 9)]


mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo2
print(mallinfo2().arena)  # bytes; what stands in memory depends on what else the system does
"""
SHOW = "import asyncbench, pyarrow; print(pyarrow.default_memory_pool().backend_name)"
VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"


@pytest.mark.parametrize(
    ("said", "used"),
    [
        pytest.param({}, "system", id="from-the-system"),
        pytest.param({VARIABLE: "mimalloc"}, "mimalloc", id="unless-the-user-says-otherwise"),
    ],
)
def test_arrow_takes_its_memory(said, used):
    env = {name: value for name, value in os.environ.items() if name != VARIABLE} | said
    shown = subprocess.run([sys.executable, "-c", SHOW], env=env, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == used


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_a_view_returns_large_arrays_to_the_system():
    kept, returned = (
        int(subprocess.run([sys.executable, "-c", FREED, *how], capture_output=True, check=True).stdout)
        for how in ([], ["returned"])
    )
    assert kept - returned > 100_000_000


@pytest.mark.long
def test_a_command_without_enough_memory_says_so_and_shows_no_traceback(tmp_path):
    (released,) = (Path(__file__).parent / "store" / "versions").iterdir()
    folder = shutil.copytree(released, tmp_path / "night")
    messages = []
    for kilobytes in range(850_000, 1_500_000, 50_000):  # how much is too little depends on the machine
        line = f"ulimit -v {kilobytes}; exec {sys.executable} -m asyncbench report {folder}"
        limited = ["bash", "-c", line]
        ran = subprocess.run(limited, capture_output=True, text=True, check=False)
        assert "Traceback" not in ran.stderr, (kilobytes, ran.stderr)
        if ran.returncode > 0 and "ABORT" not in ran.stderr:  # of the C library, before Python starts
            assert ran.returncode == 5, ran.stderr
            messages.append(ran.stderr)
            break
    assert messages
    assert "there is not enough memory for this" in messages[0]
