"""Renew what is in `golden/`, and show what has changed: `python -m tests.contracts`."""

import os
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.contracts.test_contracts import GOLDEN, RENEWING

ROOT = Path(__file__).parents[2]


def texts() -> dict[str, str]:
    """Return the golden files by name."""
    GOLDEN.mkdir(exist_ok=True)
    return {path.name: path.read_text("utf-8") for path in sorted(GOLDEN.iterdir())}


def renew() -> int:
    """Write all files as tests would have them, print what has changed, and return pytest's exit code."""
    before = texts()
    os.chdir(ROOT)
    os.environ[RENEWING] = "1"
    words = ["-q", "-rs", "-p", "no:cacheprovider", "-m", "", "tests/contracts/test_contracts.py"]
    with TemporaryDirectory() as ours:  # other tests may be running
        code = pytest.main([*words, "-k", "as_it_was", f"--basetemp={ours}/tests"])
    after = texts()
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    for name in changed:
        old, new = (text.get(name, "").splitlines() for text in (before, after))
        print("\n".join(unified_diff(old, new, f"before/{name}", f"now/{name}", lineterm="")))
    print(f"changed: {', '.join(changed)}" if changed else "nothing changed")
    if code:
        print("not all files could be made: the reasons stand above")
    return int(code)


if __name__ == "__main__":
    raise SystemExit(renew())
