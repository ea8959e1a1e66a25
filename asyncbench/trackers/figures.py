"""Figures of a results folder for a tracker: the settings and the figures of each entrant."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from asyncbench.analysis.entrants import entrant_of
from asyncbench.analysis.sql import sql
from asyncbench.page.writing import write_page
from asyncbench.reports.report import report
from asyncbench.store.manifest import read_manifest

# Of a row of the report, by their names in its JSON.
_OF_SUITE: Final = (
    "accuracy",
    "score",
    "trials",
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost_usd",
    "ttft_p50_s",
    "ttft_p95_s",
    "latency_p50_s",
    "latency_p95_s",
)
_OF_TASK: Final = ("accuracy", "score", "trials")

_SETTINGS: Final = """
    SELECT DISTINCT run, model, condition, provider, model_id, style, effort, params, condition_params
    FROM trials WHERE load IS NULL ORDER BY ALL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantFigures:
    """One model under one condition: what was set, and what came of it."""

    key: str  # the same at every sending, so that a tracker has one run of it
    name: str
    settings: Mapping[str, str]
    figures: Mapping[str, float]  # `SUITE/accuracy`, `SUITE/TASK/accuracy`, …; what is unknown is left out


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFigures:
    """All that a tracker is told of one results folder."""

    key: str
    sweep: str
    folder: str
    simulated: bool
    entrants: tuple[EntrantFigures, ...]

    @property
    def page_name(self) -> str:
        """The name of the run that holds the page, and so stands for the whole folder."""
        return f"{'SIMULATED ' * self.simulated}{self.sweep}: page"


def figures_of(folder: Path) -> FolderFigures:
    """Return the figures of a results folder, as its report counts them.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: it cannot be read.
    """
    manifest = read_manifest(folder)
    counted = json.loads(report(folder).as_json())
    key = f"{manifest['sweep']} {manifest['created_at']}"  # stays where the folder is moved

    # an entrant has a row for each suite, and for each task of it
    figures: dict[tuple[str, str, str], dict[str, float]] = {}
    names = {}
    for row in (*counted["suites"], *counted["tasks"]):
        entrant = entrant_of(row)
        figures.setdefault(entrant, {}).update(_figures_of_row(row))
        names[entrant] = row["name"]

    settings, simulated = _settings_of(folder), counted["simulated"]
    return FolderFigures(
        key=key,
        sweep=manifest["sweep"],
        folder=str(folder.absolute()),
        simulated=simulated,
        entrants=tuple(
            EntrantFigures(
                key=" / ".join((key, *entrant)),
                name=f"{'SIMULATED ' * simulated}{names[entrant]}",
                settings=settings.get(entrant, {}),
                figures=figures[entrant],
            )
            for entrant in figures
        ),
    )


def _figures_of_row(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of one suite or task, each under its name with a tracker."""
    begin = "/".join(filter(None, (row["suite"], row["task"])))
    for name in _OF_TASK if row["task"] else _OF_SUITE:
        if row[name] is not None:
            yield f"{begin}/{name}", row[name]
    if row["accuracy_interval"] is not None:
        yield f"{begin}/accuracy_low", row["accuracy_interval"][0]
        yield f"{begin}/accuracy_high", row["accuracy_interval"][1]
    for outcome, trials in row["outcomes"].items():
        if not row["task"]:
            yield f"{begin}/{outcome}", trials


def _settings_of(folder: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    """Return the settings by entrant; where one was changed between two runs, both values."""
    values: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for row in sql(folder, _SETTINGS).to_pylist():
        params = json.loads(row.pop("params") or "{}") | json.loads(row.pop("condition_params") or "{}")
        settings = values.setdefault(entrant_of(row), {})
        for name, value in (row | params).items():
            text = value if isinstance(value, str) else json.dumps(value)
            if value is not None and text not in settings.setdefault(name, []):
                settings[name].append(text)
    return {
        entrant: {name: "; ".join(texts) for name, texts in settings.items() if texts}
        for entrant, settings in values.items()
    }


@contextmanager
def page_file(folder: Path) -> Iterator[str]:
    """Write the page of a results folder to a file that lasts as long as the block; yield its path."""
    with TemporaryDirectory() as scratch:
        yield str(write_page(folder, Path(scratch) / "report.html").path)
