"""What users rely on is as `golden/` has it: keys, columns, options, codes, names, ids and figures.

A test that fails here says that something a user sees has changed. If that is meant, renew the files with
`python -m tests.contracts`, look at what it shows, and write it into CHANGELOG.md.
"""

import json
import os
from collections.abc import Callable, Mapping
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from asyncbench import report
from asyncbench.reports.styles import STYLES
from tests.contracts import interface, stored
from tests.contracts.session import RAN, WRITTEN, Session, names_in, observe
from tests.contracts.shapes import figure_lines, shape_lines, without_times
from tests.recorded import made_once

GOLDEN: Final = Path(__file__).with_name("golden")
RENEWING: Final = "ASYNCBENCH_RENEW_CONTRACTS"  # set by `python -m tests.contracts`
RENEW: Final = "If you mean it, run: python -m tests.contracts"
MOST_SHOWN: Final = 40  # lines of a difference
MACHINE: Final = (  # commands whose keys have other types on a slower machine
    *("load", "run --detach", "cancel --yes", "status of a run that goes on", "status of open batches"),
    *("pause", "set", "resume"),
)
TIMED: Final = ("quota", "providers", "load")  # styles that show little but times


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """What the commands printed, once for all processes of a test run."""
    return Session(made_once(tmp_path_factory, "contracts", observe))


def key_lines(session: Session) -> list[str]:
    """Return the keys of all JSON that is printed, with their types."""
    lines: list[str] = []
    for command in sorted({printed.command for printed in session.printed if printed.is_json}):
        documents = [
            document for one in session.printed if one.command == command for document in one.documents
        ]
        lines += [command, *shape_lines(documents, session.keys, typed=command not in MACHINE)]
    return lines


def code_lines(session: Session) -> list[str]:
    """Return exit codes by name, and the one of every command that was run."""
    typed = (f"asyncbench {one.words}: {one.exit}" for one in session.printed if one.exit is not None)
    return [*interface.exit_lines(), *typed]


def written_figures(session: Session, folder: str) -> list[str]:
    """Return the figures of a folder whose times are given, in every style."""
    return [line for style in STYLES for line in figures(session, folder, style)]


def run_figures(session: Session) -> list[str]:
    """Return the figures of a sweep that really ran, but those that a clock measured."""
    return [line for style in STYLES if style not in TIMED for line in figures(session, RAN, style)]


def figures(session: Session, folder: str, style: str | None) -> list[str]:
    """Return the figures of one report, without times where the sweep really ran."""
    words = f"report {folder}" if style is None else f"report {folder} --style {style}"
    (document,) = next(one for one in session.printed if one.is_json and one.words == words).documents
    shown = without_times(document) if folder == RAN else document
    return [f"## {words}", *figure_lines(shown, session.names)]


CONTRACTS: Final[Mapping[str, Callable[[Session], list[str]]]] = {
    "options.txt": lambda _: interface.option_lines(),
    "exit-codes.txt": code_lines,
    "python.txt": lambda _: interface.python_lines(),
    "sweep-file.json": lambda _: interface.schema_lines(),
    "json-keys.txt": key_lines,
    "tables.txt": stored.table_lines,
    "printed-tables.txt": stored.printed_table_lines,
    "files.txt": stored.file_lines,
    "ids.txt": stored.id_lines,
    **{f"figures-{name}.txt": partial(written_figures, folder=name) for name in WRITTEN},
    f"figures-{RAN}.txt": run_figures,
}
RECORDED: Final = "figures-recorded.txt"


@pytest.mark.parametrize("name", CONTRACTS)
def test_what_users_rely_on_is_as_it_was(session, name):
    compare(name, CONTRACTS[name](session))


@pytest.mark.long
def test_every_figure_of_the_recorded_runs_is_as_it_was(imported):
    names, lines = names_in(imported), list[str]()
    for style in STYLES:
        shown = json.loads(report(imported, style).as_json())
        lines += [f"## report --style {style}", *figure_lines(shown, names)]
    compare(RECORDED, lines)


def compare(name: str, lines: list[str]) -> None:
    """Fail if these lines are not those of the golden file; write them instead where they are renewed."""
    text, path = "\n".join([*lines, ""]), GOLDEN / name
    if RENEWING in os.environ:
        path.write_text(text, "utf-8")
    before = path.read_text("utf-8").splitlines()
    if before != lines:
        shown = list(unified_diff(before, lines, f"golden/{name}", "now", n=0, lineterm=""))
        more = len(shown) - MOST_SHOWN
        rest = [f"… and {more} more lines"] if more > 0 else []
        differs = "\n".join([*(line[:600] for line in shown[:MOST_SHOWN]), *rest])
        pytest.fail(f"{name} has changed. {RENEW}\n{differs}", pytrace=False)


def test_every_golden_file_is_of_a_contract():
    assert {path.name for path in GOLDEN.iterdir()} == {*CONTRACTS, RECORDED}


def test_every_command_that_prints_json_is_under_contract(session):
    able = {name for name, command in interface.commands().items() if "as_json" in names_of(command)}
    assert len(able) > 15
    assert able <= {one.command.split()[0] for one in session.printed if one.is_json}


def names_of(command):
    return {parameter.name for parameter in command.params}
