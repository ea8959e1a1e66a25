"""The docs site is whole, and nothing of it comes from another host."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.page.conftest import chromium

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FETCHED = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=["']?(?!data:)([^"'\s>]+)"""
)


def named(nav):
    """Yield the pages that a table of contents names."""
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            for held in entry.values():
                yield from named([held] if isinstance(held, str) else held)


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


def test_every_page_is_in_the_table_of_contents(site):
    with (ROOT / "zensical.toml").open("rb") as file:
        nav = set(named(tomllib.load(file)["project"]["nav"]))
    built = {path.relative_to(site).with_suffix(".md").as_posix() for path in site.rglob("*.html")}
    assert len(nav) > 20
    assert built - {"404.md"} == nav


def test_every_page_has_a_markdown_twin_that_llms_txt_lists_and_whose_links_lead_somewhere(site):
    listed = LINK.findall((site / "llms.txt").read_text("utf-8"))
    twins = {path.relative_to(site).as_posix(): path.read_text("utf-8") for path in site.rglob("*.md")}
    assert sorted(listed) == sorted(twins)
    assert len(twins) > 30
    for name, text in twins.items():
        page = (site / name).with_suffix(".html").read_text("utf-8")
        assert f'type="text/markdown" href="{Path(name).name}"' in page
        assert "<!-- from the code" not in text
        links = [link.partition("#")[0] for link in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.S))]
        assert [
            link for link in links if "://" not in link and not (site / name).parent.joinpath(link).exists()
        ] == []


def test_no_page_fetches_anything_from_another_host(site):
    fetched = {
        address for page in site.rglob("*.html") for address in FETCHED.findall(page.read_text("utf-8"))
    }
    assert len(fetched) > 3
    assert [address for address in fetched if "//" in address] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_opens_from_the_disk_and_its_search_finds_without_a_request(site, browser, scheme):
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    requested: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((site / "reference" / "commands.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("tutorial")
    page.locator("a[href*='tutorial.html']", has_text="minutes").first.wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.type("thinking_tokens")
    page.locator("a[href*='models.html'][href$='#in-models-thinking_tokens']").first.wait_for()
    dark = page.evaluate("document.body.dataset.mdColorScheme") == "slate"
    context.close()
    assert dark == (scheme == "dark")
    assert len(requested) > 3
    assert [url for url in requested if not url.startswith("file:")] == []
    assert errors == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md"])
def test_a_link_beside_the_pages_leads_somewhere(site, name):
    text = (ROOT / name).read_text("utf-8")
    links = [link for link in LINK.findall(text) if "://" not in link]
    assert links or name != "README.md"
    for link in links:
        path, _, anchor = link.partition("#")
        place = (ROOT / name).parent / path
        assert place.exists(), link
        if anchor:
            page = site / place.relative_to(ROOT / "docs").with_suffix(".html")
            assert f'id="{anchor}"' in page.read_text("utf-8"), link
