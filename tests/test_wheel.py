"""What is no module of ours goes into the wheel as well: the page, its script, the endpoints, small talk."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from asyncbench.analysis.page.writing import _APP

ROOT = Path(__file__).resolve().parent.parent
WHEEL = ("tool", "hatch", "build", "targets", "wheel")
MADE = {".pyc", ".pyo"}


def test_the_wheel_takes_the_whole_package_and_leaves_out_nothing_by_name():
    said = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for name in WHEEL[:-2]:
        said = said[name]
    assert said == {"targets": {"wheel": {"packages": ["asyncbench"]}}}


def test_no_file_of_the_package_is_ignored_for_the_wheel_has_what_git_does_not_ignore():
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout: what git ignores does not show")
    files = [path for path in (ROOT / "asyncbench").rglob("*") if path.is_file() and path.suffix not in MADE]
    assert {path.suffix for path in files} == {".py", ".html", ".css", ".js", ".toml", ".json"}
    names = "\0".join(str(path.relative_to(ROOT)) for path in files)
    asked = ["git", "check-ignore", "--no-index", "--stdin", "-z"]
    ignored = subprocess.run(asked, input=names, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ignored.returncode == 1, f"ignored: {ignored.stdout or ignored.stderr}"


def test_the_page_is_made_of_every_script_that_is_there():
    there = {path.stem for path in (ROOT / "asyncbench" / "analysis" / "page" / "app").iterdir()}
    assert there == set(_APP)
