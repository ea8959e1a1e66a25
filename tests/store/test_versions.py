"""A folder of every released version opens; one of a later version is refused, whichever file says so."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asyncbench.errors import ConfigError, StoreError
from asyncbench.problems.opening import open_set
from asyncbench.records import History
from asyncbench.store.catalog import read_attempts, read_grades, read_trials
from asyncbench.store.checksums import check
from asyncbench.store.folder import Store
from asyncbench.store.reading import take_snapshot
from asyncbench.store.schema import SCHEMA_VERSION, SCHEMAS
from asyncbench.store.segment import Segment, head_of, number_of
from asyncbench.store.status import trial_counts
from asyncbench.store.verify import verify_folder
from tests.store.made import add, answered, ended, keep, reply, trial, trial_id, without_list

RELEASED = sorted((Path(__file__).parent / "versions").iterdir())


@pytest.fixture(params=RELEASED, ids=[path.name for path in RELEASED])
def folder(request, tmp_path):
    """What a run of a released version left behind that was killed: two parts' rows, and a journal."""
    return shutil.copytree(request.param, tmp_path / "released")


def test_an_earlier_versions_folder_is_read(folder):
    assert read_trials(folder)["trial_id"].to_pylist() == [trial_id(n) for n in (1, 2, 3)]
    assert read_trials(folder)["outcome"].to_pylist() == ["correct", "failed", "correct"]
    assert [len(read(folder)) for read in (read_grades, read_attempts)] == [6, 4]
    assert trial_counts(folder).models["small"].in_flight == 1
    assert verify_folder(folder).sound
    assert open_set(folder / "problems" / "few.parquet").rows == 8


def test_an_earlier_versions_folder_goes_on(folder):
    with Store.open(folder, sweep="night") as store:
        assert store.finished == {trial_id(n) for n in (1, 2, 3)}
        assert store.histories == {
            trial_id(4): History(attempts=1, cost_usd=0.25, ended=ended(trial(4), reply(4))),
            trial_id(5): History(attempts=1, cost_usd=None),
        }
        keep(store, *answered(6))
    assert len(read_trials(folder)) == 4
    assert verify_folder(folder).sound


@pytest.mark.long
def test_its_parts_get_checksums_when_they_are_compacted(folder):
    assert verify_folder(folder).unchecked == 3
    with Store.reopen(folder) as store:
        store.compact(all_tables=True)
    assert verify_folder(folder).unchecked == 0
    assert verify_folder(folder).sound


def test_what_an_earlier_version_did_not_write_down_is_null(folder):
    with Store.open(folder, sweep="night"):
        pass  # the call that its journal began is lost
    with Store.reopen(folder) as store:
        store.compact(all_tables=True)
    calls = read_attempts(folder).to_pylist()
    assert {row["error"] for row in calls if row["status"] != "lost"} == {None}
    assert [row["error"] for row in calls if row["status"] == "lost"] == ["the run ended before the call did"]


@pytest.fixture
def own(tmp_path):
    add(tmp_path / "own", *answered(1))
    return tmp_path / "own"


def refusals(folder):
    for use in (read_trials, trial_counts, verify_folder, lambda path: Store.open(path, sweep="night")):
        with pytest.raises((ConfigError, StoreError)) as refused:
            use(folder)
        yield str(refused.value)


def test_a_part_of_a_later_version_is_refused(own):
    (part,) = take_snapshot(own).files["trials"]
    later = {b"asyncbench.schema_version": str(SCHEMA_VERSION + 1).encode()}
    pq.write_table(pq.ParquetFile(part).read().replace_schema_metadata(later), part)
    without_list(own)
    for refusal in refusals(own):
        assert (
            f"{part} has schema version {SCHEMA_VERSION + 1}; this asyncbench knows versions up to" in refusal
        )
        assert "Install a later asyncbench" in refusal


def test_a_journal_of_a_later_version_is_refused(own):
    segment = Segment(own / "journal" / "000009.wal")
    segment.append(b'{"schema_version":%d}' % (SCHEMA_VERSION + 1))
    segment.append(b'{"attempt":"of a kind that is not known"}')
    segment.close()
    for refusal in refusals(own):
        assert f"000009.wal has schema version {SCHEMA_VERSION + 1}" in refusal
    assert segment.path.exists()


def test_every_file_says_its_version(own):
    for name in sorted(set(SCHEMAS) - {"lanes", "skipped", "steps"}):  # of which version 0.1.0 had none
        (part,) = take_snapshot(own).files[name]
        assert pa.parquet.read_schema(part).metadata[b"asyncbench.schema_version"] == b"1"
        assert check(part)
    with Store.open(own, sweep="night") as store:
        (segment,) = (own / "journal").iterdir()
        assert head_of(number_of(segment))[:-1] in segment.read_bytes()
        assert store.manifest["schema_version"] == SCHEMA_VERSION
