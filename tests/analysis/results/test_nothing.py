"""Where a folder has nothing for a style, each form says so: which folder, and what to do."""

import json
from functools import cache

import pytest
from typer.testing import CliRunner

import asyncbench as ab
from asyncbench.cli import app
from asyncbench.reports.styles import STYLES
from asyncbench.store.folder import Store
from tests.reports.answered import Asked, folder_of

NAMES = [name or "" for name, style in STYLES.items() if style.figures != "load"]
OF_SUITES = [name for name, style in STYLES.items() if style.published]
FORMS = {"": "as_text", "--json": "as_json", "--markdown": "as_markdown", "--latex": "as_latex"}


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("empty_results")
    with Store.open(folder, sweep="night") as store:
        store.write_manifest({"runs": {"night": {"planned": {}}}})
    return folder


def shown(folder, style, form=""):
    """What a command prints."""
    command = ["report", str(folder), *(["--style", style] if style else []), *([form] if form else [])]
    found = CliRunner().invoke(app, command, catch_exceptions=False)
    assert found.exit_code == 0
    return found.stdout


@cache
def made(folder, style):
    return ab.report(folder, style or None)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("style", NAMES)
def test_every_style_names_an_empty_folder_and_what_to_do_in_every_form(empty, style, form):
    text = getattr(made(empty, style), FORMS[form])()
    said = [line for line in text.splitlines() if empty.name in line.replace("\\", "")]
    assert len(said) - (form == "--json") == 1  # JSON has the folder, too
    assert "run its sweep first" in said[-1].lower()
    if form == "--json":
        assert str(empty) in json.loads(text)["nothing"]


@pytest.mark.long
@pytest.mark.parametrize("style", NAMES)
def test_no_table_without_rows_is_shown(empty, style):
    assert len(shown(empty, style).splitlines()) <= (2 if style == "morning" else 1)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    asked = Asked(model="m", outcomes="+", suite="custom", task="custom")
    return folder_of(tmp_path_factory.mktemp("other") / "other", [asked])


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    return folder_of(tmp_path_factory.mktemp("some") / "some", [Asked(model="m", outcomes="+-")])


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("style", OF_SUITES)
def test_a_benchmark_s_style_tells_what_else_the_folder_holds(other, style, form):
    text = shown(other, style, form)
    said = json.loads(text)["nothing"] if form == "--json" else " ".join(text.split()).replace("\\", "")
    assert "has no trials of" in said
    assert "only of custom. Leave" in said


@pytest.mark.long
@pytest.mark.parametrize("style", [style for style in NAMES if style not in OF_SUITES])
def test_where_there_is_something_nothing_is_null(some, style):
    nothing = json.loads(shown(some, style, "--json"))["nothing"]
    without = ("quota", "positions")  # nothing was run in this folder, and its problems have no choices
    assert (nothing is None) == (style not in without)
