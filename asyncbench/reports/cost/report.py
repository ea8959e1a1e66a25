"""`report --style cost`: the cost of a folder's calls, by purpose, beside forecast and budget."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any, Final

from asyncbench.analysis.cells import keep_skips
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.folder_report import FolderReport
from asyncbench.analysis.views import counts_by
from asyncbench.files import quoted
from asyncbench.pricing import PICO_PLACES
from asyncbench.records import BATCH
from asyncbench.reports.cost.counts import (
    CELL_KEYS,
    OK_STATUS,
    CallCosts,
    CostKey,
    bound_of,
    call_costs,
    keep_calls,
    unknown_by_cause,
    untold_in,
)
from asyncbench.store.budget_state import CapUse, cap_uses
from asyncbench.store.manifest import IMPORTED, planned
from asyncbench.tables.data import HIDDEN, INSIDE, data_of, in_data
from asyncbench.tables.headings import PER_CORRECT
from asyncbench.tables.numbers import (
    MISSING,
    at_least,
    count,
    counted_note,
    dollars,
    number_of,
    per_correct,
    per_correct_text,
    percent,
)
from asyncbench.tables.report import Columns, Sheet, filled

# ── Forecasts of a folder's models beside their outcomes, like beside like


Row = Mapping[str, Any]  # Any: of a query
COST: Final = "cost_usd"
MEASURES: Final = ("input_tokens", "output_tokens", COST)  # that are forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastReview:
    """The forecast of one measure of a model, and what it came to.

    A forecast expects each trial to be answered by its first call. So `actual` sums up only the calls that
    gave the trials their answers; all other calls are in `others`.
    """

    model: str
    measure: str  # of MEASURES
    p5: float
    p50: float
    p95: float
    actual: float | None  # None: unknown
    trials: int  # finished trials
    planned: int  # planned trials
    partial: bool = False  # the amount of some calls is unknown, so `actual` is the least it can be
    skipped: int = 0  # trials that `stop_when` left out
    others: Row | None = None  # the result of `_other_calls`; None: failed calls report no tokens

    @property
    @in_data("within")
    def within(self) -> bool | None:
        """True if `actual` is in the range, or None if it is unknown, or trials are open or were added."""
        if self.actual is None or self.partial or self.trials != self.planned:
            return None
        return self.p5 <= self.actual <= self.p95

    @property
    def range_text(self) -> str:
        """Whether `actual` is in the range, or why that is not known."""
        if self.within is not None:
            return "yes" if self.within else "no"
        if self.trials >= self.planned:
            return "unknown"
        return "stopped early" if self.trials + self.skipped >= self.planned else "still open"

    @property
    def others_text(self) -> str:
        """The number and the cost of the other calls."""
        if self.others is None:
            return ""
        if not self.others["calls"]:
            return "none"
        unknown = f", {self.others['unknown']:,} of unknown cost" if self.others["unknown"] else ""
        return f"{self.others['calls']:,}: {'≥ ' if unknown else ''}{dollars(self.others['usd'])}{unknown}"


def forecasts_of(views: FolderViews, costs: Mapping[CostKey, CallCosts]) -> Iterator[ForecastReview]:
    """Yield the earliest forecast of each measure of a model, and what it came to.

    Args:
        views: of the results folders.
        costs: what all calls cost, by model.

    Raises:
        ConfigError, StoreError: a folder cannot be read.
    """
    from asyncbench.planning.finished import cost_of_answers
    from asyncbench.planning.forecast_file import read_forecasts  # 0.2 s, which other reports save

    earliest = {
        views.called(label, model): forecast
        for label, path in views.folders
        for model, forecast in _earliest_forecasts(read_forecasts(path)).items()
        if model in (views.chosen.models or [model])
    }
    if not earliest or views.chosen.partly:
        return
    keep_skips(views)
    rows = views.rows("SELECT model, count(*) AS trials FROM held_skips GROUP BY model")
    skipped = Counter({row["model"]: row["trials"] for row in rows})
    tokens_of_trials = "SELECT trial_id, reused_from, input_tokens, output_tokens FROM trials"
    tokens_of_calls = "SELECT trial_id, attempt, status, cost_usd, input_tokens, output_tokens FROM attempts"
    views.put_when_read(
        "answers",
        "cost of answers",
        lambda views: cost_of_answers(views.table(tokens_of_trials), views.table(tokens_of_calls)),
    )
    came = {row["model"]: row for row in views.rows(_CAME)}
    for model, forecast in sorted(earliest.items()):
        actual = came.get(model, _NOTHING)
        for measure in MEASURES:
            if (expected := forecast["total"].get(measure)) is not None:
                calls = actual["answers" if measure == COST else "replies"]  # that came, or should have
                known_calls = actual[f"{measure}_known"]
                yield ForecastReview(
                    model=model,
                    measure=measure,
                    **{name: expected[name] for name in ("p5", "p50", "p95")},
                    actual=actual[measure] if known_calls or not calls else None,
                    trials=actual["trials"],
                    planned=forecast["trials"],
                    partial=known_calls < calls,
                    skipped=skipped[model],
                    others=_other_calls(costs.get((model,)), actual) if measure == COST else None,
                )


# A row for each model: its trials, those with a reply and their tokens, and the calls that answered them.
_CAME = counts_by(
    "trials LEFT JOIN answers USING (trial_id)",
    ("model",),
    only=("trials", "replies"),
    more=[
        *(
            f"count({tokens}) FILTER (outcome <> 'failed') AS {tokens}_known, "
            f"coalesce(sum({tokens}) FILTER (outcome <> 'failed'), 0)::BIGINT AS {tokens}"
            for tokens in ("input_tokens", "output_tokens")
        ),
        "count(answers.trial_id) AS answers, count(answers.cost_usd) AS cost_usd_known",
        "coalesce(sum_usd(answers.cost_usd), 0) AS cost_usd",
    ],
)
_NOTHING: Final = Counter[str]()


def _earliest_forecasts(forecasts: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return for each model the forecast that was made from the fewest observed trials.

    Forecasts of another number of trials or at other prices than the latest one do not count: the sweep has
    changed since they were made.
    """
    earliest: dict[str, Mapping[str, Any]] = {}
    for kept in reversed(forecasts):
        for model, forecast in kept["models"].items():
            latest = earliest.setdefault(model, forecast)
            alike = all(forecast.get(name) == latest.get(name) for name in ("trials", "prices"))
            if alike and forecast["observed"] < latest["observed"]:
                earliest[model] = forecast
    return earliest


def _other_calls(made: CallCosts | None, came: Row) -> Row:
    """Return the calls that gave no answer: failed and lost ones, and those whose trial was asked again.

    `unknown` is the number of those whose cost is unknown, `usd` the dollars of the others.
    """
    if made is None:
        return {"calls": 0, "unknown": 0, "usd": 0.0}
    return {
        "calls": made.calls - came["answers"],
        "unknown": made.unknown - (came["answers"] - came["cost_usd_known"]),
        "usd": max(0.0, round(made.usd - came[COST], PICO_PLACES)),  # what is less is left of rounding
    }


# ── how figures are written ──────────────────────────────────────────────────────────────────


def _measured(review: ForecastReview, amount: float | None) -> str:
    return dollars(amount) if review.measure == COST else count(None if amount is None else round(amount))


# ── The report


NAMES: Final = {
    "uncached_input": "uncached input",
    "cached_input": "cached input",
    "cache_write_5m": "cache write (5 min)",
    "cache_write_1h": "cache write (1 h)",
    "output": "output",
    "reasoning": "reasoning (part of output)",
    "not_split": "kind unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The calls of one model, suite, task or outcome."""

    name: CostKey
    correct: int | None = None  # right answers, not counting reused ones; None: it is no group of trials
    spent: CallCosts = field(metadata=INSIDE)

    @property
    @in_data("usd_a_correct")
    def usd_a_correct(self) -> float | None:
        """Dollars for each right answer, every call counted, or None if none is right or no cost is known."""
        return per_correct(self.spent.known_usd, self.correct)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport(FolderReport):
    """The cost of a folder's calls by what they were for."""

    imported: bool
    reused: int  # answers taken over from another sweep, which cost nothing here
    loaded: int  # calls that `asyncbench load` made
    unended: int  # calls without an end
    unended_reserved_usd: float
    price_sources: tuple[str, ...]
    several: bool = field(metadata=HIDDEN)  # a model has several conditions or runs, which are summed up here
    whole: Group
    models: tuple[Group, ...]
    tasks: tuple[Group, ...]  # by suite and task
    outcomes: tuple[Group, ...]
    statuses: tuple[Group, ...]  # how calls ended
    modes: tuple[Group, ...]  # real time or batch
    unknown: Sequence[Row]  # calls without a cost: the rows of `unknown_by_cause`
    cells: Mapping[CostKey, CallCosts]  # by model, suite, task, outcome and status
    untold: Sequence[Row] = ()  # replies without a count of their tokens: the rows of `untold_in`
    forecasts: tuple[ForecastReview, ...] = ()
    budgets: tuple[CapUse, ...] = ()

    @property
    @in_data("priced_share_of_tokens")
    def priced_share(self) -> float | None:
        """The share of all known tokens whose cost is known; 1 is all of them."""
        spent = self.whole.spent
        return spent.priced_tokens / spent.tokens if spent.tokens else None

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """The sentence that a folder without calls gets instead of tables."""
        if self.whole.spent.calls:
            return None
        return (
            f"{self.folder} has no finished call: nothing was asked, or all answers were reused. Run its "
            f"sweep first. `asyncbench status {quoted(self.folder)}` shows how far it is."
        )

    def data(self) -> dict[str, object]:
        cells = [{"name": list(key)} | data_of(costs) for key, costs in self.cells.items()]
        return FolderReport.data(self) | {"cells": cells}

    # ── as tables ────────────────────────────────────────────────────────────────────────────

    def notes_above(self) -> Iterator[str]:
        yield from FolderReport.notes_above(self)
        if self.several:
            yield "A model's conditions and runs are counted together."
        if self.imported:
            yield "Imported: these are the costs in the imported files. Costs that they lack are not counted."
        yield from counted_note(self.reused, "answers were reused from another sweep and cost nothing here.")
        yield from counted_note(self.loaded, "of these calls were made by `asyncbench load`.")
        yield from counted_note(
            self.unended,
            "calls have not ended (in flight; lost, if no run is going). The tables leave them out. They may "
            f"cost up to {dollars(self.unended_reserved_usd)}.",
        )

    def remarks(self) -> Iterator[str]:
        spent = self.whole.spent
        cost = at_least(dollars(spent.known_usd), partial=spent.unknown)
        sentence = f"{cost} for {number_of(spent.calls, 'call')}"
        if spent.unknown:
            bound = _bound_text(spent.unknown, spent.unknown_reserved_usd, spent.unknown_unbounded)
            sentence += f". The cost of {spent.unknown:,} of them is unknown ({bound})"
        priced = self.priced_share
        yield (
            f"{sentence}."
            if priced is None
            else f"{sentence}. {percent(priced)} of the known tokens have a price."
        )
        failed = [status.spent for status in self.statuses if status.name != (OK_STATUS,)]
        calls = sum(spending.calls for spending in failed)
        costs = [spending.known_usd for spending in failed]
        usd = fsum(cost for cost in costs if cost is not None)
        unknown = calls and all(cost is None for cost in costs)
        saved = f" Caches saved {fine(spent.usd_saved)}." if spent.usd_saved > 0 else ""
        if spent.usd_saved < 0:
            saved = f" Writing to caches cost {fine(-spent.usd_saved)} more than reading saved."
        notes = {
            f"Input read from caches: {percent(spent.cached_share)}.{saved}": spent.cached_share or saved,
            f"Failed or lost calls: {_share(calls, spent.calls)} of the calls, "
            f"{_share_of_cost(_share(None if unknown else usd, spent.usd))}.": calls,
            f"Retries: {_share(spent.calls_again, spent.calls)} of the calls, "
            f"{_share_of_cost(_share(spent.usd_again, spent.usd))}.": spent.calls_again,
        }
        if sentence := " ".join(note for note, count in notes.items() if count):
            yield sentence
        if self.price_sources:
            yield f"Prices from: {', '.join(self.price_sources)}."

    def sheets(self) -> Iterator[Sheet]:
        if self.whole.spent.calls:
            whole = self.whole.spent
            several = [self.whole] if len(self.models) > 1 else []
            yield _cost_sheet("By model", ("model",), [*self.models, *several], whole)
            yield from _kind_sheets("Cost by kind of token", [*self.models, *several], "usd_by_kind")
            yield from _kind_sheets("Tokens by kind", [*self.models, *several], "tokens_by_kind")
            yield _cost_sheet("By suite and task", ("suite", "task"), self.tasks, whole)
            yield _cost_sheet("By outcome", ("outcome",), self.outcomes, whole)
            yield _cost_sheet("By status of the attempts", ("status",), self.statuses, whole)
            if any(mode.name == (BATCH,) for mode in self.modes):
                yield _cost_sheet("Batches and real time", ("mode",), self.modes, whole)
        yield Sheet.of("Attempts of unknown cost", UNKNOWN, self.unknown)
        yield Sheet.of(
            "Replies without token counts (estimates; no sum includes them)", ESTIMATES, self.untold
        )
        yield Sheet.of(
            "Forecast and actual (only the attempts that gave the answers)",
            FORECASTS,
            self.forecasts,
            labels=2,
        )
        yield Sheet.of("Budgets (used: unknown costs count as their worst case)", BUDGETS, self.budgets)


# Right answers by model and by task. Answers reused from another sweep cost nothing here and do not count.
_TRIALS = counts_by(
    "(SELECT * REPLACE (CASE WHEN reused_from IS NULL THEN outcome END AS outcome) FROM trials)",
    *((), ("model",), ("suite", "task")),
    only=("correct",),
    more=[
        "count(reused_from) AS reused",
        "count(*) FILTER (outcome <> 'failed' AND output_tokens IS NULL) AS untold",
        "list(DISTINCT price_source) FILTER (outcome IS NOT NULL AND price_source IS NOT NULL) AS sources",
    ],
)


def cost_report_of(views: FolderViews) -> CostReport:
    """Return the cost of folders, every call counted.

    Raises:
        ConfigError: the sweep.yaml of a folder cannot be read.
        StoreError: a folder cannot be read.
    """
    manifest, (simulated_note, _) = views.manifest, keep_calls(views)
    costs = call_costs(views)
    trials = {
        tuple(row[key] for key in ("model", "suite", "task") if row[key] is not None): row
        for row in views.rows(_TRIALS)
    }
    correct = {name: row["correct"] for name, row in trials.items()}
    all_trials, unended = trials[()], views.unended
    imported = bool(manifest.get(IMPORTED))
    return CostReport(
        folder=str(views.chosen),
        simulated_note=simulated_note,
        imported=imported,
        several=any(times > 1 for times in Counter(model for _, model, _ in planned(manifest)).values()),
        reused=all_trials["reused"],
        loaded=views.rows("SELECT count(load) AS calls FROM attempts")[0]["calls"],
        unended=len(unended),
        unended_reserved_usd=sum(bound_of(sent) or 0.0 for sent in unended),
        price_sources=tuple(sorted(all_trials["sources"] or ())),
        whole=Group(name=("all",), spent=costs[()][()], correct=all_trials["correct"]),
        models=_groups(costs["model",], correct),
        tasks=_groups(costs["suite", "task"], correct),
        outcomes=_groups(costs["outcome",], None),
        statuses=_groups(costs["status",], None),
        modes=_groups(costs["mode",], None),
        unknown=unknown_by_cause(views),
        cells=costs[CELL_KEYS],
        untold=untold_in(views) if all_trials["untold"] and not imported else (),
        forecasts=tuple(forecasts_of(views, costs["model",])),
        budgets=tuple(budgets_in(views)),
    )


def _groups(costs: Mapping[CostKey, CallCosts], correct: Mapping[CostKey, int] | None) -> tuple[Group, ...]:
    return tuple(
        Group(name=name, spent=spent, correct=None if correct is None else correct.get(name, 0))
        for name, spent in costs.items()
    )


def budgets_in(views: FolderViews) -> Iterator[CapUse]:
    """Yield the budgets of all folders, each with its spending."""
    for label, path in views.folders:
        for cap in cap_uses(path):
            yield replace(cap, of=f"{cap.of} in {label}") if views.chosen.several else cap


# ── how figures are written ──────────────────────────────────────────────────────────────────


def _bound_text(calls: int, reserved_usd: float, unbounded: int) -> str:
    """Return the upper limit of what calls of unknown cost may have cost, in words."""
    parts = [f"at most {dollars(reserved_usd)}"] * (calls > unbounded)
    if unbounded:
        parts.append(
            f"no upper limit for {unbounded:,} of them" if calls > unbounded else "no upper limit is known"
        )
    return "; ".join(parts)


def _cost_sheet(title: str, names: Sequence[str], groups: Iterable[Group], whole: CallCosts) -> Sheet:
    columns: dict[str, Callable[[Group], str]] = {
        names[0]: lambda group: group.name[0],
        names[-1]: lambda group: (*group.name, "")[len(names) - 1],
        "attempts": lambda group: count(group.spent.calls),
        "cost unknown": lambda group: count(group.spent.unknown) if group.spent.unknown else MISSING,
        "cost": lambda group: at_least(dollars(group.spent.known_usd), partial=group.spent.unknown),
        "share of cost": lambda group: _share(group.spent.known_usd, whole.usd),
        "input from cache": lambda group: percent(group.spent.cached_share),
        "spent on retries": lambda group: _share(group.spent.usd_again, group.spent.usd),
        "correct answers": lambda group: count(group.correct or 0),
        PER_CORRECT: lambda group: at_least(
            per_correct_text(group.spent.known_usd, group.usd_a_correct), partial=group.spent.unknown
        ),
    }
    if names[0] in ("outcome", "status", "mode"):
        del columns["correct answers"], columns[PER_CORRECT]
    return filled(Sheet.of(title, columns, groups, labels=len(names)))


def _kind_sheets(title: str, groups: Sequence[Group], which: str) -> Iterator[Sheet]:
    """Yield a table of the kinds of tokens that were used; none where no kind has a cost or count."""
    used = [kind for kind in NAMES if any(getattr(group.spent, which).get(kind) for group in groups)]
    if not used:
        return
    in_usd = which == "usd_by_kind"
    rows = []
    for group in groups:
        if not in_usd or group.spent.known_usd is not None:
            amounts = [getattr(group.spent, which)[kind] for kind in used]
            rows.append([group.name[0], *(dollars(n) if in_usd else count(n) for n in amounts)])
    yield Sheet(title=title, head=("model", *(NAMES[kind] for kind in used)), rows=rows)


def fine(usd: float) -> str:
    """Return an amount of USD, with two significant digits if it is less than a cent."""
    return dollars(usd) if usd >= 0.01 or usd == 0 else f"${float(f'{usd:.2g}'):.12f}".rstrip("0")


def _share_of_cost(share: str) -> str:
    return "an unknown share of the cost" if share == MISSING else f"{share} of the cost"


def _share(amount: float | None, whole: float) -> str:
    return percent(amount / whole if whole and amount is not None else None)


UNKNOWN: Final[Columns[Row]] = {
    "why": lambda row: row["cause"],
    "attempts": lambda row: count(row["calls"]),
    "worst case": lambda row: _bound_text(row["calls"], row["reserved_usd"], row["unbounded"]),
}
FORECASTS: Final[Columns[ForecastReview]] = {
    "model": lambda review: review.model,
    "measure": lambda review: review.measure,
    "forecast": lambda review: _measured(review, review.p50),
    "90 % range": lambda review: f"{_measured(review, review.p5)} to {_measured(review, review.p95)}",
    "actual": lambda review: (
        ("≥ " if review.partial and review.actual is not None else "") + _measured(review, review.actual)
    ),
    "in range": lambda review: review.range_text,
    "other attempts": lambda review: review.others_text,
    "trials": lambda review: (
        f"{review.trials:,} of {review.planned:,}"
        + (f", {review.skipped:,} skipped" if review.skipped else "")
    ),
}
ESTIMATES: Final[Columns[Row]] = {
    "model": lambda row: row["model"],
    "replies": lambda row: count(row["replies"]),
    "characters": lambda row: count(row["characters"]),
    "characters per token": lambda row: (
        f"{row['characters_per_token']:.1f} ({'measured' if row['measured'] else 'assumed'})"
    ),
    "output tokens (estimate)": lambda row: f"about {row['estimated_output_tokens']:,}",
}
BUDGETS: Final[Columns[CapUse]] = {
    "budget": lambda cap: f"{cap.kind} {cap.of}",
    "spent": lambda cap: dollars(max(0.0, cap.spent_usd - cap.doubted_usd)),
    "unknown cost": lambda cap: (
        f"up to {dollars(cap.doubted_usd)} of {cap.doubted_calls:,} calls" if cap.doubted_calls else MISSING
    ),
    "limit": lambda cap: dollars(cap.limit_usd),
    "used": lambda cap: _share(cap.spent_usd, cap.limit_usd),
    "reserved": lambda cap: dollars(cap.reserved_usd),
}
