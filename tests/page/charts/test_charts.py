"""Charts: the rows they are drawn from, counted by hand, and specifications that mean what they should."""

import json

import pytest

from asyncbench.analysis.cells import METRICS, summed
from asyncbench.analysis.entrants import distinct_names
from asyncbench.errors import ConfigError
from asyncbench.page.charts.catalogue import CHARTS, drawn, spec_of
from asyncbench.page.charts.chart import THEMES
from asyncbench.stats.proportions import Proportion
from tests.analysis.results.made_cells import cell, marked

# ── metrics ──────────────────────────────────────────────────────────────────────────────────

COUNTED = cell(
    trials=100,
    correct=60,
    wrong=20,
    format_ok=45,
    format_known=50,
    digits_right=300,
    digits_total=400,
    measured=40,
    exact=30,
    digit_match=36.0,
    length_error=10,
    output_tokens=1_000,
    known_tokens=80,
    reasoning_tokens=500,
    reasoning_known=10,
    cost_usd=2.0,
    priced=50,
    priced_correct=40,
    latency_s=30.0,
    latencies=60,
    score=12.5,
    scored=50,
    score_squares=10.0,
)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("accuracy", 0.6),
        ("of_answered", 0.75),
        ("format", 0.9),
        ("digits", 0.75),
        ("exact_match", 0.75),
        ("digit_match", 0.9),
        ("dlength", 0.25),
        ("output_tokens", 12.5),
        ("reasoning_tokens", 50),
        ("cost", 40),
        ("cost_per_correct", 50),
        ("latency", 0.5),
        ("score", 0.25),
    ],
)
def test_a_metric_is_a_quotient_of_sums_over_the_cells(metric, value):
    halves = [{**COUNTED, **{name: n / 2 for name, n in COUNTED.items() if isinstance(n, int | float)}}] * 2
    ((_, sums),) = summed(halves, ("model",)).items()
    assert METRICS[metric].measure(sums).value == pytest.approx(value)
    assert METRICS[metric].measure(COUNTED).value == pytest.approx(value)


def test_every_metric_has_its_case_above():
    assert len(METRICS) == 13


def test_a_metric_of_nothing_known_is_unknown():
    assert {metric.measure(cell()).value for metric in METRICS.values()} == {None}


def test_shares_of_trials_have_wilson_intervals_and_digits_have_none():
    found = METRICS["of_answered"].measure(COUNTED)
    assert (found.low, found.high) == Proportion(successes=60, trials=80).interval
    assert found.trials == 80
    assert METRICS["digits"].measure(COUNTED).low is None


# ── rows ─────────────────────────────────────────────────────────────────────────────────────


def test_a_number_never_makes_a_name_that_is_another():
    shown = distinct_names(["x\x1b", "x\\x1b", "x\\x1b (2)"])
    assert len(set(shown.values())) == 3
    assert shown == distinct_names(["x\\x1b (2)", "x\\x1b", "x\x1b"])


def test_where_repeats_differ_each_trial_counts_by_its_own():
    made = [marked(correct=5, trials=10), marked(correct=15, trials=30, independent=10.0, length=2)]
    ((_, sums),) = summed(made, ("model",)).items()
    found = METRICS["accuracy"].measure(sums)
    assert (found.low, found.high) == Proportion(successes=10, trials=20).interval


# ── specifications ───────────────────────────────────────────────────────────────────────────


def made_rows(chart):
    """One row with all columns of a chart."""
    return [dict.fromkeys(CHARTS[chart].columns, 1) | {"panel": "p", "task": "t", "model": "m"}]


@pytest.mark.long
@pytest.mark.parametrize("chart", CHARTS)
def test_a_specification_is_valid_and_names_only_columns_of_its_rows(chart):
    from altair.vegalite.v6.schema.core import Root

    spec = spec_of(chart)
    Root.validate(spec)  # against the schema of Vega-Lite
    assert spec["data"] == {"name": "rows"}
    assert "config" not in spec
    assert "title" not in spec
    known = {*CHARTS[chart].columns, *_made_within(spec)}
    assert fields_of(spec) <= known


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
    names = [n for n, (kind, style) in enumerate(kinds) if (kind, style) == ("text", None)]
    assert last_line < min(halos) <= max(halos) < min(names)
    assert len(halos) == len(names)
    for theme in THEMES.values():
        assert theme["style"]["halo"]["stroke"] == theme["background"]


def test_an_unknown_chart_or_metric_is_told_with_the_known():
    with pytest.raises(ConfigError, match=r"no chart 'pie'\. Choose one of: dots"):
        spec_of("pie")
    with pytest.raises(ConfigError, match=r"no metric 'luck'\. Choose one of: accuracy"):
        spec_of("dots", "luck")


def fields_of(node):
    """All columns that a specification reads."""
    if isinstance(node, list):
        return set().union(*map(fields_of, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    own = {node["field"]} if isinstance(node.get("field"), str) and node["field"] else set()
    return own | set().union(*map(fields_of, node.values())) if node else own


def _made_within(spec):
    """Columns that transforms add."""
    if isinstance(spec, list):
        return set().union(*map(_made_within, spec)) if spec else set()
    if not isinstance(spec, dict):
        return set()
    own = {spec["as"]} if isinstance(spec.get("as"), str) else {*spec.get("as", ())}
    return own | set().union(*map(_made_within, spec.values())) if spec else own
