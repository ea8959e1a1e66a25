"""What is no module of ours goes into the wheel, too: the page, its script, endpoints, small talk, rules."""

import html
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from asyncbench.page.writing import APP, LIST_APP, library, write_page
from tests.store.made import add, answered

ROOT = Path(__file__).resolve().parent.parent
WHEEL = ("tool", "hatch", "build", "targets", "wheel")
MADE = {".pyc", ".pyo"}
README = (ROOT / "README.md").read_text("utf-8")
NOTICES = (ROOT / "asyncbench" / "THIRD_PARTY.md").read_text("utf-8")


def test_the_wheel_takes_the_whole_package_and_leaves_out_nothing_by_name():
    said = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for name in WHEEL[:-2]:
        said = said[name]
    shipped = said["targets"]["wheel"].pop("force-include")
    assert said == {"targets": {"wheel": {"packages": ["asyncbench"]}}}
    # what `asyncbench demo` reads: a sweep file finds its data beside it
    assert all(inside == f"asyncbench/shipped/{path}" for path, inside in shipped.items())
    text = "".join((ROOT / path).read_text() for path in shipped if path.startswith("configs/"))
    assert set(re.findall(r": \.\./(data/\S+)", text)) == {
        path for path in shipped if path.startswith("data/")
    }


def test_no_file_of_the_package_is_ignored_for_the_wheel_has_what_git_does_not_ignore():
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout: what git ignores does not show")
    files = [path for path in (ROOT / "asyncbench").rglob("*") if path.is_file() and path.suffix not in MADE]
    assert {path.suffix for path in files} == {
        ".py",
        ".typed",
        ".html",
        ".css",
        ".js",
        ".toml",
        ".json",
        ".md",
        ".parquet",
        ".txt",
        ".gz",
    }
    names = "\0".join(str(path.relative_to(ROOT)) for path in files)
    asked = ["git", "check-ignore", "--no-index", "--stdin", "-z"]
    ignored = subprocess.run(asked, input=names, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ignored.returncode == 1, f"ignored: {ignored.stdout or ignored.stderr}"


def test_the_page_is_made_of_every_script_that_is_there():
    there = {path.stem for path in (ROOT / "asyncbench" / "page" / "app").iterdir()}
    assert there == {*APP, *LIST_APP}


def bundled() -> set[str]:
    """Return the libraries, with their versions, that vl_convert was built from; it names them by address."""
    vl_convert: Any = import_module("vl_convert")  # its types are not those of its module
    built = Path(vl_convert.vl_convert.__file__).read_bytes()
    found = re.findall(rb"/npm/((?:@[a-z0-9.-]+/)?[a-z0-9._-]+)@([0-9]+\.[0-9]+\.[0-9]+)/", built)
    latest = vl_convert.get_vegalite_versions()[-1]  # it holds several, and a page one
    pairs = {(name.decode(), version.decode()) for name, version in found}
    return {f"{name} {at}" for name, at in pairs if name != "vega-lite" or at.startswith(f"{latest}.")}


def test_every_library_of_the_page_has_its_notice():
    libraries = bundled()
    assert {name.split()[0] for name in libraries} >= {"vega", "vega-lite", "vega-embed", "d3-array"}
    headings = {
        one for line in NOTICES.splitlines() if line.startswith("## ") for one in line[3:].split(", ")
    }
    assert libraries - headings == set()
    # what the libraries hold within themselves: a word of its code → whose it is
    within = {"JsonPatchError": "fast-json-patch", "SEMVER_SPEC_VERSION": "semver"}
    script = library().decode()
    assert [name for word, name in within.items() if word in script and f"## {name} " not in NOTICES] == []
    assert NOTICES.count("```text\n") == sum(line.startswith("## ") for line in NOTICES.splitlines()) - 1


@pytest.mark.long
def test_the_notices_go_with_the_page_and_with_the_wheel(tmp_path):
    add(tmp_path, *answered(1))
    page = write_page(tmp_path).path.read_text("utf-8")
    assert NOTICES in html.unescape(page)
    said = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["license-files"]
    assert {path for pattern in said for path in ROOT.glob(pattern)} == {
        ROOT / "LICENSE",
        ROOT / "asyncbench" / "THIRD_PARTY.md",
    }


@pytest.mark.long
def test_two_builds_of_one_checkout_give_the_same_wheel(tmp_path):
    digests = set()
    for name in ("first", "second"):
        command = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "--target",
            "wheel",
            "--directory",
            tmp_path / name,
        ]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        (wheel,) = (tmp_path / name).iterdir()
        digests.add(sha256(wheel.read_bytes()).hexdigest())
    assert len(digests) == 1


@pytest.mark.long
def test_a_published_readme_has_no_link_that_needs_a_checkout(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "--directory", tmp_path]
    env = os.environ | {"ASYNCBENCH_REPOSITORY": "https://github.com/owner/name"}
    subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=True)
    (wheel,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith("/METADATA"))
        metadata = files.read(name).decode()
    with tarfile.open(source) as files:
        (name,) = (name for name in files.getnames() if name.endswith("/PKG-INFO"))
        packed = files.extractfile(name)
        assert packed is not None
        of_source = packed.read().decode()

    at_tag = f"https://github.com/owner/name/{{}}/v{version('asyncbench')}/"
    for text in (metadata, of_source):
        links = re.findall(r"\]\(([^)]+)\)", text)
        assert len(links) == len(re.findall(r"\]\(", README)) > 20
        assert [link for link in links if not link.startswith("https://")] == []
        assert f"]({at_tag.format('raw')}docs/images/page.png)" in text
        assert f"[Tutorial]({at_tag.format('blob')}docs/tutorial.md)" in text
        assert f"[Notebooks]({at_tag.format('tree')}examples)" in text
        assert "pip install 'asyncbench[report]'" in text
        assert "Project-URL: Repository, https://github.com/owner/name\n" in text


@pytest.mark.long
def test_a_build_without_an_address_has_the_readme_of_the_checkout(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "ASYNCBENCH_REPOSITORY"}
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path]
    subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=True)
    (wheel,) = tmp_path.iterdir()
    with zipfile.ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith("/METADATA"))
        assert files.read(name).decode().endswith(f"\n\n{README}")


@pytest.mark.long
@pytest.mark.parametrize("typed", ["", "github.com/owner/name", "https://github.com"])
def test_a_build_for_an_index_is_refused_without_an_address(typed):
    command = [which("make") or "make", "--no-print-directory", "dist", f"REPOSITORY={typed}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (
        f"need an address to work on an index, not '{typed}'. Name the repository: make dist" in done.stderr
    )
    assert done.stdout == ""
