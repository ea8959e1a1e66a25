"""`report --style standings`: the rankings as tables, and those of a suite kind by kind."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Final

from asyncbench.analysis.batch_use import OTHER_LATENCY, BatchUse, batch_notes, batch_uses
from asyncbench.analysis.cells import keep_skips, lapsed_notes, score_text
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, KindKey, models_text
from asyncbench.analysis.folder_report import FolderReport, no_trials
from asyncbench.analysis.lost_trials import lost_notes
from asyncbench.analysis.pairing import Bits, Marked, common_marks, kind_bits, marks_in
from asyncbench.analysis.served import note_of_simulated
from asyncbench.reports.outgraded import outgraded_in
from asyncbench.reports.standings.rankings import (
    Ranking,
    RankingRow,
    all_cut,
    place_in,
    placed,
    rankings_of,
    share_of,
)
from asyncbench.stats.proportions import Accuracy
from asyncbench.stats.repeats import AtK
from asyncbench.tables import headings
from asyncbench.tables.data import in_data
from asyncbench.tables.numbers import (
    MISSING,
    at_least,
    count,
    counted_note,
    dollars,
    number_of,
    per_correct_text,
    percent,
    seconds,
)
from asyncbench.tables.report import Columns, Sheet, filled


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings(FolderReport):
    """The rankings of a results folder: of all suites together, if there are several, then suite by suite."""

    asked: int  # number of entrants: runs × models × conditions
    skipped: int  # trials that `stop_when` leaves out
    lapsed: int  # open trials that an earlier `stop_when` left out, but the present rule does not
    rankings: tuple[Ranking, ...]
    batches: Sequence[BatchUse]
    outgraded: tuple[str, ...] = ()  # trials that the sweep's grader of today did not grade, as sentences

    @property
    def rules(self) -> Iterator[str]:
        """Sentences on the meaning of places and figures, and on the trials behind them."""
        yield from counted_note(self.skipped, SKIPPED)
        yield from lapsed_notes(self.lapsed)
        pairings = {ranking.paired for ranking in self.rankings if not ranking.alone}
        if True in pairings:
            yield PLACES
        if False in pairings:
            yield UNPAIRED
        lines = [line for ranking in self.rankings for line in ranking.lines]
        if any(line.trials > line.accuracy.trials for line in lines):
            yield SHARED
        suites = [ranking.suite for ranking in self.rankings if ranking.paired]
        if len(suites) > len(set(suites)):  # a suite has two tables
            yield APART
        if any(line.at_50 and line.at_50.tasks > 1 for line in lines):
            yield HARDEST

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """The sentence that a folder without trials gets instead of tables."""
        return None if self.rankings else no_trials(self.folder)

    def remarks(self) -> Iterator[str]:
        yield from self.outgraded
        lines = [line for ranking in self.rankings for line in ranking.lines]
        if not any(line.share for line in lines) and any(line.score and line.score.value for line in lines):
            yield headings.SCORED_ONLY
        yield from lost_notes(outcomes_of(self.rankings))
        yield from batch_notes(self.batches, OTHER_LATENCY)
        yield from self.rules
        if any(line.at_k for line in lines):
            yield REPEATED

    def sheets(self) -> Iterator[Sheet]:
        for ranking in self.rankings:
            if not ranking.alone:
                yield from _sheets(ranking_title(ranking), ranking.lines, ranked=True)
        for suite, lines in unranked(self.rankings).items():
            if self.asked == 1:
                why = "one model"
            else:
                why = CUT if all(all_cut(line.outcomes) for line in lines) else ALONE
            yield from _sheets(f"{suite or 'All suites'}: {why}", lines, ranked=False)


PLACES: Final = (
    "Models that share a rank are statistically tied with the best model of that rank (exact paired tests at "
    "5 %, Holm-corrected for all pairs)."
)
UNPAIRED: Final = (
    "Models that were asked different problems are ranked by unpaired tests. Each was asked equally many "
    "problems of every task and length (Cochran-Mantel-Haenszel tests at 5 %, Holm-corrected for all pairs)."
)
HARDEST: Final = (
    f"{headings.RIGHT_90}, {headings.RIGHT_50}: the length (digits, or characters of text) at which "
    "accuracy drops to that share in the model's hardest task, with its 95 % CI."
)
SHARED: Final = (
    "Not all models were asked the same problems equally often. Accuracies and lost trials are those of the "
    "common problems; lengths, cost, format and latency are those of all trials of a model."
)
APART: Final = (
    "A model that was asked less than half of a table's problems is ranked in another table, or not at all. "
    "`asyncbench compare MODEL MODEL FOLDER` compares any two on their common problems."
)
SKIPPED: Final = (
    "trials were skipped by `stop_when`. Models are compared on the problems that none of them skipped. "
    "A stopped cell weighs less than planned, so a model that is good there may rank too low. Intervals are "
    "too narrow and p values too small; `report` shows each stopped cell with a valid interval."
)
REPEATED: Final = (
    "pass@k: the chance that at least one of k answers to a problem is right. pass^k: that all of them are. "
    "majority@k: that the most frequent one is. A tie counts as the chance to draw the right answer from it. "
    "A reply without an answer has no vote."
)
ALONE: Final = "not ranked (too few problems in common)"
CUT: Final = "not ranked (every reply was cut)"


def ranking_title(ranking: Ranking) -> str:
    """Return the title of a ranking: its suite, the number of models, and the problems."""
    named = ranking.suite or f"All suites ({', '.join(ranking.suites)})"
    who = models_text([line.entrant for line in ranking.lines])
    problems = number_of(ranking.problems, "problem")
    basis = f"on the same {problems}" if ranking.paired else f"each on {problems} of its own"
    return f"{named}: {who}{' ' if ranking.paired else ', '}{basis}"


def unranked(rankings: Iterable[Ranking]) -> dict[str | None, list[RankingRow]]:
    """Return the entrants that cannot be ranked, by suite, with the highest accuracy first."""
    by_suite: dict[str | None, list[RankingRow]] = {}
    for ranking in rankings:
        if ranking.alone:
            by_suite.setdefault(ranking.suite, []).extend(ranking.lines)
    return {suite: sorted(lines, key=lambda line: -line.share) for suite, lines in by_suite.items()}


def outcomes_of(rankings: Iterable[Ranking]) -> dict[str, dict[str, int]]:
    """Return the outcomes of the trials of each entrant, over all suites."""
    outcomes: dict[str, dict[str, int]] = {}
    for ranking in rankings:
        for line in ranking.lines:
            if ranking.suite is None or line.name not in outcomes:
                outcomes[line.name] = line.outcomes
    return outcomes


def standings_of(views: FolderViews, *, formats: bool = True, by_kind: bool = False) -> Standings:
    """Return the rankings of results folders.

    An entrant that was asked less than half of a ranking's problems is in another ranking. For this rule
    alone, problems that `stop_when` skips count as asked. Failed and truncated trials count as not right;
    `RankingRow.accuracy` has the bounds, on the same problems.

    Args:
        views: of the folders.
        formats: also read the grades, for `format_ok`.
        by_kind: prepare the views for `rankings_by_kind`.

    Raises:
        ConfigError: trials were skipped, and the sweep.yaml of a folder cannot be read.
        StoreError: results cannot be read.
    """
    skips = keep_skips(views)
    rankings, entrants = rankings_of(views, views.manifest, formats=formats)
    if by_kind:
        kind_bits(views)  # kept for `rankings_by_kind`, while the answers are there
    simulated = note_of_simulated(views, table="answers")
    views.drop("answers")
    return Standings(
        folder=str(views.chosen),
        simulated_note=simulated,
        asked=entrants,
        skipped=skips.trials,
        lapsed=skips.lapsed,
        rankings=rankings,
        batches=batch_uses(views),
        outgraded=outgraded_in(views),
    )


# ── The rankings of a suite, kind by kind: additions, on those that all entrants were asked


Lengths = Mapping[int | None, Bits]  # length → the problems of a kind that have it


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRankingRow:
    """One line of the ranking of a kind."""

    entrant: Entrant
    place: int
    share: float
    interval: tuple[float, float]
    accuracy: Accuracy  # over the same problems


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRanking:
    """The entrants of a suite's ranking on its problems of one kind."""

    kind: KindKey
    problems: int
    paired: bool
    lines: tuple[KindRankingRow, ...]  # the best first


def rankings_by_kind(views: FolderViews, rankings: Sequence[Ranking]) -> Iterator[KindRanking]:
    """Yield the rankings of the kinds of each ranking of one suite, where it has several.

    Args:
        views: as `standings_of` leaves them if it is called with `by_kind`.
        rankings: those of the standings.
    """
    bits, trials = kind_bits(views), marks_in(views)
    for ranking in rankings:
        kinds = {kind: lengths for kind, lengths in bits.items() if kind[0] == ranking.suite}
        if ranking.alone or len(kinds) < 2:
            continue
        for kind, lengths in kinds.items():
            if made := _kind_ranking(ranking, kind, lengths, trials):
                yield made


def _kind_ranking(ranking: Ranking, kind: KindKey, lengths: Lengths, trials: Marked) -> KindRanking | None:
    """Return a ranking on the problems of a kind, or None if an entrant was asked none of them."""
    entrants = {line.name: line.entrant for line in ranking.lines}
    kind_problems = reduce(or_, lengths.values())
    marks = {name: trials.marks[entrant].restrict(kind_problems) for name, entrant in entrants.items()}
    if ranking.paired:
        marks = common_marks(marks)
    if not all(answers.trials for answers in marks.values()):
        return None

    by_length = {}
    if not ranking.paired:
        for name, answers in marks.items():
            by_length[name] = {
                length: answers.restrict(bits).problem_counts() for length, bits in lengths.items()
            }
    best_first, ties, _ = placed(marks, by_length or None)
    lines = []
    for name in best_first:
        share, interval = share_of(marks[name])
        accuracy = Accuracy.of(trials.outcomes(entrants[name], marks[name].asked))
        lines.append(
            KindRankingRow(
                entrant=entrants[name],
                place=place_in(ties, name),
                share=share,
                interval=interval,
                accuracy=accuracy,
            )
        )
    return KindRanking(
        kind=kind,
        problems=marks[best_first[0]].problems.bit_count(),
        paired=ranking.paired,
        lines=tuple(lines),
    )


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def _sheets(title: str, lines: Collection[RankingRow], *, ranked: bool) -> Iterator[Sheet]:
    """Yield a sheet with all figures, which becomes two where it is too wide, and a sheet on repeats."""
    rank: Columns[RankingRow] = {"rank": lambda line: str(line.place)} if ranked else {}
    names: Columns[RankingRow] = {**rank, "model": lambda line: line.name}

    def sheet(title: str, columns: Columns[RankingRow]) -> Sheet:
        return filled(Sheet.of(title, {**names, **columns}, lines, labels=len(names)))

    narrow = sheet(title, ACCURACIES), sheet(f"{title}: cost, format and latency", COSTS)
    yield replace(sheet(title, {**ACCURACIES, **COSTS}), instead=narrow)
    yield Sheet.of(f"{title}: repeats", REPEATS, [(line, at_k) for line in lines for at_k in line.at_k])


ACCURACIES: Final[Columns[RankingRow]] = {
    headings.ACCURACY: lambda line: percent(line.share, line.interval),
    headings.MEAN_SCORE: lambda line: score_text(line.score),
    headings.ANSWERED: lambda line: percent(line.accuracy.over_answered.share),
    headings.LOST: lambda line: count(line.accuracy.lost),
    headings.BEST_CASE: lambda line: percent(line.accuracy.highest),
    headings.RIGHT_90: lambda line: str(line.at_90 or MISSING),
    headings.RIGHT_50: lambda line: str(line.at_50 or MISSING),
}
COSTS: Final[Columns[RankingRow]] = {
    "cost": lambda line: at_least(dollars(line.cost_usd), partial=line.priced < line.trials),
    headings.PER_CORRECT: lambda line: at_least(
        per_correct_text(line.cost_usd, line.cost_per_correct), partial=line.priced < line.trials
    ),
    headings.FORMAT: lambda line: percent(line.format_ok / line.format_known if line.format_known else None),
    headings.MEDIAN_LATENCY: lambda line: seconds(line.latency_p50_s),
}
REPEATS: Final[Columns[tuple[RankingRow, AtK]]] = {
    "model": lambda row: row[0].name,
    "k": lambda row: str(row[1].k),
    "problems": lambda row: count(row[1].pass_at_k.clusters),
    headings.PASS_AT_K: lambda row: percent(row[1].pass_at_k.share, row[1].pass_at_k.interval),
    headings.MAJORITY_AT_K: lambda row: percent(row[1].majority_at_k.share, row[1].majority_at_k.interval),
    headings.PASS_HAT_K: lambda row: percent(row[1].pass_hat_k.share, row[1].pass_hat_k.interval),
}
