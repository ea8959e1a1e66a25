"""One browser for all tests of the page: Debian's Chromium, through Playwright."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asyncbench.page.writing import write_page
from tests.page.hostile import make_hostile
from tests.page.made import make_night

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
DESK = {"width": 1280, "height": 900}


@pytest.fixture(
    scope="module"
)  # while it runs, so does its event loop: `asyncio.run` of other tests would fail
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip(
            f"the page is opened in Debian's Chromium, and {CHROMIUM} is not there: apt install chromium"
        )
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright opens the page: make test has it"
    )
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=str(CHROMIUM), args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def night(tmp_path_factory) -> Path:
    """A results folder with its page."""
    return _with_page(make_night(tmp_path_factory.mktemp("page") / "night"))


@pytest.fixture(scope="session")
def simulated(tmp_path_factory) -> Path:
    return _with_page(make_night(tmp_path_factory.mktemp("page") / "rehearsal", simulated=True, repeats=2))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory) -> Path:
    return _with_page(make_hostile(tmp_path_factory.mktemp("page") / "<b onclick=alert(1)> {{data}}"))


def _with_page(folder: Path) -> Path:
    write_page(folder)
    return folder


class Opened:
    """A page in a browser, and all that it did beyond being looked at."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.told: list[str] = []  # of the console, errors, dialogs and requests: there should be none
        page.on("console", lambda message: self.told.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.told.append(f"error: {error}"))
        page.on("dialog", self._dismiss)
        page.set_default_timeout(15_000)
        page.route("**/*", self._pass_on)

    def _dismiss(self, dialog: Any) -> None:
        self.told.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _pass_on(self, route: Any) -> None:
        """Let the page's own file through; anything else it would fetch is noted and refused."""
        request = route.request
        if request.is_navigation_request() and request.url.startswith("file:"):
            route.continue_()
        else:
            self.told.append(f"request: {request.url}")
            route.abort()

    def open(self, folder: Path, hash_: str = "") -> "Opened":
        self.page.goto(f"{(folder / 'report.html').as_uri()}{hash_}")
        self.page.wait_for_selector("html[data-ready]")
        return self

    def again(self, hash_: str = "") -> "Opened":
        """Show the page as it is when it is opened, without reading it again."""
        self.told.clear()
        self.page.evaluate(
            """hash => {
                for (const box of document.querySelectorAll("details.choice[open]")) box.open = false;
                document.activeElement.blur();
                history.replaceState(null, "", hash || location.pathname);
                dispatchEvent(new PopStateEvent("popstate"));
            }""",
            hash_,
        )
        return self

    def view(self, name: str) -> None:
        self.page.click(f"#tabs a[data-view={name}]")

    def rows(self, chart: str, nth: int = 0) -> list[dict[str, Any]]:
        """Return the rows that a chart was drawn from, once it is drawn."""
        card = self.page.locator(f"[data-chart={chart}]").nth(nth)
        card.locator("svg").first.wait_for(state="attached")
        found: list[dict[str, Any]] = card.locator(".chart").evaluate("holder => holder.drawn.rows")
        return found

    def tile(self, name: str) -> str:
        return str(
            self.page.locator(".tile", has=self.page.get_by_text(name, exact=True)).locator("dd").inner_text()
        )


@pytest.fixture
def opened(browser):
    """Make pages of their own: `opened(folder, hash, **context)`."""
    contexts = []

    def make(folder, hash_="", **about):
        contexts.append(browser.new_context(**{"viewport": DESK, **about}))
        return Opened(contexts[-1].new_page()).open(folder, hash_)

    yield make
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def standing_open(browser, night) -> Iterator[Opened]:
    context = browser.new_context(viewport=DESK)
    yield Opened(context.new_page()).open(night)
    context.close()


@pytest.fixture
def at_night(standing_open):
    """The page of the night, one for all tests that leave it as it was: `at_night(hash)`."""
    return standing_open.again
