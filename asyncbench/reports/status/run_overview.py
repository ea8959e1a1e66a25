"""The last screen of a run: the ranking, the cost, the problems and the next commands."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

from rich.cells import cell_len

from asyncbench.analysis.cells import has_scores, score_text
from asyncbench.analysis.choosing import Chosen
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.notes import FolderReport, lost_briefly, no_trials, note_of_simulated
from asyncbench.analysis.views import CALLS_IN_REAL_TIME
from asyncbench.errors import ErrorKind
from asyncbench.records import BATCH, Outcome
from asyncbench.reports.standings.rankings import Ranking, RankingRow, all_cut
from asyncbench.reports.standings.report import (
    ALONE,
    Standings,
    outcomes_of,
    ranking_title,
    standings_of,
    unranked,
)
from asyncbench.reports.status.report import Status, joined_status, status_of
from asyncbench.stats.proportions import Accuracy
from asyncbench.store.manifest import IMPORTED
from asyncbench.tables.data import data_of
from asyncbench.tables.numbers import at_least, dollars, number_of, per_correct_text, percent
from asyncbench.tables.report import Sheet
from asyncbench.tables.screen import (
    as_lines,
    columns,
    folded,
    middle_cut,
    natural_width,
    safe,
    safe_note,
    safe_notes,
    shown_width,
)

WIDEST, HIGHEST = 100, 24  # characters, lines: a screen
HEAD_LINES: Final = 2  # of the table
BLANKS: Final = 2  # lines that give way first
ROWS: Final = 10  # of the table, for which commands give way
LAST: Final = 3  # shown below what is left out
SHORTEST_NAME: Final = 10  # characters
WHOLE_NAME: Final = 40  # characters of a name for which figures give way
FIGURES: Final = 3  # that stay as long as names can be shortened
MANY_AT_ONCE: Final = 100  # calls in flight that are worth a word
MOST_COUNTED: Final = 200_000  # calls; more are not looked at one by one
LOST_NAMED: Final = 2  # of those who lost trials, a line each
NAMED: Final = 3  # of those that need attention, in a line
LONGEST_NAMED: Final = 60  # characters of one, with what is said of it


Figures = dict[str, Callable[[RankingRow], str]]  # the last give way on a narrow screen; names have breaks


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview(FolderReport):
    """A results folder at a glance; in Markdown and LaTeX with nobody left out."""

    standings: Standings
    status: Status
    imported: bool  # recorded by others: nothing can be asked again
    load: Mapping[str, int] | None  # sums of `_CALL_LOAD`; None: there are too many calls to look at
    chosen: Chosen
    after_run: bool = False  # the run itself has said which models stopped, what is left and what failed

    def _data(self) -> dict[str, object]:
        title, lines = self._listed()
        return {
            "folder": self.folder,
            "sweep": self.status.sweep,
            "simulated": self.simulated,
            "trials": self.status.whole.done,
            "planned": self.status.whole.planned,
            "cost_usd": self.status.cost_usd,
            "unpriced_attempts": self.status.unpriced_attempts,
            "over": title,
            "lines": data_of(lines),
            "attention": list(self._attention()),
            "models": data_of(self.status.models),
            "calls": self.load,
            "nothing": self._nothing,
        }

    def _text(self, width: int | None, height: int | None) -> str:
        """Return it for a screen of 60 characters and 16 lines at least, and by itself 100 wide at most."""
        height = height or HIGHEST
        nothing = [] if self._nothing is None else safe_notes([self._nothing], width=width)
        width = width or min(shown_width(), WIDEST)
        above = [
            *self._head(),
            *(["", *_leader(self._ranking), self._listed()[0]] if self.standings.rankings else []),
        ]
        head, below = _folded(above, width), _folded([*_legend(self._ranking), *self._attention()], width)
        rows = min(ROWS, len(self._listed()[1]))
        room = height - len(head) - len(below) - HEAD_LINES  # for the table and commands
        commands = self._next(width, room - rows + BLANKS)
        room -= len(commands) - (BLANKS if room - len(commands) < rows else 0)
        below += commands
        table = self._table(width, max(LAST + 2, room)) if self.standings.rankings else []
        lines = [*head, *nothing, *table, *below]
        return "\n".join(lines if len(lines) <= height else filter(None, lines))

    def _notes(self) -> Iterator[str]:
        nothing = [] if self._nothing is None else [self._nothing]
        ranking = self._ranking
        yield from (*self._head(), *nothing, *_leader(ranking), *_legend(ranking), *self._attention())
        yield from (f"{what}: `{' '.join(words)}`" for what, words in self._commands())

    def _sheets(self) -> Iterator[Sheet]:
        title, lines = self._listed()
        figures = _columns(self.standings.rankings)
        head = ["rank", "model", *(" ".join(name.split("\n")) for name in figures)]
        if lines:
            yield Sheet(title=title, head=head, rows=self._cells(figures, lines), labels=2)

    # ── what is said ─────────────────────────────────────────────────────────────────────────

    @property
    def _nothing(self) -> str | None:
        return None if self.standings.rankings else no_trials(self.folder)

    @property
    def _progress(self) -> str:
        """How many trials are done, and of how many; done ones may have left the sweep since."""
        done, planned = self.status.whole.done, self.status.whole.planned
        if planned is None or planned <= done:
            return number_of(done, "trial")
        return f"{done:,} of {number_of(planned, 'trial')}"

    def _head(self) -> Iterator[str]:
        yield from self._simulated()
        status = self.status
        unpriced = f" + {status.unpriced_attempts:,} unpriced calls" if status.unpriced_attempts else ""
        models, entrants = len(status.models), len(outcomes_of(self.standings.rankings))
        who = number_of(entrants, "entrant") if entrants > models else number_of(models, "model")
        cost = f"{at_least(dollars(status.cost_usd), partial=unpriced)}{unpriced}"
        cost = "cost unknown" if status.cost_usd is None else cost
        yield f"{status.sweep}: {who}, {self._progress}, {cost}"
        if self.load is not None:
            yield from _survived(self.load, lost=any(one.failed or one.open for one in status.models))

    def _listed(self) -> tuple[str, Sequence[RankingRow]]:
        """Return the longest ranking with its title; where none was possible, everybody by accuracy."""
        ranking = self._ranking
        if ranking is not None:
            return ranking_title(ranking), ranking.lines
        for suite, lines in unranked(self.standings.rankings).items():
            several = len(lines) > 1
            return f"{suite or 'All suites'}: {f'{len(lines)} {ALONE}' if several else lines[0].name}", lines
        return "", ()

    @property
    def _ranking(self) -> Ranking | None:
        together = [one for one in self.standings.rankings if not one.alone]
        return max(together, key=lambda one: (len(one.lines), one.problems), default=None)

    def _attention(self) -> Iterator[str]:
        """Yield a line for each kind of thing that somebody should look at, the gravest first."""
        if not self.after_run:
            yield from self._unfinished()
        yield from (f"! {note}" for note in self.standings.outgraded)
        yield from self._lost()
        if skipped := self.standings.skipped:
            yield f"! {skipped:,} trials skipped (stop_when): intervals are too narrow; report tells more"
        if self.status.ungraded or self.status.damaged_lines:
            yield "! answers are not graded, or lines are damaged: asyncbench status tells more"
        if (ranking := self._ranking) is not None:
            ranked, outcomes = {line.name for line in ranking.lines}, outcomes_of(self.standings.rankings)
            others = [name for name in outcomes if name not in ranked]
            if cut := [name for name in others if all_cut(outcomes[name])]:
                yield f"! not ranked, every reply was cut: {_some(cut)}. Raise max_tokens, --retry truncated"
            if others := [name for name in others if name not in cut]:
                yield f"! asked too few of these problems to be ranked: {_some(others)}"

    def _unfinished(self) -> Iterator[str]:
        models = self.status.models
        if suspended := [f"{one.model} ({one.suspended})" for one in models if one.suspended]:
            yield f"! suspended: {_some(suspended)}"
        unfinished = {one.model: one.open for one in models if one.open}
        if unfinished and not self.status.running:
            named = _some([f"{name} {count:,}" for name, count in unfinished.items()])
            yield f"! unfinished{'' if self.imported else ', run it again'}: {named}"

    def _lost(self) -> Iterator[str]:
        outcomes = outcomes_of(self.standings.rankings)
        lost = {name: each for name, one in outcomes.items() if (each := Accuracy.of(one)).loud}
        loud = sorted(lost, key=lambda name: -(lost[name].lost_share or 0.0))
        some = [name for name in loud if not all_cut(outcomes[name])]
        for name in some[:LOST_NAMED]:
            yield f"! over 1 % lost: {_some([f'{name} {lost_briefly(outcomes[name])}'])}"
        if len(some) > LOST_NAMED:
            yield f"! over 1 % lost: {len(some) - LOST_NAMED:,} more"
        failed = {name: one[Outcome.FAILED] for name, one in outcomes.items() if name not in loud}
        some = [f"{name} {count:,}" for name, count in failed.items() if count]
        if some and not self.after_run:
            yield f"! failed{'' if self.imported else ', run it with --retry failed'}: {_some(some)}"

    def _next(self, width: int, room: int) -> list[str]:
        """Return commands that go on, on lines that a shell takes together: as many as there is room for."""
        commands = self._commands()
        longest = max((cell_len(what) for what, _ in commands), default=0)
        block = ["", "Next:"] if commands else []
        for n, (what, words) in enumerate(commands):
            lines = [f"  {what.ljust(longest)}  {' '.join(words)}"]
            if cell_len(lines[0]) > width:
                lines = [f"  {line}" for line in _folded_command(words, width - 2)]
            if n and len(block) + len(lines) > room:
                break
            block += lines
        return block

    def _commands(self) -> list[tuple[str, list[str]]]:
        """Return commands that go on, each with its purpose, as the words that a shell takes."""
        if not self.standings.rankings:
            return []
        folders, ranking = [*map(str, self.chosen.paths)], self._ranking
        filters = [word for option in self.chosen.options for word in option]
        report = ["report", *folders, *filters]
        commands = [("charts and answers in a browser", ["view", *folders, *filters])]
        if ranking is not None and ranking.paired:
            rivals = [line.name for line in _rivals(ranking.lines)]
            alike = [word for option in self.chosen.options if option[0] != "--models" for word in option]
            commands.insert(0, ("the two best, compared", ["compare", *rivals, *folders, *alike]))
        else:
            commands.append(("accuracy by task and length", [*report, "--style", "heatmap"]))
        if self.simulated:
            commands.append(("ask your own models", ["init"]))
        else:
            commands.append(("every figure", report))
        return [
            (what, ["asyncbench", *(safe_note(shlex.quote(word)) for word in words)])
            for what, words in commands
        ]

    # ── the table ────────────────────────────────────────────────────────────────────────────

    def _table(self, width: int, rows: int) -> list[str]:
        """Return so many rows at most, and their head, in so many characters."""
        _, lines = self._listed()
        left_out = max(0, len(lines) - rows)
        if left_out:
            left_out += 1  # its own line
            lines = [*lines[: rows - LAST - 1], *lines[-LAST:]]
        figures = _columns(self.standings.rankings)
        longest = max(len(safe(line.name)) for line in lines)
        while len(figures) > FIGURES and self._width(figures, lines, min(longest, WHOLE_NAME)) > width:
            figures.popitem()
        while len(figures) > 1 and self._width(figures, lines, SHORTEST_NAME) > width:
            figures.popitem()
        over_by = self._width(figures, lines, longest) - width
        cells = self._cells(figures, lines, max(SHORTEST_NAME, longest - max(0, over_by)))
        if left_out:
            cells.insert(len(cells) - LAST, ["", f"({left_out} more)", *("" for _ in figures)])
        return as_lines(columns(_head(figures), cells, labels=2), width=width).splitlines()

    def _width(self, figures: Figures, lines: Sequence[RankingRow], name: int) -> int:
        return natural_width(columns(_head(figures), self._cells(figures, lines, name), labels=2))

    def _cells(
        self, figures: Figures, lines: Sequence[RankingRow], longest: int | None = None
    ) -> list[list[str]]:
        """Return a row for each line; names are cut to the longest."""
        ranked = self._ranking is not None
        return [
            [
                str(line.place) if ranked else "",
                line.name if longest is None else middle_cut(safe(line.name), longest),
                *(figure(line) for figure in figures.values()),
            ]
            for line in lines
        ]


# Calls, those that got a 429 (of a load they are not tried again), those in batches, and how many of the
# others were in flight at once, of all models together.
_CALL_LOAD: Final = f"""
SELECT count(*) AS calls,
    count(*) FILTER (status = '{ErrorKind.RATE_LIMITED}' AND load IS NULL) AS rate_limited,
    (
        SELECT coalesce(max(calls), 0)::BIGINT FROM (
            SELECT sum(step) OVER (ORDER BY moment, step ROWS UNBOUNDED PRECEDING) AS calls FROM (
                SELECT epoch_us(started_at) AS moment, 1 AS step FROM {CALLS_IN_REAL_TIME}
                UNION ALL
                SELECT epoch_us(started_at) + (1e6 * coalesce(latency_s, 0))::BIGINT, -1
                FROM {CALLS_IN_REAL_TIME}
            )
        )
    ) AS most_at_once,
    count(*) FILTER (mode = '{BATCH}') AS in_batches
FROM attempts
"""  # noqa: S608  made of our own words alone


def run_overview_of(views: FolderViews, *, after_run: bool = False) -> RunOverview:
    """Return results at a glance; `after_run`: without what the summary of a run has just said."""
    of = views.chosen
    statuses = list(map(status_of, of.paths))
    status = statuses[0] if of.plain else joined_status(views, statuses)
    few = sum(one.attempts for one in status.models) <= MOST_COUNTED
    return RunOverview(
        folder=status.folder,
        chosen=of,
        simulated_note=note_of_simulated(views, known=status.simulated),
        load=views.rows(_CALL_LOAD)[0] if few else None,
        standings=standings_of(views, formats=has_scores(views)),
        status=status,
        imported=bool(views.manifest.get(IMPORTED)),
        after_run=after_run,
    )


def _survived(load: Mapping[str, int], *, lost: bool) -> Iterator[str]:
    """Yield what calls went through, where it is worth a word; `lost`: some trials failed or are open."""
    sentences = []
    if load["rate_limited"] and not lost:
        calls = "1 call" if load["rate_limited"] == 1 else f"{load['rate_limited']:,} calls"
        sentences.append(f"{calls} got a 429 and went out again; no trial lost.")
    if load["most_at_once"] >= MANY_AT_ONCE:
        sentences.append(f"Up to {load['most_at_once']:,} in flight.")
    if load["in_batches"]:
        sentences.append(f"{load['in_batches']:,} of {load['calls']:,} requests were in batches.")
    if sentences:
        yield " ".join(sentences)


def _leader(ranking: Ranking | None) -> Iterator[str]:
    """Yield who leads, and who is tied."""
    if ranking is None:
        return
    leader, *tied = ranking.ties[0]
    if tied:
        those = tied[0] if len(tied) == 1 else f"{len(tied):,} others"
        yield f"{leader} leads, statistically tied with {those}."
    else:
        others = "The other is" if len(ranking.lines) == 2 else "The others are"
        yield f"{leader} leads. {others} significantly worse."


def _legend(ranking: Ranking | None) -> Iterator[str]:
    """Yield what a rank means."""
    if ranking is not None:
        kind = "paired" if ranking.paired else "unpaired"
        yield f"Same rank = no significant difference ({kind} test, 5 %)."


def _columns(rankings: Sequence[Ranking]) -> Figures:
    """Return the figures, those that may give way last."""
    suites = _by_suite(rankings)
    scored = any(line.score for ranking in rankings for line in ranking.lines)
    scores: Figures = {"mean score\n(95 % CI)": lambda line: score_text(line.score)} if scored else {}
    digits: Figures = {} if suites else {"50 % right up to\n(hardest task)": _digits}
    return {
        "accuracy\n(95 % CI)": lambda line: percent(line.share, line.interval),
        **scores,
        **digits,
        "\ncost": lambda line: _usd(line, dollars(line.cost_usd)),
        "per correct\nanswer": lambda line: _usd(
            line, per_correct_text(line.cost_usd, line.cost_per_correct)
        ),
        **{f"\n{suite}": partial(_share_of, shares) for suite, shares in suites.items()},
        "accuracy when\nit answered": lambda line: percent(line.accuracy.over_answered.share),
    }


def _usd(line: RankingRow, text: str) -> str:
    """Return dollars, but not four zeros for what cost nothing."""
    return "$0" if line.cost_usd == 0 else at_least(text, partial=line.priced < line.trials)


def _digits(line: RankingRow) -> str:
    return "-" if line.at_50 is None else line.at_50.in_short()


def _by_suite(rankings: Sequence[Ranking]) -> dict[str, dict[str, str]]:
    """Return the accuracy of everybody on each suite, where there are several."""
    shares: dict[str, dict[str, str]] = {}
    for ranking in rankings:
        for line in ranking.lines:
            if ranking.suite is not None:
                shares.setdefault(ranking.suite, {})[line.name] = percent(line.share)
    return shares if len(shares) > 1 else {}


def _head(figures: Figures) -> list[str]:
    return ["\nrank", "\nmodel", *figures]


def _share_of(shares: Mapping[str, str], line: RankingRow) -> str:
    return shares.get(line.name, "-")


def _some(named: Sequence[str], between: str = ", ") -> str:
    """Return the first few, each without its middle where it is long, and how many more there are."""
    shown = between.join(middle_cut(safe(one), LONGEST_NAMED) for one in named[:NAMED])
    return f"{shown} and {len(named) - NAMED} more" if len(named) > NAMED else shown


def _rivals(lines: Sequence[RankingRow]) -> tuple[RankingRow, RankingRow]:
    """Return the leader and the best other model; of one model, the first two that a place divides."""
    for line in lines:
        if line.model != lines[0].model:
            return lines[0], line
    divided = (two for two in pairwise(lines) if two[0].place != two[1].place)
    return next(divided, (lines[0], lines[1]))


def _folded(lines: Iterable[str], width: int) -> list[str]:
    """Return lines of so many characters; what goes on is moved in."""
    return [
        f"{'  ' if n else ''}{part}"
        for line in map(safe_note, lines)
        for n, part in enumerate([line] if cell_len(line) <= width else folded(line, width - 2).split("\n"))
    ]


def _folded_command(words: Sequence[str], width: int) -> list[str]:
    """Return a command on lines that a shell takes together; it is broken between words alone."""
    lines = [""]
    for word in words:
        if lines[-1].strip() and cell_len(f"{lines[-1]}{word} \\") > width:
            lines.append("  ")
        lines[-1] += f"{word} "
    return [f"{line}\\" for line in lines[:-1]] + [lines[-1].rstrip()]
