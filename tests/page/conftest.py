"""One browser for all tests of the page: Debian's Chromium, through Playwright."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import counted
from asyncbench.page.blocks import BLOCKS
from asyncbench.page.live.serving import live_page
from asyncbench.page.writing import write_page
from tests.page.hostile import make_hostile
from tests.page.made import make_night
from tests.processes import HANG_S
from tests.recorded import made_once

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
DESK = {"width": 1280, "height": 900}
STANDARD: Any = {"media": "null", "color_scheme": "light", "reduced_motion": "no-preference"}
PHONE: Any = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
MOST_MS = 60_000  # that a busy machine takes for what is there at once
AXE = Path(__file__).with_name("axe.min.js").read_text("utf-8")

T = TypeVar("T")
RUNNING: list[Any] = []  # the browser of this process, from the first test that needs one on


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser, or yield the one that runs: its event loop runs, too, so no test may `asyncio.run`."""
    if RUNNING:
        yield RUNNING[0]
        return
    if not CHROMIUM.exists():
        pytest.skip(
            f"the page is opened in Debian's Chromium, and {CHROMIUM} is not there: apt install chromium"
        )
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright opens the page: make test has it"
    )
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=str(CHROMIUM), args=list(ARGUMENTS), timeout=MOST_MS
        )
        RUNNING.append(browser)
        yield browser
        RUNNING.clear()
        browser.close()


@pytest.fixture(scope="package")  # which these tests are by their `__init__.py`
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def night(tmp_path_factory) -> Path:
    """A results folder with its page."""
    return _with_page(tmp_path_factory, "night", make_night)


@pytest.fixture(scope="session")
def blocks(night) -> dict[str, Any]:
    """The blocks of the night, as Python makes them; rows that are sent by column as rows."""
    found: dict[str, Any] = unpacked(blocks_of(night))
    return found


@cache
def blocks_of(folder: Path) -> dict[str, Any]:
    """Return the blocks of a folder that stays as it is."""
    return counted(folder, lambda views: {name: make(views) for name, make in BLOCKS.items()})


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
    return _with_page(
        tmp_path_factory, "rehearsal", lambda folder: make_night(folder, simulated=True, repeats=2)
    )


@pytest.fixture(scope="session")
def hostile(tmp_path_factory) -> Path:
    return _with_page(tmp_path_factory, "<b onclick=alert(1)> {{data}}", make_hostile)


def _with_page(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Path]) -> Path:
    """Return a folder with its page, which is made once for all processes of a test run."""
    return made_once(factory, f"page of {name}", lambda place: write_page(make(place / name))) / name


class Opened:
    """A page in a browser, and all that it did beyond being looked at."""

    def __init__(self, page: Any, home: str = "file:") -> None:
        self.page = page
        self.home = home  # how the addresses begin that it may ask for
        self.told: list[str] = []  # of the console, errors, dialogs and requests: there should be none
        page.on("console", lambda message: self.told.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.told.append(f"error: {error}"))
        page.on("dialog", self._dismiss)
        page.set_default_timeout(MOST_MS)
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

    def open(self, folder: Path, hash_: str = "", **about: Any) -> "Opened":
        """Open the page of a folder as who has not seen it yet; a new tab would take three times as long.

        `about` is the viewport, or what `emulate_media` takes.
        """
        self.page.goto("about:blank")  # else a page that is there would only be told of another hash
        self.page.set_viewport_size(about.pop("viewport", self.page.viewport_size))
        self.page.emulate_media(**STANDARD | about)
        self.told.clear()
        return self.goto(f"{(folder / 'report.html').as_uri()}{hash_}")

    def goto(self, address: str) -> "Opened":
        self.page.goto(address)
        return self.settled()

    def settled(self) -> "Opened":
        """Wait until what is looked at is shown and drawn."""
        self.page.wait_for_selector("html[data-ready][data-drawn]", state="attached")
        return self

    def until(self, expression: str) -> None:
        """Wait until an expression is true: playwright would make code of text, which the policy forbids."""
        for _ in range(MOST_MS // 100):
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

    def axe(self, *rules: str) -> list[str]:
        """Return what axe-core finds that is serious, as its rule and the elements; drawings have tables.

        Only some rules are looked at, if they are named.
        """
        if not self.page.evaluate("typeof axe === 'object'"):
            self.page.evaluate(AXE)  # not a script element: the policy refuses those
        found = self.page.evaluate(
            "how => axe.run({exclude: ['.chart']}, how).then((all) => all.violations)",
            {"resultTypes": ["violations"], **({"runOnly": [*rules]} if rules else {})},
        )
        return [
            f"{rule['id']}: {[node['target'] for node in rule['nodes'][:3]]}"
            for rule in found
            if rule["impact"] in ("serious", "critical")
        ]


@pytest.fixture(scope="package")
def tab(browser) -> Iterator[Any]:
    """Make tabs; they are closed in the end."""
    contexts = []

    def make(**about):
        contexts.append(browser.new_context(**{"viewport": DESK, **about}))
        return contexts[-1].new_page()

    yield make
    for context in contexts:
        context.close()


@pytest.fixture(scope="package")
def spare(tab) -> Opened:
    return Opened(tab())


@pytest.fixture
def opened(spare):
    """Open a page anew, one at a time: `opened(folder, hash, **about)`."""
    return lambda folder, hash_="", **about: spare.open(folder, hash_, **{"viewport": DESK, **about})


@pytest.fixture(scope="package")
def on_phone(tab) -> Opened:
    return Opened(tab(**PHONE))


@pytest.fixture(scope="package")
def standing_open(tab, night) -> Opened:
    return Opened(tab()).open(night)


@pytest.fixture
def at_night(standing_open):
    """The page of the night, one for all tests that leave it as it was: `at_night(hash)`."""
    return standing_open.again


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the page of a folder as `asyncbench view` does, in a thread, and look at it all the time."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def done(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result(HANG_S)

    async def begin() -> str:
        return await page.__aenter__()

    async def end() -> None:
        await page.__aexit__(None, None, None)

    page = live_page(chosen(folder), every_s=0.1, less_often=0.0)
    try:
        address = done(begin())
        try:
            yield address
        finally:
            done(end())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def opened_live(tab):
    """Open the page of a server in a tab of its own: `opened_live(address, hash, **context)`.

    All tabs are of one browser: the address lets the first in, and the others have its cookie.
    """
    tabs: list[Any] = []

    def make(address, hash_="", **about):
        home = address.partition("?")[0]
        cookies = tabs[0].context.storage_state() if tabs else None
        tabs.append(tab(storage_state=cookies, **about))
        opened = Opened(tabs[-1], home)
        return opened.goto(f"{home}{hash_}") if cookies else opened.goto(address).goto(f"{home}{hash_}")

    yield make
    for one in tabs:
        one.close()  # it would ask on
