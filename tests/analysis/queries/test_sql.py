"""SQL over a results folder: ready views, the same rows as every reader, read-only."""

import base64
import csv
import io
import json
import subprocess
import sys
from collections import Counter
from shlex import quote

import duckdb
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from asyncbench import read_attempts, read_grades, read_problems, read_trials, sql
from asyncbench.analysis.sql import MOST_SHOWN, asking
from asyncbench.cli import app
from asyncbench.errors import ConfigError, StoreError
from asyncbench.records import Outcome
from asyncbench.stats.proportions import Proportion
from asyncbench.store.folder import Store
from asyncbench.store.parts import read
from asyncbench.store.reading import take_snapshot
from asyncbench.store.sealing import part_files
from tests.reports.answered import Asked, folder_of
from tests.store.made import add, answered, ended, keep, refused, reply, trial
from tests.upkeep.regrading.made import as_now, fill, right, sums

READERS = {"trials": read_trials, "grades": read_grades, "attempts": read_attempts, "problems": read_problems}


def wrong_of_three(problem):
    return "0" if problem.expected == "13" else right(problem)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models, three sums: `large` is wrong in one, `small` in none."""
    place = tmp_path_factory.mktemp("sql") / "night's [work]*"  # as hard to write as a path may be
    fill(place, sums(1, 2, 3), right, aliases=["small"], graders=as_now)
    fill(place, sums(1, 2, 3), wrong_of_three, aliases=["large"], graders=as_now)
    return place


def values(folder, query):
    return [tuple(row.values()) for row in sql(folder, query).to_pylist()]


@pytest.mark.long
@pytest.mark.parametrize("table", READERS)
def test_a_view_holds_what_its_reader_reads(folder, table):
    read = READERS[table](folder)
    found = sql(folder, f"FROM {table}").select(read.column_names)  # parameters stand behind them
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, read.to_pylist()))


@pytest.mark.long
@pytest.mark.parametrize("table", READERS)
def test_a_new_folder_has_empty_views_of_the_same_columns(tmp_path, table):
    Store.open(tmp_path, sweep="night").close()
    found = sql(tmp_path, f"FROM {table}")
    assert (found.num_rows, found.column_names) == (0, READERS[table](tmp_path).column_names)


@pytest.mark.long
def test_what_only_the_journal_holds_is_seen_and_what_it_answers_again_counts_once(tmp_path):
    add(tmp_path, *answered(1), *refused(2))
    with Store.open(tmp_path, sweep="night", again={Outcome.FAILED}) as store:
        keep(store, *answered(2, attempt=2), ended(trial(3), reply(3)))
        assert values(tmp_path, "SELECT outcome, count(*) FROM trials GROUP BY ALL") == [("correct", 2)]
        assert values(tmp_path, "SELECT count(*) FROM grades") == [(4,)]
        assert values(tmp_path, "SELECT count(*) FROM attempts") == [(4,)]


def test_accuracy_has_the_counts_and_the_intervals_of_the_report(folder):
    shares = "accuracy, accuracy_low, accuracy_high, accuracy_of_answered"
    query = f"SELECT model, trials, correct, {shares} FROM accuracy"  # noqa: S608  our own words
    for model, correct in (("large", 2), ("small", 3)):
        interval = Proportion(successes=correct, trials=3).interval
        ((*counts, share, low, high, answered),) = values(folder, f"{query} WHERE model = '{model}'")
        assert counts == [model, 3, correct]
        assert (share, answered) == pytest.approx((correct / 3,) * 2)
        assert (low, high) == pytest.approx(interval)


def test_a_problem_counts_once_in_the_intervals_however_often_it_was_asked(tmp_path):
    asked = (Asked(model="m", outcomes="+++-", repeat=repeat) for repeat in range(3))
    query = "SELECT trials, accuracy_low, accuracy_high FROM accuracy"
    ((trials, *interval),) = values(folder_of(tmp_path, asked), query)
    assert trials == 12
    assert interval == pytest.approx(Proportion(successes=3, trials=4).interval)


def test_cost_counts_every_call_and_says_how_many_are_priced(tmp_path):
    add(tmp_path, *answered(1), *refused(2), ended(trial(3), None, cost_usd=None))
    query = "SELECT model, calls, answered, trials, priced_calls, cost_usd, output_tokens FROM cost"
    assert values(tmp_path, query) == [("small", 3, 1, 3, 2, 0.25, 7)]


def test_a_cost_that_nobody_knows_is_null(tmp_path):
    add(tmp_path, ended(trial(3), None, cost_usd=None))
    assert values(tmp_path, "SELECT cost_usd FROM cost") == [(None,)]


def test_latency_is_of_answered_calls(tmp_path):
    add(tmp_path, *answered(1), *refused(2))
    query = (
        "SELECT model, answered, latency_p50_s, latency_p99_s, ttft_p50_s, output_tokens_per_s FROM latency"
    )
    assert values(tmp_path, query) == [("small", 1, 1.5, 1.5, None, 7 / 1.5)]


def test_problems_join_the_trials_that_asked_them(folder):
    query = "SELECT count(*) FROM trials JOIN problems USING (problem_set, problem_id)"
    assert values(folder, query) == [(6,)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT modle FROM trials", 'modle.*Candidate bindings.*"model"'),
        ("SELEC 1", "syntax error"),
        ("FROM nothing", "nothing does not exist.*The views are trials, grades"),
        ("", "one SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("COPY trials TO 'x.csv'", "one SELECT"),
        ("CREATE TABLE x AS SELECT 1", "one SELECT"),
        ("INSTALL httpfs", "one SELECT"),
        ("EXPLAIN ANALYZE COPY trials TO 'x.csv'", "one SELECT"),
        ("SELECT 1 / 'a'", "Could not convert"),
    ],
)
def test_what_cannot_be_answered_is_told_in_one_line(folder, query, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=said) as caught:
        sql(folder, query)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_damaged_part_is_named_where_the_query_looks_at_it(tmp_path):
    fill(tmp_path, sums(1, 2), right)
    (part,) = (tmp_path / "trials").rglob("*.parquet")
    metadata = pq.read_metadata(part).row_group(0)
    (reply_text,) = (
        column
        for column in map(metadata.column, range(metadata.num_columns))
        if column.path_in_schema == "reply_text"
    )
    content = bytearray(part.read_bytes())
    content[reply_text.data_page_offset + 30] ^= 1
    part.write_bytes(content)
    assert values(tmp_path, "SELECT count(*) FROM trials WHERE outcome = 'no_answer'") == [(2,)]
    for query in ("SELECT reply_text FROM trials", "FROM trials", "SELECT * FROM trials"):
        with pytest.raises(StoreError, match=part.name):
            sql(tmp_path, query)


def test_a_table_shows_null_and_says_when_there_is_more(folder):
    with asking(
        folder, "SELECT n, NULL AS nothing, 0.00001::DOUBLE AS small FROM range(1000) AS t(n)"
    ) as answer:
        lines = answer.as_text().splitlines()
    assert lines[1].split() == ["0", "NULL", "1e-05"]
    assert len(lines) == MOST_SHOWN + 2
    assert "--csv" in lines[-1]


QUERY = """
    SELECT 'a,"b"' AS text, 1.5::DOUBLE AS real, NULL AS nothing, sum(n) AS total, [1, 2] AS several,
        TIMESTAMPTZ '2026-11-20 18:00:00+00' AS at
    FROM range(5) AS t(n)
"""


def test_csv_is_read_back_as_it_was(folder):
    out = io.StringIO()
    with asking(folder, QUERY) as answer:
        answer.write_csv(out)
    head, row = csv.reader(io.StringIO(out.getvalue()))
    assert head == ["text", "real", "nothing", "total", "several", "at"]
    assert row[:5] == ['a,"b"', "1.5", "", "10", "[1,2]"]
    assert row[5].startswith("2026-11-20 18:00:00")


def test_a_cost_beyond_money_is_unknown_and_the_rest_is_added_up(folder):
    query = """
        SELECT sum_usd(usd) AS usd
        FROM (VALUES (1e302), (0.5), (NULL), ('nan'::DOUBLE), ('-inf'::DOUBLE), (0.25)) AS v(usd)
    """
    assert sql(folder, query)["usd"].to_pylist() == [0.75]


# One a line: a reply that readers of CSV are known to trip over. Number 0 is NULL.
ODD_TEXTS = [
    *("first line\rsecond", "a\nb", "a\r\nb", "\r", "a\0b", 'say "x"', '"', "\ufeffx", "\u2028", "🙂"),
    *("NA", "null", "NaN", "None", "", " x", "x ", "=1+1", "007", "9" * 40, "true", "2024-01-01"),
    *("a,b", "a;b", "a\tb", "a|b", "#x", "'x'", "-", "\\", "\\n", "\\N"),
]


@pytest.mark.long
@pytest.mark.parametrize("reader", ["python", "pandas", "duckdb", "polars"])
def test_what_others_read_in_the_csv_are_the_texts_that_were_written(reader, folder, tmp_path):
    values = ", ".join(f"('{base64.b64encode(text.encode()).decode()}')" for text in ODD_TEXTS)
    rows = f"SELECT 'http/m', decode(from_base64(t)) FROM (VALUES {values}) AS v(t)"  # noqa: S608  our own words
    query = f"SELECT 'no' AS model, NULL AS reply_text UNION ALL {rows}"
    path = tmp_path / "odd.csv"
    with asking(folder, query) as answer, path.open("w", newline="", encoding="utf-8") as file:
        answer.write_csv(file)
        written = answer.as_table()["reply_text"].to_pylist()

    def texts() -> list[str | None]:
        match reader:
            case "python":
                with path.open(newline="", encoding="utf-8") as file:
                    return [row["reply_text"] for row in csv.DictReader(file)]
            case "pandas":
                pandas = pytest.importorskip("pandas")
                return list(pandas.read_csv(path, dtype=str, keep_default_na=False)["reply_text"])
            case "duckdb":
                found = duckdb.read_csv(str(path), all_varchar=True, allow_quoted_nulls=False)
                return [text for _, text in found.fetchall()]
        polars = pytest.importorskip("polars")
        return list(polars.read_csv(path, infer_schema=False)["reply_text"])

    if reader in ("python", "pandas"):  # which know no NULL
        written = [text or "" for text in written]
    assert Counter(texts()) == Counter(written)  # rows of a query without ORDER BY come in any order
    assert sorted(filter(None, written)) == sorted(filter(None, ODD_TEXTS))


def test_json_is_an_array_of_objects(folder):
    out = io.StringIO()
    with asking(folder, QUERY) as answer:
        answer.write_json(out)
    (row,) = json.loads(out.getvalue())
    assert (row["text"], row["real"], row["nothing"], row["total"]) == ('a,"b"', 1.5, None, 10)


def test_an_answer_without_rows_is_still_csv_and_json(folder):
    for write, wanted in (("write_csv", "model\n"), ("write_json", "[\n]\n")):
        out = io.StringIO()
        with asking(folder, "SELECT model FROM trials WHERE false") as answer:
            getattr(answer, write)(out)
        assert out.getvalue() == wanted


def test_a_parquet_file_is_written_whole_or_not_at_all(folder, tmp_path):
    out = tmp_path / "out.parquet"
    with asking(folder, "SELECT trial_id, model FROM trials") as answer:
        assert answer.write_parquet(out) == 6
    assert pq.read_table(out).column_names == ["trial_id", "model"]
    before = out.read_bytes()
    failing = "SELECT CASE WHEN n > 50000 THEN error('late') ELSE n END AS n FROM range(60000) AS t(n)"
    with pytest.raises(ConfigError, match="late"), asking(folder, failing) as answer:
        answer.write_parquet(out)
    assert out.read_bytes() == before
    assert list(tmp_path.iterdir()) == [out]


# ── a folder that is rewritten meanwhile ─────────────────────────────────────────────────────


@pytest.fixture
def nights(tmp_path):
    """A folder with a part of each of two nights, which `rewrite` makes one, under another name each time."""
    for number in (1, 2):
        fill(tmp_path, sums(number), right, graders=as_now)
    return tmp_path


def rewrite(folder):
    with Store.reopen(folder) as store:
        for table in ("trials", "grades"):
            parts = part_files(folder, table)
            with store.replaced(table) as new:
                new.part(parts).add(read(table, parts))


def taken(answer, form):
    """The rows of `SELECT trial_id FROM trials`, as this form gives them."""
    if form == "as_table":
        return answer.as_table()["trial_id"].to_pylist()
    if form == "as_text":
        return answer.as_text().split()[1:]
    out = io.StringIO()
    getattr(answer, form)(out)
    if form == "write_json":
        return [one["trial_id"] for one in json.loads(out.getvalue())]
    return out.getvalue().split()[1:]


@pytest.mark.long
@pytest.mark.parametrize("form", ["as_table", "as_text", "write_csv", "write_json"])
def test_parts_that_are_replaced_before_the_rows_are_taken_are_looked_for_again(nights, form):
    wanted = sorted(map(str, read_trials(nights)["trial_id"].to_pylist()))
    with asking(nights, "SELECT trial_id FROM trials") as answer:
        rewrite(nights)
        assert sorted(taken(answer, form)) == wanted


def test_a_parquet_file_of_a_folder_that_is_rewritten_has_every_row_once(nights, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "out.parquet"
    with asking(nights, "SELECT trial_id FROM trials") as answer:
        rewrite(nights)
        assert answer.write_parquet(out) == 2
    assert len(set(pq.read_table(out)["trial_id"].to_pylist())) == 2


def rewritten_after_each_look(nights, monkeypatch, times):
    """Have parts replaced between a look at the folder and the query, so many times."""
    left = iter(range(times))

    def look_too_early(folder):
        seen = take_snapshot(folder)
        if next(left, None) is not None:
            rewrite(nights)
        return seen

    monkeypatch.setattr("asyncbench.analysis.sql.take_snapshot", look_too_early)


@pytest.mark.long
@pytest.mark.parametrize("query", ["SELECT count(*) FROM trials", "SELECT count(*) FROM grades, trials"])
def test_parts_that_are_replaced_before_the_query_is_asked_are_looked_for_again(nights, monkeypatch, query):
    rewritten_after_each_look(nights, monkeypatch, times=2)
    ((found,),) = values(nights, query)
    assert found == (2 if "grades" not in query else 2 * len(read_grades(nights)))


@pytest.mark.long
def test_a_folder_that_is_rewritten_again_and_again_is_given_up_at(nights, monkeypatch):
    rewritten_after_each_look(nights, monkeypatch, times=1000)
    with pytest.raises(StoreError, match=r"part-.*The folder was being rewritten"):
        sql(nights, "SELECT trial_id FROM trials")


@pytest.mark.parametrize("form", ["as_table", "write_csv", "write_json"])
def test_what_fails_when_rows_are_taken_is_told_in_one_line(folder, form):
    failing = "SELECT CASE WHEN n > 50000 THEN error('late') ELSE n END AS n FROM range(60000) AS t(n)"
    with pytest.raises(ConfigError, match=r"^sql: .*late. The views are"), asking(folder, failing) as answer:
        taken(answer, form)


def asyncbench(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)


@pytest.mark.long
def test_the_command_prints_tables_csv_and_json_and_writes_parquet(folder, tmp_path):
    query = "SELECT model, correct FROM accuracy ORDER BY model"
    assert asyncbench("sql", folder, query).stdout.split() == ["model", "correct", "large", "2", "small", "3"]
    assert asyncbench("sql", folder, query, "--csv").stdout == "model,correct\nlarge,2\nsmall,3\n"
    told = json.loads(asyncbench("sql", folder, query, "--json").stdout)
    assert told == [{"model": "large", "correct": 2}, {"model": "small", "correct": 3}]
    out = tmp_path / "out.parquet"
    assert asyncbench("sql", folder, query, "--parquet", out).stdout == f"{out}: 2 rows\n"
    assert pq.read_table(out).to_pylist() == told


def test_two_forms_at_once_are_refused(folder):
    with pytest.raises(ConfigError, match="Give one of them"):
        asyncbench("sql", folder, "FROM cost", "--csv", "--json")


@pytest.mark.long
@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_an_answer_that_does_not_fit_behind_standard_output_is_exit_5(folder, form):
    with open("/dev/full", "w", encoding="utf-8") as full:
        words = [sys.executable, "-m", "asyncbench", "sql", str(folder), "SELECT 1 AS n", form]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 5
    assert done.stderr == (
        "asyncbench: cannot write to standard output: No space left on device. Make room for it\n"
    )


@pytest.mark.long
def test_a_reader_that_leaves_early_is_no_error(folder):
    asked = f"{sys.executable} -m asyncbench sql {quote(str(folder))} 'FROM range(1000000)' --csv"
    piped = f"{asked} | head -n 2"
    done = subprocess.run(piped, shell=True, capture_output=True, text=True, check=False)  # noqa: S602  # ours
    assert done.stdout == "range\n0\n"
    assert "Traceback" not in done.stderr
