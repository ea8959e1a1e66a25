"""Measures, factors and failures that the page of integer addition names."""

import json
from dataclasses import replace

import pytest

from asyncbench import published_table
from asyncbench.errors import ConfigError
from asyncbench.page.charts.figure_files import write_figures
from asyncbench.published.integer_addition.report import integer_addition_report_on
from asyncbench.records import Reply, Usage
from asyncbench.store.folder import Store
from asyncbench.upkeep.importing import import_files
from tests.published.test_integer_addition_report import add, asked, folder, keep, result
from tests.upkeep.exchange.made import result_file

__all__ = ["folder"]  # a fixture

EXAMPLES = "integer_addition_examples"


def examples(folder):
    """A results folder of the page's own examples: a model for each, which is asked the same sum."""
    rows = published_table(EXAMPLES).to_pylist()
    (problem,) = asked(folder, add(int(rows[0]["int1"]), int(rows[0]["int2"])))
    made = [result(problem, str(row["response"]), model=row["case"]) for row in rows]
    return keep(folder, *made), rows


@pytest.mark.long
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


def lines_of(folder):
    return {line.model: line for line in integer_addition_report_on(folder).lines}


def test_rates_are_of_recorded_results_and_of_all_tries(sums):
    lines = lines_of(sums)
    assert lines["m"].success_rate == lines["m"].success_rate_of_tries == 0.6
    assert (lines["none"].success_rate, lines["none"].success_rate_of_tries) == (None, 0)


def test_durations_are_median_mean_and_95th_percentile(sums):
    line = lines_of(sums)["m"]
    assert (line.latency_p50_s, line.latency_mean_s) == (3.0, 3.0)
    assert line.latency_p95_s == pytest.approx(4.8)


def test_what_became_of_the_tries_adds_up(folder):
    problems = asked(folder, *(add(1, n) for n in range(1, 6)))
    texts = ["2", "9", "none", "", None]
    made = [result(one, text) for one, text in zip(problems, texts, strict=True)]
    made[1] = result(problems[1], "9", finish_reason="length")
    line = lines_of(keep(folder, *made))["m"]
    found = {kind: count for kind, count in line.errors.items() if count}
    assert found == dict.fromkeys(("cut off", "not_a_number", "empty", "error"), 1)
    assert line.successes + sum(found.values()) == line.tries == 5


def test_reasoning_has_its_share_and_its_tokens(sums):
    text = integer_addition_report_on(sums).as_markdown()
    assert "| m | integer_addition | 1 | 20.00% | 40 |" in text


def test_size_carries_and_operands_have_rates_of_their_own(sums):
    line = lines_of(sums)["m"]
    bins = [
        {(size["first"], size["last"]): size["success_rate"] for size in sizes}
        for sizes in (line.by_length, line.by_carries, line.by_chain)
    ]
    assert bins == [
        {(1, 5): 0.5, (6, 10): 0.5, (11, 15): 1.0},
        {(0, 0): 1.0, (1, 2): 0.0, (3, 5): 1.0, (6, 9): 0.0},
        {(0, 0): 1.0, (1, 1): 0.5, (6, 9): 0.0},
    ]
    cells = {
        (cell["longer"], cell["shorter"]): cell["successes"] / cell["results"] for cell in line.by_operands
    }
    assert cells == {(1, 1): 0.5, (6, 1): 0.5, (11, 11): 1.0}


def test_it_has_no_pictures_and_an_error_names_what_there_is(sums, tmp_path):
    with pytest.raises(ConfigError, match=r"no pictures .* --markdown and --latex print its tables") as told:
        write_figures(sums, tmp_path / "out", "integer-addition")
    assert str(told.value).endswith("choose one of: error-map, llm-arithmetic, nupa.")
    assert not (tmp_path / "out").exists()


def test_an_imported_file_has_the_same_measures(tmp_path):
    file = tmp_path / "result_m_2026-03-01_22-15-40.json"
    file.write_text(json.dumps(result_file()))
    import_files("integer-addition", [file], tmp_path / "results")
    lines = {line.suite: line for line in integer_addition_report_on(tmp_path / "results").lines}
    line = lines["integer_addition"]
    assert (line.latency_p50_s, line.latency_mean_s, line.latency_p95_s) == (0.75, 0.75, 0.75)
    assert (line.tries, line.successes, line.errors["not_a_number"]) == (3, 1, 1)
    assert {(cell["longer"], cell["shorter"]) for cell in line.by_operands} == {(16, 1), (1, 1)}
    assert lines["string_reversal"].trials
