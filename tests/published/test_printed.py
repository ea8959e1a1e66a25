"""The tables that the benchmarks' documents print, and how they stand beside one's own figures."""

import csv
import hashlib
import json

import pyarrow.parquet as pq
import pytest

from asyncbench import published_table, report
from asyncbench.errors import ConfigError
from asyncbench.published.llm_arithmetic.tables import OVERVIEW_HEAD
from asyncbench.published.reports import PRINTED
from asyncbench.suites.nupa.tasks import TASKS
from asyncbench.tables.report import Sheet
from data.published import ABOUT, table_of
from tests.commands import asyncbench
from tests.published import test_llm_arithmetic_report as arithmetic, test_nupa_report as nupa
from tests.store.made import results_folder

NAMES = sorted(ABOUT)
CORRECT = OVERVIEW_HEAD.index("Correct %")


def test_every_table_is_shipped(golden):
    assert sorted(path.stem for path in PRINTED.iterdir()) == NAMES == sorted(printed(golden))


def printed(golden):
    """The hash of each table as its document prints it, in CSV."""
    return json.loads((golden / "published.json").read_text("utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_shipped_as_it_is_printed_and_the_script_makes_the_same_again(golden, tmp_path, name):
    shipped = pq.read_table(PRINTED / f"{name}.parquet")
    file = tmp_path / f"{name}.csv"
    with file.open("w", encoding="utf-8", newline="") as lines:
        rows = csv.writer(lines, lineterminator="\n")
        rows.writerow(shipped.column_names)
        rows.writerows(row.values() for row in shipped.to_pylist())
    assert hashlib.sha256(file.read_bytes()).hexdigest()[:16] == printed(golden)[name]
    assert table_of(file).equals(shipped, check_metadata=True)
    assert published_table(name).equals(shipped)
    assert len(shipped) > 1


@pytest.mark.parametrize("name", NAMES)
def test_a_table_names_its_document_and_its_doubts(name):
    about = {key.decode(): value.decode() for key, value in published_table(name).schema.metadata.items()}
    assert all(about[f"asyncbench.{key}"] for key in ("document", "source", "table"))
    assert tuple(json.loads(about["asyncbench.notes"])) == ABOUT[name].notes


def test_another_name_is_refused_with_those_that_there_are():
    with pytest.raises(ConfigError, match=r"'nupa_table_11'.*nupa_table_10, nupa_table_12"):
        published_table("nupa_table_11")


def test_every_task_of_the_papers_tables_is_one_of_ours():
    ours = {(task.task, task.variant, task.representation) for task in TASKS.values()}
    printed = {
        (row["task"], row.get("variant", ""), row["representation"])
        for number in (7, 8, 9, 10)
        for row in published_table(f"nupa_table_{number}").to_pylist()
    }
    assert len(printed) == 43
    assert printed <= ours


# ── beside one's own ─────────────────────────────────────────────────────────────────────────


def sheets_of(found) -> dict[str, Sheet]:
    return {part.title: part for part in found.content() if isinstance(part, Sheet)}


@pytest.fixture
def sums(tmp_path):
    """Nine of ten sums right."""
    asked = [arithmetic.problem(lhs=str(n), rhs="1", expected=str(n + 1)) for n in range(10)]
    texts = [one.expected if n else "0" for n, one in enumerate(asked)]
    made = [arithmetic.result(n, one, text) for n, (one, text) in enumerate(zip(asked, texts, strict=True))]
    return results_folder(tmp_path, *made)


def test_published_models_stand_in_the_overview_by_their_accuracy(sums):
    alone, beside = (report(sums, "llm-arithmetic", published=published) for published in (False, True))
    mine, *others = sheets_of(alone).values()
    overview, *same = sheets_of(beside).values()
    assert len(overview.rows) == 52
    shares = [float(str(row[CORRECT]).rstrip("%")) for row in overview.rows]
    assert shares == sorted(shares, reverse=True)
    assert [row for row in overview.rows if not str(row[0]).endswith(" (published)")] == list(mine.rows)
    assert list(overview.rows[0]) == [
        *("o3-2025-04-16-medium (published)", "480", "99.79%", "0.0000%", "0.21%"),
        *("1,102,422", "$44.2534", "899.5261%", "1.8740%"),
    ]
    assert same == others  # nothing else counts them
    told = beside.as_text(width=200)
    assert "Results (Depth >= 5) of README of 2025-06-30" in told
    assert "--grader legacy" in told
    assert "(published)" not in alone.as_text(width=200)


def test_json_has_the_published_rows_apart(sums):
    alone, beside = (
        json.loads(report(sums, "llm-arithmetic", grader="legacy", published=published).as_json())
        for published in (False, True)
    )
    (table,) = beside.pop("published")
    assert beside == alone
    assert (table["document"], len(table["rows"])) == ("README of 2025-06-30", 51)
    assert table["rows"][0]["correct_percent"] == 99.79


@pytest.mark.parametrize("depth", ["1", "2"])
def test_over_all_depths_it_is_the_earlier_table(sums, depth):
    done = asyncbench(
        "report", sums, "--style", "llm-arithmetic", "--published", "--min-depth", depth, "--markdown"
    )
    assert done.returncode == 0, done.stderr
    assert "| gpt-4.1-nano-2025-04-14 (published) | 720 | 46.94% | 0.56% | 52.50% | 3,808 |" in done.stdout
    dated = "| gpt-4.1-nano-2025-04-14 (published) | 2025-05-11_16-04 | 720 | 46.94% | 0.56% | 52.50% |"
    assert f"{dated} $0.003862 | 64817201461194223990.77 |" in done.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--style", "llm-arithmetic", "--min-depth", "7"], "--min-depth 7: --published has no table for it"),
        (["--style", "standings"], "--published cannot be used with --style standings"),
        (["--html"], "--published cannot be combined with --html"),
    ],
    ids=["another depth", "another style", "the page"],
)
def test_where_nothing_is_published_it_is_refused(sums, options, told):
    done = asyncbench("report", sums, "--published", *options)
    assert done.returncode == 2
    assert told in done.stderr


def test_the_papers_models_stand_beside_ones_own_on_the_tasks_that_these_were_asked(tmp_path):
    asked = [
        one for name in (nupa.SUM, "max_Integer_Integer_Integer") for one in nupa.problems(name, {5: 10})
    ]
    folder = nupa.keep(tmp_path, *(nupa.result(one, nupa.right(one)) for one in asked))
    alone, beside = (report(folder, "nupa", published=published) for published in (False, True))
    theirs = {title: sheet for title, sheet in sheets_of(beside).items() if title not in sheets_of(alone)}
    exact, digits, dlength, ranges = theirs.values()
    assert exact.head[:4] == ("task", "m", "GPT-4o-mini (published)", "GPT-4o (published)")
    assert exact.rows[0][:4] == ["add, integer", "5 / 5", "5 / 20", "5 / 20"]
    assert [row[0] for row in exact.rows] == ["add, integer"]  # of max the paper prints add's figures again
    assert [row[0] for row in digits.rows] == [row[0] for row in dlength.rows]
    assert digits.rows[1][:3] == ["max, integer", "5 / 5", "100 / 100"]
    assert ranges.head == ("model", *(f"add integer {of}" for of in ("S", "M", "L", "XL")))
    assert ranges.rows[0] == ["m", "-", "1.00", "-", "-"]
    assert ["Llama-2-7b-hf, 5 examples (published)", "0.61", "0.12", "0.00", "0.00"] in ranges.rows
    assert "Number Cookbook" in beside.as_text(width=200)
    data = json.loads(beside.as_json())
    assert [table["table"] for table in data.pop("published")] == [f"Table {n}" for n in (7, 8, 9, 10)]
    assert data == json.loads(alone.as_json())
