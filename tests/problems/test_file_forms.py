"""Files of every form: what a file holds is told by its bytes, read where it can be, and else named."""

import bz2
import codecs
import gzip
import io
import json
import lzma
import os
import pickle
import sqlite3
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asyncbench.errors import ProblemSetError
from asyncbench.problems import files, text_files
from asyncbench.problems.opening import open_set

ROWS = {"question": ["What is 1+1?", "Wie groß ist 2·2?", "二加一?"], "answer": ["2", "4", "3"]}
TABLE = pa.table(ROWS)
CSV = "question,answer\r\n" + "".join(f"{q},{a}\r\n" for q, a in zip(*ROWS.values(), strict=True))
TSV = CSV.replace(",", "\t")
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in TABLE.to_pylist())


def parquet(table: pa.Table = TABLE, **how: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **how)  # type: ignore[arg-type]  # as the case says
    return out.getvalue()


def arrow(table: pa.Table = TABLE, *, stream: bool = False, **how: object) -> bytes:
    out = io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(out, table.schema, options=pa.ipc.IpcWriteOptions(**how)) as writer:  # type: ignore[arg-type]  # likewise
        writer.write_table(table, max_chunksize=2)
    return out.getvalue()


def packed(data: bytes, codec: str) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, codec) as stream:  # type: ignore[arg-type]  # likewise
        stream.write(data)
    return out.getvalue().to_pybytes()


def as_type(kind: pa.DataType) -> pa.Table:
    return pa.table({name: pa.array(column).cast(kind) for name, column in ROWS.items()})


def beside_others() -> pa.Table:
    """Columns that nobody asks for: nested, of old times, and with texts in them."""
    others = pa.table(
        {
            "meta": [{"a": "x", "b": [1]}] * 3,
            "tags": [["a", "b"]] * 3,
            "pairs": pa.array([[("k", "v")]] * 3, pa.map_(pa.string(), pa.string())),
            "when": pa.array([0, 1, 2], pa.timestamp("ns")),
        }
    )
    for name, column in ROWS.items():
        others = others.append_column(name, pa.array(column))
    return others


# One case a line: the file's name, and its bytes. All hold the three rows above.
READ = {
    "delta.parquet": parquet(use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY"),
    "lengths.parquet": parquet(use_dictionary=False, column_encoding="DELTA_LENGTH_BYTE_ARRAY"),
    "one-of-two.parquet": parquet(use_dictionary=False, column_encoding={"answer": "DELTA_BYTE_ARRAY"}),
    "pages-2.parquet": parquet(data_page_version="2.0", version="2.6", compression="brotli"),
    "large.parquet": parquet(as_type(pa.large_string())),
    "view.parquet": parquet(as_type(pa.string_view())),
    "binary.parquet": parquet(as_type(pa.binary())),
    "dictionary.parquet": parquet(as_type(pa.dictionary(pa.int8(), pa.string()))),
    "others.parquet": parquet(beside_others(), use_deprecated_int96_timestamps=True),
    "others-delta.parquet": parquet(
        beside_others(), use_dictionary=False, column_encoding={"question": "DELTA_BYTE_ARRAY"}
    ),
    "groups.parquet": parquet(row_group_size=1),
    "set.arrow": arrow(),
    "set.feather": arrow(compression="zstd"),
    "stream.arrow": arrow(stream=True),
    "dictionary.ipc": arrow(as_type(pa.dictionary(pa.int8(), pa.string()))),
    "view.arrow": arrow(as_type(pa.string_view())),
    "binary-view.arrow": arrow(as_type(pa.binary_view())),
    "others.arrow": arrow(beside_others()),
    "set.csv.gz": gzip.compress(CSV.encode()),
    "members.csv.gz": b"".join(gzip.compress(line.encode()) for line in CSV.splitlines(keepends=True)),
    "set.tsv.gz": gzip.compress(TSV.encode()),
    "set.jsonl.gz": gzip.compress(LINES.encode()),
    "set.json.gz": gzip.compress(json.dumps(TABLE.to_pylist()).encode()),
    "set.csv.zst": packed(CSV.encode(), "zstd"),
    "frames.jsonl.zst": b"".join(packed(line.encode(), "zstd") for line in LINES.splitlines(keepends=True)),
    "set.jsonl.bz2": bz2.compress(LINES.encode()),
    "set.csv.xz": lzma.compress(CSV.encode()),
    "set.csv.lz4": packed(CSV.encode(), "lz4"),
    "gzip-called.csv": gzip.compress(CSV.encode()),
    "parquet-called.csv": parquet(),
    "csv-called.parquet": CSV.encode(),
    "lines-called.parquet": LINES.encode(),
    "lines-called.csv": LINES.encode(),
    "lines-called.json": LINES.encode(),
    "list-called.jsonl": json.dumps(TABLE.to_pylist()).encode(),
    "list-called.ndjson": json.dumps(TABLE.to_pylist(), indent=1).encode(),
    "list-called.txt": json.dumps(TABLE.to_pylist(), indent=1).encode(),
    "tabs-called.csv": TSV.encode(),
    "bars.txt": CSV.replace(",", "|").encode(),
    "no-ending": CSV.encode(),
    "unicode.txt": TSV.encode("utf-16"),
    "big-end.csv": codecs.BOM_UTF16_BE + CSV.encode("utf-16-be"),
    "no-mark.csv": CSV.encode("utf-16-le"),
    "no-mark-be.csv": CSV.encode("utf-16-be"),
    "utf-32.csv": CSV.encode("utf-32"),
    "utf-16.jsonl": LINES.encode("utf-16"),
    "utf-16.csv.gz": gzip.compress(CSV.encode("utf-16")),
    "marked.csv": CSV.encode("utf-8-sig"),
    "excel.csv": ("sep=;\r\n" + CSV.replace(",", ";")).encode(),
    "excel-utf-16.csv": ("sep=\t\r\n" + TSV).encode("utf-16"),
    "excel-quoted.csv": ('"sep=|"\n' + CSV.replace(",", "|")).encode(),
    "first-macs.csv": CSV.replace("\r\n", "\r").encode(),
}


@pytest.mark.long
@pytest.mark.parametrize("name", READ)
def test_a_file_of_any_form_gives_its_rows(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(READ[name])
    problems = open_set(path, suite="custom", grader="number")

    assert [problem.question for problem in problems.read()] == ROWS["question"]
    assert [problem.expected for problem in problems.read(2, 1)] == ROWS["answer"][1:]
    assert problems.name == name.partition(".")[0]


def workbook(*members: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for member in members:
            archive.writestr(member, "x")
    return out.getvalue()


def numpy_archive() -> bytes:
    out = io.BytesIO()
    np.savez(out, question=np.array([1]))
    return out.getvalue()


def database(folder: Path) -> bytes:
    with sqlite3.connect(folder / "db") as connection:
        connection.execute("CREATE TABLE t (question TEXT)")
    return (folder / "db").read_bytes()


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("set.csv"))
    return out.getvalue()


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
PAGE = b"\n<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>"

# One case a line: the file's name, its bytes (or what makes them in a folder), and what the message says.
NAMED = [
    ("set.xlsx", workbook("xl/workbook.xml"), "this is an Excel workbook.*Save it as CSV"),
    ("workbook.csv", workbook("[Content_Types].xml", "xl/workbook.bin"), "this is an Excel workbook"),
    ("set.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old or encrypted Excel workbook"),
    ("set.ods", workbook("mimetype", "content.xml"), r"a spreadsheet \(OpenDocument\)"),
    ("set.numbers", workbook("Index/Document.iwa"), "an Apple Numbers document"),
    ("set.zip", workbook("a/set.csv", "b"), r"a ZIP archive.*Unpack it.*It holds a/set\.csv, b"),
    ("set.npz", numpy_archive(), "an archive of NumPy arrays"),
    ("set.sqlite", database, "an SQLite database.*sqlite3 -header -csv"),
    ("set.pkl", pickle.dumps(ROWS), "a Python pickle"),
    ("set.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "a PDF document"),
    ("page.csv", PAGE, r"a web page \(HTML\).*Download the file itself"),
    ("page.parquet", PAGE, r"a web page \(HTML\)"),
    ("denied.csv", b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "this is XML"),
    ("pointer.parquet", POINTER, "only a pointer of Git LFS.*git lfs pull"),
    ("pointer.csv", POINTER, "only a pointer of Git LFS"),
    ("empty.csv", b"", "the file is empty"),
    ("empty.parquet", b"", "the file is empty"),
    ("empty.csv.gz", gzip.compress(b""), "the file is empty"),
    ("set.feather", b"FEA1\0\0\0\0" + bytes(90), "Feather, version 1.*Write it as Parquet"),
    ("set.parquet.gz", gzip.compress(parquet()), "a Parquet or Arrow file within gzip.*Unpack it"),
    ("set.csv.gz.gz", gzip.compress(gzip.compress(CSV.encode())), "a packed file within gzip"),
    ("set.tar.gz", gzip.compress(tar()), "a tar archive"),
    ("set.rds", gzip.compress(b"X\n\0\0\0\x03"), "data saved by R"),
    ("set.duckdb", bytes(8) + b"DUCK" + bytes(400), "a DuckDB database"),
    ("set.orc", b"ORC\x0a\x03\x00\xff", "an ORC file"),
    ("noise.parquet", bytes(range(1, 32)) * 9, "no kind of file that is known.*it is damaged"),
]


@pytest.mark.parametrize(("name", "content", "complaint"), NAMED, ids=[case[0] for case in NAMED])
def test_a_file_of_another_kind_is_named_with_the_way_out(name, content, complaint, tmp_path):
    if callable(content):
        content = content(tmp_path)
    (tmp_path / name).write_bytes(content)
    for suite in ("custom", None):
        with pytest.raises(ProblemSetError, match=f"^{tmp_path / name}: .*{complaint}") as refusal:
            open_set(tmp_path / name, suite=suite, grader="number" if suite else None)
        assert "cut short" not in str(refusal.value)


DAMAGED = [
    ("cut.parquet", parquet()[:-20], "it is cut short or damaged"),
    ("cut.arrow", arrow()[:-200], "it is cut short or damaged"),
    ("cut.csv.gz", gzip.compress(CSV.encode() * 2000)[:-30], "line .*its gzip data is cut short or damaged"),
    ("cut.csv.zst", packed(os.urandom(9000).hex().encode(), "zstd")[:-30], "zstd data is cut short"),
    ("wrong.csv.gz", gzip.compress(CSV.encode())[:-8] + bytes(8), "its gzip data is cut short or damaged"),
]


@pytest.mark.parametrize(("name", "content", "complaint"), DAMAGED, ids=[case[0] for case in DAMAGED])
def test_only_a_damaged_file_is_called_so(name, content, complaint, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ProblemSetError, match=complaint):
        open_set(tmp_path / name, suite="custom", grader="exact")


@pytest.mark.parametrize(
    "header", ["PAR1,answer", "ORC,answer", "BZh,answer", "ARROW1,answer", "FEA1,answer"]
)
def test_a_table_whose_first_column_is_called_so_is_a_table(header, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(f"{header}\n1+1?,2\n")
    question = header.partition(",")[0]

    (problem,) = open_set(path, suite="custom", grader="number", columns={"question": question}).read()

    assert problem.question == "1+1?"


def test_a_line_that_is_neither_utf_8_nor_utf_16_is_named_with_the_way_out(tmp_path):
    path = tmp_path / "own.txt"
    path.write_bytes("question\tanswer\n1+1?\t2\nWie groß?\t4\n".encode("cp1252"))
    with pytest.raises(
        ProblemSetError, match=r"line 3: it is not UTF-8 text \(byte 8.*iconv -f WINDOWS-1252"
    ):
        open_set(path, suite="custom", grader="number")


def test_bytes_that_are_no_text_are_named(tmp_path):
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table({"question": [b"1+1?", b"\xff"], "answer": ["2", "3"]}), path)
    with pytest.raises(ProblemSetError, match=r"column 'question': Invalid UTF8.* Write it as string"):
        open_set(path, suite="custom", grader="number")


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ProblemSetError, match="this is a pipe or a device"):
        open_set(tmp_path / "pipe.csv", suite="custom", grader="number")


def test_a_bomb_is_not_unpacked_into_memory(tmp_path, monkeypatch):
    path = tmp_path / "bomb.json.gz"
    monkeypatch.setattr(text_files, "MOST_IN_A_LIST", 10_000)
    path.write_bytes(gzip.compress(b"[" + b'{"question": "1?", "answer": "2"},\n' * 1_000))
    with pytest.raises(
        ProblemSetError, match=r"one JSON list of more than 10,000 characters\. Write JSON lines"
    ):
        open_set(path, suite="custom", grader="number")
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"7" * 16_000_001))
    with pytest.raises(ProblemSetError, match="line 1: it has more than 16,000,000 bytes"):
        open_set(path, suite="custom", grader="number")


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_rows_that_share_their_beginning_are_decoded_a_few_at_a_time(encoding, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_DECODED", 40_000)
    table = pa.table({"question": ["7" * 9_000] * 50, "answer": ["2"] * 50})
    path = tmp_path / "shared.parquet"
    pq.write_table(table, path, use_dictionary=False, column_encoding=encoding)
    with files.opened_columns(path) as file:
        sizes = [batch.num_rows for batch in file.batches(["question"], rows=8192)]

    assert sum(sizes) == 50
    assert max(sizes) == (4 if encoding == "DELTA_BYTE_ARRAY" else 50)
    long = pa.table({"question": ["7" * 10_000_001, "7" * 10_000_001, "1"], "answer": ["2"] * 3})
    pq.write_table(long, path, use_dictionary=False, column_encoding=encoding)
    with pytest.raises(ProblemSetError, match="holds a text of more than 10,000,000 bytes"):
        open_set(path, suite="custom", grader="number")
