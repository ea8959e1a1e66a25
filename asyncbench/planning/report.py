"""The plan of a sweep as a record, as text and as tables, with its assumptions and warnings."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from math import prod
from typing import cast

from asyncbench.config.run_entries import Batching
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.planning.draws import Drawing
from asyncbench.planning.finished import ENOUGH
from asyncbench.planning.guesses import UNSEEN_LATENCY_S, UNSEEN_TOKENS_PER_S, assumption
from asyncbench.planning.modes import batch_sheet, why_in_real_time
from asyncbench.planning.records import ConditionPlan, Cut, ModelPlan, PlannedSet, Range, TokensAndCost, total
from asyncbench.planning.remaining_trials import Remainder
from asyncbench.records import AUTO, REALTIME, Condition, Model
from asyncbench.suites.requests import sent_parameters
from asyncbench.tables.numbers import dollars, duration, number_of, percent
from asyncbench.tables.report import Report, Sheet

TRIALS_HEAD = ("model", "trials", "done", "left", "input tokens", "output tokens", "worst case")
COST_HEAD = ("model", "cost", "worst case", "as a batch", "time", "limited by", "max_tokens", "price")
FORECAST_HEAD = ("model", "replies", "output tokens from", "to", "cost from", "to", "time from", "to")
CUT_HEAD = ("model", "left", "trials", "share", "per cell", "trials (p95)", "share")
CUT_USUALLY = 5  # columns of it; the others are those of the 95th percentile


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

    def _data(self) -> dict[str, object]:
        together = {
            "left": sum(model.left for model in self.models),
            "cost_usd": self.cost_usd,
            "cost_usd_most": self.cost_usd_most,
            "seconds": self.seconds,
            "batch_usd": total(model.batch_usd for model in self.models),
            "unpriced": [model.model for model in self.models if model.price_source is None],
        }
        return asdict(self) | {"together": together}

    def _parts(self) -> Iterator[str | Sheet]:
        if self.simulated:
            yield "This sweep has SIMULATED models: asyncbench's own server answers for them."
        limit = None if self.limit is None else number_of(self.limit, "problem")
        first = f", the first {limit} of each model" if limit else ""
        note = "" if self.pilot else " Nothing was asked or written."
        yield f"Plan of {self.sweep}{first}. Results go to {self.out}.{note}"
        if guessed := [model for model in self.models if model.guessed]:
            yield self._guesses(guessed)
        sets = [(problems.name, f"{problems.rows:,}") for problems in self.problem_sets]
        yield Sheet(title="Problems", head=("problem set", "problems"), rows=sets)
        yield from _matrix_sheets(self.models)
        yield Sheet(title="What is left", head=TRIALS_HEAD, rows=list(map(_trials_row, self.models)))
        yield self._costs()
        if batches := [(each.model, each.batch_usd, each.batches) for each in self.models if each.batches]:
            yield batch_sheet(batches)
        if forecasts := [_forecast_row(model) for model in self.models if model.forecast is not None]:
            if self.forecast_left is not None and len(forecasts) > 1:
                ranges = _range_texts(self.forecast_left, self.forecast_seconds)
                forecasts.append(("together", "", *ranges))
            yield Sheet(title="Forecast (90 % range)", head=FORECAST_HEAD, rows=forecasts)
        some_left = any(model.left for model in self.models)
        if not some_left:
            yield "Nothing is left to ask: a run makes no call."
        for cut in self.cuts if some_left else ():
            yield from _cut_parts(cut)
        assumptions = self.assumptions if some_left else ()
        for title, lines in (("Assumptions:", assumptions), ("Warnings:", self.warnings)):
            if lines:
                yield title
                yield from (f"- {line}" for line in lines)

    def _guesses(self, guessed: Sequence[ModelPlan]) -> str:
        """Return a warning that numbers are guesses: they look like any others."""
        few = [
            f"{model.model} has {model.replies:,} replies, but fewer than {ENOUGH} under "
            f"{', '.join(model.too_few)}"
            for model in guessed
            if model.replies and model.too_few
        ]
        reasons = few if len(few) == len(guessed) else ["there are too few replies yet", *few]
        names = [model.model for model in guessed]
        whose = "" if len(guessed) == len(self.models) else f" of {', '.join(names)}"
        pilot_models = cast("Mapping[str, Mapping[str, object]]", (self.pilot or {}).get("models", {}))
        stopped = {alias for alias, model in pilot_models.items() if model["budget_stopped"]}
        stopped |= {alias for cut in self.cuts for alias in cut.too_small}
        way_out = "`plan --pilot 2` makes a few calls first and forecasts the rest with a range."
        if full := [alias for alias in names if alias in stopped]:  # a pilot would ask nothing
            way_out = (
                f"The budget of {', '.join(full)} allows no more calls. Raise it (`budget_usd` or --budget). "
                "Then `plan --pilot 2` makes the missing calls and forecasts the rest with a range."
            )
        return f"Tokens, cost and time{whose} are guesses (see Assumptions): {'; '.join(reasons)}. {way_out}"

    def _costs(self) -> Sheet:
        """Return the table of dollars and time; a batch price only beside real time, where one is known."""
        batches = [model.batch_usd for model in self.models]
        together = (
            "together",
            _some_dollars([model.cost_usd for model in self.models]),
            _some_dollars([model.cost_usd_most for model in self.models]),
            dollars(total(batches)),
            duration(self.seconds),
            "",
            "",
            "",
        )
        rows = [COST_HEAD, *map(_cost_row, self.models), together]
        if all(model.batch_usd is None or model.batches for model in self.models):
            at = COST_HEAD.index("as a batch")
            rows = [row[:at] + row[at + 1 :] for row in rows]
        return Sheet(title="Cost and time", head=rows[0], rows=rows[1:])


def _trials_row(model: ModelPlan) -> Sequence[str]:
    counts = (model.trials, model.done, model.left, model.input_tokens, model.output_tokens)
    most = "unlimited" if model.output_tokens_most is None else f"{model.output_tokens_most:,}"
    return model.model, *(f"{count:,}" for count in counts), most


def _cost_row(model: ModelPlan) -> tuple[str, ...]:
    cap = "none" if model.max_tokens is None else f"{model.max_tokens:,}" + "*" * model.max_tokens_required
    costs = map(dollars, (model.cost_usd, model.cost_usd_most, model.batch_usd))
    bound_by, source = model.bound_by or "-", model.price_source or "unknown"
    at_most = "up to " if model.batches and model.left else ""
    return model.model, *costs, at_most + duration(model.seconds), bound_by, cap, source


def _forecast_row(model: ModelPlan) -> tuple[str, ...]:
    if model.forecast is None:
        return model.model, ""
    ranges = _range_texts(model.forecast.left, model.forecast.seconds)
    return model.model, str(model.forecast.replies), *ranges


def _range_texts(needs: TokensAndCost[Range], seconds: Range | None) -> Iterator[str]:
    """Yield where tokens, dollars and time begin and end."""
    yield from (f"{needs.output_tokens.p5:,.0f}", f"{needs.output_tokens.p95:,.0f}")
    cost = needs.cost_usd
    yield from ("unknown", "unknown") if cost is None else (dollars(cost.p5), dollars(cost.p95))
    yield from ("", "") if seconds is None else (duration(seconds.p5), duration(seconds.p95))


def _cut_parts(cut: Cut) -> Iterator[str | Sheet]:
    """Yield what budgets or a deadline leave: a line for each that binds, then a row a model."""
    amount = duration if cut.kind == "deadline" else dollars
    all_guessed = len(cut.guessed) == len(cut.usual)
    if cut.complete:
        amounts = ", ".join(f"{amount(most)} of the {name}" for name, most in cut.left.items())
        whose = "the guesses" if all_guessed else f"the guesses for {', '.join(cut.guessed)}"
        sure = f"if {whose} are right" if cut.guessed else "also at the 95th percentile"
        yield f"Left: {amounts}. That is enough for everything, {sure}."
        return
    for name in cut.binding:
        if name in cut.spent_up:
            spent, limit = map(dollars, cut.spent_up[name])
            yield f"The {name} is used up: {spent} of {limit} spent."
        else:
            yield f"The {name} is not enough for everything: {amount(cut.left[name])} left."
    for model, most in cut.too_small.items():
        yield (
            f"{model}: the budget has no room for one more call. A call may cost up to {dollars(most)}, "
            "because its reply may use all of max_tokens."
        )
    if cut.guessed and not all_guessed:
        yield f"{', '.join(cut.guessed)}: guesses, also in the columns of the 95th percentile (p95)."
    rows = [
        (
            usual.model,
            f"{usual.left:,}",
            f"{usual.trials:,}",
            percent(usual.share, decimals=0),
            f"{usual.per_cell:.1f}",
            f"{careful.trials:,}",
            percent(careful.share, decimals=0),
        )
        for usual, careful in zip(cut.usual, cut.careful, strict=True)
        if usual.left
    ]
    columns = CUT_USUALLY if all_guessed else len(CUT_HEAD)
    yield Sheet(
        title="What that is enough for: the first trials of every cell",
        head=CUT_HEAD[:columns],
        rows=[row[:columns] for row in rows],
    )


def _some_dollars(costs: Sequence[float | None]) -> str:
    """Return a sum; where a part is unknown, the sum of the others."""
    known = sum(usd or 0 for usd in costs)
    return f"{dollars(known)} + unknown" if known and None in costs else dollars(total(costs))


# ── values that a sweep varies


def varied_in(models: Sequence[Model]) -> dict[str, dict[str, object]]:
    """Return the parameters that tell each entry from others of the same model, by alias."""
    alike: dict[tuple[str, ...], dict[str, dict[str, object]]] = {}
    for model in models:
        alike.setdefault((model.provider, model.model_id), {})[model.alias] = (
            sent_parameters(model) | model.compared_limits
        )
    return {
        alias: dict(_varied(own, entries.values()))
        for entries in alike.values()
        for alias, own in entries.items()
    }


def _varied(
    own: Mapping[str, object], entries: Collection[Mapping[str, object]]
) -> Iterator[tuple[str, object]]:
    for key in dict.fromkeys(key for entry in entries for key in entry):
        if any(entry.get(key) != own.get(key) for entry in entries):
            yield key, own.get(key)


def _matrix_sheets(models: Sequence[ModelPlan]) -> Iterator[Sheet]:
    """Yield a table with a row for each combination of values and condition, if there are several."""
    keys = list(dict.fromkeys(key for model in models for key in model.varied))
    alike: dict[tuple[str, ...], list[ConditionPlan]] = {}
    for model in models:
        values = tuple(_value_text(model.varied[key]) if key in model.varied else "" for key in keys)
        for plan in model.conditions:
            alike.setdefault((*values, plan.name), []).append(plan)
    rows = [
        (
            *named,
            f"{len(plans):,}",
            f"{sum(plan.trials for plan in plans):,}",
            f"{sum(plan.left for plan in plans):,}",
            dollars(total(plan.cost_usd for plan in plans)),
        )
        for named, plans in alike.items()
    ]
    head = (*keys, "condition", "entrants", "trials", "left", "cost")
    if len(rows) > 1:
        yield Sheet(title=_product(keys, alike), head=head, rows=rows, labels=len(keys) + 1)


def _product(keys: Sequence[str], alike: Mapping[tuple[str, ...], Sequence[ConditionPlan]]) -> str:
    """Return what a matrix is the product of: 3 models × 2 efforts × 2 conditions = 12 entrants."""
    entrants = sum(map(len, alike.values()))
    values = [len({names[place] for names in alike}) for place in range(len(keys) + 1)]
    alone = entrants // prod(values)
    if alone * prod(values) != entrants or len({*map(len, alike.values())}) > 1:  # not all are combined
        return f"Matrix: {number_of(entrants, 'entrant')}"
    sizes = [(alone, "model"), *zip(values, [*keys, "condition"], strict=True)]
    factors = [
        number_of(size, name) if name.isalpha() else f"{size:,} values of {name}"
        for size, name in sizes
        if size > 1
    ]
    return f"Matrix: {' × '.join(factors)} = {number_of(entrants, 'entrant')}"


def _value_text(value: object) -> str:
    return "not set" if value is None else str(value)


# ── assumptions and warnings


def assumptions_of(
    rest: Remainder, drawings: Mapping[str, Drawing | None], plans: Sequence[ModelPlan]
) -> Iterator[str]:
    """Yield the assumptions of a plan, a sentence each."""
    sweep, guessed = rest.sweep, list[tuple[Model, Condition]]()
    for model in rest.models:
        ways = rest.ways_left(model)
        if (drawing := drawings[model.alias]) is not None and ways:
            yield (
                f"{model.alias}: forecast from its {drawing.forecast.replies:,} replies; the result lies in "
                "nine of ten such ranges"
            )
            continue
        if known := [rest.seen[way].used.trials for way in ways if way in rest.seen]:
            yield f"{model.alias}: mean tokens and latency of its {sum(known):,} finished trials"
        guessed += [(model, rest.conditions_of(model)[way.condition]) for way in ways if way not in rest.seen]
    if guessed:
        yield f"input: {CHARACTERS_PER_TOKEN} characters per token"
        yield from dict.fromkeys(assumption(model, condition) for model, condition in guessed)
        yield f"latency: {UNSEEN_LATENCY_S:g} s, then {UNSEEN_TOKENS_PER_S} output tokens per second"
    yield "every trial succeeds at its first attempt, and no input comes from a cache"
    yield from _limits_shared(rest.models)
    if sweep.stop_when is not None:
        yield "`stop_when` stops no more cells, so a run may take less; trials that it skipped are left out"
    yield "worst case: every reply uses all of max_tokens, and every byte sent is a token"
    if any(plan.batch_usd is not None and plan.batches is None for plan in plans):
        yield "as a batch: the provider's batch price for the same calls; `mode: batch` asks them so"
    if batched := [plan.batches for plan in plans if plan.batches is not None]:
        yield "batches: a provider promises them within 24 hours; most end within one, some within minutes"
        if any(one.enqueued_tokens is None for one in batched):
            yield (
                "all prompts fit into the provider's queue at once; else each further filling takes up to 24 "
                "hours more (set `enqueued_tokens` under `batch`, as the limits page of your account says)"
            )
        yield "a batch that was sent is paid: a budget, a deadline and `stop_when` stop further ones only"
    yield from _switches_of(rest, plans)
    if any(model.alias in sweep.max_tokens_demanded for model in rest.models):
        yield "*: the model's longest reply: Anthropic requires max_tokens, and the sweep sets none"


def _limits_shared(models: Iterable[Model]) -> Iterator[str]:
    """Yield who shares a rate limit with whom."""
    groups: dict[str, list[str]] = {}
    for model in models:
        if model.limits.group is not None:
            groups.setdefault(model.limits.group, []).append(model.alias)
    for group, aliases in groups.items():
        if len(aliases) > 1:
            yield f"{', '.join(aliases)} share the rate limit of {group} and take turns"


def _switches_of(rest: Remainder, plans: Sequence[ModelPlan]) -> Iterator[str]:
    """Yield when models leave batches for real time, and why some are not asked in them at all."""
    for model in rest.sweep.models:
        if model.mode == AUTO and (why := why_in_real_time(rest.sweep, model)):
            yield f"{model.alias}: `mode: auto` asks it in real time: {why}"
    for model in rest.models:
        late = model.mode == REALTIME and rest.switches_s(model) is not None
        if late and why_in_real_time(rest.sweep, model) is None:
            yield f"{model.alias}: the deadline leaves no time for batches: all is asked in real time"
    for plan in plans:
        if plan.batches is None or not (wait_s := plan.batches.switch_in_s):
            continue
        at = datetime.fromtimestamp(rest.at_s + wait_s).astimezone()
        yield (
            f"{plan.model}: batches have time until {at:%a %H:%M}, {duration(wait_s)} from now. What is not "
            "answered then is asked in real time, if the budget can pay that. The worst case counts that"
        )


def warnings_of(plans: Sequence[ModelPlan], batching: Batching) -> Iterator[str]:
    """Yield what is unknown or too small in a plan, and what to do about it."""
    yield from _too_small(plans, batching)
    unpriced = [plan.model for plan in plans if plan.price_source is None]
    at_once = [plan.model for plan in plans if plan.batches and plan.batches.realtime_usd is not None]
    if halves := [model for model in unpriced if model in at_once]:
        unpriced = [model for model in unpriced if model not in halves]
        yield (
            f"no batch price is known for {', '.join(halves)}: their cost is unknown. Set "
            "`price: {input: …, output: …, batch: 0.5}` (USD per million tokens, and the part of it that a "
            "batch costs) in the sweep."
        )
    if unpriced:
        yield (
            f"no price is known for {', '.join(unpriced)}: their cost is unknown. "
            "Set `price: {input: …, output: …}` (USD per million tokens) in the sweep."
        )
    unbounded = [plan for plan in plans if plan.cost_usd_most is None]
    unlimited = [plan.model for plan in unbounded if plan.output_tokens_most is None]
    if unlimited:
        yield (
            f"no max_tokens is set for {', '.join(unlimited)}: their replies have no limit, so the worst "
            "case is unknown and no budget can hold them. Set it in the sweep."
        )
    unheld = [
        plan.model
        for plan in unbounded
        if plan.price_source is not None and plan.output_tokens_most is not None
    ]
    if unheld:
        yield (
            f"the worst case of {', '.join(unheld)} is unknown: part of the cost is billed separately from "
            "tokens, or has no known price. No budget can hold it."
        )


def _too_small(plans: Sequence[ModelPlan], batching: Batching) -> Iterator[str]:
    """Yield the limits of a batch that one request is larger than."""
    for plan in plans:
        if plan.batches is None or not plan.left:
            continue
        sizes = {
            "max_bytes": (plan.batches.bytes, batching.max_bytes),
            "enqueued_tokens": (plan.batches.prompt_tokens, batching.enqueued_tokens),
        }
        for name, (all_of_them, most) in sizes.items():
            if most is not None and (one := all_of_them // plan.left) > most:
                yield (
                    f"{plan.model}: one request has about {one:,} {name.rpartition('_')[2]}, more than "
                    f"`{name}: {most}` under `batch`. Each is a batch by itself. Raise `{name}`."
                )
