"""Progress of a run: a table for terminals and notebooks, a line for logs."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from asyncbench.engine.budget import Cap
from asyncbench.engine.telemetry import Counters
from asyncbench.providers.workers.process import WorkerCounts
from asyncbench.records import Attempt, waits
from asyncbench.run.costs import cap_text, cost_text, costs_text, phrases
from asyncbench.tables.numbers import days, duration, number_of, whole_percent
from asyncbench.tables.screen import middle_cut, safe

Lanes = Mapping[str, Counters]  # by alias
CountWorkers = Callable[[], Sequence[WorkerCounts]]  # none: the run makes its calls itself

WINDOW_S: Final = 10.0  # rates are those of the last ten seconds
FEWEST_ROWS: Final = 3
IN_A_LINE: Final = 6  # models that a line for logs tells apart
SHORTEST_NAME, LONGEST_NAME = 10, 40  # characters
SHORTEST_BAR, LONGEST_BAR = 6, 30
PAUSED: Final = waits.WORDS[waits.RESUME]  # by a person; over, it tells nothing
DUE_TIMES: Final = "due times"  # of a load
BATCHES: Final = "batches"  # what a model waits for that has nothing else to do

STYLES: Final = {
    "done": "green",
    "stopped": "red",
    "budget spent": "red",
    **dict.fromkeys((PAUSED, "no reply", "429 pause", "429 back-off"), "yellow"),
    **dict.fromkeys(("daily limit", "budget", "this computer"), "yellow"),
}


class _PaceSample(NamedTuple):
    at_s: float
    calls: int
    closed: int
    waits_for: str | None


class Pace:
    """Speed of models and workers, and the limits that models met, over the last `WINDOW_S` seconds."""

    def __init__(self, lanes: Lanes, count_workers: CountWorkers = tuple) -> None:
        self._lanes, self._count_workers = lanes, count_workers
        self._samples: dict[str, deque[_PaceSample]] = {alias: deque() for alias in lanes}
        self.began_s = asyncio.get_running_loop().time()
        self.sample()

    def sample(self) -> None:
        """Note where every model and every worker stands."""
        self.now_s = asyncio.get_running_loop().time()
        self.workers = self._count_workers()
        for alias, samples in self._samples.items():
            counters = self._lanes[alias]
            closed = counters.outcomes.total() + counters.skipped
            samples.append(_PaceSample(self.now_s, counters.attempts, closed, counters.waits_for))
            while len(samples) > 2 and samples[1].at_s <= self.now_s - WINDOW_S:
                samples.popleft()

    def calls_per_s(self, aliases: Iterable[str]) -> float:
        """Return the calls that ended in a second, of several models together."""
        return sum(self._per_s(alias, "calls") for alias in aliases)

    def left_s(self, aliases: Iterable[str]) -> float | None:
        """Return the time left of the slowest lane, or None if one does not move or none is open."""
        lanes = {alias: self._lanes[alias] for alias in aliases}
        running = {
            alias: counters
            for alias, counters in lanes.items()
            if (counters.open or counters.step) and not counters.over
        }
        if any(counters.in_batches for counters in running.values()):
            return None  # no provider tells when they end
        times = list[float]()
        for alias, counters in running.items():
            rate = self._per_s(alias, "closed")
            seconds = counters.open / rate if rate else None
            if counters.step is not None:
                seconds = counters.step.left_s(self.now_s)
            if seconds is None:
                return None
            times.append(seconds)
        return max(times, default=None)

    def limited_by(self, alias: str) -> str:
        """Return the limit that held a model most over the window, or how it ended."""
        if cause := what_holds(self._lanes[alias]):
            return cause
        causes = Counter(
            sample.waits_for
            for sample in self._samples[alias]
            if sample.waits_for not in (None, waits.RESUME)
        )
        return waits.WORDS[causes.most_common(1)[0][0]] if causes else ""

    def _per_s(self, alias: str, what: str) -> float:
        first, last = self._samples[alias][0], self._samples[alias][-1]
        more: int = getattr(last, what) - getattr(first, what)
        return more / (last.at_s - first.at_s) if last.at_s > first.at_s else 0.0


def what_holds(counters: Counters) -> str:
    """Return how a model ended, or why nothing of it is sent for now; empty: something is."""
    if counters.suspended is not None:
        return "stopped"
    if counters.budget_stopped:
        return "budget spent"
    if counters.paused and (counters.open or counters.step is not None):
        return PAUSED
    if counters.step is not None:
        return DUE_TIMES
    if not counters.open:
        return "done"
    return BATCHES if counters.in_batches and not counters.in_flight else ""


class _PictureRow(NamedTuple):
    """A line of the table, its figures as text; the last two are left out where the screen is narrow."""

    model: str
    counters: Counters  # for the bar
    done: str
    accuracy: str
    calls: str
    limited_by: str
    refused: str
    cost: str
    time_left: str
    in_flight: str


# Columns and their least widths, so that bars stand still; the last two are left out where it is narrow.
HEAD: Final = {
    "done": 7,
    "accuracy": 8,
    "calls/s": 7,
    "limited by": 11,
    "429s": 4,
    "cost": 10,
    "time left": 9,
    "in flight": 9,
}
LEFT: Final = "time left"
OPTIONAL: Final = 2


def picture(lanes: Lanes, pace: Pace, caps: Sequence[Cap], *, width: int, height: int) -> Text:
    """Return how far a run is, in so many characters and at most so many lines."""
    # What a person changed last, at most two lines, and the last error of any model.
    changes = sorted({counters.changed for counters in lanes.values() if counters.changed})  # by time
    events = [safe(f"changed {text}", most=500) for text in changes[-2:]]
    failures = [counters.latest_failure for counters in lanes.values() if counters.latest_failure is not None]
    if failures:
        failure = max(failures, key=_ended_at)
        ago = duration(round(max(0.0, time.time() - _ended_at(failure))))
        message = f"last error, {ago} ago: {failure.model}: {failure.status}: {failure.error}"
        events.append(safe(message, most=500))
    messages = [*worker_lines(pace.workers), *step_lines(lanes, pace.now_s), *batch_lines(lanes, pace.now_s)]
    below = [*messages, *map(cap_text, caps), *events]

    # The table has the rest of the lines.
    rows = _fitting_rows(lanes, pace, height - len(below) - 5)
    if len(lanes) > 1:
        rows.append(_row("total", tuple(lanes), lanes, pace, ""))
    layout = _fit_columns(rows, width)

    # What it has no column for stands right below it.
    total, left_s = Counters.summed(list(lanes.values())), pace.left_s(lanes)
    time_left = "" if left_s is None or LEFT in layout.widths else f"about {duration(round(left_s))} left"
    times = {
        f"{duration(round(pace.now_s - pace.began_s))} so far": True,
        time_left: time_left,
        costs_text(total): total.cost_before_usd or total.unpriced_before,
    }
    counts = {
        f"{total.outcomes.total():,} done this run (accuracy is of these)": total.done_before,
        f"{total.skipped:,} skipped by stop_when": total.skipped,
        f"{total.failed:,} failed": total.failed,
    }
    below = [*filter(None, (phrases(times), phrases(counts))), *below]

    lines = [*_table(rows, layout, total=len(lanes) > 1), *map(Text, below)]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return Text("\n").join(lines)


def sentence(lanes: Lanes, pace: Pace, caps: Sequence[Cap]) -> str:
    """Return how far a run is, on one line."""
    total = _row("", tuple(lanes), lanes, pace, "")
    summary = phrases(
        {
            f"{total.done} done": True,
            f"accuracy {total.accuracy}": total.accuracy != "-",
            f"{total.calls} calls/s": True,
            f"{total.refused} rate-limited (429)": total.counters.rate_limited,
            costs_text(total.counters): total.counters.attempts,
            f"about {total.time_left} left": total.time_left,
        }
    )
    shown = list(lanes)[:IN_A_LINE]
    models = []
    for alias in shown:
        row = _row(alias, (alias,), lanes, pace, pace.limited_by(alias))
        limit = "" if row.limited_by in ("", DUE_TIMES) else f" (limited by {row.limited_by})"
        if row.limited_by in ("done", "stopped", "budget spent", PAUSED):
            limit = f" ({row.limited_by})"
        models.append(f"{alias} {row.done}{limit}")
    more = [f"{len(lanes) - len(shown):,} more models"] if len(lanes) > len(shown) else []
    messages = [*worker_lines(pace.workers), *step_lines(lanes, pace.now_s), *batch_lines(lanes, pace.now_s)]
    return "; ".join([summary, *models, *more, *messages, *map(cap_text, caps)])


def worker_lines(workers: Sequence[WorkerCounts]) -> list[str]:
    """Return how fast workers are and how late the worst of them is, on one line; none: there are none."""
    if not workers:
        return []
    calls = [worker.calls_per_s for worker in workers]
    rates = " + ".join(map(_rate_text, calls if len(calls) <= IN_A_LINE else [sum(calls)]))
    lag_ms = 1000 * max(worker.lag_s for worker in workers)
    deaths = sum(worker.deaths for worker in workers)
    died = f", {deaths:,} died" if deaths else ""
    return [f"{number_of(len(workers), 'worker')}: {rates} calls/s, lag {lag_ms:,.0f} ms{died}"]


def step_lines(lanes: Lanes, now_s: float) -> list[str]:
    """Return how far the step of each model under load is; of many models only the first.

    `now_s`: by the event loop's clock.
    """
    lines = []
    for alias, counters in lanes.items():
        if (step := counters.step) is None:
            continue
        total = " of a search" if step.total is None else f" of {step.total:,}"
        phase = ""
        if now_s < step.counts_from_s:
            phase = " (warm-up)"
        elif now_s >= step.ends_s:
            phase = " (last answers)"
        calls = f"{step.due:,} due, {step.answered:,} answered, {counters.in_flight:,} in flight"
        lines.append(f"{safe(alias)}: step {step.number:,}{total}, {step.name}: {calls}{phase}")
    more = len(lines) - IN_A_LINE
    return [*lines[:IN_A_LINE], f"+{more:,} more models under load"] if more > 1 else lines


def batch_lines(lanes: Lanes, now_s: float) -> list[str]:
    """Return how the batches of each model stand; of many models only the first.

    `now_s`: by the event loop's clock.
    """
    lines = []
    for alias, counters in lanes.items():
        batches = counters.batches
        if not batches or not batches.states:
            continue
        states = ", ".join(f"{count:,} {state}" for state, count in batches.states.items())
        done = f", {batches.answered:,} done there" if batches.answered else ""
        age = "" if batches.oldest_s is None else f", oldest {days(now_s - batches.oldest_s)}"
        wait = days(max(0.0, batches.next_look_s - now_s))
        down = f"; {safe(batches.unreached)}" if batches.unreached else ""
        trials = f"{batches.trials:,} trials{done}{age}"
        lines.append(f"{safe(alias)} batches: {states}; {trials}, next look in {wait}{down}")
    more = len(lines) - IN_A_LINE
    return [*lines[:IN_A_LINE], f"+{more:,} more models in batches"] if more > 1 else lines


def still_life(lanes: Lanes) -> object | None:
    """Return a log line for a run whose open trials are all in batches, or None if there are others."""
    going = [
        counters for counters in lanes.values() if counters.in_flight or (counters.open and not counters.over)
    ]
    if not going or any(counters.in_flight or not counters.in_batches for counters in going):
        return None
    return [
        (counters.done, counters.batches and (counters.batches.states, counters.batches.answered))
        for counters in going
    ]


# ── Rows


def _row(name: str, aliases: Sequence[str], lanes: Lanes, pace: Pace, limited_by: str) -> _PictureRow:
    counters = Counters.summed([lanes[alias] for alias in aliases])
    accuracy, calls, left_s = counters.accuracy, pace.calls_per_s(aliases), pace.left_s(aliases)
    return _PictureRow(
        model=safe(name),
        counters=counters,
        done=f"{counters.done + counters.skipped:,}/{counters.planned:,}",
        accuracy="-" if accuracy is None else f"{whole_percent(accuracy)} %",
        calls=_rate_text(calls),
        limited_by=limited_by,
        refused=f"{counters.rate_limited:,}" if counters.rate_limited else "-",
        cost=cost_text(counters),
        time_left="" if left_s is None else duration(round(left_s)),
        in_flight=f"{counters.in_flight:,}",
    )


def _rate_text(calls_per_s: float) -> str:
    return f"{calls_per_s:,.0f}" if calls_per_s >= 9.95 or not calls_per_s else f"{calls_per_s:.1f}"


def _fitting_rows(lanes: Lanes, pace: Pace, room: int) -> list[_PictureRow]:
    """Return a row for each model; where they are too many, first those that run, and one for the rest."""
    states = {alias: pace.limited_by(alias) for alias in lanes}
    aliases = list(lanes)
    if len(aliases) > (room := max(FEWEST_ROWS, room)):
        aliases.sort(key=lambda alias: states[alias] == "done")
    shown = aliases if len(aliases) <= room else aliases[: room - 1]
    rows = [_row(alias, (alias,), lanes, pace, states[alias]) for alias in shown]
    if rest := aliases[len(shown) :]:
        done = sum(states[alias] == "done" for alias in rest)
        rows.append(_row(f"+{len(rest)} models", rest, lanes, pace, f"{done} done" if done else ""))
    return rows


def _ended_at(failure: Attempt) -> float:
    return failure.started_at + (failure.latency_s or 0.0)


# ── Table


class _TableLayout(NamedTuple):
    """Widths of a table's columns on a screen, in characters."""

    widths: Mapping[str, int]  # of the columns that are shown
    name: int
    bar: int
    gap: int


def _fit_columns(rows: Sequence[_PictureRow], width: int) -> _TableLayout:
    """Return a table's layout in so many characters: columns give way, then gaps, bars, middles of names."""
    counts = [len(f"{row.counters.planned:,}") * 2 + 1 for row in rows]
    least = HEAD | {"done": max(HEAD["done"], *counts)}
    texts = zip(*(row[2:] for row in rows), strict=True)
    widths = {head: max(least[head], *map(len, column)) for head, column in zip(HEAD, texts, strict=True)}
    name = min(LONGEST_NAME, max(len("model"), *(cell_len(row.model) for row in rows)))

    def room(gap: int) -> int:
        """Return the characters left for names and bars."""
        return width - sum(widths.values()) - gap * (len(widths) + 1)

    while len(widths) > len(HEAD) - OPTIONAL and room(2) < name + SHORTEST_BAR * 2:
        widths.popitem()
    gap = 2 if room(2) >= name + SHORTEST_BAR else 1
    name = min(name, max(SHORTEST_NAME, room(gap) - SHORTEST_BAR))
    return _TableLayout(widths, name, max(0, min(LONGEST_BAR, room(gap) - name)), gap)


def _table(rows: Sequence[_PictureRow], layout: _TableLayout, *, total: bool) -> Iterator[Text]:
    """Yield the head and the rows, the last of which may be their `total`.

    Every width is known: a table of rich would take ten times as long, and it is drawn twice a second.
    """
    gap, heads = " " * layout.gap, layout.widths
    cells = (_padded(head, head, width) for head, width in heads.items())
    yield Text(gap.join([set_cell_size("model", layout.name), " " * layout.bar, *cells]), style="dim")
    for n, row in enumerate(rows):
        # A bar: the share of trials that are done, in half characters, then of those that are in batches.
        counters, width = row.counters, layout.bar
        done = counters.done + counters.skipped
        halves = min(2 * width, 2 * width * done // counters.planned) if counters.planned else 2 * width
        full = "━" * (halves // 2) + "╸" * (halves % 2)
        room = width - len(full)
        batched = "╍" * min(room, width * counters.in_batches // counters.planned if counters.planned else 0)
        rest = "─" * (room - len(batched))
        bar_style = "green" if halves == 2 * width else "cyan"

        line = Text(style="bold" if total and n == len(rows) - 1 else "")
        line.append(set_cell_size(middle_cut(row.model, layout.name), layout.name) + gap)
        line.append_text(Text.assemble((full, bar_style), (batched, "blue"), (rest, "dim")))
        for (head, width), text in zip(heads.items(), row[2:], strict=False):
            style = STYLES.get(text) if head == "limited by" else None
            if head == "429s" and text != "-":
                style = "yellow"
            line.append(gap + _padded(head, text, width), style=style)
        yield line


def _padded(head: str, text: str, width: int) -> str:
    return text.ljust(width) if head == "limited by" else text.rjust(width)
