"""Measures, factors and failures that the page of integer addition names: as tables and as pictures."""

import json
from dataclasses import replace

import pytest

from asyncbench import published_table
from asyncbench.charts import write_figures
from asyncbench.exchange import import_files
from asyncbench.published.integer_addition.report import integer_addition_report_on
from asyncbench.records import Reply, Usage
from asyncbench.store.folder import Store
from tests.exchange.made import result_file
from tests.published.test_integer_addition_report import add, asked, folder, keep, result

__all__ = ["folder"]  # a fixture

EXAMPLES = "integer_addition_examples"


def examples(folder):
    """A results folder of the page's own examples: a model for each, which is asked the same sum."""
    rows = published_table(EXAMPLES).to_pylist()
    (problem,) = asked(folder, add(int(rows[0]["int1"]), int(rows[0]["int2"])))
    made = [result(problem, str(row["response"]), model=row["case"]) for row in rows]
    return keep(folder, *made), rows


def test_each_example_of_a_failure_is_counted_as_what_the_page_calls_it(folder):
    found, rows = examples(folder)
    lines = {line.model: line for line in integer_addition_report_on(found).lines}
    assert len(lines) == len(rows) == 7
    for row in rows:
        line = lines[row["case"]]
        assert line.successes == (row["success"] == "yes")
        assert (line.errors["not_a_number"] == 1) == (row["parse_error"] == "yes")
        wanted = {} if row["success"] == "yes" else {row["case"]: 1}
        assert {mode: count for mode, count in line.modes.items() if count} == wanted


def pictures_of(folder):
    return {picture.name: picture for picture in integer_addition_report_on(folder).pictures()}


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    """Sums of many sizes: those with a carry are wrong; the longest replies were cut or never came."""
    folder = tmp_path_factory.mktemp("sums")
    Store.open(folder, sweep="night").close()
    operands = [(1, 2), (5, 5), (123456, 1), (999999, 1), (12345678901, 12345678901)]
    problems = asked(folder, *(add(*pair) for pair in operands))
    texts = [
        one.expected if "5" not in one.operands and "999999" not in one.operands else "7" for one in problems
    ]
    made = [
        result(problem, text, latency_s=n + 1.0, reasoning="so" if n == 0 else None)
        for n, (problem, text) in enumerate(zip(problems, texts, strict=True))
    ]
    thought = Reply(text=texts[0], reasoning="so", usage=Usage(input_tokens=1, reasoning_tokens=40))
    made[0] = replace(made[0], reply=thought)
    return keep(folder, *made, *(result(one, None, model="none") for one in problems))


def test_rates_are_of_recorded_results_and_of_all_tries_with_intervals(sums):
    rows = {(row["model"], row["of"]): row for row in pictures_of(sums)["ia-1-success"].rows}
    assert rows["m", "recorded results"]["success rate"] == rows["m", "all tries"]["success rate"] == 0.6
    assert rows["m", "all tries"]["low"] < 0.6 < rows["m", "all tries"]["high"]
    assert rows["none", "recorded results"]["success rate"] is None
    assert rows["none", "all tries"]["success rate"] == 0


def test_durations_are_median_mean_and_95th_percentile(sums):
    rows = [row for row in pictures_of(sums)["ia-2-duration"].rows if row["model"] == "m"]
    assert {row["figure"]: row["seconds"] for row in rows} == {
        "median": 3.0,
        "mean": 3.0,
        "p95": pytest.approx(4.8),
    }


def test_what_became_of_the_tries_adds_up(folder):
    problems = asked(folder, *(add(1, n) for n in range(1, 6)))
    texts = ["2", "9", "none", "", None]
    made = [result(one, text) for one, text in zip(problems, texts, strict=True)]
    made[1] = result(problems[1], "9", finish_reason="length")
    rows = pictures_of(keep(folder, *made))["ia-3-errors"].rows
    assert {row["kind"]: row["share of tries"] for row in rows if row["share of tries"]} == dict.fromkeys(
        ("success", "cut off", "not_a_number", "empty", "error"), 0.2
    )
    assert sum(row["share of tries"] for row in rows) == pytest.approx(1)


def test_reasoning_has_its_share_and_its_tokens(sums):
    (row,) = (row for row in pictures_of(sums)["ia-4-reasoning"].rows if row["model"] == "m")
    assert row["share"] == 0.2
    text = integer_addition_report_on(sums).as_markdown()
    assert "| m | integer_addition | 1 | 20.00% | 40 |" in text


def test_size_carries_and_operands_are_lines_and_a_map(sums):
    found = pictures_of(sums)
    size = {row["digits of the longer number"]: row["success rate"] for row in found["ia-6-size"].rows}
    assert size == {"1-5": 0.5, "6-10": 0.5, "11-15": 1.0}
    carries = {row["number of carries"]: row["success rate"] for row in found["ia-7-carries"].rows}
    assert carries == {"0": 1.0, "1-2": 0.0, "3-5": 1.0, "6-9": 0.0}
    chain = {row["longest run of carries"]: row["success rate"] for row in found["ia-7-chain"].rows}
    assert chain == {"0": 1.0, "1": 0.5, "6-9": 0.0}
    cells = {(row["longer"], row["shorter"]): row["success rate"] for row in found["ia-6-operands"].rows}
    assert cells == {("1-5", "1-5"): 0.5, ("6-10", "1-5"): 0.5, ("11-15", "11-15"): 1.0}


@pytest.mark.long
def test_the_pictures_of_the_benchmark_are_written_as_files(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    files = write_figures(examples(folder)[0], out, "integer-addition")
    names = {path.stem for path in files if path.suffix == ".svg"}
    assert {"ia-1-success", "ia-3-errors", "ia-5-modes", "ia-6-size", "ia-6-operands"} <= names
    assert {"ia-7-carries", "ia-7-chain", "ia-8-format"} <= names
    assert "| sentence | sentence | 1 |" in (out / "ia-5-modes.md").read_text()


def test_an_imported_file_has_the_same_pictures(tmp_path):
    file = tmp_path / "result_m_2026-03-01_22-15-40.json"
    file.write_text(json.dumps(result_file()))
    import_files("integer-addition", [file], tmp_path / "results")
    found = pictures_of(tmp_path / "results")
    seconds = {row["figure"]: row["seconds"] for row in found["ia-2-duration"].rows}
    assert seconds == dict.fromkeys(("median", "mean", "p95"), 0.75)
    kinds = {row["kind"]: row["share of tries"] for row in found["ia-3-errors"].rows}
    assert (kinds["success"], kinds["not_a_number"]) == (1 / 3, 1 / 3)
    assert found["ia-1-success-string-reversal"].drawable
    (longer, shorter) = {(row["longer"], row["shorter"]) for row in found["ia-6-operands"].rows}
    assert {longer, shorter} == {("16-20", "1-5"), ("1-5", "1-5")}
