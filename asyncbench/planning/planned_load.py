"""The plan of a load: its calls, tokens, dollars, minutes and calls in flight, before any call is made."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from time import time
from typing import Final

import pyarrow.compute as pc

from asyncbench.config.loading import Find, Load
from asyncbench.config.sweep import Sweep
from asyncbench.errors import ConfigError
from asyncbench.lanes.load.earlier_steps import refuse_beyond_limits, steps_before
from asyncbench.lanes.load.searching import RateSearch, all_good_needed, most_calls, probe_s
from asyncbench.lanes.load.steps import LoadStep, StepsBefore, base_of, few_problems, steps_to_measure
from asyncbench.planning.belonging import check_one_sweep, folder_begun, questions_of_steps
from asyncbench.planning.budget_bounds import check_budget
from asyncbench.planning.columns import PlanColumn, sheet_of
from asyncbench.planning.guesses import latency_of, rates_asked
from asyncbench.planning.preflight import chosen_models
from asyncbench.planning.records import ModelPlan, total
from asyncbench.planning.remaining_trials import planned_sets
from asyncbench.planning.sweep_plan import plan_of
from asyncbench.planning.traces import traces_of
from asyncbench.pricing import cost_usd
from asyncbench.problems.traces import Trace
from asyncbench.records import Model, Usage
from asyncbench.stats.percentiles import fewest_for
from asyncbench.store.catalog import read_attempts
from asyncbench.store.manifest import is_results_folder
from asyncbench.tables.data import data_of
from asyncbench.tables.numbers import dollars, duration
from asyncbench.tables.report import Report, Sheet

FEWEST: Final = {name: fewest_for(share) for name, share in (("p90", 0.9), ("p95", 0.95), ("p99", 0.99))}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """The remaining steps of one rate, or of a search, for one model."""

    model: str  # the alias
    step: str
    times: int  # that it is measured
    calls: int  # of all these times; of a search, and of callers: about, at most
    counted: int  # of one time, after the warm-up
    in_flight: float  # by Little's law, from the latency below
    seconds: float  # without waiting for answers
    input_tokens: int | None = None  # of all these calls, as a trace tells them; None: it replays none
    output_tokens: int | None = None  # likewise
    cost_usd: float | None = None  # None: no price is known
    cost_usd_most: float | None = None  # None: no price is known, or nothing limits the replies


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan(Report):
    """A load before it runs."""

    sweep: str
    out: str
    simulated: bool
    steps: tuple[PlannedStep, ...]
    latency_s: dict[str, float]  # of a call, by alias: measured earlier, or guessed
    assumptions: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Seconds until the slowest model is done."""
        by_model: dict[str, float] = {}
        for step in self.steps:
            by_model[step.model] = by_model.get(step.model, 0.0) + step.seconds
        return max(by_model.values(), default=0.0)

    def data(self) -> dict[str, object]:
        together = {
            "calls": sum(step.calls for step in self.steps),
            "cost_usd": total(step.cost_usd for step in self.steps),
            "cost_usd_most": total(step.cost_usd_most for step in self.steps),
            "seconds": self.seconds,
        }
        return {**data_of(self), "together": together}

    def content(self) -> Iterator[str | Sheet]:
        if self.simulated:
            yield "This sweep has SIMULATED models: asyncbench's own server answers for them."
        yield f"Plan of {self.sweep}. Results go to {self.out}. Nothing was asked or written."
        if not self.steps:
            yield "Every step is measured."
            return
        yield sheet_of("Steps that are left", STEP_COLUMNS, self.steps, whole=self)
        yield "Assumptions:"
        yield from (f"- {line}" for line in self.assumptions)


STEP_COLUMNS: Final[Sequence[PlanColumn[PlannedStep, LoadPlan]]] = (
    PlanColumn("model", lambda step: step.model, lambda _: "together"),
    PlanColumn("step", lambda step: step.step),
    PlanColumn(
        "times", lambda step: f"{step.times:,}", lambda plan: f"{sum(step.times for step in plan.steps):,}"
    ),
    PlanColumn(
        "calls", lambda step: f"{step.calls:,}", lambda plan: f"{sum(step.calls for step in plan.steps):,}"
    ),
    PlanColumn("counted of one", lambda step: f"{step.counted:,}"),
    PlanColumn("in flight", lambda step: f"{step.in_flight:,.1f}"),
    PlanColumn(
        "cost",
        lambda step: dollars(step.cost_usd),
        lambda plan: dollars(total(step.cost_usd for step in plan.steps)),
    ),
    PlanColumn(
        "worst case",
        lambda step: dollars(step.cost_usd_most),
        lambda plan: dollars(total(step.cost_usd_most for step in plan.steps)),
    ),
    PlanColumn("time", lambda step: duration(step.seconds), lambda plan: duration(plan.seconds)),
)


def load_plan(sweep: Sweep, *, models: Sequence[str] | None = None) -> LoadPlan:
    """Return the needs of a sweep's load; nothing is called and nothing is written.

    Raises:
        ConfigError, ProblemSetError: it would not start.
        StoreError: the results folder cannot be read.
    """
    sweep = replace(sweep, out=folder_begun(sweep))
    if sweep.load is None:
        raise ConfigError(f"{sweep.name}: has no `load`. Set it in the sweep file")
    chosen = chosen_models(sweep, models)
    check_budget(sweep, chosen)
    at_rest = replace(sweep, load=None, repeats=1)
    with planned_sets(at_rest, chosen) as sets:
        traces = traces_of(sweep.load, sets)
        refuse_beyond_limits(sweep.load, chosen, sweep.out, traces)
        check_one_sweep(sweep, (source.problems for sources in sets.values() for source in sources))
        digests = {
            model.alias: questions_of_steps(sweep, sweep.load, model, sets[model.alias]) for model in chosen
        }
        plans = plan_of(at_rest, chosen, sets, limit=None, finished=frozenset(), begun=False).models
    latencies = [
        _latency_s(sweep.out, model, plan, traces.get(model.alias))
        for model, plan in zip(chosen, plans, strict=True)
    ]
    steps = list[PlannedStep]()
    for model, plan, (latency_s, _) in zip(chosen, plans, latencies, strict=True):
        before = steps_before(sweep.out, model.alias, digests[model.alias])
        if (trace := traces.get(model.alias)) is not None:
            steps += _replays(sweep, sweep.load, model, before, trace, latency_s)
        elif sweep.load.find is not None:
            steps += _search(sweep.load, sweep.load.find, before, plan, latency_s)
        else:
            steps += _steps(sweep, sweep.load, model, before, plan, latency_s)
    return LoadPlan(
        sweep=sweep.name,
        out=sweep.place,
        simulated=any(model.simulated for model in chosen),
        steps=tuple(steps),
        latency_s={model.alias: latency[0] for model, latency in zip(chosen, latencies, strict=True)},
        assumptions=tuple(_assumptions(sweep.load, plans, latencies, steps, traces)),
    )


def _steps(
    sweep: Sweep, load: Load, model: Model, before: StepsBefore, plan: ModelPlan, latency_s: float
) -> Iterator[PlannedStep]:
    by_rate: dict[float, list[LoadStep]] = {}
    for step in steps_to_measure(load, sweep.repeats, before):
        by_rate.setdefault(step.rate, []).append(step)
    for rate, steps in sorted(by_rate.items()):
        pace, seconds = rate, load.warmup + load.duration
        calls, counted = seconds * rate * len(steps), load.duration * rate
        if load.closed:
            pace = rate / (latency_s + load.think)
            calls, counted = calls * pace / rate, counted * pace / rate
        else:
            drawn = [step.due() for step in steps]
            calls, counted = sum(map(len, drawn)), sum(due_s >= load.warmup for due_s in drawn[0])
        row = PlannedStep(
            model=model.alias,
            step=base_of(load, rate),
            times=len(steps),
            calls=round(calls),
            counted=round(counted),
            in_flight=pace * latency_s,
            seconds=len(steps) * (seconds + load.rest),
        )
        yield _priced(row, plan)


def _replays(
    sweep: Sweep, load: Load, model: Model, before: StepsBefore, trace: Trace, latency_s: float
) -> Iterator[PlannedStep]:
    """Yield the remaining steps of a trace: it tells the tokens of each call."""
    (condition,) = sweep.conditions_of(model.alias)
    rates = rates_asked(model, condition, time())
    by_speed: dict[float, list[LoadStep]] = {}
    for step in steps_to_measure(load, sweep.repeats, before, trace=trace):
        by_speed.setdefault(step.rate, []).append(step)
    for speed, steps in sorted(by_speed.items()):
        step, times = steps[0], len(steps)
        lengths = Counter(islice(zip(trace.input_tokens, trace.output_tokens, strict=True), step.calls))
        usd = total(
            None if each is None else each * count
            for each, count in (
                (cost_usd(Usage(input_tokens=read, output_tokens=max(1, written)), rates), count)
                for (read, written), count in lengths.items()
            )
        )
        cost = None if usd is None else usd * times
        yield PlannedStep(
            model=model.alias,
            step=base_of(load, speed),
            times=times,
            calls=times * step.calls,
            counted=step.calls - bisect_left(trace.at_s, load.warmup * speed),
            in_flight=(step.calls_per_s or 0.0) * latency_s,
            seconds=times * (load.warmup + step.seconds + load.rest),
            input_tokens=times * sum(trace.input_tokens[: step.calls]),
            output_tokens=times * sum(trace.output_tokens[: step.calls]),
            cost_usd=cost,
            cost_usd_most=cost,  # no reply is longer
        )


def _search(
    load: Load, find: Find, before: StepsBefore, plan: ModelPlan, latency_s: float
) -> Iterator[PlannedStep]:
    if RateSearch(load=load, find=find, before=before).is_over:
        return
    times, calls, seconds = most_calls(load, find)
    step = PlannedStep(
        model=plan.model,
        step=f"find {find.lowest:g} to {find.highest:g}/s",
        times=times,
        calls=round(calls),
        counted=round(probe_s(load, find.lowest) * find.lowest),
        in_flight=find.highest * latency_s,
        seconds=seconds,
    )
    yield _priced(step, plan)


def _priced(step: PlannedStep, plan: ModelPlan) -> PlannedStep:
    """Return a step with what its calls cost: as the mean of all that the model could be asked."""
    cost_usd, cost_usd_most = (
        None if usd is None or not plan.left else usd / plan.left * step.calls
        for usd in (plan.cost_usd, plan.cost_usd_most)
    )
    return replace(step, cost_usd=cost_usd, cost_usd_most=cost_usd_most)


def _latency_s(folder: Path, model: Model, plan: ModelPlan, trace: Trace | None) -> tuple[float, int]:
    """Return how long a call will probably take, and of how many calls that is the median; 0: a guess."""
    if is_results_folder(folder):
        wanted = (pc.field("model") == model.alias) & (pc.field("status") == "ok")
        rows = read_attempts(folder, ["latency_s"], wanted).to_pylist()
        if seen := [row["latency_s"] for row in rows if row["latency_s"] is not None]:
            return median(seen), len(seen)
    tokens = plan.output_tokens / max(1, plan.left) if trace is None else fmean(trace.output_tokens)
    return latency_of(tokens), 0


def _assumptions(
    load: Load,
    plans: Sequence[ModelPlan],
    latencies: Sequence[tuple[float, int]],
    steps: Sequence[PlannedStep],
    traces: Mapping[str, Trace],
) -> Iterator[str]:
    for plan, (latency_s, calls) in zip(plans, latencies, strict=True):
        source = f"the median of {calls:,} calls in the folder" if calls else "a guess"
        yield f"{plan.model}: a call takes {latency_s:.3g} s, {source}. In flight is rate times latency."
    if load.replays:
        for name in dict.fromkeys(trace.name for trace in traces.values()):
            yield f"Tokens of a call are those of {name}. The server may count some more or less."
        for step in steps:
            yield f"{step.model}, {step.step}: {step.input_tokens:,} tokens in, {step.output_tokens:,} out."
    else:
        yield "Tokens of a call are guessed from the question and its answer."
    yield f"Each step may also wait up to {duration(load.drain)} for its last answers."

    # steps of too few calls
    counted = min((step.counted for step in steps), default=0)
    lacking = [f"{name} ({fewest})" for name, fewest in FEWEST.items() if counted < fewest]
    if lacking:
        yield (
            f"A step counts {counted:,} calls at least: too few for {', '.join(lacking)}. Such a percentile "
            "stays NULL. Raise `duration` or the rate."
        )
    needed = 0 if load.slo is None or load.find is not None else all_good_needed(load.slo.share)
    undecided = dict.fromkeys(
        f"{step.step} ({step.counted * step.times:,})"
        for step in steps
        if step.counted * step.times < needed and not load.closed
    )
    if undecided:
        share = f"{100 * (load.slo.share if load.slo else 0):.4g} %"
        yield (
            f"Too few calls for a verdict: {', '.join(undecided)}. To be sure that {share} keep the SLO "
            f"takes {needed:,} calls, even if all keep it. Raise `duration` or `repeats`."
        )
    if load.find is not None:
        yield (
            "A search is planned at its longest: every rate up to the highest keeps the SLO, or nearly. Its "
            f"steps last longer than {duration(load.duration)} where the verdict needs more calls."
        )

    # steps of more calls than there are problems
    problems = min((plan.left for plan in plans), default=0)
    calls = max((step.counted * step.times for step in steps), default=0)
    if not load.replays and (warning := few_problems(problems, calls=calls)):
        yield f"A step of {calls:,} calls: {warning}"
