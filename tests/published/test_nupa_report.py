"""The report on NUPA, over results folders made by hand."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from asyncbench import report
from asyncbench.analysis.counting import counted
from asyncbench.errors import ConfigError
from asyncbench.page.blocks import BLOCKS
from asyncbench.problems.schema import identified
from asyncbench.published.nupa.counts import TaskLine
from asyncbench.published.nupa.report import nupa_report_on
from asyncbench.records import Condition, Problem, Reply, Result
from asyncbench.store.folder import Store
from asyncbench.suites.nupa.generation import draft_nupa
from asyncbench.suites.nupa.tasks import TASKS
from asyncbench.tables.report import SIMULATED
from tests.published.made import PLAIN, closed
from tests.store import made
from tests.suites.nupa.drafts import drafts_of

SUM = "add_Integer_Integer_Integer"


def problems(name: str, lengths: Mapping[int, int]) -> list[Problem]:
    """So many problems of each length."""
    cells = ((drafts_of(TASKS[name], length, seed=1), count) for length, count in lengths.items())
    return list(identified(one for cell, count in cells for one, _ in zip(cell, range(count), strict=False)))


def result(
    problem: Problem,
    text: str | None,
    *,
    model: str = "m",
    condition: Condition = PLAIN,
    provider: str = "openai",
) -> Result:
    """One closed trial; text None: no reply came."""
    reply = None if text is None else Reply(text=text, finish_reason="stop")
    return closed(
        problem,
        reply,
        trial_id=f"{model} {condition.name} {problem.problem_id}",
        model=model,
        provider=provider,
        condition=condition,
        latency_s=1.0,
    )


keep = made.results_folder


def right(problem: Problem) -> str:
    return f"The answer is {problem.expected}"


def line_of(folder: Path) -> TaskLine:
    (line,) = nupa_report_on(folder).lines
    return line


def test_a_range_is_a_mean_over_its_answers_and_failed_calls_are_none(tmp_path):
    made = problems(SUM, {3: 2, 5: 4, 21: 0})
    texts = [right(made[0]), None, *(right(one) for one in made[2:5]), "The answer is 1"]
    line = line_of(keep(tmp_path, *map(result, made, texts)))
    exact = line.by_grader["strict"]["exact_match"]
    assert (line.trials, line.failed, line.answers) == (6, 1, 5)
    assert exact.ranges == {
        "S": 1,
        "M": pytest.approx(3 / 4),
        "L": None,
        "XL": None,
        "in_domain": pytest.approx(4 / 5),
        "out_domain": None,
    }
    assert exact.mean == pytest.approx(4 / 5)


def test_digits_and_lengths_are_added_up_exactly(tmp_path):
    ten = [draft_nupa(TASKS[SUM], (str(100 + i), "899")) for i in range(10)]  # 999, 1000, 1001 …
    made = list(identified(ten))
    texts = [f"The answer is {one.expected[:-1]}" for one in made]
    line = line_of(keep(tmp_path, *map(result, made, texts)))
    strict = line.by_grader["strict"]
    right_digits = [
        sum(a == b for a, b in zip(one.expected[-2::-1], one.expected[::-1], strict=False)) for one in made
    ]
    shares = [right / len(one.expected) for right, one in zip(right_digits, made, strict=True)]
    assert float(strict["digit_match"].mean or 0) == pytest.approx(sum(shares) / 10, rel=1e-12)
    assert strict["dlength"].mean == strict["dlength_total"].mean == 1
    assert strict["dlength"].digits is not None
    assert (strict["dlength"].digits.well_learned, strict["dlength"].digits.preserving) == (
        0,
        3,
    )


def test_nine_of_ten_are_well_learned_and_a_gap_shows_in_the_brackets(tmp_path):
    made = problems(SUM, {3: 10, 4: 10, 5: 10})
    wrong = {0, 10, 11}  # one of length 3, two of length 4
    texts = ["0" if i in wrong else right(one) for i, one in enumerate(made)]
    folder = keep(tmp_path, *map(result, made, texts))
    held = line_of(folder).by_grader["strict"]["exact_match"].digits
    assert held is not None
    assert (held.well_learned, held.well_learned_contiguous) == (5, 3)
    shown = nupa_report_on(folder).as_text()
    assert "5 (3)" in shown


def test_lengths_beyond_the_class_count_in_no_range(tmp_path):
    (made,) = identified([draft_nupa(TASKS["to_float_Fraction_none_Float"], ("1" * 21 + "/4",))])
    line = line_of(keep(tmp_path, result(made, right(made))))
    exact = line.by_grader["strict"]["exact_match"]
    assert made.length == 21
    assert set(exact.ranges.values()) == {None}
    assert exact.mean == 1


def test_replies_in_another_form_are_marked_where_search_reads_more(tmp_path):
    made = problems(SUM, {3: 4})
    texts = [right(made[0]), *(f"**{one.expected}**" for one in made[1:])]
    report = nupa_report_on(keep(tmp_path, *map(result, made, texts)))
    assert report.lines[0].other_form
    assert "100.0%!" in report.as_text()
    assert "differ by more than a point" in report.as_text()


def test_every_model_and_condition_has_its_own_lines_in_the_order_of_the_paper(tmp_path):
    sums, digits = problems(SUM, {3: 1}), problems("get_digit_Float_int_int", {3: 1})
    five = Condition(name="5-shot", shots=5)
    results = [
        result(one, right(one), model=model, condition=condition)
        for model in ("a", "b")
        for condition in (Condition(), five)
        for one in (*digits, *sums)
    ]
    report = nupa_report_on(keep(tmp_path, *results))
    assert [(line.model, line.condition, line.task.task) for line in report.lines] == [
        (model, condition, task)
        for model in ("a", "b")
        for condition in ("5-shot", "plain")
        for task in ("add", "get_digit")
    ]
    for shown in (report.as_text(), report.as_markdown()):
        assert "Exact match by task and model" in shown
        assert "get_digit, float" in shown
        assert "a (5-shot): exact match by task and range of lengths" in shown


def test_the_style_of_a_trial_decides_how_it_was_read(tmp_path):
    made = problems(SUM, {3: 1})
    rules = Condition(name="rules", style="rules")
    report = nupa_report_on(
        keep(tmp_path, result(made[0], f"1\nSo the answer is {made[0].expected}", condition=rules))
    )
    assert report.lines[0].style == "rules"
    assert report.lines[0].by_grader["strict"]["exact_match"].mean == 1


def test_json_holds_all_figures_with_nulls_where_nothing_is_known(tmp_path):
    made = problems(SUM, {3: 2})
    folder = keep(
        tmp_path,
        result(made[0], right(made[0]), provider="simulated"),
        result(made[1], "", provider="simulated"),
        runs={"night": {"planned": {"m": {"plain": {"nupa": {"add": 40}}}}}},
    )
    report = nupa_report_on(folder)
    said = json.loads(report.as_json())
    (line,), (model,) = said["lines"], said["models"]
    assert (said["simulated"], said["empty"]) == (True, 1)
    assert (model["planned"], model["trials"], model["tasks"]) == (40, 2, 1)
    assert model["mean_over_tasks"]["strict"]["exact_match"]["S"] == 0.5
    assert line["task_name"] == SUM
    assert line["strict"]["exact_match"]["XL"] is None
    assert line["strict"]["by_length"][0]["range"] == "S"
    assert {"well_learned", "preserving_contiguous"} <= line["search"]["digit_match"].keys()
    assert "Not finished: m 2 of 40 trials." in report.as_text()
    assert SIMULATED in report.as_text()


def test_a_folder_without_nupa_is_refused(tmp_path):
    Store.open(tmp_path, sweep="night").close()
    with pytest.raises(ConfigError, match=r"has no trials yet\. Run its sweep first\."):
        nupa_report_on(tmp_path)


def test_the_metrics_of_all_reports_and_of_the_page_are_the_papers(tmp_path):
    """A failed trial is no answer; digit match is a mean over answers, whatever their lengths."""
    asked = problems(SUM, {3: 4, 18: 4})
    texts = [None, "so what?", "The answer is 7", *map(right, asked[3:])]
    folder = keep(tmp_path, *map(result, asked, texts))
    of = line_of(folder).by_grader["strict"]
    means = {name: float(of[name].mean or 0) for name in ("exact_match", "digit_match", "dlength")}
    assert means["exact_match"] == 5 / 7
    for metric, mean in means.items():
        (square,) = json.loads(report(folder, "heatmap", metric=metric).as_json())["tasks"]
        assert square["value"] == pytest.approx(mean)
    assert "dlength: digits too many or too few." in report(folder, "heatmap", metric="dlength").as_text()
    blocks = counted(
        folder, lambda views: {name: BLOCKS[name](views) for name in ("head", "heat", "published")}
    )
    (row,) = blocks["heat"]["rows"]
    for metric, mean in means.items():
        assert blocks["head"]["metrics"][metric]["log"] == (metric == "dlength")
        assert row["values"][metric][0] == pytest.approx(mean)
    (tables,) = blocks["published"]["tables"]
    titles = [sheet["title"] for sheet in tables["sheets"]]
    assert "Well-learned / preserved digits by dlength, beside the published ones" in titles
    (digits,) = (sheet["rows"] for sheet in tables["sheets"] if "exact match, beside" in sheet["title"])
    assert digits[0][:3] == ["add, integer", "18 / 18", "5 / 20"]
    assert "Table 9 of Number Cookbook" in " ".join(tables["below"])


def test_where_no_benchmark_prints_figures_the_page_has_no_tables_of_any(tmp_path):
    folder = keep(tmp_path, made.result(made.trial(0, suite="llm_arithmetic"), made.reply(0)))
    assert counted(folder, BLOCKS["published"]) == {"tables": []}


@pytest.mark.parametrize("metric", ["exact", "accuracy "])
def test_a_metric_that_there_is_not_is_refused_with_all_that_there_are(tmp_path, metric):
    with pytest.raises(ConfigError, match=r"Choose one of: accuracy, .*digit_match"):
        report(
            keep(tmp_path, made.result(made.trial(0, suite="llm_arithmetic"), made.reply(0))),
            "heatmap",
            metric=metric,
        )
