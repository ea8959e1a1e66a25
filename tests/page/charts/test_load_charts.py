"""Charts of a load: rows counted by hand, gaps where a percentile has no end, and pictures that are drawn."""

from dataclasses import replace

import pytest

from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import counted
from asyncbench.page.charts.catalogue import CHARTS, drawn
from asyncbench.page.charts.figure_files import write_figures
from asyncbench.page.charts.loads import (
    ANSWERS,
    GOODPUT,
    LOAD_CHARTS,
    MOST_SERIES,
    rows_of_loads,
    uncounted_note,
)
from asyncbench.reports.load.accuracy import answers_by_step
from asyncbench.reports.load.steps import steps_in
from tests.page.charts.test_charts import fields_of
from tests.reports.load_folders import Loaded, load_folder

NAMES = ("load_times", "load_rates", "load_knee", "load_cdf", "load_accuracy", "load_cost")


def figures(folder):
    of = replace(chosen(folder), loaded=True)
    return counted(of, lambda views: (steps_in(views), answers_by_step(views)))


def rows_on(folder):
    return rows_of_loads(*figures(folder))


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """At two calls a second half of them are refused: the median stands, the 95th percentile does not."""
    asked = Loaded(
        model="m",
        rates=(1.0, 2.0, 4.0),
        refused=lambda rate, n: rate == 2 and n % 5 < 2,
        latency_s=lambda rate, n: rate + n / 100,
        right=lambda rate, n: n % 4 > 0 or rate == 1,
        cost_usd=0.002,
    )
    return load_folder(tmp_path_factory.mktemp("charts") / "one", [asked])


def test_a_percentile_that_falls_on_no_answer_is_a_gap_and_no_zero(one):
    rows = rows_on(one)["load_times"]
    assert all(row["value"] > 0 for row in rows)
    by_series = {
        name: [row for row in rows if (row["panel"], row["series"]) == ("latency", name)]
        for name in ("p50", "p95")
    }
    assert [(row["rate"], row["part"]) for row in by_series["p50"]] == [(1.0, 0), (2.0, 0), (4.0, 0)]
    assert [(row["rate"], row["part"]) for row in by_series["p95"]] == [(1.0, 0), (4.0, 1)]
    assert by_series["p50"][0]["value"] == pytest.approx(1.001 + 0.39)
    assert by_series["p50"][0]["low"] < by_series["p50"][0]["value"] < by_series["p50"][0]["high"]
    assert not any(row["series"] == "p99" for row in rows)  # 80 calls are too few


def test_answers_and_goodput_have_a_diagonal_and_tokens_have_none(one):
    rows = rows_on(one)["load_rates"]
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        panels.setdefault(row["panel"], {}).setdefault(row["kind"], []).append((row["offered"], row["value"]))
    answers, goodput, tokens = panels.values()
    assert answers["all"] == goodput["all"] == [(0.0, 0.0), (4.0, 4.0)]
    assert "all" not in tokens
    assert [offered for offered, _ in tokens["measured"]] == [1.0, 2.0, 4.0]
    assert dict(tokens["measured"])[2.0] == pytest.approx(11 * 45 / 40)  # of 48, three come after the step
    assert dict(goodput["measured"])[4.0] == 0.0  # none within two seconds: a real zero


@pytest.mark.long
def test_no_more_calls_keep_the_slo_than_are_answered_however_late(one, tmp_path):
    late = Loaded(model="m", rates=(4.0,), latency_s=lambda _, n: 0.5 if n % 2 else 100.0)
    for folder in (one, load_folder(tmp_path / "late", [late])):
        rows = [row for row in rows_on(folder)["load_rates"] if row["kind"] == "measured"]
        answered, kept = (
            {row["offered"]: row["value"] for row in rows if row["panel"] == name}
            for name in (ANSWERS, GOODPUT)
        )
        assert kept
        assert all(answered[rate] >= kept[rate] for rate in answered)
    assert 0 < answered[4.0] <= 2.0  # half of them come a minute later
    assert answered == kept


def test_a_cdf_of_calls_without_an_answer_ends_below_one(one):
    rows = [row for row in rows_on(one)["load_cdf"] if row["panel"] == "m: latency"]
    ends = {row["series"]: row["value"] for row in rows}
    assert ends == {"poisson 1/s": 1.0, "poisson 2/s": 0.6, "poisson 4/s": 1.0}
    values = [row["value"] for row in rows if row["series"] == "poisson 1/s"]
    assert values == sorted(values)
    assert values[0] == 0.0  # and to the last of the panel, or a constant time would be a bar
    assert len({max(row["seconds"] for row in rows if row["series"] == name) for name in ends}) == 1


def test_accuracy_has_an_interval_and_dollars_are_of_a_thousand_answers(one):
    found = rows_on(one)
    accuracy = {row["rate"]: row for row in found["load_accuracy"]}
    assert accuracy[1.0]["value"] == 1.0
    assert accuracy[4.0]["value"] == 0.75
    assert 0.55 < accuracy[4.0]["low"] < 0.75 < accuracy[4.0]["high"] < 0.9
    assert accuracy[2.0]["trials"] == 48
    assert [row["value"] for row in found["load_cost"]] == [pytest.approx(2.0)] * 3


@pytest.mark.long
def test_of_several_models_each_panel_is_of_one_percentile(tmp_path):
    asked = [Loaded(model=name, rates=(1.0,)) for name in ("a", "b")]
    found = rows_on(load_folder(tmp_path / "two", asked))
    panels = {row["panel"] for row in found["load_times"]}
    assert panels == {"TTFT p50", "TTFT p95", "latency p50", "latency p95"}
    assert {row["panel"] for row in found["load_knee"]} == {"latency p50", "latency p95"}
    assert {row["series"] for row in found["load_times"]} == {"a", "b"}
    x = [row["x"] for row in found["load_accuracy"]]
    assert x[0] < 1.0 < x[1]  # side by side, so that no interval hides the other


@pytest.mark.long
def test_ttft_stands_beside_the_latency_and_the_rates_that_were_asked_are_labelled(tmp_path):
    rates = (1.0, 3.0, 8.0)
    asked = [Loaded(model=name, rates=rates) for name in ("a", "b", "c")]
    found = rows_on(load_folder(tmp_path / "three", asked))
    panels = [*dict.fromkeys(row["panel"] for row in found["load_cdf"])]
    assert panels == [f"{name}: {quantity}" for name in "abc" for quantity in ("TTFT", "latency")]
    assert drawn("load_cdf", found["load_cdf"])["columns"] == 2
    for name in ("load_times", "load_accuracy", "load_cost"):
        spec = drawn(name, found[name])
        assert spec["params"] == [{"name": "asked", "value": [*rates]}]
        assert "'values': {'expr': 'asked'}" in str(spec)


def test_steps_that_do_not_count_are_left_out_and_named(tmp_path):
    asked = [Loaded(model="m", rates=(1.0,)), Loaded(model="m", rates=(2.0,), verdict="client_bound")]
    steps, answers = figures(load_folder(tmp_path / "load", asked))
    rows = rows_of_loads(steps, answers)
    assert {row["rate"] for row in rows["load_times"]} == {1.0}
    assert {row["rate"] for row in rows["load_accuracy"]} == {1.0}
    assert uncounted_note(steps) == "Left out: this computer was too slow: m poisson 2/s."


def test_of_many_rates_some_curves_are_drawn_and_callers_have_no_diagonal(tmp_path):
    rates = tuple(float(n) for n in range(1, 13))
    asked = Loaded(model="m", rates=rates, calls=8, arrivals="closed")
    found = rows_on(load_folder(tmp_path / "many", [asked]))
    drawn_rates = {row["series"] for row in found["load_cdf"]}
    assert len(drawn_rates) == MOST_SERIES
    assert {"closed 1", "closed 12"} <= drawn_rates
    assert {row["kind"] for row in found["load_rates"]} == {"measured"}
    assert [row["offered"] for row in found["load_cost"]] == [*rates]


def test_these_are_all_charts_of_loads():
    assert [*LOAD_CHARTS] == [*NAMES]


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_every_column_is_told_and_every_field_is_a_column(one, name):
    rows = rows_on(one)[name]
    assert {column for row in rows for column in row} == {*CHARTS[name].columns}
    fields = fields_of(drawn(name, rows) | {"data": None})
    assert fields <= {*CHARTS[name].columns, "row", ""}  # those of no column number panels


@pytest.mark.long
def test_pictures_of_a_simulated_load_say_so_and_need_no_other_trials(tmp_path):
    asked = [Loaded(model=name, rates=(1.0, 2.0), provider="simulated") for name in ("a", "b")]
    written = write_figures(load_folder(tmp_path / "load", asked), tmp_path / "figures")
    names = {path.name for path in written}
    assert {f"{name.replace('_', '-')}.{kind}" for name in NAMES for kind in ("svg", "png")} <= names
    assert {"load.md", "load.tex", "providers.md", "providers.tex"} <= names
    assert "SIMULATED" in (tmp_path / "figures" / "load-times.svg").read_text()


def test_the_slo_is_a_line_in_the_charts_of_times_it_is_about(one):
    rows = rows_on(one)
    promised = {
        quantity: {row["slo"] for row in rows["load_times"] if row["quantity"] == quantity}
        for quantity in ("TTFT", "latency")
    }
    assert promised == {"TTFT": {None}, "latency": {2.0}}  # the SLO promises no TTFT
    assert {row["slo"] for row in rows["load_knee"]} == {2.0}
    ends = {(row["panel"], row["slo"], row["share"]) for row in rows["load_cdf"] if row.get("slo")}
    assert ends == {("m: latency", 2.0, 0.95)}
    for name, fields in {"load_times": ["slo"], "load_knee": ["slo"], "load_cdf": ["slo", "share"]}.items():
        rules = [
            layer
            for layer in drawn(name, rows[name])["spec"]["layer"]
            if layer["mark"].get("style") == "reference"
        ]
        assert [(rule["encoding"].get("y") or rule["encoding"]["x"])["field"] for rule in rules] == fields, (
            name
        )
