"""SQL is contained: it writes nothing, reads nothing but the folder, and shows no damaged row as sound."""

import csv
import io
import json
import os
import pty
import random
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from asyncbench import read_attempts, read_grades, read_problems, read_trials, sql
from asyncbench.analysis.choosing import TABLE_FUNCTIONS
from asyncbench.analysis.counting import open_views
from asyncbench.errors import ConfigError, ProblemSetError, StoreError
from asyncbench.store.reading import take_snapshot
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.sealing import part_files
from tests.commands import CLEAN, asyncbench, asyncbench_here
from tests.processes import Forked
from tests.tiers import first_rows
from tests.upkeep.regrading.made import as_now, fill, right, sums

OUTSIDE = "correct horse battery staple"  # what no query may show
SEED = int(os.environ.get("ASYNCBENCH_SEED", "1"))

# {new}: a path outside where nothing is; {out}: a file outside; {part}: a part of the folder
ESCAPES = {
    # what writes files
    "COPY": "COPY (SELECT 1) TO '{new}'",
    "COPY in a CTE": "WITH x AS (COPY (SELECT 1) TO '{new}') SELECT * FROM x",
    "COPY in a CTE onto a part": "WITH x AS (COPY (SELECT 1 AS a) TO '{part}' (FORMAT parquet)) FROM x",
    "COPY in a CTE onto a part, no new file": (
        "WITH x AS (COPY (SELECT 1 AS a) TO '{part}' (FORMAT parquet, USE_TMP_FILE false)) SELECT * FROM x"
    ),
    "COPY in a CTE that is not used": "WITH x AS (COPY (SELECT 1) TO '{new}') SELECT 1",
    "COPY in a CTE of a subquery": "SELECT * FROM (WITH x AS (COPY (SELECT 1) TO '{new}') FROM x)",
    "COPY in a CTE of an expression": "SELECT (WITH x AS (COPY (SELECT 1) TO '{new}') FROM x)",
    "COPY in a CTE of a UNION": "SELECT 1 UNION ALL (WITH x AS (COPY (SELECT 1) TO '{new}') FROM x)",
    "COPY in a materialised CTE": "WITH x AS MATERIALIZED (COPY (SELECT 1) TO '{new}') SELECT * FROM x",
    "COPY in a recursive CTE": (
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3), "
        "x AS (COPY (SELECT 1) TO '{new}') SELECT * FROM r, x"
    ),
    "COPY to where DuckDB spills": "WITH x AS (COPY (SELECT 1) TO ({spill})) SELECT * FROM x",
    "COPY into folders": "COPY (SELECT 1 AS a) TO '{new}' (FORMAT parquet, PARTITION_BY (a))",
    "COPY FROM": "COPY trials FROM '{out}'",
    "EXPORT": "EXPORT DATABASE '{new}'",
    "ATTACH": "ATTACH '{new}' AS other",
    "ATTACH read-only": "ATTACH '{out}' AS other (READ_ONLY)",
    "COPY DATABASE": "COPY FROM DATABASE memory TO other",
    "VACUUM": "VACUUM",
    "CHECKPOINT": "CHECKPOINT",
    "EXPLAIN ANALYZE of a COPY": "EXPLAIN ANALYZE COPY (SELECT 1) TO '{new}'",
    "several statements": "SELECT 1; COPY (SELECT 1) TO '{new}'",
    "several statements, the SELECT last": "COPY (SELECT 1) TO '{new}'; SELECT 1",
    "a COPY behind a NUL": "SELECT 1 \0; COPY (SELECT 1) TO '{new}'",
    "a COPY behind a comment": "SELECT 1 -- all\n; COPY (SELECT 1) TO '{new}'",
    "PREPARE": "PREPARE p AS COPY (SELECT 1) TO '{new}'",
    "EXECUTE": "EXECUTE p",
    # what changes tables, settings or the process
    "CREATE TABLE": "CREATE TABLE x AS SELECT 1",
    "CREATE MACRO": "CREATE MACRO m() AS TABLE FROM read_text('{out}')",
    "CREATE SECRET": "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "DROP VIEW": "DROP VIEW cost",
    "INSERT": "INSERT INTO trials VALUES (1)",
    "INSERT in a CTE": "WITH x AS (INSERT INTO trials SELECT * FROM trials RETURNING *) FROM x",
    "UPDATE in a CTE": "WITH x AS (UPDATE trials SET model = 'x' RETURNING *) FROM x",
    "DELETE in a CTE": "WITH x AS (DELETE FROM trials RETURNING *) FROM x",
    "IMPORT": "IMPORT DATABASE '{out}'",
    "INSTALL": "INSTALL httpfs",
    "LOAD": "LOAD '{out}'",
    "PRAGMA": "PRAGMA enable_profiling = 'json'",
    "SET": "SET enable_external_access = true",
    "SET a variable": "SET VARIABLE v = 1",
    "RESET": "RESET lock_configuration",
    "USE": "USE memory",
    "CALL": "CALL enable_logging(storage = 'file', storage_path = '{new}')",
    "enable_logging": "FROM enable_logging(storage = 'file', storage_path = '{new}')",
    "checkpoint": "FROM checkpoint()",
    "memory by its address": "FROM python_arrow_scan(1, 2, 3)",
    "objects by their address": "FROM pandas_scan(1)",
    # what reads files or the process
    "a quoted file": "FROM '{out}'",
    "a quoted part": "FROM '{part}'",
    "a quoted address": "FROM 'https://127.0.0.1/x.parquet'",
    "read_csv": "FROM read_csv('{out}')",
    "read_csv in capitals": "FROM READ_CSV('{out}')",
    "read_csv by its schema": "FROM main.read_csv('{out}')",
    "read_csv by its catalog": "FROM system.main.read_csv('{out}')",
    "read_csv in an expression": "SELECT (SELECT max(text) FROM read_text('{out}') AS t(a, text, b, c))",
    "read_csv in a CTE": "WITH x AS (FROM read_csv('{out}')) FROM x",
    "read_csv described": "DESCRIBE FROM read_csv('{out}')",
    "read_csv summed up": "SUMMARIZE FROM read_csv('{out}')",
    "read_csv pivoted": "FROM (PIVOT (FROM read_csv('{out}')) ON 1 IN (1))",
    "read_csv beside a view": "FROM trials, LATERAL (FROM read_text('{out}'))",
    "sniff_csv": "FROM sniff_csv('{out}')",
    "read_json": "FROM read_json('{out}')",
    "read_text": "FROM read_text('{out}')",
    "read_text as a scalar": "SELECT read_text('{out}')",
    "read_blob": "FROM read_blob('{out}')",
    "read_parquet": "FROM read_parquet('{part}')",
    "parquet_metadata": "FROM parquet_metadata('{part}')",
    "parquet_schema": "FROM parquet_schema('{part}')",
    "read_duckdb": "FROM read_duckdb('{out}')",
    "glob": "FROM glob('{out}*')",
    "query": "FROM query('COPY (SELECT 1) TO ''{new}''')",
    "query_table": "FROM query_table('{out}')",
    "histogram": "FROM histogram('{out}', text)",
    "a query as JSON": "FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{out}'')'))",
    "getenv": "SELECT getenv('ASYNCBENCH_SECRET')",
    "getenv after FROM": "FROM getenv('ASYNCBENCH_SECRET')",
    "duckdb_secrets": "FROM duckdb_secrets()",
    "duckdb_settings": "FROM duckdb_settings()",
    "pragma_database_size": "FROM pragma_database_size()",
    "pragma_version": "FROM pragma_version()",
    "which_secret": "FROM which_secret('s3://x', 's3')",
    "a variable of ours": "FROM variable_of_ours",
    "a global of ours": "FROM GLOBAL_OF_OURS",
}

CRASHES = {"memory by its address", "objects by their address"}

GLOBAL_OF_OURS = pa.table({"a": [OUTSIDE]})


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """A folder with parts of two models."""
    folder = tmp_path_factory.mktemp("contained") / "night"
    fill(folder, sums(1, 2, 3), right, aliases=["small", "large"], graders=as_now)
    return folder


@pytest.fixture
def around(night, tmp_path, monkeypatch):
    """A copy of the folder beside files that are no part of it; whoever asks stands there."""
    shutil.copytree(night, tmp_path / "night")
    (tmp_path / "out.csv").write_text(f"text\n{OUTSIDE}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASYNCBENCH_SECRET", OUTSIDE)
    return tmp_path


def tree(place):
    return {path: path.is_file() and path.read_bytes() for path in sorted(place.rglob("*"))}


def escape(name, around):
    folder = around / "night"
    (part, *_) = part_files(folder, "attempts")
    spill = "current_setting('temp_directory') || '/x'"
    return ESCAPES[name].format(new=around / "new", out=around / "out.csv", part=part, spill=spill)


@pytest.mark.parametrize("name", first_rows(30, ESCAPES))
def test_a_query_changes_nothing_and_reads_nothing_but_the_folder(around, name):
    variable_of_ours = GLOBAL_OF_OURS
    before, query = tree(around), escape(name, around)
    with pytest.raises(ConfigError, match=r"^sql: ") as caught:
        sql(around / "night", query)
    assert OUTSIDE not in str(caught.value)
    assert tree(around) == before
    assert variable_of_ours is GLOBAL_OF_OURS


@pytest.mark.long
@pytest.mark.parametrize("name", ["COPY", "a COPY behind a NUL", "INSERT", "read_csv", "getenv"])
def test_the_command_refuses_such_a_query_in_one_line(around, name):
    before, query = tree(around), escape(name, around)
    done = asyncbench_here("sql", around / "night", query.replace("\0", "\n"), "--csv")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert OUTSIDE not in done.stderr
    assert tree(around) == before


def test_what_passed_the_check_of_a_query_could_open_no_file_either(around):
    before = tree(around)
    with open_views(around / "night", take_snapshot(around / "night")) as views:
        for name in ESCAPES.keys() - CRASHES:
            with suppress(duckdb.Error):
                assert OUTSIDE not in str(views.connection.execute(escape(name, around)).fetchall())
    assert tree(around) == before


@pytest.mark.long
def test_a_query_can_use_every_function_that_only_computes(night):
    asked = {
        "generate_series": "(3)",
        "histogram": "(trials, length)",
        "histogram_values": "(trials, length)",
        "json_each": "('[1, 2]')",
        "json_tree": "('[1, 2]')",
        "range": "(3)",
        "repeat": "(1, 3)",
        "repeat_row": "(1, 2, num_rows = 3)",
        "unnest": "([1, 2])",
    }
    assert set(asked) == TABLE_FUNCTIONS
    for name, arguments in asked.items():
        assert sql(night, f"FROM {name}{arguments}").num_rows > 0


@pytest.mark.long
@pytest.mark.parametrize(
    "query",
    [
        "SHOW TABLES",
        "DESCRIBE cost",
        "SUMMARIZE trials",
        "FROM (PIVOT trials ON outcome IN ('correct', 'wrong') USING count(*) GROUP BY model)",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) FROM r",
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'trials'",
        'SELECT \'COPY x TO y; read_csv(z) "type":"COPY_QUERY_NODE"\' AS said',
        "VALUES (1), (2)",
        "(SELECT 1) INTERSECT (SELECT 1)",
        "SELECT list_transform([model], lambda x: upper(x)) FROM trials",
        f"SELECT 1 {' + 1' * 200}",
        "SELECT model FROM trials;",
    ],
)
def test_a_query_that_only_reads_is_answered(night, query):
    assert sql(night, query).num_rows > 0


def test_a_query_that_is_nested_too_deeply_is_refused(night):
    for deep in (f"SELECT {'(' * 5000}1{')' * 5000}", f"SELECT 1 {' + 1' * 5000}"):
        with pytest.raises(ConfigError, match=r"^sql: "):
            sql(night, deep)


def test_how_deep_python_reads_a_query_depends_on_its_release(night):
    with suppress(ConfigError):
        assert sql(night, f"SELECT 1 {' + 1' * 900} AS total")["total"].to_pylist() == [901]


# ── what a scan reads is checked ─────────────────────────────────────────────────────────────

QUERIES = (
    "WITH x AS (FROM {table}) FROM x",
    "SELECT CAST(t AS VARCHAR) FROM {table} t",
    "SELECT * FROM {table}",
    "SELECT count(*) FROM {table}",
    "SELECT COLUMNS('.*_id|.*_version|.*_s') FROM {table}",
    "SELECT model, count(*) FROM {table} JOIN {table} t USING (model) WHERE model <> 'x' GROUP BY ALL",
    "SELECT unnest(t) FROM (SELECT t FROM {table} t LIMIT 1000)",
)


def answered(folder, query):
    return sorted(map(str, sql(folder, query).to_pylist()))


def flipped(content, draw):
    """Return a part with one bit flipped; every second bit is none of the footer, which is large."""
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    at = draw.randrange(len(content) - footer if draw.random() < 0.5 else len(content))
    return content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :]


def damages(folder, drawn):
    """Flip so many bits, one at a time, and ask all queries of each; return what was answered amiss."""
    parts = [(name, part) for name in SCHEMAS for part in part_files(folder, name)]
    sound, refusals, amiss = cache(lambda query: answered(folder, query)), 0, list[tuple[object, ...]]()
    for number in range(SEED, SEED + drawn):
        draw = random.Random(number)
        table, part = draw.choice(parts)
        queries, content = [query.format(table=table) for query in QUERIES], part.read_bytes()
        wanted = [*map(sound, queries)]
        part.write_bytes(flipped(content, draw))
        for query, rows in zip(queries, wanted, strict=True):
            try:
                amiss += [(number, query)] if answered(folder, query) != rows else []
            except StoreError as error:
                refusals += 1
                said = str(error)
                amiss += [] if str(part) in said and "from a backup" in said else [(number, query, said)]
        part.write_bytes(content)
    assert refusals > drawn
    return amiss


@pytest.mark.long
def test_a_flipped_bit_is_never_shown_as_sound(night):
    assert damages(night, drawn=4) == []


@pytest.mark.soak
def test_two_thousand_flipped_bits_are_never_shown_as_sound(night):
    print(f"\nbits of the seeds {SEED} to {SEED + 1999}; ASYNCBENCH_SEED sets the first", flush=True)
    assert damages(night, drawn=2000) == []


def test_a_damaged_part_ends_the_command_with_its_name_and_the_way_out(around):
    (part, *_) = part_files(around / "night", "attempts")
    content = part.read_bytes()
    part.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    done = asyncbench_here("sql", around / "night", "WITH x AS (FROM attempts) FROM x")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)
    assert str(part) in done.stderr
    assert "from a backup" in done.stderr


def test_a_damaged_copy_of_a_problem_set_is_named(around):
    (copy,) = (around / "night" / "problems").iterdir()
    content = copy.read_bytes()
    for at in (50, 200, 400, len(content) - 9):
        copy.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(ProblemSetError, match=str(copy)):
            sql(around / "night", "WITH x AS (FROM problems) FROM x")


@pytest.mark.long
def test_an_earlier_versions_folder_is_asked_as_its_readers_read_it():
    readers = {
        "trials": read_trials,
        "grades": read_grades,
        "attempts": read_attempts,
        "problems": read_problems,
    }
    for folder in (Path(__file__).parents[2] / "store" / "versions").iterdir():
        for table, read in readers.items():
            assert answered(folder, f"FROM {table}") == sorted(map(str, read(folder).to_pylist()))


# ── what is shown on a terminal ──────────────────────────────────────────────────────────────

EVIL = "SELECT chr(27) || '[2J' || chr(155) || 'é' || chr(8238) || chr(10) || '9' AS \"a\x1b[31m\", 'b' AS b"


def on_a_terminal(*words):
    """Run a command whose standard output is a real terminal; return what it printed."""
    ours, theirs = pty.openpty()
    process = Forked("asyncbench", *words, stdout=theirs, env=CLEAN)
    os.close(theirs)
    printed = b""
    with suppress(OSError):  # the terminal is closed when the process has ended
        while read := os.read(ours, 65536):
            printed += read
    os.close(ours)
    assert process.wait() == 0
    return printed.decode().replace("\r\n", "\n")


@pytest.mark.long
@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_a_reply_does_nothing_to_a_terminal(night, form):
    printed = on_a_terminal("sql", night, EVIL, form)
    assert all(line.isprintable() for line in printed.split("\n"))
    assert all(shown in printed for shown in ("[2J", "[31m", "é", "202e"))


@pytest.mark.long
def test_a_terminal_and_a_pipe_get_the_same_json(night):
    printed = on_a_terminal("sql", night, EVIL, "--json")
    piped = asyncbench("sql", night, EVIL, "--json").stdout
    assert printed != piped
    assert json.loads(printed) == json.loads(piped)


def test_a_pipe_gets_every_character_of_csv(night):
    head, row = csv.reader(io.StringIO(asyncbench("sql", night, EVIL, "--csv").stdout))
    assert (head, row) == (["a\x1b[31m", "b"], ["\x1b[2J\x9bé\u202e\n9", "b"])
