"""`verify_folder` reads everything: damaged, missing and doubled rows are found; what is sound is sound."""

import shutil

import pytest
from typer.testing import CliRunner

from asyncbench.cli import app
from asyncbench.errors import DamageWarning
from asyncbench.store.budget_state import spending_of
from asyncbench.store.folder import Store
from asyncbench.store.reading import take_snapshot
from asyncbench.store.verify import verify_folder
from tests.store.made import add, answered, ended, keep, refused, reply, result, sent, trial


@pytest.fixture
def folder(tmp_path):
    """Two nights of a model, and what a third that was killed left in the journal."""
    for n in (1, 11):
        add(tmp_path / "alive", *answered(n), *refused(n + 1))
    with Store.open(tmp_path / "alive", sweep="night") as store:
        keep(store, *answered(21), sent(trial(22)))
        return shutil.copytree(store.folder, tmp_path / "night")


def told(folder):
    return [f"{one.place}: {one.what}" for one in verify_folder(folder).findings]


def part(folder, table, number):
    return take_snapshot(folder).files[table][number]


def test_a_sound_folder_is_sound_and_everything_in_it_is_counted(folder):
    found = verify_folder(folder)
    assert found.sound
    assert found.rows == {"trials": 5, "grades": 10, "attempts": 5, "lanes": 0, "skipped": 0, "steps": 0}
    assert (found.parts, found.unchecked, found.findings) == (6, 0, ())


@pytest.mark.long
@pytest.mark.parametrize("table", ["trials", "grades", "attempts"])
def test_a_flipped_bit_is_found_where_it_is(folder, table):
    path = part(folder, table, 0)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)
    assert not verify_folder(folder).sound
    assert any(line.startswith(f"{path.relative_to(folder)}: is damaged: ") for line in told(folder))


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "what"),
    [
        ("trials", "2 trials have grades but no row"),
        ("grades", "2 trials have no grades"),
        ("attempts", "2 trials have no call"),
    ],
)
def test_a_part_that_is_missing_is_missed(folder, table, what):
    path = part(folder, table, 0)
    path.unlink()
    assert any(what in line for line in told(folder))
    assert any(line.startswith(f"{path.relative_to(folder)}: is missing") for line in told(folder))


def test_a_row_that_stands_twice_is_found(folder):
    path = part(folder, "trials", 0)
    copy = shutil.copy(path, path.with_name("part-000077.parquet"))
    extra, twice = told(folder)
    assert extra.startswith(f"{copy.relative_to(folder)}: does not belong here: it is a copy")
    assert twice == "trials: 2 rows are there more than once (same trial_id)"


def test_a_part_in_the_folder_of_another_model_is_found(folder):
    path = part(folder, "attempts", 1)
    other = path.parent.with_name("model=other") / path.name
    other.parent.mkdir()
    path.rename(other)
    assert any("is in the wrong folder: it holds rows of model small" in line for line in told(folder))


@pytest.mark.long
def test_calls_that_are_missing_are_found(folder):
    add(folder, result(trial(31), reply(31), attempts=3), ended(trial(31), reply(31)))
    lacking, each = told(folder)
    assert lacking.startswith("attempts: lacks 1 of the calls that trials count")
    assert each == "attempts: calls of 1 trials are missing, so a part is missing. Restore it from a backup"


@pytest.mark.long
def test_damaged_lines_of_the_journal_are_told_until_they_are_set_aside_and_known_from_then_on(folder):
    (segment,) = (folder / "journal").iterdir()
    data = segment.read_bytes()
    segment.write_bytes(data.replace(b"121", b"122", 1))
    assert any("journal/000003.wal, line" in line for line in told(folder))
    assert not verify_folder(folder).sound
    Store.open(folder, sweep="night").close()
    found = verify_folder(folder)
    assert found.sound
    assert [(one.place, one.known) for one in found.findings] == [("quarantine/000003.wal", True)]


@pytest.mark.long
@pytest.mark.parametrize("change", ["swap", "remove", "double"])
def test_a_line_that_is_not_where_it_was_written_is_told_and_changes_no_cost(folder, change):
    (segment,) = (folder / "journal").iterdir()
    before, spent = dict(verify_folder(folder).rows), spending_of(folder).by_alias
    lines = segment.read_bytes().splitlines(keepends=True)
    call = next(n for n, line in enumerate(lines) if b'{"sent"' in line)
    match change:
        case "swap":  # its end stands before its beginning
            lines[call], lines[call + 1] = lines[call + 1], lines[call]
        case "remove":
            del lines[call]
        case "double":
            lines.insert(call + 2, lines[call])
    segment.write_bytes(b"".join(lines))
    with pytest.warns(DamageWarning):
        found = verify_folder(folder)
    assert not found.sound
    assert any(finding.place.startswith(f"journal/{segment.name}, line ") for finding in found.findings)
    assert found.rows == before
    with pytest.warns(DamageWarning):
        assert spending_of(folder).by_alias == spent
    with Store.open(folder, sweep="night") as store:
        assert store.damaged
    assert verify_folder(folder).sound  # from here on it is known


@pytest.mark.long
def test_the_command_says_so_and_its_exit_code_too(folder):
    (folder / "problems").mkdir()
    (folder / "problems" / "x.parquet").write_bytes(b"PAR1")
    ran = CliRunner().invoke(app, ["status", str(folder), "--verify"])
    assert ran.exit_code == 5
    assert "problems/x.parquet: " in ran.output
    assert f"{folder} is NOT SOUND: 5 rows of trials, 10 rows of grades" in ran.output
    ran = CliRunner().invoke(app, ["status", str(folder), "--verify", "--json"])
    assert '"sound": false' in ran.output
