"""A file that is not what it should be is refused before any call: named, with its column and a way out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings, strategies as st

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.problems.schema import PROBLEM_FIELDS, PROBLEM_SCHEMA
from asyncbench.records import Problem

Change = Callable[[pa.Table], pa.Table]


def put(column: str, values: list[Any], given: pa.DataType) -> Change:
    """Return the change that gives a column other values, the first of them in the first row."""

    def change(table: pa.Table) -> pa.Table:
        array = pa.array(values + table[column].to_pylist()[len(values) :], given)
        return table.set_column(table.schema.get_field_index(column), column, array)

    return change


def without(column: str) -> Change:
    return lambda table: table.drop_columns([column])


def twice(column: str) -> Change:
    return lambda table: table.append_column(column, table[column])


def typed(column: str, given: pa.DataType) -> Change:
    return lambda table: table.set_column(
        table.schema.get_field_index(column), column, table[column].cast(given)
    )


def changed(problems: ProblemSet, change: Change, path: Path) -> Path:
    """Write a changed copy as another tool would: without our metadata."""
    pq.write_table(change(pq.read_table(problems.path)), path)
    return path


TEXT, TEXTS = pa.string(), pa.list_(pa.string())
FAULTS: dict[str, tuple[Change, str]] = {  # what is wrong: how it is made so, and what is said of it
    "floats are expected": (
        put("expected", [0.5] * 250, pa.float64()),
        "column 'expected' has type double, not string. Write it as that",
    ),
    "numbers are asked": (
        put("question", [1] * 250, pa.int64()),
        "column 'question' has type int64, not string. Write it as that",
    ),
    "a length is a float": (
        typed("length", pa.float64()),
        "column 'length' has type double, not int32. Write it as that",
    ),
    "a length is beyond int32": (
        put("length", [2**31], pa.int64()),
        "column 'length': Integer value 2147483648 not in range: .*. Write it as int32",
    ),
    "operands are one text": (
        put("operands", ["1"] * 250, TEXT),
        "column 'operands' has type string, not list<.*. Write it as that",
    ),
    "operands are numbers": (
        put("operands", [[1]] * 250, pa.list_(pa.int64())),
        "column 'operands' has type list<element: int64>, not list<.*. Write it as that",
    ),
    "operands are NULL": (
        put("operands", [None], TEXTS),
        "column 'operands' holds NULL. Give every row a value",
    ),
    "an operand is NULL": (
        put("operands", [["1", None]], TEXTS),
        "column 'operands' holds NULL. Give every row a value",
    ),
    "an id is short": (
        put("problem_id", ["1"], TEXT),
        "column 'problem_id' holds '1', not 32 hexadecimal characters. Make the file again",
    ),
    "an id is in capitals": (
        put("problem_id", ["A" * 32], TEXT),
        "column 'problem_id' holds 'A{32}', not 32 hexadecimal characters. Make the file again",
    ),
    "an id goes on after a newline": (
        put("problem_id", ["a" * 32 + "\n"], TEXT),
        r"column 'problem_id' holds 'a{32}\\n', not 32 hexadecimal characters. Make the file again",
    ),
    "an id stands twice": (
        put("problem_id", ["0" * 32, "1" * 32, "0" * 32], TEXT),
        "column 'problem_id' holds 0{32} in rows 1 and 3 .*. Keep one row of each problem",
    ),
    "no such suite": (
        put("suite", ["arithmetic"], TEXT),
        "column 'suite' holds 'arithmetic'. Allowed: .*integer_addition, .* Correct those rows",
    ),
    "no such representation": (
        put("representation", ["roman"], TEXT),
        "column 'representation' holds 'roman'. Allowed: integer, float, .* Correct those rows",
    ),
    "no such type of answer": (
        put("answer_type", ["roman"], TEXT),
        "column 'answer_type' holds 'roman'. Allowed: integer, decimal, .* Correct those rows",
    ),
    "a column stands twice": (
        twice("task"),
        "this is not .*: it has 2 columns 'task'. Its columns: .*, extra, task. For data of your own write ",
    ),
    "no rows": (lambda table: table.slice(0, 0), "the file holds no problems. Make it again"),
}


@pytest.mark.parametrize(("change", "complaint"), FAULTS.values(), ids=FAULTS.keys())
def test_a_file_that_breaks_the_contract_is_refused(change, complaint, small, tmp_path):
    path = changed(small, change, tmp_path / "changed.parquet")

    with pytest.raises(ProblemSetError, match=f"^{path}: {complaint}"):
        open_set(path)


@pytest.mark.parametrize("name", PROBLEM_SCHEMA.names)
def test_a_missing_column_is_named_with_those_that_are_there(name, small, tmp_path):
    path = changed(small, without(name), tmp_path / "changed.parquet")
    others = ", ".join(other for other in PROBLEM_SCHEMA.names if other != name)

    said = f"this is not a problem set of asyncbench: it has no column '{name}'. Its columns: {others}. "
    with pytest.raises(ProblemSetError, match=f"^{path}: {said}"):
        open_set(path)


@pytest.mark.parametrize(
    "field", [field for field in PROBLEM_FIELDS if not field.nullable], ids=lambda field: field.name
)
def test_a_null_is_refused_where_there_must_be_a_value(field, small, tmp_path):
    path = changed(small, put(field.name, [None], field.type), tmp_path / "changed.parquet")

    with pytest.raises(ProblemSetError, match=f"^{path}: column '{field.name}' holds NULL. Give every row a"):
        open_set(path)


def test_an_id_that_stands_far_from_its_double_is_found(large, tmp_path):
    def repeat(table: pa.Table) -> pa.Table:
        return pa.concat_tables([table, table.slice(0, 1)])

    with pytest.raises(ProblemSetError, match=r"holds [0-9a-f]{32} in rows 1 and 20,001 "):
        open_set(changed(large, repeat, tmp_path / "changed.parquet"))


def test_an_unchanged_copy_without_our_metadata_is_the_same_set(small, tmp_path):
    path = changed(small, lambda table: table, tmp_path / "copy.parquet")
    copy = open_set(path, name="small")

    assert (copy.digest, copy.rows, copy.name) == (small.digest, small.rows, "small")
    assert (copy.seed, copy.generator_version, copy.parameters) == (None, None, {})
    assert list(copy.read()) == list(small.read())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(typed("question", pa.large_string()), id="large strings"),
        pytest.param(typed("question", pa.string_view()), id="string views"),
        pytest.param(typed("task", pa.dictionary(pa.int8(), pa.string())), id="a dictionary"),
        pytest.param(typed("operands", pa.large_list(pa.large_string())), id="large lists"),
        pytest.param(typed("length", pa.int64()), id="64-bit lengths"),
        pytest.param(typed("length", pa.uint8()), id="8-bit lengths"),
        pytest.param(lambda table: table.append_column("note", table["task"]), id="a further column"),
        pytest.param(lambda table: table.select(table.column_names[::-1]), id="another order of columns"),
    ],
)
def test_a_file_that_says_the_same_in_other_words_is_the_same_set(change, small, tmp_path):
    copy = open_set(changed(small, change, tmp_path / "changed.parquet"))

    assert copy.digest == small.digest
    assert list(copy.read()) == list(small.read())


def test_a_set_without_any_length_is_read(small, tmp_path):
    path = changed(small, put("length", [None] * 250, pa.null()), tmp_path / "changed.parquet")

    assert {problem.length for problem in open_set(path).read()} == {None}


def by_pandas(path: Path, out: Path) -> None:
    import pandas as pd

    frame = pd.read_parquet(path).query("length == 1").astype({"length": "int64"})
    frame.to_parquet(out)


def by_polars(path: Path, out: Path) -> None:
    import polars as pl

    pl.read_parquet(path).filter(pl.col("length") == 1).write_parquet(out)


def by_duckdb(path: Path, out: Path) -> None:
    duckdb.sql(f"COPY (FROM '{path}' WHERE length = 1) TO '{out}'")


@pytest.mark.long
@pytest.mark.parametrize("filtered", [by_pandas, by_polars, by_duckdb])
def test_a_set_filtered_with_another_tool_is_a_problem_set(filtered, small, tmp_path):
    filtered(small.path, tmp_path / "filtered.parquet")

    found = open_set(tmp_path / "filtered.parquet")
    assert list(found.read()) == [problem for problem in small.read() if problem.length == 1]


def test_a_set_may_be_asked_to_hold_one_suite_alone(small):
    assert open_set(small.path, suite="integer_addition") == small
    with pytest.raises(ProblemSetError, match="holds integer_addition, but the sweep wants only llm_ar"):
        open_set(small.path, suite="llm_arithmetic")


def test_columns_and_grader_are_for_custom_sets_alone(small):
    with pytest.raises(ConfigError, match="need `suite: custom`"):
        open_set(small.path, grader="exact")


# ── files that are not whole ─────────────────────────────────────────────────────────────────


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(ProblemSetError, match=r"^nowhere\.parquet: no such file. Correct the path, or make"):
        open_set("nowhere.parquet")


def test_a_folder_is_no_problem_set(tmp_path):
    with pytest.raises(ProblemSetError, match=f"^{tmp_path}: this is a folder. Name a file in it"):
        open_set(tmp_path)


LONG = "1" + 39 * "0"
CSV = f"question,final\n1 + 1?,2\n2 * 5?,{LONG}\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        pytest.param("gsm.csv", CSV, ["2", LONG], id="csv"),
        pytest.param("gsm.jsonl", '{"question": "1?", "final": "2"}\n' * 2, ["2", "2"], id="lines"),
        pytest.param("my 'own'.json", '[{"question": "?", "final": 7}]', ["7"], id="quoted"),
    ],
)
def test_a_text_file_is_taken_by_what_the_message_says(name, content, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content)
    with pytest.raises(ProblemSetError, match="For data of your own write ") as caught:
        open_set(name)
    entry = yaml.safe_load(str(caught.value).partition("of your own write ")[2].partition(". Or make")[0])
    assert entry["columns"] == {"question": "question", "expected": "final"}
    assert [problem.expected for problem in open_set(**entry).read()] == expected


@pytest.mark.parametrize(
    "content",
    [CSV, '{"question": "1?"}', '[{"question": "1?"}]'],
    ids=["csv", "lines", "list"],
)
def test_a_text_file_by_another_name_is_known_by_its_content(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gsm.parquet").write_text(content)
    with pytest.raises(
        ProblemSetError, match=r"^gsm\.parquet: this is not a problem set .* it is a text file"
    ):
        open_set("gsm.parquet")


def test_columns_that_cannot_be_guessed_are_left_to_you(tmp_path):
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table({"q": ["1 + 1?"], "a": ["2"]}), path)
    with pytest.raises(ProblemSetError, match=r"columns: \{question: …, expected: …\}\}"):
        open_set(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"PAR1", "it is cut short or damaged"),
        (b"\x00\x01\x02\x03", "this is no kind of file that is known"),
    ],
    ids=["empty", "magic", "bytes"],
)
def test_what_is_not_parquet_is_no_problem_set(content, said, tmp_path):
    path = tmp_path / "set.parquet"
    path.write_bytes(content)

    with pytest.raises(ProblemSetError, match=f"^{path}: {said}"):
        open_set(path)


@settings(deadline=None)
@given(data=st.data())
def test_a_file_cut_short_anywhere_is_refused(small, tmp_path_factory, data):
    whole = small.path.read_bytes()
    path = tmp_path_factory.mktemp("cut", numbered=True) / "cut.parquet"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])

    with pytest.raises(ProblemSetError, match=f"^{path}: "):
        open_set(path)


def content_or_complaint(path: Path) -> list[Problem] | str:
    """Return the problems of a file, or how the complaint about it begins."""
    try:
        return list(open_set(path).read())
    except ProblemSetError as error:
        return str(error)[: len(f"{path}: ")]


@pytest.mark.long
@settings(deadline=None)
@given(data=st.data())
def test_a_flipped_bit_is_refused_or_harmless(small, tmp_path_factory, data):
    damaged = bytearray(small.path.read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("flipped", numbered=True) / "flipped.parquet"
    path.write_bytes(damaged)

    assert content_or_complaint(path) in (list(small.read()), f"{path}: ")


def test_text_that_is_not_utf8_is_refused(small, tmp_path):
    def garble(table: pa.Table) -> pa.Table:
        _, offsets, letters = pa.array([b"\xff\xfe"] * len(table), pa.binary()).buffers()
        assert offsets
        assert letters
        text = pa.StringArray.from_buffers(len(table), offsets, letters)
        return table.set_column(table.schema.get_field_index("question"), "question", text)

    with pytest.raises(ProblemSetError, match="Invalid UTF8"):
        open_set(changed(small, garble, tmp_path / "changed.parquet"))


# ── what the file says of itself ─────────────────────────────────────────────────────────────


def with_metadata(problems: ProblemSet, path: Path, **said: str) -> Path:
    """Write a copy whose metadata says some things differently."""
    file = pq.ParquetFile(problems.path)
    metadata = {key.decode(): value.decode() for key, value in (file.metadata.metadata or {}).items()}
    with pq.ParquetWriter(path, file.schema_arrow) as writer:
        writer.write_table(file.read())
        writer.add_key_value_metadata(
            {key: text for key, text in metadata.items() if key.startswith("asyncbench.")}
            | {f"asyncbench.{key}": text for key, text in said.items()}
        )
    return path


NO_SENSE = "its metadata makes no sense"


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        pytest.param({"digest": "0" * 32}, "were damaged or edited after they were written", id="other rows"),
        pytest.param(
            {"schema_version": "2"}, r"follow version 2, and this .* knows 1\.", id="a later schema"
        ),
        pytest.param({"seed": "seven"}, NO_SENSE, id="number"),
        pytest.param({"parameters": "{"}, NO_SENSE, id="JSON"),
        pytest.param({"schema_version": ""}, NO_SENSE, id="nothing"),
        pytest.param({"counts": "[" * 9999}, NO_SENSE, id="deep"),
    ],
)
def test_metadata_that_the_file_cannot_have_is_refused(said, complaint, small, tmp_path):
    with pytest.raises(ProblemSetError, match=complaint):
        open_set(with_metadata(small, tmp_path / "odd.parquet", **said))


def test_metadata_of_others_is_no_concern(small, tmp_path):
    file = pq.read_table(small.path)
    foreign = {b"geo": b"\xff\xfe", b"\xff": b"x"}
    pq.write_table(file.replace_schema_metadata(foreign), tmp_path / "foreign.parquet")

    assert open_set(tmp_path / "foreign.parquet").digest == small.digest
