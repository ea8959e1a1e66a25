"""Rows of times, costs and errors: counted by hand, and the same as `sql` and the reports say."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

import asyncbench as ab
from asyncbench.analysis.anatomy.counts import ErrorFindings
from asyncbench.analysis.counting import counted
from asyncbench.analysis.entrants import Asked, NamedEntrant, NamedKind, asked_in, kind_of
from asyncbench.errors import ErrorKind
from asyncbench.page.blocks import cost_block, time_block
from asyncbench.page.charts import errors as error_rows, frontier, naming, times as time_rows
from asyncbench.page.charts.catalogue import spec_of
from asyncbench.page.charts.errors import error_kind_rows, outcome_rows, place_rows
from asyncbench.records import Condition, Ended, Reply, Usage
from asyncbench.reports.cost.counts import spending_by_entrant
from asyncbench.reports.cost.report import cost_report_of
from asyncbench.reports.quota import quota_of
from asyncbench.store.folder import Store
from tests.analysis.results.made_cells import cell, marked
from tests.reports import answered
from tests.store import made


def asked_of(cells):
    """Who was asked what in cells, in their order, and the cells with their places."""
    entrants = dict.fromkeys((one["run"], one["model"], one["condition"]) for one in cells)
    about: dict[str, Any] = {"folder": "", "effort": None, "style": None, "simulated": False, "trials": 1}
    kinds = dict.fromkeys(map(kind_of, cells))
    asked = Asked(
        entrants=tuple(
            NamedEntrant(run=run, model=model, condition=condition, name=model, short=model, **about)
            for run, model, condition in entrants
        ),
        kinds=tuple(
            NamedKind(suite=suite, task=task, variant=variant, representation=form, called=task)
            for suite, task, variant, form in kinds
        ),
    )
    entrant_places, kind_places = asked.entrant_places, asked.kind_places
    placed = [
        one
        | {
            "asked": entrant_places[one["run"], one["model"], one["condition"]],
            "kind": kind_places[kind_of(one)],
        }
        for one in cells
    ]
    return placed, asked


def cost_rows(cells):
    """The rows of the frontier, by model."""
    placed, asked = asked_of(cells)
    return {asked.entrants[row["asked"]].model: row for row in frontier.frontier_cost(placed, asked)}


def cost_note(cells):
    placed, asked = asked_of(cells)
    return frontier.frontier_note(placed, asked, "cost")


# ── frontiers ────────────────────────────────────────────────────────────────────────────────


def test_the_frontier_is_whom_nobody_beats():
    found = cost_rows(
        [
            marked("cheap", correct=5, trials=10, cost_usd=0.01, priced=10),
            marked("worse", correct=4, trials=10, cost_usd=0.02, priced=10),
            marked("best", correct=9, trials=10, cost_usd=0.02, priced=10),
            marked("dear", correct=9, trials=10, cost_usd=0.5, priced=10),
            marked("unpriced", correct=10, trials=10),
        ]
    )
    front = {"cheap": True, "worse": False, "best": True, "dear": False}
    assert {model: row["front"] for model, row in found.items()} == front
    assert found["cheap"]["x"] == found["cheap"]["cost"] == pytest.approx(1.0)


def priced(model, task, correct, *, suite="nupa", cost=0.01, **about):
    spent = {"trials": 10, "cost_usd": cost, "priced": 10, "task": task, "suite": suite}
    return marked(model, **spent, correct=correct, **about)


def test_a_frontier_compares_models_over_what_all_were_asked():
    cells = [
        priced("both", "easy", 9),
        priced("both", "hard", 1),
        priced("one", "easy", 8, cost=0.02),
        priced("unpriced", "other", 5, cost=None) | {"priced": 0},
    ]
    found = {model: (row["value"], row["trials"], row["front"]) for model, row in cost_rows(cells).items()}
    assert found == {"both": (0.9, 10, True), "one": (0.8, 10, False)}
    assert cost_note(cells) == "On the 1 of 2 kinds of questions that all were asked (nupa: easy)"
    assert cost_note(cells[:2]) is None


def test_where_nothing_was_asked_of_all_a_frontier_says_so():
    cells = [priced("a", "easy", 9), priced("b", "hard", 1)]
    assert cost_rows(cells) == {}
    assert cost_note(cells) == frontier.UNLIKE


def test_who_was_asked_little_does_not_narrow_a_frontier_to_that():
    tasks = ("a", "b", "c", "d", "e")
    cells = [priced(model, task, 9) for model in ("one", "two") for task in tasks]
    cells += [priced("short", "a", 10)]
    assert {model: row["trials"] for model, row in cost_rows(cells).items()} == {"one": 50, "two": 50}
    assert cost_note(cells) == "On all 5 kinds of questions; without short, asked less than half of them"
    cells += [priced("most", task, 9) for task in tasks[:4]]
    assert cost_note(cells) == (
        "On the 4 of 5 kinds of questions that all were asked (nupa); "
        "without short, asked less than half of them"
    )


def test_reasoning_is_a_mean_of_the_trials_that_tell_it_and_nothing_where_nobody_reasoned():
    cells = [marked(correct=1, trials=4, reasoning_tokens=n, reasoning_known=3) for n in (0, 300)]
    assert frontier.frontier_reasoning(*asked_of(cells[:1])) == []
    (row,) = frontier.frontier_reasoning(*asked_of([cells[1], marked("n", correct=1, trials=4)]))
    assert row["x"] == 100


@pytest.mark.parametrize(("column", "width"), frontier.WIDTHS.items())
@pytest.mark.parametrize("better", [0, 1], ids=["one is ahead", "all are on the frontier"])
def test_whom_nobody_beats_has_a_name_and_no_name_stands_on_another(column, width, better):
    correct = [50 + (n if better else n % 7) for n in range(26)]
    cells = [
        marked(f"a-model-of-some-length-{n:02d}", correct=right, trials=100, cost_usd=1 + n / 9, priced=100)
        for n, right in enumerate(correct)
    ]
    found = cost_rows(cells)
    named = {model: row for model, row in found.items() if row[column]}
    assert {model for model, row in found.items() if row["front"]} <= named.keys()
    assert len(named) == 26 if better else len(named) < 26
    spots = dict(zip(found, frontier._spots([*found.values()], "log", width), strict=True))
    boxes = [
        naming.box_of(spots[model], row[column], naming.LETTER * len(model)) for model, row in named.items()
    ]
    assert not any(one.meets(other) for one, other in itertools.combinations(boxes, 2))


@pytest.mark.parametrize("chart", ["frontier_cost", "frontier_reasoning"])
def test_each_point_of_a_printed_frontier_has_its_name_or_a_number_of_the_key(chart):
    points = [(1 + n // 4, 0.5 + n % 4 / 100, n == 0) for n in range(40)]
    rows = [
        {"model": f"model-of-a-family-{n:02}", "x": x, "value": y, "low": y, "high": y, "front": front}
        for n, (x, y, front) in enumerate(points)
    ]
    labelled = frontier.label_points(rows, chart, 300)
    named = [row["model"] for row in labelled if "key" not in row]
    keyed = {row["model"]: row["key"] for row in labelled if "key" in row}
    assert {*named, *(key.partition(" ")[2] for key in keyed.values())} == {row["model"] for row in rows}
    assert {*keyed} == {str(n) for n in range(1, len(keyed) + 1)}
    assert named
    assert keyed


def test_who_never_replied_is_on_no_frontier():
    silent = cell("silent", task="easy", suite="nupa", trials=3, failed=3, cost_usd=0.0, priced=3)
    assert [*cost_rows([priced("a", "easy", 9), silent])] == ["a"]
    assert cost_note([silent]) is None


def test_what_is_free_has_no_place_on_a_scale_of_logs_and_no_line_to_it():
    cells = [
        marked(name, correct=5, trials=10, cost_usd=usd, priced=10) for name, usd in (("a", 0.03), ("b", 0.0))
    ]
    assert {name: (row["cost"], row["x"]) for name, row in cost_rows(cells).items()} == {
        "a": (pytest.approx(3.0), pytest.approx(3.0)),
        "b": (0.0, None),
    }
    line, *_ = spec_of("frontier_cost")["layer"]
    assert {"filter": "isValid(datum.x)"} in line["transform"]


def test_three_repeats_make_no_interval_narrower_than_one():
    once, often = (
        cost_rows([marked(correct=18 * n, trials=20 * n, independent=20.0, cost_usd=n, priced=20 * n)])["m"]
        for n in (1, 3)
    )
    ends = ("value", "low", "high")
    assert [once[end] for end in ends] == pytest.approx([often[end] for end in ends])


# ── outcomes and errors ──────────────────────────────────────────────────────────────────────


def findings(model, *, places=(), reach=(), kinds=()):
    found = ErrorFindings(group=("night", model, "plain", "s", "t", "", "integer"), wrong=1)
    found.reach.update(dict(reach))
    found.from_left.update(dict(places))
    found.from_right.update(dict(places))
    found.kinds.update(dict(kinds))
    return found


def asked_with(*models):
    return asked_of([cell(name, suite="s", task="t", representation="integer") for name in models])[1]


def test_digit_errors_are_of_the_answers_that_have_such_a_digit():
    found = place_rows([findings("m", places={1: 4, 2: 3}, reach={1: 3, 2: 8, 3: 7})], asked_with("m"))
    assert [(row["end"], row["position"], row["errors"], row["answers"]) for row in found] == [
        (end, *row) for end in ("first", "last") for row in ((1, 4, 18), (2, 3, 15))
    ]  # seven have a third digit, which is too few
    assert all(row["low"] < row["value"] == row["errors"] / row["answers"] < row["high"] for row in found)


def test_kinds_are_shares_of_examined_answers_and_rare_ones_go_together():
    kinds = {f"kind-{n:02d}": 20 - n for n in range(14)}
    both = [findings("m", kinds=kinds), findings("newer", kinds={"kind-00": 1})]
    by_entrant, by_kind = error_kind_rows(both, asked_with("m", "silent"))
    assert [row["error"] for row in by_entrant] == [*list(kinds)[:12], error_rows.OTHERS]
    assert by_entrant[-1]["wrong"] == 8 + 7
    assert sum(row["value"] for row in by_entrant) == pytest.approx(1)
    assert [row | {"kind": None} for row in by_kind] == by_entrant
    assert {(row["asked"], row["kind"]) for row in by_kind} == {(0, 0)}


@pytest.mark.long
def test_outcomes_are_those_that_sql_counts_the_most_accurate_first(tmp_path):
    asked = [answered.Asked(model=model, outcomes=marks) for model, marks in (("a", "+-x"), ("b", "++?t"))]
    folder = answered.folder_of(tmp_path / "f", asked)
    found, models = counted(folder, lambda views: (outcome_rows(views), "ab"))
    rows = {(models[row["asked"]], row["outcome"]): row["trials"] for row in found}
    query = "SELECT model, outcome, count(*) AS n FROM trials GROUP BY ALL"
    assert rows == {(row["model"], row["outcome"]): row["n"] for row in ab.sql(folder, query).to_pylist()}
    assert [row["asked"] for row in found] == [1, 1, 1, 0, 0, 0]
    assert sum(row["share"] for row in found) == pytest.approx(2)


# ── times, limits, costs ─────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Two models, one under two conditions, for 40 seconds; every seventh call is refused first."""
    folder = tmp_path_factory.mktemp("measures") / "night"
    with Store.open(folder, sweep="night") as store:
        for n in range(80):
            model = ("a", "b", "b", "c")[n % 4]
            trial = replace(
                made.trial(n, alias=model), condition=Condition(name="shots" if n % 4 == 2 else "plain")
            )
            usage = Usage(input_tokens=20, output_tokens=9)
            reply = Reply(text=str(100 + n), usage=usage, ttft_s=0.1 if model == "a" else None)
            for event in events(trial, reply, at=made.AT + n / 2, latency_s=1 + n / 100, again=n % 7 == 0):
                store.keep(event)
        for n in range(4):
            store.keep(replace(made.minute("a"), started_at=made.AT + 60 * n))
        store.write_manifest({"runs": {"night": {"planned": {}}}})
    return folder


def events(trial, reply, *, at, latency_s, again):
    ended = made.ended(trial, reply, cost_usd=0.25)
    about = {"started_at": at, "latency_s": latency_s, "ttft_s": reply.ttft_s}
    if again:
        refused = replace(ended.attempt, status=ErrorKind.RATE_LIMITED, cost_usd=None, usage=None, **about)
        yield Ended(attempt=refused, reply=None)
    yield replace(ended, attempt=replace(ended.attempt, attempt=1 + again, **about))
    yield replace(made.result(trial, reply, cost_usd=0.25), latency_s=latency_s, ttft_s=reply.ttft_s)


def rows_on(folder, rows_of):
    found, asked = counted(folder, lambda views: (list(rows_of(views, asked_in(views))), asked_in(views)))
    return [(asked.entrants[row["asked"]].name, row) for row in found]


@pytest.mark.long
def test_percentiles_of_calls_are_those_of_the_view_latency(night):
    found = {(name, row["quantity"]): row for name, row in rows_on(night, time_rows.times_rows)}
    assert [name for name, quantity in found if quantity == "latency"] == ["a", "b (plain)", "b (shots)", "c"]
    assert [name for name, quantity in found if quantity == "TTFT"] == ["a"]
    (view,) = ab.sql(night, "FROM latency WHERE model = 'c'").to_pylist()
    row = found["c", "latency"]
    assert [row[f"p{n}"] for n in (50, 90, 95, 99)] == [view[f"latency_p{n}_s"] for n in (50, 90, 95, 99)]
    assert row["calls"] == row["answered"] == view["answered"] == 20


@pytest.mark.long
def test_a_run_of_forty_seconds_is_drawn_by_the_second_as_the_view_minutes_has_it(night):
    found = rows_on(night, time_rows.minute_rows)
    assert {row["seconds"] for _, row in found} == {1.0}
    views = ab.sql(night, "SELECT *, epoch_ms(began) AS at FROM minutes WHERE model = 'a'").to_pylist()
    assert [(row["at"], row["calls"], row["p50_s"]) for name, row in found if name == "a"] == [
        (row["at"], row["calls"], row["latency_p50_s"]) for row in views
    ]
    row = found[0][1]
    assert (row["calls_per_minute"], row["tokens_per_minute"]) == (60.0, 540.0)
    failed = rows_on(night, time_rows.failure_rows)
    assert sum(row["calls"] for _, row in failed) == 12
    assert {row["status"] for _, row in failed} == {"rate_limited"}


def test_lines_over_time_end_where_nothing_ran_for_a_while():
    assert time_rows._stretches([(0, 1.0), (1000, 1.0), (5000, 1.0)]) == {0: 0, 1000: 0, 5000: 1}
    for chart in ("latency", "throughput", "tokens", "quota"):
        lines = [one for one in spec_of(chart)["spec"]["layer"] if one["mark"]["type"] in ("line", "area")]
        assert lines
        assert all({"field": "part", "type": "nominal"} in one["encoding"]["detail"] for one in lines)


def test_of_two_points_nothing_is_drawn_and_the_page_says_so(tmp_path):
    folder = answered.folder_of(tmp_path / "f", [answered.Asked(model="a", outcomes="++")])
    block = counted(folder, time_block)
    assert block["minutes"] == block["failures"] == block["quota"] == {"columns": {}}
    assert [row["calls"] for row in block["times"]] == [2, 2]
    assert "The calls were made in too short a time for a chart." in block["notes"]


def test_limits_are_told_with_what_was_used_of_them(night):
    ((_, first), *others) = rows_on(night, time_rows.limit_rows)
    assert len(others) == 3
    told = {name: first[name] for name in ("lane", "limit", "seconds", "per_minute", "refused")}
    assert told == {"lane": "a", "limit": "requests", "seconds": 60.0, "per_minute": 600.0, "refused": 1}
    report = counted(night, quota_of)
    assert first["used"] == pytest.approx(report.minutes[0].shares["requests"])


@pytest.mark.long
def test_what_was_spent_is_what_the_report_of_costs_says(night):
    spent = counted(night, spending_by_entrant)
    by_model = {group.name[0]: group for group in counted(night, cost_report_of).models}
    for model in "abc":
        own = [of_it for of_it in spent if of_it["model"] == model]
        whole = by_model[model]
        assert sum(of_it["calls"] for of_it in own) == whole.spent.calls
        assert sum(of_it["unknown"] for of_it in own) == whole.spent.unknown
        assert sum(of_it["cost_usd"] or 0.0 for of_it in own) == whole.spent.usd
        assert sum(of_it["correct"] for of_it in own) == whole.correct
    block = counted(night, cost_block)
    assert [row["trials"] for row in block["spent"]] == [20] * 4
    assert block["notes"] == [
        "The cost of 12 of 92 calls is unknown, and no sum includes it "
        "(12: the call failed and may have been billed)."
    ]
