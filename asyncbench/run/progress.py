"""Progress displays of a run. They sample its counters; the counters push nothing."""

import asyncio
import io
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, TextIO

from rich.console import Console, RenderableType
from rich.live import Live

from asyncbench.engine.budget import Cap
from asyncbench.run.picture import CountWorkers, Lanes, Pace, picture, sentence, still_life


class Screen(Protocol):
    """A way to show a sweep while it runs."""

    async def show(self, lanes: Lanes, caps: Sequence[Cap] = ()) -> None:
        """Show the counters, and what is spent of each cap, until cancelled."""

    def say(self, message: str) -> None:
        """Tell something once."""


class Quiet:
    """Shows nothing."""

    async def show(self, lanes: Lanes, caps: Sequence[Cap] = ()) -> None:
        """Do nothing."""

    def say(self, message: str) -> None:
        """Do nothing."""


class WatchedScreen:
    """A screen that shows workers, too: a run tells it how to count them before it shows anything."""

    count_workers: CountWorkers = tuple


class Lines(WatchedScreen):
    """A plain line every ten seconds: for logs and pipes."""

    INTERVAL_S = 1.0
    EVERY = 10  # samples: a line
    SELDOM = 60  # times as long, where nothing changes while batches run

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr

    async def show(self, lanes: Lanes, caps: Sequence[Cap] = ()) -> None:
        """Print a line for all models together, now and then."""
        pace, last_state, quiet = Pace(lanes, self.count_workers), None, 0
        while True:
            for _ in range(self.EVERY):
                await asyncio.sleep(self.INTERVAL_S)
                pace.sample()
            state, quiet = still_life(lanes), quiet + 1
            if state is None or state != last_state or quiet >= self.SELDOM:
                self.say(sentence(lanes, pace, caps))
                last_state, quiet = state, 0

    def say(self, message: str) -> None:
        """Print one line; nobody listening is no reason to stop a sweep."""
        with suppress(OSError):
            print(message, file=self._out, flush=True)


class Messages(Lines):
    """Says what must be said, and shows no progress."""

    async def show(self, lanes: Lanes, caps: Sequence[Cap] = ()) -> None:
        """Do nothing."""


class Terminal(WatchedScreen):
    """A table redrawn twice a second; it is gone when the run is over, and the summary follows."""

    INTERVAL_S = 0.5

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)

    async def show(self, lanes: Lanes, caps: Sequence[Cap] = ()) -> None:
        """Redraw until cancelled."""
        pace = Pace(lanes, self.count_workers)

        def drawn() -> RenderableType:
            size = self._console.size
            return picture(lanes, pace, caps, width=size.width, height=size.height)

        # A terminal that is gone is no reason to stop a sweep.
        with (
            suppress(OSError),
            Live(drawn(), console=self._console, auto_refresh=False, transient=True) as live,
        ):
            while True:
                await asyncio.sleep(self.INTERVAL_S)
                pace.sample()
                live.update(drawn(), refresh=True)

    def say(self, message: str) -> None:
        """Print a line above the table."""
        with suppress(OSError):
            self._console.print(message, markup=False, highlight=False)


class Notebook(Lines):
    """The same table in a cell of a notebook, redrawn once a second; the last one stays."""

    WIDTH, HEIGHT = 110, 60  # characters, lines

    def __init__(self) -> None:
        super().__init__(sys.stdout)

    async def show(self, lanes: Lanes, caps: Sequence[Cap] = ()) -> None:
        """Redraw until cancelled."""
        from IPython.display import display

        pace = Pace(lanes, self.count_workers)

        def drawn() -> dict[str, str]:
            return mime_bundle(picture(lanes, pace, caps, width=self.WIDTH, height=self.HEIGHT), self.WIDTH)

        handle = display(drawn(), raw=True, display_id=True)
        try:
            while True:
                await asyncio.sleep(self.INTERVAL_S)
                pace.sample()
                handle.update(drawn(), raw=True)
        finally:
            handle.update(drawn(), raw=True)


def mime_bundle(drawn: RenderableType, width: int) -> dict[str, str]:
    """Return a notebook's output by MIME type: HTML, and plain text for one that shows none."""
    console = Console(file=io.StringIO(), record=True, width=width, force_terminal=True, force_jupyter=False)
    console.print(drawn)
    return {
        "text/html": console.export_html(
            inline_styles=True, code_format='<pre style="line-height:1.3">{code}</pre>', clear=False
        ),
        "text/plain": console.export_text(),
    }


def default_screen(*, quiet: bool) -> Screen:
    """Return the screen for standard error: a table on a terminal that can redraw it, lines elsewhere."""
    if quiet:
        return Messages()
    redraws = sys.stderr.isatty() and not Console(stderr=True).is_dumb_terminal
    return Terminal() if redraws else Lines()


def screen_for(progress: bool | None) -> Screen:
    """Return the screen of a run that a program starts; `run_sweep` explains `progress`."""
    if progress is False:
        return Quiet()
    if Console(stderr=True).is_jupyter:
        return Notebook()
    return default_screen(quiet=False) if progress or sys.stderr.isatty() else Quiet()
