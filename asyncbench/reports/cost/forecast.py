"""Forecasts of a folder's models beside their outcomes, like beside like."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asyncbench.analysis.cells import keep_skips
from asyncbench.analysis.counting import FolderViews
from asyncbench.pricing import PICO_PLACES
from asyncbench.reports.cost.counts import CallCosts, CostKey
from asyncbench.tables.data import in_data
from asyncbench.tables.numbers import count, dollars
from asyncbench.tables.report import Columns, Sheet

COST: Final = "cost_usd"
MEASURES: Final = ("input_tokens", "output_tokens", COST)  # that are forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """The calls that gave no answer: failed and lost ones, and those whose trial was asked again."""

    calls: int
    unknown: int  # of them, those whose cost is unknown
    usd: float  # of those whose cost is known


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastReview:
    """What was expected of a model, beside what came.

    A forecast expects each trial to be answered by its first call. So what came are the calls that gave the
    trials their answers; all others stand beside them.
    """

    model: str
    measure: str  # of MEASURES
    p5: float
    p50: float
    p95: float
    actual: float | None  # None: unknown
    trials: int  # finished
    planned: int
    partial: bool = False  # some of what came is unknown: the actual is the least it can be
    skipped: int = 0  # trials that `stop_when` left out
    others: Others | None = None  # None: it is no measure of theirs, for failed calls tell no tokens

    @property
    @in_data("within")
    def within(self) -> bool | None:
        """Whether it came as expected; None where it is not known, or trials are still open or were added."""
        if self.actual is None or self.partial or self.trials != self.planned:
            return None
        return self.p5 <= self.actual <= self.p95


def forecasts_of(views: FolderViews, costs: Mapping[CostKey, CallCosts]) -> Iterator[ForecastReview]:
    """Yield what was forecast of each model from the fewest of its trials, and what came.

    Forecasts of another number of trials, or at other prices, than the latest was made for are of a sweep
    that has changed since.

    Args:
        views: of the results folders.
        costs: what all calls cost, by model.

    Raises:
        ConfigError, StoreError: what the folder holds cannot be read.
    """
    from asyncbench.planning.finished import cost_of_answers
    from asyncbench.planning.forecast_file import read_forecasts  # 0.2 s, which other reports save

    earliest = {
        views.called(label, model): forecast
        for label, path in views.folders
        for model, forecast in _earliest(read_forecasts(path)).items()
        if model in (views.chosen.models or [model])
    }
    if not earliest or views.chosen.partly:
        return
    keep_skips(views)
    rows = views.rows("SELECT model, count(*) AS trials FROM held_skips GROUP BY model")
    skipped = Counter({row["model"]: row["trials"] for row in rows})
    trials = "SELECT trial_id, reused_from, input_tokens, output_tokens FROM trials"
    calls = "SELECT trial_id, attempt, status, cost_usd, input_tokens, output_tokens FROM attempts"
    views.put_when_read(
        "answers", "cost of answers", lambda: cost_of_answers(views.table(trials), views.table(calls))
    )
    came = {row["model"]: row for row in views.rows(_CAME)}
    for model, forecast in sorted(earliest.items()):
        its = came.get(model, _NOTHING)
        for measure in MEASURES:
            if (expected := forecast["total"].get(measure)) is not None:
                calls = its["answers" if measure == COST else "answered"]  # that came, or should have
                known = its[f"{measure}_known"]
                yield ForecastReview(
                    model=model,
                    measure=measure,
                    **{name: expected[name] for name in ("p5", "p50", "p95")},
                    actual=its[measure] if known or not calls else None,
                    trials=its["trials"],
                    planned=forecast["trials"],
                    partial=known < calls,
                    skipped=skipped[model],
                    others=_others(costs.get((model,)), its) if measure == COST else None,
                )


# What came of each model: its trials, those with a reply and their tokens, and the calls that answered them.
_CAME = """
SELECT model, count(*) AS trials, count(*) FILTER (outcome <> 'failed') AS answered,
    count(input_tokens) FILTER (outcome <> 'failed') AS input_tokens_known,
    count(output_tokens) FILTER (outcome <> 'failed') AS output_tokens_known,
    coalesce(sum(input_tokens) FILTER (outcome <> 'failed'), 0)::BIGINT AS input_tokens,
    coalesce(sum(output_tokens) FILTER (outcome <> 'failed'), 0)::BIGINT AS output_tokens,
    count(answers.trial_id) AS answers, count(answers.cost_usd) AS cost_usd_known,
    coalesce(sum_usd(answers.cost_usd), 0) AS cost_usd
FROM trials LEFT JOIN answers USING (trial_id) GROUP BY model
"""
_NOTHING: Final = Counter[str]()


def _earliest(forecasts: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return of each model the forecast that was made from the fewest of its trials."""
    earliest: dict[str, Mapping[str, Any]] = {}
    for kept in reversed(forecasts):
        for model, forecast in kept["models"].items():
            latest = earliest.setdefault(model, forecast)
            alike = all(forecast.get(name) == latest.get(name) for name in ("trials", "prices"))
            if alike and forecast["observed"] < latest["observed"]:
                earliest[model] = forecast
    return earliest


def _others(made: CallCosts | None, came: Mapping[str, Any]) -> Others:
    if made is None:
        return Others(calls=0, unknown=0, usd=0.0)
    return Others(
        calls=made.calls - came["answers"],
        unknown=made.unknown - (came["answers"] - came["cost_usd_known"]),
        usd=max(0.0, round(made.usd - came[COST], PICO_PLACES)),  # what is less is left of rounding
    )


# ── how figures are written ──────────────────────────────────────────────────────────────────


def expected(forecasts: Iterable[ForecastReview]) -> Sheet:
    """Return forecasts beside what came."""
    columns: Columns[ForecastReview] = {
        "model": lambda review: review.model,
        "measure": lambda review: review.measure,
        "forecast": lambda review: _amount(review, review.p50),
        "90 % range": lambda review: f"{_amount(review, review.p5)} to {_amount(review, review.p95)}",
        "actual": lambda review: (
            ("≥ " if review.partial and review.actual is not None else "") + _amount(review, review.actual)
        ),
        "in range": _within,
        "other attempts": lambda review: "" if review.others is None else _others_text(review.others),
        "trials": lambda review: (
            f"{review.trials:,} of {review.planned:,}"
            + (f", {review.skipped:,} skipped" if review.skipped else "")
        ),
    }
    title = "Forecast and actual (only the attempts that gave the answers)"
    return Sheet.of(title, columns, forecasts, labels=2)


def _amount(review: ForecastReview, amount: float | None) -> str:
    return dollars(amount) if review.measure == COST else count(None if amount is None else round(amount))


def _others_text(others: Others) -> str:
    if not others.calls:
        return "none"
    unknown = f", {others.unknown:,} of unknown cost" if others.unknown else ""
    return f"{others.calls:,}: {'≥ ' if others.unknown else ''}{dollars(others.usd)}{unknown}"


def _within(review: ForecastReview) -> str:
    if review.within is not None:
        return "yes" if review.within else "no"
    if review.trials >= review.planned:
        return "unknown"
    return "stopped early" if review.trials + review.skipped >= review.planned else "still open"
