"""Make the facts in this folder again from the recorded data, and show what differs.

    python -m tests.golden [--golden FOLDER]

What differs is written, and it ends with 1: look at `git diff --stat` before you commit it.
"""

import argparse
import os
import sys
from pathlib import Path

from tests.golden import FACTS
from tests.golden.making import differences, facts, write

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Renew the facts; return 1 where some differed."""
    beside = os.environ.get("ASYNCBENCH_GOLDEN", ROOT.parent / "shared" / "golden")
    about = "make the facts of the tests again from the recorded data"
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=about)
    parser.add_argument("--golden", type=Path, default=Path(beside))
    golden = parser.parse_args().golden
    if not golden.is_dir():
        sys.exit(f"golden data not found at {golden}; set ASYNCBENCH_GOLDEN")
    made = facts(golden)
    changes = dict(differences(made))
    for name, change in changes.items():
        print(f"{name}: {change}")
    write({name: made[name] for name in changes})
    print(f"{len(made)} files in {FACTS.name}/, {len(changes)} differ")
    return bool(changes)


if __name__ == "__main__":
    sys.exit(main())
