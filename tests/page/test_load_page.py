"""The page of a load: it opens on it, draws what Python counts, and fits a narrow screen in both themes."""

from dataclasses import replace

import pytest

from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import counted
from asyncbench.page.charts.loads import rows_of_loads
from asyncbench.page.writing import write_page
from asyncbench.reports.load.accuracy import answers_by_step
from asyncbench.reports.load.steps import steps_in
from tests.reports.load_folders import Loaded, load_folder

# Panels are as wide as the card lets them be, whatever stands in the legend; a chart is drawn in two steps.
WIDE = """["load_cdf", "load_cost"].every((name) => {
    const lines = [...document.querySelectorAll(`[data-chart=${name}] .role-axis-domain line`)];
    return Math.max(...lines.map((line) => line.getBoundingClientRect().width)) > 240;
})"""


@pytest.fixture(scope="module")
def loads(tmp_path_factory):
    asked = [
        Loaded(
            model=name,
            provider="simulated",
            rates=(1.0, 4.0),
            refused=lambda rate, n: rate == 4 and n % 3 == 0,
        )
        for name in ("groq/gpt-oss-120b", "<b>together</b>")
    ]
    folder = load_folder(tmp_path_factory.mktemp("page") / "load", asked)
    written = write_page(folder)
    assert "with the figures of 320 calls under load)" in written.as_text()  # no trials to read
    return folder


@pytest.mark.long
def test_a_page_of_nothing_but_a_load_opens_on_it_and_draws_what_python_counts(loads, opened):
    page = opened(loads)
    assert page.page.inner_text("#view h2") == "Load and providers"
    of = replace(chosen(loads), loaded=True)
    expected = counted(of, lambda views: rows_of_loads(steps_in(views), answers_by_step(views)))
    assert len(expected) == 6
    for name, rows in expected.items():
        assert page.rows(name) == rows, name
    assert page.page.inner_text("body").count("SIMULATED") == 1
    assert page.page.inner_text("#scope") == "320 calls under load"
    assert not page.page.locator("#filters").is_visible()  # there are no trials to choose
    assert page.page.locator("#mark").is_visible()
    rates = page.page.inner_text('.report:has(h3:text-is("Rates"))')
    assert rates.index("kept the SLO up to") < rates.index("latency p95") < rates.index("TPOT: (latency")
    assert page.page.locator(".report code", has_text="kept the SLO").count() == 1
    assert "`" not in page.page.inner_text("#view")
    assert page.page.locator(".report th", has_text="<b>together</b>").count() >= 4
    label = page.page.locator("[data-chart=load_cdf] .role-axis-label text").first
    dark = label.get_attribute("fill")
    page.page.click("#theme")  # its rows are the same, and have no colours of models
    page.settled()
    assert label.get_attribute("fill") != dark
    assert page.told == []


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_narrow_screen(loads, opened, scheme):
    page = opened(loads, viewport={"width": 390, "height": 800}, color_scheme=scheme)
    for chart in page.page.locator("[data-chart] .chart").all():
        chart.locator("svg").wait_for(state="attached")
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    labels = page.page.locator("[data-chart=load_cost] [aria-label^=X-axis] .role-axis-label text")
    assert labels.all_text_contents() == ["1", "4"]  # the rates that were asked
    page.page.wait_for_function(WIDE)
    for box in (chart.bounding_box() for chart in page.page.locator("[data-chart] svg").all()):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 395
    assert page.told == []


def test_a_page_without_a_load_has_the_providers_beside_the_times(at_night):
    page = at_night("#view=load")
    assert "Load" not in page.page.locator("#tabs a").all_inner_texts()
    page.view("time")
    page.page.click("#providers > summary")
    page.page.wait_for_selector("#providers .report")
    assert "availability" in page.page.inner_text(".report")
    assert page.told == []
