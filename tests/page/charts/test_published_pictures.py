"""Pictures of published benchmarks: each kind is drawn, and the command writes all of a style."""

import re
import struct
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import vl_convert
from altair.vegalite.v6.schema.core import Root
from hypothesis import given, settings, strategies as st

from asyncbench import write_figures
from asyncbench.errors import ConfigError
from asyncbench.page.charts import figure_files
from asyncbench.page.charts.catalogue import published_drawn
from asyncbench.page.charts.chart import THEMES
from asyncbench.page.charts.naming import POINT, Box, box_of, labels_beside, text_width
from asyncbench.page.charts.print_size import INCHES, POINTS_PER_PIXEL, size_of
from asyncbench.page.charts.published_pages import about_pages, fitting_pages, size_note
from asyncbench.published.reports import GAPS, UNANSWERED, PublishedPicture
from asyncbench.tables.report import SIMULATED
from tests.commands import asyncbench_here, succeeded
from tests.page.charts.test_breaks import luminance
from tests.published.test_nupa_report import SUM, keep, problems, result, right

pytestmark = pytest.mark.long

ROWS: list[dict[str, Any]] = [
    {"task": task, "range": of, "model": model, "score": score, "low": score - 0.1, "high": score + 0.1}
    for task in ("add", "sub")
    for of, score in (("S", 0.75), ("M", 0.25))
    for model in ("a", "b")
]
PLACES: dict[str, dict[str, Any]] = {
    "bars": {"x": "range", "series": "model", "panel": "task"},
    "lines": {"x": "range", "series": "model", "panel": "task"},
    "stack": {"y": "task", "series": "model"},
    "map": {"x": "range", "y": "task", "panel": "model"},
    "points": {"x": "low", "series": "model", "text": "task", "x_scale": "share"},
}
DRAWN_AS = {"bars": "bar", "stack": "bar", "lines": "point", "map": "rect mark", "points": "point"}


def picture(kind: str, **changes: Any) -> PublishedPicture:
    told: dict[str, Any] = {"name": "p", "title": "Scores", "kind": kind, "rows": ROWS, "value": "score"}
    return PublishedPicture(**told | PLACES[kind] | changes)


def marks(shown):
    """How many marks of which kind a drawing has."""
    svg = vl_convert.vegalite_to_svg(published_drawn(shown))
    return Counter(re.findall(r'aria-roledescription="([^"]*)"', svg))


@pytest.mark.parametrize("kind", PLACES)
def test_every_kind_is_valid_and_draws_a_mark_for_each_row(kind):
    Root.validate(published_drawn(picture(kind)))  # against the schema of Vega-Lite
    assert marks(picture(kind))[DRAWN_AS[kind]] == len(ROWS)


@pytest.mark.parametrize("scale", ["share", "digits", "number", "log", "usd"])
def test_every_scale_can_be_the_height_of_a_line(scale):
    Root.validate(published_drawn(picture("lines", scale=scale)))
    assert marks(picture("lines", scale=scale))["point"] == len(ROWS)


def test_intervals_and_what_guessing_reaches_are_drawn_too():
    rows = [row | {"guess": 0.1 if row["task"] == "add" else None} for row in ROWS]
    plain = [{name: row[name] for name in ("task", "range", "model", "score", "guess")} for row in rows]
    assert marks(picture("bars", rows=plain))["rule mark"] == 0
    assert marks(picture("bars", rows=plain, guide="guess"))["rule mark"] == 1
    # each interval on a border in the colour of the ground
    assert marks(picture("bars", rows=rows, guide="guess"))["rule mark"] == 1 + 2 * len(rows)


def test_wrong_lengths_stand_at_equal_steps_where_they_double():
    shown = published_drawn(picture("lines", rows=[row | {"score": 20} for row in ROWS], scale="digits"))
    found = shown["spec"]["layer"][0]["encoding"]["y"]
    assert (found["scale"]["type"], found["scale"]["constant"], found["scale"]["domainMax"]) == (
        "symlog",
        1,
        31,
    )
    assert found["axis"]["values"][:5] == [0, 1, 3, 7, 15]


def test_more_series_than_colours_go_into_several_pictures():
    rows = [row | {"model": f"m{n}"} for row in ROWS for n in range(10)]
    parts = list(picture("bars", rows=rows).parted())
    assert [part.name for part in parts] == ["p-1", "p-2"]
    assert sorted((row for part in parts for row in part.rows), key=str) == sorted(rows, key=str)


def drawn_colours(svg, mark):
    """The colours of each series: what fills its marks and what stands around them, by name."""
    marks = re.findall(rf'<path aria-label="[^"]*series: ([^";]*)" [^>]*="{mark}" ([^>]*)>', svg)
    return {
        name: {*re.findall(r'(fill|stroke|stroke-dasharray)="([^"]*)"', look)} - {("fill", "none")}
        for name, look in marks
    }


def test_a_model_has_one_colour_in_all_pictures_of_a_run(tmp_path):
    asked = [problems(name, {3: 1}) for name in (SUM, "max_Float_Float_Float")]
    models = [f"m{n:02}" for n in range(10)]
    answers = [
        result(problem, right(problem), model=model)
        for model in models
        for task in (asked if model != "m00" else asked[1:])  # one picture lacks the first model
        for problem in task
    ]
    write_figures(keep(tmp_path / "night", *answers), tmp_path / "out", "nupa")
    looks = [
        (name, look)
        for path in tmp_path.glob("out/figure-*.svg")
        for name, look in drawn_colours(path.read_text("utf-8"), "bar").items()
    ]
    named = {name: {look for whose, looked in looks if whose == name for look in looked} for name in models}
    fills = {name: [colour for kind, colour in named[name] if kind == "fill"] for name in models}
    assert len([name for name, _ in looks]) > 2 * len(models)
    assert {len(colours) for colours in fills.values()} == {1}
    assert len({colour for (colour,) in fills.values()}) == len(models)


@pytest.mark.parametrize(("kind", "marked"), [("bars", "bar"), ("lines", "line mark")])
def test_series_beyond_the_colours_have_a_tint_or_a_dash_which_the_legend_shows(kind, marked):
    names = [f"m{n}" for n in range(10)]
    rows = [row | {"model": f"{name} †"} for row in ROWS for name in names[7:]]
    svg = vl_convert.vegalite_to_svg(published_drawn(picture(kind, rows=rows, palette=names)))
    looks = drawn_colours(svg, marked)
    assert [*looks] == [f"{name} †" for name in names[7:]]
    assert len({frozenset(look) for look in looks.values()}) == 3

    legend = svg[svg.index('aria-roledescription="legend"') :]
    symbols = re.findall(r'<path transform="translate[^>]*>', legend)[:3]
    for (name, look), symbol in zip(looks.items(), symbols, strict=True):
        assert all(f'{attribute}="{value}"' in symbol for attribute, value in look), name
    if kind == "lines":  # a circle would break a dash
        assert not any("A" in re.findall(r' d="([^"]*)"', symbol)[0] for symbol in symbols)


@pytest.mark.parametrize("width", INCHES)
def test_pages_of_a_map_fit_on_paper_and_share_out_its_panels_rows_and_columns(width):
    rows = [
        {"model": f"m{n}", "task": f"task {task}", "range": of, "score": 0.5}
        for n in range(30)
        for task in range(45)
        for of in range(4)
    ]
    places = {"x": "model", "y": "task", "panel": ""}
    for shown in (picture("map", rows=rows), picture("map", rows=rows[::4], **places)):
        pages = list(fitting_pages(shown, width))
        for _, svg in pages:
            wide, high = (pixels * POINTS_PER_PIXEL / 72 for pixels in size_of(svg))
            assert wide <= INCHES[width] + 0.02
            assert high <= 9.2
        assert sorted((row for page, _ in pages for row in page.rows), key=str) == sorted(shown.rows, key=str)


def test_an_overview_of_40_models_and_all_tasks_fits_on_one_page_by_shades_alone():
    rows = [
        {"model": f"provider/model-of-a-family-{n}", "task": f"multiply hard {task}", "score": task / 44}
        for n in range(40)
        for task in range(44)
    ]
    shown = picture("map", rows=rows, x="model", y="task", panel="", crowded=True)
    ((_, svg),) = fitting_pages(shown, "two")
    wide, high = (pixels * POINTS_PER_PIXEL / 72 for pixels in size_of(svg))
    assert wide <= 7.02
    assert high <= 9.2
    assert min(float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)) * POINTS_PER_PIXEL >= 7
    few = [row for row in rows if str(row["model"])[-2] == "-"]
    ((_, svg),) = fitting_pages(picture("map", rows=few, x="model", y="task", panel="", crowded=True), "two")
    assert svg.count(">50</text>") == 10  # figures stand where they have room


def test_series_stand_in_their_order_where_the_first_lacks_a_panel():
    rows = [row for row in ROWS if (row["task"], row["model"]) != ("add", "a")]
    shown = picture("bars", rows=rows, series_order=["a", "b"], palette=["a", "b"])
    svg = vl_convert.vegalite_to_svg(published_drawn(shown))
    assert re.findall(r">([ab])</text>", svg) == ["a", "b"]
    offset = published_drawn(shown)["spec"]["layer"][0]["encoding"]["xOffset"]
    assert offset["sort"] == ["a", "b"]


def test_pages_of_a_picture_share_their_scale():
    rows = [{**row, "model": f"m{n}", "score": 2**n} for n, row in enumerate(ROWS)]
    pages = [*picture("map", rows=rows, scale="digits").split("model", 2)]
    domains = [
        published_drawn(page)["spec"]["layer"][0]["encoding"]["color"]["scale"]["domain"] for page in pages
    ]
    assert domains == [[0, 255]] * 2


def test_nothing_right_and_not_asked_look_different():
    rows = [{**row, "score": 0.0} for row in ROWS if (row["task"], row["model"]) != ("sub", "b")]
    rows[0] = {**rows[0], "score": None}
    for kind, places in (("bars", {}), ("map", {"x": "range", "y": "task", "panel": "model"})):
        shown = picture(kind, rows=[{**row, "low": None} for row in rows], **places)
        svg = vl_convert.vegalite_to_svg(published_drawn(shown, notes=[]))
        assert svg.count(">–</text>") == 3
        assert "– was not asked." in svg
    assert marks(picture("bars", rows=rows))["tick"] == len(rows) - 1


def test_a_note_on_simulated_rows_stands_over_these_alone():
    printed = [{**row, "model": f"{row['model']} (published)"} for row in ROWS]
    assert not picture("bars", rows=printed).shows_folder
    assert picture("bars", rows=[*printed, ROWS[0]]).shows_folder
    assert not picture("bars", of_folder=False).shows_folder


def test_an_axis_of_wrong_lengths_says_what_was_done():
    shown = published_drawn(picture("bars", scale="digits"))
    title = shown["spec"]["layer"][0]["encoding"]["y"]["title"]
    assert title == ["log2(dlength + 1);", "ticks: dlength"]


@given(
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    top=st.sampled_from((0.2, 1, 9, 70, 900)),
    scale=st.sampled_from(("share", "digits", "number")),
    theme=st.sampled_from(tuple(THEMES)),
)
@settings(max_examples=60, deadline=None)
def test_the_text_of_a_cell_can_be_read_on_its_own_colour(shares, top, scale, theme):
    """Panels share a scale: the largest value of one may be pale."""
    largest = 1 if scale == "share" else top
    rows = [
        {"model": f"m{n}", "task": "add", "range": "S", "score": share * largest}
        for n, share in enumerate([*shares, 1.0])
    ]
    svg = vl_convert.vegalite_to_svg(published_drawn(picture("map", rows=rows, scale=scale), theme=theme))
    grounds, inks = (
        re.findall(rf'<{tag}[^>]*aria-roledescription="{kind} mark"[^>]*fill="(?!url)([^"]*)"', svg)
        for tag, kind in (("path", "rect"), ("text", "text"))
    )
    assert len(grounds) == len(inks) == len(rows)
    for ground, ink in zip(map(hexadecimal, grounds), inks, strict=True):
        low, high = sorted((luminance(ground), luminance(ink)))
        assert (high + 0.05) / (low + 0.05) >= 3, (ground, ink)


def hexadecimal(colour):
    """A colour of a drawing, which writes those between two others as `rgb(1, 2, 3)`."""
    return "#" + "".join(f"{int(n):02x}" for n in re.findall(r"\d+", colour)) if "(" in colour else colour


def test_a_map_of_wrong_lengths_prints_the_ticks_that_it_has_and_gives_each_figure_room():
    rows = [
        {"task": "add", "range": of, "model": "a", "score": score}
        for of, score in (("S", 0.0123), ("M", 1.23), ("L", 63.0))
    ]
    shown = published_drawn(picture("map", rows=rows, scale="digits"))
    labels = re.findall(r">([\d.]+)</text>", vl_convert.vegalite_to_svg(shown))
    assert [*labels[-7:]] == ["0", "1", "3", "7", "15", "31", "63"]
    assert shown["spec"]["width"]["step"] > 5.5 * len("0.0123")


def test_a_cell_that_has_only_a_reason_needs_no_text():
    rows = [{**ROWS[0], "digits": "5 / 20"}, {**ROWS[1], "score": None, "gap": next(iter(GAPS))}]
    svg = vl_convert.vegalite_to_svg(published_drawn(picture("map", rows=rows, text="digits")))
    assert svg.count(">5 / 20</text>") == 1


@pytest.mark.parametrize("width", INCHES)
def test_the_title_of_an_example_has_its_task_whole_and_its_model_below(width):
    tasks = ("multiply hard, scientific", "add, integer")
    examples = [
        f"{task}: meta-llama/Llama-3.1-{size}B-Instruct-Turbo-FP8" for task in tasks for size in (8, 70)
    ]
    rows = [{"example": name, "place": 1, "of": "answer", "right": 1} for name in examples]
    places = {"panel": "example", "x": "place", "y": "of", "value": "right", "scale": "right"}
    shown = picture("map", rows=rows, **places)
    ((_, svg),) = fitting_pages(shown, width)
    lines = re.findall(r"<tspan[^>]*>([^<]*)</tspan>", svg)
    for task in tasks:
        models = [model for line, model in pairwise(lines) if line == f"{task}:"]
        assert ["8B" in model for model in models] == [True, False]
        assert ["70B" in model for model in models] == [False, True]
    assert all(f"| {name} |" in shown.as_markdown() for name in examples)


def test_right_or_wrong_has_two_swatches_and_no_gradient():
    rows = [{**row, "score": float(row["score"] > 0.5)} for row in ROWS]
    svg = vl_convert.vegalite_to_svg(published_drawn(picture("map", rows=rows, scale="right")))
    assert re.findall(r">(right|wrong or missing)<", svg) == ["right", "wrong or missing"]
    assert "gradient" not in svg


@given(
    points=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40),
    width=st.sampled_from((290.0, 690.0)),
    letters=st.integers(1, 60),
)
@settings(max_examples=60, deadline=None)
def test_no_label_covers_a_point_or_a_label_at_40_models(points, width, letters):
    spots = [(x * width, y * 400) for x, y in points]
    names = [f"{n:02}{'m' * letters}" for n in range(len(spots))]
    labels = labels_beside(spots, names, range(len(spots)), width=width, height=400)
    covered = [Box(x - POINT, x + POINT, y - POINT, y + POINT) for x, y in spots]
    for spot, (label, offset) in zip(spots, labels, strict=True):
        box = box_of(spot, offset, text_width(label))
        assert box.fits(Box(0, width, 0, 400))
        assert not any(map(box.meets, covered)), label
        covered.append(box)
    numbers = [label for label, _ in labels if label not in names]
    assert numbers == [str(n) for n in range(1, len(numbers) + 1)]


def test_rows_are_a_table_with_their_notes():
    shown = picture(
        "bars", rows=[{**ROWS[0], "score": None, "guess": None}, *ROWS[1:]], notes=["How."]
    ).as_markdown()
    assert "**How.**" in shown
    assert "| add | S | a | - | 0.65 | 0.85 |" in shown  # and no column in which nothing stands


# ── the command ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Sums of two lengths, one of each wrong."""
    asked = problems(SUM, {3: 2, 5: 4})
    texts = ["The answer is 1" if n in (0, 2) else right(one) for n, one in enumerate(asked)]
    made = [result(one, text, provider="simulated") for one, text in zip(asked, texts, strict=True)]
    return keep(tmp_path_factory.mktemp("nupa") / "night", *made)


def test_the_command_writes_the_pictures_of_a_style_their_rows_and_its_tables(folder, tmp_path):
    done = succeeded(asyncbench_here("report", folder, "--style", "nupa", "--figures", tmp_path / "out"))
    written = done.stdout.splitlines()
    assert set(written) == set(map(str, tmp_path.glob("out/*")))
    forms = {path.suffix for path in tmp_path.glob("out/figure-5-sums.*")}
    assert forms == {".svg", ".png", ".pdf", ".md", ".tex"}
    table = (tmp_path / "out/figure-5-sums.md").read_text("utf-8")
    assert SIMULATED in table
    assert "| add, integer | S | m | 2 | 0.0945312 | 0.905469 | 0.5 |" in table
    assert "| add, integer | M | m | 4 | 0.300642 | 0.954413 | 0.75 |" in table
    assert SIMULATED.split(":")[0] in (tmp_path / "out/figure-5-sums.svg").read_text("utf-8")
    assert "exact match by task and range of lengths" in (tmp_path / "out/nupa.md").read_text("utf-8")


def test_a_style_without_pictures_and_a_folder_without_its_trials_are_refused(folder, tmp_path):
    with pytest.raises(
        ConfigError, match=r"--style heatmap has no pictures .* error-map, llm-arithmetic, nupa\."
    ):
        write_figures(folder, tmp_path, "heatmap")
    with pytest.raises(ConfigError, match="has no trials of llm_arithmetic, only of nupa"):
        write_figures(folder, tmp_path, "llm-arithmetic")
    with pytest.raises(ConfigError, match="--min-depth cannot be used with --style nupa"):
        write_figures(folder, tmp_path, "nupa", min_depth=2)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("chosen", "written"),
    [
        ("nupa:1", {"figure-1"}),
        ("nupa:table-10, nupa:5-map", {"table-10", "figure-5-map"}),
        ("nupa:figure-5-map,table-10", {"table-10", "figure-5-map"}),
        ("nupa:table-2", {"table-2-seconds", "table-2-digits"}),
    ],
)
def test_pictures_are_chosen_by_name_and_no_table_of_the_style_is_written(folder, tmp_path, chosen, written):
    asyncbench_here("report", folder, "--figures", chosen, "--out", tmp_path / "out")
    assert {path.stem for path in tmp_path.glob("out/*")} == written


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ("nupa:11", r"picture nupa:11 does not exist\. Choose from: .*figure-5-sums, .*table-10"),
        ("nupa:table-19", "picture nupa:table-19 has no data here"),
        ("nuba:5", r"--figures nuba:5: no style 'nuba' draws pictures\. Choose of: .*nupa"),
        ("nupa:5,heatmap:5", "no style 'heatmap' draws pictures"),
    ],
)
def test_a_picture_that_is_not_there_is_refused_with_those_that_are(folder, tmp_path, chosen, told):
    done = asyncbench_here("report", folder, "--figures", chosen, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert re.search(told, done.stderr)
    assert not (tmp_path / "out").exists()


def test_a_run_says_how_much_it_will_draw_before_it_draws(folder, tmp_path):
    heard = list[tuple[str, list[str]]]()
    write_figures(
        folder,
        tmp_path,
        "nupa",
        pictures=["table-10", "5"],
        notify=lambda note: heard.append((note, [path.name for path in tmp_path.iterdir()])),
    )
    assert heard == [("Drawing 3 pictures, about 3 MB.", [])]
    many = size_note([20, 41], "two", "nupa")
    assert many == "Drawing 2 pictures on about 61 pages, about 61 MB. Choose some with --figures nupa:5."


@pytest.mark.parametrize("width", INCHES)
@pytest.mark.parametrize("models", [3, 20])
def test_the_pages_that_are_announced_are_about_those_that_are_drawn(width, models):
    rows = [
        {"model": f"model-{n}", "task": f"task {task}", "range": of, "score": 0.5}
        for n in range(models)
        for task in range(10)
        for of in "SML"
    ]
    tables = picture("map", rows=rows[::3], x="model", y="task", panel="")
    for shown in (picture("bars", rows=rows), picture("map", rows=rows), tables):
        drawn = sum(1 for page in shown.parted() for _ in fitting_pages(page, width))
        assert abs(about_pages(shown, width) - drawn) <= max(1, drawn / 2), shown.kind


def test_no_page_of_an_earlier_run_with_more_models_stays(folder, tmp_path):
    earlier = ("figure-5-sums-1.svg", "figure-5-sums-12.md", "figure-8-1.png", "figure-8.tex")
    others = ("figure-5-sums-1.txt", "figure-5-sums-mine.svg", "figure-51.png", "notes-1.md")
    for name in (*earlier, *others):
        (tmp_path / name).write_text("earlier", "utf-8")
    written = write_figures(folder, tmp_path, "nupa")
    assert {*tmp_path.iterdir()} == {*written, *(tmp_path / name for name in others)}
    assert tmp_path / "figure-5-sums.svg" in written


def test_a_picture_of_several_pages_has_one_table_of_all_models():
    rows = [{"model": f"model-{n}", "task": "sum", "share": n / 40} for n in range(40)]
    picture = PublishedPicture(
        name="table-7", title="T", kind="map", rows=rows, x="model", y="task", value="share"
    )
    files = dict(figure_files._picture_files(picture, "one"))
    assert {"table-7-2.svg", "table-7-2.pdf"} <= files.keys()
    assert [name for name in files if name.endswith(".tex")] == ["table-7.tex"]
    assert all(f"model-{n}" in files["table-7.tex"].decode().replace("{}", "") for n in range(40))


def test_each_page_of_another_picture_is_a_float_that_says_all_in_its_caption():
    rows = [
        {"model": f"model-{n}", "task": "sum", "share": n / 40 or None, "gap": UNANSWERED} for n in range(40)
    ]
    notes = [SIMULATED, "Graded by `strict`."]
    shown = PublishedPicture(
        name="figure-9", title="A_title", kind="map", rows=rows, x="model", value="share"
    )
    picture = replace(shown, y="task", notes=notes, meaning="S: short.")
    files = dict(figure_files._picture_files(picture, "one"))
    first, *others = (text.decode() for name, text in files.items() if name.endswith(".tex"))
    assert r"\begin{figure}[!t]" in first
    assert "{figure-9-1}" in first
    assert rf"A\_title, 1 of {1 + len(others)}. SIMULATED: " in first
    assert (
        r"Graded by strict. S: short. * was asked, and has no graded answer.}\label{fig:figure-9-1}" in first
    )


@pytest.mark.parametrize("width", INCHES)
def test_a_picture_of_a_style_is_as_wide_as_columns_are_and_its_png_says_300_pixels_an_inch(
    folder, tmp_path, width
):
    write_figures(folder, tmp_path, "nupa", width=width)
    for path in tmp_path.glob("*.svg"):
        svg = path.read_text("utf-8")
        inches, pixels = (
            float(re.findall(pattern, svg)[0]) for pattern in (r'width="([\d.]+)in', r'viewBox="0 0 ([\d.]+)')
        )
        assert inches <= INCHES[width]
        letters = {float(size) * 72 * inches / pixels for size in re.findall(r'font-size="([\d.]+)px"', svg)}
        assert 7 <= min(letters) <= max(letters) < 9, path.name
        png = path.with_suffix(".png").read_bytes()
        a_metre = struct.unpack(">II", png[png.index(b"pHYs") + 4 :][:8])
        assert a_metre == (11811, 11811)
        assert struct.unpack(">I", png[16:20])[0] == pytest.approx(300 * inches, abs=2)
