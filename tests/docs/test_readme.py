"""The README is short, shows the page, and promises nothing that is not there."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_readme_is_read_in_a_minute():
    assert 50 < len(README.splitlines()) < 100


def test_it_begins_with_a_picture_of_the_page_that_loads_fast():
    shown = re.findall(r"!\[[^\]]{20,}\]\(([^)]+)\)", README)
    assert shown == ["docs/images/page.png"]
    assert README.index(shown[0]) < README.index("## ")
    picture = (ROOT / shown[0]).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert 20_000 < len(picture) < 150_000


def test_the_picture_is_said_to_show_recorded_answers():
    assert re.search(r"page\.png\)\n\n[^\n]*recorded answers", README)


def test_its_two_commands_and_three_ways_to_install_are_there():
    assert re.search(r"^make demo .*\nmake test ", README, re.MULTILINE)
    for command in ("pip install '.[report]'", "pipx install '.[report]'", "uv tool install '.[report]'"):
        assert f"`{command}`" in README, command


def test_each_extra_is_explained_where_the_readme_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "docs/explanation/architecture.md#what-is-installed" in README
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    heads = re.findall(r"^\| (`[^|]+`) \|", page.partition("## What is installed")[2], re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(heads))) == sorted(project["optional-dependencies"])


def test_no_page_says_that_an_index_has_it():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 20
    index = re.compile(r"\b(?:pip|pipx|uv tool|uv pip) install +'?asyncbench")
    assert [str(page) for page in pages if index.search(page.read_text("utf-8"))] == []


def test_one_sentence_says_everywhere_what_it_is_for():
    sentence = "Find out what language models can do with numbers."
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    site = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
    assert project["description"] == site["site_description"] == sentence
    for page in ("README.md", "docs/index.md", "asyncbench/cli.py"):
        assert sentence in (ROOT / page).read_text("utf-8"), page
