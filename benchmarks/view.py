"""Measure `asyncbench view`, in seconds and megabytes: `python -m benchmarks.view`.

The server runs as a user would start it. Time counts from the start of the command to its address, to the
first screen in Chromium (which runs already), and to the last block; then of clicks over HTTP, a few
hundred of each sort, drawn from a seed. `--trials 10000000` makes a night of that size, `--folder` takes one
that is there.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from benchmarks.night import make_night

if TYPE_CHECKING:
    from playwright.async_api import Page

CHROMIUM: Final = "/usr/bin/chromium"
FIRST_SCREEN: Final = "#view svg, #view table"
OUTCOMES: Final = ("wrong", "no_answer", "truncated", "failed", "correct")


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, int, float]]:
    """Run the server; yields its first address, its process and when it was started."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "asyncbench", "view", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603  our own
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            print(f"address after {time.perf_counter() - began:.2f} s")
            yield line.split(": ", 1)[1].strip(), server.pid, began
        finally:
            asked_to_end = time.perf_counter()
            server.send_signal(signal.SIGINT)
            print(f"ended after {time.perf_counter() - asked_to_end:.2f} s with {server.wait()}")


def taken(pid: int) -> str:
    """Return the CPU seconds of a process so far, and its memory now and at most."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    cpu_s = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    now, most = (int(status[name].split()[0]) / 1000 for name in ("VmRSS", "VmHWM"))
    return f"{cpu_s:.1f} CPU s, {now:.0f} MB resident, at most {most:.0f} MB"


@asynccontextmanager
async def client(address: str) -> AsyncIterator[aiohttp.ClientSession]:
    """Be a browser that has opened the address."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(base_url=address.split("/?")[0], cookie_jar=jar) as session:
        async with session.get(address) as answer:
            answer.raise_for_status()
        yield session


@asynccontextmanager
async def window() -> AsyncIterator["Page"]:
    """Yield a window of Chromium, which has started."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield await browser.new_page(viewport={"width": 1400, "height": 1000})
        await browser.close()


async def first_screen(page: "Page", session: aiohttp.ClientSession, began: float) -> None:
    """Open the page with the cookies of a client, and print when there is something to see."""
    site = str(session._base_url)
    await page.context.add_cookies(
        [{"name": cookie.key, "value": cookie.value, "url": site} for cookie in session.cookie_jar]
    )
    await page.goto(site)
    await page.wait_for_selector(FIRST_SCREEN, timeout=120_000)
    print(f"first screen {time.perf_counter() - began:.2f} s after the command")
    await page.wait_for_selector("html[data-ready]", timeout=120_000)
    print(f"page ready {time.perf_counter() - began:.2f} s after the command")


async def get(session: aiohttp.ClientSession, path: str) -> Any:
    """Return the JSON of an answer, once it is counted."""
    async with session.get(path) as answer:
        if answer.status == 202:
            await asyncio.sleep(0.02)
            return await get(session, path)
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {await answer.text()}")
        return json.loads(await answer.read())


async def blocks(session: aiohttp.ClientSession, began: float) -> Any:
    """Wait for every block; return the first."""
    names = ("head", "standings", "breaks", "heat", "time", "cost", "errors", "loads")
    by_name: dict[str, Any] = {}
    for name in names:
        by_name[name] = await get(session, f"/blocks/{name}")
        print(f"block {name}: there {time.perf_counter() - began:.2f} s after the command")
    return by_name["head"]


def queries(head: Mapping[str, Any], draw: random.Random, clicks: int) -> dict[str, list[str]]:
    """Return addresses of clicks, by their sort."""
    entrants, kinds = range(len(head["entrants"])), range(len(head["kinds"]))
    lengths = head["lengths"] or {"least": 0, "most": 0}

    def any_of(choices: Sequence[Any]) -> Any:
        return draw.choice(choices)

    def some(make: Any) -> list[str]:
        return [f"/trials?{make()}" for _ in range(clicks)]

    return {
        "outcome": some(lambda: f"outcome={any_of(OUTCOMES)}&page={draw.randint(1, 40)}"),
        "cell": some(lambda: f"asked={any_of(entrants)}&kind={any_of(kinds)}"),
        "point": some(
            lambda: (
                f"asked={any_of(entrants)}&kind={any_of(kinds)}"
                f"&from={(n := draw.randint(lengths['least'], lengths['most']))}&to={n}"
            )
        ),
        "all": some(lambda: f"page={draw.randint(1, max(1, head['trials_in_all'] // 50))}"),
        "text": some(lambda: f"text={draw.randint(100, 99999)}"),
        "disagree": some(lambda: f"disagree=1&page={draw.randint(1, 40)}"),
        "position": some(lambda: f"end={any_of(('first', 'last'))}&position={draw.randint(1, 6)}"),
    }


async def clicked(session: aiohttp.ClientSession, head: Mapping[str, Any], clicks: int, seed: int) -> None:
    """Click and print how long each sort took."""
    draw = random.Random(seed)  # noqa: S311  repeatable, no secret
    rows: list[Mapping[str, Any]] = []
    every: list[float] = []
    for sort, addresses in queries(head, draw, clicks).items():
        took = []
        for address in addresses:
            began = time.perf_counter()
            listing = await get(session, address)
            took.append(time.perf_counter() - began)
            rows += listing["rows"][:2]
        every += report(sort, took)
    for sort, name in (("trial", "id"), ("question", "question")):
        took = []
        for row in draw.sample(rows, min(clicks, len(rows))):
            began = time.perf_counter()
            await get(session, f"/{sort}/{row[name]}")
            took.append(time.perf_counter() - began)
        every += report(sort, took)
    report("every click", every)


def report(sort: str, took: Sequence[float]) -> Sequence[float]:
    """Print the percentiles of some seconds."""
    hundredths = statistics.quantiles(took, n=100, method="inclusive")
    p50, p95 = hundredths[49], hundredths[94]
    print(f"{sort}: {len(took)} clicks, p50 {p50:.3f} s, p95 {p95:.3f} s, max {max(took):.3f} s")
    return took


async def measured(folder: Path, *, clicks: int, browser: bool) -> None:
    """Print all figures of a folder."""
    print(f"{folder}, load average {os.getloadavg()[0]:.1f}")
    async with AsyncExitStack() as until_ended:
        page = await until_ended.enter_async_context(window()) if browser else None
        with served(folder) as (address, pid, began):
            session = await until_ended.enter_async_context(client(address))
            if page is not None:
                await first_screen(page, session, began)
                print(taken(pid))
            head = await blocks(session, began)
            print(f"{head['trials_in_all']:,} trials; {taken(pid)}")
            await clicked(session, head, clicks, seed=22)
            print(taken(pid))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="measure this results folder")
    parser.add_argument("--trials", type=int, default=1_000_000, help="of the night that is made")
    parser.add_argument("--clicks", type=int, default=200, help="of each sort")
    parser.add_argument("--no-browser", action="store_true", help="leave Chromium out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="asyncbench-view-") as room:
        folder = options.folder or Path(room) / "night"
        if options.folder is None:
            make_night(folder, trials=options.trials)
        asyncio.run(measured(folder, clicks=options.clicks, browser=not options.no_browser))


if __name__ == "__main__":
    main()
