"""What was forecast of a folder's models, beside what came: like beside like."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from asyncbench.planning import cost_of_answers, read_forecasts
from asyncbench.pricing import PICO_PLACES
from asyncbench.records import Outcome
from asyncbench.results import Calls, skips_in
from asyncbench.shown import Sheet, dollars

pc: Any = pyarrow.compute  # see `calls`

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
    def within(self) -> bool | None:
        """Whether it came as expected; None where it is not known, or trials are still open or were added."""
        if self.actual is None or self.partial or self.trials != self.planned:
            return None
        return self.p5 <= self.actual <= self.p95


def forecasts_of(folder: Path, calls: Calls) -> Iterator[ForecastReview]:
    """Yield what was forecast of each model from the fewest of its trials, and what came.

    Forecasts of another number of trials, or at other prices, than the latest was made for are of a sweep
    that has changed since.

    Raises:
        ConfigError, StoreError: what the folder holds cannot be read.
    """
    earliest = _earliest(folder)
    if not earliest:
        return
    skipped = Counter(map(str, skips_in(folder, ["model"]).held["model"].to_pylist()))
    answering = cost_of_answers(calls.trials, calls.table).join(
        calls.trials.select(["trial_id", "model"]), "trial_id"
    )
    for model, one in sorted(earliest.items()):
        trials = calls.trials.filter(pc.equal(calls.trials["model"], model))
        answered = trials.filter(pc.not_equal(trials["outcome"], Outcome.FAILED.value))
        own = answering.filter(pc.equal(answering["model"], model))
        for measure in MEASURES:
            if (expected := one["total"].get(measure)) is not None:
                came = own[COST] if measure == COST else answered[measure]
                yield ForecastReview(
                    model=model,
                    measure=measure,
                    **{name: expected[name] for name in ("p5", "p50", "p95")},
                    actual=pc.sum(came, min_count=min(1, len(came))).as_py(),
                    trials=len(trials),
                    planned=one["trials"],
                    partial=bool(came.null_count),
                    skipped=skipped[model],
                    others=_others(calls, own, model) if measure == COST else None,
                )


def _earliest(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Return of each model the forecast that was made from the fewest of its trials."""
    earliest: dict[str, Mapping[str, Any]] = {}
    for kept in reversed(read_forecasts(folder)):
        for model, one in kept["models"].items():
            latest = earliest.setdefault(model, one)
            alike = all(one.get(name) == latest.get(name) for name in ("trials", "prices"))
            if alike and one["observed"] < latest["observed"]:
                earliest[model] = one
    return earliest


def _others(calls: Calls, answering: pa.Table, model: str) -> Others:
    made = calls.table.filter(pc.equal(calls.table["model"], model))[COST]
    usd, of_answers = (pc.sum(costs).as_py() or 0.0 for costs in (made, answering[COST]))
    return Others(
        calls=len(made) - answering.num_rows,
        unknown=made.null_count - answering[COST].null_count,
        usd=max(0.0, round(usd - of_answers, PICO_PLACES)),  # what is less is left of rounding
    )


# ── how figures are written ──────────────────────────────────────────────────────────────────


def expected(forecasts: Iterable[ForecastReview]) -> Sheet:
    """Return forecasts beside what came."""
    head = ["model", "of what", "forecast", "p5 to p95", "actual", "within", "other calls", "trials"]
    return Sheet(
        title="Forecast and actual (of each trial the call that gave its answer)",
        head=head,
        rows=[_expected_row(one) for one in forecasts],
        labels=2,
    )


def _expected_row(one: ForecastReview) -> list[str]:
    show = dollars if one.measure == COST else "{:,.0f}".format
    return [
        one.model,
        one.measure,
        show(one.p50),
        f"{show(one.p5)} to {show(one.p95)}",
        "unknown" if one.actual is None else f"{'≥ ' if one.partial else ''}{show(one.actual)}",
        _within(one),
        "" if one.others is None else _others_text(one.others),
        f"{one.trials:,} of {one.planned:,}" + (f", {one.skipped:,} skipped" if one.skipped else ""),
    ]


def _others_text(others: Others) -> str:
    if not others.calls:
        return "none"
    unknown = f", {others.unknown:,} of unknown cost" if others.unknown else ""
    return f"{others.calls:,}: {'≥ ' if others.unknown else ''}{dollars(others.usd)}{unknown}"


def _within(one: ForecastReview) -> str:
    if one.within is not None:
        return "yes" if one.within else "no"
    if one.trials >= one.planned:
        return "unknown"
    return "stopped early" if one.trials + one.skipped >= one.planned else "still open"
