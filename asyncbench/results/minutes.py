"""Latency and throughput of a folder's answered calls over time: a row for everybody asked and minute."""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncbench.results.names import Entrant
from asyncbench.views import FolderViews


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """The answered calls of one that was asked, which began within some time."""

    name: str  # of the model, with condition and run where it has several, as tables have it
    at: int  # milliseconds since 1970, UTC: when the time begins
    seconds: float  # how long it is
    calls: int
    p50_s: float | None  # latency, from request sent to last byte
    p95_s: float | None
    output_tokens: int | None  # None: of no call are they known


def minutes_of(views: FolderViews, names: Mapping[Entrant, str]) -> tuple[Minute, ...]:
    """Return latency and throughput over time, by name and then by time: the view `minutes`.

    Calls of trials that are still open have no condition or run yet: where a model has several, they go by
    the model's name alone.
    """
    found = views.rows("SELECT * REPLACE (epoch_ms(began) AS began) FROM minutes")
    minutes = (
        Minute(
            name=names.get((row["run"], row["model"], row["condition"]), row["model"]),
            at=row["began"],
            seconds=60.0 * row["minutes"],
            calls=row["calls"],
            p50_s=row["latency_p50_s"],
            p95_s=row["latency_p95_s"],
            output_tokens=row["output_tokens"],
        )
        for row in found
    )
    return tuple(sorted(minutes, key=lambda minute: (minute.name, minute.at)))
