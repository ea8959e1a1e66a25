"""Rows of the charts of calls: times, throughput, failures and the use of limits.

`asked` is the place of the entrant in `asked_in`; None where a row is of several entrants.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Asked, Entrant, short_names
from asyncbench.page.charts.styling import Row
from asyncbench.reports.minutes import TIMED, failed_calls, minutes_of, times_of_calls
from asyncbench.reports.quota import limits_over_time

LULL: Final = 1.5  # times a bin: who begins again later than that after the last one, paused
MOST_LINES: Final = 6  # that people follow in one panel
LEAST_POINTS: Final = 3  # of a line: fewer are no course of anything


def times_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return percentiles of how long answered calls took, seconds."""
    places = roster.entrant_places
    return [
        {
            "asked": places[times.entrant],
            "quantity": quantity,
            "panel": quantity,
            **dict(zip(("p50", "p90", "p95", "p99"), times.percentiles[quantity], strict=True)),
            "calls": times.known[quantity],
            "answered": times.answered,
        }
        for quantity in TIMED
        for times in sorted(times_of_calls(views), key=lambda times: places.get(times.entrant, -1))
        if quantity in times.percentiles and times.entrant in places
    ]


def minute_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return latency and throughput of answered calls over time; none where no latency is known.

    A recording knows when trials were finished, and nothing of calls.
    """
    places = roster.entrant_places
    minutes = [minute for minute in minutes_of(views) if minute.entrant in places]
    if not any(minute.p50_s is not None for minute in minutes):
        return []
    parts = _parts((minute.at, minute.seconds) for minute in minutes)
    panels = _panels(roster, {minute.entrant for minute in minutes})
    rows = [
        {
            "asked": places[minute.entrant],
            "panel": panels[minute.entrant],
            "at": minute.at,
            "seconds": minute.seconds,
            "part": parts[minute.at],
            "calls": minute.calls,
            "p50_s": minute.p50_s,
            "p95_s": minute.p95_s,
            "calls_per_minute": 60 * minute.calls / minute.seconds,
            "tokens_per_minute": None
            if minute.output_tokens is None
            else 60 * minute.output_tokens / minute.seconds,
        }
        for minute in minutes
    ]
    return _enough(rows, ("asked",))


def failure_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return calls without an answer over time, by how they ended."""
    places = roster.entrant_places
    failures = [failed for failed in failed_calls(views) if failed.entrant in places]
    panels = _panels(roster, {failed.entrant for failed in failures})
    rows = [
        {
            "asked": places[failed.entrant],
            "panel": panels[failed.entrant],
            "at": failed.at,
            "seconds": failed.seconds,
            "status": failed.status,
            "calls": failed.calls,
            "calls_per_minute": 60 * failed.calls / failed.seconds,
        }
        for failed in failures
    ]
    return rows if len({row["at"] for row in rows}) >= LEAST_POINTS else []


def limit_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return how much of each lane's limits was used over time, and what they are."""
    uses = list(limits_over_time(views))
    parts = _parts((at, seconds) for at, seconds, _ in uses)
    models = Counter(entrant.model for entrant in roster.entrants)
    alone = {who.model: n for n, who in enumerate(roster.entrants) if models[who.model] == 1}
    lanes = dict.fromkeys(use.lane for _, _, use in uses)
    ours = lanes.keys() <= alone.keys()
    shown = {lane: roster.entrants[alone[lane]].short for lane in lanes} if ours else short_names(lanes)
    rows = [
        {
            "asked": alone.get(use.lane),
            "panel": shown[use.lane],
            "lane": shown[use.lane],
            "limit": limit,
            "at": at,
            "seconds": seconds,
            "part": parts[at],
            "used": share,
            "per_minute": 60 * use.allowed[limit] / use.seconds if use.seconds else None,
            "refused": use.refused,
        }
        for at, seconds, use in uses
        for limit, share in use.shares.items()
    ]
    return _enough(rows, ("lane", "limit"))


def _panels(roster: Asked, entrants: Collection[Entrant]) -> dict[Entrant, str]:
    """Return in which panel each is: all in one, or where that is too many each in its own."""
    crowded = len(entrants) > MOST_LINES
    return {entrant.key: entrant.short if crowded else "" for entrant in roster.entrants}


def _enough(rows: Sequence[Row], keys: tuple[str, ...]) -> list[Row]:
    """Return the rows of lines with `LEAST_POINTS` or more."""
    points = Counter(tuple(row[key] for key in keys) for row in rows)
    return [row for row in rows if points[tuple(row[key] for key in keys)] >= LEAST_POINTS]


def _parts(times: Iterable[tuple[int, float]]) -> dict[int, int]:
    """Return which part of the work each time is in: where nobody did anything for a while, the next begins.

    Args:
        times: when each stretch begins, in milliseconds, and its length in seconds.
    """
    parts, part, end = dict[int, int](), 0, inf
    for at, seconds in sorted(set(times)):
        part += at > end
        parts[at], end = part, at + 1000 * LULL * seconds
    return parts
