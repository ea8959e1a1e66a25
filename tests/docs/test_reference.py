"""The pages made from the code describe every command, key, column, name, suite and provider."""

import inspect
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

import asyncbench as ab
from asyncbench.analysis.views import VIEWS
from asyncbench.cli import COMMANDS as GROUPS, app
from asyncbench.config.sweep_file import sweep_schema
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.store.schema import MEANINGS, SCHEMAS
from asyncbench.suites.table import SUITES
from docs.generated import (
    RECORDS,
    SWEEP_PAGES,
    TEXTS,
    keys_below,
    pages_from_code,
    renewed,
    table,
    written_by_hand,
)

ROOT = Path(__file__).resolve().parents[2]
GROUP = typer.main.get_command(app)
assert isinstance(GROUP, TyperGroup)
COMMANDS = GROUP.commands


@cache
def made(name):
    """What the code says under a name, or under all names that begin with it and a dash."""
    return "\n\n".join(TEXTS[one]() for one in TEXTS if one == name or one.startswith(f"{name}-"))


def helps(command):
    """What each argument and option says of itself, by the first of its names."""
    return {given.opts[0]: getattr(given, "help", None) for given in command.params}


@pytest.mark.parametrize("page", pages_from_code(), ids=lambda page: page.stem)
def test_a_page_has_what_the_code_says(page):
    text = page.read_text("utf-8")
    assert text == renewed(text), f"{page.name} is old: python -m docs.generated writes it again"


@pytest.mark.long
def test_a_mark_in_a_page_is_filled(site):
    pages = {path.stem: path.read_text("utf-8") for path in (site / "reference").rglob("*.html")}
    assert not [name for name, page in pages.items() if "from the code:" in page]
    sections = {name: set(re.findall(r'<(?:h[23]|td|li) id="([^"]+)"', page)) for name, page in pages.items()}
    for title, names in GROUPS.items():
        assert {f"asyncbench-{name}" for name in names} <= sections[title.lower()]
    assert {"asyncbench-run-limit", "asyncbench-run-max-tokens"} <= sections["start"]
    assert "--install-completion" in pages["commands"]
    for name, keys in SWEEP_PAGES.items():
        assert {f"in-{key}" for key in keys} <= sections[name]
    assert {"in-models-effort", "in-price-input"} <= sections["models"]
    assert "the-keys-of-the-file-budget_usd" in sections["sweep-file"]
    assert set(SCHEMAS) <= sections["results"]
    assert set(ab.__all__) <= sections["python"]
    assert set(SUITES) <= sections["suites-and-providers"]
    assert "OPENAI_API_KEY" in pages["suites-and-providers"]


def test_every_key_with_keys_below_it_has_its_place_on_a_page():
    below = re.findall(r"\[`(\w+)`\]\(", made("sweep-file"))
    assert len(below) > 5
    assert sorted(key for keys in SWEEP_PAGES.values() for key in keys) == sorted(keys_below())


@pytest.mark.long
def test_every_key_of_a_sweep_file_says_what_it_means():
    schema = sweep_schema()
    levels = {"": schema, **schema["$defs"]}
    keys = {
        f"{level}.{key}": rule for level, held in levels.items() for key, rule in held["properties"].items()
    }
    assert len(keys) > 70
    assert [key for key, rule in keys.items() if not rule.get("description")] == []
    assert [name for name, held in levels.items() if not held.get("description")] == []
    assert [rule["description"] for rule in keys.values() if rule["description"] not in made("sweep")] == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_column_says_what_it_means_and_when_it_is_null(name):
    assert list(MEANINGS[name]) == SCHEMAS[name].names
    for field in SCHEMAS[name]:
        meaning = MEANINGS[name][field.name]
        assert meaning.endswith(".")
        assert ("NULL: " in meaning) == field.nullable or meaning == "As in `trials`."


def test_no_meaning_is_in_the_files():
    fields = [field for schema in SCHEMAS.values() for field in schema]
    assert len(fields) > 100
    assert {field.metadata for field in fields} == {None}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_each_of_its_options_has_a_help(name):
    assert COMMANDS[name].help
    (section,) = re.findall(rf"^## `asyncbench {name}`\n(.*?)(?=^## |\Z)", made("commands"), re.M | re.S)
    for given, text in helps(COMMANDS[name]).items():
        assert text
        assert text in section
        assert given in section or not given.startswith("-")


@pytest.mark.parametrize("name", ab.__all__)
def test_every_public_function_says_what_it_does_takes_and_returns(name):
    function = getattr(ab, name)
    signature = inspect.signature(function)
    assert (inspect.getdoc(function) or "").endswith((".", ")"))
    assert signature.return_annotation is not signature.empty
    assert [one for one in signature.parameters.values() if one.annotation is one.empty] == []
    (section,) = re.findall(rf"^## {name}\n(.*?)(?=^## )", made("names"), re.M | re.S)
    assert words(inspect.getdoc(function)) <= words(section)


def words(text):
    return set(re.findall(r"\w+", text))


def test_every_suite_and_provider_is_listed():
    assert [name for name in SUITES if f"### {name}\n" not in made("suites")] == []
    assert [name for name in known_endpoints() if f"`{name}/…`" not in made("providers")] == []


def test_every_view_of_sql_is_described():
    page = written_by_hand((ROOT / "docs" / "reference" / "results.md").read_text("utf-8"))
    cells = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == set(VIEWS)


def test_a_line_between_alternatives_does_not_break_a_table():
    assert table(["type"], [["a | b"]]).splitlines()[-1] == r"| a \| b |"


@pytest.mark.parametrize("reached", RECORDS)
def test_every_attribute_of_a_result_is_described(reached):
    record = RECORDS[reached]
    section = made("attributes").partition(f"### `{reached}`\n")[2].partition("###")[0]
    names = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert {field.name for field in fields(record)} <= set(names)
    assert len(names) == len(set(names))


def test_a_comment_behind_an_attribute_is_its_meaning():
    assert "| `p` | `float \\| None` | exact, two-sided |" in made("attributes")
    assert "| `accuracy` | `float \\| None` | correct over all trials |" in made("attributes")
