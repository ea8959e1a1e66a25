"""Whatever a disk does to a byte of a results folder is told, or does no harm: no row is ever a wrong one."""

import random
import shutil

import pyarrow.parquet as pq
import pytest

from asyncbench.errors import AsyncbenchError, StoreError
from asyncbench.records import Outcome
from asyncbench.store.catalog import read_attempts, read_grades, read_trials
from asyncbench.store.checksums import check
from asyncbench.store.folder import Store
from asyncbench.store.reading import take_snapshot
from asyncbench.store.segment import Damage, payloads, quarantined
from asyncbench.store.status import trial_counts
from tests.store.made import answered, ended, keep, refused, reply, sent, trial, trial_id
from tests.sweep_files import contents
from tests.tiers import shared_out

READERS = {"trials": read_trials, "grades": read_grades, "attempts": read_attempts}
SEEDS = shared_out(range(20), first=1, long=19)
A_SEED = 50  # damages


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A folder of parts and of a journal that a killed run left: some trials stand in both."""
    home = tmp_path_factory.mktemp("sound")
    with Store.open(home / "alive", sweep="night") as store:
        for n in range(30):
            keep(store, *(refused(n) if n % 7 == 0 else answered(n)))
    with Store.open(home / "alive", sweep="night", again={Outcome.FAILED}) as store:
        keep(store, *answered(0, attempt=2))
        for n in range(30, 40):
            keep(store, *answered(n))
        keep(store, sent(trial(41)), ended(trial(41), reply(41)), sent(trial(42)))
        return shutil.copytree(store.folder, home / "killed")


def rows(folder, table):
    return told(READERS[table](folder))


def told(table):
    """The rows of a table as text: equal rows, equal text."""
    return list(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def put(path, data):
    path.unlink()  # a file written over is brought to the disk first: slow
    path.write_bytes(data)


@pytest.fixture(scope="module")
def truth(sound):
    """Every row that was ever written, by table: those of the parts, and those of the journal."""
    seen = take_snapshot(sound)
    parts = {
        name: {row for path in files for row in told(pq.read_table(path, partitioning=None))}
        for name, files in seen.files.items()
    }
    return {name: parts[name] | set(rows(sound, name)) for name in READERS}


def spoil(data, rng):
    """Cut bytes short, or flip some bits of them."""
    if rng.random() < 0.3:
        return data[: rng.randrange(len(data))]
    spoiled = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
    return bytes(spoiled)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_part_is_refused_by_name_or_reads_as_it_was_written(sound, tmp_path, seed):
    rng = random.Random(seed)
    folder = shutil.copytree(sound, tmp_path / "copy")
    parts = [(name, path) for name, files in take_snapshot(folder).files.items() for path in files]
    before = {name: READERS[name](folder) for name in READERS}
    refused = 0
    for _ in range(A_SEED // 2):
        table, path = rng.choice(parts)
        data = path.read_bytes()
        put(path, spoil(data, rng))
        try:
            found = READERS[table](folder)
        except StoreError as error:
            refused += str(path) in str(error)
        else:
            assert found.equals(before[table])
        put(path, data)
    assert refused > A_SEED // 4  # or the damage hits nothing that matters


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_journal_gives_no_row_that_was_not_written(sound, truth, tmp_path, seed):
    rng = random.Random(1000 + seed)
    folder = shutil.copytree(sound, tmp_path / "copy")
    (segment,) = (folder / "journal").iterdir()
    data, noticed = segment.read_bytes(), 0
    for _ in range(A_SEED // 2):
        put(segment, spoil(data, rng))
        seen = take_snapshot(folder)
        noticed += bool(seen.damaged)
        for table in READERS:
            found = told(seen.read(table))
            assert set(found) <= truth[table]
            assert len(found) == len(set(found))
    assert noticed


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_journal_is_recovered_and_its_lines_are_set_aside(sound, truth, tmp_path, seed):
    rng = random.Random(seed)
    folder = shutil.copytree(sound, tmp_path / "copy")
    (segment,) = (folder / "journal").iterdir()
    spoiled = spoil(segment.read_bytes(), rng)
    segment.write_bytes(spoiled)
    damaged: list[Damage] = []
    list(payloads(segment, damaged))
    with Store.open(folder, sweep="night") as store:
        assert store.damaged == damaged
    assert quarantined(folder) == ({segment.name: len(damaged)} if damaged else {})
    if damaged:
        aside = (folder / "quarantine" / segment.name).read_bytes().splitlines()
        assert aside == [spoiled[one.offset :][: one.size].rstrip(b"\n") for one in damaged]
    assert trial_counts(folder).quarantined == quarantined(folder)
    assert set(rows(folder, "trials")) <= truth["trials"]


def test_every_byte_of_a_part_counts_but_its_first_four(sound):
    """Of all single bits that may flip, only those of the mark at the start go by: nobody reads them."""
    part = take_snapshot(sound).files["attempts"][0]
    data = part.read_bytes()
    try:
        for at in (*range(40), *range(40, len(data), 31), *range(len(data) - 40, len(data))):
            spoiled = bytearray(data)
            spoiled[at] ^= 1 << at % 8
            put(part, spoiled)
            if at >= 4:
                with pytest.raises(StoreError, match=r"is damaged.*Restore .* from a backup"):
                    check(part)
            else:
                check(part)
    finally:
        put(part, data)


def test_who_reads_two_columns_is_not_refused_for_the_damage_of_a_third(sound, tmp_path):
    folder = shutil.copytree(sound, tmp_path / "copy")
    (part,) = take_snapshot(folder).files["trials"]
    column = pq.read_metadata(part).row_group(0).column(pq.read_schema(part).names.index("reply_text"))
    data = bytearray(part.read_bytes())
    data[(column.dictionary_page_offset or 4) + column.total_compressed_size // 2] ^= 1
    part.write_bytes(data)
    assert len(read_trials(folder, ["trial_id", "outcome"])) == 40
    with pytest.raises(StoreError, match="is damaged"):
        read_trials(folder, ["trial_id"], [("reply_text", "=", "x")])
    with pytest.raises(AsyncbenchError, match="is damaged"):
        read_trials(folder)


def test_a_damaged_part_is_asked_again_where_its_loss_is_accepted_and_no_call_is_forgotten(sound, tmp_path):
    folder = shutil.copytree(sound, tmp_path / "copy")
    (part,) = take_snapshot(folder).files["trials"]
    part.write_bytes(b"PAR1 and no more")
    with pytest.raises(StoreError, match="--accept-loss"):
        Store.open(folder, sweep="night")
    with Store.open(folder, sweep="night", accept=True) as store:
        assert store.finished == {trial_id(n) for n in (0, *range(30, 40))}
        assert len(store.histories) == 29 + 2
    assert (folder / "quarantine" / part.relative_to(folder)).read_bytes() == b"PAR1 and no more"


@pytest.mark.parametrize("place", ["trials", "grades", "partition", "journal", "quarantine"])
def test_loss_is_not_accepted_through_a_link_and_nothing_outside_is_changed(sound, tmp_path, place):
    folder, outside = shutil.copytree(sound, tmp_path / "copy"), tmp_path / "outside"
    linked = take_snapshot(folder).files["grades"][0].parent if place == "partition" else folder / place
    linked.mkdir(exist_ok=True)
    linked.rename(outside)
    linked.symlink_to(outside)
    for part in (folder / "trials").rglob("*.parquet"):
        part.write_bytes(b"PAR1 and no more")
    for part in outside.rglob("*.parquet"):
        part.write_bytes(b"PAR1 of somebody else")
    before = contents(outside)
    with pytest.raises(StoreError, match="is a link"):
        Store.open(folder, sweep="night", accept=True)
    assert contents(outside) == before
