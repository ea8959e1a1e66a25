"""`report --style anatomy` over small folders: what is counted, examined and shown."""

import json
import random
import tracemalloc
from dataclasses import replace

import pyarrow as pa
import pytest

from asyncbench import sql
from asyncbench.analysis.anatomy import counts as rule
from asyncbench.analysis.anatomy.counts import (
    MOST_TEXT,
    OUTCOMES,
    ErrorFindings,
    WrongExample,
    examined_of,
    most_of_a_group,
)
from asyncbench.analysis.anatomy.numbers import CARRIES, carries_of
from asyncbench.analysis.cells import METRICS, add_known_costs, cells_in
from asyncbench.analysis.counting import counted
from asyncbench.analysis.curves import GROUP
from asyncbench.analysis.entrants import asked_in
from asyncbench.page.blocks import cost_block
from asyncbench.problems.making import generate
from asyncbench.problems.opening import open_set
from asyncbench.records import Condition, Reply, Usage
from asyncbench.reports.anatomy import UNLIKE, Worth, anatomy_of, best, frontier, worth_of
from asyncbench.reports.overview import overview_of
from asyncbench.reports.standings.report import standings_of
from asyncbench.reports.status.run_overview import run_overview_of
from asyncbench.stats.proportions import Proportion, wilson
from asyncbench.store.schema import CELL, ENTRANT, TRIALS
from asyncbench.suites.table import grade
from asyncbench.tables.numbers import percent
from asyncbench.tables.report import SIMULATED
from tests.analysis.views.made import views_of
from tests.page.made import result_of, trial_of
from tests.store import made

HOSTILE = "<script>alert()</script>\x1b[m|\u202e no idea"


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """A problem set: three tasks, five depths, four problems of each."""
    path = tmp_path_factory.mktemp("sets") / "made.parquet"
    generate("llm_arithmetic", path, seed=3, depths="2-6", trials=4, variants="int_add,int_sub,int_mul")
    return path, list(open_set(path).read())


def result(n, problem, text, *, model, usage=None, cost_usd=0.001, provider="openai"):
    trial = trial_of(n, problem, model=model, simulated=provider == "simulated")
    reply = None if text is None else Reply(text=text, usage=usage)
    return result_of(replace(trial, problem_set="made"), reply, cost_usd=cost_usd, at=1.0)


def folder_of(path, results, *, problems=None):
    made.results_folder(path, *results)
    if problems is not None:
        (path / "problems").mkdir(exist_ok=True)
        (path / "problems" / "made.parquet").write_bytes(problems.read_bytes())
    return path


def bad_answer(problem):
    """Off by one in sums, unread in differences, failed in products."""
    if problem.task == "int_add":
        return str(int(problem.expected) + 1)
    return HOSTILE if problem.task == "int_sub" else None


@pytest.fixture(scope="module")
def folder(problems, tmp_path_factory):
    """A model that is always right for a tenth of a cent, and one that never is for less."""
    path, those = problems
    thought = Usage(input_tokens=10, output_tokens=60, reasoning_tokens=50)
    results = [result(0, one, one.expected, model="good", usage=thought) for one in those]
    results += [result(0, one, bad_answer(one), model="bad", cost_usd=0.0004) for one in those]
    return folder_of(tmp_path_factory.mktemp("night") / "results", results, problems=path)


@pytest.fixture(scope="module")
def report(folder):
    return counted(folder, anatomy_of)


def of(report, model, task):
    return next(one for one in report.findings if (one.group[1], one.group[4]) == (model, task))


# ── what is counted ──────────────────────────────────────────────────────────────────────────


def test_wrong_and_unread_answers_are_examined_and_others_not(report):
    assert (report.wrong, report.examined) == (40, 40)
    assert of(report, "bad", "int_add").kinds == {"off_by_one": 20}
    assert (of(report, "bad", "int_sub").wrong, of(report, "bad", "int_sub").unread) == (0, 20)
    assert of(report, "bad", "int_sub").kinds == {"no_number": 20}
    assert not of(report, "bad", "int_mul").examined
    assert not of(report, "good", "int_add").examined


def test_wrong_places_are_shares_of_the_truths_that_reach_there(report):
    sums = of(report, "bad", "int_add")
    last, *others = sums.wrong_at(sums.from_right)
    assert (last.successes, last.trials) == (20, 20)
    assert others[1].trials == 20 - sum(n for digits, n in sums.reach.items() if digits < 3)
    assert sums.wrong_at(sums.from_left)[0].trials == 20


def test_carries_are_counted_for_every_trial_with_a_reply(report, problems):
    bins = of(report, "good", "int_add").by_carries
    assert sum(one.right.trials for one in bins) == 20
    assert all(one.right.share == 1 for one in bins)
    assert all(one.right.share == 0 for one in of(report, "bad", "int_sub").by_chain)
    without = sum(
        carries_of(one.task, one.operands) == (0, 0) for one in problems[1] if one.task == "int_add"
    )
    assert (bins[0].right.trials if bins[0].first == 0 else 0) == without
    assert of(report, "good", "int_mul").by_carries == ()


def test_a_size_of_carries_is_in_the_bin_that_starts_at_or_before_it(report):
    for one in of(report, "good", "int_add").by_carries:
        assert one.first in CARRIES
        assert one.last is None or one.last + 1 in CARRIES


def test_without_problem_files_the_digits_still_tell_the_kind(problems, tmp_path):
    sums = [one for one in problems[1] if one.task == "int_add"]
    found = counted(
        folder_of(tmp_path, [result(0, one, bad_answer(one), model="bad") for one in sums]), anatomy_of
    )
    (findings,) = found.findings
    assert findings.kinds == {"off_by_one": 20}
    assert findings.by_carries == ()


def test_a_reply_in_another_form_of_digits_is_looked_at_in_plain_ones(tmp_path):
    sums = tmp_path / "made.parquet"
    generate("nupa", sums, seed=3, per_length=3, tasks="add", representations="integer", lengths="5")
    reversed_digits = Condition(digits=("reversed",), described={"digits": ["reversed"]})
    results = []
    for one in open_set(sums).read():
        text = f"It is {one.expected[::-1]}"  # which the strict grader does not read
        made_so = result(0, one, text, model="bad")
        trial = replace(made_so.trial, condition=reversed_digits)
        results.append(replace(made_so, trial=trial, grades=grade(one, made_so.reply, "chat", ("reversed",))))
    found = counted(folder_of(tmp_path / "out", results, problems=sums), anatomy_of)
    (findings,) = found.findings
    assert (findings.unread, findings.flags["right_value"]) == (3, 3)


def test_a_folder_without_wrong_answers_says_so(problems, tmp_path):
    found = counted(
        folder_of(tmp_path, [result(0, one, one.expected, model="m") for one in problems[1]]), anatomy_of
    )
    assert "No answer is wrong." in found.as_text()


def test_a_folder_whose_trials_all_failed_does_not_say_that_all_is_well(problems, tmp_path):
    results = [result(0, one, None, model=model) for one in problems[1][:3] for model in ("a", "b")]
    shown = (found := counted(folder_of(tmp_path, results), anatomy_of)).as_text()
    assert "No answer is wrong." not in shown
    assert "No trial has a reply." in shown
    assert "LOST TRIALS: for 2 of 2 models, over 1 % of the trials failed or were truncated." in shown
    assert {one["best_for_its_cost"] for one in json.loads(found.as_json())["models"]} == {None}


def test_whose_trials_were_lost_is_told(report):
    assert (
        "LOST TRIALS: for 1 of 2 models, over 1 % of the trials failed or were truncated." in report.as_text()
    )
    assert "bad 0.0%-33.3% (20 failed, 33.3%)" in report.as_text()


def test_for_the_page_kinds_have_counts_and_at_most_three_examples(report):
    groups = json.loads(report.as_json())["groups"]
    kinds = {(one["task"], kind["kind"]): (one, kind) for one in groups for kind in one["kinds"]}
    assert set(kinds) == {("int_add", "off_by_one"), ("int_sub", "no_number")}
    one, kind = kinds["int_add", "off_by_one"]
    assert (kind["count"], one["examined"], len(kind["examples"])) == (20, 20, 3)
    assert int(kind["examples"][0]["answer"]) == int(kind["examples"][0]["expected"]) + 1
    assert len(kind["examples"][0]["operands"]) == 2


# ── which are examined ───────────────────────────────────────────────────────────────────────


def test_of_many_the_first_by_trial_id_of_each_group_are_examined():
    names = ["trial_id", *GROUP]
    row = ("r", "m", "plain", "s", "add", "", "integer")
    other = ("r", "m", "plain", "s", "sub", "", "integer")
    rows = [("c", *row), ("a", *row), ("d", *other), ("b", *row)]
    schema = pa.schema([field.with_nullable(True) for field in TRIALS])
    wrong = [dict(zip(names, values, strict=True)) | {"outcome": "wrong"} for values in rows]
    right = {**wrong[0], "trial_id": "0", "outcome": "correct"}
    with views_of(trials=pa.Table.from_pylist([*wrong, right], schema)) as views:
        views.keep("errors", OUTCOMES)
        found = examined_of(views, 2)
    assert sorted(row["trial_id"] for row in found) == ["a", "b", "d"]


def test_groups_share_what_is_examined_in_all():
    wrong, right = ErrorFindings(group=(), wrong=1), ErrorFindings(group=())
    found = [most_of_a_group([wrong] * groups + [right]) for groups in (0, 1, 160, 100_000)]
    assert found == [500, 500, 187, 20]


@pytest.mark.long
def test_replies_are_not_held_together(problems, tmp_path):
    long = "no idea " * 12_500
    those = [one for one in problems[1] if one.task != "int_mul"]
    folder = folder_of(tmp_path, [result(0, one, long, model=m) for one in those for m in "ab"])
    counted(folder, anatomy_of)  # what is imported and compiled is not what is measured
    tracemalloc.start()
    assert counted(folder, anatomy_of).examined == 2 * len(those)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2 * len(those) * len(long) / 4


def test_examples_are_the_first_by_trial_id_in_whatever_order_they_are_read():
    found = ErrorFindings(group=("r",) * len(GROUP))
    for n in (5, 3, 1, 4, 2):
        found.keep("empty", WrongExample(f"{n}", (), "1", None, ""))
    assert [one.trial_id for one in found.examples["empty"]] == ["1", "2", "3"]


def test_how_many_were_examined_and_by_what_rule_is_said(folder, monkeypatch):
    monkeypatch.setattr(rule, "MOST_OF_A_GROUP", 7)
    found = counted(folder, anatomy_of)
    assert found.examined == 14
    assert "14 of 40 wrong answers (or replies without one) were examined" in found.as_text()
    assert "a fixed random sample of 7 per model and task" in found.as_text()


# ── what right answers take ──────────────────────────────────────────────────────────────────


def test_a_right_answer_pays_for_the_wrong_ones(folder):
    good, bad = sorted(
        worth_of(sql(folder, "FROM cells").to_pylist(), ENTRANT),
        key=lambda one: one.accuracy.successes,
        reverse=True,
    )
    assert good.cost_per_correct_usd == pytest.approx(0.001)
    assert (bad.cost_per_correct_usd, bad.cost_per_trial_usd) == (None, pytest.approx(0.0004))
    assert [one.reasoning_tokens_per_trial for one in (good, bad)] == [50, None]
    assert good.output_tokens_per_trial == 60
    assert good.format_ok.share == 1
    assert bad.format_ok.trials == 40  # a call that failed has no form


@pytest.mark.long
def test_where_costs_are_unknown_a_right_answer_costs_at_least_what_is_known(problems, tmp_path):
    costs = [0.001, 0.001, None, None]
    results = [
        result(0, one, one.expected, model="m", cost_usd=cost)
        for one, cost in zip(problems[1], costs, strict=False)
    ]
    cells = sql(folder := folder_of(tmp_path, results), "FROM cells")
    (one,) = worth_of(counted(folder, lambda views: add_known_costs(views, cells_in(views), CELL)), ENTRANT)
    assert (one.accuracy.successes, one.all_priced) == (4, False)
    assert one.cost_per_correct_usd == pytest.approx(0.0005)
    assert one.cost_per_trial_usd == pytest.approx(0.001)  # a mean is that of trials whose cost is known
    sums = {
        name: sum(filter(None, cells[name].to_pylist()))
        for name in ("cost_usd", "priced_correct", "trials", "priced")
    }
    assert METRICS["cost_per_correct"].measure(sums).value == pytest.approx(1)  # of 1,000
    assert "≥ $0.0005" in counted(folder, anatomy_of).as_text(width=300)


@pytest.fixture
def asked_twice(problems, tmp_path):
    """Each addition asked twice, three in four right, with the same answer both times."""
    path, those = problems
    added = [one for one in those if one.task == "int_add"]
    results = [
        replace(one, trial=replace(one.trial, repeat=repeat))
        for n, problem in enumerate(added)
        for repeat in range(2)
        for one in [result(0, problem, bad_answer(problem) if n % 4 == 0 else problem.expected, model="a")]
    ]
    return folder_of(tmp_path, results, problems=path)


@pytest.mark.long
def test_a_problem_that_was_asked_again_counts_once_in_every_interval(asked_twice):
    found = counted(asked_twice, anatomy_of)
    once = Proportion(successes=15, trials=20).interval
    (line,) = counted(asked_twice, overview_of).suites
    assert line.accuracy_interval == once
    assert [one.accuracy.interval for one in (*found.worths, *found.by_asked)] == [once, once]
    (of_form,) = (one.format_ok for one in found.worths)
    assert of_form.trials == 40
    assert of_form.interval == wilson(of_form.successes / 40, 20)
    bins = found.findings[0].by_carries
    assert sum(one.right.trials for one in bins) == 40
    each = [one.right for one in bins]
    assert all(one.interval == wilson(one.successes / one.trials, one.trials / 2) for one in each)
    shown = percent(0.75, once)
    assert found.as_markdown().count(shown) == 2  # by task, and on the frontier
    assert shown in counted(asked_twice, standings_of).as_markdown()


def worth(name, right, cost, *, failed=0):
    return Worth(
        group=("r", name, "plain"),
        repeats=1.0,
        outcomes={"correct": right, "wrong": 100 - right - failed, "failed": failed},
        format_ok=Proportion(successes=0, trials=0),
        cost_usd=cost,
        all_priced=True,
        cost_per_correct_usd=None,
        cost_per_trial_usd=cost,
        reasoning_tokens_per_trial=None,
        output_tokens_per_trial=None,
    )


def test_nobody_on_the_frontier_is_beaten_for_less():
    those = [
        worth("cheap", 50, 1.0),
        worth("worse", 40, 2.0),
        worth("dear", 90, 9.0),
        worth("as good but dearer", 90, 10.0),
        worth("same price, worse", 80, 9.0),
        worth("unknown", 99, None),
    ]
    assert {model for _, model, _ in frontier(those, "cost_per_trial_usd")} == {"cheap", "dear"}
    assert frontier(those, "reasoning_tokens_per_trial") == set()


def test_the_best_are_so_among_those_who_were_asked_the_same():
    those = [
        worth("a", 50, 1.0),
        worth("b", 40, 2.0),
        worth("easy", 99, 0.1),
        worth("dead", 0, 0.0, failed=100),
    ]
    alike = [{("r", "a", "plain"), ("r", "b", "plain"), ("r", "dead", "plain")}, {("r", "easy", "plain")}]
    found = best(those, "cost_per_trial_usd", alike)
    assert found == {("r", "a", "plain"): True, ("r", "b", "plain"): False}


@pytest.mark.long
def test_where_not_all_were_asked_the_same_it_is_said(problems, folder, tmp_path):
    sums = [one for one in problems[1] if one.task == "int_add"]
    results = [result(0, one, one.expected, model="whole") for one in problems[1]]
    results += [result(0, one, one.expected, model="sums", cost_usd=0.00001) for one in sums]
    found = counted(folder_of(tmp_path, results), anatomy_of)
    assert UNLIKE in found.as_text(width=10_000)
    assert {one["best_for_its_cost"] for one in json.loads(found.as_json())["models"]} == {None}
    assert UNLIKE not in counted(folder, anatomy_of).as_text(width=10_000)


@pytest.mark.long
def test_of_models_asked_the_same_the_chart_and_the_table_call_the_same_the_best(problems, tmp_path):
    rng = random.Random(8)
    results = [
        result(0, one, one.expected if rng.random() < skill else "1", model=name, cost_usd=cost)
        for name, skill, cost in (
            *(("a", 0.9, 0.004), ("b", 0.3, 0.001), ("c", 0.6, 0.002), ("d", 0.2, 0.003)),
            *(("e", 1.0, 0.008), ("f", 0.9, 0.016), ("free", 0.0, 0.0)),
        )
        for one in problems[1]
    ]
    folder = folder_of(tmp_path, results)
    found = counted(folder, anatomy_of)
    drawn, asked = counted(folder, lambda views: (cost_block(views)["frontier_cost"], asked_in(views)))
    marked = {one["model"]: one["best_for_its_cost"] for one in json.loads(found.as_json())["models"]}
    assert marked == {asked.entrants[row["asked"]].model: row["front"] for row in drawn}
    assert {model for model, is_best in marked.items() if not is_best} == {"d", "f"}


@pytest.mark.long
def test_a_right_answer_costs_a_dash_where_none_is_right_and_is_unknown_where_no_cost_is(problems, tmp_path):
    results = [result(0, one, "1", model="wrong") for one in problems[1]]
    results += [result(0, one, one.expected, model="unpriced", cost_usd=None) for one in problems[1]]
    folder = folder_of(tmp_path, results)
    for shown in (counted(folder, one).as_markdown() for one in (anatomy_of, standings_of, run_overview_of)):
        assert set(each(shown, "wrong")) == {"-"}
        assert set(each(shown, "unpriced")) == {"unknown"}


def each(markdown, model):
    """What the tables of a report have as cost per correct answer of a model."""
    head: list[str] = []
    for line in markdown.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if line.startswith("###"):
            head = []
        elif not head:
            head = cells
        elif model in cells:
            yield from (cell for name, cell in zip(head, cells, strict=True) if "per correct" in name)


# ── how it is shown ──────────────────────────────────────────────────────────────────────────


def test_what_a_model_wrote_does_nothing(report):
    assert "\x1b[m" not in report.as_text(width=200)
    assert "\u202e" not in report.as_text(width=200)
    assert "<script>" not in report.as_markdown()


def test_long_replies_are_cut_in_examples(problems, tmp_path):
    sums = [one for one in problems[1] if one.task == "int_add"][:1]
    found = counted(
        folder_of(tmp_path, [result(0, one, "x" * 100_000, model="m") for one in sums]), anatomy_of
    )
    ((example,),) = found.findings[0].examples.values()
    assert len(example.reply) == MOST_TEXT


def test_simulated_results_are_marked(problems, tmp_path):
    results = [result(0, one, "1", model="m", provider="simulated") for one in problems[1][:3]]
    assert SIMULATED in counted(folder_of(tmp_path, results), anatomy_of).as_text()
