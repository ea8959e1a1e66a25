"""Pictures and tables for papers: all of a folder's, each under a name that stays."""

import re
import struct
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from asyncbench.analysis.counting import counted
from asyncbench.cli import app
from asyncbench.errors import ConfigError
from asyncbench.page.charts import figure_files, pictures
from asyncbench.page.charts.catalogue import CHARTS, drawn
from asyncbench.page.charts.figure_files import write_figures
from asyncbench.page.charts.loads import LOAD_CHARTS
from asyncbench.page.charts.print_size import INCHES, MOST_PIXELS, svg_of
from asyncbench.problems.schema import identified
from asyncbench.reports.anatomy import anatomy_of
from asyncbench.reports.overview import overview_of
from asyncbench.reports.standings.report import standings_of
from asyncbench.store.folder import Store
from asyncbench.suites.llm_arithmetic import draft_arithmetic
from asyncbench.tables.report import SIMULATED
from tests.page.conftest import chromium
from tests.page.made import events, trial_of
from tests.reports.answered import Asked, folder_of
from tests.store.made import AT, keep, minute

pytestmark = pytest.mark.long

HOSTILE = "<script>alert(1)</script>\\input{x}$ & \x1b[31m\u202e"
PICTURES = (
    *("dots-llm-arithmetic", "pairs-llm-arithmetic", "curves", "halves", "length-map", "task-map"),
    *(f"task-map-{name}" for name in ("of-answered", "format", "output-tokens", "reasoning-tokens")),
    *("task-map-cost", "task-map-cost-per-correct", "task-map-latency"),
    *("frontier-cost", "frontier-reasoning", "outcomes", "digit-errors", "kinds"),
    *("times", "latency", "throughput", "tokens", "quota"),
)
TABLES = ("report", "standings", "anatomy", "cost", "heatmap", "quota", "positions")


def asked(number, alias, length, *, n):
    """The n-th trial, of an addition of so many digits."""
    left, right = 10**length - 1 - number, 10 ** (length - 1) + number
    draft = draft_arithmetic("int_add", length, str(left), str(right), expected=str(left + right))
    (problem,) = identified([draft])
    return trial_of(n, problem, model=alias, simulated=True)


def answered(trial, *, right):
    """What became of it."""
    expected = int(trial.problem.expected)
    return events(trial, str(expected if right else expected + 10), at=AT + 60 * trial.problem.length)


LONG = tuple(f"provider/a-model-with-a-name-of-some-length-{n}" for n in range(6))


def night(path, *, aliases=("able", HOSTILE)):
    """A folder of a night: the longer, the more is wrong, and for the second more than for the first."""
    planned = {alias: {"plain": {"llm_arithmetic": {"int_add": 20}}} for alias in aliases}
    with Store.open(path, sweep="night") as store:
        for place, alias in enumerate(aliases):
            for number in range(20):
                trial = asked(number, alias, length=2 + number % 5, n=20 * place + number)
                keep(store, *answered(trial, right=(number * 7) % 10 > 2 * (number % 5) + 2 * place - 2))
        for n in range(3):
            store.keep(replace(minute("lane"), started_at=AT + 60 * n))
        store.write_manifest({"runs": {"night": {"planned": planned}}, "simulated": True})
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return night(tmp_path_factory.mktemp("figures") / "night")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return night(tmp_path_factory.mktemp("many") / "night", aliases=("able", HOSTILE, *LONG))


@pytest.fixture(scope="module")
def written(many, tmp_path_factory):
    """All files of a folder with eight models, most with long names, by the command."""
    out = tmp_path_factory.mktemp("paper") / "figures"
    told = CliRunner().invoke(app, ["report", str(many), "--figures", str(out)], catch_exceptions=False)
    assert told.exit_code == 0
    assert told.stdout.split() == [str(out / name) for name in map(str, told_names(told.stdout))]
    assert {path.name for path in out.iterdir()} == set(told_names(told.stdout))
    return out


def told_names(text):
    return [line.rsplit("/", 1)[1] for line in text.split()]


def test_every_chart_is_an_svg_a_png_and_a_pdf_and_every_report_markdown_and_latex(written):
    pictures = {f"{name}.{form}" for name in PICTURES for form in ("svg", "png", "pdf")}
    tables = {f"{name}.{form}" for name in TABLES for form in ("md", "tex")}
    assert {path.name for path in written.iterdir()} == pictures | tables


@pytest.mark.parametrize(("chart", "across"), [("task_map", "model"), ("length_map", "length")])
def test_a_dash_stands_where_a_map_has_no_figure(chart, across):
    cells = {("x", 1): 0.0, ("x", 2): 0.5, ("y", 1): None}  # and none of y, 2
    rows = [
        {"model": "m", "task": task, "kind": task, "asked": 0, across: place, "value": value, "trials": 9}
        for (task, place), value in cells.items()
    ]
    svg = svg_of(drawn(chart, rows))
    assert (svg.count(">–</text>"), svg.count(">0</text>"), svg.count(">50</text>")) == (2, 1, 1)


def test_every_chart_there_is_has_its_picture():
    shown = {name.split("-llm")[0].replace("-", "_") for name in PICTURES}
    lacking = {name for name in CHARTS if not any(one.startswith(name) for one in shown)}
    # those of loads have a test of their own
    # no call of this night failed; those of loads have a test of their own
    assert lacking == {"failures", *LOAD_CHARTS}


def test_every_picture_of_simulated_results_says_so(written):
    for name in PICTURES:
        assert any(SIMULATED in text for text in _texts(written / f"{name}.svg")), name
    for name in TABLES:
        assert "SIMULATED" in (written / f"{name}.md").read_text("utf-8")
        assert "SIMULATED" in (written / f"{name}.tex").read_text("utf-8")


def test_text_in_an_svg_stays_text_in_a_family_that_is_named(written):
    texts = _texts(written / "task-map.svg")
    assert "Task by model" in texts
    assert "able" in texts
    svg = (written / "task-map.svg").read_text("utf-8")
    assert set(re.findall(r'font-family="([^"]+)"', svg)) == {
        "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"
    }


def test_a_hostile_name_is_text_in_every_picture(written):
    tags = {
        element.tag.rpartition("}")[2] for name in PICTURES for element in _elements(written / f"{name}.svg")
    }
    assert "script" not in tags
    assert {"svg", "text", "path"} <= tags
    shown = [text for text in _texts(written / "outcomes.svg") if text.startswith("<script>")]
    assert shown
    assert all("\x1b" not in text and "\u202e" not in text for text in shown)


def test_a_hostile_name_is_text_in_every_table(written):
    for name in TABLES:
        tex, markdown = ((written / f"{name}.{form}").read_text("utf-8") for form in ("tex", "md"))
        assert "\\input" not in tex
        assert "<script>" not in markdown
        assert not {"\x1b", "\u202e"} & {*tex, *markdown}
    assert "\\textbackslash{}input" in (written / "report.tex").read_text("utf-8")


def test_a_png_has_300_pixels_an_inch_and_an_svg_its_size_on_paper(written):
    for name in PICTURES:
        width, height = size_of(written / f"{name}.png")
        assert width <= 300 * INCHES["two"] + 1
        assert width * height <= 1.01 * MOST_PIXELS
        inches = inches_of((written / f"{name}.svg").read_text())
        assert width == pytest.approx(300 * inches, abs=2)


def inches_of(svg):
    (inches,) = re.findall(r'<svg[^>]*? width="([\d.]+)in"', svg)
    return float(inches)


def size_of(png):
    head = png.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return struct.unpack(">II", head[16:24])


OUTSIDE = """() => {
    const whole = document.querySelector("svg").getBoundingClientRect();
    const out = ({ left, right, top, bottom }) => left < whole.left - 1 || right > whole.right + 1
        || top < whole.top - 1 || bottom > whole.bottom + 1;
    const texts = [...document.querySelectorAll("svg text")];
    return texts.filter((text) => out(text.getBoundingClientRect())).map((text) => text.textContent);
}"""
LETTERS = """() => [...document.querySelectorAll("svg text")]
    .map((text) => [text.getScreenCTM(), parseFloat(getComputedStyle(text).fontSize)])
    .map(([{ c, d }, size]) => 0.75 * size * Math.hypot(c, d))
"""  # points


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


def in_one_column(folder):
    """Yield the name and the SVG of each picture of a folder."""
    for picture in counted(folder, lambda views: [*pictures.pictures_of(views)]):
        note = "SIMULATED: " + "a note of some length " * 9
        svg = next(figure_files.chart_files(picture, [note], "one"))
        yield picture.name, svg[1].decode()


@pytest.mark.parametrize("width", INCHES)
def test_every_text_is_inside_its_picture_at_either_width(many, written, width, browser):
    """Of eight models with long names: beside what is drawn, and at the ends of lines."""
    over_two = ((name, (written / f"{name}.svg").read_text("utf-8")) for name in PICTURES)
    shown = dict(over_two if width == "two" else in_one_column(many))
    assert {*shown} == {*PICTURES}
    page = browser.new_page()
    for name, svg in shown.items():
        page.set_content(svg)
        assert page.evaluate(OUTSIDE) == [], name
        assert inches_of(svg) <= INCHES[width] + 0.001, name
        letters = [points for points in page.evaluate(LETTERS) if points > 1]
        assert 6.5 < min(letters) <= max(letters) < 11, name


def test_a_width_that_is_none_is_refused_and_goes_with_figures_alone(folder, tmp_path):
    with pytest.raises(ConfigError, match=r"--width 'three': choose one of: one, two"):
        write_figures(folder, tmp_path / "out", width="three")
    told = CliRunner().invoke(app, ["report", str(folder), "--width", "one"])
    assert "Add --figures" in str(told.exception)


def test_pictures_and_tables_say_what_was_lost_and_over_what_a_frontier_is(tmp_path):
    asked = [
        Asked(model="able", outcomes="+" * 10 + "x" * 5),
        Asked(model="other", outcomes="+-" * 5),
        Asked(model="able", outcomes="+-", task="sub", first=50),
        Asked(model="silent", outcomes="xx", task="mul", first=70),
    ]
    folder = folder_of(tmp_path / "f", asked)
    drawn = {one.name: one for one in counted(folder, lambda views: [*pictures.pictures_of(views)])}
    notes = {name: " ".join(one.notes) for name, one in drawn.items()}
    lost = "LOST TRIALS: for 2 of 3 models, over 1 % of the trials failed or were"
    for name in ("task-map", "frontier-cost", "outcomes"):
        assert lost in notes[name], name
    assert "On the 1 of 2 kinds of questions that all were asked (nupa: add)" in notes["frontier-cost"]
    for table in (counted(folder, standings_of), counted(folder, anatomy_of), counted(folder, overview_of)):
        assert lost in table.as_markdown()
    (svg, _, _) = figure_files.chart_files(drawn["outcomes"], ["MARK"], "two")
    (tmp_path / "outcomes.svg").write_bytes(svg[1])
    told = _texts(tmp_path / "outcomes.svg")
    assert "MARK" in " ".join(told)
    assert lost in " ".join(told)


def test_other_files_of_the_folder_stay_and_ours_are_replaced(folder, tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    (tmp_path / "report.md").write_text("old", "utf-8")
    monkeypatch.setattr("asyncbench.page.charts.figure_files.pictures_of", lambda *_: ())  # drawn above

    files = write_figures(folder, tmp_path)

    assert {path.name for path in files} == {f"{name}.{form}" for name in TABLES for form in ("md", "tex")}
    assert (tmp_path / "notes.txt").read_text("utf-8") == "mine"
    assert "Accuracy by suite" in (tmp_path / "report.md").read_text("utf-8")


def test_a_file_where_a_folder_should_be_is_told(folder, tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(ConfigError, match=r"is a file\. Name a folder"):
        write_figures(folder, tmp_path / "file")


def test_a_folder_that_cannot_be_written_is_told(folder, tmp_path, monkeypatch):
    (tmp_path / "report.md").mkdir()
    monkeypatch.setattr("asyncbench.page.charts.figure_files.pictures_of", lambda *_: ())
    with pytest.raises(ConfigError, match=r"report\.md: cannot be written: Is a directory"):
        write_figures(folder, tmp_path)


def test_nothing_is_drawn_of_a_folder_without_trials(tmp_path):
    with Store.open(tmp_path / "empty", sweep="s") as store:
        store.write_manifest({"runs": {}})
    with pytest.raises(ConfigError, match="no trials yet"):
        write_figures(tmp_path / "empty", tmp_path / "out")


def test_without_vl_convert_the_way_out_is_told(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(
        ConfigError, match=r"pictures need the extra `report`: pip install 'asyncbench\[report\]'"
    ):
        write_figures(folder, tmp_path / "out")


@pytest.mark.parametrize("odd", [["--style", "cost"], ["--grader", "strict"], ["--json"], ["--latex"]])
def test_figures_are_of_the_whole_folder_and_take_no_other_option(folder, tmp_path, odd):
    told = CliRunner().invoke(app, ["report", str(folder), "--figures", str(tmp_path), *odd])
    assert isinstance(told.exception, ConfigError)
    assert odd[0] in str(told.exception)


def _elements(path):
    return ET.fromstring(path.read_bytes()).iter()  # noqa: S314  our own file


def _texts(path):
    return ["".join(element.itertext()) for element in _elements(path) if element.tag.endswith("text")]
