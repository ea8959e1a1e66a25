"""What users rely on is as `golden/` has it: keys, columns, options, codes, names, ids and figures.

A test that fails here says that something a user sees has changed. If that is meant, renew the files with
`python -m tests.contracts`, look at what it says, and write it into CHANGELOG.md.
"""

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from asyncbench import report
from asyncbench.reports.styles import STYLES
from tests.contracts import interface, stored
from tests.contracts.changes import change_lines
from tests.contracts.session import (
    RAN,
    WRITTEN,
    Session,
    choice_for,
    names_in,
    observe,
    observe_written,
    under_another_clock,
)
from tests.contracts.shapes import Node, Shapes, figure_lines, without_times
from tests.recorded import made_once

GOLDEN: Final = Path(__file__).with_name("golden")
RENEWING: Final = "ASYNCBENCH_RENEW_CONTRACTS"  # set by `python -m tests.contracts`
MOST_SHOWN: Final = 40  # changes
MACHINE: Final = (  # commands whose keys have other types on a slower machine
    *("load", "run --detach", "cancel --yes", "status of a run that goes on", "status of open batches"),
    *("pause", "set", "resume"),
)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """What reports say of the folders whose times are given, once for all processes of a test run."""
    return Session(made_once(tmp_path_factory, "contracts-written", observe_written))


@pytest.fixture(scope="session")
def session(written: Session, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """What all commands printed, likewise once."""
    return Session(made_once(tmp_path_factory, "contracts", partial(observe, written=written.folder)))


def key_lines(session: Session) -> list[str]:
    """Return the keys of all JSON that is printed, with their types; an object of several commands once."""
    commands: dict[str, Node] = {}
    for printed in session.printed:
        if printed.is_json:
            node = commands.setdefault(printed.command, Node())
            for document in printed.documents:
                node.add(document, session.keys)

    shapes = Shapes()
    for command, node in sorted(commands.items(), key=lambda item: (item[0] in MACHINE, item[0])):
        shapes.add(command, node if command not in MACHINE else node.without_types())
    lines = [f"{command}: {shapes.name(node)}" for command, node in sorted(commands.items())]
    return [*lines, *shapes.lines()]


def code_lines(session: Session) -> list[str]:
    """Return exit codes by name, and the one of every command that was run."""
    typed = (
        f"asyncbench {printed.words}: {printed.exit}"
        for printed in session.printed
        if printed.exit is not None
    )
    return [*interface.exit_lines(), *typed]


def report_figures(session: Session, folder: str) -> list[str]:
    """Return the figures of a folder in every style, each once; without times where the sweep really ran."""
    lines, shown = list[str](), set[str]()
    for style, record in STYLES.items():
        if folder == RAN and record.timed:
            continue
        words = f"report {folder}" if style is None else f"report {folder} --style {style}"
        (document,) = next(
            printed for printed in session.printed if printed.is_json and printed.words == words
        ).documents
        document = without_times(document) if folder == RAN else document
        lines += [f"## {words}", *figure_lines(document, session.names, shown)]
    return lines


CONTRACTS: Final[Mapping[str, Callable[[Session], list[str]]]] = {
    "exit-codes.txt": code_lines,
    "json-keys.txt": key_lines,
    "tables.txt": stored.table_lines,
    "printed-tables.txt": stored.printed_table_lines,
    "files.txt": stored.file_lines,
    "ids.txt": stored.id_lines,
    **{f"figures-{name}.txt": partial(report_figures, folder=name) for name in (*WRITTEN, RAN)},
}
TYPED: Final[Mapping[str, Callable[[], list[str]]]] = {  # what needs no folder of results
    "options.txt": interface.option_lines,
    "python.txt": interface.python_lines,
    "sweep-file.json": interface.schema_lines,
}
OF_WRITTEN: Final = tuple(f"figures-{folder}.txt" for folder in WRITTEN)
OF_SESSION: Final = [
    pytest.param(name, marks=pytest.mark.long) for name in CONTRACTS if name not in OF_WRITTEN
]
RECORDED: Final = "figures-recorded.txt"


@pytest.mark.parametrize("name", TYPED)
def test_what_users_type_and_import_is_as_it_was(name):
    compare(name, TYPED[name]())


@pytest.mark.parametrize("name", [*OF_WRITTEN, *OF_SESSION])
def test_what_users_rely_on_is_as_it_was(request, name):
    observed = request.getfixturevalue("written" if name in OF_WRITTEN else "session")
    compare(name, CONTRACTS[name](observed))


@pytest.mark.long
def test_every_figure_of_the_recorded_runs_is_as_it_was(imported):
    names, lines, shown = names_in(imported), list[str](), set[str]()
    for style in STYLES:
        document = json.loads(report(imported, style, **choice_for(style, imported)).as_json())
        lines += [f"## report --style {style}", *figure_lines(document, names, shown)]
    compare(RECORDED, lines)


@pytest.mark.long
@pytest.mark.parametrize("name", OF_WRITTEN)
def test_at_another_hour_and_in_another_zone_all_is_the_same(elsewhere, name):
    """The same again, half a year and some hours later, half a world away."""
    compare(name, CONTRACTS[name](elsewhere))


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """What the commands print under another clock, in another zone."""
    return Session(made_once(tmp_path_factory, "contracts-elsewhere", under_another_clock))


def compare(name: str, lines: list[str]) -> None:
    """Fail if these lines are not those of the golden file; write them instead where they are renewed."""
    path = GOLDEN / name
    if RENEWING in os.environ:
        path.write_text("\n".join([*lines, ""]), "utf-8")
        return
    changes = change_lines(name, path.read_text("utf-8").splitlines(), lines)
    if changes:
        more = len(changes) - MOST_SHOWN
        rest = [f"… and {more} more"] if more > 0 else []
        renew = f"If you mean it, run: python -m tests.contracts {name.partition('.')[0]}"
        shown = "\n".join([*(line[:600] for line in changes[:MOST_SHOWN]), *rest])
        pytest.fail(f"{name} has changed. {renew}\n{shown}", pytrace=False)


def test_every_golden_file_is_of_a_contract():
    assert {path.name for path in GOLDEN.iterdir()} == {*TYPED, *CONTRACTS, RECORDED}


@pytest.mark.long
def test_every_command_that_prints_json_is_under_contract(session):
    able = {name for name, command in interface.commands().items() if "as_json" in names_of(command)}
    assert len(able) > 15
    assert able <= {printed.command.split()[0] for printed in session.printed if printed.is_json}


def names_of(command):
    return {parameter.name for parameter in command.params}
