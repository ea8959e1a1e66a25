"""`report --style cost`: the cost of a folder's calls, by purpose, beside forecast and budget."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum
from typing import Final

from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.notes import FolderReport
from asyncbench.pricing import dollars_of, picodollars
from asyncbench.records import BATCH
from asyncbench.reports.cost.counts import (
    CELL_KEYS,
    OK_STATUS,
    CallCosts,
    CostKey,
    UnknownCosts,
    Untold,
    bound_of,
    call_costs,
    keep_calls,
    unknown_by_cause,
    untold_in,
)
from asyncbench.reports.cost.forecast import ForecastReview, expected, forecasts_of
from asyncbench.store.budget_state import spending_of
from asyncbench.store.manifest import IMPORTED, planned, read_manifest
from asyncbench.tables.headings import PER_CORRECT
from asyncbench.tables.numbers import dollars, per_correct, per_correct_text
from asyncbench.tables.report import Sheet, filled

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
    spent: CallCosts
    correct: int | None = None  # right answers asked for here; None: it is no group of trials

    @property
    def usd_a_correct(self) -> float | None:
        """Dollars for a right answer, every call counted; None when none is right or no cost is known."""
        return per_correct(self.spent.known_usd, self.correct)

    def as_mapping(self) -> dict[str, object]:
        """Return every figure."""
        own = {"name": list(self.name), "correct": self.correct, "usd_a_correct": self.usd_a_correct}
        return own | self.spent.as_mapping()


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A cap, and what counts against it: unknown costs with the most that they can be."""

    kind: str  # sweep, provider or model
    of: str
    limit_usd: float
    spent_usd: float
    doubted_usd: float  # of it: what calls of unknown cost could cost at most
    doubted_calls: int  # those calls
    reserved_usd: float  # for calls without an end


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport(FolderReport):
    """Where the money of a folder went."""

    imported: bool
    several: bool  # whether a model has several conditions or runs: they are together everywhere
    reused: int  # answers taken over from another sweep, which cost nothing here
    loaded: int  # of the calls: those of a load
    unended: int  # calls without an end
    unended_reserved_usd: float
    sources: tuple[str, ...]  # whose prices
    whole: Group
    models: tuple[Group, ...]
    tasks: tuple[Group, ...]  # by suite and task
    outcomes: tuple[Group, ...]
    statuses: tuple[Group, ...]  # how calls ended
    modes: tuple[Group, ...]  # real time or batch
    unknown: Mapping[str, UnknownCosts]  # calls without a cost, by cause
    cells: Mapping[CostKey, CallCosts]  # by model, suite, task, outcome and status
    untold: tuple[Untold, ...] = ()  # replies without a count of their tokens
    forecasts: tuple[ForecastReview, ...] = ()
    budgets: tuple[Budget, ...] = ()

    @property
    def priced_share(self) -> float | None:
        """The part of all known tokens whose cost is known, 1 is all."""
        spent = self.whole.spent
        return spent.priced_tokens / spent.tokens if spent.tokens else None

    def _data(self) -> dict[str, object]:
        facts = {
            name: getattr(self, name)
            for name in ("folder", "simulated", "imported", "reused", "loaded", "unended")
        }
        lists = {name: getattr(self, name) for name in ("models", "tasks", "outcomes", "statuses", "modes")}
        return (
            facts
            | {"unended_reserved_usd": self.unended_reserved_usd, "price_sources": self.sources}
            | {"priced_share_of_tokens": self.priced_share, "whole": self.whole.as_mapping()}
            | {name: [group.as_mapping() for group in groups] for name, groups in lists.items()}
            | {"unknown": [{"cause": cause} | asdict(calls) for cause, calls in self.unknown.items()]}
            | {"untold": [untold.as_mapping() for untold in self.untold]}
            | {"cells": [{"name": list(key)} | costs.as_mapping() for key, costs in self.cells.items()]}
            | {"forecasts": [asdict(review) | {"within": review.within} for review in self.forecasts]}
            | {"budgets": [asdict(budget) for budget in self.budgets]}
            | {"nothing": self._nothing}
        )

    @property
    def _nothing(self) -> str | None:
        if self.whole.spent.calls:
            return None
        return (
            f"{self.folder} has no finished call: nothing was asked, or all answers were reused. Run its "
            f"sweep first. `asyncbench status {self.folder}` shows how far it is."
        )

    # ── as tables ────────────────────────────────────────────────────────────────────────────

    def _notes(self) -> Iterator[str]:
        yield from self._simulated()
        yield from [self._nothing] if self._nothing else self._sums()
        if self.several:
            yield "A model's conditions and runs are counted together."
        if self.imported:
            yield "Imported: these are the costs in the imported files. Costs that they lack are not counted."
        if self.reused:
            yield f"{self.reused:,} answers were reused from another sweep and cost nothing here."
        if self.loaded:
            yield f"{self.loaded:,} of these calls were made by `asyncbench load`."
        if self.unended:
            yield (
                f"{self.unended:,} calls have not ended (in flight; lost, if no run is going). The tables "
                f"leave them out. They may cost up to {dollars(self.unended_reserved_usd)}."
            )

    def _sums(self) -> Iterator[str]:
        spent = self.whole.spent
        sentence = f"{dollars(spent.known_usd)} for {spent.calls:,} calls"
        if spent.unknown:
            bound = _bound_text(spent.unknown, spent.unknown_reserved_usd, spent.unknown_unbounded)
            sentence += f". The cost of {spent.unknown:,} of them is unknown ({bound})"
        priced = self.priced_share
        yield (
            f"{sentence}."
            if priced is None
            else f"{sentence}. {priced:.1%} of the known tokens have a price."
        )
        failed = [status.spent for status in self.statuses if status.name != (OK_STATUS,)]
        calls, costs = sum(part.calls for part in failed), [part.known_usd for part in failed]
        usd = fsum(cost for cost in costs if cost is not None)
        unknown = calls and all(cost is None for cost in costs)
        parts = {
            f"Input read from caches: {_share(spent.cached_share)}.": spent.cached_share,
            f"Failed or lost calls: {_of(calls, spent.calls)} of the calls, "
            f"{_dollars_part(_share(None) if unknown else _of(usd, spent.usd))}.": calls,
            f"Retries: {_of(spent.calls_again, spent.calls)} of the calls, "
            f"{_dollars_part(_of(spent.usd_again, spent.usd))}.": spent.calls_again,
        }
        if sentence := " ".join(part for part, count in parts.items() if count):
            yield sentence
        if self.sources:
            yield f"Prices from: {', '.join(self.sources)}."

    def _sheets(self) -> Iterator[Sheet]:
        if self.whole.spent.calls:
            whole = self.whole.spent
            several = [self.whole] if len(self.models) > 1 else []
            yield _money("By model", ("model",), [*self.models, *several], whole)
            yield _kinds("Cost by kind of token", [*self.models, *several], "usd_by_kind")
            yield _kinds("Tokens by kind", [*self.models, *several], "tokens_by_kind")
            yield _money("By suite and task", ("suite", "task"), self.tasks, whole)
            yield _money("By outcome", ("outcome",), self.outcomes, whole)
            yield _money("By status of the attempts", ("status",), self.statuses, whole)
            if any(mode.name == (BATCH,) for mode in self.modes):
                yield _money("Batches and real time", ("mode",), self.modes, whole)
        if self.unknown:
            rows = [
                [why, f"{calls.calls:,}", _bound_text(calls.calls, calls.reserved_usd, calls.unbounded)]
                for why, calls in self.unknown.items()
            ]
            head = ["why", "attempts", "worst case"]
            yield Sheet(title="Attempts of unknown cost", head=head, rows=rows)
        if self.untold:
            yield _estimates(self.untold)
        if self.forecasts:
            yield expected(self.forecasts)
        if self.budgets:
            yield _caps(self.budgets)


def cost_report_on(folder: Folders) -> CostReport:
    """Return what the calls of a results folder cost, every call counted; nothing is changed.

    Raises:
        ConfigError: it is not a results folder, or its sweep.yaml cannot be read.
        StoreError: what it holds cannot be read.
    """
    return counted(folder, cost_report_of)


# Right answers that were asked for here: those taken over from another sweep cost nothing here.
_TRIALS = """
SELECT model, suite, task, count(*) FILTER (reused_from IS NULL AND outcome = 'correct') AS correct,
    count(reused_from) AS reused,
    count(*) FILTER (reused_from IS NULL AND outcome <> 'failed' AND output_tokens IS NULL) AS untold,
    list(DISTINCT price_source) FILTER (reused_from IS NULL AND price_source IS NOT NULL) AS sources
FROM trials GROUP BY GROUPING SETS ((), (model), (suite, task))
"""


def cost_report_of(views: FolderViews) -> CostReport:
    """Return the same of a folder's views."""
    manifest, calls = views.manifest, keep_calls(views)
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
        simulated_note=calls.simulated_note,
        imported=imported,
        several=any(times > 1 for times in Counter(model for _, model, _ in planned(manifest)).values()),
        reused=all_trials["reused"],
        loaded=views.rows("SELECT count(load) AS calls FROM attempts")[0]["calls"],
        unended=len(unended),
        unended_reserved_usd=sum(bound_of(sent) or 0.0 for sent in unended),
        sources=tuple(sorted(all_trials["sources"] or ())),
        whole=Group(name=("all",), spent=costs[()][()], correct=all_trials["correct"]),
        models=_groups(costs["model",], correct),
        tasks=_groups(costs["suite", "task"], correct),
        outcomes=_groups(costs["outcome",], None),
        statuses=_groups(costs["status",], None),
        modes=_groups(costs["mode",], None),
        unknown=unknown_by_cause(costs["status",]),
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


def budgets_in(views: FolderViews) -> Iterator[Budget]:
    """Yield the budgets of all folders, each with all that was spent of it."""
    caps = [
        (label, path, cap) for label, path in views.folders for cap in read_manifest(path).get("budget") or ()
    ]
    books = {path: spending_of(path) for path in {path for _, path, _ in caps}}
    for label, path, cap in caps:
        of, unknown_usd = (cap["kind"], cap["of"], cap.get("also", ())), cap.get("unknown_usd", 0.0)
        counted = books[path].charges(*of)
        yield Budget(
            kind=cap["kind"],
            of=f"{cap['of']} in {label}" if views.chosen.several else cap["of"],
            limit_usd=cap["limit_usd"],
            spent_usd=dollars_of(counted.charged + picodollars(unknown_usd)),
            doubted_usd=dollars_of(counted.doubted + picodollars(unknown_usd)),
            doubted_calls=counted.doubted_calls + cap.get("unknown_calls", 0),
            reserved_usd=dollars_of(counted.reserved),
        )


# ── how figures are written ──────────────────────────────────────────────────────────────────


def _bound_text(calls: int, reserved_usd: float, unbounded: int) -> str:
    """Return what bounds the cost of calls without one."""
    parts = [f"at most {dollars(reserved_usd)}"] * (calls > unbounded)
    if unbounded:
        parts.append(
            f"no upper limit for {unbounded:,} of them" if calls > unbounded else "no upper limit is known"
        )
    return "; ".join(parts)


def _money(title: str, names: Sequence[str], groups: Iterable[Group], whole: CallCosts) -> Sheet:
    head = [
        *names,
        "attempts",
        "cost unknown",
        "cost",
        "share of cost",
        "input from cache",
        "spent on retries",
    ]
    head += ["correct answers", PER_CORRECT]
    rows = []
    for group in groups:
        spent, each = group.spent, group.usd_a_correct
        unknown = spent.calls and spent.known_usd is None  # then it has no share of the known dollars
        at_least = "≥ " if spent.unknown and each is not None else ""
        rows.append(
            [
                *group.name,
                *("" for _ in range(len(names) - len(group.name))),
                f"{spent.calls:,}",
                f"{spent.unknown:,}" if spent.unknown else "-",
                dollars(spent.known_usd),
                _share(None) if unknown else _of(spent.usd, whole.usd),
                _share(spent.cached_share),
                _of(spent.usd_again, spent.usd),
                f"{group.correct or 0:,}",
                at_least + per_correct_text(spent.known_usd, each),
            ]
        )
    if names[0] in ("outcome", "status", "mode"):
        head, rows = head[:-2], [row[:-2] for row in rows]
    return filled(Sheet(title=title, head=head, rows=rows, labels=len(names)))


def _kinds(title: str, groups: Iterable[Group], which: str) -> Sheet:
    listed = list(groups)
    counted = [(group, getattr(group.spent, which)) for group in listed]
    used = [kind for kind in NAMES if any(amounts.get(kind) for _, amounts in counted)]
    if which == "usd_by_kind":
        counted = [(group, amounts) for group, amounts in counted if group.spent.known_usd is not None]
    show = dollars if which == "usd_by_kind" else "{:,}".format
    rows = [[group.name[0], *(show(amounts[kind]) for kind in used)] for group, amounts in counted]
    return Sheet(title=title, head=["model", *(NAMES[kind] for kind in used)], rows=rows)


def _estimates(models: Iterable[Untold]) -> Sheet:
    rows = [
        [
            model.model,
            f"{model.replies:,}",
            f"{model.characters:,}",
            f"{model.characters_per_token:.1f} ({'measured' if model.measured else 'assumed'})",
            f"about {model.estimated_output_tokens:,}",
        ]
        for model in models
    ]
    head = ["model", "replies", "characters", "characters per token", "output tokens (estimate)"]
    return Sheet(title="Replies without token counts (estimates; no sum includes them)", head=head, rows=rows)


def _caps(budgets: Iterable[Budget]) -> Sheet:
    rows = [
        [
            f"{cap.kind} {cap.of}",
            dollars(max(0.0, cap.spent_usd - cap.doubted_usd)),
            f"up to {dollars(cap.doubted_usd)} of {cap.doubted_calls:,} calls" if cap.doubted_calls else "-",
            dollars(cap.limit_usd),
            _of(cap.spent_usd, cap.limit_usd),
            dollars(cap.reserved_usd),
        ]
        for cap in budgets
    ]
    head = ["budget", "spent", "unknown cost", "limit", "used", "reserved"]
    return Sheet(title="Budgets (used: unknown costs count as their worst case)", head=head, rows=rows)


def fine(usd: float) -> str:
    """Return a small amount of USD with two digits that count."""
    return dollars(usd) if usd >= 0.01 or usd == 0 else f"${float(f'{usd:.2g}'):.12f}".rstrip("0")


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _dollars_part(share: str) -> str:
    return "an unknown share of the cost" if share == _share(None) else f"{share} of the cost"


def _of(part: float, whole: float) -> str:
    return _share(part / whole if whole else None)
