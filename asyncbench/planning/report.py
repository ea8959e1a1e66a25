"""The plan of a sweep as a record, as text and as tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple, cast

from asyncbench.planning.columns import PlanColumn, sheet_of
from asyncbench.planning.finished import TELLING_REPLIES
from asyncbench.planning.records import (
    BatchPlan,
    ConditionPlan,
    Cut,
    ModelPlan,
    PlannedSet,
    Range,
    StillAsked,
    TokensAndCost,
    total,
)
from asyncbench.records import Model
from asyncbench.suites.requests import sent_parameters
from asyncbench.tables.data import data_of
from asyncbench.tables.numbers import dollars, duration, number_of, percent
from asyncbench.tables.report import Report, Sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Report):
    """The cost and duration of a sweep before it runs."""

    sweep: str
    out: str
    simulated: bool  # whether any of it is answered by the simulator
    limit: int | None  # problems per model
    problem_sets: tuple[PlannedSet, ...]
    models: tuple[ModelPlan, ...]
    forecast_left: TokensAndCost[Range] | None  # of all models together; None: of one too little is known
    forecast_total: TokensAndCost[Range] | None  # the same with what was used so far
    forecast_seconds: Range | None  # until the slowest lane is done with what is left
    cuts: tuple[Cut, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    pilot: Mapping[str, object] | None = None  # what was asked before it was planned; None: nothing

    @property
    def cost_usd(self) -> float | None:
        """USD of all models; None if that of one is unknown."""
        return total(model.cost_usd for model in self.models)

    @property
    def cost_usd_most(self) -> float | None:
        """The most USD of all models; None if that of one is unknown."""
        return total(model.cost_usd_most for model in self.models)

    @property
    def seconds(self) -> float:
        """Seconds until the slowest lane is done; a forecast gives the median."""
        if self.forecast_seconds is not None:
            return self.forecast_seconds.p50
        lanes: dict[str, float] = {}
        for model in self.models:
            lane = model.group or model.model
            lanes[lane] = lanes.get(lane, 0.0) + model.seconds  # of a group, models take turns
        return max(lanes.values(), default=0.0)

    def data(self) -> dict[str, object]:
        together = {
            "left": sum(model.left for model in self.models),
            "cost_usd": self.cost_usd,
            "cost_usd_most": self.cost_usd_most,
            "seconds": self.seconds,
            "batch_usd": total(model.batch_usd for model in self.models),
            "unpriced": [model.model for model in self.models if model.price_source is None],
        }
        return {**data_of(self), "together": together}

    def content(self) -> Iterator[str | Sheet]:
        # what is planned
        if self.simulated:
            yield "This sweep has SIMULATED models: asyncbench's own server answers for them."
        limit = None if self.limit is None else number_of(self.limit, "problem")
        first = f", the first {limit} of each model" if limit else ""
        note = "" if self.pilot else " Nothing was asked or written."
        yield f"Plan of {self.sweep}{first}. Results go to {self.out}.{note}"
        if any(model.guessed for model in self.models):
            yield self._guess_warning()
        yield sheet_of("Problems", PROBLEM_COLUMNS, self.problem_sets)
        for problems in self.problem_sets:
            if problems.sample is not None:
                yield f"{problems.name}: {problems.sample.text(problems.rows)}."
        yield from _matrix_sheets(self.models)

        # what it takes
        yield sheet_of("What is left", TRIAL_COLUMNS, self.models)
        batch_priced = any(model.batch_usd is not None and not model.batches for model in self.models)
        columns = [column for column in COST_COLUMNS if batch_priced or column.heading != BATCH_PRICE]
        yield sheet_of("Cost and time", columns, self.models, whole=self)
        if batched := [BatchRow(model, model.batches) for model in self.models if model.batches]:
            yield sheet_of("Batches, and the same calls in real time", BATCH_COLUMNS, batched)

        # Forecasts, if there are any; several are followed by all together.
        rows = [
            ForecastRow(model.model, str(forecast.replies), forecast.left, forecast.seconds)
            for model in self.models
            if (forecast := model.forecast) is not None
        ]
        if len(rows) > 1 and self.forecast_left is not None:
            rows.append(ForecastRow("together", "", self.forecast_left, self.forecast_seconds))
        if rows:
            yield sheet_of("Forecast (90 % range)", FORECAST_COLUMNS, rows)

        # what budgets and a deadline leave of it, and what all this rests on
        some_left = any(model.left for model in self.models)
        if some_left:
            for cut in self.cuts:
                yield from _cut_parts(cut)
        else:
            yield "Nothing is left to ask: a run makes no call."
        if some_left and self.assumptions:
            yield "Assumptions:"
            yield from (f"- {line}" for line in self.assumptions)
        if self.warnings:
            yield "Warnings:"
            yield from (f"- {line}" for line in self.warnings)

    def _guess_warning(self) -> str:
        """Return a warning that numbers are guesses: they look like any others."""
        guessed = [model for model in self.models if model.guessed]
        few = [
            f"{model.model} has {model.replies:,} replies, but fewer than {TELLING_REPLIES} under "
            f"{', '.join(model.too_few)}"
            for model in guessed
            if model.replies and model.too_few
        ]
        reasons = few if len(few) == len(guessed) else ["there are too few replies yet", *few]
        names = [model.model for model in guessed]
        models = "" if len(guessed) == len(self.models) else f" of {', '.join(names)}"

        pilot_models = cast("Mapping[str, Mapping[str, object]]", (self.pilot or {}).get("models", {}))
        stopped = {alias for alias, model in pilot_models.items() if model["budget_stopped"]}
        stopped |= {alias for cut in self.cuts for alias in cut.too_small}
        way_out = "`plan --pilot 2` makes a few calls first and forecasts the rest with a range."
        if full := [alias for alias in names if alias in stopped]:  # a pilot would ask nothing
            way_out = (
                f"The budget of {', '.join(full)} allows no more calls. Raise it (`budget_usd` or --budget). "
                "Then `plan --pilot 2` makes the missing calls and forecasts the rest with a range."
            )
        return f"Tokens, cost and time{models} are guesses (see Assumptions): {'; '.join(reasons)}. {way_out}"


# ── columns


PROBLEM_COLUMNS: Final[Sequence[PlanColumn[PlannedSet, None]]] = (
    PlanColumn("problem set", lambda problems: problems.name),
    PlanColumn("problems", lambda problems: f"{problems.rows:,}"),
)

TRIAL_COLUMNS: Final[Sequence[PlanColumn[ModelPlan, None]]] = (
    PlanColumn("model", lambda model: model.model),
    PlanColumn("trials", lambda model: f"{model.trials:,}"),
    PlanColumn("done", lambda model: f"{model.done:,}"),
    PlanColumn("left", lambda model: f"{model.left:,}"),
    PlanColumn("input tokens", lambda model: f"{model.input_tokens:,}"),
    PlanColumn("output tokens", lambda model: f"{model.output_tokens:,}"),
    PlanColumn(
        "worst case",
        lambda model: "unlimited" if model.output_tokens_most is None else f"{model.output_tokens_most:,}",
    ),
)


def _dollars_together(costs: Sequence[float | None]) -> str:
    """Return a sum; where a part is unknown, the sum of the others."""
    usd = sum(cost or 0 for cost in costs)
    return f"{dollars(usd)} + unknown" if usd and None in costs else dollars(total(costs))


BATCH_PRICE: Final = "as a batch"  # the column stands only where a model asked in real time has such a price
COST_COLUMNS: Final[Sequence[PlanColumn[ModelPlan, Plan]]] = (
    PlanColumn("model", lambda model: model.model, lambda _: "together"),
    PlanColumn(
        "cost",
        lambda model: dollars(model.cost_usd),
        lambda plan: _dollars_together([model.cost_usd for model in plan.models]),
    ),
    PlanColumn(
        "worst case",
        lambda model: dollars(model.cost_usd_most),
        lambda plan: _dollars_together([model.cost_usd_most for model in plan.models]),
    ),
    PlanColumn(
        BATCH_PRICE,
        lambda model: dollars(model.batch_usd),
        lambda plan: dollars(total(model.batch_usd for model in plan.models)),
    ),
    PlanColumn(
        "time",
        lambda model: ("up to " if model.batches and model.left else "") + duration(model.seconds),
        lambda plan: duration(plan.seconds),
    ),
    PlanColumn("limited by", lambda model: model.bound_by or "-"),
    PlanColumn(
        "max_tokens",
        lambda model: (
            "none" if model.max_tokens is None else f"{model.max_tokens:,}" + "*" * model.max_tokens_required
        ),
    ),
    PlanColumn("price", lambda model: model.price_source or "unknown"),
)


class BatchRow(NamedTuple):
    """A model that is asked in batches."""

    model: ModelPlan
    batches: BatchPlan


BATCH_COLUMNS: Final[Sequence[PlanColumn[BatchRow, None]]] = (
    PlanColumn("model", lambda row: row.model.model),
    PlanColumn("in real time", lambda row: dollars(row.batches.realtime_usd)),
    PlanColumn("as batches", lambda row: dollars(row.model.batch_usd)),
    PlanColumn("parts", lambda row: f"{row.batches.parts:,}"),
    PlanColumn("bytes", lambda row: f"{row.batches.bytes:,}"),
    PlanColumn("prompt tokens", lambda row: f"{row.batches.prompt_tokens:,}"),
    PlanColumn("of the limit", lambda row: percent(row.batches.enqueued_share, decimals=0)),
    PlanColumn("time from", lambda row: duration(row.batches.soonest_s)),
    PlanColumn("to", lambda row: duration(row.batches.latest_s)),
    PlanColumn("in real time", lambda row: duration(row.batches.realtime_s)),
)


class ForecastRow(NamedTuple):
    """The forecast of a model, or of all together."""

    model: str
    replies: str  # from which it was made
    needs: TokensAndCost[Range]
    seconds: Range | None  # None: nobody knows


FORECAST_COLUMNS: Final[Sequence[PlanColumn[ForecastRow, None]]] = (
    PlanColumn("model", lambda row: row.model),
    PlanColumn("replies", lambda row: row.replies),
    PlanColumn("output tokens from", lambda row: f"{row.needs.output_tokens.p5:,.0f}"),
    PlanColumn("to", lambda row: f"{row.needs.output_tokens.p95:,.0f}"),
    PlanColumn("cost from", lambda row: dollars(row.needs.cost_usd.p5) if row.needs.cost_usd else "unknown"),
    PlanColumn("to", lambda row: dollars(row.needs.cost_usd.p95) if row.needs.cost_usd else "unknown"),
    PlanColumn("time from", lambda row: duration(row.seconds.p5) if row.seconds else ""),
    PlanColumn("to", lambda row: duration(row.seconds.p95) if row.seconds else ""),
)


class CutRow(NamedTuple):
    """A model's trials that are asked at the median, and at the 95th percentile."""

    usual: StillAsked
    careful: StillAsked


CUT_COLUMNS: Final[Sequence[PlanColumn[CutRow, None]]] = (
    PlanColumn("model", lambda row: row.usual.model),
    PlanColumn("left", lambda row: f"{row.usual.left:,}"),
    PlanColumn("trials", lambda row: f"{row.usual.trials:,}"),
    PlanColumn("share", lambda row: percent(row.usual.share, decimals=0)),
    PlanColumn("per cell", lambda row: f"{row.usual.per_cell:.1f}"),
)
CAREFUL_COLUMNS: Final[Sequence[PlanColumn[CutRow, None]]] = (
    PlanColumn("trials (p95)", lambda row: f"{row.careful.trials:,}"),
    PlanColumn("share", lambda row: percent(row.careful.share, decimals=0)),
)


def _cut_parts(cut: Cut) -> Iterator[str | Sheet]:
    """Yield the cuts of budgets or a deadline: a line for each that binds, then a row a model."""
    amount = duration if cut.kind == "deadline" else dollars
    all_guessed = len(cut.guessed) == len(cut.usual)
    if cut.complete:
        amounts = ", ".join(f"{amount(remaining)} of the {name}" for name, remaining in cut.left.items())
        guesses = "the guesses" if all_guessed else f"the guesses for {', '.join(cut.guessed)}"
        sure = f"if {guesses} are right" if cut.guessed else "also at the 95th percentile"
        yield f"Left: {amounts}. That is enough for everything, {sure}."
        return

    for name in cut.binding:
        if name in cut.spent_up:
            spent, limit = map(dollars, cut.spent_up[name])
            yield f"The {name} is used up: {spent} of {limit} spent."
        else:
            yield f"The {name} is not enough for everything: {amount(cut.left[name])} left."
    for model, call_usd in cut.too_small.items():
        yield (
            f"{model}: the budget has no room for one more call. A call may cost up to {dollars(call_usd)}, "
            "because its reply may use all of max_tokens."
        )
    if cut.guessed and not all_guessed:
        yield f"{', '.join(cut.guessed)}: guesses, also in the columns of the 95th percentile (p95)."

    rows = [row for row in map(CutRow, cut.usual, cut.careful) if row.usual.left]
    columns = CUT_COLUMNS if all_guessed else (*CUT_COLUMNS, *CAREFUL_COLUMNS)
    yield sheet_of("What that is enough for: the first trials of every cell", columns, rows)


# ── values that a sweep varies


def varied_in(models: Sequence[Model]) -> dict[str, dict[str, object]]:
    """Return the parameters that tell each entry from others of the same model, by alias."""
    entries_by_model: dict[tuple[str, ...], dict[str, dict[str, object]]] = {}
    for model in models:
        entries = entries_by_model.setdefault((model.provider, model.model_id), {})
        entries[model.alias] = sent_parameters(model) | model.compared_limits

    varied: dict[str, dict[str, object]] = {}
    for entries in entries_by_model.values():
        names = dict.fromkeys(name for values in entries.values() for name in values)
        for alias, values in entries.items():
            varied[alias] = {
                name: values.get(name)
                for name in names
                if any(entry.get(name) != values.get(name) for entry in entries.values())
            }
    return varied


def _matrix_sheets(models: Sequence[ModelPlan]) -> Iterator[Sheet]:
    """Yield a table with a row for each combination of values and condition, if there are several."""
    keys = list(dict.fromkeys(key for model in models for key in model.varied))
    combinations: dict[tuple[str, ...], list[ConditionPlan]] = {}
    for model in models:
        values = [model.varied.get(key, "") for key in keys]
        texts = ["not set" if value is None else str(value) for value in values]
        for plan in model.conditions:
            combinations.setdefault((*texts, plan.name), []).append(plan)
    if len(combinations) < 2:
        return

    # What the matrix is the product of: 3 models × 2 efforts × 2 conditions = 12 entrants.
    entrants = sum(map(len, combinations.values()))
    counts = [len(set(column)) for column in zip(*combinations, strict=True)]
    models_each = entrants // prod(counts)
    title = f"Matrix: {number_of(entrants, 'entrant')}"
    if models_each * prod(counts) == entrants and len({*map(len, combinations.values())}) == 1:
        sizes = [(models_each, "model"), *zip(counts, [*keys, "condition"], strict=True)]
        factors = [
            number_of(size, name) if name.isalpha() else f"{size:,} values of {name}"
            for size, name in sizes
            if size > 1
        ]
        title = f"Matrix: {' × '.join(factors)} = {number_of(entrants, 'entrant')}"

    rows = [
        (
            *names,
            f"{len(plans):,}",
            f"{sum(plan.trials for plan in plans):,}",
            f"{sum(plan.left for plan in plans):,}",
            dollars(total(plan.cost_usd for plan in plans)),
        )
        for names, plans in combinations.items()
    ]
    yield Sheet(
        title=title,
        head=(*keys, "condition", "entrants", "trials", "left", "cost"),
        rows=rows,
        labels=len(keys) + 1,
    )
