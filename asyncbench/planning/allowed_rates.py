"""The calls a second that the limits of a sweep allow: those it sets, and those that its folder was told."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from statistics import fmean, median
from typing import Final

import pyarrow.compute as pc

from asyncbench.config import AUTO_WORKERS, Load, Sweep, priced_models, usable_cores, workers_here
from asyncbench.errors import ConfigError
from asyncbench.fleet import CallCost, kept_costs, kind_of
from asyncbench.planning.records import ModelPlan
from asyncbench.planning.worker_figures import WorkersPlan
from asyncbench.providers import makes_own_calls
from asyncbench.records import BATCH, Model
from asyncbench.store import SWEEP_FILE, is_results_folder, read_attempts, read_lanes

_LIMITS: Final = ("requests", "tokens", "input_tokens", "output_tokens")  # a minute, as a folder knows them


def workers_plan(
    sweep: Sweep,
    models: Sequence[Model],
    plans: Sequence[ModelPlan],
    *,
    costs: Mapping[str, CallCost],
    why: str | None = None,
) -> WorkersPlan | None:
    """Return what workers do for a sweep; None: no call is left, but in batches.

    Args:
        sweep, models: what is asked of whom.
        plans: of these models: the tokens of a call are theirs, on average.
        costs: what calls cost on this machine, by the name of their kind.
        why: something was not measured.
    """
    calling = [
        (model, plan) for model, plan in zip(models, plans, strict=True) if plan.left and model.mode != BATCH
    ]
    if not calling:
        return None
    lanes = _lanes(calling)
    rates = {name: _lane_per_s(sweep, name, members) for name, members in lanes.items()}
    unknown = {name: members for name, members in lanes.items() if rates[name] is None}
    untimed = [name for name, members in unknown.items() if _is_bound_by_latency(sweep, members)]
    asking = _asking(lanes, rates)
    known = [rate for rate, _ in asking if rate is not None]
    return WorkersPlan(
        wanted=workers_here(sweep.workers),
        cores=usable_cores(),
        allowed_per_s=math.fsum(known) if known else None,
        unlimited=tuple(name for name in unknown if name not in untimed),
        untimed=tuple(untimed),
        packaged=not lanes,
        cost=_mean_cost(asking, costs),
        load=sweep.load is not None,
        auto=sweep.workers == AUTO_WORKERS,
        why=why,
    )


_Members = Sequence[tuple[Model, ModelPlan]]
_Lanes = Mapping[str, _Members]
_Rates = Mapping[str, float | None]  # calls a second of each lane; None: nobody knows
_Asking = Sequence[tuple[float | None, _Members]]  # what asks at the same time, each with its calls a second


def _lanes(calling: _Members) -> _Lanes:
    """Return the models whose calls workers can make, by the lane that they share."""
    lanes = defaultdict[str, list[tuple[Model, ModelPlan]]](list)
    for model, plan in calling:
        if not makes_own_calls(model):
            lanes[model.limits.group or model.alias].append((model, plan))
    return lanes


def _asking(lanes: _Lanes, rates: _Rates) -> _Asking:
    """Return what asks at the same time: lanes that wait for each other are one, with their highest rate."""
    turns = defaultdict[str, list[str]](list)
    for name, members in lanes.items():
        turns[members[0][0].turn or name].append(name)
    return [
        (
            max((rate for name in names if (rate := rates[name]) is not None), default=None),
            [member for name in names for member in lanes[name]],
        )
        for names in turns.values()
    ]


def _mean_cost(asking: _Asking, costs: Mapping[str, CallCost]) -> CallCost | None:
    """Return the mean cost of the calls of one second; None: some kind was not measured.

    Where no rate is known, a mean one counts. Models that share a rate, or of which none is known, have parts
    of it by what is left of them.
    """
    known = [(rate, members) for rate, members in asking if rate is not None]
    unknown = [members for rate, members in asking if rate is None]
    usual = fmean(rate for rate, _ in known) if known else 1.0
    together = (usual * len(unknown), [member for members in unknown for member in members])
    shares: list[tuple[CallCost, float]] = []
    for rate, members in [*known, together]:
        left = sum(plan.left for _, plan in members)
        for model, plan in members:
            kind = kind_of(model)
            if kind is None or kind.name not in costs:
                return None
            shares.append((costs[kind.name], rate * plan.left / left))
    return CallCost.mean(shares) if shares else None


# ── one lane ─────────────────────────────────────────────────────────────────────────────────


def _lane_per_s(sweep: Sweep, name: str, members: _Members) -> float | None:
    """Return the calls a second that a lane may make: the lowest of its limits. None: none is known."""
    if sweep.load is not None:
        return _asked_per_s(sweep.load, sweep.out, members[0][0])
    return min(_bounds(sweep.out, name, members), default=None)


def _bounds(folder: Path, name: str, members: _Members) -> Iterator[float]:
    limits = members[0][0].limits  # of a group, all have the same
    left = sum(plan.left for _, plan in members)
    input_tokens = sum(plan.input_tokens for _, plan in members) / left
    output_tokens = sum(plan.output_tokens for _, plan in members) / left
    of_a_call = {
        "requests": 1.0,
        "tokens": input_tokens + output_tokens,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
    }
    told = _told(folder, name, members[0][0])
    for what, per_minute in limits.per_minute.items():
        own = None if per_minute is None else per_minute * limits.fraction
        most = min((limit for limit in (own, told.get(what)) if limit is not None), default=None)
        if most is not None and of_a_call[what]:
            yield most / 60 / of_a_call[what]
    if limits.concurrency and (latency_s := _latency_s(folder, [model.alias for model, _ in members])):
        yield limits.concurrency / latency_s


def _asked_per_s(load: Load, folder: Path, model: Model) -> float | None:
    """Return the highest rate that a load asks of a model; of callers None where no latency is known."""
    highest = max(load.rates) if load.find is None else load.find.highest
    if not load.closed:
        return highest
    latency_s = _latency_s(folder, [model.alias])
    return None if latency_s is None else highest / max(latency_s + load.think, 1e-3)


def _is_bound_by_latency(sweep: Sweep, members: _Members) -> bool:
    """Whether what a lane may do is a number of calls at a time."""
    if sweep.load is not None:
        return sweep.load.closed
    return bool(members[0][0].limits.concurrency)


def _told(folder: Path, lane: str, model: Model) -> dict[str, float]:
    """Return the limits a minute that a lane was told in earlier runs, as far as it used them.

    What the last of these runs set itself is no news: it may be another limit now.
    """
    if not is_results_folder(folder):
        return {}
    columns = {name: f"{name}_limit" for name in _LIMITS}
    rows = read_lanes(folder, ["started_at", *columns.values()], [("lane", "==", lane)]).to_pylist()
    rows.sort(key=itemgetter("started_at"))
    used = {name: row[column] for row in rows for name, column in columns.items() if row[column] is not None}
    was_set = _set_before(folder, model.alias)
    return {
        name: most
        for name, most in used.items()
        if not math.isclose(most, (was_set.get(name) or 0.0) * model.limits.fraction)
    }


def _set_before(folder: Path, alias: str) -> Mapping[str, float | None]:
    """Return the limits a minute that the last run in a folder set for a model."""
    with suppress(ConfigError):  # it has no sweep file, or one of another version
        for model in priced_models(folder / SWEEP_FILE):
            if model.alias == alias:
                return model.limits.per_minute
    return {}


def _latency_s(folder: Path, aliases: Sequence[str]) -> float | None:
    """Return the median of the calls that models were answered; None: there are none."""
    if not is_results_folder(folder):
        return None
    wanted = pc.field("model").isin(list(aliases)) & (pc.field("status") == "ok")
    seen: list[float] = read_attempts(folder, ["latency_s"], wanted)["latency_s"].drop_null().to_pylist()  # type: ignore[assignment]  # none is NULL
    return float(median(seen)) if seen else None


def kept_workers_plan(
    sweep: Sweep, models: Sequence[Model], plans: Sequence[ModelPlan]
) -> WorkersPlan | None:
    """Return what workers do for a sweep, by what was measured on this machine before."""
    costs = kept_costs()
    if not costs and not sweep.workers:
        return None
    return workers_plan(sweep, models, plans, costs=costs)
