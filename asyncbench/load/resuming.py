"""What earlier runs of a load left: the steps that they measured, and those that a killed one began."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from asyncbench.load.measuring import MEASURED, kind_of
from asyncbench.load.steps import INCOMPLETE, StepsBefore
from asyncbench.records import StepResult
from asyncbench.store import is_results_folder, read_attempts, read_steps

_NAME: Final = re.compile(r"(?P<arrivals>[a-z]+)(\(.*\))? (?P<rate>[^ /]+)(/s)? #(?P<round>\d+)")
_READ: Final = ("load", "phase", "status", "http_status", "due_at", "in_flight")


def steps_before(folder: Path, alias: str) -> StepsBefore:
    """Return the steps of a model that earlier runs began; raises StoreError."""
    if not is_results_folder(folder):
        return StepsBefore()
    results = read_steps(folder, filters=[("model", "==", alias)]).to_pylist()
    calls = read_attempts(folder, ["model", "load"], [("model", "==", alias)])["load"].drop_null()
    names = {*calls.unique().to_pylist(), *(row["load"] for row in results)}
    return StepsBefore(names=sorted(names), results=results, calls=len(calls))


def killed_steps(folder: Path, alias: str, before: StepsBefore) -> Iterator[StepResult]:
    """Yield a row for each step that a killed run had no time to write down, as far as its calls tell."""
    lacking = sorted({*before.names} - {str(row["load"]) for row in before.results})
    for name in lacking:
        wanted = (pc.field("model") == alias) & (pc.field("load") == name)
        calls = read_attempts(folder, list(_READ), wanted).to_pylist()
        if (said := _NAME.fullmatch(name)) is not None:
            yield _killed(name, alias, said, calls)


def _killed(name: str, alias: str, said: "re.Match[str]", calls: Sequence[Mapping[str, Any]]) -> StepResult:
    due_s = [call["due_at"].timestamp() for call in calls]
    measured = [call for call in calls if call["phase"] == MEASURED]
    counts = Counter(kind_of(call["status"], call["http_status"]) for call in measured)
    first_s = min((call["due_at"].timestamp() for call in measured), default=max(due_s))
    return StepResult(
        load=name,
        model=alias,
        arrivals=said["arrivals"],
        rate=float(said["rate"]),
        round=int(said["round"]),
        began_at=min(due_s),
        warmup_s=first_s - min(due_s),
        seconds=max(due_s) - first_s,
        offered=len(measured),
        dropped=0,
        sent=len(measured),
        answered=counts["answered"],
        refused=counts["refused"],
        failed=counts["failed"],
        unfinished=counts["unfinished"],
        late_p50_s=None,
        late_p99_s=None,
        loop_lag_p99_s=None,
        in_flight_mean=None,
        in_flight_max=max((call["in_flight"] or 0 for call in measured), default=0),
        in_flight_slope=None,
        ks_p=None,
        dispersion_p=None,
        client_bound=False,
        saturated=None,
        met=None,
        slo=None,
        verdict=INCOMPLETE,
    )
