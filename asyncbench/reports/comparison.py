"""Two models on the same questions: which is better, is that real, and where do they differ?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import ConfigError
from asyncbench.records import Outcome
from asyncbench.reports.standings import difference_interval
from asyncbench.results import (
    Asked,
    Bits,
    Marked,
    Marks,
    ModelPair,
    any_simulated,
    in_order,
    marked,
    names_of,
    pair,
    places,
    read_coded,
    read_model,
)
from asyncbench.shown import safe
from asyncbench.stats import holm, pooled_z, problems_needed, sign_flip, smallest_detectable
from asyncbench.store import ENTRANT, read_manifest, read_problems

EXAMPLES: Final = 5  # shown each way
LISTED: Final = 40  # names in a message
COLUMNS: Final = ("condition", "repeat", "suite", "task", "length", "problem_id", "outcome", "provider")
DETAILS: Final = (*COLUMNS, "trial_id", "expected", "answer")
A, B = ("a", "", ""), ("b", "", "")  # the two, as pairing calls whom it marks
Turn = tuple[str, int]  # a problem, and which of its trials


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One of the two."""

    name: str
    folder: str
    run: str
    model: str
    conditions: tuple[str, ...]

    def overlaps(self, other: "ComparedSide") -> bool:
        """Whether some trials are of both."""
        own, others = ((Path(one.folder).resolve(), one.run, one.model) for one in (self, other))
        return own == others and bool({*self.conditions} & {*other.conditions})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpaired:
    """The same of all that each was asked, as if the questions had been others."""

    correct_a: int
    trials_a: int
    correct_b: int
    trials_b: int

    @property
    def difference(self) -> float | None:
        """The accuracy of a less that of b; None: one was asked nothing."""
        if not (self.trials_a and self.trials_b):
            return None
        return self.correct_a / self.trials_a - self.correct_b / self.trials_b

    @property
    def p(self) -> float | None:
        """Of the two being equally good, by the pooled z test; None: one was asked nothing."""
        if not (self.trials_a and self.trials_b):
            return None
        return pooled_z(self.correct_a, self.trials_a, self.correct_b, self.trials_b)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """How the two compare on some problems."""

    suite: str | None  # None: on all
    task: str | None  # None: on all of the suite
    found: ModelPair
    interval: tuple[float, float] | None  # of the difference, 95 %; None: nothing in common
    p: float | None  # exact, two-sided
    p_holm: float | None  # adjusted for all rows that have one
    detectable: float | None  # the smallest difference that so many problems show in four of five cases
    unpaired: Unpaired


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A trial that one of the two alone got right."""

    suite: str
    task: str
    length: int | None
    problem_id: str
    condition: str
    repeat: int
    question: str | None  # None: problems/ does not have it
    expected: str
    answer_a: str | None
    outcome_a: str
    answer_b: str | None
    outcome_b: str
    trial_a: str
    trial_b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Everything that was found about two models."""

    a: ComparedSide
    b: ComparedSide
    simulated: bool
    rows: tuple[
        ComparisonRow, ...
    ]  # the first: of all problems; then by suite and task, where these are several
    outcomes_a: dict[str, int]  # of all its trials, in common or not
    outcomes_b: dict[str, int]
    asked_a_alone: int  # problems
    asked_b_alone: int
    only_a: tuple[Question, ...]  # trials that a alone got right; as many problems as were asked for
    only_b: tuple[Question, ...]
    problems_only_a: int  # that have such a trial, among these or not
    problems_only_b: int
    conditions: int  # that are compared, each with its own kind
    repeats: int  # times that a problem was asked in one, at most

    @property
    def whole(self) -> ComparisonRow:
        """The two on all problems in common."""
        return self.rows[0]

    @property
    def needed(self) -> int | None:
        """How many problems would show the difference that was seen, in four of five cases; None: it is 0."""
        found = self.whole.found
        return problems_needed(found.difference, found.discordant_share) if found.trials else None


def compared(
    a: str,
    b: str,
    folder: Path | str,
    folder_of_b: Path | str | None = None,
    *,
    suite: str | None = None,
    task: str | None = None,
    unpaired: bool = False,
    examples: int | None = EXAMPLES,
) -> Compared:
    """Compare two models on the problems in common: the same problem, condition and repeat.

    Failed and truncated trials count as not right.

    Args:
        a: an alias, a run, or a name as reports show it: `alias (condition)`. Two that stand for one
            condition each may have different ones.
        b: the other.
        folder: the results folder.
        folder_of_b: where b is, if that is another.
        suite: only its problems.
        task: only its problems.
        unpaired: they may have no problem in common.
        examples: the most problems in `only_a` and in `only_b`; None: all.

    Raises:
        ConfigError: no results folder; an unknown name, suite or task; both are the same; nothing in common.
        StoreError, ProblemSetError: a folder cannot be read.
    """
    sides = _side(a, Path(folder)), _side(b, Path(folder_of_b or folder))
    if sides[0].overlaps(sides[1]):
        raise ConfigError(f"{a} and {b} are the same: name two models, conditions, runs or folders")
    ways = _ways(*sides)
    tables = [_trials(side, ways) for side in sides]
    found = marked(pa.concat_tables(map(_as_one, (A, B), tables)))
    within = _within(found, suite, task)
    marks = [found.marks.get(who, _NOTHING).within(within) for who in (A, B)]
    rows = tuple(_with_holm([_row(*key, marks, bits) for key, bits in _parts(found, within)]))
    if not (rows[0].found.trials or unpaired):
        raise ConfigError(
            f"{a} and {b} have no problem in common: --unpaired compares what each was asked, which shows "
            "large differences only"
        )
    common = marks[0].problems & marks[1].problems
    only = [
        [found.problem_ids[place] for place in places(_only(first, second))]
        for first, second in zip(marks, reversed(marks), strict=True)
    ]
    chosen = [_chosen(table, problems, examples) for table, problems in zip(tables, only, strict=True)]
    only_a, only_b = _questions(sides, ways, chosen)
    return Compared(
        a=sides[0],
        b=sides[1],
        simulated=any_simulated(*tables),
        rows=rows,
        outcomes_a=_outcomes(tables[0], suite, task),
        outcomes_b=_outcomes(tables[1], suite, task),
        asked_a_alone=(marks[0].problems & ~common).bit_count(),
        asked_b_alone=(marks[1].problems & ~common).bit_count(),
        only_a=only_a,
        only_b=tuple(map(_turned, only_b)),
        problems_only_a=len(only[0]),
        problems_only_b=len(only[1]),
        conditions=len({*ways.values()}),
        repeats=max((int(pc.max(table["repeat"]).as_py()) + 1 for table in tables if len(table)), default=1),
    )


# ── who is meant ─────────────────────────────────────────────────────────────────────────────


def _side(name: str, folder: Path) -> ComparedSide:
    manifest = read_manifest(folder)
    rows = read_coded(folder, ENTRANT).group_by(list(ENTRANT)).aggregate([]).to_pylist()
    asked = in_order(((row["run"], row["model"], row["condition"]) for row in rows), manifest)
    if not asked:
        raise ConfigError(f"{folder} holds no trials yet: run its sweep first")
    names = names_of(asked)
    if one := [key for key, called in names.items() if called == name]:
        return _called(name, folder, one)
    matching = [key for key in asked if name in key[:2]]
    if len({key[:2] for key in matching}) == 1:
        return _called(name, folder, matching)
    said = f"{name!r} is several" if matching else f"nobody in {folder} is called {name!r}"
    raise ConfigError(f"{said}; name one of: {_list([names[key] for key in matching or asked])}")


def _called(name: str, folder: Path, asked: Sequence[Asked]) -> ComparedSide:
    run, model, _ = asked[0]
    conditions = tuple(condition for _, _, condition in asked)
    return ComparedSide(name=name, folder=str(folder), run=run, model=model, conditions=conditions)


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(safe, names[:LISTED])) + more


def _ways(a: ComparedSide, b: ComparedSide) -> Mapping[str, int]:
    """Return the conditions that are compared, with a number each: the only one of both, or those of a name.

    Raises:
        ConfigError: there is none.
    """
    if len(a.conditions) == len(b.conditions) == 1:
        return {a.conditions[0]: 0, b.conditions[0]: 0}
    if common := [name for name in a.conditions if name in b.conditions]:
        return {name: n for n, name in enumerate(common)}
    raise ConfigError(
        f"{a.name} was asked in other conditions ({', '.join(a.conditions)}) than {b.name} "
        f"({', '.join(b.conditions)}): name one of each, as in '{a.model} ({a.conditions[0]})'"
    )


# ── who got what right ───────────────────────────────────────────────────────────────────────

_NOTHING: Final = Marks(asked=(), right=())
_WAYS: Final = 10_000  # more repeats than anybody pays for


def _trials(
    side: ComparedSide,
    ways: Mapping[str, int],
    columns: Sequence[str] = COLUMNS,
    problems: Sequence[str] | None = None,
) -> pa.Table:
    """Return one's trials in these conditions; `turn` tells condition and repeat, the same for both."""
    conditions = [name for name in side.conditions if name in ways]
    wanted = (pc.field("run") == side.run) & pc.field("condition").isin(conditions)
    if problems is not None:
        wanted &= pc.field("problem_id").isin(list(problems))
    found = read_model(side.folder, side.model, columns, wanted)
    way = pa.array([ways[str(name)] for name in found["condition"].to_pylist()], pa.int32())
    turn = pc.add(pc.multiply(way, _WAYS), found["repeat"].combine_chunks())
    return found.append_column("turn", turn)


def _as_one(who: Asked, trials: pa.Table) -> pa.Table:
    """Return trials as `marked` takes them, as if they were of one run, model and condition."""
    columns: dict[str, Any] = {name: trials[name] for name in ("suite", "task", "problem_id", "outcome")}
    for name, value in zip(ENTRANT, who, strict=True):
        columns[name] = pa.array([value]).take(pa.repeat(0, len(trials)))
    return pa.table(columns | {"repeat": trials["turn"]})


def _within(found: Marked, suite: str | None, task: str | None) -> Bits:
    """Return the problems of a suite and task.

    Raises:
        ConfigError: there is none.
    """
    within = found.of(suite=suite, task=task)
    if not within:
        there = ", ".join(sorted(f"{its}/{task}" for its, task in found.tasks))
        asked_for = "/".join(filter(None, (suite, task)))
        raise ConfigError(f"neither was asked anything of {asked_for}; there is: {there}")
    return within


def _parts(found: Marked, within: Bits) -> Iterator[tuple[tuple[str | None, str | None], Bits]]:
    """Yield ((suite, task), problems): all, then each suite and each task, where there are several."""
    yield (None, None), within
    tasks = {key: bits & within for key, bits in sorted(found.tasks.items()) if bits & within}
    suites = list(dict.fromkeys(suite for suite, _ in tasks))
    for suite in suites:
        own = {key: bits for key, bits in tasks.items() if key[0] == suite}
        if len(suites) > 1:
            yield (suite, None), found.of(suite=suite) & within
        if len(own) > 1:
            yield from own.items()


def _row(suite: str | None, task: str | None, marks: Sequence[Marks], problems: Bits) -> ComparisonRow:
    a, b = (one.within(problems) for one in marks)
    found = pair(a, b)
    return ComparisonRow(
        suite=suite,
        task=task,
        found=found,
        interval=difference_interval(found) if found.trials else None,
        p=sign_flip(found.differences) if found.trials else None,
        p_holm=None,
        detectable=smallest_detectable(found.problems, found.discordant_share) if found.trials else None,
        unpaired=Unpaired(correct_a=a.correct, trials_a=a.trials, correct_b=b.correct, trials_b=b.trials),
    )


def _with_holm(rows: Iterable[ComparisonRow]) -> Iterator[ComparisonRow]:
    """Yield rows with p adjusted; the first, of all problems, is the question itself and is not."""
    whole, *others = rows
    yield replace(whole, p_holm=whole.p)
    adjusted = iter(holm([one.p for one in others if one.p is not None]))
    for one in others:
        yield one if one.p is None else replace(one, p_holm=next(adjusted))


def _outcomes(trials: pa.Table, suite: str | None, task: str | None) -> dict[str, int]:
    found = {one.value: 0 for one in Outcome}
    counts = trials.group_by(["suite", "task", "outcome"]).aggregate([([], "count_all")])
    for row in counts.to_pylist():
        if suite in (None, row["suite"]) and task in (None, row["task"]):
            found[row["outcome"]] += row["count_all"]
    return found


# ── where they differ ────────────────────────────────────────────────────────────────────────


def _only(first: Marks, second: Marks) -> Bits:
    """Return the problems that the first got right, in some turn that both were asked, and the second not."""
    found = 0
    for right, asked, other in zip(first.right, second.asked, second.right, strict=False):
        found |= right & asked & ~other
    return found


def _questions(
    sides: Sequence[ComparedSide], ways: Mapping[str, int], chosen: Sequence[Sequence[str]]
) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
    """Return the trials of chosen problems that one alone got right: the first's, and the second's."""
    both = list(dict.fromkeys([*chosen[0], *chosen[1]]))
    if not both:
        return (), ()
    asked = _asked({side.folder for side in sides}, both)
    rows = [
        {(row["problem_id"], row["turn"]): row for row in _trials(side, ways, DETAILS, both).to_pylist()}
        for side in sides
    ]
    return _differing(rows[0], rows[1], chosen[0], asked), _differing(rows[1], rows[0], chosen[1], asked)


def _differing(
    first: Mapping[Turn, Any], second: Mapping[Turn, Any], chosen: Sequence[str], asked: Mapping[str, str]
) -> tuple[Question, ...]:
    order = {problem: n for n, problem in enumerate(chosen)}
    keys = [key for key in first.keys() & second.keys() if key[0] in order]
    return tuple(
        _question(first[key], second[key], asked.get(key[0]))
        for key in sorted(keys, key=lambda key: (order[key[0]], key[1]))
        if first[key]["outcome"] == Outcome.CORRECT != second[key]["outcome"]
    )


def _chosen(trials: pa.Table, problems: Sequence[str], most: int | None) -> list[str]:
    """Return some of these problems: the shortest of each task, then the next of each."""
    wanted = pc.is_in(trials["problem_id"], value_set=pa.array(problems, pa.string()))
    rows = trials.filter(wanted).select(["suite", "task", "length", "problem_id"]).to_pylist()
    by_length = sorted(rows, key=lambda row: (row["length"] is None, row["length"] or 0, row["problem_id"]))
    by_task: dict[tuple[str, str], dict[str, int]] = {}
    for row in by_length:
        of_task = by_task.setdefault((row["suite"], row["task"]), {})
        of_task.setdefault(row["problem_id"], len(of_task))
    ranks = [(rank, key, problem) for key, of_task in by_task.items() for problem, rank in of_task.items()]
    return [problem for _, _, problem in sorted(ranks)[:most]]


def _asked(folders: Iterable[str], problems: Sequence[str]) -> dict[str, str]:
    """Return the questions of problems by id, as far as problems/ has them."""
    wanted = pc.field("problem_id").isin(list(problems))
    return {
        row["problem_id"]: row["question"]
        for folder in folders
        for row in read_problems(folder, ["problem_id", "question"], wanted).to_pylist()
    }


def _question(a: Mapping[str, Any], b: Mapping[str, Any], question: str | None) -> Question:
    return Question(
        **{
            name: a[name]
            for name in ("suite", "task", "length", "problem_id", "condition", "repeat", "expected")
        },
        question=question,
        answer_a=a["answer"],
        outcome_a=a["outcome"],
        answer_b=b["answer"],
        outcome_b=b["outcome"],
        trial_a=a["trial_id"],
        trial_b=b["trial_id"],
    )


def _turned(one: Question) -> Question:
    """Return a question of b against a as one of a against b."""
    return replace(
        one,
        answer_a=one.answer_b,
        outcome_a=one.outcome_b,
        trial_a=one.trial_b,
        answer_b=one.answer_a,
        outcome_b=one.outcome_a,
        trial_b=one.trial_a,
    )
