"""Counts of a server, with which the figures that a client reports can be checked."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TypedDict, cast

from asyncbench.simulator.settings import FaultKind

LAST_S = 3600  # how many seconds are remembered one by one
LAST_CALLS = 50_000  # how many calls are remembered one by one


class Stats(TypedDict):
    """The counts of a model, or of all of them together."""

    requests: int  # calls that came in
    delivered: int  # complete answers with status 200, written out to the socket
    left: int  # calls whose client was gone before the answer
    in_flight: int  # calls inside the server now
    max_in_flight: int  # the most of them at one time
    rate_limited: int  # answers with status 429
    streams: int  # answers begun as streams
    chunks: int  # pieces of text of the streams that were written to their end, or to that of a fault
    statuses: dict[str, int]  # answers by status
    faults: dict[str, int]  # by kind


class ServerStats(Stats):
    """The answer of `GET /stats`."""

    simulated: bool
    questions: int  # known from problem sets
    cpu_s: float  # CPU time of the server's process
    models: dict[str, Stats]


class Second(TypedDict):
    """What the limits of a model did within one second of the server's clock."""

    at_s: int  # whole seconds of a clock that never goes back
    accepted: int  # calls
    rejected: int
    charged: dict[str, float]  # by what is counted: requests, tokens, input-tokens, output-tokens


class ServerSeconds(TypedDict):
    """The answer of `GET /stats/seconds`: seconds without a call are left out, the last hour's are kept."""

    simulated: bool
    now_s: float
    models: dict[str, list[Second]]


@dataclass(slots=True, kw_only=True)
class Arrival:
    """The moments of one call: seconds of `time.monotonic`, which processes of one machine share."""

    request_id: str  # as `attempts.request_id` has it, which names trial and attempt
    arrived_s: float
    model: str | None = None  # None: it was not read
    started_s: float | None = None  # when its service began: later if it waited for a slot
    first_byte_s: float | None = None  # of the answer's text, or of a whole page
    last_byte_s: float | None = None  # None: it was not written to its end
    status: int | None = None

    def writes_text(self) -> None:
        """Note that text is about to be written."""
        if self.first_byte_s is None:
            self.first_byte_s = time.monotonic()

    def writes_end(self) -> None:
        """Note that the last byte is about to be written."""
        self.writes_text()
        self.last_byte_s = time.monotonic()


class Seconds:
    """Counts what limits do, second by second, so that a client may leave out its warm-up."""

    def __init__(self) -> None:
        self.rows: deque[Second] = deque(maxlen=LAST_S)

    def accepted(self, at_s: float, cost: Mapping[str, float]) -> None:
        row = self._row(at_s)
        row["accepted"] += 1
        charged = row["charged"]
        for what, amount in cost.items():
            charged[what] = charged.get(what, 0) + amount

    def rejected(self, at_s: float) -> None:
        self._row(at_s)["rejected"] += 1

    def _row(self, at_s: float) -> Second:
        if not self.rows or self.rows[-1]["at_s"] != int(at_s):
            self.rows.append(Second(at_s=int(at_s), accepted=0, rejected=0, charged={}))
        return self.rows[-1]


def no_calls() -> Stats:
    """Return counts that only grow from now on, but for `in_flight`."""
    numbers = dict.fromkeys(Stats.__annotations__, 0)
    return cast("Stats", {**numbers, "statuses": Counter[str](), "faults": Counter[str]()})


def ordered_stats(stats: Stats) -> Stats:
    """Return counts with their statuses and faults in the order of their names."""
    statuses, faults = (dict(sorted(counts.items())) for counts in (stats["statuses"], stats["faults"]))
    return {**stats, "statuses": statuses, "faults": faults}


class Visit:
    """One call inside the server: counted among all, and under its model once that is known."""

    def __init__(self, total: Stats) -> None:
        self._counts = list[Stats]()
        self._total = total

    def __enter__(self) -> Self:
        self.count_under(self._total)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        gone = error is not None and issubclass(error, asyncio.CancelledError | ConnectionError)
        self.add(in_flight=-1, left=int(gone))

    def count_under(self, counts: Stats) -> None:
        """Count the call among all, or under its model, too."""
        counts["requests"] += 1
        counts["in_flight"] += 1
        counts["max_in_flight"] = max(counts["max_in_flight"], counts["in_flight"])
        self._counts.append(counts)

    def met(self, fault: FaultKind) -> None:
        for counts in self._counts:
            counts["faults"][str(fault)] += 1

    def answered(self, status: int, *, delivered: bool) -> None:
        """Count an answer whose status line went out; `delivered`: complete, and the answer asked for."""
        self.add(delivered=int(delivered), rate_limited=int(status == 429))
        for counts in self._counts:
            counts["statuses"][str(status)] += 1

    def add(self, **more: int) -> None:
        """Count so many more, by the name of a count."""
        for counts in self._counts:
            for name, number in more.items():
                counts[name] += number  # type: ignore[literal-required]  # a name of `Stats`
