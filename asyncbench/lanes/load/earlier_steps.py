"""Steps of a load that earlier runs measured or only began, and the limits that they met.

A run that was killed had no time to write its latest steps down. The calls of these steps tell of them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from asyncbench.config.loading import Load
from asyncbench.errors import ConfigError
from asyncbench.lanes.load.measuring import MEASURED, kind_of
from asyncbench.lanes.load.steps import INCOMPLETE, StepsBefore, steps_to_measure
from asyncbench.problems.traces import Trace
from asyncbench.records import Model, StepResult
from asyncbench.store.catalog import read_attempts, read_lanes, read_steps
from asyncbench.store.manifest import is_results_folder

_NAME: Final = re.compile(r"(?P<arrivals>[a-z]+)(\(.*\))? (?P<rate>[^ /x]+)(/s|x)? #(?P<round>\d+)")
_LIMITS: Final = {"requests": "requests_limit", "tokens": "tokens_limit"}
_TOKENS: Final = ("input_tokens", "output_tokens")
_READ: Final = ("load", "phase", "status", "http_status", "due_at", "in_flight")


def steps_before(folder: Path, alias: str, questions_digest: str) -> StepsBefore:
    """Return the steps of a model that earlier runs began; raises StoreError.

    Those count whose questions have this digest; see `questions_of_steps`.
    """
    if not is_results_folder(folder):
        return StepsBefore(model=alias, questions_digest=questions_digest)
    results = read_steps(folder, filters=[("model", "==", alias)]).to_pylist()
    calls = read_attempts(folder, ["model", "load"], [("model", "==", alias)])["load"].drop_null()
    names = {*calls.unique().to_pylist(), *(row["load"] for row in results)}
    return StepsBefore(
        model=alias, names=sorted(names), results=results, calls=len(calls), questions_digest=questions_digest
    )


def limits_before(folder: Path, alias: str) -> Mapping[str, float]:
    """Return the limits a minute that the runs of a model had in the end: of `requests`, of `tokens`.

    With them `of_a_call`, the tokens of its calls in the mean. What nobody knows is left out.
    """
    if not is_results_folder(folder):
        return {}
    lanes = read_lanes(folder, ["started_at", *_LIMITS.values()], [("lane", "==", alias)]).to_pylist()
    lanes.sort(key=itemgetter("started_at"))  # a minute of a load tells no limits
    limits = {
        name: lane[column] for lane in lanes for name, column in _LIMITS.items() if lane[column] is not None
    }
    calls = read_attempts(folder, list(_TOKENS), [("model", "==", alias), ("status", "==", "ok")])
    tokens = pc.add(calls["input_tokens"], calls["output_tokens"])
    mean: float | None = pc.mean(tokens).as_py()
    return limits if mean is None else limits | {"of_a_call": mean}


def refuse_beyond_limits(
    load: Load, models: Iterable[Model], folder: Path, traces: Mapping[str, Trace]
) -> None:
    """Refuse rates above a limit that is known of earlier runs in the folder, or of a model under a trace.

    Args:
        load: the load.
        models: who is asked.
        folder: of the results.
        traces: that are replayed, by alias; empty: none are.

    Raises:
        ConfigError: names the model, the limit and the way out.
    """
    rates: Sequence[float] = load.rates if load.find is None else (load.find.lowest,)
    for model in () if load.past_limits or load.closed else models:
        if (trace := traces.get(model.alias)) is not None:
            steps = steps_to_measure(load, 1, StepsBefore(), trace=trace)
            rates, rpm = [step.calls_per_s or 0.0 for step in steps], model.limits.rpm
            if rpm is not None and 60 * max(rates) > rpm:
                raise ConfigError(
                    f"{model.alias}: has `rpm: {rpm:g}`, and {trace.name} has {max(rates):.3g} calls a "
                    "second in the mean. Replay it at a lower speed, or set `past_limits: true` "
                    "(--past-limits) to see what happens"
                )
        earlier = limits_before(folder, model.alias)
        tokens = earlier.get("of_a_call", 0.0)
        limits = {
            "requests": (None if model.limits.rpm else earlier.get("requests"), 1.0, ""),
            "tokens": (model.limits.tpm or earlier.get("tokens"), tokens, f" of about {tokens:,.0f} tokens"),
        }
        for what, (limit, per_call, detail) in limits.items():
            if limit is not None and (over := [rate for rate in rates if 60 * rate * per_call > limit]):
                raise ConfigError(
                    f"{model.alias}: by earlier runs in {folder}, it has a limit of {limit:,.0f} {what} a "
                    f"minute, which {over[0]:.4g} calls a second{detail} pass. Remove the higher rates, or "
                    "set `past_limits: true` (--past-limits) to see what happens"
                )


def killed_steps(folder: Path, alias: str, before: StepsBefore) -> Iterator[StepResult]:
    """Yield a row for each step that a killed run had no time to write down, as far as its calls tell.

    One that ended before any call counted has none.
    """
    lacking = sorted({*before.names} - {str(row["load"]) for row in before.results})
    for name in lacking:
        wanted = (pc.field("model") == alias) & (pc.field("load") == name)
        calls = read_attempts(folder, list(_READ), wanted).to_pylist()
        counted = any(call["phase"] == MEASURED for call in calls)
        if counted and (match := _NAME.fullmatch(name)) is not None:
            yield _killed_step(name, alias, match, calls)


def _killed_step(
    name: str, alias: str, match: "re.Match[str]", calls: Sequence[Mapping[str, Any]]
) -> StepResult:
    due_s = [call["due_at"].timestamp() for call in calls]
    measured = [call for call in calls if call["phase"] == MEASURED]
    counts = Counter(kind_of(call["status"], call["http_status"]) for call in measured)
    first_s = min(call["due_at"].timestamp() for call in measured)
    return StepResult(
        load=name,
        model=alias,
        arrivals=match["arrivals"],
        rate=float(match["rate"]),
        round=int(match["round"]),
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
        in_flight_max=max(call["in_flight"] or 0 for call in measured),
        in_flight_slope=None,
        ks_p=None,
        dispersion_p=None,
        client_bound=False,
        saturated=None,
        met=None,
        slo=None,
        verdict=INCOMPLETE,
    )
