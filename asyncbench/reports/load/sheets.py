"""The tables of `report --style load`: steps, answers, and what repeats say."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import floor, isinf, log10
from typing import Final

from asyncbench.config.loading import CLOSED
from asyncbench.lanes.load.steps import INCOMPLETE, base_in
from asyncbench.reports.cost.report import fine
from asyncbench.reports.load.accuracy import StepAnswers
from asyncbench.reports.load.steps import PERCENTILES, StepFigures
from asyncbench.stats.percentiles import Percentile, fewest_for
from asyncbench.tables.headings import ACCURACY, BESIDE_LIGHTEST, KEPT_SLO, PER_1000_ANSWERS
from asyncbench.tables.numbers import MISSING, p_text, percent, points
from asyncbench.tables.report import Sheet, filled

# What is shown of times, and how it is called.
SHOWN: Final = {
    "latency": ("latency", ("p50", "p95", "p99")),
    "ttft": ("TTFT", ("p50", "p95", "p99")),
    "ttfo": ("TTFO", ("p50", "p95")),
    "tpot": ("TPOT", ("p50", "p95")),
}
DECIMALS: Final = 4  # of seconds, at most
ENDLESS: Final = "∞"
SENT_AGAIN, CONNECTION_LOST = "sent again", "connection lost"
MOST_NAMED: Final = 6  # steps in a note


def load_sheets(steps: Sequence[StepFigures], answers: Sequence[StepAnswers]) -> Iterator[Sheet]:
    """Yield the tables of steps and of what they answered, those in which anything stands."""
    labels = _Labels(steps)
    repeated = [step for step in steps if step.repeats]
    sheets = (
        _steps(steps, labels),
        _answers(answers, labels),
        _repeats(repeated, labels),
    )
    yield from (sheet for sheet in sheets if sheet.rows and len(sheet.head) > sheet.labels)


class _Labels:
    """How rows are called: by their model where there are several, by their pattern likewise."""

    def __init__(self, steps: Sequence[StepFigures]) -> None:
        models = {step.model for step in steps}
        self.head = ["model", "step"] if len(models) > 1 else ["step"]
        self._model = None if len(models) > 1 else min(models)
        patterns = {step.step.partition(" ")[0] for step in steps}
        self._short = len(patterns) == 1 and CLOSED not in patterns

    def title(self, words: str) -> str:
        """Return a title, which names the only model."""
        return words.capitalize() if self._model is None else f"{self._model}: {words}"

    def of(self, model: str, step: str) -> list[str]:
        """Return the first cells of a row."""
        short = step.partition(" ")[2] if self._short else step
        return [short] if self._model is not None else [model, short]


def _steps(steps: Sequence[StepFigures], labels: _Labels) -> Sheet:
    """Return the steps, one a row, with the intervals of latency where there is room."""

    def sheet(*, intervals: bool) -> Sheet:
        cells = [_cells(step, _kinds(steps), intervals=intervals) for step in steps]
        names = (labels.of(step.model, step.step) for step in steps)
        rows = [[*name, *own.values()] for name, own in zip(names, cells, strict=True)]
        head = [*labels.head, *cells[0]]
        title = labels.title("steps (times in seconds)")
        return filled(Sheet(title=title, head=head, rows=rows, labels=len(labels.head) + 1))

    return replace(sheet(intervals=True), instead=(sheet(intervals=False),))


def _cells(step: StepFigures, kinds: Sequence[str], *, intervals: bool) -> dict[str, str]:
    times = {
        f"{SHOWN[kind][0]} {name}": _percentile(
            step.times[kind].at(name), interval=intervals and kind == "latency"
        )
        for kind in kinds
        for name in SHOWN[kind][1]
    }
    parts = {
        "refused": step.refused,
        "failed": step.failed - step.lost,
        "unfinished": step.unfinished,
        "dropped": step.dropped,
        SENT_AGAIN: step.resent,
        CONNECTION_LOST: step.lost,
    }
    return {
        "verdict": (step.verdict or MISSING).replace("_", " "),
        "due per s": figure(step.offered_per_s),
        "seconds": figure(step.seconds),
        "calls": f"{step.offered:,}",
        "answered per s": figure(step.answered_per_s),
        KEPT_SLO: percent(step.kept_share, step.kept_interval),
        "latency mean": figure(step.latency_mean_s),
        **times,
        **{f"ITL {name}": figure(step.itl_s(name)) for name in PERCENTILES},
        "goodput per s": figure(step.goodput_per_s),
        **{name: _part(calls, step.offered) for name, calls in parts.items()},
        "in flight": figure(step.in_flight_mean),
        "tokens per s": figure(step.tokens_per_s),
        PER_1000_ANSWERS: _usd(step),
        "late p99": figure(step.late_p99_s),
    }


def _kinds(steps: Sequence[StepFigures]) -> list[str]:
    """Return the kinds of times that are shown: without TTFO where no model thought before it answered."""
    times = [step.times for step in steps]
    thought = any(one["ttfo"].told_s and one["ttfo"].told_s != one["ttft"].told_s for one in times)
    return [kind for kind in SHOWN if thought or kind != "ttfo"]


def _answers(answers: Sequence[StepAnswers], labels: _Labels) -> Sheet:
    whole = {_rate(one) for one in answers if one.verdict != INCOMPLETE}
    # Those of a stopped step count where its rate has no others, as other figures do.
    shown = [one for one in answers if one.verdict != INCOMPLETE or _rate(one) not in whole]
    shown.sort(key=lambda one: (one.model, one.arrivals, one.rate, one.round))
    several = len({*map(_rate, shown)}) < len(shown)
    rows = []
    for one in shown:
        beside = one.beside
        step = one.load if several else base_in(one.load)
        rows.append(
            [
                *labels.of(one.model, step),
                f"{one.accuracy.trials:,}",
                percent(one.accuracy.share, one.accuracy.interval),
                MISSING if beside is None else points(beside.moves.difference, beside.interval),
                MISSING if beside is None else p_text(beside.p_holm),
                f"{one.changed:,} of {one.compared:,}" if one.compared else MISSING,
            ]
        )
    head = [*labels.head, "graded answers", ACCURACY, BESIDE_LIGHTEST, "p (Holm)", "other texts"]
    return filled(Sheet(title=labels.title("answers"), head=head, rows=rows, labels=len(labels.head)))


def _rate(one: StepAnswers) -> tuple[str, str]:
    return one.model, base_in(one.load)


def _repeats(steps: Sequence[StepFigures], labels: _Labels) -> Sheet:
    """Return how far the repeats of a step lie apart."""
    columns = [(f"{SHOWN[kind][0]} {name}", kind, name) for kind in _kinds(steps) for name in SHOWN[kind][1]]
    rows = [
        [
            *labels.of(step.model, step.step),
            f"{len(step.repeats):,}",
            _range([one.kept_share for one in step.repeats], percent),
            *(
                _range([_value(one.times[kind].at(name)) for one in step.repeats], figure)
                for _, kind, name in columns
            ),
        ]
        for step in steps
    ]
    head = [*labels.head, "steps", KEPT_SLO, *(name for name, _, _ in columns)]
    return filled(
        Sheet(title=labels.title("spread of repeats"), head=head, rows=rows, labels=len(labels.head))
    )


# ── cells ────────────────────────────────────────────────────────────────────────────────────


def figure(value: float | None) -> str:
    """Return a rate or seconds with three digits that count."""
    if not value:
        return MISSING if value is None else "0"
    digits = floor(log10(value))
    return f"{value:,.{min(DECIMALS, max(0, 2 - digits))}f}"


def _percentile(percentile: Percentile | None, *, interval: bool = False) -> str:
    if percentile is None or isinf(percentile.value):
        return MISSING
    ends = (ENDLESS if isinf(end) else figure(end) for end in (percentile.low, percentile.high))
    return f"{figure(percentile.value)} ({'-'.join(ends)})" if interval else figure(percentile.value)


def _value(percentile: Percentile | None) -> float | None:
    return None if percentile is None else percentile.value


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
        yield f"Too few calls for {name} ({fewest_for(PERCENTILES[name])}): {_some(places)}."
    for why, places in others.items():
        yield f"Not there: {_some(places)}: {why}."


def _where(steps: Sequence[StepFigures], step: StepFigures) -> str:
    return step.asked if len({one.model for one in steps}) == 1 else f"{step.model} {step.asked}"


def _some(where: Sequence[str]) -> str:
    unnamed = len(where) - MOST_NAMED
    return ", ".join(where[:MOST_NAMED]) + (f" and {unnamed} more" if unnamed > 0 else "")
