"""A small file that holds a great deal is refused, or read in bounded memory."""

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asyncbench.errors import ProblemSetError
from asyncbench.problems import files
from asyncbench.problems.opening import open_set

ROOT = Path(__file__).resolve().parents[2]
MB = 1_000_000
ROWS = 300
CUSTOM: dict[str, Any] = {"suite": "custom", "grader": "exact"}
READ = """
import json, resource, sys
from asyncbench.problems.opening import open_set

def peak_mb():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

before = peak_mb()
told = []
for path, how in json.loads(sys.argv[1]):
    found = open_set(path, **how)
    told.append([found.rows, found.longest_question, sum(len(one.question) for one in found.read())])
print(json.dumps([told, peak_mb() - before]))
"""


def repeated(text, rows):
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))


def custom(path: Path, question: str, rows: int = ROWS) -> Path:
    """Write a set of one question, so often, as small as Parquet makes it."""
    columns = {"question": repeated(question, rows), "expected": repeated("2", rows)}
    pq.write_table(pa.table(columns), path, compression="zstd")
    return path


def contract(path, large, column, text):
    """Write problems that are told apart, with the same text in a column of each."""
    table = pq.read_table(large).slice(0, ROWS).replace_schema_metadata({})
    texts = repeated(text, ROWS)
    if column == "operands":
        texts = pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), texts)
    index = table.schema.get_field_index(column)
    pq.write_table(table.set_column(index, column, texts), path, compression="zstd")
    return path


def read_elsewhere(*asked):
    """Open and read sets in a process that has 3 GB; return what it found and how many MB it grew by."""
    done = subprocess.run(
        [sys.executable, "-c", READ, json.dumps([[str(path), how] for path, how in asked])],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3000 * MB, 3000 * MB)),
    )
    return json.loads(done.stdout)


@pytest.mark.long
def test_texts_that_stand_once_and_are_named_often_are_never_all_in_memory(large, tmp_path):
    text = "7" * MB  # of each set 300 MB, written out
    named = [
        contract(tmp_path / f"{column}.parquet", large.path, column, text)
        for column in ("question", "operands")
    ]
    mine = custom(tmp_path / "mine.parquet", text)
    assert max(path.stat().st_size for path in (*named, mine)) < MB

    told, grown_mb = read_elsewhere(*((path, {}) for path in named), (mine, CUSTOM))

    assert told[0] == told[-1] == [ROWS, MB, ROWS * MB]
    assert grown_mb < 300


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_twenty_million_rows_in_a_small_file_are_streamed(tmp_path):
    path = custom(tmp_path / "rows.parquet", "1 + 1?", rows=20 * MB)
    assert path.stat().st_size < 2.6 * MB
    told, grown_mb = read_elsewhere((path, CUSTOM))
    print(f"20,000,000 rows in {path.stat().st_size:,} bytes: {grown_mb:.0f} MB above the start")
    assert told == [[20 * MB, 6, 120 * MB]]
    assert grown_mb < 300


@pytest.mark.parametrize("beside", [0, 500], ids=["alone", "among short ones"])
@pytest.mark.parametrize("column", ["question", "expected"])
def test_a_text_that_no_model_takes_is_refused(column, beside, tmp_path):
    short = {name: ["2"] * (beside + 1) for name in ("question", "expected")}
    table = pa.table(short | {column: ["7" * 10_000_001, *["2"] * beside]})
    pq.write_table(table, tmp_path / "long.parquet")
    with pytest.raises(
        ProblemSetError, match=rf"column '{column}' holds a text of more than 10,000,000 bytes"
    ):
        open_set(tmp_path / "long.parquet", **CUSTOM)


def test_a_column_of_others_may_be_as_large_as_it_likes(tmp_path):
    table = pa.table({"question": ["1 + 1?"], "expected": ["2"], "picture": ["7" * 10_000_001]})
    pq.write_table(table, tmp_path / "pictures.parquet")
    assert open_set(tmp_path / "pictures.parquet", **CUSTOM).rows == 1


def test_a_row_group_that_may_be_one_page_is_refused_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_IN_A_GROUP", 9_999)
    pq.write_table(
        pa.table({"question": ["7" * 100] * 99, "expected": list("1" * 99)}), tmp_path / "g.parquet"
    )
    open_set(tmp_path / "g.parquet", **CUSTOM)
    questions = [f"{n:0>100}" for n in range(99)]
    pq.write_table(pa.table({"question": questions, "expected": list("1" * 99)}), tmp_path / "g.parquet")
    with pytest.raises(ProblemSetError, match=r"column 'question' has .* in one row group.*row_group_size"):
        open_set(tmp_path / "g.parquet", **CUSTOM)
