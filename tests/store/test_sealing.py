"""Segments become Parquet that anyone can read, each row once, however often it is tried."""

import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import unquote

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from asyncbench.errors import StoreError
from asyncbench.records import Outcome, Reply, Usage
from asyncbench.store.catalog import (
    read_attempts,
    read_grades,
    read_lanes,
    read_skipped,
    read_steps,
    read_trials,
)
from asyncbench.store.folder import Store
from asyncbench.store.journal import Journal, Unfinished
from asyncbench.store.manifest import claim_folder
from asyncbench.store.parts import ROW_GROUP
from asyncbench.store.rows import attempt_row, grade_rows, trial_row
from asyncbench.store.schema import OF_THE_TRIAL, SCHEMAS
from asyncbench.store.sealing import next_number, seal
from tests.store.disk import disk_for
from tests.store.made import (
    AT,
    answered,
    ended,
    grade,
    keep,
    minute,
    refused,
    reply,
    result,
    sent,
    skipped,
    step,
    trial,
    trial_id,
)

ALIASES = ("small", "openai/gpt-5 100%", "модель=ё", "a%2Fb", "x&y?#z'\"")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of models with every sort of alias, two suites, and a failed trial for each."""
    path = tmp_path_factory.mktemp("results") / "night"
    with Store.open(path, sweep="night") as store:
        for n, alias in enumerate(ALIASES):
            keep(store, *answered(n, alias=alias), *answered(n + 100, alias=alias, suite="custom"))
            keep(store, *refused(n + 200, alias=alias))
            keep(store, minute(alias), skipped(n + 300, alias=alias), step(alias=alias))
    return path


def with_pandas(path):
    import pandas as pd

    read = pd.read_parquet(path)
    return read.astype({"lane" if "lane" in read else "model": str}).to_dict("list")


def with_polars(path):
    import polars as pl

    return pl.read_parquet(path).to_dict(as_series=False)


def with_polars_lazily(path):
    import polars as pl

    return pl.scan_parquet(path).collect().to_dict(as_series=False)


def with_duckdb(path):
    columns = duckdb.read_parquet(f"{path}/**/*.parquet", hive_partitioning=True).fetchnumpy()
    return {name: list(values) for name, values in columns.items()}


READERS = {
    "pandas": with_pandas,
    "DuckDB": with_duckdb,
    "Polars": with_polars,
    "Polars, lazily": with_polars_lazily,
    "pyarrow": lambda path: pq.read_table(path).to_pydict(),
    "pyarrow, by the columns inside": lambda path: ds.dataset(path).to_table().to_pydict(),
}


READ = {
    "trials": read_trials,
    "grades": read_grades,
    "attempts": read_attempts,
    "lanes": read_lanes,
    "skipped": read_skipped,
    "steps": read_steps,
}


@pytest.mark.long
@pytest.mark.parametrize("table", SCHEMAS)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_everyone_reads_every_column_of_every_alias(folder, reader, table):
    read = reader(folder / table)
    ours = READ[table](folder)
    assert set(read) == set(SCHEMAS[table].names)
    row, alias = {"lanes": ("started_at", "lane"), "steps": ("load", "model")}.get(
        table, ("trial_id", "model")
    )
    assert len(read[row]) == ours.num_rows
    assert Counter(read[alias]) == Counter(ours[alias].to_pylist())
    if table != "lanes":
        assert set(read[row]) == set(ours[row].to_pylist())
    assert set(read[alias]) == set(ALIASES)


def test_a_query_groups_by_model_without_anything_of_ours(folder):
    trials = duckdb.read_parquet(f"{folder}/trials/**/*.parquet", hive_partitioning=True)
    rows = trials.aggregate(
        "model, avg((outcome = 'correct')::int), sum(cost_usd), count(cost_usd)"
    ).fetchall()
    assert {row[0]: row[1:] for row in rows} == dict.fromkeys(ALIASES, (2 / 3, 0.5, 3))


def test_any_one_file_tells_where_it_belongs(folder):
    parts = list((folder / "trials").rglob("*.parquet"))
    assert parts
    for path in parts:
        assert {f"suite={row['suite']}" for row in pq.ParquetFile(path).read().to_pylist()} == {
            path.parts[-3]
        }
        assert pq.read_schema(path).metadata[b"asyncbench.schema_version"] == b"1"


@pytest.mark.long
def test_what_is_null_in_a_record_is_null_for_everyone(folder):
    import pandas as pd

    trials = pd.read_parquet(folder / "trials")
    failed = trials[trials.outcome == "failed"]
    assert failed.reply_text.isna().all()
    assert failed.input_tokens.isna().all()
    assert (failed.cost_usd == 0).all()  # refused before any work: known
    assert pd.read_parquet(folder / "grades").digits_right.isna().all()


def test_times_are_read_in_utc(folder):
    first = read_attempts(folder)["started_at"][0].as_py()
    assert first == datetime.fromtimestamp(AT, tz=UTC)
    attempts = duckdb.read_parquet(f"{folder}/attempts/**/*.parquet")
    assert attempts.aggregate("max(epoch_us(started_at))").fetchall() == [(round(AT * 1e6),)]


def journalled(folder, events, number=1):
    """Write a complete segment; return its path."""
    claim_folder(folder, sweep="night")
    journal = Journal(folder / "journal", number=number, unfinished=Unfinished())
    for event in events:
        journal.append(event)
    journal.close()
    return journal.segment.path


def everything(folder):
    return [read(folder).to_pylist() for read in (read_trials, read_grades, read_attempts)]


def test_sealing_a_segment_twice_gives_the_same_parts_once(tmp_path):
    segment = journalled(tmp_path, [*answered(1), *answered(2, alias="large"), *refused(3)])
    copy = shutil.copy(segment, tmp_path / "copy")
    seal(segment, tmp_path)
    once = everything(tmp_path)
    shutil.move(copy, segment)
    seal(segment, tmp_path)
    assert everything(tmp_path) == once
    assert [len(rows) for rows in once] == [3, 6, 3]


def test_a_sealed_segment_is_gone_and_nothing_temporary_is_left(tmp_path):
    seal(journalled(tmp_path, answered(1)), tmp_path)
    left = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(left) == [
        "attempts/model=small/part-000001.parquet",
        "grades/suite=nupa/model=small/part-000001.parquet",
        "manifest.json",
        "trials/suite=nupa/model=small/part-000001.parquet",
    ]


def test_rows_keep_the_order_in_which_trials_were_closed(tmp_path):
    order = [5, 3, 9, 1]
    seal(journalled(tmp_path, [event for n in order for event in answered(n)]), tmp_path)
    assert read_trials(tmp_path)["trial_id"].to_pylist() == [trial_id(n) for n in order]


def test_whatever_models_are_called_each_row_stands_in_its_own_partition(tmp_path):
    aliases = ["simulated-http/noisy-5", "simulated-anthropic/noisy-2", "simulated-http/noisy-4"]
    events = [
        event
        for n in range(30)
        for event in [
            ended(trial(n, alias=aliases[n % 3]), reply(n)),
            result(trial(n, alias=aliases[n % 3]), reply(n)),
        ]
    ]
    seal(journalled(tmp_path, events), tmp_path)
    assert list(tmp_path.glob("trials/**/*.parquet"))
    for part in tmp_path.glob("[tga]*/**/*.parquet"):
        assert set(pq.ParquetFile(part).read(["model"])["model"].to_pylist()) == {
            unquote(part.parent.name.removeprefix("model="))
        }


@pytest.mark.long
def test_a_large_part_is_written_in_row_groups(tmp_path):
    closed = (result(trial(n), reply(n)) for n in range(3 * ROW_GROUP // 2))
    seal(journalled(tmp_path, closed), tmp_path)
    (part,) = (tmp_path / "trials").rglob("*.parquet")
    metadata = pq.ParquetFile(part).metadata
    assert metadata.num_rows == 3 * ROW_GROUP // 2
    assert metadata.row_group(0).num_rows == ROW_GROUP


def test_a_segment_of_calls_without_an_end_has_no_rows(tmp_path):
    seal(journalled(tmp_path, [sent(trial(1))]), tmp_path)
    assert everything(tmp_path) == [[], [], []]


def test_damaged_lines_are_reported_and_the_others_become_rows(tmp_path):
    segment = journalled(tmp_path, [*answered(1), *answered(2)])
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"answer", b"ANSWER")
    segment.write_bytes(b"".join(lines))
    (damage,) = seal(segment, tmp_path)
    assert (damage.segment, damage.line, damage.offset) == (segment, 4, sum(map(len, lines[:3])))
    assert read_trials(tmp_path)["trial_id"].to_pylist() == [trial_id(2)]
    assert len(read_attempts(tmp_path)) == 2


def test_a_value_that_its_column_cannot_hold_is_refused_and_stays_in_the_journal(tmp_path):
    odd = replace(reply(1), usage=Usage(output_tokens=2**63))
    segment = journalled(tmp_path, [ended(trial(1), odd)])
    with pytest.raises(StoreError, match=r"000001\.wal holds a value of the wrong type.*9223372036854775808"):
        seal(segment, tmp_path)
    assert segment.exists()


def test_a_part_that_does_not_fit_on_the_disk_is_named_and_its_segment_stays(tmp_path):
    segment = journalled(tmp_path, [*answered(1), *answered(2)])
    with disk_for(100), pytest.raises(StoreError, match=r"part-000001\.parquet could not be written"):
        seal(segment, tmp_path)
    assert not list(tmp_path.glob("trials/**/*.parquet"))
    seal(segment, tmp_path)
    assert [len(rows) for rows in everything(tmp_path)] == [2, 4, 2]


def test_no_number_is_given_twice(tmp_path):
    assert next_number(tmp_path) == 1
    seal(journalled(tmp_path, answered(1), number=7), tmp_path)
    assert next_number(tmp_path) == 8
    journalled(tmp_path, answered(2), number=12)
    assert next_number(tmp_path) == 13


NUMBERS = st.none() | st.integers(0, 2**31 - 1)
SECONDS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.none() | st.text()


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_values_come_back_exactly_as_they_were(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("any")
    answer = Reply(
        text=data.draw(st.text()),
        reasoning=data.draw(TEXTS),
        usage=data.draw(st.builds(Usage, input_tokens=NUMBERS, output_tokens=st.integers(0, 2**63 - 1))),
        raw_usage=data.draw(st.none() | st.dictionaries(st.text(), st.integers(0, 9))),
    )
    read = replace(
        grade(data.draw(TEXTS), Outcome.WRONG),
        digits_right=data.draw(NUMBERS),
        rel_error=data.draw(SECONDS),
        flags=tuple(data.draw(st.lists(st.text()))),
    )
    closed = replace(
        result(trial(1), answer, cost_usd=data.draw(SECONDS)), grades=(read,), latency_s=data.draw(SECONDS)
    )
    call = ended(closed.trial, answer, cost_usd=closed.cost_usd)
    segment = journalled(folder, [call, closed])
    before = everything(folder)
    seal(segment, folder)
    assert everything(folder) == before  # the journal and its parts tell the same
    of_the_trial = {name: trial_row(closed)[name] for name in OF_THE_TRIAL}
    rows = [trial_row(closed), of_the_trial | grade_rows(closed)[0], attempt_row(call.attempt)]
    assert before == [[as_read(row)] for row in rows]


@pytest.mark.parametrize("error", [float("inf"), 0.0, 2.5e-7, 1e308])
def test_a_relative_error_comes_back_exactly_even_an_infinite_one(tmp_path, error):
    closed = result(trial(1), reply(1))
    far_off = replace(closed, grades=(replace(closed.grades[0], rel_error=error),))
    seal(journalled(tmp_path, [ended(closed.trial, reply(1)), far_off]), tmp_path)
    (row,) = everything(tmp_path)[1]
    assert row["rel_error"] == error


def as_read(row):
    """A row as Arrow gives it back: lists, times with their zone, relative errors as numbers."""
    return {name: _reading(name, value) for name, value in row.items()}


def _reading(name, value):
    if name.endswith("_at") and value is not None:
        return datetime.fromtimestamp(value / 1e6, tz=UTC)
    if name == "flags":
        return list(value)
    return float(value) if name == "rel_error" and value is not None else value
