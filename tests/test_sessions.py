"""Sessions of tests do not meet, and no failing test ends one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.processes import until

pytestmark = pytest.mark.long

HOOKS = "from tests.conftest import *\n"
WORKER_LEAVES = "os._exit(3)"
NO_LINE = "raise ValueError('lost').with_traceback(types.TracebackType(None, sys._getframe(), 10_000, -1))"
ENDINGS = {
    "an ordinary error": "1 / 0",
    "an interrupt": "raise KeyboardInterrupt",
    "an exit of Python": "raise SystemExit(2)",
    "an exit of pytest": "pytest.exit('enough')",
    "the end of a generator": "raise GeneratorExit",
    "a traceback without a line": NO_LINE,
    "an error that cannot be shown": "raise type('Odd', (Exception,), {'__repr__': None, '__str__': None})",
    "the end of its process": WORKER_LEAVES,
}
WAITING = """
import pathlib, tempfile, time

def test_what_is_written_stays(tmp_path):
    written = [tmp_path / "a", pathlib.Path(tempfile.mkdtemp()) / "b"]
    for path in written:
        path.write_text("here")
    pathlib.Path("NAME.ready").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    assert [path.read_text() for path in written] == ["here", "here"]
"""


def session(folder: Path, *words: str) -> "subprocess.Popen[str]":
    """Start a session of the tests in a folder, with the hooks of ours."""
    (folder / "conftest.py").write_text(HOOKS)
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-q", "-rf", *words, folder],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_whatever_a_test_raises_the_session_goes_on_and_names_it(tmp_path):
    tests = [f"def test_{n}():\n    {body}\n" for n, body in enumerate(ENDINGS.values())]
    (folder := tmp_path / "tests").mkdir()
    (folder / "test_endings.py").write_text(
        "import os, sys, types\nimport pytest\n" + "".join(tests) + "def test_last():\n    pass\n"
    )
    running = session(folder, "--numprocesses=1")
    shown, _ = running.communicate()

    assert running.returncode == 1, shown
    for n, ending in enumerate(ENDINGS):
        assert f"test_endings.py::test_{n}" in shown, (ending, shown)
    assert f"{len(ENDINGS)} failed, 1 passed" in shown
    assert "To repeat: " in shown


def test_what_fails_everywhere_ends_early_and_on_a_screen(tmp_path):
    (folder := tmp_path / "tests").mkdir()
    (folder / "test_broken.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(500))\ndef test_broken(n):\n    assert n < 0\n"
    )
    running = session(folder, "--maxfail=30")
    shown, _ = running.communicate()

    assert running.returncode != 0
    assert "30 failed" in shown
    assert len(shown.splitlines()) < 50, shown


def test_sessions_at_once_keep_their_files_and_leave_none(tmp_path):
    names = ["first", "second", "killed"]
    sessions = {}
    for name in names:
        (folder := tmp_path / name).mkdir()
        (folder / "test_waiting.py").write_text(WAITING.replace("NAME", name))
        sessions[name] = session(folder)
    until(lambda: all((tmp_path / name / f"{name}.ready").exists() for name in names))

    # One of them is killed, the next ends, and the last still has what it wrote.
    sessions["killed"].kill()
    sessions["killed"].communicate()
    for name in ("first", "second"):
        (tmp_path / name / "go").touch()
        shown, _ = sessions[name].communicate()
        assert sessions[name].returncode == 0, shown

    until(lambda: not list((tmp_path / "temporary").iterdir()))
