"""Rankings over problems in common: places with ties, intervals, and paired tests.

Models that share at most 1 % of their problems are ranked by unpaired tests, if each was asked equally many
problems of every kind, equally often.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import combinations
from operator import or_
from typing import Any, Final

from asyncbench.analysis.cells import Value, add_known_costs, cells_in, mean_score, outcomes_of, summed
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.curves import GROUP, Curve, Hardest, curves_by, hardest_at
from asyncbench.analysis.entrants import Entrant, finest, names_of, sort_entrants
from asyncbench.analysis.pairing import (
    ANSWERS,
    Bits,
    Marked,
    Marks,
    ModelPair,
    difference_interval,
    keep_votes,
    kind_bits,
    marks_in,
    pair,
    skipped_problems,
    votes_on,
)
from asyncbench.analysis.views import counts_by
from asyncbench.records import Outcome
from asyncbench.stats.paired import holm, sign_flip, stratified, tied
from asyncbench.stats.proportions import Accuracy, Proportion
from asyncbench.stats.repeats import AtK, clustered, pass_at_k, pass_hat_k, worth_by_k
from asyncbench.store.manifest import Manifest
from asyncbench.store.schema import CELL, ENTRANT
from asyncbench.tables.data import INSIDE, in_data
from asyncbench.tables.numbers import per_correct

MOST_SHARED: Final = 0.01  # two models may share this part of their problems without harm to an unpaired test
Problems = Mapping[tuple[int, int], int]  # (times right, times asked) → problems
Key = tuple[str | None, ...]  # run, model, condition and suite; None: all suites


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingRow:
    """One line of a ranking: a model under a condition."""

    name: str
    run: str
    model: str
    condition: str
    place: int  # the rank, which statistically tied models share; 1 is the best
    share: float  # accuracy over all trials on the ranking's problems
    interval: tuple[float, float]  # 95 %; clustered by problem where problems were repeated
    repeats: int  # how often each of the ranking's problems was asked; 1 also where that differs
    any_right: (
        float | None
    )  # pass@k with k = repeats: the share of problems with a right answer; None: k is 1
    all_right: float | None  # pass^k: the share of problems whose answers are all right
    at_k: tuple[AtK, ...]  # for each k up to the most repeats of a problem; empty where each was asked once
    trials: int  # all trials of the entrant, also on problems outside the ranking
    outcomes: dict[str, int]  # of all these trials
    shared: dict[str, int]  # outcomes of the trials on the ranking's problems
    at_90: Hardest | None  # the length up to which 90 % are right in the hardest task; None: several suites
    at_50: Hardest | None
    cost_usd: float | None  # sum of the known costs of calls; None: no call has a known cost
    priced: int  # trials of which all calls have a known cost: where fewer than all, `cost_usd` is too low
    cost_per_correct: float | None  # USD
    format_ok: int  # of the `format_known` replies whose form the headline grader judged
    format_known: int
    score: Value | None  # the mean of scores by a user's own grader; trials without a reply count as 0
    latency_p50_s: float | None
    output_tokens: int | None  # of the trials whose tokens are known; None: they are unknown for all
    reasoning_tokens: int | None
    known_tokens: int  # number of trials whose tokens are known

    @property
    def entrant(self) -> Entrant:
        """Who was asked: run, model and condition."""
        return self.run, self.model, self.condition

    @property
    def accuracy(self) -> Accuracy:
        """The accuracy on the ranking's problems: over all trials, over answered ones, and its bounds."""
        return Accuracy.of(self.shared)

    @property
    @in_data(None)
    def accuracies(self) -> Mapping[str, float | None]:
        """The figures of `accuracy`."""
        accuracy = self.accuracy
        return {
            "accuracy": accuracy.over_all.share,
            "accuracy_of_answered": accuracy.over_answered.share,
            "answered": accuracy.over_answered.trials,
            "accuracy_if_lost_right": accuracy.highest,
            "lost_share": accuracy.lost_share,
        }


@dataclass(frozen=True, kw_only=True)
class PairLine:
    """Two entrants of a ranking, compared on their common problems."""

    a: str  # placed before b
    b: str
    counts: ModelPair = field(metadata=INSIDE)
    p: float  # exact and two-sided, that both are equally good
    p_holm: float  # adjusted for all pairs of the ranking

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference in accuracy, a paired bootstrap; computed when it is read."""
        return difference_interval(self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """A list that may be read from top to bottom: all are compared on the same problems, or kinds of them."""

    suite: str | None  # None: several suites together
    suites: tuple[str, ...]
    problems: int  # number of problems that all were asked; if not `paired`, that each was asked
    paired: bool = True  # False: each was asked different problems, equally many of every kind
    ties: tuple[tuple[str, ...], ...]  # names by place, the best of a place first
    lines: tuple[RankingRow, ...]  # the best first
    pairs: tuple[PairLine, ...]  # empty unless `paired`

    @property
    @in_data("alone")
    def alone(self) -> bool:
        """True if this entrant shares too few problems with any other to be ranked."""
        return len(self.lines) == 1


def rankings_of(views: FolderViews, manifest: Manifest, *, formats: bool) -> tuple[tuple[Ranking, ...], int]:
    """Return the rankings of a folder, that of all suites together first, and the number of entrants.

    Args:
        views: of the folder, with the table `held_skips`.
        manifest: of the folder.
        formats: also read the grades, for `format_ok`.
    """
    trials = marks_in(views)
    if any(len(marks.asked) > 1 for marks in trials.marks.values()):
        keep_votes(views)
    suites = sorted({suite for suite, _ in trials.tasks})
    entrants = sort_entrants(trials.marks, manifest)
    counts = _Counts(names_of(entrants), views, formats=formats)
    skipped = skipped_problems(views, trials)
    done = {entrant: trials.marks[entrant].problems | skipped.get(entrant, 0) for entrant in entrants}
    rankings = tuple(
        _ranking(suite, groups, trials, counts)
        for suite in [*([None] if len(suites) > 1 else []), *suites]
        for groups in _comparable_groups(
            list(_groups(entrants, trials, done, suite)), trials, done, counts, suite
        )
    )
    return rankings, len(entrants)


# ── groups that can be compared ──────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Entrants that can be ranked together, and the problems that they have in common, by turn."""

    members: tuple[Entrant, ...]
    common: tuple[Bits, ...]


def _groups(
    entrants: Sequence[Entrant], trials: Marked, done: Mapping[Entrant, Bits], suite: str | None
) -> Iterator[_Group]:
    """Yield groups whose common problems are at least half of those of their first member, in each suite.

    Of several suites, those that a member was not asked are left out as long as two suites stay, so that as
    many as possible are ranked over everything in common. At least one problem of each suite has to be asked
    of all. An entrant whose replies were all cut at `max_tokens` is alone: its rank would be that of the
    limit.

    Args:
        entrants: in the order of the sweep.
        trials: their marks.
        done: the problems of each that were asked or are skipped by a rule; the latter do not count as
        missing. suite: only problems of this suite; None: of all.
    """
    universe = trials.problems_of(suite=suite)
    names = {name for name, _ in trials.tasks if suite in (None, name)}
    by_suite = [trials.problems_of(suite=name) for name in names]
    marks_of = {entrant: trials.marks[entrant].restrict(universe) for entrant in entrants}
    sizes = {
        entrant: marks.trials + (done[entrant] & universe & ~marks.problems).bit_count()
        for entrant, marks in marks_of.items()
    }
    present = [entrant for entrant in entrants if marks_of[entrant].trials]
    cut = [entrant for entrant in present if all_cut(trials.outcomes(entrant, marks_of[entrant].asked))]
    yield from (_Group(members=(entrant,), common=marks_of[entrant].asked) for entrant in cut)
    ungrouped = sorted((entrant for entrant in present if entrant not in cut), key=lambda who: -sizes[who])
    while ungrouped:
        first, *others = ungrouped
        members, common, kept = [first], marks_of[first].asked, done[first] & universe
        least = [bits & kept for bits in by_suite if bits & kept]
        for entrant in others:
            both = tuple(a & b for a, b in zip(common, marks_of[entrant].asked, strict=True))
            problems, keeps = Marks(asked=both, right=both).problems, kept & done[entrant]
            shared = [
                bits
                for bits in least
                if problems & bits and 2 * (keeps & bits).bit_count() >= bits.bit_count()
            ]
            if len(shared) >= min(2, len(least)):
                members.append(entrant)
                within, least = reduce(or_, shared), shared
                common, kept = tuple(bits & within for bits in both), keeps & within
        yield _Group(members=tuple(members), common=common)
        ungrouped = [entrant for entrant in ungrouped if entrant not in members]


def all_cut(outcomes: Mapping[str, int]) -> bool:
    """Return whether every reply was cut at `max_tokens`."""
    return outcomes.get(Outcome.TRUNCATED, 0) == sum(outcomes.values()) > 0


def _comparable_groups(
    groups: Sequence[_Group],
    trials: Marked,
    done: Mapping[Entrant, Bits],
    counts: "_Counts",
    suite: str | None,
) -> Iterator[tuple[_Group, ...]]:
    """Yield the groups of each ranking: one, or several single entrants that unpaired tests can compare.

    These share hardly a problem, and have equally many problems of every kind, asked equally often.
    """
    alike = defaultdict[object, list[_Group]](list)
    alone = sum(len(group.members) == 1 for group in groups)
    for group in groups:
        if len(group.members) == 1 < alone:
            sizes = set[tuple[object, int, int]]()  # kind, times asked, number of problems
            for kind, problems in counts.kinds(group.members[0], suite).items():
                times_asked = Counter[int]()
                for (_, times), count in problems.items():
                    times_asked[times] += count
                sizes |= {(kind, times, count) for times, count in times_asked.items()}
            alike[frozenset(sizes)].append(group)
        else:
            alike[group].append(group)
    universe = trials.problems_of(suite=suite)
    for together in alike.values():
        problems_done = [done[group.members[0]] & universe for group in together]
        shared = [
            (a & b).bit_count() / min(a.bit_count(), b.bit_count()) for a, b in combinations(problems_done, 2)
        ]
        apart = max(shared, default=0.0) <= MOST_SHARED
        yield from [tuple(together)] if apart else [(group,) for group in together]


def _ranking(suite: str | None, groups: Sequence[_Group], trials: Marked, counts: "_Counts") -> Ranking:
    """Return the ranking of a group, or of several groups that were asked different problems."""
    common = {entrant: group.common for group in groups for entrant in group.members}
    names = {name: entrant for entrant, name in counts.names.items() if entrant in common}
    marks = dict[str, Marks]()
    for name, who in names.items():
        right = tuple(a & b for a, b in zip(trials.marks[who].right, common[who], strict=True))
        marks[name] = Marks(asked=common[who], right=right)

    paired = len(groups) == 1
    kinds = None if paired else {name: counts.kinds(who, suite) for name, who in names.items()}
    best_first, ties, pairs = placed(marks, kinds)
    problems = marks[best_first[0]].problems

    repeats = dict[Entrant, tuple[AtK, ...]]()
    for group in groups:
        repeats |= counts.repeats(group)
    lines = [
        counts.row(
            who := names[name],
            suite,
            marks[name],
            place=place_in(ties, name),
            shared=trials.outcomes(who, common[who]),
            at_k=repeats.get(who, ()),
        )
        for name in best_first
    ]
    return Ranking(
        suite=suite,
        suites=tuple(sorted({name for (name, _), bits in trials.tasks.items() if bits & problems})),
        problems=problems.bit_count(),
        lines=tuple(lines),
        ties=ties,
        pairs=pairs,
        paired=paired,
    )


def placed(
    marks: Mapping[str, Marks], problems: Mapping[str, Mapping[Any, Problems]] | None
) -> tuple[list[str], tuple[tuple[str, ...], ...], tuple[PairLine, ...]]:
    """Return the names, the best first; the names that are statistically tied, by place; and all pairs.

    Args:
        marks: the marks of each name, with equally many trials.
        problems: the problems of each name by kind, if they are different problems; None: all have the same.
    """
    best_first = sorted(marks, key=lambda name: -marks[name].correct / marks[name].trials)
    pairs = paired_lines(best_first, marks) if problems is None else ()
    p_of = {(line.a, line.b): line.p_holm for line in pairs} or unpaired(best_first, problems or {})
    return best_first, tied(best_first, lambda a, b: p_of[a, b]), pairs


def place_in(ties: Sequence[Sequence[str]], name: str) -> int:
    """Return the place of a name, given the names by place; 1 is the best."""
    return next(rank for rank, names in enumerate(ties, 1) if name in names)


def unpaired(
    best_first: Sequence[str], problems: Mapping[str, Mapping[Any, Problems]]
) -> dict[tuple[str, str], float]:
    """Return the adjusted p of each pair that shares no problem, given the problems of each by kind."""
    both = list(combinations(best_first, 2))
    chances = [
        stratified((problems_of_a, problems[b][kind]) for kind, problems_of_a in problems[a].items())
        for a, b in both
    ]
    return dict(zip(both, holm(chances), strict=True))


def paired_lines(best_first: Sequence[str], marks: Mapping[str, Marks]) -> tuple[PairLine, ...]:
    """Return all pairs of a ranking, compared on the problems in common."""
    counts_of = {(a, b): pair(marks[a], marks[b]) for a, b in combinations(best_first, 2)}
    chances = [sign_flip(both.differences) for both in counts_of.values()]
    return tuple(
        PairLine(a=a, b=b, counts=both, p=p, p_holm=p_holm)
        for ((a, b), both), p, p_holm in zip(counts_of.items(), chances, holm(chances), strict=True)
    )


# ── one line ─────────────────────────────────────────────────────────────────────────────────

_SUITES: Final = (*ENTRANT, "suite")
_SUMS: Final = counts_by(ANSWERS, ENTRANT, _SUITES, more=["quantile_cont(latency_s, 0.5) AS latency_p50_s"])
_OWN: Final = (  # figures of a line
    *(*ENTRANT, "trials", "cost_usd", "priced", "latency_p50_s"),
    *("output_tokens", "reasoning_tokens", "known_tokens", "format_ok", "format_known"),
)


class _Counts:
    """Sums over all trials of each entrant, by suite and of all suites."""

    def __init__(self, names: Mapping[Entrant, str], views: FolderViews, *, formats: bool) -> None:
        self.names = names
        self._views = views
        cells = cells_in(views, answers=ANSWERS) if formats else views.rows(counts_by(ANSWERS, CELL))
        self._sums = summed([*cells, *(cell | {"suite": None} for cell in cells)], _SUITES)
        for row in add_known_costs(views, views.rows(_SUMS), ENTRANT, _SUITES):
            self._sums[tuple(row[name] for name in _SUITES)] |= row
        self._digits = _digits(cells)

    def kinds(self, entrant: Entrant, suite: str | None) -> dict[object, Problems]:
        """Return the problems that an entrant was asked, by their kind."""
        marks = marks_in(self._views).marks[entrant]
        asked = {
            (kind, length): marks.restrict(bits).problem_counts()
            for kind, lengths in kind_bits(self._views).items()
            for length, bits in lengths.items()
            if suite in (None, kind[0])
        }
        return {kind: problems for kind, problems in asked.items() if problems}

    def repeats(self, group: _Group) -> dict[Entrant, tuple[AtK, ...]]:
        """Return pass@k and the like of each member on the common problems; empty without repeats."""
        if len(group.common) < 2:
            return {}
        problems = reduce(or_, group.common)
        votes = votes_on(self._views, [problems] * len(group.common))
        by_entrant = {who: tuple(worth_by_k(votes[who])) for who in group.members}
        return {who: figures for who, figures in by_entrant.items() if len(figures) > 1}

    def row(
        self,
        entrant: Entrant,
        suite: str | None,
        marks: Marks,
        *,
        place: int,
        shared: dict[str, int],
        at_k: tuple[AtK, ...],
    ) -> RankingRow:
        key = (*entrant, suite)
        sums, (at_90, at_50) = self._sums[key], self._digits.get(key, (None, None))
        share, interval = share_of(marks)
        repeats, any_right, all_right = _repeated(marks)
        return RankingRow(
            name=self.names[entrant],
            place=place,
            share=share,
            interval=interval,
            repeats=repeats,
            any_right=any_right,
            all_right=all_right,
            at_k=at_k,
            outcomes=outcomes_of(sums),
            shared=shared,
            at_90=at_90,
            at_50=at_50,
            cost_per_correct=per_correct(sums["cost_usd"], sums[Outcome.CORRECT]),
            score=mean_score(sums),
            **{name: sums[name] for name in _OWN},
        )


def _repeated(marks: Marks) -> tuple[int, float | None, float | None]:
    """Return how often each problem was asked, and the shares of problems right at least once and always."""
    problems = marks.problem_counts()
    times_asked = {times for _, times in problems}
    if len(times_asked) != 1 or (repeats := times_asked.pop()) == 1:
        return 1, None, None
    total = sum(problems.values())

    def mean(measure: Callable[[int, int, int], float]) -> float:
        return sum(measure(repeats, right, repeats) * n for (right, _), n in problems.items()) / total

    return repeats, mean(pass_at_k), mean(pass_hat_k)


def share_of(marks: Marks) -> tuple[float, tuple[float, float]]:
    """Return the share of a ranking's trials that are right, with its interval."""
    if len(list(filter(None, marks.asked))) == 1:
        once = Proportion(successes=marks.correct, trials=marks.trials)
        return once.share or 0.0, once.interval or (0.0, 1.0)
    repeated = clustered(marks.problem_counts())
    return repeated.share or 0.0, repeated.interval or (0.0, 1.0)


def _digits(cells: Iterable[Mapping[str, Any]]) -> dict[Key, tuple[Hardest | None, Hardest | None]]:
    """Return the lengths up to which 90 % and 50 % are right in an entrant's hardest task of a suite."""
    by_suite = defaultdict[Key, dict[tuple[str, ...], Curve]](dict)
    for (run, model, condition, suite, *kind), curve in curves_by(cells, GROUP).items():
        by_suite[run, model, condition, suite][tuple(kind)] = curve
    hardest = {}
    for key, curves in by_suite.items():
        names = finest(curves)
        tasks = {names[kind]: curve for kind, curve in curves.items()}
        hardest[key] = hardest_at(0.9, tasks), hardest_at(0.5, tasks)
    return hardest
