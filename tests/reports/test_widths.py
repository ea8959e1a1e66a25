"""Every report fits the screen: no line is too long, and no number is broken."""

import pytest
from rich.cells import cell_len

from asyncbench import compare, report
from asyncbench.reports.styles import STYLES
from tests.reports.answered import Asked, folder_of

pytestmark = pytest.mark.long

LONG, OTHER = "a-provider/a-model-with-a-rather-long-name-2026-11-21", "another-model-of-the-same-provider"
NAMES = [name for name, style in STYLES.items() if not style.published and name != "load"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    asked = [
        Asked(model=model, outcomes=outcomes * 4, suite=suite, task=task, cost_usd=1234.5)
        for model, outcomes in ((LONG, "+++-++-t"), (OTHER, "++x-+--?"), ("short", "+" * 8))
        for suite, task in (("nupa", "add"), ("nupa", "to_scientific"), ("llm_arithmetic", "float_add"))
    ]
    return folder_of(tmp_path_factory.mktemp("wide"), asked)


@pytest.fixture(scope="module")
def reports(folder):
    chosen = {True: [LONG], False: None}
    by_style = {style: report(folder, style, models=chosen[STYLES[style].single]) for style in NAMES}
    return by_style | {"compare": compare(LONG, OTHER, folder)}


@pytest.mark.long
@pytest.mark.parametrize("width", [100, 80, 60, 40])
@pytest.mark.parametrize("name", [*NAMES, "compare"])
def test_no_line_of_any_report_is_longer_than_the_screen(reports, name, width):
    text = reports[name].as_text(width=width)
    shown = text.partition("\nNext:")[0]  # the words of commands are whole, whatever their length
    assert max(map(cell_len, shown.splitlines())) <= width
