"""`report --style load`: the outcome of each rate of a load, and the highest rate that kept the SLO."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import floor, isinf, log10
from typing import Any, Final, TypeVar

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.folder_report import FolderReport, NothingToShowError
from asyncbench.analysis.served import note_of_simulated
from asyncbench.config.loading import CLOSED
from asyncbench.errors import ConfigError
from asyncbench.lanes.load.measuring import MEASURED
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE, MISSED, base_in, few_problems
from asyncbench.reports.cost.report import budgets_in, fine
from asyncbench.reports.load.accuracy import StepAnswers, answers_by_step, notes_under_load
from asyncbench.reports.load.lengths import AskedLengths, asked_lengths
from asyncbench.reports.load.replays import ReplayedTrace, replayed_traces
from asyncbench.reports.load.steps import PERCENTILES, HighestRate, StepFigures, highest_rates, steps_in
from asyncbench.stats.percentiles import fewest_for
from asyncbench.store.schema import LOST
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.headings import ACCURACY, BESIDE_LIGHTEST, KEPT_SLO, PER_1000_ANSWERS
from asyncbench.tables.numbers import MISSING, at_least, first_of, number_of, p_text, percent, points
from asyncbench.tables.report import Columns, Sheet, filled

LATE: Final = 0.01  # a warning is shown where this computer was late by more than this share of the latency
BEHIND: Final = 0.98  # a warning is shown where a smaller share of the answers came within the step
MOST_NAMED: Final = 8  # a note names at most so many steps
# Sentences, each with the words of headings: it is shown where one of these words is in a heading.
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
        "Tokens per s per user: output tokens a second, over the callers (`closed`). At a rate, each call in "
        "flight is a user: output tokens of the answers, over the sum of their latencies.",
        {"user"},
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
# Steps without a row in `steps`. A step that a killed run began has calls that count, and the next run writes
# its row. A step that ended before any call counted gets no row: the server refused the calls of its warm-up,
# or somebody stopped it.
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
    lengths: tuple[AskedLengths, ...]  # empty: no questions were made of a length
    replays: tuple[ReplayedTrace, ...]  # empty: no trace was replayed
    problems: int = field(metadata=HIDDEN)  # number of problems with an answer
    graded: int = field(metadata=HIDDEN)  # number of answers
    unwritten: Sequence[Mapping[str, Any]] = field(metadata=HIDDEN)  # the rows of `_UNWRITTEN`

    @property
    @in_data(None)
    def notes(self) -> Mapping[str, object]:
        """The warnings about the figures, and how they are computed."""
        return {"notes": [*self._warnings()], "formulas": [text for text, _ in FORMULAS]}

    def content(self) -> Iterator[str | Sheet]:
        yield from self.simulated_notes()
        yield from (rate.text for rate in self.highest)
        yield from notes_under_load(self.answers)
        yield from (length.text for length in self.lengths)
        yield from (replay.text for replay in self.replays)

        arrivals = ", ".join(dict.fromkeys(step.step.partition(" ")[0] for step in self.steps))
        slos = defaultdict[str, dict[str, None]](dict)
        for step in self.steps:
            if step.slo is not None:
                limits = [
                    f"{words} up to {step.slo[name]:g} s"
                    for name, words in _PROMISES.items()
                    if name in step.slo
                ]
                slos[f"{', '.join(limits)} for {100 * step.slo['share']:.4g} % of the calls"][step.model] = (
                    None
                )
        promises = [
            f"SLO of {', '.join(models)}: {slo}." if len(slos) > 1 else f"SLO: {slo}."
            for slo, models in slos.items()
        ]
        yield " ".join([f"Arrivals: {arrivals}.", *promises])
        if any(step.arrivals == CLOSED for step in self.steps):
            yield CLOSED_LOOP

        yield from self._warnings()
        sheets = list(load_sheets(self.steps, self.answers))
        yield from sheets
        yield from missing_notes(self.steps)
        heads = {word for sheet in sheets for column in sheet.head for word in column.split()}
        yield from (text for text, words in FORMULAS if words & heads)

    def _warnings(self) -> Iterator[str]:
        """Yield the reasons for which figures may mislead or are missing."""
        bound = [step for step in self.steps if step.verdict == CLIENT_BOUND]
        if bound:
            yield (
                f"This computer was the bottleneck at {_named(bound)}: the figures are its own, and there is "
                "no verdict. The next run measures these steps again, and pays for them."
            )
        if late := [step for step in self.steps if step.bound_by and step.verdict == MISSED]:
            yield (
                f"This computer was late, too, at {_named(late)}, but not by as much as calls missed the SLO."
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
            shares = _range_text([step.late_share or 0.0 for step in late], percent)
            yield f"This computer was late by more than 1 % of the latency at {_named(late)}: by {shares}."
        for step in self.steps:
            where = f"{step.model} at {step.asked}"
            if step.refused:
                statuses = f" ({', '.join(map(str, step.refused_with))})" if step.refused_with else ""
                yield (
                    f"{where}: {percent(step.refused / step.offered)} of the calls were refused{statuses}; "
                    f"{step.answered_per_s:.3g} answers a second came through."
                )
            if step.dropped:
                share = percent(step.dropped / step.offered)
                yield f"{where}: {share} of the calls were not sent (`max_in_flight`)."
            if step.saturated and step.arrivals != CLOSED and step.ended < BEHIND * step.answered:
                yield (
                    f"{where}: calls in flight kept growing. Only {step.answered_per_s:.3g} answers a second "
                    "came before the step ended."
                )
        if warning := few_problems(self.problems, calls=self.graded):
            yield warning


def uncounted_text(unwritten: Iterable[Mapping[str, Any]]) -> str:
    """Return how many steps ended before any of their calls counted, and why; empty where none did."""
    steps = [step for step in unwritten if not step["counted"]]
    failures = dict.fromkeys(step["failures"] for step in steps if step["failures"])
    how = f" ({'; '.join(failures)})" if failures else ""
    return f"Ended before any call counted: {number_of(len(steps), 'step')}{how}" if steps else ""


def _named(steps: Sequence[StepFigures]) -> str:
    """Return the names of steps, by model and rate."""
    rates = defaultdict[str, list[str]](list)
    for step in steps[:MOST_NAMED]:
        why = step.bound_by if step.verdict == CLIENT_BOUND else None
        rates[step.model].append(step.asked if why is None else f"{step.asked} ({why})")
    named = "; ".join(f"{model} {', '.join(model_rates)}" for model, model_rates in rates.items())
    return f"{named} and {len(steps) - MOST_NAMED} more" if len(steps) > MOST_NAMED else named


def load_report_of(views: FolderViews) -> LoadReport:
    """Return the figures of the load of results folders, given views with the answers to it.

    Raises:
        ConfigError: a filter splits steps.
        NothingToShowError: there are no steps.
    """
    if views.chosen.partly:
        raise ConfigError("--style load measures whole steps. Filter by --models alone.")
    steps, folders = steps_in(views), views.chosen
    if not steps:
        uncounted = uncounted_text(views.rows(_UNWRITTEN))
        why = f" {uncounted}." if uncounted else ""
        raise NothingToShowError(
            folders, f"{folders} has no steps of a load.{why} `asyncbench load` measures them."
        )
    answers = tuple(step for step in answers_by_step(views) if step.load)
    (counts,) = views.rows(_PROBLEMS)
    return LoadReport(
        folder=str(folders),
        simulated_note=note_of_simulated(views, simulated=bool(views.manifest.get("simulated"))),
        steps=steps,
        answers=answers,
        lengths=asked_lengths(views, steps),
        replays=replayed_traces(views, steps),
        **counts,
        highest=highest_rates(steps, spent=spent_models(views)),
        unwritten=views.rows(_UNWRITTEN),
    )


def spent_models(views: FolderViews) -> set[str]:
    """Return the models whose budget is too small for another call."""
    remaining_usd = {
        (cap.kind, cap.of): cap.limit_usd - cap.spent_usd - cap.reserved_usd for cap in budgets_in(views)
    }
    return {
        row["model"]
        for row in views.rows(_DEAREST)
        for (kind, name), usd in remaining_usd.items()
        if name == row.get(kind, name) and row["usd"] is not None and usd < row["usd"]
    }


# ── The tables: steps, answers, and what repeats say


# The percentiles that are shown of each kind of times, and the heading of the kind.
SHOWN: Final = {
    "latency": ("latency", ("p50", "p95", "p99")),
    "ttft": ("TTFT", ("p50", "p95", "p99")),
    "ttfo": ("TTFO", ("p50", "p95")),
    "tpot": ("TPOT", ("p50", "p95")),
}
DECIMALS: Final = 4  # seconds have at most so many
ENDLESS: Final = "∞"
MOST_LACKING: Final = 6  # a note on missing figures names at most so many steps


def load_sheets(steps: Sequence[StepFigures], answers: Sequence[StepAnswers]) -> Iterator[Sheet]:
    """Yield the tables of steps, of their answers and of their repeats, without empty ones."""
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
    """Return a table of rows that name the model and the pattern, where there are several.

    Args:
        steps: all steps of the report.
        words: the title, before which the only model is named.
        columns: the columns beside the names; the first `labels` are text.
        rows: the records, one for each row.
        step_of: returns the step of a record.
    """
    models = sorted({step.model for step in steps})
    patterns = {step.step.partition(" ")[0] for step in steps}
    short = len(patterns) == 1 and CLOSED not in patterns
    names: dict[str, Callable[[Row], str]] = {
        "model": lambda row: row.model,
        "step": lambda row: step_of(row).partition(" ")[2] if short else step_of(row),
    }
    title = words.capitalize()
    if len(models) == 1:
        del names["model"]
        title = f"{models[0]}: {words}"
    return filled(Sheet.of(title, {**names, **columns}, rows, labels=len(names) + labels))


def _steps_sheet(steps: Sequence[StepFigures]) -> Sheet:
    """Return a table of steps, with the intervals of latency where there is room."""
    columns: dict[str, Callable[[StepFigures], str]] = {
        "verdict": lambda step: (step.verdict or MISSING).replace("_", " "),
        "due per s": lambda step: figure(step.offered_per_s),
        "seconds": lambda step: figure(step.seconds),
        "calls": lambda step: f"{step.offered:,}",
        "answered per s": lambda step: figure(step.answered_per_s),
        KEPT_SLO: lambda step: percent(step.kept_share, step.kept_interval),
        "latency mean": lambda step: figure(step.latency_mean_s),
        **{
            f"{SHOWN[kind][0]} {name}": partial(_time_text, kind, name, False)
            for kind in _kinds(steps)
            for name in SHOWN[kind][1]
        },
        "ITL p50": lambda step: figure(step.itl_s("p50")),
        "ITL p95": lambda step: figure(step.itl_s("p95")),
        "ITL p99": lambda step: figure(step.itl_s("p99")),
        "goodput per s": lambda step: figure(step.goodput_per_s),
        "refused": lambda step: _share(step.refused, step.offered),
        "failed": lambda step: _share(step.failed - step.lost, step.offered),
        "unfinished": lambda step: _share(step.unfinished, step.offered),
        "dropped": lambda step: _share(step.dropped, step.offered),
        "sent again": lambda step: _share(step.resent, step.offered),
        "connection lost": lambda step: _share(step.lost, step.offered),
        "in flight": lambda step: figure(step.in_flight_mean),
        "tokens per s": lambda step: figure(step.tokens_per_s),
        "tokens per s per user": lambda step: figure(step.tokens_per_s_per_user),
        "tokens per s per GPU": lambda step: figure(step.tokens_per_s_per_gpu),
        PER_1000_ANSWERS: lambda step: (
            MISSING if step.usd_per_1000 is None else at_least(fine(step.usd_per_1000), partial=step.unpriced)
        ),
        "late p99": lambda step: figure(step.late_p99_s),
    }
    intervals: dict[str, Callable[[StepFigures], str]] = {
        f"latency {name}": partial(_time_text, "latency", name, True) for name in SHOWN["latency"][1]
    }
    wide, narrow = (
        _sheet(steps, "steps (times in seconds)", shown, steps, step_of=lambda step: step.step, labels=1)
        for shown in (columns | intervals, columns)
    )
    return replace(wide, instead=(narrow,))


def _kinds(steps: Sequence[StepFigures]) -> list[str]:
    """Return the kinds of times to show: TTFO only where a model thought before it answered."""
    times = [step.times for step in steps]
    thought = any(
        step_times["ttfo"].told_s and step_times["ttfo"].told_s != step_times["ttft"].told_s
        for step_times in times
    )
    return [kind for kind in SHOWN if thought or kind != "ttfo"]


def _answers_sheet(steps: Sequence[StepFigures], answers: Sequence[StepAnswers]) -> Sheet:
    whole = {_rate_key(step) for step in answers if step.verdict != INCOMPLETE}
    # The answers of a stopped step count only where its rate has no other step, as all its figures do.
    shown = [step for step in answers if step.verdict != INCOMPLETE or _rate_key(step) not in whole]
    shown.sort(key=lambda step: (step.model, step.arrivals, step.rate, step.round))
    several = len({*map(_rate_key, shown)}) < len(shown)
    columns: Columns[StepAnswers] = {
        "graded answers": lambda step: f"{step.accuracy.trials:,}",
        ACCURACY: lambda step: percent(step.accuracy.share, step.accuracy.interval),
        BESIDE_LIGHTEST: lambda step: (
            MISSING
            if step.beside is None
            else points(step.beside.moves.difference, step.beside.moves.interval)
        ),
        "p (Holm)": lambda step: MISSING if step.beside is None else p_text(step.beside.p_holm),
        "other texts": lambda step: f"{step.changed:,} of {step.compared:,}" if step.compared else MISSING,
    }
    return _sheet(
        steps, "answers", columns, shown, step_of=lambda step: step.load if several else base_in(step.load)
    )


def _rate_key(step: StepAnswers) -> tuple[str, str]:
    return step.model, base_in(step.load)


def _repeats_sheet(steps: Sequence[StepFigures]) -> Sheet:
    """Return a table of how far apart the repeats of a step are."""
    repeated = [step for step in steps if step.repeats]
    columns: Columns[StepFigures] = {
        "steps": lambda step: f"{len(step.repeats):,}",
        KEPT_SLO: lambda step: _range_text([repeat.kept_share for repeat in step.repeats], percent),
        **{
            f"{SHOWN[kind][0]} {name}": partial(_spread_text, kind, name)
            for kind in _kinds(repeated)
            for name in SHOWN[kind][1]
        },
    }
    return _sheet(steps, "spread of repeats", columns, repeated, step_of=lambda step: step.step)


# ── cells ────────────────────────────────────────────────────────────────────────────────────


def figure(value: float | None) -> str:
    """Return a rate or seconds with three significant digits."""
    if not value:
        return MISSING if value is None else "0"
    digits = floor(log10(value))
    return f"{value:,.{min(DECIMALS, max(0, 2 - digits))}f}"


def _time_text(kind: str, name: str, interval: bool, step: StepFigures) -> str:
    percentile = step.times[kind].percentile(name)
    if percentile is None or isinf(percentile.value):
        return MISSING
    ends = (ENDLESS if isinf(end) else figure(end) for end in (percentile.low, percentile.high))
    return f"{figure(percentile.value)} ({'-'.join(ends)})" if interval else figure(percentile.value)


def _spread_text(kind: str, name: str, step: StepFigures) -> str:
    percentiles = [repeat.times[kind].percentile(name) for repeat in step.repeats]
    return _range_text([percentile and percentile.value for percentile in percentiles], figure)


def _range_text(values: Sequence[float | None], show: Callable[[float], str]) -> str:
    """Return the range from the least to the greatest value; where a value is unknown, there is no range."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values) or not numbers:
        return MISSING
    least, greatest = (ENDLESS if isinf(value) else show(value) for value in (min(numbers), max(numbers)))
    return least if least == greatest else f"{least} to {greatest}"


def _share(calls: int, all_calls: int) -> str:
    return percent(calls / all_calls) if calls and all_calls else MISSING


# ── the reasons why figures are missing ──────────────────────────────────────────────────────


def missing_notes(steps: Sequence[StepFigures]) -> Iterator[str]:
    """Yield the reasons why percentiles are missing, each reason once."""
    few, others = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    several = len({step.model for step in steps}) > 1
    for step in steps:
        where = f"{step.model} {step.asked}" if several else step.asked
        lacking = defaultdict[str, dict[str, None]](dict)
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
