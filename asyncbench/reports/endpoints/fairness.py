"""Fairness of a comparison: the same problems, in the same minutes, with the same parameters."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from asyncbench.analysis.counting import FolderViews
from asyncbench.lanes.load.steps import MET
from asyncbench.reports.endpoints.counts import EndpointFigures
from asyncbench.tables.data import in_data

NEARBY: Final = 2  # minutes: calls that are no further apart met the same weather
TOGETHER: Final = 0.9  # of a model's calls near calls to all others: that is the same time

_MINUTES: Final = """
SELECT model, epoch(started_at)::BIGINT // 60 AS minute, count(*) AS calls FROM provider_calls GROUP BY ALL
"""
_PROBLEMS: Final = """
SELECT count(*) AS problems,
    count(*) FILTER (models = (SELECT count(DISTINCT model) FROM provider_calls)) AS common
FROM (
    SELECT problem_id, count(DISTINCT model) AS models
    FROM provider_trials SEMI JOIN (SELECT DISTINCT model FROM provider_calls) USING (model)
    GROUP BY problem_id
)
"""
_PARAMS: Final = "SELECT DISTINCT model, params, effort FROM provider_trials"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fairness:
    """How alike the models of a folder were asked."""

    models: int
    problems: int  # that any was asked
    common_problems: int  # that all were asked
    together: Mapping[
        str, float
    ]  # model → the part of its calls within `NEARBY` minutes of calls to all others
    parameters: Sequence[str]  # that differ
    timed: Mapping[str, str | None]  # model → the step whose calls are timed; None: all of its calls
    all_kept: bool  # whether all kept their SLO in that step

    @property
    @in_data("notes")
    def notes(self) -> Iterator[str]:
        """What a reader has to know before comparing."""
        if self.models < 2:
            return
        if self.common_problems == self.problems:
            yield f"All were asked the same {self.problems:,} problems."
        else:
            yield (
                f"NOT the same problems: {self.common_problems:,} of {self.problems:,} were asked of all. "
                "Differences in accuracy count the problems in common; prices and times count all."
            )
        apart = {model: share for model, share in self.together.items() if share < TOGETHER}
        if apart:
            shares = ", ".join(f"{model} {share:.0%}" for model, share in sorted(apart.items()))
            yield f"NOT in the same minutes: calls within {NEARBY} minutes of calls to all others: {shares}."
        else:
            yield "All were asked in the same minutes."
        if self.parameters:
            yield f"Parameters differ: {', '.join(self.parameters)}."
        yield from self._timed()

    def _timed(self) -> Iterator[str]:
        steps = set(self.timed.values())
        if steps == {None}:
            return
        if None in steps:
            yield "NOT the same load: some were asked in a load, others in a sweep."
        if len(steps - {None}) > 1:
            rates = ", ".join(f"{model} {step}" for model, step in self.timed.items() if step is not None)
            yield f"NOT the same rate: no rate was measured of all. Times are of {rates}."
        else:
            kept = (
                "highest one at which all kept their SLO"
                if self.all_kept
                else "lowest one that all were asked at"
            )
            yield f"Times are of {', '.join(filter(None, steps))}, the {kept}."


def fairness_of(views: FolderViews, figures: Sequence[EndpointFigures]) -> Fairness:
    """Return how alike models were asked, given the figures that `endpoints_in` made of these views."""
    (counts,) = views.rows(_PROBLEMS)
    timed = [one.step for one in figures if one.step is not None]
    return Fairness(
        models=len(figures),
        problems=counts["problems"],
        common_problems=counts["common"],
        together=_together(views),
        parameters=_differing(views),
        timed={one.model: one.timed_step for one in figures},
        all_kept=bool(timed) and all(step.verdict == MET for step in timed),
    )


def _together(views: FolderViews) -> dict[str, float]:
    calls: dict[str, Counter[int]] = {}
    for row in views.rows(_MINUTES):
        calls.setdefault(row["model"], Counter())[row["minute"]] = row["calls"]
    near = {
        model: {minute + n for minute in minutes for n in range(-NEARBY, NEARBY + 1)}
        for model, minutes in calls.items()
    }
    common = set.intersection(*near.values()) if near else set()
    return {
        model: sum(count for minute, count in minutes.items() if minute in common) / minutes.total()
        for model, minutes in sorted(calls.items())
    }


def _differing(views: FolderViews) -> list[str]:
    """Return the parameters that some models were asked with and others not, or otherwise."""
    values: dict[str, dict[str, set[bytes]]] = {}  # parameter → model → values
    rows = views.rows(_PARAMS)
    models = {row["model"] for row in rows}
    for row in rows:
        for name, value in {**orjson.loads(row["params"] or "{}"), "effort": row["effort"]}.items():
            values.setdefault(name, {}).setdefault(row["model"], set()).add(orjson.dumps(value))
    return sorted(
        name
        for name, by_model in values.items()
        if len({frozenset(by_model.get(model, ())) for model in models}) > 1
    )
