"""Names of every picture in a real browser: none covers another or leaves its frame, however many models."""

from itertools import islice
from pathlib import Path

import pytest

from asyncbench import generate
from asyncbench.analysis.choosing import chosen
from asyncbench.page.charts import figure_files, print_size, published_pages
from asyncbench.page.charts.pictures import pictures_of
from asyncbench.problems.opening import open_set
from asyncbench.records import Condition
from benchmarks.night import make_night
from tests.published.test_nupa_report import result, right
from tests.store.made import results_folder

pytestmark = pytest.mark.long

MODELS = (2, 12, 90)
MOST_BYTES = 2_000_000  # of a file
NAMES = [
    f"{family}{end}"
    for end in ("", "-mini", "-low", "-medium", "-high", "-thinking", "-thinking16000", "-4k", "-high-4k")
    for family in (
        *("gpt-5", "gpt-4.1", "claude-opus-4-6", "claude-sonnet-4-20250514", "gemini-3.1-pro-preview-03-25"),
        *("deepseek-v3.2", "qwen3-14b@iq4_xs-ctx32k", "llama-3.1-405b-instruct-turbo", "o4-mini-2025-04-16"),
        "mistral-large-2411",
    )
]

BOXES = Path(__file__).with_name("boxes.js").read_text("utf-8")


@pytest.fixture(scope="module")
def faults_of(tab):
    """Which texts of a drawing meet another or the frame."""
    page = tab()

    def measured(svg):
        page.set_content(f"<body style='margin: 0'>{svg}")
        texts, faults = page.evaluate(BOXES)
        assert texts > 5
        return faults

    return measured


def test_the_measure_finds_what_covers_another_and_what_leaves_the_frame(faults_of):
    others = "".join(f"<text x='{90 * n}' y='90'>apart</text>" for n in range(6))
    turned = "<text transform='translate(20 60) rotate(-60)'>name</text>" * 2
    svg = "<svg width='600' height='100'>{}</svg>".format
    assert faults_of(svg(others + turned)) == []  # one on a border of its own
    over = "<text x='20' y='50'>one</text><text x='30' y='52'>other</text><text x='580' y='30'>outside</text>"
    assert faults_of(svg(others + over)) == [["outside", "the frame"], ["one", "other"]]


def first_pages(folder, width):
    """The first page of each chart of a folder."""
    of = chosen(folder)
    note, pictures = figure_files._charts(of, pictures_of)
    for picture in pictures:
        ((_, svg),) = islice(figure_files.chart_files(picture, [note], width), 1)
        yield picture.name, svg.decode()


def first_published(folder, style, width="two"):
    """The first page of each picture of a style, beside what its document prints."""
    published = figure_files.published_of(chosen(folder), style, {"published": True})
    for picture in published.pictures():
        if picture.drawable:
            _, svg = next(published_pages.fitting_pages(next(picture.parted()), width))
            yield picture.name, svg


@pytest.fixture(scope="module", params=MODELS)
def night(request, tmp_path_factory):
    """A folder of so many models."""
    folder = tmp_path_factory.mktemp("many") / "night"
    make_night(folder, trials=72 * request.param, models=request.param, names=NAMES)
    return folder


@pytest.mark.parametrize("width", print_size.INCHES)
def test_no_name_of_a_chart_covers_another(night, width, faults_of):
    drawn = dict(first_pages(night, width))
    assert len(drawn) > 12
    assert {name: faults for name, svg in drawn.items() if (faults := faults_of(svg))} == {}
    assert [name for name, svg in drawn.items() if len(svg) > MOST_BYTES] == []


def test_no_name_of_a_picture_of_llm_arithmetic_covers_another(night, faults_of):
    drawn = dict(first_published(night, "llm-arithmetic"))
    assert len(drawn) > 12
    assert {name: faults for name, svg in drawn.items() if (faults := faults_of(svg))} == {}
    assert [name for name, svg in drawn.items() if len(svg) > MOST_BYTES] == []
    maps = {name: svg for name, svg in drawn.items() if name.startswith("la-9")}
    pixels = {name: len(print_size.png_of(svg, print_size.INCHES["two"])) for name, svg in maps.items()}
    assert len(pixels) == 4
    assert max(pixels.values()) < MOST_BYTES


@pytest.mark.parametrize("models", MODELS)
def test_no_name_of_a_picture_of_nupa_covers_another(models, faults_of, tmp_path):
    generate("nupa", tmp_path / "nupa.parquet", seed=1, per_length=1, lengths="5,12")
    problems = [*open_set(tmp_path / "nupa.parquet").read()]
    conditions = (Condition(), Condition(name="shots-5", shots=5), Condition(name="rules", style="rules"))
    results = [
        result(one, right(one) if (n + place) % 3 else "The answer is 7", model=name, condition=condition)
        for n, name in enumerate(NAMES[:models])
        for condition in conditions[: 3 if n < 2 else 1]
        for place, one in enumerate(problems)
    ]
    drawn = dict(first_published(results_folder(tmp_path / "night", *results), "nupa"))
    assert len(drawn) > 30
    assert {name: faults for name, svg in drawn.items() if (faults := faults_of(svg))} == {}
    assert [name for name, svg in drawn.items() if len(svg) > MOST_BYTES] == []
