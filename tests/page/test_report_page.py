"""A report as one HTML file: what it says, what it lets happen, and how it looks and prints."""

import re

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.page.report_page import page_of
from tests.commands import asyncbench_here
from tests.page.conftest import chromium
from tests.reports.answered import Asked, folder_of

pytestmark = pytest.mark.long

HOSTILE = "a<script>document.title='run'</script>&amp;"
LONG = "m" * 80


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    asked = [
        Asked(model=name, outcomes="+" * 30 + "-" * 20, provider=provider)
        for name, provider in ((HOSTILE, "simulated"), (LONG, "openai"))
    ]
    return folder_of(tmp_path_factory.mktemp("pages") / "night", asked)


def test_a_card_is_written_beside_the_results_or_where_out_says(folder, tmp_path):
    done = asyncbench_here("report", folder, "--style", "card", "--models", LONG, "--html")
    assert done.stdout == f"{folder / 'card.html'}. Open it in a browser, or print it.\n"
    out = tmp_path / "new" / "card.html"
    asyncbench_here("report", folder, "--style", "card", "--models", LONG, "--html", "--out", out)
    assert out.read_text("utf-8") == (folder / "card.html").read_text("utf-8")

    alone = asyncbench_here("report", folder, "--style", "card", LONG, "--html")
    assert alone.stdout == done.stdout
    unknown = asyncbench_here("report", folder, "--style", "card", "nobody")
    assert (unknown.returncode, "nobody" in unknown.stderr) == (2, True)

    several = asyncbench_here("report", folder, folder, "--style", "cost", "--html")
    assert several.returncode == 2
    mixed = asyncbench_here("report", folder, "--style", "cost", "--html", "--json")
    assert "--json cannot be combined with --html" in mixed.stderr


def test_a_page_has_all_notes_tables_and_gates_of_its_report(folder):
    report = ab.report(folder, "card", models=[LONG], fail_under="accuracy >= 0.9")
    page = page_of(report, report.heading())
    headings = [sheet.title for sheet in report.content() if not isinstance(sheet, str)]
    assert re.findall(r"<h2>(.*)</h2>", page) == headings
    assert re.findall(r"<h1>(.*)</h1>", page) == [f"Card of {LONG}"]
    assert report.gates[0].sentence in page.replace("&gt;", ">")
    assert "<script" not in page
    assert not re.findall(r"https?://|src=|url\(", page)


def test_a_page_says_first_that_results_are_simulated(folder, tmp_path):
    ab.write_report(ab.report(folder, "card", models=[HOSTILE]), tmp_path / "page.html")
    assert '<div class="note grave"><p>SIMULATED' in (tmp_path / "page.html").read_text("utf-8")


def test_a_file_that_cannot_be_written_is_refused(folder, tmp_path):
    with pytest.raises(ConfigError):
        ab.write_report(ab.report(folder), tmp_path)


@pytest.mark.parametrize("model", [HOSTILE, LONG], ids=["hostile", "long"])
def test_a_card_fits_a_desk_and_a_telephone_in_both_colours_and_one_sheet_of_paper(folder, tmp_path, model):
    path = ab.write_report(ab.report(folder, "card", models=[model]), tmp_path / "card.html")
    grounds = set()
    with chromium() as browser:
        for width in (1280, 400):
            for colours in ("light", "dark"):
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=colours)
                page.goto(path.as_uri())
                assert page.title() == f"Card of {model} · asyncbench"
                assert page.evaluate("document.documentElement.scrollWidth") == width
                grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
                if (width, colours) == (1280, "dark"):
                    printed = page.pdf(prefer_css_page_size=True)
                    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
                page.close()
    assert len(grounds) == 2
