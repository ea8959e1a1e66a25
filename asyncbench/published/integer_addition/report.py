"""`report --style integer-addition`: the figures of that benchmark and more, of any results folder."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final

from asyncbench.analysis.batch_use import BatchUse, batch_notes
from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import manifest_of
from asyncbench.analysis.entrants import names_of
from asyncbench.published.integer_addition.counts import ADDITION, SUITES, RunLine, SizeBin, counts_of, span
from asyncbench.published.reports import PublishedReport, about
from asyncbench.tables.numbers import MISSING, count, number_of, seconds
from asyncbench.tables.report import Columns, Sheet

MEANING = (
    "Success rate: part of the recorded results (trials with a reply), as published. Of tries: part of all "
    "planned trials. Median, mean and p95: seconds per call. Reasoning: median length in characters."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerAdditionReport(PublishedReport):
    """A folder's figures, and how they are shown."""

    without_operands: int  # additions whose operands no file in problems/ tells
    batches: Sequence[BatchUse]
    lines: tuple[RunLine, ...]  # by suite, then as the manifest has runs, models and conditions

    def sheets(self) -> Iterator[Sheet]:
        """Yield the tables from top to bottom."""
        names = names_of([line.asked for line in self.lines])
        model: Columns[RunLine] = {"model": lambda line: names[line.asked]}
        by_suite = {suite: [line for line in self.lines if line.suite == suite] for suite in SUITES}
        for suite, suite_lines in by_suite.items():
            yield Sheet.of(suite, {**model, **FIGURES}, suite_lines)

        # All suites together: fails and reasoning.
        which: Columns[RunLine] = {**model, "suite": lambda line: line.suite}
        counted = dict.fromkeys(reason for line in self.lines for reason in line.reasons)
        reasons = {reason: partial(_failed, reason) for reason in counted}
        title = "Fails by reason, and recorded results in the form asked for"
        yield Sheet.of(title, {**which, **reasons, **FORMS}, self.lines, labels=2)
        yield Sheet.of("Reasoning, in recorded results", {**which, **REASONING}, self.lines, labels=2)

        # Additions: in which ways they fail.
        added = by_suite[ADDITION]
        modes = {mode: partial(_failed_in, mode) for line in added[:1] for mode in line.modes}
        examined = sum(line.examined for line in added)
        replies = "wrong reply" if examined == 1 else "wrong replies"
        title = f"{ADDITION}: common failures, of {examined:,} {replies} examined"
        yield Sheet.of(title, {**model, **modes}, added)

        # Success rates by size.
        for suite, suite_lines in by_suite.items():
            unit = "digits of the longer number" if suite == ADDITION else "characters"
            title = f"{suite}: success rate by length in {unit}"
            yield from _bins(title, model, suite_lines, attrgetter("by_length"))
        title = f"{ADDITION}: success rate by number of carries"
        yield from _bins(title, model, added, attrgetter("by_carries"))
        title = f"{ADDITION}: success rate by longest run of carries"
        yield from _bins(title, model, added, attrgetter("by_chain"))

    def outcomes(self) -> Iterator[str]:
        lines = self.lines
        trials, results = sum(line.trials for line in lines), sum(line.results for line in lines)
        empty, cut = sum(line.reasons["empty"] for line in lines), sum(line.truncated for line in lines)
        absent = sum(line.tries for line in lines) - trials  # files of the benchmark leave failed calls out
        more = f" {absent:,} more were planned, but not recorded." if absent else ""
        yield (
            f"{number_of(trials, 'trial')}: {trials - results:,} failed (no reply), {empty:,} empty "
            f"replies, {cut:,} truncated.{more}"
        )

    def meaning(self) -> Iterator[str]:
        yield from batch_notes(self.batches, "Durations are those of the calls in real time.")
        if count := self.without_operands:
            yield (
                f"problems/ lacks the operands of {number_of(count, 'addition')}, so their "
                "carries are unknown."
            )
        yield MEANING


def integer_addition_report_on(folder: Folders) -> IntegerAdditionReport:
    """Return the figures of the suites string_reversal, integer_addition and string_rehearsal.

    Raises:
        ConfigError: it is not a results folder, or holds no trial of these suites.
        StoreError: its results cannot be read.
        ProblemSetError: one of its copies of the problems is damaged.
    """
    manifest = manifest_of(folder)
    counts = counts_of(folder, manifest)
    recorded = {line.run for line in counts["lines"] if line.trials}
    return IntegerAdditionReport(**about(folder, manifest, runs=recorded), **counts)


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def _rate(share: float | None) -> str:
    """Return a share as the published program prints it: 97.5 % as `97.50%`."""
    return MISSING if share is None else f"{share:.2%}"


def _failed(reason: str, line: RunLine) -> str:
    return count(line.reasons.get(reason, 0))


def _failed_in(mode: str, line: RunLine) -> str:
    return count(line.modes[mode])


def _bins(
    title: str,
    model: Columns[RunLine],
    lines: Sequence[RunLine],
    bins_of: Callable[[RunLine], Sequence[SizeBin]],
) -> Iterator[Sheet]:
    """Yield a table with a column for each bin that any line has; none where there are no bins."""
    spans = {(size["first"], size["last"]) for line in lines for size in bins_of(line)}
    if not spans:
        return
    sizes = sorted(spans, key=lambda size: (size[0] is None, size[0] or 0))

    def rate(size: tuple[int | None, int | None], line: RunLine) -> str:
        bins = [entry for entry in bins_of(line) if (entry["first"], entry["last"]) == size]
        return f"{_rate(bins[0]['success_rate'])} of {bins[0]['results']:,}" if bins else MISSING

    columns: Columns[RunLine] = {span(*size): partial(rate, size) for size in sizes}
    yield Sheet.of(title, {**model, **columns}, lines)


FIGURES: Final[Columns[RunLine]] = {
    "tries": lambda line: count(line.tries),
    "recorded": lambda line: count(line.results),
    "successes": lambda line: count(line.successes),
    "success rate": lambda line: _rate(line.success_rate),
    "of tries": lambda line: _rate(line.success_rate_of_tries),
    "median": lambda line: seconds(line.latency_p50_s),
    "mean": lambda line: seconds(line.latency_mean_s),
    "p95": lambda line: seconds(line.latency_p95_s),
    "reasoning": lambda line: (
        MISSING if line.reasoning_p50_characters is None else f"{line.reasoning_p50_characters:,.0f}"
    ),
}
FORMS: Final[Columns[RunLine]] = {
    "of these cut off": lambda line: count(line.truncated),
    "format ok": lambda line: _rate(line.format_ok_share),
}
REASONING: Final[Columns[RunLine]] = {
    "replies with reasoning": lambda line: count(line.reasoned),
    "share": lambda line: _rate(line.reasoned / line.results if line.results else None),
    "tokens each": lambda line: (
        f"{line.reasoning_tokens / line.reasoned:,.0f}" if line.reasoning_tokens else MISSING
    ),
}
