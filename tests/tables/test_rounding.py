"""One rounding: Python, the page's script and its charts write the same of a share and of dollars."""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from asyncbench.tables.numbers import dollars, percent, points, rounded, whole_percent
from tests.page.conftest import chromium

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("rounding.json").read_text("utf-8"))
SHARES = [case for case in CASES if case["share"] <= 1]
SCRIPTS = ("text.js", "heat.js")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["share"]))
def test_python_rounds_a_half_up(case):
    share = case["share"]
    assert dollars(share) == case["dollars"]
    if share <= 1:
        assert (percent(share), whole_percent(share)) == (case["percent"], case["whole"])


def test_381_of_400_is_one_figure_with_its_interval_and_as_points():
    assert percent(381 / 400, (0.9525, 0.9525)) == "95.3% (95.3-95.3)"
    assert points(-0.0125, (-0.0225, 0.0025)) == "-1.3 (-2.3 to +0.3)"
    assert percent(381 / 400, decimals=0) == "95%"
    assert rounded(float("inf"), 1) == "inf"


def test_charts_round_as_python_does():
    texts = {"type": "text", "dx": 0}
    encoding = {
        "text": {"field": "share", "type": "quantitative", "format": ".1%"},
        "y": {"field": "n", "type": "ordinal", "axis": None},
    }
    data = {"values": [{"n": n, "share": case["share"]} for n, case in enumerate(SHARES)]}
    drawn = vl_convert.vegalite_to_svg({"data": data, "mark": texts, "encoding": encoding})
    assert re.findall(r">([\d.]+%)<", drawn) == [case["percent"] for case in SHARES]


@pytest.fixture
def browser():
    with chromium() as started:
        yield started


def test_the_script_of_the_page_rounds_as_python_does(browser):
    page = browser.new_page()
    scripts = "\n".join(files("asyncbench.page").joinpath("app", name).read_text("utf-8") for name in SCRIPTS)
    figures = "{ percent: percent(share), whole: digitsOf({ share: true }, share), dollars: dollars(share) }"
    written = page.evaluate(f"cases => {{ {scripts}; return cases.map(({{share}}) => ({figures})) }}", CASES)
    page.close()
    for case, row in zip(CASES, written, strict=True):
        assert row["dollars"] == case["dollars"], case
        if 0.01 <= case["share"] <= 1:  # a map of tasks writes `<1` below
            assert (row["percent"], row["whole"]) == (case["percent"], case["whole"]), case
