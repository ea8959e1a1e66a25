"""read_trials and its siblings: any columns, any rows, whole or in batches, with complaints that help."""

import gc
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.store.folder import Store
from asyncbench.store.parts import ROW_GROUP, Part, read, scanned
from asyncbench.store.schema import SCHEMAS
from tests.store.made import add, answered, keep
from tests.tiers import first_rows
from tests.upkeep.regrading.made import fill, right, sums

READ = (ab.read_trials, ab.read_grades, ab.read_attempts, ab.read_problems)
ITERATE = (ab.iter_trials, ab.iter_grades, ab.iter_attempts, ab.iter_problems)


@pytest.fixture
def folder(tmp_path):
    """Rows in two parts, and two trials that only the journal holds."""
    fill(tmp_path, sums(1, 2, 3), right, aliases=["small", "large"])
    with Store.open(tmp_path, sweep="night") as store:
        keep(store, *answered(8), *answered(9))
        yield tmp_path


@pytest.mark.long
@pytest.mark.parametrize(("read", "iterate"), list(zip(READ, ITERATE, strict=True)))
def test_batches_hold_the_rows_of_the_whole_table(folder, read, iterate):
    for batch_rows in (1, 2, 8192):
        batches = list(iterate(folder, batch_rows=batch_rows))
        assert max(map(len, batches)) <= batch_rows
        assert pa.Table.from_batches(batches).cast(read(folder).schema).equals(read(folder))


def test_batches_have_the_columns_and_rows_asked_for(folder):
    columns = ["outcome", "model"]  # in this order
    filters: list[tuple[str, str, object]] = [("model", "=", "large")]
    found = pa.Table.from_batches(ab.iter_trials(folder, columns=columns, filters=filters))
    assert found.equals(ab.read_trials(folder, columns=columns, filters=filters))
    assert (len(found), found.column_names) == (3, columns)


@pytest.mark.long
@pytest.mark.parametrize("read", [*READ, *ITERATE])
def test_a_column_that_is_not_there_is_named_with_those_that_are(folder, read):
    with pytest.raises(ConfigError, match=r"has no column 'modle'\. Its columns: .*\w_id"):
        read(folder, ["modle"])


@pytest.mark.parametrize("read", READ)
def test_a_text_instead_of_a_list_of_columns_is_refused(folder, read):
    with pytest.raises(ConfigError, match=r"must be a list of names, not a text\. Write \['model'\]"):
        read(folder, "model")


@pytest.mark.long
@pytest.mark.parametrize(
    "filters",
    [
        [("modle", "=", "a")],
        pc.field("modle") == "a",
        [("length", "=", "a")],
        [("length", "like", "a")],
        "length",
    ],
    ids=["unknown column", "in an expression", "another type", "unknown operator", "a text"],
)
@pytest.mark.parametrize("read", first_rows(1, READ))
def test_a_filter_that_cannot_be_used_is_refused_with_the_columns(folder, read, filters):
    with pytest.raises(ConfigError, match="filter does not work"):
        read(folder, filters=filters)


def test_problems_are_told_by_the_set_that_trials_name(folder):
    problems = ab.read_problems(folder, ["problem_set", "problem_id", "question"])
    assert problems["problem_set"].unique().to_pylist() == ["sums"]
    asked = ab.read_trials(folder, ["problem_set", "problem_id"], [("suite", "=", "llm_arithmetic")])
    assert len(asked.join(problems, ["problem_set", "problem_id"], join_type="inner")) == 6


@pytest.mark.long
def test_long_replies_are_read_page_by_page_not_a_row_group_at_once(tmp_path):
    add(tmp_path / "one", *answered(1))
    rows = pa.concat_tables([ab.read_trials(tmp_path / "one")] * ROW_GROUP).combine_chunks()
    texts = pa.chunked_array([[f"{n}{'9' * 10_000}" for n in range(ROW_GROUP)]])
    rows = rows.set_column(rows.column_names.index("reply_text"), "reply_text", texts)
    part = Part(tmp_path, Path("trials", "part-000001.parquet"))
    part.add(rows.cast(SCHEMAS["trials"]))
    part.finish()
    part.publish()
    del rows, texts
    before, most, seen = pa.total_allocated_bytes(), 0, 0
    for batch in scanned("trials", [part.path], columns=["reply_text"], rows=256):
        most = max(most, pa.total_allocated_bytes() - before)
        seen += batch.num_rows
    assert seen == ROW_GROUP
    assert most < 40_000_000  # all of them are 82 MB


@pytest.mark.long
def test_a_filter_leaves_the_same_rows_batch_by_batch_as_in_the_whole_table(tmp_path):
    add(tmp_path / "one", *answered(1))
    many = 2 * ROW_GROUP + 100
    rows = pa.concat_tables([ab.read_attempts(tmp_path / "one").slice(0, 1)] * many).combine_chunks()
    given = {"trial_id": [f"{n:05}" for n in range(many)], "status": [f"{n // 9000}" for n in range(many)]}
    for name, values in given.items():
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(values))
    part = Part(tmp_path, Path("attempts", "part-000001.parquet"))
    part.add(rows.cast(SCHEMAS["attempts"]))
    part.finish()
    part.publish()
    columns = ["trial_id", "error", "status"]
    for wanted, left in (
        (pc.field("status") == "1", many - 9000),
        (pc.field("trial_id").isin(["00007", "16383"]), 2),
        (pc.field("attempt") > 7, 0),
        (pc.field("error") == "x", 0),  # NULL is neither
        (pc.field("error").is_null(), many),
    ):
        whole = read("attempts", [part.path], columns=columns, filters=wanted)
        assert len(whole) == left
        for coded in ((), ("status", "error")):
            found = scanned("attempts", [part.path], columns=columns, filters=wanted, rows=1000, coded=coded)
            batches = list(found)
            kinds = {pa.types.is_dictionary(batch.schema.field("status").type) for batch in batches}
            assert kinds <= {bool(coded)}
            assert [row for batch in batches for row in batch.to_pylist()] == whole.to_pylist()


@pytest.mark.long
def test_what_was_read_of_a_file_is_let_go_without_a_search_for_garbage(folder):
    def kept() -> int:
        return sum(type(one).__name__ in ("FileMetaData", "ParquetSchema") for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = kept()
        assert sum(map(len, ab.iter_trials(folder))) > 0
        assert kept() == before
    finally:
        gc.enable()


def test_a_file_of_before_a_column_is_read_by_what_that_column_would_be(folder, tmp_path):
    old = tmp_path / "old.parquet"
    trials = ab.read_trials(folder)
    pq.write_table(trials.drop_columns("load"), old)
    found = [
        sum(map(len, scanned("trials", [old], columns=["trial_id"], filters=wanted)))
        for wanted in (pc.field("load").is_null(), pc.field("load") == "poisson 8/s #1")
    ]
    assert found == [len(trials), 0]
