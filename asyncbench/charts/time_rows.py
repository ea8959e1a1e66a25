"""The rows of charts over time: latency and throughput of calls, and how much of the limits was used."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from math import inf
from typing import Final

from asyncbench.charts.rows import MOST_SERIES, Row
from asyncbench.reports import LimitUse
from asyncbench.results import Minute, shortened, told_apart

MINUTE_S: Final = 60.0
LULL: Final = 1.5  # times a minute or bin: who begins again later than that after the last one, paused
EACH: Final = "answered calls"  # of the one model that a panel shows


def latency_rows(minutes: Iterable[Minute], shown: Mapping[str, str] | None = None) -> list[Row]:
    """Return the latency of answered calls over time; `shown` as for `pair_rows`."""
    return [
        {**place, "p50_s": one.p50_s, "p95_s": one.p95_s, "calls": one.calls}
        for place, one in _timed(minutes, shown)
    ]


def throughput_rows(minutes: Iterable[Minute], shown: Mapping[str, str] | None = None) -> list[Row]:
    """Return answered calls and output tokens a minute over time; `shown` as for `pair_rows`."""
    return [
        {
            **place,
            "calls_per_minute": 60 * one.calls / one.seconds,
            "tokens_per_minute": None if one.output_tokens is None else 60 * one.output_tokens / one.seconds,
        }
        for place, one in _timed(minutes, shown)
    ]


def _timed(minutes: Iterable[Minute], shown: Mapping[str, str] | None) -> Iterator[tuple[Row, Minute]]:
    found = list(minutes)
    models = dict.fromkeys(one.name for one in found)
    shown = told_apart(models) if shown is None else shown
    parts = _parts((one.at, one.seconds) for one in found)
    places = {name: place for place, name in enumerate(shown)}
    for one in sorted(found, key=lambda one: places.get(one.name, len(places))):
        model = shown.get(one.name, shortened(one.name))
        crowded = len(models) > MOST_SERIES
        named = {"panel": model, "series": EACH} if crowded else {"panel": "", "series": model}
        yield {**named, "at": one.at, "part": parts[one.at]}, one


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


def quota_rows(uses: Iterable[LimitUse]) -> list[Row]:
    """Return how much of each lane's limits was used over time."""
    found = list(uses)
    shown = told_apart(use.lane for use in found)
    parts = _parts((milliseconds(use.started_at), max(use.seconds, MINUTE_S)) for use in found)
    return [
        {
            "panel": shown[use.lane],
            "series": limit,
            "at": milliseconds(use.started_at),
            "part": parts[milliseconds(use.started_at)],
            "used": share,
            "refused": use.refused,
        }
        for use in found
        for limit, share in use.shares.items()
    ]


def milliseconds(at: datetime) -> int:
    """Return a time as charts have it: milliseconds since 1970, UTC."""
    return round(at.astimezone(UTC).timestamp() * 1000)
