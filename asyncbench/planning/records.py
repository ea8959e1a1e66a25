"""The figures of a plan: those that are only partly known, and what is made of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Generic, NamedTuple, Self, TypeVar

from asyncbench.problems.samples import Sample

Number = TypeVar("Number", float, "Range")


def total(parts: Iterable[float | None]) -> float | None:
    """Return the sum; None where a part of it is unknown."""
    values = list(parts)
    numbers = [value for value in values if value is not None]
    return sum(numbers) if len(numbers) == len(values) else None


@dataclass(frozen=True, slots=True)
class Range:
    """The 5th, 50th and 95th percentile of a figure: nine of ten forecasts lie between the outer two."""

    p5: float
    p50: float
    p95: float

    @classmethod
    def of(cls, draws: Iterable[float]) -> Self:
        """Return the range of draws, of which there is at least one; each percentile is one of them."""
        ordered = sorted(draws)
        last = len(ordered) - 1
        return cls(*(ordered[round(last * share)] for share in (0.05, 0.5, 0.95)))

    @classmethod
    def of_known(cls, draws: Iterable[float | None]) -> Self | None:
        """Return the range of draws; None where one of them is unknown."""
        values = list(draws)
        numbers = [value for value in values if value is not None]
        return cls.of(numbers) if len(numbers) == len(values) else None

    def holds(self, value: float) -> bool:
        """Return whether a value is within the 90 % range."""
        return self.p5 <= value <= self.p95


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensAndCost(Generic[Number]):
    """The tokens and the cost of trials: used, or as a range of the forecast."""

    input_tokens: Number
    output_tokens: Number
    cost_usd: Number | None  # None: unknown


class Needs(NamedTuple):
    """The tokens and dollars of some trials: used, guessed, or drawn once. What is not guessed stays 0."""

    trials: int = 0
    input_tokens: float = 0
    output_tokens: float = 0
    latency_s: float | None = 0  # of all calls, one after the other; None: no trial tells
    cost_usd: float | None = 0  # None: no price is known
    batch_usd: float | None = 0  # the same calls in a batch; None: no such price is known
    output_most: int | None = 0  # tokens of all of them; None: nothing limits them
    cost_usd_most: float | None = 0  # None: no price is known, or nothing limits them
    realtime_usd: float | None = 0  # the same calls in real time, whatever the mode
    characters: int = 0  # of all that they say

    @classmethod
    def sum(cls, needs: Iterable[Self]) -> Self:
        """Return the needs of several together."""
        return cls._make(map(total, zip(cls(), *needs, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """The remaining trials of a model in batches, and their cost in real time for comparison."""

    parts: int
    bytes: int  # of all files of requests, estimated
    prompt_tokens: int
    enqueued_tokens: int | None  # that may wait at once, as the sweep says; None: it does not
    enqueued_share: float | None  # of it that all prompts together take
    soonest_s: float
    latest_s: float
    realtime_usd: float | None  # None: no price is known
    realtime_s: float
    chain: int = 1  # batches one after the other, as a budget holds so much at once
    switch_in_s: float | None = None  # when the rest is asked in real time; None: batches have their time


BILLED = "as billed"  # the source of a price that only the bills of finished trials tell


class Outlook(Enum):
    """The assumption about the cost and the time of the remaining trials."""

    USUAL = auto()  # the median, or a guess
    CAREFUL = auto()  # the 95th percentile; of what is guessed the same


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSet:
    """A problem set of the sweep."""

    name: str
    rows: int
    sample: Sample | None = None  # the problems of it that are asked; None: all


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The tokens, cost and time of a model's trials, as its finished ones suggest."""

    replies: int  # it was made from
    spent: TokensAndCost[float]  # dollars: of the calls that gave answers
    left: TokensAndCost[Range]
    batch_usd: Range | None  # of what is left, asked in a batch; None: no such price is known
    total: TokensAndCost[Range]  # of the whole sweep: spent and left
    seconds: Range
    bound_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StillAsked:
    """The trials of one model that a budget or a deadline leaves."""

    model: str  # the alias
    left: int  # trials
    trials: int  # of them that are asked
    per_cell: float  # of them in each cell, on average

    @property
    def share(self) -> float:
        """Of what is left; 1 where nothing is."""
        return self.trials / self.left if self.left else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionPlan:
    """The remaining trials of one model under one condition."""

    name: str
    trials: int
    left: int
    cost_usd: float | None  # of those left; None: no price is known


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """The remaining trials of one model; tokens, cost and time are theirs alone.

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
    group: str | None  # whose lane it shares, or who is asked before it
    seconds: float
    bound_by: str | None  # the limit it waits for: rpm, tpm, …, or concurrency; None: nothing is left
    max_tokens: int | None
    max_tokens_required: bool  # the model's longest reply: the format demands one where the sweep has none
    forecast: Forecast | None = None  # None: too little is known, or nothing is left; figures are guesses
    replies: int = 0  # that are known of it, whose length is
    too_few: tuple[str, ...] = ()  # ways in which it is still asked, and of which too few of them are
    varied: Mapping[str, object] = field(default_factory=dict)  # what tells it from entries of the same model
    conditions: tuple[ConditionPlan, ...] = ()
    batches: BatchPlan | None = None  # None: it is asked in real time

    @property
    def guessed(self) -> bool:
        """Whether the figures are guesses: trials are left, and too few replies are known for a forecast."""
        return self.forecast is None and self.left > 0

    def forecast_by(self, forecast: Forecast) -> "ModelPlan":
        """Return the plan with what finished trials tell in place of guesses."""
        cost = forecast.left.cost_usd
        cost_usd = None if cost is None else cost.p50

        # each condition has its part of the forecast, as it had of the guess
        conditions = self.conditions
        if cost_usd is None:
            conditions = tuple(replace(condition, cost_usd=None) for condition in conditions)
        elif self.cost_usd:
            scale = cost_usd / self.cost_usd
            conditions = tuple(
                condition
                if condition.cost_usd is None
                else replace(condition, cost_usd=condition.cost_usd * scale)
                for condition in conditions
            )
        return replace(
            self,
            conditions=conditions,
            input_tokens=round(forecast.left.input_tokens.p50),
            output_tokens=round(forecast.left.output_tokens.p50),
            cost_usd=cost_usd,
            batch_usd=None if forecast.batch_usd is None else forecast.batch_usd.p50,
            price_source=self.price_source or (BILLED if cost_usd is not None else None),
            seconds=forecast.seconds.p50,
            bound_by=forecast.bound_by,
            forecast=forecast,
        )

    def cost_at(self, outlook: Outlook) -> float | None:
        """Return the cost of the rest: the usual one, or at the 95th percentile."""
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
    """The trials that a budget or a deadline leaves of a sweep: the first ones of every cell."""

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
        return all(model.trials == model.left for model in self.careful)
