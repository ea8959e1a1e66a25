"""Charts: the rows they are drawn from, counted by hand, and specifications that mean what they should."""

import itertools
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from altair.vegalite.v6.schema.core import Root

from asyncbench.charts import CHARTS, METRICS, THEMES, drawn, frontier, rows, spec_of, time_rows
from asyncbench.errors import ConfigError
from asyncbench.reports.quota import LimitUse
from asyncbench.results.anatomy.counts import ErrorFindings
from asyncbench.results.cells import summed
from asyncbench.results.minutes import Minute
from asyncbench.results.names import told_apart
from asyncbench.stats import Proportion
from tests.results.made_cells import cell, marked

AT = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
MODELS = [f"model-{n:02d}" for n in range(20)]


# ── metrics ──────────────────────────────────────────────────────────────────────────────────

COUNTED = cell(
    trials=100,
    correct=60,
    wrong=20,
    format_ok=45,
    format_known=50,
    digits_right=300,
    digits_total=400,
    output_tokens=1_000,
    known_tokens=80,
    reasoning_tokens=500,
    reasoning_known=10,
    cost_usd=2.0,
    priced=50,
    priced_correct=40,
    latency_s=30.0,
    latencies=60,
)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("accuracy", 0.6),
        ("of_answered", 0.75),
        ("format", 0.9),
        ("digits", 0.75),
        ("output_tokens", 12.5),
        ("reasoning_tokens", 50),
        ("cost", 40),
        ("cost_per_correct", 50),
        ("latency", 0.5),
    ],
)
def test_a_metric_is_a_quotient_of_sums_over_the_cells(metric, value):
    halves = [{**COUNTED, **{name: n / 2 for name, n in COUNTED.items() if isinstance(n, int | float)}}] * 2
    ((_, sums),) = summed(halves, ("model",)).items()
    assert METRICS[metric].of(sums).value == pytest.approx(value)
    assert METRICS[metric].of(COUNTED).value == pytest.approx(value)


def test_every_metric_has_its_case_above():
    assert len(METRICS) == 9


def test_a_metric_of_nothing_known_is_unknown():
    assert {metric.of(cell()).value for metric in METRICS.values()} == {None}


def test_shares_of_trials_have_wilson_intervals_and_digits_have_none():
    found = METRICS["of_answered"].of(COUNTED)
    assert (found.low, found.high) == Proportion(successes=60, trials=80).interval
    assert found.trials == 80
    assert METRICS["digits"].of(COUNTED).low is None


# ── rows ─────────────────────────────────────────────────────────────────────────────────────


def test_models_are_named_and_the_most_accurate_comes_first():
    made = [marked("a", correct=1, trials=4), marked("b", correct=3, trials=4, length=2)]
    names = {("night", "a", "plain"): "a\x1b[31m", ("night", "b", "plain"): "b" * 99}
    named = rows.named(pa.Table.from_pylist(made), names)
    assert [one["model"] for one in named] == ["b" * 20 + "…" + "b" * 19, r"a\x1b[31m"]


def test_equals_stand_as_planned():
    made = [marked(name, correct=2, trials=4) for name in "abc"]
    names = {("night", name, "plain"): name for name in "bca"}
    cells = rows.named(pa.Table.from_pylist(made), names)
    assert rows.models_of(cells) == ["b", "c", "a"]
    shown = told_apart(names.values())
    found = time_rows.throughput_rows([replace(MINUTE, name=name) for name in "abc"], shown)
    assert [row["series"] for row in found] == ["b", "c", "a"]


def test_a_number_never_makes_a_name_that_is_another():
    shown = told_apart(["x\x1b", "x\\x1b", "x\\x1b (2)"])
    assert len(set(shown.values())) == 3
    assert shown == told_apart(["x\\x1b (2)", "x\\x1b", "x\x1b"])


REPEATED = [(length, 3 * right, 60) for length, right in enumerate([20, 18, 10, 2, 0], 1)]


def test_three_repeats_make_no_interval_narrower_than_one():
    once = falling(suite="s")
    often = [marked(correct=r, trials=n, independent=n / 3, length=x, suite="s") for x, r, n in REPEATED]
    for draw in (lambda cells: frontier.frontier_reasoning(told(cells)),):
        for one, other in zip(draw(once), draw(often), strict=True):
            ends = ("value", "low", "high")
            assert [one[end] for end in ends] == pytest.approx([other[end] for end in ends]), draw


def told(cells):
    return [one | {"reasoning_tokens": 10, "reasoning_known": 10} for one in cells]


def test_where_repeats_differ_each_trial_counts_by_its_own():
    made = [marked(correct=5, trials=10), marked(correct=15, trials=30, independent=10.0, length=2)]
    ((_, sums),) = summed(made, ("model",)).items()
    found = METRICS["accuracy"].of(sums)
    assert (found.low, found.high) == Proportion(successes=10, trials=20).interval


def test_outcomes_add_up_to_all_trials():
    made = [cell(trials=10, correct=5, wrong=2, truncated=3)]
    assert [(row["outcome"], row["place"], row["share"]) for row in rows.outcomes(made)] == [
        ("correct", 0, 0.5),
        ("wrong", 1, 0.2),
        ("truncated", 3, 0.3),
    ]


FALLING = [(1, 20), (2, 18), (3, 10), (4, 2), (5, 0)]


def falling(model="m", **about):
    return [marked(model, correct=right, trials=20, length=length, **about) for length, right in FALLING]


def test_the_frontier_is_whom_nobody_beats():
    made = [
        marked("cheap", correct=5, trials=10, cost_usd=0.01, priced=10),
        marked("worse", correct=4, trials=10, cost_usd=0.02, priced=10),
        marked("best", correct=9, trials=10, cost_usd=0.02, priced=10),
        marked("dear", correct=9, trials=10, cost_usd=0.5, priced=10),
        marked("unpriced", correct=10, trials=10),
    ]
    found = frontier.frontier_cost(made)
    assert {row["model"]: row["front"] for row in found} == {
        "cheap": True,
        "worse": False,
        "best": True,
        "dear": False,
    }
    assert found[0]["x"] == found[0]["cost"] == pytest.approx(1.0)


def priced(model, task, correct, *, suite="nupa", cost=0.01, **about):
    made = {"trials": 10, "cost_usd": cost, "priced": 10, "task": task, "suite": suite}
    return marked(model, **made, correct=correct, **about)


def test_a_frontier_compares_models_over_what_all_were_asked():
    made = [
        priced("both", "easy", 9),
        priced("both", "hard", 1),
        priced("one", "easy", 8, cost=0.02),
        priced("unpriced", "other", 5, cost=None) | {"priced": 0},
    ]
    found = {
        row["model"]: (row["value"], row["trials"], row["front"]) for row in frontier.frontier_cost(made)
    }
    assert found == {"both": (0.9, 10, True), "one": (0.8, 10, False)}
    said = "On the 1 of 2 tasks that all models were asked (nupa: easy)"
    assert frontier.frontier_note(made, "cost") == said
    assert frontier.frontier_note(made[:2], "cost") is None


def test_where_nothing_was_asked_of_all_a_frontier_says_so():
    made = [priced("a", "easy", 9), priced("b", "hard", 1)]
    assert len(frontier.frontier_cost(made)) == 2
    assert frontier.frontier_note(made, "cost") == frontier.UNLIKE


def test_who_was_asked_little_does_not_narrow_a_frontier_to_that():
    tasks = ("a", "b", "c", "d", "e")
    made = [priced(model, task, 9) for model in ("one", "two") for task in tasks]
    made += [priced("short", "a", 10)]
    assert {row["model"]: row["trials"] for row in frontier.frontier_cost(made)} == {"one": 50, "two": 50}
    said = "On all 5 tasks; without short, asked less than half of the tasks"
    assert frontier.frontier_note(made, "cost") == said
    made += [priced("most", task, 9) for task in tasks[:4]]
    assert frontier.frontier_note(made, "cost") == (
        "On the 4 of 5 tasks that all models were asked (nupa); "
        "without short, asked less than half of the tasks"
    )


def test_a_frontier_has_no_reasoning_where_nobody_reasoned():
    made = [
        marked(name, correct=5, trials=10, reasoning_tokens=tokens, reasoning_known=10)
        for name, tokens in (("a", 0), ("b", 0))
    ]
    assert frontier.frontier_reasoning(made) == []
    assert len(frontier.frontier_reasoning([*made, made[0] | {"model": "c", "reasoning_tokens": 50}])) == 3


def test_names_of_a_frontier_stand_beside_their_points_and_never_on_others():
    made = [
        marked(
            f"a-model-of-some-length-{n:02d}", correct=50 + n % 7, trials=100, cost_usd=1 + n / 9, priced=100
        )
        for n in range(26)
    ]
    found = frontier.frontier_cost(made)
    named = [row for row in found if row["name_at"]]
    assert 3 <= len(named) < 26
    assert all(row["name_at"] for row in found if row["front"])
    alone = frontier.frontier_cost(made[:1])
    assert alone[0]["name_at"] in ("left", "right")
    spots = frontier._spots(found, "log")
    boxes = [
        dict(frontier._sides(spot, frontier.LETTER * len(row["model"]), above=row["front"]))[row["name_at"]]
        for spot, row in zip(spots, found, strict=True)
        if row["name_at"]
    ]
    assert not any(one.meets(other) for one, other in itertools.combinations(boxes, 2))


def test_who_never_replied_is_on_no_frontier():
    silent = cell("silent", task="easy", suite="nupa", trials=3, failed=3, cost_usd=0.0, priced=3)
    assert [row["model"] for row in frontier.frontier_cost([priced("a", "easy", 9), silent])] == ["a"]
    assert frontier.frontier_note([silent], "cost") is None


def test_equals_are_on_the_frontier_together():
    made = [marked(name, correct=5, trials=10, cost_usd=0.01, priced=10) for name in "ab"]
    assert [row["front"] for row in frontier.frontier_cost(made)] == [True, True]


def test_what_is_free_stands_left_of_all_that_costs():
    priced = marked("priced", correct=5, trials=10, cost_usd=0.03, priced=10)
    free = marked("free", correct=4, trials=10, cost_usd=0.0, priced=10)
    assert [(row["cost"], row["x"]) for row in frontier.frontier_cost([priced, free])] == [
        (pytest.approx(3.0), pytest.approx(3.0)),
        (0.0, pytest.approx(1.0)),
    ]


def test_reasoning_is_a_mean_of_the_trials_that_tell_it():
    made = [
        marked(correct=1, trials=4, reasoning_tokens=300, reasoning_known=3),
        marked("n", correct=1, trials=4),
    ]
    assert [(row["model"], row["x"]) for row in frontier.frontier_reasoning(made)] == [("m", 100)]


MINUTE = Minute(name="m", at=0, seconds=120.0, calls=30, p50_s=1.0, p95_s=2.0, output_tokens=600)


def test_throughput_is_a_minute_however_long_the_bin():
    (row,) = time_rows.throughput_rows([MINUTE])
    assert (row["calls_per_minute"], row["tokens_per_minute"]) == (15, 300)
    assert time_rows.throughput_rows([replace(MINUTE, output_tokens=None)])[0]["tokens_per_minute"] is None


def test_lines_over_time_end_where_nothing_ran_for_a_while():
    made = [replace(MINUTE, name=name, at=120_000 * n) for name in "ab" for n in (0, 1, 5, 6)]
    idle = [one for one in made if (one.name, one.at) != ("b", 120_000)]  # the other went on
    for found in (time_rows.latency_rows(idle), time_rows.throughput_rows(idle)):
        parts = {(row["series"], row["at"] // 120_000): row["part"] for row in found}
        assert parts == {("a", 0): 0, ("a", 1): 0, ("a", 5): 1, ("a", 6): 1} | {
            ("b", 0): 0,
            ("b", 5): 1,
            ("b", 6): 1,
        }
    for chart in ("latency", "throughput", "quota"):
        marks = spec_of(chart)["spec"]["layer"]
        lines = [one for one in marks if one["mark"]["type"] in ("line", "area")]
        assert lines
        assert all(one["encoding"]["detail"]["field"] == "part" for one in lines)


def test_more_models_than_colours_have_a_picture_each():
    few = time_rows.latency_rows([replace(MINUTE, name=name) for name in MODELS[:8]])
    many = time_rows.latency_rows([replace(MINUTE, name=name) for name in MODELS[:9]])
    assert ({row["panel"] for row in few}, len({row["series"] for row in few})) == ({""}, 8)
    assert ({row["panel"] for row in many}, len({row["series"] for row in many})) == (set(MODELS[:9]), 1)


def use(**about):
    made = {
        "lane": "lane",
        "started_at": AT,
        "seconds": 60.0,
        "used": {},
        "used_of_allowed": {"requests": 30, "tokens": 10},
        "allowed": {"requests": 60.0, "tokens": 0.0},
        "refused": 2,
        "most_in_flight": 1,
        "share": 1.0,
        "waited_s": {},
    }
    return LimitUse(**{**made, **about})


def test_quota_tells_each_limit_that_a_lane_has():
    (row,) = time_rows.quota_rows([use()])
    at = round(AT.timestamp() * 1000)
    told = {"panel": "lane", "series": "requests", "at": at, "part": 0}
    assert row == told | {"used": 0.5, "refused": 2}


def findings(model, *, places, reach, kinds=()):
    found = ErrorFindings(group=("night", model, "plain", "s", "t", "", "integer"))
    found.reach.update(reach)
    found.from_left.update(places)
    found.from_right.update(places)
    found.kinds.update(dict(kinds))
    return found


def named_models(*names):
    return {("night", name, "plain"): name for name in names}


def test_digit_errors_are_of_the_answers_that_have_such_a_digit():
    made = [
        findings("m", places={1: 1}, reach={1: 1, 2: 2}),
        findings("m", places={1: 1, 2: 2}, reach={2: 2}),
    ]
    found = rows.digit_errors(made, named_models("m"))
    first = [row for row in found if row["panel"] == rows.ENDS[0]]
    assert [(row["position"], row["errors"], row["answers"], row["value"]) for row in first] == [
        (1, 2, 5, 0.4),
        (2, 2, 4, 0.5),
    ]
    assert [row["panel"] for row in found] == [rows.ENDS[0]] * 2 + [rows.ENDS[1]] * 2


def test_digit_errors_of_many_models_have_a_picture_each():
    for models in (MODELS, MODELS[:5]):  # lines of five cross so often that none can be followed
        made = [findings(name, places={1: 1}, reach={1: 2}) for name in models]
        found = rows.digit_errors(made, named_models(*models))
        assert list(dict.fromkeys(row["panel"] for row in found)) == models
        assert {row["series"] for row in found} == set(rows.ENDS)
    few = rows.digit_errors(made[:4], named_models(*MODELS[:4]))
    assert {row["panel"] for row in few} == set(rows.ENDS)


def test_kinds_are_shares_of_examined_answers_and_rare_ones_go_together():
    kinds = {f"kind-{n:02d}": 20 - n for n in range(14)}
    found = rows.kinds([findings("m", places={}, reach={}, kinds=kinds)], named_models("m", "silent"))
    assert [row["kind"] for row in found] == [*list(kinds)[:12], rows.OTHERS]
    assert found[-1]["wrong"] == 8 + 7
    assert sum(row["value"] for row in found) == pytest.approx(1)


def test_kinds_that_are_as_common_come_by_name():
    found = rows.kinds(
        [findings("m", places={}, reach={}, kinds={"b": 1, "c": 2, "a": 1})], named_models("m")
    )
    assert [row["kind"] for row in found] == ["c", "a", "b"]


# ── specifications ───────────────────────────────────────────────────────────────────────────


def made_rows(chart):
    """One row with all columns of a chart."""
    return [dict.fromkeys(CHARTS[chart].columns, 1) | {"panel": "p", "task": "t", "model": "m"}]


@pytest.mark.parametrize("chart", CHARTS)
def test_a_specification_is_valid_and_names_only_columns_of_its_rows(chart):
    spec = spec_of(chart)
    Root.validate(spec)  # against the schema of Vega-Lite
    assert spec["data"] == {"name": "rows"}
    assert "config" not in spec
    assert "title" not in spec
    known = {*CHARTS[chart].columns, *_made_within(spec)}
    assert _fields(spec) <= known


@pytest.mark.parametrize(("chart", "metric"), [("task_map", name) for name in METRICS])
def test_charts_of_a_metric_name_it(chart, metric):
    assert METRICS[metric].title in json.dumps(spec_of(chart, metric))


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_that_stands_alone_has_title_notes_rows_and_theme(chart):
    spec = drawn(chart, made_rows(chart), theme="dark", notes=["SIMULATED"])
    assert spec["title"] == {"text": CHARTS[chart].title, "subtitle": ["SIMULATED"]}
    assert spec["data"]["values"] == made_rows(chart)
    assert spec["config"] == THEMES["dark"]


@pytest.mark.parametrize(
    ("panels", "columns", "width"), [(1, 2, 640), (4, 2, 300), (5, 3, 300), (13, 4, 300)]
)
def test_panels_stand_side_by_side(panels, columns, width):
    made = [{"task": f"p{n}"} for n in range(panels)]
    spec = drawn("curves", made)
    assert (spec["columns"], spec["spec"]["width"]) == (columns, width)


@pytest.mark.parametrize(("panels", "own"), [(8, True), (6, False)])
def test_no_axis_stands_at_the_foot_of_an_empty_place(panels, own):
    spec = drawn("length_map", [{"model": f"p{n}"} for n in range(panels)])
    assert (spec.get("resolve", {}).get("axis") == {"x": "independent"}) == own


@pytest.mark.parametrize("chart", ["frontier_cost", "frontier_reasoning"])
def test_names_on_a_frontier_are_not_struck_through_by_intervals(chart):
    marks = [layer["mark"] for layer in spec_of(chart)["layer"]]
    kinds = [(one["type"], one.get("style")) for one in marks]
    last_line = max(n for n, (kind, _) in enumerate(kinds) if kind in ("rule", "line"))
    halos = [n for n, kind in enumerate(kinds) if kind == ("text", "halo")]
    names = [n for n, (kind, style) in enumerate(kinds) if kind == "text" and style != "halo"]
    assert last_line < min(halos) < max(halos) < min(names)
    assert len(halos) == len(names)
    for theme in THEMES.values():
        assert theme["style"]["halo"]["stroke"] == theme["background"]


def test_an_unknown_chart_or_metric_is_told_with_the_known():
    with pytest.raises(ConfigError, match=r"no chart 'pie'\. Choose one of: dots"):
        spec_of("pie")
    with pytest.raises(ConfigError, match=r"no metric 'luck'\. Choose one of: accuracy"):
        spec_of("dots", "luck")


def test_without_altair_the_way_out_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    for name in ("spec_table", "accuracy_specs", "specs"):
        monkeypatch.delitem(sys.modules, f"asyncbench.charts.{name}", raising=False)
    with pytest.raises(ConfigError, match=r"charts need the report extra: .*pip install '\.\[report\]'"):
        spec_of("dots")


def _fields(node):
    """All columns that a specification reads."""
    if isinstance(node, list):
        return set().union(*map(_fields, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    own = {node["field"]} if isinstance(node.get("field"), str) and node["field"] else set()
    return own | set().union(*map(_fields, node.values())) if node else own


def _made_within(spec):
    """Columns that transforms add."""
    if isinstance(spec, list):
        return set().union(*map(_made_within, spec)) if spec else set()
    if not isinstance(spec, dict):
        return set()
    own = {spec["as"]} if isinstance(spec.get("as"), str) else set()
    return own | set().union(*map(_made_within, spec.values())) if spec else own
