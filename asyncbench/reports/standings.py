"""Who is better, by how much, and is that real: rankings over problems in common, with ties."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.records import Outcome
from asyncbench.results import (
    PAIRING_COLUMNS,
    Asked,
    Bits,
    Ended,
    Marked,
    Marks,
    ModelPair,
    any_simulated,
    dealt_with,
    in_order,
    is_outcome,
    lapsed_note,
    lost_notes,
    marked,
    names_of,
    no_trials,
    pair,
    read_coded,
    skips_in,
)
from asyncbench.results.curves import GROUP, DigitsCurve, Hardest, digits_at, hardest, tasks_named
from asyncbench.shown import (
    SIMULATED,
    Report,
    Sheet,
    dollars,
    per_correct,
    per_correct_text,
    percent,
    seconds,
)
from asyncbench.stats import (
    Accuracy,
    Proportion,
    bootstrap_difference,
    clustered,
    holm,
    pass_at_k,
    pass_hat_k,
    sign_flip,
    tied,
)
from asyncbench.store import ENTRANT, read_grades, read_manifest

COLUMNS: Final = (
    *PAIRING_COLUMNS,
    *(
        "provider",
        "variant",
        "representation",
        "length",
        "cost_usd",
        "latency_s",
        "output_tokens",
        "reasoning_tokens",
    ),
)
SEED: Final = 8  # of the bootstrap
Key = tuple[str, ...]  # a run, model, condition and, where figures are by suite, suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One line of a ranking: a model under a condition."""

    name: str
    run: str
    model: str
    condition: str
    place: int  # shared by those that are statistically tied; 1 is the best
    share: float  # accuracy over all, on the ranking's problems
    interval: tuple[float, float]  # 95 %; clustered by problem where these were repeated
    repeats: int  # times that each of the ranking's problems was asked; 1 also where that differs
    any_right: float | None  # pass@k with k = repeats: of a problem's answers at least one is; None: k is 1
    all_right: float | None  # pass^k
    trials: int  # its own, on whatever problems
    outcomes: dict[str, int]  # of its own trials
    shared: dict[str, int]  # the same of those on the ranking's problems
    at_90: Hardest | None  # up to which length 90 % are right in its hardest task; None: of several suites
    at_50: Hardest | None
    cost_usd: float | None  # of the priced trials; None when none is
    priced: int
    cost_per_correct: float | None  # USD, of the priced trials
    format_ok: int  # of those whose format the headline grader judged
    format_known: int
    latency_p50_s: float | None
    output_tokens: int | None  # of the trials whose tokens are known; None when none are
    reasoning_tokens: int | None
    known_tokens: int  # trials with a known count

    @property
    def accuracy(self) -> Accuracy:
        """On the ranking's problems, as `share` is: over all, over answered, and the bounds."""
        return Accuracy.of(self.shared)


@dataclass(frozen=True, kw_only=True)
class PairLine:
    """Two of a ranking on the problems in common."""

    a: str  # placed before b
    b: str
    found: ModelPair
    p: float  # exact and two-sided, of the two being equally good
    p_holm: float  # adjusted for all pairs of the ranking

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference in accuracy: a paired bootstrap, made when asked for."""
        return difference_interval(self.found)


def difference_interval(found: ModelPair) -> tuple[float, float]:
    """Return the 95 % interval of a pair's difference in accuracy: a bootstrap over problems, seeded."""
    return bootstrap_difference(found.by_problem, seed=SEED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """A list that may be read from top to bottom: all in it are compared on the same problems."""

    suite: str | None  # None: several suites together
    suites: tuple[str, ...]
    problems: int  # that all in it were asked
    lines: tuple[Standing, ...]  # the best first
    ties: tuple[tuple[str, ...], ...]  # names by place; the first is better than, or as good as, the others
    pairs: tuple[PairLine, ...]

    @property
    def alone(self) -> bool:
        """Whether this is one that shares too few problems with any other."""
        return len(self.lines) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings(Report):
    """The rankings of a results folder: of all suites together, if there are several, then suite by suite."""

    folder: str
    simulated: bool
    asked: int  # runs × models × conditions
    skipped: int  # trials that `stop_when` leaves out
    lapsed: int  # trials that it left out before, but not by the rule in force: open
    rankings: tuple[Ranking, ...]

    def _data(self) -> dict[str, object]:
        return {
            "folder": self.folder,
            "simulated": self.simulated,
            "asked": self.asked,
            "skipped": self.skipped,
            "lapsed": self.lapsed,
            "rankings": list(map(_ranking_mapping, self.rankings)),
            "nothing": None if self.rankings else no_trials(self.folder),
        }

    def _notes(self) -> Iterator[str]:
        if self.simulated:
            yield SIMULATED
        if not self.rankings:
            yield no_trials(self.folder)
            return
        yield from lost_notes(outcomes_of(self.rankings))
        if self.skipped:
            yield f"{self.skipped:,} {SKIPPED}"
        if self.lapsed:
            yield lapsed_note(self.lapsed)
        if any(not one.alone for one in self.rankings):
            yield PLACES
        lines = [line for one in self.rankings for line in one.lines]
        if any(line.trials > line.accuracy.trials for line in lines):
            yield SHARED
        if any(line.at_50 and line.at_50.tasks > 1 for line in lines):
            yield HARDEST

    def _sheets(self) -> Iterator[Sheet]:
        for one in self.rankings:
            if not one.alone:
                yield _sheet(over(one), one.lines, placed=True)
        for suite, lines in unranked(self.rankings).items():
            several = self.asked > 1
            yield _sheet(f"{suite or 'All suites'}: {ALONE if several else 'one model'}", lines, placed=False)


PLACES: Final = (
    "Who shares a place cannot be told apart from the best of it: exact paired tests, Holm-adjusted over all "
    "pairs, 5 %."
)
HARDEST: Final = (
    "Digits: the length up to which that share is right in the model's hardest task, with 95 % limits."
)
SHARED: Final = (
    "Not all were asked the same: accuracy, of answered, lost and if lost right are on the problems in "
    "common; digits, cost, form and latency are of all trials of each."
)
SKIPPED: Final = (
    "trials were skipped, as enough was known of their cells (`stop_when`). All of a ranking are compared on "
    "the problems that none of them skipped: a cell in which one was stopped weighs less than planned, and "
    "who is better there may be placed too low. Intervals and tests are for a fixed number of trials and say "
    "too much. `report` tells each stopped cell with an interval that holds."
)
ALONE: Final = "not ranked, for they share few problems or none"


def over(ranking: Ranking) -> str:
    """Return over what a ranking is, as a title."""
    named = ranking.suite or f"All suites ({', '.join(ranking.suites)})"
    return f"{named}: {len(ranking.lines):,} on the same {ranking.problems:,} problems"


def unranked(rankings: Iterable[Ranking]) -> dict[str | None, list[Standing]]:
    """Return those that stand alone, by suite, with the highest accuracy first."""
    found: dict[str | None, list[Standing]] = {}
    for one in rankings:
        if one.alone:
            found.setdefault(one.suite, []).extend(one.lines)
    return {suite: sorted(lines, key=lambda line: -line.share) for suite, lines in found.items()}


def outcomes_of(rankings: Iterable[Ranking]) -> dict[str, dict[str, int]]:
    """Return what became of everybody's trials, over all suites."""
    found: dict[str, dict[str, int]] = {}
    for ranking in rankings:
        for line in ranking.lines:
            if ranking.suite is None or line.name not in found:
                found[line.name] = line.outcomes
    return found


def standings_on(folder: Path | str, *, formats: bool = True) -> Standings:
    """Return the rankings of a results folder.

    Whoever was asked less than half of a ranking's problems is not in it, but in another one; problems that
    `stop_when` skips count as asked here, and here alone. Failed and truncated trials count as not right;
    `Standing.accuracy` has the bounds, on the same problems.

    Args:
        folder: the results folder; nothing is written to it.
        formats: read the grades, too, for `format_ok`.

    Raises:
        ConfigError: it is not a results folder, or, where trials were skipped, its sweep.yaml cannot be read.
        StoreError: it cannot be read.
    """
    manifest = read_manifest(Path(folder))
    trials = read_coded(folder, COLUMNS)
    found = marked(trials)
    suites = sorted({suite for suite, _ in found.tasks})
    views = [*([None] if len(suites) > 1 else []), *suites]
    asked = in_order(found.marks, manifest)
    figures = _Figures(trials, _formats(folder, trials) if formats else None, names_of(asked))
    skips = skips_in(folder, [*ENTRANT, "problem_id"])
    dealt = dealt_with(found, skips.held)
    rankings = [
        _ranking(suite, group, found, figures)
        for suite in views
        for group in _groups(asked, found, dealt, suite)
    ]
    return Standings(
        folder=str(folder),
        simulated=any_simulated(trials),
        asked=len(asked),
        skipped=len(skips.held),
        lapsed=skips.lapsed,
        rankings=tuple(rankings),
    )


# ── who can be compared with whom ────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Some that can be ranked, and the problems in common, by turn."""

    members: tuple[Asked, ...]
    common: tuple[Bits, ...]

    def marks(self, one: Marks) -> Marks:
        return Marks(asked=self.common, right=self._of(one.right))

    def outcomes(self, ended: Ended) -> dict[str, int]:
        """Return what became of one's trials in common."""
        return {
            outcome: sum(bits.bit_count() for bits in self._of(turns)) for outcome, turns in ended.items()
        }

    def _of(self, turns: Sequence[Bits]) -> tuple[Bits, ...]:
        return tuple(bits & common for bits, common in zip(turns, self.common, strict=True))


def _groups(
    asked: Sequence[Asked], found: Marked, dealt: Mapping[Asked, Bits], suite: str | None
) -> Iterator[_Group]:
    """Yield groups so that each keeps at least half of the problems, of each suite, of its first.

    A problem that is skipped by a rule counts as kept, for nothing is missing; but of each suite one at least
    has to be asked of all.
    """
    universe = found.of(suite=suite)
    own = {one: found.marks[one].within(universe) for one in asked}
    done = {one: dealt[one] & universe for one in asked}
    sizes = {one: own[one].trials + (done[one] & ~own[one].problems).bit_count() for one in asked}
    left = sorted((one for one in asked if own[one].trials), key=lambda one: -sizes[one])
    while left:
        members, common, kept = [left[0]], own[left[0]].asked, done[left[0]]
        least = [bits for bits in _by_suite(found, suite, kept) if bits]
        for one in left[1:]:
            both, keeps = tuple(a & b for a, b in zip(common, own[one].asked, strict=True)), kept & done[one]
            problems = Marks(asked=both, right=both).problems
            if all(problems & bits and 2 * (keeps & bits).bit_count() >= bits.bit_count() for bits in least):
                members.append(one)
                common, kept = both, keeps
        yield _Group(members=tuple(members), common=common)
        left = [one for one in left if one not in members]


def _by_suite(found: Marked, suite: str | None, problems: Bits) -> list[Bits]:
    suites = {its for its, _ in found.tasks if suite in (None, its)}
    return [found.of(suite=its) & problems for its in suites]


def _ranking(suite: str | None, group: _Group, found: Marked, figures: "_Figures") -> Ranking:
    marks = {figures.names[one]: group.marks(found.marks[one]) for one in group.members}
    asked_of = {figures.names[one]: one for one in group.members}
    as_planned = [name for name in figures.names.values() if name in marks]
    best_first = sorted(as_planned, key=lambda name: -marks[name].correct)
    pairs = _pairs(best_first, marks)
    p_of = {(one.a, one.b): one.p_holm for one in pairs}
    ties = tied(best_first, lambda a, b: p_of[a, b])
    places = {name: place for place, names in enumerate(ties, 1) for name in names}
    problems = Marks(asked=group.common, right=group.common).problems
    suites = {its for (its, _), bits in found.tasks.items() if bits & problems}

    def standing(name: str) -> Standing:
        asked = asked_of[name]
        shared = group.outcomes(found.ended[asked])
        return figures.standing(asked, suite, marks[name], place=places[name], shared=shared)

    return Ranking(
        suite=suite,
        suites=tuple(sorted(suites)),
        problems=problems.bit_count(),
        lines=tuple(map(standing, best_first)),
        ties=ties,
        pairs=pairs,
    )


def _pairs(best_first: Sequence[str], marks: Mapping[str, Marks]) -> tuple[PairLine, ...]:
    found = {(a, b): pair(marks[a], marks[b]) for a, b in combinations(best_first, 2)}
    chances = [sign_flip(one.differences) for one in found.values()]
    adjusted = holm(chances)
    return tuple(
        PairLine(a=a, b=b, found=one, p=p, p_holm=p_holm)
        for ((a, b), one), p, p_holm in zip(found.items(), chances, adjusted, strict=True)
    )


# ── figures of one line ──────────────────────────────────────────────────────────────────────


class _Figures:
    """Sums over everybody's own trials, of each suite and of all; accuracy is of those in common."""

    def __init__(self, trials: pa.Table, formats: pa.Table | None, names: Mapping[Asked, str]) -> None:
        self.names = names
        self._trials = _with_counts(trials)
        self._sums = _sums(self._trials, ENTRANT) | _sums(self._trials, (*ENTRANT, "suite"))
        self._outcomes = _outcomes(self._trials, ENTRANT) | _outcomes(self._trials, (*ENTRANT, "suite"))
        self._formats = {} if formats is None else _formats_by(formats)
        self._digits = _digits(self._trials)

    def standing(
        self, asked: Asked, suite: str | None, marks: Marks, *, place: int, shared: dict[str, int]
    ) -> Standing:
        key = asked if suite is None else (*asked, suite)
        sums, (at_90, at_50) = self._sums[key], self._digits.get(key, (None, None))
        share, interval = _share(marks)
        repeats, any_right, all_right = _repeated(marks)
        format_ok, format_known = self._formats.get(key, (0, 0))
        return Standing(
            name=self.names[asked],
            run=asked[0],
            model=asked[1],
            condition=asked[2],
            place=place,
            share=share,
            interval=interval,
            repeats=repeats,
            any_right=any_right,
            all_right=all_right,
            trials=sums["count_all"],
            outcomes=self._outcomes[key],
            shared=shared,
            at_90=at_90,
            at_50=at_50,
            cost_usd=sums["cost_usd_sum"] if sums["cost_usd_count"] else None,
            priced=sums["cost_usd_count"],
            cost_per_correct=per_correct(sums["cost_usd_sum"], sums["priced_right_sum"]),
            format_ok=format_ok,
            format_known=format_known,
            latency_p50_s=sums["latency_p50_s"],
            output_tokens=sums["output_tokens_sum"],
            reasoning_tokens=sums["reasoning_tokens_sum"],
            known_tokens=sums["output_tokens_count"],
        )


def _repeated(marks: Marks) -> tuple[int, float | None, float | None]:
    """Return how often each problem was asked, and the shares of problems right at least once, and always."""
    problems = marks.by_problem()
    asked = {times for _, times in problems}
    if len(asked) != 1 or (repeats := asked.pop()) == 1:
        return 1, None, None
    total = sum(problems.values())

    def mean(measure: Callable[[int, int, int], float]) -> float:
        return sum(measure(repeats, right, repeats) * n for (right, _), n in problems.items()) / total

    return repeats, mean(pass_at_k), mean(pass_hat_k)


def _share(marks: Marks) -> tuple[float, tuple[float, float]]:
    """Return the share of a ranking's trials that are right, with its interval."""
    if len(list(filter(None, marks.asked))) == 1:
        once = Proportion(successes=marks.correct, trials=marks.trials)
        return once.share or 0.0, once.interval or (0.0, 1.0)
    counts = [counts for counts, problems in marks.by_problem().items() for _ in range(problems)]
    repeated = clustered(counts)
    return repeated.share or 0.0, repeated.interval or (0.0, 1.0)


def _with_counts(trials: pa.Table) -> pa.Table:
    """Return the columns that are summed, with some that count."""
    right = is_outcome(trials, Outcome.CORRECT)
    counts: dict[str, Any] = {
        "trials": pc.true_unless_null(right),
        "correct": right,
        "failed": is_outcome(trials, Outcome.FAILED),
        "priced_right": pc.and_(right, pc.is_valid(trials["cost_usd"])),
    }
    for name, column in counts.items():
        trials = trials.append_column(name, column.cast(pa.int64()))
    return trials.drop_columns(["problem_id", "repeat", "provider"])


def _sums(trials: pa.Table, keys: Sequence[str]) -> dict[Key, dict[str, Any]]:  # Any: sums of both kinds
    wanted: list[Any] = [([], "count_all"), ("latency_s", "list"), ("priced_right", "sum")]
    some = pc.ScalarAggregateOptions(min_count=1)  # the sum of nothing is unknown, not 0
    for name in ("cost_usd", "output_tokens", "reasoning_tokens"):
        wanted += [(name, "sum", some), (name, "count")]
    groups = trials.group_by(list(keys), use_threads=False).aggregate(wanted)
    medians = [pc.quantile(one.values, 0.5)[0].as_py() for one in groups["latency_s_list"]]
    groups = groups.drop_columns(["latency_s_list"]).append_column(
        "latency_p50_s", pa.array(medians, pa.float64())
    )
    return {tuple(row[key] for key in keys): row for row in groups.to_pylist()}


def _outcomes(trials: pa.Table, keys: Sequence[str]) -> dict[Key, dict[str, int]]:
    found: dict[Key, dict[str, int]] = {}
    for row in trials.group_by([*keys, "outcome"]).aggregate([([], "count_all")]).to_pylist():
        of_all = found.setdefault(tuple(row[key] for key in keys), {one.value: 0 for one in Outcome})
        of_all[row["outcome"]] = row["count_all"]
    return found


def _digits(trials: pa.Table) -> dict[Key, tuple[Hardest | None, Hardest | None]]:
    """Return up to which length each is right at 90 % and 50 %, in each suite: in its hardest task."""
    keys, counts = [*GROUP, "length"], ("trials", "correct", "failed")
    sums = trials.group_by(keys).aggregate([(name, "sum") for name in counts])
    cells = sums.rename_columns([name.removesuffix("_sum") for name in sums.column_names])
    by_suite = defaultdict[Key, list[DigitsCurve]](list)
    for one in digits_at(cells, by=GROUP):
        by_suite[one.run, one.model, one.condition, one.suite].append(one)
    return {key: _hardest(tasks_named(those)) for key, those in by_suite.items()}


def _hardest(tasks: Mapping[str, DigitsCurve]) -> tuple[Hardest | None, Hardest | None]:
    at_90 = hardest({name: one.at_90 for name, one in tasks.items()})
    return at_90, hardest({name: one.at_50 for name, one in tasks.items()})


def _formats(folder: Path | str, trials: pa.Table) -> pa.Table:
    """Return the headline grades of the folder with their conditions."""
    several = len(trials["condition"].unique()) > 1
    columns = ["run", "model", "suite", "format_ok", *(["trial_id"] if several else [])]
    grades = read_grades(folder, columns, pc.field("headline"))
    if not several:
        (named,) = trials["condition"].unique().to_pylist() or [""]
        return grades.append_column("condition", pa.array([named]).take(pa.repeat(0, len(grades))))
    conditions = read_coded(folder, ["trial_id", "condition"])
    places = pc.index_in(grades["trial_id"], conditions["trial_id"].cast(pa.string()))
    return grades.append_column("condition", conditions["condition"].cast(pa.string()).take(places))


def _formats_by(grades: pa.Table) -> dict[Key, tuple[int, int]]:
    """Return (in the form asked for, judged), of each suite and of all."""
    found: dict[Key, tuple[int, int]] = {}
    for keys in (ENTRANT, (*ENTRANT, "suite")):
        groups = grades.group_by(list(keys)).aggregate([("format_ok", "sum"), ("format_ok", "count")])
        for row in groups.to_pylist():
            found[tuple(row[key] for key in keys)] = (row["format_ok_sum"] or 0, row["format_ok_count"])
    return found


# ── how they are written ─────────────────────────────────────────────────────────────────────

ACCURACY_HEAD: Final = ("accuracy", "of answered", "lost", "if lost right", "digits at 90 %", "at 50 %")
COST_HEAD: Final = ("cost", "per correct", "format ok", "latency p50")


def _sheet(title: str, lines: Collection[Standing], *, placed: bool) -> Sheet:
    """Return all figures side by side; where that is too wide, in two sheets."""
    repeats = max(line.repeats for line in lines)
    repeated = (f"pass@{repeats}", f"pass^{repeats}") if repeats > 1 else ()

    def accuracy_row(line: Standing) -> list[str]:
        shares = map(share_text, (line.any_right, line.all_right))
        return [*_accuracy_row(line), *(shares if repeated else ())]

    narrow = [
        _part(title, lines, [*ACCURACY_HEAD, *repeated], accuracy_row, placed=placed),
        _part(f"{title}: what it took", lines, COST_HEAD, _cost_row, placed=placed),
    ]
    head = [*ACCURACY_HEAD, *repeated, *COST_HEAD]
    wide = _part(title, lines, head, lambda line: [*accuracy_row(line), *_cost_row(line)], placed=placed)
    return replace(wide, instead=narrow)


def _part(
    title: str,
    lines: Collection[Standing],
    head: Sequence[str],
    row: Callable[[Standing], list[str]],
    *,
    placed: bool,
) -> Sheet:
    names = ["place", "model"] if placed else ["model"]
    rows = [[*([str(line.place)] if placed else []), line.name, *row(line)] for line in lines]
    return Sheet(title=title, head=[*names, *head], rows=rows, labels=len(names))


def _accuracy_row(line: Standing) -> list[str]:
    accuracy = line.accuracy
    return [
        percent(line.share, line.interval),
        share_text(accuracy.over_answered.share),
        f"{accuracy.lost:,}",
        share_text(accuracy.highest),
        hardest_text(line.at_90),
        hardest_text(line.at_50),
    ]


def _cost_row(line: Standing) -> list[str]:
    return [
        dollars(line.cost_usd),
        per_correct_text(line.cost_usd, line.cost_per_correct),
        share_text(line.format_ok / line.format_known if line.format_known else None),
        seconds(line.latency_p50_s),
    ]


def share_text(share: float | None) -> str:
    """Return a share in percent with one decimal."""
    return "-" if share is None else f"{share:.1%}"


def hardest_text(length: Hardest | None) -> str:
    """Return a length with its interval and its task."""
    return "-" if length is None else length.as_text()


def _ranking_mapping(ranking: Ranking) -> dict[str, object]:
    return {
        "suite": ranking.suite,
        "suites": ranking.suites,
        "problems": ranking.problems,
        "alone": ranking.alone,
        "ties": ranking.ties,
        "lines": list(map(standing_mapping, ranking.lines)),
        "pairs": [
            {"a": one.a, "b": one.b, **pair_mapping(one.found), "p": one.p, "p_holm": one.p_holm}
            for one in ranking.pairs
        ],
    }


def standing_mapping(line: Standing) -> dict[str, object]:
    """Return a line as JSON has it."""
    accuracy = line.accuracy
    own = {name: getattr(line, name) for name in Standing.__slots__}
    return own | {
        "at_90": line.at_90 and asdict(line.at_90),
        "at_50": line.at_50 and asdict(line.at_50),
        "accuracy": accuracy.over_all.share,
        "accuracy_of_answered": accuracy.over_answered.share,
        "answered": accuracy.over_answered.trials,
        "accuracy_if_lost_right": accuracy.highest,
        "lost_share": accuracy.lost_share,
    }


def pair_mapping(found: ModelPair) -> dict[str, object]:
    """Return a pair's counts as JSON has them."""
    return {
        "problems": found.problems,
        "trials": found.trials,
        "both": found.both,
        "only_a": found.only_a,
        "only_b": found.only_b,
        "neither": found.neither,
        "difference": found.difference,
    }
