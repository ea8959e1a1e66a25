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
from asyncbench.analysis.entrants import models_text
from asyncbench.analysis.folder_report import FolderReport, no_trials
from asyncbench.analysis.lost_trials import lost_briefly
from asyncbench.analysis.served import note_of_simulated
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
    columns,
    folded,
    middle_cut,
    natural_width,
    render,
    safe,
    safe_note,
    safe_notes,
    shown_width,
)

WIDEST, HIGHEST = 100, 24  # characters, lines: a screen
HEAD_LINES: Final = 2  # lines of the table's header
BLANKS: Final = 2  # blank lines, which are dropped first
ROWS: Final = 10  # commands are dropped to show so many rows of the table
LAST: Final = 3  # so many rows are shown below those that are left out
SHORTEST_NAME: Final = 10  # characters
WHOLE_NAME: Final = 40  # figures are dropped to show so many characters of a name
FIGURES: Final = 3  # so many figures stay as long as names can be shortened
MANY_AT_ONCE: Final = 100  # from so many calls in flight on, their number is shown
MOST_COUNTED: Final = 200_000  # of more calls than that, calls in flight are not counted
LOST_NAMED: Final = 2  # so many models that lost trials have a line each
NAMED: Final = 3  # a line names at most so many models
LONGEST_NAMED: Final = 60  # characters of a name with its remark


Figures = dict[
    str, Callable[[RankingRow], str]
]  # heading with line breaks → cell; the last are dropped first


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview(FolderReport):
    """A results folder on one screen; Markdown and LaTeX show all models."""

    standings: Standings
    status: Status
    imported: bool  # the results were recorded by another program: nothing can be asked again
    load: Mapping[str, int] | None  # the row of `_CALL_LOAD`; None: there are too many calls to count
    chosen: Chosen
    after_run: bool = False  # the run has just said which models stopped, what is open and what failed

    def data(self) -> dict[str, object]:
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
            "nothing": self.nothing,
        }

    def screen_text(self, width: int | None, height: int | None) -> str:
        """Return the text for a screen of 60 characters and 16 lines or more, at most 100 wide by default."""
        height = height or HIGHEST
        nothing = [] if self.nothing is None else safe_notes([self.nothing], width=width)
        width = width or min(shown_width(), WIDEST)
        above = [
            *self._opening(),
            *(["", *_leader(self._ranking), self._listed()[0]] if self.standings.rankings else []),
        ]
        head, below = _folded(above, width), _folded([*_legend(self._ranking), *self._attention()], width)
        rows = min(ROWS, len(self._listed()[1]))
        room = height - len(head) - len(below) - HEAD_LINES  # for the table and commands
        commands = self._next_lines(width, room - rows + BLANKS)
        room -= len(commands) - (BLANKS if room - len(commands) < rows else 0)
        below += commands
        table = self._table(width, max(LAST + 2, room)) if self.standings.rankings else []
        lines = [*head, *nothing, *table, *below]
        return "\n".join(lines if len(lines) <= height else filter(None, lines))

    def notes_above(self) -> Iterator[str]:
        nothing = [] if self.nothing is None else [self.nothing]
        ranking = self._ranking
        yield from (*self._opening(), *nothing, *_leader(ranking), *_legend(ranking), *self._attention())
        yield from (f"{what}: `{' '.join(words)}`" for what, words in self._commands())

    def sheets(self) -> Iterator[Sheet]:
        title, lines = self._listed()
        figures = _columns(self.standings.rankings)
        head = ["rank", "model", *(" ".join(name.split("\n")) for name in figures)]
        if lines:
            yield Sheet(title=title, head=head, rows=self._cells(figures, lines), labels=2)

    # ── the sentences ────────────────────────────────────────────────────────────────────────

    @property
    def nothing(self) -> str | None:
        """The sentence that a folder without trials gets instead of ranks."""
        return None if self.standings.rankings else no_trials(self.folder)

    def _opening(self) -> Iterator[str]:
        yield from self.simulated_notes()
        status = self.status
        unpriced = f" + {status.unpriced_attempts:,} unpriced calls" if status.unpriced_attempts else ""
        entrants = {line.entrant for ranking in self.standings.rankings for line in ranking.lines}
        asked = {model for _, model, _ in entrants}
        who = models_text(
            [*entrants, *(("", each.model, "") for each in status.models if each.model not in asked)]
        )
        cost = f"{at_least(dollars(status.cost_usd), partial=unpriced)}{unpriced}"
        cost = "cost unknown" if status.cost_usd is None else cost
        done, planned = status.whole.done, status.whole.planned
        progress = number_of(done, "trial")
        if planned is not None and planned > done:  # else trials that are done have left the sweep
            progress = f"{done:,} of {number_of(planned, 'trial')}"
        yield f"{status.sweep}: {who}, {progress}, {cost}"

        if self.load is None:
            return
        sentences = []
        limited = self.load["rate_limited"]
        if limited and not any(model.failed or model.open for model in status.models):
            calls = "1 call" if limited == 1 else f"{limited:,} calls"
            sentences.append(f"{calls} got a 429 and went out again; no trial lost.")
        if self.load["most_at_once"] >= MANY_AT_ONCE:
            sentences.append(f"Up to {self.load['most_at_once']:,} in flight.")
        if self.load["in_batches"]:
            sentences.append(
                f"{self.load['in_batches']:,} of {self.load['calls']:,} requests were in batches."
            )
        if sentences:
            yield " ".join(sentences)

    def _listed(self) -> tuple[str, Sequence[RankingRow]]:
        """Return the title and lines of the longest ranking; without a ranking, all models by accuracy."""
        ranking = self._ranking
        if ranking is not None:
            return ranking_title(ranking), ranking.lines
        for suite, lines in unranked(self.standings.rankings).items():
            several = len(lines) > 1
            return f"{suite or 'All suites'}: {f'{len(lines)} {ALONE}' if several else lines[0].name}", lines
        return "", ()

    @property
    def _ranking(self) -> Ranking | None:
        together = [ranking for ranking in self.standings.rankings if not ranking.alone]
        return max(together, key=lambda ranking: (len(ranking.lines), ranking.problems), default=None)

    def _attention(self) -> Iterator[str]:
        """Yield a line for each problem that a person should look at, the gravest first."""
        if not self.after_run:
            models = self.status.models
            if suspended := [f"{model.model} ({model.suspended})" for model in models if model.suspended]:
                yield f"! suspended: {_named(suspended)}"
            unfinished = [f"{model.model} {model.open:,}" for model in models if model.open]
            if unfinished and not self.status.running:
                advice = "" if self.imported else ", run it again"
                yield f"! unfinished{advice}: {_named(unfinished)}"
        yield from (f"! {note}" for note in self.standings.outgraded)

        # entrants that lost more than 1 % of their replies, the worst first
        outcomes = outcomes_of(self.standings.rankings)
        lost = {name: accuracy for name, counts in outcomes.items() if (accuracy := Accuracy.of(counts)).loud}
        loud = sorted(lost, key=lambda name: -(lost[name].lost_share or 0.0))
        named = [name for name in loud if not all_cut(outcomes[name])]
        for name in named[:LOST_NAMED]:
            yield f"! over 1 % lost: {_named([f'{name} {lost_briefly(outcomes[name])}'])}"
        if len(named) > LOST_NAMED:
            yield f"! over 1 % lost: {len(named) - LOST_NAMED:,} more"
        failed = {name: counts[Outcome.FAILED] for name, counts in outcomes.items() if name not in loud}
        failures = [f"{name} {count:,}" for name, count in failed.items() if count]
        if failures and not self.after_run:
            yield f"! failed{'' if self.imported else ', run it with --retry failed'}: {_named(failures)}"

        if skipped := self.standings.skipped:
            yield f"! {skipped:,} trials skipped (stop_when): intervals are too narrow; report tells more"
        if self.status.ungraded or self.status.damaged_lines:
            yield "! answers are not graded, or lines are damaged: asyncbench status tells more"
        if (ranking := self._ranking) is not None:
            ranked = {line.name for line in ranking.lines}
            others = [name for name in outcomes if name not in ranked]
            if cut := [name for name in others if all_cut(outcomes[name])]:
                yield f"! not ranked, every reply was cut: {_named(cut)}. Raise max_tokens, --retry truncated"
            if others := [name for name in others if name not in cut]:
                yield f"! asked too few of these problems to be ranked: {_named(others)}"

    def _next_lines(self, width: int, room: int) -> list[str]:
        """Return the next commands on lines that a shell accepts: as many as there is room for."""
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
        """Return the next commands: the purpose of each, and its words as a shell accepts them."""
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
        """Return the header and at most `rows` rows of the table, `width` characters wide."""
        _, lines = self._listed()
        left_out = max(0, len(lines) - rows)
        if left_out:
            left_out += 1  # the line that says so takes the place of one more row
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
        return render(columns(_header(figures), cells, labels=2), width=width).splitlines()

    def _width(self, figures: Figures, lines: Sequence[RankingRow], name: int) -> int:
        return natural_width(columns(_header(figures), self._cells(figures, lines, name), labels=2))

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


# The number of calls; of those that got a 429 (a load does not try them again); of those in batches; and the
# most calls in real time that were in flight at once, of all models together.
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
    """Return results on one screen; `after_run`: without what the summary of a run has just said."""
    folders = views.chosen
    statuses = list(map(status_of, folders.paths))
    status = statuses[0] if folders.plain else joined_status(views, statuses)
    few = sum(model.attempts for model in status.models) <= MOST_COUNTED
    return RunOverview(
        folder=status.folder,
        chosen=folders,
        simulated_note=note_of_simulated(views, simulated=status.simulated),
        load=views.rows(_CALL_LOAD)[0] if few else None,
        standings=standings_of(views, formats=has_scores(views)),
        status=status,
        imported=bool(views.manifest.get(IMPORTED)),
        after_run=after_run,
    )


def _leader(ranking: Ranking | None) -> Iterator[str]:
    """Yield a sentence on the best model and those that are tied with it."""
    if ranking is None:
        return
    leader, *tied = ranking.ties[0]
    if tied:
        rivals = tied[0] if len(tied) == 1 else f"{len(tied):,} others"
        yield f"{leader} leads, statistically tied with {rivals}."
    else:
        others = "The other is" if len(ranking.lines) == 2 else "The others are"
        yield f"{leader} leads. {others} significantly worse."


def _legend(ranking: Ranking | None) -> Iterator[str]:
    """Yield the meaning of a rank."""
    if ranking is not None:
        kind = "paired" if ranking.paired else "unpaired"
        yield f"Same rank = no significant difference ({kind} test, 5 %)."


def _columns(rankings: Sequence[Ranking]) -> Figures:
    """Return the figures of the table, the most important first."""
    shares: dict[str, dict[str, str]] = {}  # suite → name → accuracy
    for ranking in rankings:
        for line in ranking.lines:
            if ranking.suite is not None:
                shares.setdefault(ranking.suite, {})[line.name] = percent(line.share)
    several = len(shares) > 1

    scored = any(line.score for ranking in rankings for line in ranking.lines)
    scores: Figures = {"mean score\n(95 % CI)": lambda line: score_text(line.score)}
    digits: Figures = {
        "50 % right up to\n(hardest task)": lambda line: "-" if line.at_50 is None else line.at_50.brief()
    }
    has_digits = any(line.at_50 for ranking in rankings for line in ranking.lines)
    return {
        "accuracy\n(95 % CI)": lambda line: percent(line.share, line.interval),
        **(scores if scored else {}),
        **(digits if has_digits and not several else {}),
        "\ncost": lambda line: _usd(line, dollars(line.cost_usd)),
        "per correct\nanswer": lambda line: _usd(
            line, per_correct_text(line.cost_usd, line.cost_per_correct)
        ),
        **{f"\n{suite}": partial(_share_of, shares[suite]) for suite in (shares if several else ())},
        "accuracy when\nit answered": lambda line: percent(line.accuracy.over_answered.share),
    }


def _usd(line: RankingRow, text: str) -> str:
    """Return dollars; a cost of nothing is `$0`, without decimals."""
    return "$0" if line.cost_usd == 0 else at_least(text, partial=line.priced < line.trials)


def _header(figures: Figures) -> list[str]:
    return ["\nrank", "\nmodel", *figures]


def _share_of(shares: Mapping[str, str], line: RankingRow) -> str:
    return shares.get(line.name, "-")


def _named(named: Sequence[str], between: str = ", ") -> str:
    """Return the first few names, long ones without their middle, and how many more there are."""
    shown = between.join(middle_cut(safe(name), LONGEST_NAMED) for name in named[:NAMED])
    return f"{shown} and {len(named) - NAMED} more" if len(named) > NAMED else shown


def _rivals(lines: Sequence[RankingRow]) -> tuple[RankingRow, RankingRow]:
    """Return the leader and the best other model; of one model, the first two that differ in rank."""
    for line in lines:
        if line.model != lines[0].model:
            return lines[0], line
    divided = (two for two in pairwise(lines) if two[0].place != two[1].place)
    return next(divided, (lines[0], lines[1]))


def _folded(lines: Iterable[str], width: int) -> list[str]:
    """Return lines of at most `width` characters; further pieces of a line are indented."""
    return [
        f"{'  ' if n else ''}{piece}"
        for line in map(safe_note, lines)
        for n, piece in enumerate([line] if cell_len(line) <= width else folded(line, width - 2).split("\n"))
    ]


def _folded_command(words: Sequence[str], width: int) -> list[str]:
    """Return a command on lines that a shell reads as one, broken only between words."""
    lines = [""]
    for word in words:
        if lines[-1].strip() and cell_len(f"{lines[-1]}{word} \\") > width:
            lines.append("  ")
        lines[-1] += f"{word} "
    return [f"{line}\\" for line in lines[:-1]] + [lines[-1].rstrip()]
