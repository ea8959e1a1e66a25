"""The figures of a plan, and how they are shown."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum, auto
from typing import cast

from asyncbench.planning.cuts import StillAsked
from asyncbench.planning.forecast.ranges import Range
from asyncbench.planning.forecast.remaining_cost import ENOUGH
from asyncbench.planning.forecasting import Forecast, TrialNeeds
from asyncbench.shown import fitted, safe_notes

Row = tuple[str, ...]


class Outlook(Enum):
    """How dear and slow the rest is taken to be."""

    USUAL = auto()  # the median, or a guess
    CAREFUL = auto()  # the 95th percentile; of what is guessed the same


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
    replies: int = 0  # that are known of it, whose length is
    too_few: tuple[str, ...] = ()  # ways in which it is still asked, and of which too few of them are

    @property
    def guessed(self) -> bool:
        """Whether figures are guesses: something is left, and too little is known to forecast it."""
        return self.forecast is None and self.left > 0

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

    def cost_at(self, outlook: Outlook) -> float | None:
        """Return what is left costs: usually, or at the 95th percentile."""
        if self.forecast is None or self.forecast.left.cost_usd is None:
            return self.cost_usd
        return self.forecast.left.cost_usd.p95 if outlook is Outlook.CAREFUL else self.cost_usd

    def seconds_at(self, outlook: Outlook) -> float:
        """Return how long what is left takes: usually, or at the 95th percentile."""
        if self.forecast is None or outlook is Outlook.USUAL:
            return self.seconds
        return self.forecast.seconds.p95


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a budget or a deadline leaves of a sweep: of every cell the first so many trials."""

    kind: str  # budget or deadline
    left: Mapping[str, float]  # of each budget, USD, or of the deadline, seconds
    binding: tuple[str, ...]  # which of them stop anything, be it at the 95th percentile
    spent_up: Mapping[str, tuple[float, float]]  # USD: spent, limit; of budgets of which nothing is left
    too_small: Mapping[str, float]  # USD to set aside for a call of a model, where no budget has that left
    usual: tuple[StillAsked, ...]  # a model each: as the median is
    careful: tuple[StillAsked, ...]  # as the 95th percentile is; of a model that is guessed the same
    guessed: tuple[str, ...] = ()  # models of which too little is known for a percentile, by alias

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
    forecast_left: TrialNeeds | None  # of all models together; None: of one too little is known
    forecast_total: TrialNeeds | None  # the same with what was used so far
    forecast_seconds: Range | None  # until the slowest lane is done with what is left
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
        """Until the slowest lane is done; the median, where it is forecast."""
        if self.forecast_seconds is not None:
            return self.forecast_seconds.p50
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

    def as_text(self, *, width: int | None = None) -> str:
        """Return what a person wants to know before anything is spent.

        Args:
            width: in characters; None: as wide as the terminal.
        """
        sets = ((one.name, f"{one.rows:,}") for one in self.problem_sets)
        blocks = [
            self.pilot_said,
            _lines(self._opening(), width),
            _table(("problem set", "rows"), sets, width),
            _table(TRIALS_HEAD, map(_trials_row, self.models), width),
            self._costs(width),
            self._forecasts(width),
            *(_cut_text(cut, width) for cut in self.cuts),
            _listed("Assumed:", self.assumptions, width),
            _listed("Beware:", self.warnings, width),
        ]
        return "\n\n".join(filter(None, blocks))

    def _opening(self) -> list[str]:
        first = f", the first {self.limit:,} problems of each model" if self.limit is not None else ""
        simulated = ["SIMULATED models are among these: asyncbench's own server answers for them."]
        asked = "Nothing was asked, nothing was written."
        said = f"{self.sweep}{first}; results in {self.out}. {asked * (not self.pilot)}".rstrip()
        return [*(simulated * self.simulated), said, *self._guesses()]

    def _guesses(self) -> list[str]:
        """Return a warning where figures are guesses: they look like any others."""
        guessed = [one.model for one in self.models if one.guessed]
        if not guessed:
            return []
        whose = "" if len(guessed) == len(self.models) else f" of {', '.join(guessed)}"
        some = [one for one in self.models if one.guessed and one.replies and one.too_few]
        known = "; ".join(
            f"{one.model} has {one.replies:,} replies, but fewer than {ENOUGH} under {', '.join(one.too_few)}"
            for one in some
        )
        said = [known] if len(some) == len(guessed) else ["too few replies are known", *filter(None, [known])]
        first = f"Tokens, dollars and time{whose} are guesses (how is said below): {'; '.join(said)}."
        return [f"{first} {self._way_out(guessed)}"]

    def _way_out(self, guessed: Sequence[str]) -> str:
        """Return how guesses become forecasts: a pilot tells, but where no budget lets it ask."""
        stopped = self._stopped_in_pilot | {alias for cut in self.cuts for alias in cut.too_small}
        if held := [alias for alias in guessed if alias in stopped]:
            return (
                f"The budget of {', '.join(held)} lets no more be asked: raise it (`budget_usd`, --budget), "
                "then `plan --pilot 2` asks what is missing, and forecasts the rest, with a range."
            )
        return "`plan --pilot 2` asks a little first, and forecasts the rest, with a range."

    @property
    def _stopped_in_pilot(self) -> set[str]:
        """The models that the pilot had no money for, by alias."""
        models = cast("Mapping[str, Mapping[str, object]]", (self.pilot or {}).get("models", {}))
        return {alias for alias, one in models.items() if one["budget_stopped"]}

    def _costs(self, width: int | None) -> str:
        """Return the table of dollars and time; without batches where nobody's price of them is known."""
        rows = [COST_HEAD, *map(_cost_row, self.models), self._together()]
        if all(one.batch_usd is None for one in self.models):
            at = COST_HEAD.index(IN_A_BATCH)
            rows = [row[:at] + row[at + 1 :] for row in rows]
        return _table(rows[0], rows[1:], width)

    def _together(self) -> Row:
        known = sum(one.cost_usd or 0 for one in self.models)
        most = sum(one.cost_usd_most or 0 for one in self.models)
        costs = (
            _dollars(self.cost_usd, known=known),
            _dollars(self.cost_usd_most, known=most),
        )
        batch = _dollars(_sum(one.batch_usd for one in self.models))
        return ("together", *costs, batch, duration(self.seconds), "", "", "")

    def _forecasts(self, width: int | None) -> str:
        """Return the ranges that finished trials tell; nothing where there are none."""
        known = [(one.model, one.forecast) for one in self.models if one.forecast is not None]
        if not known:
            return ""
        rows = [_forecast_row(model, one.left, str(one.replies), one.seconds) for model, one in known]
        if self.forecast_left is not None and len(known) > 1:
            rows.append(_forecast_row("together", self.forecast_left, "", self.forecast_seconds))
        return _table(FORECAST_HEAD, rows, width)


def _sum(parts: Iterable[float | None]) -> float | None:
    values = list(parts)
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


# ── how figures are written ──────────────────────────────────────────────────────────────────

BILLED = "as billed"  # the source of a price that only the bills of finished trials tell

IN_A_BATCH = "in a batch"
TRIALS_HEAD = ("model", "trials", "done", "left", "input tok.", "output tok.", "output at most")
COST_HEAD = ("model", "cost", "at most", IN_A_BATCH, "time", "bound by", "max_tokens", "price")
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
CUT_HEAD = ("model", "left", "asked", "share", "per cell", "asked (p95)", "share")
CUT_USUALLY = 5  # columns of it; the others are those of the 95th percentile


def _trials_row(one: ModelPlan) -> Row:
    counts = (one.trials, one.done, one.left, one.input_tokens, one.output_tokens)
    most = "unlimited" if one.output_tokens_most is None else f"{one.output_tokens_most:,}"
    return one.model, *(f"{count:,}" for count in counts), most


def _cost_row(one: ModelPlan) -> Row:
    cap = "none" if one.max_tokens is None else f"{one.max_tokens:,}" + "*" * one.max_tokens_required
    costs = _dollars(one.cost_usd), _dollars(one.cost_usd_most), _dollars(one.batch_usd)
    return one.model, *costs, duration(one.seconds), one.bound_by or "-", cap, one.price_source or "unknown"


def _forecast_row(model: str, left: TrialNeeds, replies: str, seconds: Range | None) -> Row:
    tokens, cost = left.output_tokens, left.cost_usd
    return (
        model,
        replies,
        *(f"{value:,.0f}" for value in (tokens.p5, tokens.p95)),
        *(("unknown", "unknown") if cost is None else map(_dollars, (cost.p5, cost.p95))),
        *(("", "") if seconds is None else map(duration, (seconds.p5, seconds.p95))),
    )


def _cut_text(cut: Cut, width: int | None) -> str:
    """Return what budgets or a deadline leave, a line for each that binds, and a line a model."""
    amount = duration if cut.kind == "deadline" else _dollars
    if cut.complete:
        left = ", ".join(f"{amount(most)} of the {name}" for name, most in cut.left.items())
        return _lines([f"Left: {left}. That is enough for everything, {_how_sure(cut)}."], width)
    said = [_left_text(cut, name, amount(cut.left[name])) for name in cut.binding]
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
        if one.left
    ]
    some = [f"{', '.join(cut.guessed)}: guessed, at the 95th percentile, too."] * bool(cut.guessed)
    columns = len(CUT_HEAD)
    if len(cut.guessed) == len(cut.usual):
        some, columns = [], CUT_USUALLY
    said += [*some, "Asked are, of every cell, the first:"]
    return "\n".join([_lines(said, width), _table(CUT_HEAD[:columns], [r[:columns] for r in rows], width)])


def _left_text(cut: Cut, name: str, left: str) -> str:
    if name not in cut.spent_up:
        return f"Of the {name}, {left} are left."
    spent, limit = map(_dollars, cut.spent_up[name])
    return f"Of the {name}, nothing is left: {spent} of {limit} is spent."


def _how_sure(cut: Cut) -> str:
    if not cut.guessed:
        return "at the 95th percentile, too"
    whose = "they" if len(cut.guessed) == len(cut.usual) else f"those of {', '.join(cut.guessed)}"
    return f"as far as the guesses hold: {whose} have no percentiles yet"


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


def _table(head: Row, rows: Iterable[Row], width: int | None) -> str:
    return fitted(head, list(rows), labels=1, width=width)


def _lines(lines: Iterable[str], width: int | None) -> str:
    return "\n".join(safe_notes(lines, width=width))


def _listed(title: str, lines: Sequence[str], width: int | None) -> str:
    return _lines([title, *(f"- {line}" for line in lines)], width) if lines else ""
