"""The tables that llm_arithmetic publishes: of its recorded replies, and rule by rule over made results."""

import json
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import fsum, inf

import pytest

from asyncbench import published_table
from asyncbench.errors import ConfigError
from asyncbench.published.llm_arithmetic.counts import RECORDED, TrialSums, merged, total
from asyncbench.published.llm_arithmetic.report import SWAPPED, llm_arithmetic_report_on
from asyncbench.published.llm_arithmetic.tables import (
    CARD_HEAD,
    absolute,
    number,
    overview,
    percent,
    tokens,
    usd,
)
from asyncbench.records import Condition, Problem, Reply, Usage
from asyncbench.store.catalog import read_trials
from asyncbench.suites.llm_arithmetic import draft_arithmetic
from asyncbench.tables.report import SIMULATED, Sheet
from tests.commands import asyncbench
from tests.published.made import closed
from tests.recorded import rows as corpus
from tests.store.made import results_folder

AS_PUBLISHED = (
    *("model", "trials", "correct_pct", "nan_pct", "dev_pct", "completion_tokens", "cost"),
    *("avg_error_dev", "avg_error_dev_and_correct"),
)
COST = AS_PUBLISHED.index("cost")


def result(
    n,
    problem,
    text,
    *,
    run="sweep",
    condition="plain",
    usage=None,
    finish_reason=None,
    cost_usd=0.0,
    price_source="sweep",
    **about,
):
    """One closed trial; text None: no reply came."""
    reply = None if text is None else Reply(text=text, usage=usage, finish_reason=finish_reason)
    return closed(
        problem,
        reply,
        trial_id=f"{n:032x}",
        run=run,
        condition=Condition(name=condition),
        cost_usd=cost_usd,
        price_source=price_source,
        **about,
    )


def problem(task="int_add", depth=5, lhs="1", rhs="1", expected="2"):
    return Problem(
        problem_id="0" * 32, **fields_of(draft_arithmetic(task, depth, lhs, rhs, expected=expected))
    )


def fields_of(record):
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def planned_runs(*conditions, **runs):
    """A manifest in which each run planned so many trials of int_add of each of its models and conditions."""

    def plan(n):
        return {name: {"llm_arithmetic": {"int_add": n}} for name in conditions or ["plain"]}

    return {
        "runs": {
            run: {"planned": {model: plan(n) for model, n in models.items()}} for run, models in runs.items()
        }
    }


def many(texts, **about):
    return [result(0, problem(), text, **about) for text in texts]


def labels(report):
    return [row.label for row in report.rows]


# ── the recorded replies ─────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def published(golden):
    """The published figures of each recorded run, in the order of the published table."""
    table = json.loads((golden / "llm_arithmetic" / "published_table.json").read_text("utf-8"))
    assert len(table["runs"]) == 26
    return sorted(table["runs"], key=lambda run: run["readme_rank"])


@pytest.fixture(scope="session")
def recorded(recorded_runs):
    """A results folder of all recorded replies."""
    return recorded_runs / "results"


def as_run(source_file):
    return source_file.removesuffix(".jsonl")


@pytest.fixture(scope="session")
def report(recorded):
    return llm_arithmetic_report_on(recorded)


@pytest.fixture(scope="session")
def text(report):
    """The report as it is printed."""
    return report.as_text()


def shown(report):
    """The overview's lines, as cells of text, by run."""
    lines = overview(report.rows, report.depths).rows
    return {row.run: line for row, line in zip(report.rows, lines, strict=True)}


def assert_same_line(line, expected):
    wanted = [expected[name] for name in AS_PUBLISHED]
    costs = [float(cells[COST].removeprefix("$")) for cells in (line, wanted)]
    assert costs[0] == pytest.approx(costs[1], abs=1.01e-4)  # sums of floats depend on their order
    assert [*line[:COST], *line[COST + 1 :]] == [*wanted[:COST], *wanted[COST + 1 :]]


def test_every_published_line_is_shown_cell_by_cell(report, published):
    lines = shown(report)
    assert len(lines) == len(published) == 26
    for run in published:
        assert_same_line(lines[as_run(run["source_file"])], run["published"])


def test_lines_stand_in_the_published_order(report, published):
    assert [row.run for row in report.rows] == [as_run(run["source_file"]) for run in published]


def assert_same_figures(figures, expected):
    """Compare with recorded figures: counts and rates exactly, sums of floats within rounding."""
    assert figures["trials"] == expected["total_trials"]
    rates = [figures[name] for name in ("accuracy", "nan_rate", "deviate_rate")]
    assert rates == pytest.approx(
        [expected[name] for name in ("accuracy", "nan_rate", "deviate_rate")], nan_ok=False
    )
    errors = [float(figures[name]) for name in ("avg_error_dev", "avg_error_dev_and_correct")]
    assert errors == pytest.approx([float(expected[name]) for name in ("avg_error", "general_avg_error")])
    assert (figures["cost_usd"] or 0.0) == pytest.approx(expected["total_cost"], abs=1e-4)


def by_run(report):
    return {row["run"]: row for row in json.loads(report.as_json())["rows"]}


def test_the_exact_figures_of_each_run_and_task_are_those_recorded(report, published):
    rows = by_run(report)
    for run in published:
        row = rows[as_run(run["source_file"])]
        assert_same_figures(row["total"], run["computed_min_depth_5"])
        assert row["total"]["input_tokens"] == run["computed_min_depth_5"]["total_prompt_tokens"]
        for task, expected in run["computed_per_variant_min_depth_5"].items():
            if expected["total_trials"]:
                assert_same_figures(row["tasks"][task], expected)


def test_the_least_depth_can_be_chosen(recorded, published):
    rows = by_run(llm_arithmetic_report_on(recorded, min_depth=1))
    for run in published:
        figures = rows[as_run(run["source_file"])]["total"]
        assert_same_figures(figures, run["computed_all_depths"])
        assert figures["output_tokens"] == run["computed_all_depths"]["total_completion_tokens"]


def test_counts_of_tasks_and_their_verdict_are_those_recorded(report, published):
    rows = by_run(report)
    for run in published:
        assert rows[as_run(run["source_file"])]["verification"] == run["verification"]


def test_the_table_of_june_2025_is_shown_by_the_grader_of_that_time(recorded, published):
    report = llm_arithmetic_report_on(recorded, grader="legacy")
    lines, rows, compared = shown(report), by_run(report), 0
    for run in published:
        if then := run.get("legacy_2025_06_30"):
            name = as_run(run["source_file"])
            assert_same_line(lines[name], then["published"] or then["computed_formatted"])
            assert_same_figures(rows[name]["all_depths"], then["computed_all_depths"])
            compared += 1
    assert compared == 17


EARLIER = {  # runs of the table of 2025-05-12 → what our aliases call them
    "gpt-4.1-nano-2025-04-14": "gpt-4.1-nano-2025-04-14_2025-05-11_16-04",
    "claude-3-7-sonnet-20250219-thinking4096": "claude-3-7-sonnet-20250219_2025-05-11_19-20",
    "grok-3-mini-beta-high": "xai_grok-3-mini-beta_2025-05-11_19-54",
}


@pytest.fixture(scope="session")
def earlier(recorded):
    """The tables of all depths by the grader of that time, by title."""
    found = llm_arithmetic_report_on(recorded, min_depth=2, grader="legacy")
    parts = {part.title: part for part in found.content() if isinstance(part, Sheet)}
    return {row.run: row for row in found.rows}, parts


def numbers(cells):
    """Figures without what the documents' tables were shorn of."""
    return [str(cell).strip("$%").replace(",", "") for cell in cells]


def assert_same_numbers(cells, printed):
    """Compare figures as they are written; dollars within a millionth: sums of floats depend on order."""
    ours, theirs = numbers(cells), [str(value) for value in printed.values()]
    dollars = [name == "cost_usd" for name in printed]
    assert [one for one, cost in zip(ours, dollars, strict=True) if not cost] == [
        one for one, cost in zip(theirs, dollars, strict=True) if not cost
    ]
    assert float(ours[dollars.index(True)]) == pytest.approx(float(printed["cost_usd"]), abs=1.01e-6)


@pytest.mark.long
def test_the_table_of_all_depths_is_shown_with_dates_and_absolute_errors(earlier):
    rows, parts = earlier
    sheet = parts["All depths, in the order of the runs. Avg Error is absolute, over Dev"]
    lines = {line[1]: line for line in sheet.rows}
    assert list(lines) == sorted(lines)
    compared = 0
    for printed in published_table("llm_arithmetic_2025-05-12_overview").to_pylist():
        if run := EARLIER.get(printed.pop("model")):
            line = lines[f"{rows[run].began:%Y-%m-%d_%H-%M}"]
            date = printed.pop("run_started")
            assert line[1] == date or "grok" in run  # of that one the table has the day it was continued
            printed.pop("row")
            assert_same_numbers(line[2:], printed)
            compared += 1
    assert compared == 3


CARD = {  # columns of a document's card → columns of ours
    **dict(zip(("trials", "correct_percent", "nan_percent", "deviate_percent"), CARD_HEAD[1:5], strict=True)),
    "prompt_tokens": "Prompt Tok.",
    "completion_tokens": "Comp. Tok.",
    "avg_abs_error_deviate": "Avg Error",
    "cost_usd": "Cost",
}


@pytest.mark.parametrize("table", ["cards", "variants"])
def test_cards_and_their_variants_are_those_of_the_earlier_document(earlier, table):
    rows, parts = earlier
    compared = 0
    for printed in published_table(f"llm_arithmetic_2025-05-12_{table}").to_pylist():
        if run := EARLIER.get(printed["model"]):
            row = rows[run]
            title = f"{row.label} (run {run}) @ {row.began:%Y-%m-%d_%H-%M}: all depths"
            line = next(line for line in parts[title].rows if line[0] == printed.get("task", "all"))
            known = {name: printed[name] for name in CARD if name in printed}
            assert_same_numbers([line[CARD_HEAD.index(CARD[name])] for name in known], known)
            compared += 1
    assert compared == (3 if table == "cards" else 24)


@pytest.mark.long
def test_format_adherence_is_the_share_of_replies_that_are_the_number_alone(golden, report):
    replies, bare = Counter[str](), Counter[str]()
    for row in corpus(golden):
        if row["depth"] >= 5 and not row["failed_to_get_reply"]:
            run = as_run(row["source_file"])
            replies[run] += 1
            bare[run] += bool(re.fullmatch(r"\s*[-+]?\d+(\.\d+)?\s*", row["raw_response"]))
    (sheet,) = (part for part in report.content() if isinstance(part, Sheet) and "Format %" in part.title)
    for row, line in zip(report.rows, sheet.rows, strict=True):
        assert line[1] == f"{replies[row.run]:,}"
        assert float(str(line[2])) == pytest.approx(100 * bare[row.run] / replies[row.run], abs=0.051)
    assert 0 < bare.total() < replies.total()


@pytest.mark.long
def test_incomplete_runs_are_left_out_of_the_overall_grid(report, text, published):
    _, others = merged(report.rows)
    assert {row.run for row in others} == {
        as_run(run["source_file"]) for run in published if not run["complete"]
    }
    assert "The overall grid leaves out rows that lack cells: o4-mini-2025-04-16-medium-1k (" in text


def test_rows_whose_recorded_cost_is_no_cost_are_named_under_the_table(text):
    (note,) = (line for line in text.splitlines() if line.startswith("Recorded at $0"))
    assert "claude-2.1" in note
    assert "magistral-small-2506@q6_k" in note
    assert "gpt-4.1-nano" not in note
    assert "Partly recorded at $0 (no price known then): qwen3.6-35b-a3b@q4_k_m" in text


# ── rows and their order ─────────────────────────────────────────────────────────────────────


def test_equal_accuracies_stand_in_the_order_of_the_manifest(tmp_path):
    runs = planned_runs(z={"b": 2, "a": 2}, y={"c": 2})["runs"]
    results = [
        *many(["2", "3"], run="y", model="c"),
        *many(["3", "2"], run="z", model="a"),
        *many(["2", "3"], run="z", model="b"),
    ]
    assert labels(llm_arithmetic_report_on(results_folder(tmp_path, *results, runs=runs))) == ["b", "a", "c"]


def test_an_incomplete_row_stands_last_however_good_it_is(tmp_path):
    results = [*many(["2", "2"], model="begun"), *many(["2", "3", "4"], model="done")]
    folder = results_folder(tmp_path, *results, **planned_runs(sweep={"begun": 3, "done": 3}))
    report = llm_arithmetic_report_on(folder)
    assert labels(report) == ["done", "begun"]
    assert "Incomplete (trials over all depths): begun 2 of 3." in report.as_text()


def test_without_a_plan_the_fullest_row_tells_what_is_complete(tmp_path):
    results = [*many(["2"], model="begun"), *many(["2", "3"], model="done")]
    report = llm_arithmetic_report_on(results_folder(tmp_path, *results, runs={}))
    assert [(row.label, row.complete) for row in report.rows] == [("done", True), ("begun", False)]


@pytest.mark.long
def test_dollars_add_up_as_by_fsum_whatever_cells_they_are_of(recorded):
    costs: dict[tuple[str, str], list[float]] = {}
    for row in read_trials(recorded, ["run", "task", "cost_usd"]).to_pylist():
        costs.setdefault((row["run"], row["task"]), []).append(row["cost_usd"])
    rows = {row.run: row.cells for row in llm_arithmetic_report_on(recorded).rows}
    assert len(costs) > len(rows) > 20
    for (run, task), usd_of in costs.items():
        assert float(total(rows[run], task=task).cost_usd) == fsum(usd_of), (run, task)


def test_trials_of_lesser_depth_count_for_completeness_alone(tmp_path):
    shallow = result(0, problem(depth=4), "2")
    folder = results_folder(tmp_path, shallow, *many(["3"]), **planned_runs(sweep={"m": 2}))
    (row,) = (report := llm_arithmetic_report_on(folder)).rows
    assert row.complete
    assert total(row.cells, depths=report.depths) == TrialSums(
        trials=1, deviate=1, rel_errors=0.5, abs_errors=Fraction(1), replies=1, bare=1, uncounted=1, priced=1
    )


def test_each_condition_is_a_row_and_has_its_own_plan(tmp_path):
    results = [*many(["2", "2"], condition="plain"), *many(["2"], condition="context-4k")]
    folder = results_folder(tmp_path, *results, **planned_runs("plain", "context-4k", sweep={"m": 2}))
    report = llm_arithmetic_report_on(folder)
    assert [(row.label, row.complete) for row in report.rows] == [
        ("m (plain)", True),
        ("m (context-4k)", False),
    ]


def test_one_condition_alone_is_not_named(tmp_path):
    report = llm_arithmetic_report_on(results_folder(tmp_path, *many(["2"], condition="context-4k")))
    assert labels(report) == ["m"]


def test_equal_rows_stand_in_the_order_of_the_sweep_s_conditions(tmp_path):
    results = [result(0, problem(), "2", condition=name) for name in ("brief", "plain", "added")]
    folder = results_folder(tmp_path, *results, **planned_runs("plain", "brief", sweep={"m": 1}))
    assert labels(llm_arithmetic_report_on(folder)) == ["m (plain)", "m (brief)", "m (added)"]


def test_a_plan_that_does_not_tell_conditions_apart_counts_as_none(tmp_path):
    before = {"sweep": {"planned": {"m": {"llm_arithmetic": {"int_add": 9}}}}}
    (row,) = llm_arithmetic_report_on(results_folder(tmp_path, *many(["2"]), runs=before)).rows
    assert row.planned is None


def test_equal_counts_short_of_the_plan_are_invalid(tmp_path):
    folder = results_folder(tmp_path, *many(["2"]), **planned_runs(sweep={"m": 2}))
    (row,) = llm_arithmetic_report_on(folder).rows
    assert not row.valid


def test_without_a_plan_equal_counts_are_valid(tmp_path):
    other = result(0, problem("int_sub", 5, "2", "1", "1"), "1")
    (row,) = llm_arithmetic_report_on(results_folder(tmp_path, other, *many(["2"]))).rows
    assert row.valid
    assert not replace(row, cells={**row.cells, ("int_mul", 5): TrialSums(trials=3)}).valid


# ── figures ──────────────────────────────────────────────────────────────────────────────────


def figures_of(report):
    return total(report.rows[0].cells, depths=report.depths)


def test_errors_are_averaged_over_deviate_and_over_all_that_was_read(tmp_path):
    figures = figures_of(llm_arithmetic_report_on(results_folder(tmp_path, *many(["2", "3", "4", "?"]))))
    assert (figures.correct, figures.deviate, figures.nan) == (1, 2, 1)
    assert figures.error_of_deviate == pytest.approx((0.5 + 1) / 2)
    assert figures.error_of_read == pytest.approx((0.5 + 1) / 3)


def test_an_infinite_error_makes_both_averages_infinite(tmp_path):
    report = llm_arithmetic_report_on(results_folder(tmp_path, *many(["2", "9" * 400])))
    assert overview(report.rows, report.depths).rows[0][-2:] == ("inf%", "inf%")
    assert json.loads(report.as_json())["rows"][0]["total"]["avg_error_dev"] == "inf"


def test_absolute_errors_are_added_up_exactly_whatever_their_length(tmp_path):
    long, longer = str(10**30 + 2), str(10**3999 + 5)
    (row,) = llm_arithmetic_report_on(results_folder(tmp_path, *many(["5", long, longer]))).rows
    errors = 3 + 10**30 + 10**3999 + 3
    assert total(row.cells).abs_errors == errors
    assert total(row.cells).abs_error_of_deviate == f"{errors // 3}.67"


def test_an_error_relative_to_nothing_counts_as_a_deviate_without_error(tmp_path):
    zero = problem("int_sub", 5, "7", "7", "0")
    figures = figures_of(llm_arithmetic_report_on(results_folder(tmp_path, result(0, zero, "3"))))
    assert (figures.deviate, figures.error_of_deviate) == (1, 0.0)


def test_the_two_rates_of_the_grids_are_those_of_the_classes(tmp_path):
    report = llm_arithmetic_report_on(results_folder(tmp_path, *many(["3", "3", "3", "?"])))
    assert "| int_add |  0 |  | 75 |  | 25 |" in report.as_markdown()
    assert SWAPPED in report.as_text()


def test_the_overall_grid_adds_up_the_rows_that_have_every_cell(tmp_path):
    deeper = result(0, problem(depth=6), "2", model="full")
    results = [deeper, *many(["2", "3"], model="full"), *many(["2"], model="short")]
    cells, others = merged(llm_arithmetic_report_on(results_folder(tmp_path, *results)).rows)
    assert {cell: figures.trials for cell, figures in cells.items()} == {("int_add", 5): 2, ("int_add", 6): 1}
    assert [row.label for row in others] == ["short"]


def test_a_missing_cell_is_a_dash(tmp_path):
    other = result(0, problem("int_sub", 6, "2", "1", "1"), "1")
    text = llm_arithmetic_report_on(results_folder(tmp_path, other, *many(["2"]))).as_markdown()
    assert "| int_add | 100 | - |  |  0 | - |  |  0 | - |" in text


@pytest.fixture
def others_problems(tmp_path):
    """A folder of a problem set that others made: a depth that is not told, and a task of their own."""
    untold = result(0, problem(depth=None), "3")
    theirs = [
        result(0, replace(problem(depth=depth), task=task), "2")
        for task, depth in [("zeta", 6), ("modulo", 6), ("int_sub", 6), ("int_add", 7)]
    ]
    return results_folder(tmp_path / "theirs", untold, *theirs, **planned_runs(sweep={"m": 5}))


def test_trials_of_unknown_depth_count_over_all_depths_alone(others_problems):
    (row,) = (report := llm_arithmetic_report_on(others_problems)).rows
    assert row.trials == 5
    assert row.counts["int_add"] == 2
    assert total(row.cells, depths=report.depths).trials == 4
    assert "1 trials have no known depth. Only figures over all depths count them." in report.as_text()
    assert "| Correct % | 6 | 7 | ? | Dev % |" in report.as_markdown()
    depths = [cell["depth"] for cell in json.loads(report.as_json())["rows"][0]["cells"]]
    assert depths == [7, None, 6, 6, 6]


def test_tasks_that_the_suite_does_not_know_stand_after_its_own(others_problems):
    report = llm_arithmetic_report_on(others_problems)
    blocks = {block.splitlines()[0]: block for block in report.as_markdown().split("### ")}
    heatmap = blocks["Correct % by model and task: depths 6-10"]
    assert "| Avg Acc | int_add | int_sub | modulo | zeta |" in heatmap
    for title in ("m: depth 5 and deeper", "m: Correct %, Dev %, NaN % by depth"):
        lines = [line.split("|")[1].strip() for line in blocks[title].splitlines() if line.startswith("|")]
        assert lines[-4:] == ["int_add", "int_sub", "modulo", "zeta"]


# ── notes and footnotes ──────────────────────────────────────────────────────────────────────


def test_what_became_of_the_trials_is_told_with_both_accuracies(tmp_path):
    cut = many(["it is"], finish_reason="length")
    report = llm_arithmetic_report_on(results_folder(tmp_path, *many(["2", "2", "3", " ", None]), *cut))
    assert (
        "6 trials at all depths: 1 failed, 1 empty replies, 1 truncated. "
        "Accuracy: 33.33% of all trials, 66.67% of the 3 answered ones."
    ) in report.as_text()


def test_the_grader_is_named_with_its_version(tmp_path):
    folder = results_folder(tmp_path, *many(["**2**"]))
    assert "Graders: llm_arithmetic by layered v3." in llm_arithmetic_report_on(folder).as_text()
    legacy = llm_arithmetic_report_on(folder, grader="legacy")
    assert "Graders: llm_arithmetic by legacy v1." in legacy.as_text()
    assert figures_of(legacy).nan == 1


def test_a_trial_that_the_grader_never_saw_counts_as_nan_and_is_told(tmp_path):
    (one,) = many(["2"])
    folder = results_folder(tmp_path, replace(one, grades=one.grades[:1]))
    report = llm_arithmetic_report_on(folder, grader="strict")
    assert figures_of(report).nan == 1
    assert "1 trials have no grade by strict and count as NaN." in report.as_text()


def test_simulated_results_say_so_in_every_form(tmp_path):
    report = llm_arithmetic_report_on(results_folder(tmp_path, *many(["2"], provider="simulated")))
    assert report.as_text().startswith(SIMULATED)
    assert report.as_markdown().startswith(f"**{SIMULATED}**")
    assert json.loads(report.as_json())["simulated"] is True


USED = Usage(input_tokens=10, output_tokens=1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("costs", "source", "note"),
    [
        pytest.param([None, None], None, "No price known, shown as $0: m.", id="no price"),
        pytest.param([0.0, 0.0], RECORDED, "Recorded at $0 (no price known): m.", id="recorded as free"),
        pytest.param(
            [0.0, 0.5],
            RECORDED,
            "Partly recorded at $0 (no price known then): m 1 of 2 trials.",
            id="partly free",
        ),
        pytest.param([None, 0.5], "sweep", "Partly priced: m 1 of 2 trials priced.", id="partly priced"),
    ],
)
def test_a_row_with_unknown_costs_has_a_footnote(tmp_path, costs, source, note):
    results = [one for cost in costs for one in many(["2"], cost_usd=cost, price_source=source, usage=USED)]
    report = llm_arithmetic_report_on(results_folder(tmp_path, *results))
    assert note in report.as_text()
    assert note in report.as_markdown()


@pytest.mark.parametrize(
    "about",
    [
        pytest.param({"cost_usd": 0.5, "usage": USED}, id="priced"),
        pytest.param(
            {"cost_usd": 0.0, "usage": USED, "price_source": "sweep"}, id="free by the sweep's price"
        ),
    ],
)
def test_a_row_with_known_costs_has_no_footnote(tmp_path, about):
    text = llm_arithmetic_report_on(results_folder(tmp_path, *many(["2"], **about))).as_text()
    assert "$0 (" not in text
    assert "rice" not in text


def test_unknown_cost_is_shown_as_published_but_is_null_in_json(tmp_path):
    report = llm_arithmetic_report_on(results_folder(tmp_path, *many(["2"], cost_usd=None)))
    assert overview(report.rows, report.depths).rows[0][COST] == "$0.0000"
    assert json.loads(report.as_json())["rows"][0]["total"]["cost_usd"] is None


def test_replies_without_token_counts_are_told(tmp_path):
    report = llm_arithmetic_report_on(results_folder(tmp_path, *many(["2"]), *many(["2"], usage=USED)))
    assert "Token counts unknown, left out of the sums: m 1 of 2 trials." in report.as_text()


# ── how it is written ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(percent(0.123456, 2), "12.35%", id="percent"),
        pytest.param(percent(0.027083, 4), "2.7083%", id="four decimals"),
        pytest.param(percent(None, 2), "-", id="of nothing"),
        pytest.param(percent(inf, 4), "inf%", id="infinite"),
        pytest.param(percent(13483322.062925, 4), "1348332206.2925%", id="ten digits once in percent"),
        pytest.param(percent(134833220.62925, 4), "1.3483e+10%", id="eleven digits once in percent"),
        pytest.param(number(9_999_999_999.4, 0), "9999999999", id="ten digits"),
        pytest.param(number(9_999_999_999.6, 0), "1.0000e+10", id="eleven digits once rounded"),
        pytest.param(number(-12_345_678_901, 0), "-1.2346e+10", id="eleven digits and a sign"),
        pytest.param(tokens(9_999_999_999), "9,999,999,999", id="ten digits of tokens"),
        pytest.param(tokens(12_345_678_901), "1.2346e+10", id="eleven digits of tokens"),
        pytest.param(absolute("317105073338485779164.96"), "317105073338485779164.96", id="absolute"),
        pytest.param(absolute("1" * 40 + ".00"), "1.1111e+39", id="a longer absolute error"),
        pytest.param(usd(1234.5), "$1234.5000", id="no comma in dollars"),
        pytest.param(usd(2e10), "$2.0000e+10", id="eleven digits of dollars"),
    ],
)
def test_numbers_are_written_as_published(text, shown):
    assert text == shown


def test_grids_stand_side_by_side_only_where_they_fit(tmp_path):
    results = [result(0, problem(depth=depth), "2") for depth in range(2, 11)]
    report = llm_arithmetic_report_on(results_folder(tmp_path, *results))
    assert "m: Correct %, Dev %, NaN % by depth" in report.as_text(width=200)
    narrow = report.as_text(width=60)
    assert all(f"m: {rate} by depth" in narrow for rate in ("Correct %", "Dev %", "NaN %"))


@pytest.mark.long
@pytest.mark.parametrize("width", [80, *(pytest.param(wide, marks=pytest.mark.long) for wide in (120, 200))])
def test_no_figure_is_broken_however_narrow_the_terminal_is(report, width):
    text = report.as_text(width=width)
    assert max(map(len, text.splitlines())) <= width
    figures = set(text.split())
    for line in overview(report.rows, report.depths).rows:
        assert {str(cell) for cell in line[1:]} <= figures


# ── the command ──────────────────────────────────────────────────────────────────────────────


def run(folder, *words):
    return asyncbench("report", folder, *words)


@pytest.fixture
def half_right(tmp_path):
    return results_folder(tmp_path / "results", *many(["2", "3"]), **planned_runs(sweep={"m": 2}))


@pytest.mark.long
def test_the_command_shows_text_markdown_and_json(half_right):
    style = ("--style", "llm-arithmetic")
    assert "Avg Error" in run(half_right, *style).stdout
    assert "| Model | Trials | Correct % |" in run(half_right, *style, "--markdown").stdout
    shallow = run(half_right, *style, "--min-depth", "6", "--grader", "strict", "--json")
    said = json.loads(shallow.stdout)
    assert (said["min_depth"], said["grader"], said["rows"][0]["total"]["trials"]) == (6, "strict", 0)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        pytest.param(("--style", "none"), "providers, llm-arithmetic, integer-addition, nupa", id="style"),
        pytest.param(("--min-depth", "3"), "cannot be used with", id="depth without style"),
        pytest.param(
            ("--style", "integer-addition", "--grader", "legacy"),
            "cannot be used with",
            id="grader of another style",
        ),
        pytest.param(
            ("--style", "llm-arithmetic", "--grader", "lenient"),
            "it has: layered, legacy, strict",
            id="grader",
        ),
    ],
)
def test_a_slip_is_told_with_the_way_out(half_right, words, complaint):
    done = run(half_right, *words)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_a_folder_without_trials_of_the_suite_is_refused(tmp_path):
    other = replace(problem(), suite="integer_addition", task="integer_addition")
    with pytest.raises(ConfigError, match="has no trials of llm_arithmetic"):
        llm_arithmetic_report_on(results_folder(tmp_path, result(0, other, "2")))
