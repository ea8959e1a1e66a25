"""`report --style integer-addition`: the figures of that benchmark and more, of any results folder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import manifest_of
from asyncbench.analysis.entrants import Entrant, names_of
from asyncbench.analysis.notes import BatchUse, batch_notes
from asyncbench.published.integer_addition.counts import ADDITION, SUITES, RunLine, SizeBin, counts_of, span
from asyncbench.published.reports import PublishedReport, about
from asyncbench.tables.numbers import number_of, seconds
from asyncbench.tables.report import Sheet

MEANING = (
    "Success rate: part of the recorded results (trials with a reply), as published. Of tries: part of all "
    "planned trials. Median, mean and p95: seconds per call. Reasoning: median length in characters."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerAdditionReport(PublishedReport):
    """A folder's figures, and how they are shown."""

    without_operands: int  # additions whose operands no file in problems/ tells
    batches: tuple[BatchUse, ...]
    lines: tuple[RunLine, ...]  # by suite, then as the manifest has runs, models and conditions

    def _sheets(self) -> Iterator[Sheet]:
        return _tables(self.lines)

    def _outcomes(self) -> Iterator[str]:
        lines = self.lines
        trials, results = sum(line.trials for line in lines), sum(line.results for line in lines)
        empty, cut = sum(line.reasons["empty"] for line in lines), sum(line.truncated for line in lines)
        absent = sum(line.tries for line in lines) - trials  # files of the benchmark leave failed calls out
        more = f" {absent:,} more were planned, but not recorded." if absent else ""
        yield (
            f"{number_of(trials, 'trial')}: {trials - results:,} failed (no reply), {empty:,} empty "
            f"replies, {cut:,} truncated.{more}"
        )

    def _remarks(self) -> Iterator[str]:
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

HEAD = (
    *("model", "tries", "recorded", "successes", "success rate", "of tries"),
    *("median", "mean", "p95", "reasoning"),
)


def _tables(lines: Sequence[RunLine]) -> Iterator[Sheet]:
    """Yield the tables from top to bottom."""
    names = names_of([line.asked for line in lines])
    by_suite = {suite: [line for line in lines if line.suite == suite] for suite in SUITES}
    for suite, those in by_suite.items():
        if those:
            rows = [(names[line.asked], *_figures(line)) for line in those]
            yield Sheet(title=suite, head=HEAD, rows=rows)
    yield _reasons(lines, names)
    yield _reasoning(lines, names)
    yield from _modes(by_suite[ADDITION], names)
    for suite, those in by_suite.items():
        unit = "digits of the longer number" if suite == ADDITION else "characters"
        sizes = [line.by_length for line in those]
        yield from _bins(f"{suite}: success rate by length in {unit}", those, sizes, names)
    added = by_suite[ADDITION]
    carried = [line.by_carries for line in added]
    yield from _bins(f"{ADDITION}: success rate by number of carries", added, carried, names)
    title = f"{ADDITION}: success rate by longest run of carries"
    yield from _bins(title, added, [line.by_chain for line in added], names)


def _figures(line: RunLine) -> tuple[str, ...]:
    reasoning = line.reasoning_p50_characters
    return (
        f"{line.tries:,}",
        f"{line.results:,}",
        f"{line.successes:,}",
        _rate(line.success_rate),
        _rate(line.success_rate_of_tries),
        seconds(line.latency_p50_s),
        seconds(line.latency_mean_s),
        seconds(line.latency_p95_s),
        "-" if reasoning is None else f"{reasoning:,.0f}",
    )


def _rate(share: float | None) -> str:
    """Return a share as the published program prints it: 97.5 % as `97.50%`."""
    return "-" if share is None else f"{share:.2%}"


def _reasons(lines: Sequence[RunLine], names: Mapping[Entrant, str]) -> Sheet:
    reasons = list(dict.fromkeys(reason for line in lines for reason in line.reasons))
    rows = [
        (
            names[line.asked],
            line.suite,
            *(f"{line.reasons.get(reason, 0):,}" for reason in reasons),
            f"{line.truncated:,}",
            _rate(line.format_ok_share),
        )
        for line in lines
    ]
    head = ("model", "suite", *reasons, "of these cut off", "format ok")
    title = "Fails by reason, and recorded results in the form asked for"
    return Sheet(title=title, head=head, rows=rows, labels=2)


def _reasoning(lines: Sequence[RunLine], names: Mapping[Entrant, str]) -> Sheet:
    rows = [
        (
            names[line.asked],
            line.suite,
            f"{line.reasoned:,}",
            _rate(line.reasoned / line.results if line.results else None),
            f"{line.reasoning_tokens / line.reasoned:,.0f}" if line.reasoning_tokens else "-",
        )
        for line in lines
    ]
    head = ("model", "suite", "replies with reasoning", "share", "tokens each")
    return Sheet(title="Reasoning, in recorded results", head=head, rows=rows, labels=2)


def _modes(lines: Sequence[RunLine], names: Mapping[Entrant, str]) -> Iterator[Sheet]:
    if lines:
        rows = [(names[line.asked], *(f"{count:,}" for count in line.modes.values())) for line in lines]
        examined = sum(line.examined for line in lines)
        replies = "wrong reply" if examined == 1 else "wrong replies"
        title = f"{ADDITION}: common failures, of {examined:,} {replies} examined"
        yield Sheet(title=title, head=("model", *lines[0].modes), rows=rows)


def _bins(
    title: str, lines: Sequence[RunLine], bins: Sequence[Sequence[SizeBin]], names: Mapping[Entrant, str]
) -> Iterator[Sheet]:
    """Yield a table with a column for each bin that any line has; none where there are no bins."""
    spans = {(size.first, size.last) for own in bins for size in own}
    if not spans:
        return
    sizes = sorted(spans, key=lambda size: (size[0] is None, size[0] or 0))
    rows = []
    for line, own in zip(lines, bins, strict=True):
        cells = {(size.first, size.last): f"{_rate(size.success_rate)} of {size.results:,}" for size in own}
        rows.append((names[line.asked], *(cells.get(size, "-") for size in sizes)))
    yield Sheet(title=title, head=("model", *(span(*size) for size in sizes)), rows=rows)
