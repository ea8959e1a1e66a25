"""A table built anew takes the place of the old in one step: before it all is old, after it all is new."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asyncbench.errors import StoreError
from asyncbench.store import generation, snapshot
from asyncbench.store.catalog import read_attempts, read_grades, read_trials, steady
from asyncbench.store.folder import Store
from asyncbench.store.generation import MANY_PARTS, settle
from asyncbench.store.reading import take_snapshot
from asyncbench.store.sealing import part_files
from asyncbench.store.verify import verify_folder
from tests.store import night
from tests.store.disk import quick_disk as quick_disk
from tests.store.dying import CHANGES, MOVES, killed_copies, outlives
from tests.store.made import add, answered, compacted, keep, refused

NIGHTS = 3


@pytest.fixture
def folder(tmp_path):
    """Trials of two models, sealed in three nights."""
    for n in range(NIGHTS):
        add(tmp_path / "night", *answered(2 * n), *answered(2 * n + 1, alias="large"))
    return tmp_path / "night"


@pytest.fixture(params=["exchanged", "two renames"])
def any_system(request, monkeypatch):
    """With the system's exchange of two folders, and as on a system that has none."""
    if request.param == "two renames":
        monkeypatch.setattr(generation, "exchanged", _cannot)


def _cannot(first: Path, second: Path) -> bool:  # noqa: ARG001  # as it is called
    return False


def ids(folder):
    return sorted(int(str(one), 16) for one in read_trials(folder)["trial_id"].to_pylist())


def names(folder):
    return {path.name for path in part_files(folder, "trials")}


def counted(paths):
    ((rows,),) = duckdb.read_parquet([str(path) for path in paths]).aggregate("count(*)").fetchall()
    return rows


@pytest.mark.long
@pytest.mark.usefixtures("any_system")
def test_many_parts_become_one_for_each_partition_and_tell_the_same(folder):
    before = [read(folder).sort_by("trial_id") for read in (read_trials, read_grades, read_attempts)]
    with Store.reopen(folder) as store:
        assert store.compact(all_tables=True) == (18, 6)
    assert [read(folder).sort_by("trial_id") for read in (read_trials, read_grades, read_attempts)] == before
    assert names(folder) == {"part-g000001-000003.parquet"}
    assert verify_folder(folder).sound
    assert not (folder / ".tmp").exists()


@pytest.mark.long
def test_rows_keep_their_order(folder):
    order = read_attempts(folder)["trial_id"].to_pylist()
    compacted(folder)
    assert read_attempts(folder)["trial_id"].to_pylist() == order


@pytest.mark.long
@pytest.mark.usefixtures("any_system")
def test_whoever_listed_the_parts_before_is_told_that_one_is_missing(folder):
    listed = part_files(folder, "trials")
    assert counted(listed) == 2 * NIGHTS
    compacted(folder)
    for some in range(1, len(listed) + 1):
        with pytest.raises(duckdb.IOException):
            counted(listed[:some])
    assert counted(part_files(folder, "trials")) == 2 * NIGHTS


@pytest.mark.long
def test_our_own_readers_look_again(folder):
    """The first look is overtaken by a compaction; the second is not."""
    looks = []

    def read(seen):
        looks.append(seen)
        if len(looks) == 1:
            compacted(folder)
        return len(seen.read("trials"))

    assert steady(folder, read) == 2 * NIGHTS
    assert len(looks) == 2


@pytest.mark.long
def test_no_name_is_given_twice_however_often_it_is_compacted(folder):
    seen = names(folder)
    for again in range(3):
        with Store.reopen(folder) as store:
            keep(store, *answered(100 + again))
        compacted(folder)
        assert not names(folder) & seen
        seen |= names(folder)
    assert ids(folder) == [*range(2 * NIGHTS), 100, 101, 102]


@pytest.mark.long
def test_a_run_that_leaves_many_parts_compacts_them_at_its_end(tmp_path):
    for n in range(MANY_PARTS):
        assert len(names(tmp_path)) == n
        add(tmp_path, *answered(n))
    assert names(tmp_path) == {f"part-g000001-{MANY_PARTS:06d}.parquet"}
    add(tmp_path, *answered(MANY_PARTS))
    assert len(names(tmp_path)) == 2
    assert ids(tmp_path) == [*range(MANY_PARTS + 1)]


def test_a_full_part_is_taken_over_as_it_is(folder, monkeypatch):
    monkeypatch.setattr("asyncbench.store.generation.FULL_ROWS", 1)
    before = {path: path.read_bytes() for path in part_files(folder, "trials")}
    compacted(folder)
    after = part_files(folder, "trials")
    assert [path.read_bytes() for path in after] == list(before.values())
    assert after == list(before)  # where nothing is new, nothing moves


@pytest.mark.long
def test_an_answer_given_again_takes_its_place_in_a_compacted_part(tmp_path):
    for n in (1, 2):
        add(tmp_path, *refused(n))
    with Store.reopen(tmp_path) as store:
        store.compact(all_tables=True)
    add(tmp_path, *answered(1, attempt=2), again=night.AGAIN)
    assert set(read_trials(tmp_path)["outcome"].to_pylist()) == {"correct", "failed"}
    assert len(read_trials(tmp_path)) == 2
    assert verify_folder(tmp_path).sound


def rewritten(folder, change):
    """Build `grades` anew, each part by `change`."""
    with Store.reopen(folder) as store, store.replaced("grades") as new:
        for path in new.earlier:
            change(new, path)


@pytest.mark.long
def test_a_table_that_is_built_anew_shows_when_it_is_complete(folder):
    def regraded(new, path):
        rows = pq.read_table(path, partitioning=None).cast(new_schema)
        outcome = rows.schema.get_field_index("outcome")
        new.part([path]).add(
            rows.set_column(outcome, "outcome", pa.array(["wrong"] * len(rows))).cast(new_schema)
        )
        assert set(read_grades(folder)["outcome"].to_pylist()) == {"correct"}

    new_schema = read_grades(folder).schema
    rewritten(folder, regraded)
    assert set(read_grades(folder)["outcome"].to_pylist()) == {"wrong"}
    assert len(read_grades(folder)) == 4 * NIGHTS


def test_what_fails_half_way_leaves_the_table_as_it_was(folder):
    before = read_grades(folder)

    def fail(new, path):
        new.keep(path)
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        rewritten(folder, fail)
    assert read_grades(folder).equals(before)
    assert not (folder / ".tmp").exists()


def forgotten(new, path):
    """Say nothing of a part."""


def twice(new, path):
    new.keep(path)
    new.part([path])


@pytest.mark.long
@pytest.mark.parametrize("change", [forgotten, twice])
def test_a_part_that_nothing_takes_the_place_of_or_twice_stops_it(folder, change):
    before = read_grades(folder)
    with pytest.raises(StoreError, match=r"no new part replaces it|each given once"):
        rewritten(folder, change)
    assert read_grades(folder).equals(before)


@pytest.mark.long
def test_parts_of_two_partitions_cannot_become_one(folder):
    with (
        pytest.raises(StoreError, match="of one partition"),
        Store.reopen(folder) as store,
        store.replaced("grades") as new,
    ):
        new.part(new.earlier)


# killed on the way


def compacted_by_renames(folder: Path) -> None:
    generation.exchanged = _cannot  # this process does nothing else
    compacted(folder)


@pytest.mark.long
@pytest.mark.parametrize(
    ("work", "changes", "steps"),
    [
        pytest.param(compacted, CHANGES, (1, 8), id="every eighth"),
        pytest.param(compacted_by_renames, MOVES, (2, 8), id="every eighth, by renames"),
        pytest.param(compacted, CHANGES, (1, 1), marks=pytest.mark.soak, id="all"),
        pytest.param(compacted_by_renames, MOVES, (1, 1), marks=pytest.mark.soak, id="all, by renames"),
    ],
)
def test_killed_before_any_step_of_a_compaction_the_folder_tells_the_same(quick_disk, work, changes, steps):
    alive = quick_disk / "alive"
    for n in (1, 2):
        add(alive, *answered(n))
    for step, copy in killed_copies(alive, work, *steps, changes=changes):
        assert ids(copy) == [1, 2]
        if step % 3 == 0:
            outlives(1 + step % 12, work, copy)  # killed in the recovery, too
            assert ids(copy) == [1, 2]
        Store.open(copy, sweep="night").close()
        assert verify_folder(copy).sound
        assert verify_folder(copy).rows == {
            "trials": 2,
            "grades": 4,
            "attempts": 2,
            "lanes": 0,
            "skipped": 0,
            "steps": 0,
        }
        assert not (copy / ".tmp").exists()


@pytest.mark.long
def test_a_table_between_two_names_is_read_and_put_in_its_place(folder):
    ready = folder / ".tmp" / "ready" / "trials"
    ready.parent.mkdir(parents=True)
    (folder / "trials").rename(ready)
    assert ids(folder) == [*range(2 * NIGHTS)]
    settle(folder)
    assert (folder / "trials").exists()
    assert ids(folder) == [*range(2 * NIGHTS)]


def test_a_part_that_goes_while_it_is_read_is_another_complaint_than_damage(folder):
    seen = take_snapshot(folder)
    seen.files["trials"][0].unlink()
    with pytest.raises(snapshot.MovedError, match=r"being rewritten\. Read it again"):
        seen.read("trials")
