"""Run an asyncbench command and write its peak memory: `python -m benchmarks.weighed FILE report …`.

FILE gets the bytes. The process is new, so that nothing but the command is in it.
"""

import sys
from pathlib import Path

from asyncbench.__main__ import main


def peak_bytes() -> int:
    """Return the most memory that this process has held so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    peak_file = Path(sys.argv.pop(1))
    try:
        main()
    finally:
        peak_file.write_text(str(peak_bytes()))
