"""Renew what is in `golden/`, and say what has changed.

    python -m tests.contracts                   all files
    python -m tests.contracts options figures   those whose names begin so

What is not the same at another hour or in another zone is refused: it would fail tomorrow, or elsewhere.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.contracts.changes import change_lines
from tests.contracts.test_contracts import CONTRACTS, GOLDEN, RECORDED, RENEWING, TYPED

ROOT = Path(__file__).parents[2]


def texts() -> dict[str, str]:
    """Return the golden files by name."""
    GOLDEN.mkdir(exist_ok=True)
    return {path.name: path.read_text("utf-8") for path in sorted(GOLDEN.iterdir())}


def renew(beginnings: list[str]) -> int:
    """Write the files whose names begin so, say what has changed, and return an exit code."""
    names = [
        name
        for name in (*TYPED, *CONTRACTS, RECORDED)
        if not beginnings or name.startswith(tuple(beginnings))
    ]
    if not names:
        print(f"no file begins with {', '.join(beginnings)}: {', '.join((*TYPED, *CONTRACTS, RECORDED))}")
        return 2

    # Write them as tests would have them, then hold them against another clock and zone.
    before = texts()
    chosen = " or ".join(name.partition(".")[0] for name in names if name != RECORDED)
    if RECORDED in names:
        chosen = " or ".join(filter(None, (chosen, "recorded_runs")))
    code = _pytest(f"as_it_was and ({chosen})", {RENEWING: "1"})
    if code == 0 and any(name.startswith("figures-") for name in names):
        code = _pytest("at_another_hour", {})

    after = texts()
    for name in sorted({*before, *after}):
        for sentence in change_lines(
            name, before.get(name, "").splitlines(), after.get(name, "").splitlines()
        ):
            print(f"{name}: {sentence}")
    if before == after:
        print("nothing changed")
    if code:
        print("not all files could be made, or not all are the same at another hour: the reasons stand above")
    return code


def _pytest(chosen: str, variables: dict[str, str]) -> int:
    words = [
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        "-m",
        "",
        "tests/contracts/test_contracts.py",
        "-k",
        chosen,
    ]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, env={**os.environ, **variables}, check=False
    ).returncode


if __name__ == "__main__":
    raise SystemExit(renew(sys.argv[1:]))
