"""How far a run is: trials, lanes, money and errors, as the page shows them beside its results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from asyncbench.analysis.choosing import Chosen, Names
from asyncbench.analysis.counting import FolderViews
from asyncbench.reports.status.report import Status, status_of
from asyncbench.store.lock import writer_of
from asyncbench.store.schema import LIMITS
from asyncbench.tables.screen import safe

Values = dict[str, Any]  # Any: whatever JSON can hold

MOST_ERRORS: Final = 8  # kinds that are shown
_ERRORS: Final = f"""
SELECT status AS kind, count(*) AS calls FROM attempts WHERE status <> 'ok'
GROUP BY ALL ORDER BY calls DESC, kind LIMIT {MOST_ERRORS}
"""  # noqa: S608  a number of ours

# Of each lane the last row that is more than a change by hand; `used`: the most of any of its limits.
_RATES: Final = ", ".join(f"60 * {name} / seconds / {name}_limit" for name in LIMITS)
_LANES: Final = f"""
SELECT lane, 60 * requests / seconds AS calls_per_minute, greatest({_RATES}) AS used, refused
FROM lanes WHERE seconds > 0 QUALIFY row_number() OVER (PARTITION BY lane ORDER BY started_at DESC) = 1
ORDER BY lane
"""  # noqa: S608  names of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """What the calls of folders tell of their runs, as of a look."""

    errors: Sequence[Values] = ()
    lanes: Sequence[Values] = ()
    names: Names = field(default_factory=dict)

    def called(self, label: str, name: str) -> str:
        """Return what the page calls a model or lane of a folder."""
        return self.names.get((label, name), name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """How far the sweeps in some folders are."""

    running: bool = False
    trials: Mapping[str, int | None] | None = None  # done, planned
    money: Mapping[str, float | None] | None = None  # spent_usd, budget_usd
    errors: Sequence[Values] = ()  # kind, calls
    lanes: Sequence[Values] = ()
    models: Sequence[Values] = ()

    def as_values(self) -> Values:
        """Return it as JSON has it."""
        return asdict(self)


def run_figures(views: FolderViews) -> RunFigures:
    """Return what calls and lanes of open views tell."""
    return RunFigures(
        errors=[row | {"kind": safe(row["kind"])} for row in views.rows(_ERRORS)],
        lanes=views.rows(_LANES),
        names=views.names,
    )


def is_running(of: Chosen) -> bool:
    """Return whether some process is writing to one of the folders."""
    return any(writer_of(path) is not None for path in of.paths)


def now_in(of: Chosen, figures: RunFigures) -> Now:
    """Return how far the sweeps in some folders are.

    Raises:
        ConfigError, StoreError: a folder cannot be read.
    """
    found = {label: status_of(path) for label, path in of.labels.items()}
    models = [(label, model) for label, status in found.items() for model in status.models]
    planned = [model.planned for _, model in models]
    budgets = [
        cap.limit_usd for status in found.values() for cap in status.budget if cap.name.startswith("sweep ")
    ]
    return Now(
        running=any(status.running for status in found.values()),
        trials={
            "done": sum(model.done for _, model in models),
            "planned": None if None in planned else sum(count or 0 for count in planned),
        },
        money={
            "spent_usd": sum(status.cost_usd for status in found.values()),
            "budget_usd": sum(budgets) if len(budgets) == len(found) else None,
        },
        errors=figures.errors,
        lanes=list(_lanes(found, figures)),
        models=[
            {
                "model": safe(figures.called(label, model.model)),
                "done": model.done,
                "planned": model.planned,
                "failed": model.failed,
                "in_flight": model.in_flight,
                "cost_usd": model.cost_usd,
                "suspended": model.suspended,
            }
            for label, model in models
        ],
    )


def _lanes(found: Mapping[str, Status], figures: RunFigures) -> Iterator[Values]:
    """Yield each lane as its run tells it, with what its last minute tells."""
    minutes = {row["lane"]: row for row in figures.lanes}
    for label, status in found.items():
        for lane in status.lanes:
            called = figures.called(label, lane["lane"])
            of_minute = minutes.get(called, {})
            yield {
                "lane": safe(called),
                "in_flight": lane["in_flight"],
                "limited_by": safe(lane["limited_by"]),
                **{name: of_minute.get(name) for name in ("calls_per_minute", "used", "refused")},
            }
