"""The figures of a plan, and how they are shown."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from asyncbench.forecast.ranges import Range
from asyncbench.plan.cutting import Kept
from asyncbench.plan.forecasting import Figures, Forecast

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSet:
    """A problem set of the sweep."""

    name: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """What is left of one model: tokens, cost and time are those of the trials left alone.

    Where they are forecast, they are the median.
    """

    model: str  # the alias
    trials: int
    done: int  # finished in the results folder, failed ones included
    left: int
    input_tokens: int
    output_tokens: int
    output_tokens_most: int | None  # None: nothing limits them
    cost_usd: float | None  # None: no price is known
    cost_usd_most: float | None  # None: no price is known, or nothing limits the replies
    batch_usd: float | None  # the same calls in a batch; None: no such price is known
    price_source: str | None
    prices: Sequence[Mapping[str, float]]  # USD for a million tokens of a kind, each bracket; none: unknown
    group: str | None  # whose lane it shares
    seconds: float
    bound_by: str | None  # the limit it waits for: rpm, tpm, …, or concurrency; None: nothing is left
    max_tokens: int | None
    max_tokens_required: bool  # the model's longest reply: the format demands one where the sweep has none
    forecast: Forecast | None = None  # None: too little is known, or nothing is left; figures are guesses

    def forecast_by(self, forecast: Forecast) -> "ModelPlan":
        """Return the plan with what finished trials tell in place of guesses."""
        left = forecast.left
        return replace(
            self,
            input_tokens=round(left.input_tokens.p50),
            output_tokens=round(left.output_tokens.p50),
            cost_usd=None if left.cost_usd is None else left.cost_usd.p50,
            batch_usd=None if forecast.batch_usd is None else forecast.batch_usd.p50,
            price_source=self.price_source or (BILLED if left.cost_usd is not None else None),
            seconds=forecast.seconds.p50,
            bound_by=forecast.bound_by,
            forecast=forecast,
        )

    def cost_at(self, careful: bool) -> float | None:
        """Return what is left costs: usually, or at the 95th percentile."""
        if self.forecast is None or self.forecast.left.cost_usd is None:
            return self.cost_usd
        return self.forecast.left.cost_usd.p95 if careful else self.cost_usd

    def seconds_at(self, careful: bool) -> float:
        """Return how long what is left takes: usually, or at the 95th percentile."""
        return self.seconds if self.forecast is None or not careful else self.forecast.seconds.p95


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a budget or a deadline leaves of a sweep: of every cell the first so many trials."""

    kind: str  # budget or deadline
    left: Mapping[str, float]  # of each budget, USD, or of the deadline, seconds
    binding: tuple[str, ...]  # which of them stop anything, be it at the 95th percentile
    too_small: Mapping[str, float]  # USD to set aside for a call of a model, where no budget has that left
    usual: tuple[Kept, ...]  # a model each: as the median is
    careful: tuple[Kept, ...]  # as the 95th percentile is

    @property
    def complete(self) -> bool:
        """Whether everything is asked even so."""
        return all(one.trials == one.left for one in self.careful)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a sweep would cost and how long it would take."""

    sweep: str
    out: str
    simulated: bool  # whether any of it is answered by the simulator
    limit: int | None  # problems per model
    problem_sets: tuple[PlannedSet, ...]
    models: tuple[ModelPlan, ...]
    forecast_left: Figures | None  # of all models together; None: of one too little is known
    forecast_total: Figures | None  # the same with what was used so far
    cuts: tuple[Cut, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    pilot: Mapping[str, object] | None = None  # what was asked before it was planned; None: nothing
    pilot_said: str = ""  # the same for a person

    @property
    def cost_usd(self) -> float | None:
        """Of all models; None when that of any is unknown."""
        return _sum(one.cost_usd for one in self.models)

    @property
    def cost_usd_most(self) -> float | None:
        """Of all models at most; None when that of any is unknown."""
        return _sum(one.cost_usd_most for one in self.models)

    @property
    def seconds(self) -> float:
        """Until the slowest model is done: each has limits of its own."""
        lanes: dict[str, float] = {}
        for one in self.models:
            lane = one.group or one.model
            lanes[lane] = lanes.get(lane, 0.0) + one.seconds  # of a group, one model's turn is not another's
        return max(lanes.values(), default=0.0)

    def as_json(self) -> str:
        """Return everything as JSON."""
        together = {
            "left": sum(one.left for one in self.models),
            "cost_usd": self.cost_usd,
            "cost_usd_most": self.cost_usd_most,
            "seconds": self.seconds,
            "batch_usd": _sum(one.batch_usd for one in self.models),
            "unpriced": [one.model for one in self.models if one.price_source is None],
        }
        told = asdict(self)
        del told["pilot_said"]
        return json.dumps(told | {"together": together}, indent=2)

    def as_text(self) -> str:
        """Return what a person wants to know before anything is spent."""
        sets = ((one.name, f"{one.rows:,}") for one in self.problem_sets)
        blocks = [
            self.pilot_said,
            self._opening(),
            aligned([("problem set", "rows"), *sets]),
            aligned([TRIALS_HEAD, *map(_trials_row, self.models)]),
            aligned([COST_HEAD, *map(_cost_row, self.models), self._together()]),
            self._forecasts(),
            *map(_cut_text, self.cuts),
            _listed("Assumed:", self.assumptions),
            _listed("Beware:", self.warnings),
        ]
        return "\n\n".join(filter(None, blocks))

    def _opening(self) -> str:
        first = f", the first {self.limit:,} problems of each model" if self.limit is not None else ""
        simulated = ["SIMULATED models are among these: asyncbench's own server answers for them."]
        asked = "Nothing was asked, nothing was written."
        said = f"{self.sweep}{first}; results in {self.out}. {asked * (not self.pilot)}".rstrip()
        return "\n".join(simulated * self.simulated + [said])

    def _together(self) -> Row:
        known = sum(one.cost_usd or 0 for one in self.models)
        most = sum(one.cost_usd_most or 0 for one in self.models)
        costs = (
            _dollars(self.cost_usd, known=known),
            _dollars(self.cost_usd_most, known=most),
        )
        batch = _dollars(_sum(one.batch_usd for one in self.models))
        return ("together", *costs, batch, duration(self.seconds), "", "", "")

    def _forecasts(self) -> str:
        """Return the ranges that finished trials tell; nothing where there are none."""
        known = [(one.model, one.forecast) for one in self.models if one.forecast is not None]
        if not known:
            return ""
        rows = [_forecast_row(model, one.left, str(one.replies), one.seconds) for model, one in known]
        if self.forecast_left is not None and len(known) > 1:
            rows.append(_forecast_row("together", self.forecast_left, "", None))
        return aligned([FORECAST_HEAD, *rows])


def _sum(parts: Iterable[float | None]) -> float | None:
    values = list(parts)
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


# ── how figures are written ──────────────────────────────────────────────────────────────────

BILLED = "as billed"  # the source of a price that only the bills of finished trials tell

TRIALS_HEAD = ("model", "trials", "done", "left", "input tok.", "output tok.", "at most")
COST_HEAD = ("model", "cost", "at most", "in a batch", "time", "bound by", "max_tokens", "price")
FORECAST_HEAD = (
    "nine of ten times",
    "replies",
    "output tok. from",
    "to",
    "cost from",
    "to",
    "time from",
    "to",
)
CUT_HEAD = ("model", "left", "asked", "", "of a cell", "asked (p95)", "")


def _trials_row(one: ModelPlan) -> Row:
    counts = (one.trials, one.done, one.left, one.input_tokens, one.output_tokens)
    most = "unlimited" if one.output_tokens_most is None else f"{one.output_tokens_most:,}"
    return one.model, *(f"{count:,}" for count in counts), most


def _cost_row(one: ModelPlan) -> Row:
    cap = "none" if one.max_tokens is None else f"{one.max_tokens:,}" + "*" * one.max_tokens_required
    costs = _dollars(one.cost_usd), _dollars(one.cost_usd_most), _dollars(one.batch_usd)
    return one.model, *costs, duration(one.seconds), one.bound_by or "-", cap, one.price_source or "unknown"


def _forecast_row(model: str, left: Figures, replies: str, seconds: Range | None) -> Row:
    tokens, cost = left.output_tokens, left.cost_usd
    return (
        model,
        replies,
        *(f"{value:,.0f}" for value in (tokens.p5, tokens.p95)),
        *(("unknown", "unknown") if cost is None else map(_dollars, (cost.p5, cost.p95))),
        *(("", "") if seconds is None else map(duration, (seconds.p5, seconds.p95))),
    )


def _cut_text(cut: Cut) -> str:
    """Return what budgets or a deadline leave, a line for each that binds, and a line a model."""
    amount = duration if cut.kind == "deadline" else _dollars
    if cut.complete:
        left = ", ".join(f"{amount(most)} of the {name}" for name, most in cut.left.items())
        return f"Left: {left}. That is enough for everything, at the 95th percentile, too."
    said = [f"Of the {name}, {amount(cut.left[name])} are left." for name in cut.binding]
    said += [
        f"Not one more call of {model} is made: {_dollars(most)} would be set aside for it, as its reply may "
        "be as long as max_tokens allows."
        for model, most in cut.too_small.items()
    ]
    rows = [
        (
            one.model,
            f"{one.left:,}",
            f"{one.trials:,}",
            f"{one.share:.0%}",
            f"{one.per_cell:.1f}",
            f"{careful.trials:,}",
            f"{careful.share:.0%}",
        )
        for one, careful in zip(cut.usual, cut.careful, strict=True)
    ]
    return "\n".join([*said, "Asked are, of every cell, the first:", aligned([CUT_HEAD, *rows])])


def _dollars(cost: float | None, *, known: float = 0) -> str:
    """Return USD; `known` is the part that is known of an unknown cost."""
    if cost is not None:
        return f"${cost:,.4f}"
    return f"${known:,.4f} + unknown" if known else "unknown"


def duration(seconds: float) -> str:
    """Return hours, minutes and seconds, rounded up to a second: 90.2 s as `0:01:31`."""
    minutes, rest = divmod(-int(-seconds // 1), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def aligned(rows: Sequence[Row]) -> str:
    """Return rows as lines of columns: the first to the left, the others to the right."""
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(
        "  ".join(
            [row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))]
        ).rstrip()
        for row in rows
    )


def _listed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"- {line}" for line in lines)]) if lines else ""
