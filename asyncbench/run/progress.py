"""What a person sees while a sweep runs: sampled from the counters, never pushed by them."""

import asyncio
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from asyncbench.engine import Cap, Counters
from asyncbench.pricing import dollars_of
from asyncbench.shown import dollars, duration

WINDOW_S = 10.0  # rates are those of the last ten seconds

Lanes = Mapping[str, Counters]  # by alias


class Screen(Protocol):
    """A way to show a sweep while it runs."""

    async def show(self, lanes: Lanes, caps: Sequence[Cap] = ()) -> None:
        """Show the counters, and what is spent of each cap, until cancelled."""
        ...

    def say(self, message: str) -> None:
        """Tell something once."""
        ...


class Quiet:
    """Shows nothing."""

    async def show(self, lanes: Lanes, caps: Sequence[Cap] = ()) -> None:
        """Do nothing."""

    def say(self, message: str) -> None:
        """Do nothing."""


class Lines:
    """A plain line every ten seconds: for logs and pipes."""

    INTERVAL_S = 10.0

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr

    async def show(self, lanes: Lanes, caps: Sequence[Cap] = ()) -> None:
        """Print a line for all lanes together, now and then."""
        rates = ClosingRate(lanes)
        while True:
            await asyncio.sleep(self.INTERVAL_S)
            rates.sample()
            models = (_sentence(alias, counters, rates) for alias, counters in lanes.items())
            self.say("; ".join([*models, *map(cap_text, caps)]))

    def say(self, message: str) -> None:
        """Print one line; nobody listening is no reason to stop a sweep."""
        with suppress(OSError):
            print(message, file=self._out, flush=True)


class Messages(Lines):
    """Says what must be said, and shows no progress."""

    async def show(self, lanes: Lanes, caps: Sequence[Cap] = ()) -> None:
        """Do nothing."""


class Terminal:
    """A table redrawn four times a second."""

    INTERVAL_S = 0.25

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)

    async def show(self, lanes: Lanes, caps: Sequence[Cap] = ()) -> None:
        """Redraw until cancelled; the last picture stays."""
        rates = ClosingRate(lanes)
        with Live(_picture(lanes, rates, caps), console=self._console, auto_refresh=False) as live:
            try:
                while True:
                    await asyncio.sleep(self.INTERVAL_S)
                    rates.sample()
                    live.update(_picture(lanes, rates, caps), refresh=True)
            finally:
                live.update(_picture(lanes, rates, caps), refresh=True)

    def say(self, message: str) -> None:
        """Print a line above the table."""
        self._console.print(message, markup=False, highlight=False)


class ClosingRate:
    """Trials closed a second, over the last `WINDOW_S` seconds."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._samples: dict[str, deque[tuple[float, int]]] = {alias: deque() for alias in lanes}
        self.sample()

    def sample(self) -> None:
        """Note where every lane stands."""
        now_s = asyncio.get_running_loop().time()
        for alias, samples in self._samples.items():
            samples.append((now_s, self._lanes[alias].outcomes.total()))
            while len(samples) > 2 and samples[1][0] <= now_s - WINDOW_S:
                samples.popleft()

    def of(self, alias: str) -> float:
        """Return a lane's rate, 0.0 before there are two samples."""
        (first_s, first), (last_s, last) = self._samples[alias][0], self._samples[alias][-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else 0.0


def default_screen(*, quiet: bool) -> Screen:
    """Return what suits standard error: a table on a terminal, lines elsewhere."""
    if quiet:
        return Messages()
    return Terminal() if sys.stderr.isatty() else Lines()


def _picture(lanes: Lanes, rates: ClosingRate, caps: Sequence[Cap]) -> Group:
    return Group(_table(lanes, rates), *(Text(cap_text(cap)) for cap in caps))


def _table(lanes: Lanes, rates: ClosingRate) -> Table:
    table = Table("model", *("done", "in flight", "per s", "429s", "cost", "ETA"), box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for alias, counters in lanes.items():
        rate = rates.of(alias)
        table.add_row(
            alias,
            _done_text(counters),
            f"{counters.in_flight:,}",
            f"{rate:,.0f}",
            f"{counters.rate_limited:,}",
            cost_text(counters),
            eta_text(counters, rate),
        )
    return table


def _sentence(alias: str, counters: Counters, rates: ClosingRate) -> str:
    rate = rates.of(alias)
    return (
        f"{alias} {_done_text(counters)}, {counters.in_flight:,} in flight, {rate:,.0f}/s, "
        f"{counters.rate_limited:,} 429s, {cost_text(counters)}, ETA {eta_text(counters, rate)}"
    )


def _done_text(counters: Counters) -> str:
    skipped = f" ({counters.skipped:,} skipped)" if counters.skipped else ""
    return f"{counters.done:,}/{counters.planned:,}{skipped}"


def cost_text(counters: Counters) -> str:
    """Return the dollars spent so far; `?` marks attempts whose cost is unknown."""
    if counters.unpriced == counters.attempts and counters.attempts:
        # Of attempts without a reply the cost is unknown even where the price is known.
        return f"cost unknown ({counters.lost:,} lost)" if counters.lost == counters.attempts else "unpriced"
    return dollars(counters.cost_usd) + ("+?" if counters.unpriced else "")


def cap_text(cap: Cap) -> str:
    """Return what was spent of a cap, what calls of unknown cost may have cost, and what is in flight."""
    spent, reserved, limit = map(dollars_of, (cap.spent, cap.reserved, cap.limit))
    return spent_text(
        cap.name,
        spent,
        limit,
        reserved_usd=reserved,
        doubted_usd=dollars_of(cap.doubted),
        doubted_calls=cap.doubted_calls,
    )


def spent_text(
    name: str,
    spent_usd: float,
    limit_usd: float,
    *,
    reserved_usd: float = 0.0,
    doubted_usd: float = 0.0,
    doubted_calls: int = 0,
) -> str:
    """Return how far a budget is spent.

    `reserved_usd` is set aside for calls in flight. `doubted_usd` is the part of `spent_usd` that
    `doubted_calls` calls of unknown cost could cost at most.
    """
    in_flight = f" (+ {dollars(reserved_usd)} in flight)" if reserved_usd else ""
    if not doubted_usd:
        return f"{name}: {dollars(spent_usd)}{in_flight} of {dollars(limit_usd)} spent"
    known = max(0.0, spent_usd - doubted_usd)
    return (
        f"{name}: {dollars(known)}{in_flight} spent + up to {dollars(doubted_usd)} of {doubted_calls:,} "
        f"calls whose cost is unknown, of {dollars(limit_usd)}"
    )


def eta_text(counters: Counters, rate: float) -> str:
    """Return the time left at this rate, or why there is none."""
    if counters.suspended is not None:
        return "suspended"
    if counters.budget_stopped:
        return "budget spent"
    if not counters.open:
        return "done"
    if rate <= 0:
        return "-"
    return duration(round(counters.open / rate))
