"""`report --style load`: the outcome of each rate of a load, and the highest rate that kept the SLO."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from math import floor, isinf, log10
from typing import Any, Final, TypeVar

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.notes import FolderReport, NothingToShowError, note_of_simulated
from asyncbench.config.loading import CLOSED
from asyncbench.errors import ConfigError
from asyncbench.lanes.load.measuring import MEASURED
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE, base_in, few_problems
from asyncbench.reports.cost.report import budgets_in, fine
from asyncbench.reports.load.accuracy import StepAnswers, answers_by_step, notes_under_load
from asyncbench.reports.load.steps import PERCENTILES, HighestRate, StepFigures, highest_rates, steps_in
from asyncbench.stats.percentiles import fewest_for
from asyncbench.store.schema import LOST
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.headings import ACCURACY, BESIDE_LIGHTEST, KEPT_SLO, PER_1000_ANSWERS
from asyncbench.tables.numbers import MISSING, first_of, number_of, p_text, percent, points
from asyncbench.tables.report import Columns, Sheet, filled

LATE: Final = 0.01  # of the latency: where this computer was later than that, it is said
BEHIND: Final = 0.98  # of the calls that were due: fewer answers came within a step, and it is said
MOST_NAMED: Final = 8  # steps in a note
# Each with the words of headings under one of which it is shown.
FORMULAS: Final = (
    (
        "Times are seconds from when a call was due. Late: to its written request, without connecting. TTFT: "
        "to the first token, thinking included; TTFO: to the first token of the answer. Latency: to its end; "
        "its mean stands where every call was answered.",
        {"late", "TTFT", "latency"},
    ),
    (
        "TPOT: (latency − TTFT) / (output tokens − 1), without tokens of thinking that is not shown.",
        {"TPOT"},
    ),
    (
        "ITL: between two pieces of a streamed answer, over all gaps of all answers, to within 1.1 %.",
        {"ITL"},
    ),
    (
        "p95: the least time that 95 % of the calls did not exceed; calls without an answer exceed all.",
        {"TTFT", "TPOT", "latency"},
    ),
    (
        "In brackets: 95 % intervals. Those of times (order statistics) are too narrow where calls wait in "
        "one queue: repeat steps. That of `kept the SLO` decides the verdict, and holds whenever you look.",
        {"latency", "kept"},
    ),
    (
        "Per second: answers that came within the step, over its seconds; those of its `drain` do not count. "
        "Goodput: those that kept the SLO.",
        {"due"},
    ),
    (
        "Sent again: the server had closed the kept connection before any of the request reached it, so the "
        "call was made again at once, and its time goes on. Connection lost: it may have read the request.",
        {"again", "connection"},
    ),
    ("Cost per 1,000 answers: dollars of all these calls, over their answers.", {"cost"}),
)
CLOSED_LOOP: Final = (
    "Callers waited for their answers (`closed`). A slow server slows them, so these latencies look better "
    "than for users who do not wait."
)
_PROMISES: Final = {"ttft": "TTFT", "ttfo": "first token of the answer", "tpot": "TPOT", "latency": "latency"}
_DEAREST: Final = """
SELECT model, any_value(provider) AS provider, max(coalesce(reserved_usd, most_usd)) AS usd
FROM attempts GROUP BY model
"""
_PROBLEMS: Final = """
SELECT count(DISTINCT problem_id) AS problems, count(*) AS graded FROM loaded WHERE outcome <> 'failed'
"""
# Steps without a row. Of one that a killed run began, calls count, and the next run writes it down. One that
# ended before any call counted gets none: the server refused those of its warm-up, or somebody stopped it.
_UNWRITTEN: Final = f"""
SELECT model, load, bool_or(phase = '{MEASURED}') AS counted,
    string_agg(DISTINCT status, ', ' ORDER BY status) FILTER (status NOT IN ('ok', '{LOST}')) AS failures
FROM attempts ANTI JOIN steps USING (model, load) WHERE load IS NOT NULL GROUP BY ALL
"""  # noqa: S608  made of our own words alone


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport(FolderReport):
    """The steps of a folder's load."""

    steps: tuple[StepFigures, ...]
    highest: tuple[HighestRate, ...]
    answers: tuple[StepAnswers, ...]
    problems: int = field(metadata=HIDDEN)  # that were answered
    graded: int = field(metadata=HIDDEN)  # answers to them
    unwritten: Sequence[Mapping[str, Any]] = field(metadata=HIDDEN)  # steps without a row, see `_UNWRITTEN`

    @property
    @in_data(None)
    def notes(self) -> Mapping[str, object]:
        """What to know of the figures."""
        return {"notes": [*self._warnings()], "formulas": [text for text, _ in FORMULAS]}

    def _parts(self) -> Iterator[str | Sheet]:
        yield from self._simulated()
        yield from (one.text for one in self.highest)
        yield from notes_under_load(self.answers)
        yield from self._arrivals()
        yield from self._warnings()
        sheets = list(load_sheets(self.steps, self.answers))
        yield from sheets
        yield from what_is_lacking(self.steps)
        heads = {word for sheet in sheets for column in sheet.head for word in column.split()}
        yield from (text for text, words in FORMULAS if words & heads)

    def _arrivals(self) -> Iterator[str]:
        """Yield how calls came, and what was promised."""
        arrivals = ", ".join(dict.fromkeys(step.step.partition(" ")[0] for step in self.steps))
        slos = defaultdict[str, dict[str, None]](dict)
        for step in self.steps:
            if step.slo is not None:
                slos[_promised(step.slo)][step.model] = None
        whose = (f" of {', '.join(models)}" if len(slos) > 1 else "" for models in slos.values())
        promises = (f"SLO{of}: {slo}." for of, slo in zip(whose, slos, strict=True))
        yield " ".join([f"Arrivals: {arrivals}.", *promises])
        if any(step.arrivals == CLOSED for step in self.steps):
            yield CLOSED_LOOP

    def _warnings(self) -> Iterator[str]:
        """Yield what makes figures less than they seem."""
        bound = [step for step in self.steps if step.verdict == CLIENT_BOUND]
        if bound:
            yield (
                f"This computer was the bottleneck at {_named(bound)}: the figures are its own, and there is "
                "no verdict. The next run measures these steps again, and pays for them."
            )
        if stopped := [step for step in self.steps if step.verdict == INCOMPLETE]:
            yield (
                f"Stopped before the end: {_named(stopped)}. The next run measures these steps again, and "
                "pays for them."
            )
        if cut := sum(step["counted"] for step in self.unwritten):
            yield (
                f"Cut off by a crash, and left out: {number_of(cut, 'step')}. The next run writes what is "
                "known of it."
            )
        if uncounted := uncounted_text(self.unwritten):
            yield f"{uncounted}, and left out. The next run measures what is left."
        if late := [step for step in self.steps if (step.late_share or 0.0) > LATE and step not in bound]:
            least, most = (pick(step.late_share or 0.0 for step in late) for pick in (min, max))
            shares = (
                percent(most) if percent(least) == percent(most) else f"{percent(least)} to {percent(most)}"
            )
            yield f"This computer was late by more than 1 % of the latency at {_named(late)}: by {shares}."
        for step in self.steps:
            yield from _shortfall(step)
        if warning := few_problems(self.problems, calls=self.graded):
            yield warning


def uncounted_text(unwritten: Iterable[Mapping[str, Any]]) -> str:
    """Return which steps ended before any of their calls counted, and how these failed; empty: none did."""
    steps = [step for step in unwritten if not step["counted"]]
    failures = dict.fromkeys(step["failures"] for step in steps if step["failures"])
    how = f" ({'; '.join(failures)})" if failures else ""
    return f"Ended before any call counted: {number_of(len(steps), 'step')}{how}" if steps else ""


def _shortfall(step: StepFigures) -> Iterator[str]:
    """Yield why fewer answers came than were asked for."""
    where = f"{step.model} at {step.asked}"
    if step.refused:
        by = f" ({', '.join(map(str, step.refused_with))})" if step.refused_with else ""
        yield (
            f"{where}: {percent(step.refused / step.offered)} of the calls were refused{by}; "
            f"{step.answered_per_s:.3g} answers a second came through."
        )
    if step.dropped:
        yield f"{where}: {percent(step.dropped / step.offered)} of the calls were not sent (`max_in_flight`)."
    if step.saturated and step.arrivals != CLOSED and step.ended < BEHIND * step.answered:
        yield (
            f"{where}: calls in flight kept growing. Only {step.answered_per_s:.3g} answers a second came "
            "before the step ended."
        )


def _promised(slo: Mapping[str, float]) -> str:
    times = ", ".join(f"{words} up to {slo[name]:g} s" for name, words in _PROMISES.items() if name in slo)
    return f"{times} for {100 * slo['share']:.4g} % of the calls"


def _named(steps: Sequence[StepFigures]) -> str:
    """Return steps by model and rate."""
    by_model = groupby(steps[:MOST_NAMED], key=lambda step: step.model)
    named = "; ".join(f"{model} {', '.join(map(_place, own))}" for model, own in by_model)
    return f"{named} and {len(steps) - MOST_NAMED} more" if len(steps) > MOST_NAMED else named


def _place(step: StepFigures) -> str:
    why = step.bound_by if step.verdict == CLIENT_BOUND else None
    return step.asked if why is None else f"{step.asked} ({why})"


def load_report_of(views: FolderViews) -> LoadReport:
    """Return what the load of results folders came to, given views with the answers to it.

    Raises:
        ConfigError: a filter takes parts of steps.
        NothingToShowError: there are no steps.
    """
    if views.chosen.partly:
        raise ConfigError("--style load measures whole steps. Filter by --models alone.")
    steps, of = steps_in(views), views.chosen
    if not steps:
        uncounted = uncounted_text(views.rows(_UNWRITTEN))
        why = f" {uncounted}." if uncounted else ""
        raise NothingToShowError(of, f"{of} has no steps of a load.{why} `asyncbench load` measures them.")
    known = bool(views.manifest.get("simulated"))
    answers = tuple(one for one in answers_by_step(views) if one.load)
    (counts,) = views.rows(_PROBLEMS)
    return LoadReport(
        folder=str(of),
        simulated_note=note_of_simulated(views, known=known),
        steps=steps,
        answers=answers,
        **counts,
        highest=highest_rates(steps, spent=spent_models(views)),
        unwritten=views.rows(_UNWRITTEN),
    )


def spent_models(views: FolderViews) -> set[str]:
    """Return the models of which a budget holds no other call."""
    remaining_usd = {
        (cap.kind, cap.of): cap.limit_usd - cap.spent_usd - cap.reserved_usd for cap in budgets_in(views)
    }
    return {
        row["model"]
        for row in views.rows(_DEAREST)
        for (kind, of), usd in remaining_usd.items()
        if of == row.get(kind, of) and row["usd"] is not None and usd < row["usd"]
    }


# ── The tables: steps, answers, and what repeats say


# What is shown of times, and how it is called.
SHOWN: Final = {
    "latency": ("latency", ("p50", "p95", "p99")),
    "ttft": ("TTFT", ("p50", "p95", "p99")),
    "ttfo": ("TTFO", ("p50", "p95")),
    "tpot": ("TPOT", ("p50", "p95")),
}
DECIMALS: Final = 4  # of seconds, at most
ENDLESS: Final = "∞"
MOST_LACKING: Final = 6  # steps in a note of what is not there


def load_sheets(steps: Sequence[StepFigures], answers: Sequence[StepAnswers]) -> Iterator[Sheet]:
    """Yield the tables of steps and of what they answered, those in which anything stands."""
    sheets = (_steps_sheet(steps), _answers_sheet(steps, answers), _repeats_sheet(steps))
    yield from (sheet for sheet in sheets if sheet.rows and len(sheet.head) > sheet.labels)


Row = TypeVar("Row", StepFigures, StepAnswers)


def _sheet(
    steps: Sequence[StepFigures],
    words: str,
    columns: Columns[Row],
    rows: Iterable[Row],
    *,
    step_of: Callable[[Row], str],
    labels: int = 0,
) -> Sheet:
    """Return a table whose rows are called by their model where there are several, by their pattern likewise.

    Args:
        steps: all that are shown.
        words: its title, which names the only model.
        columns: what stands beside the names; the first `labels` are text.
        rows: a row each.
        step_of: of a row, its step.
    """
    models = sorted({step.model for step in steps})
    patterns = {step.step.partition(" ")[0] for step in steps}
    short = len(patterns) == 1 and CLOSED not in patterns
    names: dict[str, Callable[[Row], str]] = {
        "model": lambda one: one.model,
        "step": lambda one: step_of(one).partition(" ")[2] if short else step_of(one),
    }
    title = words.capitalize()
    if len(models) == 1:
        del names["model"]
        title = f"{models[0]}: {words}"
    return filled(Sheet.of(title, {**names, **columns}, rows, labels=len(names) + labels))


def _steps_sheet(steps: Sequence[StepFigures]) -> Sheet:
    """Return the steps, one a row, with the intervals of latency where there is room."""
    wide, narrow = (
        _sheet(
            steps,
            "steps (times in seconds)",
            _figures(_kinds(steps), intervals=intervals),
            steps,
            step_of=lambda one: one.step,
            labels=1,
        )
        for intervals in (True, False)
    )
    return replace(wide, instead=(narrow,))


def _figures(kinds: Sequence[str], *, intervals: bool) -> Columns[StepFigures]:
    return {
        "verdict": lambda step: (step.verdict or MISSING).replace("_", " "),
        "due per s": lambda step: figure(step.offered_per_s),
        "seconds": lambda step: figure(step.seconds),
        "calls": lambda step: f"{step.offered:,}",
        "answered per s": lambda step: figure(step.answered_per_s),
        KEPT_SLO: lambda step: percent(step.kept_share, step.kept_interval),
        "latency mean": lambda step: figure(step.latency_mean_s),
        **{
            f"{SHOWN[kind][0]} {name}": partial(_time, kind, name, intervals and kind == "latency")
            for kind in kinds
            for name in SHOWN[kind][1]
        },
        **{f"ITL {name}": partial(_gap, name) for name in PERCENTILES},
        "goodput per s": lambda step: figure(step.goodput_per_s),
        "refused": lambda step: _part(step.refused, step.offered),
        "failed": lambda step: _part(step.failed - step.lost, step.offered),
        "unfinished": lambda step: _part(step.unfinished, step.offered),
        "dropped": lambda step: _part(step.dropped, step.offered),
        "sent again": lambda step: _part(step.resent, step.offered),
        "connection lost": lambda step: _part(step.lost, step.offered),
        "in flight": lambda step: figure(step.in_flight_mean),
        "tokens per s": lambda step: figure(step.tokens_per_s),
        PER_1000_ANSWERS: _usd,
        "late p99": lambda step: figure(step.late_p99_s),
    }


def _kinds(steps: Sequence[StepFigures]) -> list[str]:
    """Return the kinds of times that are shown: without TTFO where no model thought before it answered."""
    times = [step.times for step in steps]
    thought = any(one["ttfo"].told_s and one["ttfo"].told_s != one["ttft"].told_s for one in times)
    return [kind for kind in SHOWN if thought or kind != "ttfo"]


def _answers_sheet(steps: Sequence[StepFigures], answers: Sequence[StepAnswers]) -> Sheet:
    whole = {_rate(one) for one in answers if one.verdict != INCOMPLETE}
    # Those of a stopped step count where its rate has no others, as other figures do.
    shown = [one for one in answers if one.verdict != INCOMPLETE or _rate(one) not in whole]
    shown.sort(key=lambda one: (one.model, one.arrivals, one.rate, one.round))
    several = len({*map(_rate, shown)}) < len(shown)
    columns: Columns[StepAnswers] = {
        "graded answers": lambda one: f"{one.accuracy.trials:,}",
        ACCURACY: lambda one: percent(one.accuracy.share, one.accuracy.interval),
        BESIDE_LIGHTEST: lambda one: (
            MISSING if one.beside is None else points(one.beside.moves.difference, one.beside.moves.interval)
        ),
        "p (Holm)": lambda one: MISSING if one.beside is None else p_text(one.beside.p_holm),
        "other texts": lambda one: f"{one.changed:,} of {one.compared:,}" if one.compared else MISSING,
    }
    return _sheet(
        steps, "answers", columns, shown, step_of=lambda one: one.load if several else base_in(one.load)
    )


def _rate(one: StepAnswers) -> tuple[str, str]:
    return one.model, base_in(one.load)


def _repeats_sheet(steps: Sequence[StepFigures]) -> Sheet:
    """Return how far the repeats of a step lie apart."""
    repeated = [step for step in steps if step.repeats]
    columns: Columns[StepFigures] = {
        "steps": lambda step: f"{len(step.repeats):,}",
        KEPT_SLO: lambda step: _range([one.kept_share for one in step.repeats], percent),
        **{
            f"{SHOWN[kind][0]} {name}": partial(_spread, kind, name)
            for kind in _kinds(repeated)
            for name in SHOWN[kind][1]
        },
    }
    return _sheet(steps, "spread of repeats", columns, repeated, step_of=lambda one: one.step)


# ── cells ────────────────────────────────────────────────────────────────────────────────────


def figure(value: float | None) -> str:
    """Return a rate or seconds with three digits that count."""
    if not value:
        return MISSING if value is None else "0"
    digits = floor(log10(value))
    return f"{value:,.{min(DECIMALS, max(0, 2 - digits))}f}"


def _time(kind: str, name: str, interval: bool, step: StepFigures) -> str:
    percentile = step.times[kind].percentile(name)
    if percentile is None or isinf(percentile.value):
        return MISSING
    ends = (ENDLESS if isinf(end) else figure(end) for end in (percentile.low, percentile.high))
    return f"{figure(percentile.value)} ({'-'.join(ends)})" if interval else figure(percentile.value)


def _gap(name: str, step: StepFigures) -> str:
    return figure(step.itl_s(name))


def _spread(kind: str, name: str, step: StepFigures) -> str:
    percentiles = [one.times[kind].percentile(name) for one in step.repeats]
    return _range([percentile and percentile.value for percentile in percentiles], figure)


def _range(values: Sequence[float | None], show: Callable[[float], str]) -> str:
    """Return the least and the most of several; where one is not known, that is no range."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return MISSING
    least, most = (ENDLESS if isinf(value) else show(value) for value in (min(known), max(known)))
    return least if least == most else f"{least} to {most}"


def _part(calls: int, of: int) -> str:
    return percent(calls / of) if calls and of else MISSING


def _usd(step: StepFigures) -> str:
    if step.usd_per_1000 is None:
        return MISSING
    return f"{'≥ ' if step.unpriced else ''}{fine(step.usd_per_1000)}"


# ── why a figure is not there ────────────────────────────────────────────────────────────────


def what_is_lacking(steps: Sequence[StepFigures]) -> Iterator[str]:
    """Yield why percentiles are not there, each reason once."""
    few, others = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for step in steps:
        where, lacking = _where(steps, step), defaultdict[str, dict[str, None]](dict)
        for kind in _kinds(steps):
            (words, names), times = SHOWN[kind], step.times[kind]
            for name in names:
                if times.too_few(name):
                    few[name] += [] if where in few[name] else [where]
                elif why := times.why(name):
                    lacking[why][name if times.told_s else words] = None
        for why, figures in lacking.items():
            others[why].append(f"{where} {', '.join(figures)}")
    for name, places in few.items():
        yield f"Too few calls for {name} ({fewest_for(PERCENTILES[name])}): {first_of(places, MOST_LACKING)}."
    for why, places in others.items():
        yield f"Not there: {first_of(places, MOST_LACKING)}: {why}."


def _where(steps: Sequence[StepFigures], step: StepFigures) -> str:
    return step.asked if len({one.model for one in steps}) == 1 else f"{step.model} {step.asked}"
