"""One browser for all tests of the page: Debian's Chromium, through Playwright."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from asyncbench.page import BLOCKS, write_page
from asyncbench.views import counted
from tests.page.hostile import make_hostile
from tests.page.made import make_night

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
DESK = {"width": 1280, "height": 900}
PHONE: Any = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
AXE = Path(__file__).with_name("axe.min.js").read_text("utf-8")


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
def blocks(night) -> dict[str, Any]:
    """The blocks of the night, as Python makes them; rows that are sent by column as rows."""
    return counted(night, lambda views: {name: unpacked(make(views)) for name, make in BLOCKS.items()})


def unpacked(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [unpacked(one) for one in value]
    if not isinstance(value, dict):
        return value
    if [*value] == ["columns"]:
        names, columns = [*value["columns"]], value["columns"].values()
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return {name: unpacked(one) for name, one in value.items()}


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

    def __init__(self, page: Any, home: str = "file:") -> None:
        self.page = page
        self.home = home  # how the addresses begin that it may ask for
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
        """Let the page's own file or server through; anything else it would fetch is noted and refused."""
        request = route.request
        of_file = self.home == "file:"
        if request.url.startswith(self.home) and (request.is_navigation_request() or not of_file):
            route.continue_()
        else:
            self.told.append(f"request: {request.url}")
            route.abort()

    def open(self, folder: Path, hash_: str = "") -> "Opened":
        return self.goto(f"{(folder / 'report.html').as_uri()}{hash_}")

    def goto(self, address: str) -> "Opened":
        self.page.goto(address)
        return self.settled()

    def settled(self) -> "Opened":
        """Wait until what is looked at is shown and drawn."""
        self.page.wait_for_selector("html[data-ready][data-drawn]", state="attached")
        return self

    def until(self, expression: str, *, seconds: int = 15) -> None:
        """Wait until an expression is true: playwright would make code of text, which the policy forbids."""
        for _ in range(10 * seconds):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(expression)

    def again(self, hash_: str = "") -> "Opened":
        """Show the page as it is when it is opened, without reading it again."""
        self.told.clear()
        self.page.evaluate(
            """hash => {
                const open = document.querySelectorAll("details[open]:not(#filter-box)");
                for (const box of open) box.open = false;
                document.activeElement.blur();
                history.replaceState(null, "", hash || location.pathname);
                dispatchEvent(new PopStateEvent("popstate"));
            }""",
            hash_,
        )
        return self.settled()

    def view(self, name: str) -> "Opened":
        self.page.click(f"#tabs a[data-view={name}]")
        return self.settled()

    def rows(self, chart: str) -> list[dict[str, Any]]:
        """Return the rows that a chart was drawn from, once it is drawn."""
        self.settled()
        card = self.page.locator(f"[data-chart={chart}]")
        assert card.locator("svg").count() == 1
        found: list[dict[str, Any]] = card.locator(".chart").evaluate("holder => holder.toDraw.rows")
        return found

    def heat(self, card: str) -> dict[tuple[str, str], str]:
        """Return a table of tasks and models: the figure of each cell, "" where there is none."""
        table = self.page.locator(f"#{card} table")
        models = table.locator("thead th:not(:first-child)").all_inner_texts()
        return {
            (line.locator("th").inner_text(), model): cell
            for line in table.locator("tbody tr").all()
            for model, cell in zip(
                models,
                line.locator("td").evaluate_all(
                    "all => all.map((cell) => cell.querySelector('a')?.textContent ?? '')"
                ),
                strict=True,
            )
        }

    def found(self) -> int:
        """Return how many answers the list has."""
        return int(self.page.inner_text("#found").partition(" ")[0].replace(",", ""))

    def only(self, choice: str, value: str) -> "Opened":
        """Press "only" beside a value of a filter."""
        self.page.click(f"[data-choice={choice}] > summary")
        self.page.click(f'[data-choice={choice}] li:has(input[value="{value}"]) .only')
        self.settled()
        self.page.keyboard.press("Escape")
        return self

    def axe(self) -> list[str]:
        """Return what axe-core finds that is serious, as its rule and the elements; drawings have tables."""
        if not self.page.evaluate("typeof axe === 'object'"):
            self.page.evaluate(AXE)  # not a script element: the policy refuses those
        found = self.page.evaluate(
            "axe.run({exclude: ['.chart']}, {resultTypes: ['violations']}).then((all) => all.violations)"
        )
        return [
            f"{rule['id']}: {[node['target'] for node in rule['nodes'][:3]]}"
            for rule in found
            if rule["impact"] in ("serious", "critical")
        ]


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


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the page of a folder as `asyncbench view` does; yields the address that it prints."""
    command = [sys.executable, "-m", "asyncbench", "view", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().rpartition(" ")[2].strip()
        finally:
            server.send_signal(signal.SIGINT)


@pytest.fixture
def opened_live(browser):
    """Open the page of a server: `opened_live(address, hash, **context)`."""
    contexts = []

    def make(address, hash_="", **about):
        contexts.append(browser.new_context(**{"viewport": DESK, **about}))
        home = address.partition("?")[0]
        return Opened(contexts[-1].new_page(), home).goto(f"{address}{hash_}")

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
