"""Two models on the same questions: the better one, the interval, and the questions on which they differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.analysis.cells import rows_by
from asyncbench.analysis.choosing import Chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.entrants import Entrant, entrant_of, names_of, sort_entrants
from asyncbench.analysis.pairing import (
    Bits,
    Marked,
    Marks,
    ModelPair,
    difference_interval,
    marked,
    pair,
    places,
    read_model,
)
from asyncbench.analysis.served import simulated_by
from asyncbench.errors import ConfigError
from asyncbench.problems.copies import read_problems
from asyncbench.stats.paired import holm, pooled_z, problems_needed, sign_flip, smallest_detectable
from asyncbench.store.manifest import Manifest, simulated_note
from asyncbench.store.schema import ENTRANT
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.numbers import first_of
from asyncbench.tables.screen import safe

LISTED: Final = 40  # at most so many names stand in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One of the two that are compared: a model of a run, under some conditions."""

    name: str
    folder: str
    run: str
    model: str
    conditions: tuple[str, ...]
    source: Chosen = field(metadata=HIDDEN)  # the folders that hold its trials

    def manifest(self, views: FolderViews) -> Manifest:
        """Return the manifest of its folder, given views of its source."""
        labels = [label for (label, _), name in views.names.items() if name == self.model]
        return views.manifest_of(*labels or views.chosen.labels)

    def overlaps(self, other: "ComparedSide") -> bool:
        """Return whether both sides have some trials in common."""
        mine, theirs = ((Path(side.folder).resolve(), side.run, side.model) for side in (self, other))
        return mine == theirs and bool({*self.conditions} & {*other.conditions})


def sides_of(a: str, b: str, folders: Chosen) -> tuple[ComparedSide, ComparedSide]:
    """Find the two models that two names mean.

    Of two folders, `a` is in the first and `b` in the second. Where that fails, and with any other number of
    folders, names are those of a report on all folders.

    Raises:
        ConfigError: a folder is not a results folder; a name is unknown; both names mean the same.
        StoreError: a folder cannot be read.
    """
    sources = [folders]
    if len(folders.paths) == 2:
        sources = [replace(folders, paths=(path,)) for path in folders.paths]
    names = {source: _names_in(source) for source in sources}
    both = [(a, sources[0]), (b, sources[-1])]
    if folders not in sources and not all(_entrants_named(name, names[source]) for name, source in both):
        names[folders] = _names_in(folders)
        if _entrants_named(a, names[folders]) and _entrants_named(b, names[folders]):
            both = [(a, folders), (b, folders)]
    first, second = (_named_side(name, source, names[source]) for name, source in both)
    if first.overlaps(second):
        raise ConfigError(
            f"{a} and {b} are the same. Name two different models, conditions, runs or folders."
        )
    return first, second


def simulated_notes(views: FolderViews, sides: Sequence[ComparedSide]) -> tuple[str, ...]:
    if (vendors := simulated_by(views)) is None:
        return ()
    manifests = [counted(side.source, side.manifest) for side in sides]
    simulated = [manifest for manifest in manifests if manifest.get("simulated")] or manifests
    return tuple(dict.fromkeys(simulated_note(manifest, vendors) for manifest in simulated))


def _names_in(folders: Chosen) -> dict[Entrant, str]:
    def names_in(views: FolderViews) -> dict[Entrant, str]:
        rows = views.rows("SELECT DISTINCT run, model, condition FROM trials")
        return names_of(sort_entrants(map(entrant_of, rows), views.manifest))

    if names := counted(folders, names_in):
        return names
    raise ConfigError(f"{folders} has no trials yet. Run its sweep first.")


def _entrants_named(name: str, names: Mapping[Entrant, str]) -> list[Entrant]:
    """Return the entrants that a name may mean."""
    matching = [
        entrant
        for entrant, called in names.items()
        if name in (called, "{} ({})".format(*entrant[1:]))  # as a sweep file has alias and condition
    ]
    return matching or [entrant for entrant in names if name in entrant[:2]]


def _named_side(name: str, folder: Chosen, names: Mapping[Entrant, str]) -> ComparedSide:
    """Return the only model and run that a name means; raises ConfigError where there is none or several."""
    matching = _entrants_named(name, names)
    if len({entrant[:2] for entrant in matching}) == 1:
        run, model, _ = matching[0]
        conditions = tuple(condition for _, _, condition in matching)
        return ComparedSide(
            name=name, folder=str(folder), run=run, model=model, conditions=conditions, source=folder
        )
    complaint = f"{name!r} means several models" if matching else f"{folder} has no model {name!r}"
    there = [safe(names[entrant]) for entrant in matching or names]
    raise ConfigError(f"{complaint}. Choose one of: {first_of(there, LISTED)}")


def condition_numbers(a: ComparedSide, b: ComparedSide) -> Mapping[str, int]:
    """Number the conditions that are compared: the only one of each side, or those of the same name.

    Raises:
        ConfigError: the two have no condition in common.
    """
    if len(a.conditions) == len(b.conditions) == 1:
        return {a.conditions[0]: 0, b.conditions[0]: 0}
    if common := [name for name in a.conditions if name in b.conditions]:
        return {name: n for n, name in enumerate(common)}
    raise ConfigError(
        f"{a.name} and {b.name} were asked under different conditions ({', '.join(a.conditions)}; "
        f"{', '.join(b.conditions)}). Name one condition of each, such as '{a.model} ({a.conditions[0]})'."
    )


# ── Two models on the same questions: which is better, is that real, and where do they differ?


COLUMNS: Final = (
    *("condition", "repeat", "suite", "task", "length", "problem_id", "outcome"),
    *("provider", "upstream"),
)
DETAILS: Final = (*COLUMNS, "trial_id", "expected", "answer")
A, B = ("a", "", ""), ("b", "", "")  # the entrants that stand for the two sides in tables of trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpaired:
    """The accuracies of the two on all that each was asked, as if their questions had been different."""

    correct_a: int
    trials_a: int
    correct_b: int
    trials_b: int

    @property
    @in_data("difference")
    def difference(self) -> float | None:
        """The accuracy of a minus that of b, or None if one of them was asked nothing."""
        if not (self.trials_a and self.trials_b):
            return None
        return self.correct_a / self.trials_a - self.correct_b / self.trials_b

    @property
    @in_data("p")
    def p(self) -> float | None:
        """The p value of the pooled z test that both are equally good, or None if one was asked nothing."""
        if not (self.trials_a and self.trials_b):
            return None
        return pooled_z(self.correct_a, self.trials_a, self.correct_b, self.trials_b)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """How the two compare on some problems."""

    suite: str | None  # None: all suites
    task: str | None  # None: all tasks of the suite
    found: ModelPair
    interval: tuple[float, float] | None  # of the difference, 95 %; None: no problem in common
    p: float | None  # exact, two-sided
    p_holm: float | None  # p adjusted for the number of rows below the first
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
    """All figures of a comparison of two models."""

    a: ComparedSide
    b: ComparedSide
    simulated_notes: tuple[str, ...] = field(metadata=HIDDEN)  # empty: no results are simulated
    # the first row is of all problems; where there are several suites or tasks, each has a row
    rows: tuple[ComparisonRow, ...] = field(metadata=HIDDEN)
    outcomes_a: dict[str, int]  # of all trials of a, in common or not
    outcomes_b: dict[str, int]
    asked_a_alone: int  # number of problems that only a was asked
    asked_b_alone: int
    only_a: tuple[Question, ...]  # trials that a alone got right, of at most `examples` problems
    only_b: tuple[Question, ...]
    problems_only_a: int = field(metadata=HIDDEN)  # number of all problems with such a trial
    problems_only_b: int = field(metadata=HIDDEN)
    conditions: int = field(metadata=HIDDEN)  # number of conditions that are compared
    repeats: int = field(metadata=HIDDEN)  # how often a problem was asked under one condition, at most

    @property
    def whole(self) -> ComparisonRow:
        """The two on all problems in common."""
        return self.rows[0]

    @property
    @in_data("problems_needed")
    def needed(self) -> int | None:
        """The number of problems that show this difference in four of five cases, or None if it is 0."""
        shared = self.whole.found
        return problems_needed(shared.difference, shared.discordant_share) if shared.trials else None


def compared(
    sides: tuple[ComparedSide, ComparedSide], *, suite: str | None, task: str | None, examples: int | None
) -> Compared:
    """Compare two models on the problems in common: the same problem, condition and repeat.

    Failed and truncated trials count as not right.

    Args:
        sides: the two that are compared.
        suite: only problems of this suite; None: of all.
        task: only problems of this task; None: of all.
        examples: the most problems in `only_a` and in `only_b`; None: all.

    Raises:
        ConfigError: an unknown suite or task; no condition in common.
        StoreError, ProblemSetError: a folder cannot be read.
    """
    numbers = condition_numbers(*sides)

    # Each side's trials become those of one entrant, and each condition and repeat becomes a repeat of it.
    tables = list[pa.Table]()
    for entrant, side in zip((A, B), sides, strict=True):
        trials = trials_of_side(side, numbers, COLUMNS)
        columns: dict[str, Any] = {name: trials[name] for name in COLUMNS}
        for name, value in zip(ENTRANT, entrant, strict=True):
            columns[name] = pa.array([value]).take(pa.repeat(0, len(trials)))
        tables.append(pa.table(columns | {"repeat": trials["turn"]}))
    both = pa.concat_tables(tables)

    def count(views: FolderViews) -> Compared:
        views.put("trials", both)
        marks = marked(views, trials=both)
        return _compared(views, marks, sides, numbers, suite=suite, task=task, examples=examples)

    return counted(sides[0].source, count)


def _compared(
    views: FolderViews,
    marked_trials: Marked,
    sides: Sequence[ComparedSide],
    numbers: Mapping[str, int],
    *,
    suite: str | None,
    task: str | None,
    examples: int | None,
) -> Compared:
    """Compare the trials of the entrants `A` and `B`."""
    within = marked_trials.problems_of(suite=suite, task=task)
    if not within:
        choices = ", ".join(sorted("/".join(key) for key in marked_trials.tasks))
        asked_for = "/".join(filter(None, (suite, task)))
        raise ConfigError(f"neither model was asked {asked_for}. Choose one of: {choices}")
    a, b = (marked_trials.marks.get(who, Marks(asked=(), right=())).restrict(within) for who in (A, B))

    # Of the problems that one alone got right, show the shortest of each task, then the next of each.
    only, chosen = list[list[str]](), list[list[str]]()
    for (run, _, _), bits in ((A, _right_alone(a, b)), (B, _right_alone(b, a))):
        problems = [marked_trials.problem_ids[index] for index in places(bits)]
        views.put("wanted", pa.table({"problem_id": pa.array(problems, pa.string())}))
        rows = views.rows(_SHORTEST, {"run": run, "most": len(problems) if examples is None else examples})
        only.append(problems)
        chosen.append([row["problem_id"] for row in rows])
    only_a, only_b = _questions(views, sides, numbers, chosen)

    repeats = views.rows(f"SELECT coalesce(max(repeat % {_MOST_REPEATS}), 0) + 1 AS repeats FROM trials")  # noqa: S608  our number
    return Compared(
        a=sides[0],
        b=sides[1],
        simulated_notes=simulated_notes(views, sides),
        rows=tuple(_rows(marked_trials, within, a, b)),
        outcomes_a=marked_trials.outcomes(A, a.asked),
        outcomes_b=marked_trials.outcomes(B, b.asked),
        asked_a_alone=(a.problems & ~b.problems).bit_count(),
        asked_b_alone=(b.problems & ~a.problems).bit_count(),
        only_a=only_a,
        only_b=only_b,
        problems_only_a=len(only[0]),
        problems_only_b=len(only[1]),
        conditions=len({*numbers.values()}),
        repeats=repeats[0]["repeats"],
    )


# ── the trials that each got right ───────────────────────────────────────────────────────────

_MOST_REPEATS: Final = 10_000  # more repeats of a problem than anybody pays for


def trials_of_side(
    side: ComparedSide,
    numbers: Mapping[str, int],
    columns: Sequence[str],
    problems: Sequence[str] | None = None,
) -> pa.Table:
    """Return a side's trials under the numbered conditions.

    The column `turn` is a number of condition and repeat together, the same for both sides.
    """
    conditions = [name for name in side.conditions if name in numbers]
    wanted = (pc.field("run") == side.run) & pc.field("condition").isin(conditions)
    if problems is not None:
        wanted &= pc.field("problem_id").isin(pa.array(problems, pa.string()))
    rows = read_model(side.source, side.model, columns, wanted)
    condition_number = pa.array([numbers[str(name)] for name in rows["condition"].to_pylist()], pa.int32())
    turn = pc.add(pc.multiply(condition_number, _MOST_REPEATS), rows["repeat"].combine_chunks())
    return rows.append_column("turn", turn)


def _rows(marks: Marked, within: Bits, a: Marks, b: Marks) -> Iterator[ComparisonRow]:
    """Yield a row of all problems, then one of each suite and each task, where there are several."""
    groups: list[tuple[str | None, str | None, Bits]] = [(None, None, within)]
    tasks = {key: bits & within for key, bits in sorted(marks.tasks.items()) if bits & within}
    by_suite = rows_by(tasks.items(), lambda entry: entry[0][0])
    for suite, entries in by_suite.items():
        if len(by_suite) > 1:
            groups.append((suite, None, marks.problems_of(suite=suite) & within))
        if len(entries) > 1:
            groups += [(suite, task, problems) for (_, task), problems in entries]

    rows = list[ComparisonRow]()
    for suite_name, task_name, problems in groups:
        first, second = a.restrict(problems), b.restrict(problems)
        models = pair(first, second)
        power = smallest_detectable(models.problems, models.discordant_share) if models.trials else None
        row = ComparisonRow(
            suite=suite_name,
            task=task_name,
            found=models,
            interval=difference_interval(models) if models.trials else None,
            p=sign_flip(models.differences) if models.trials else None,
            p_holm=None,
            detectable=power,
            unpaired=Unpaired(
                correct_a=first.correct,
                trials_a=first.trials,
                correct_b=second.correct,
                trials_b=second.trials,
            ),
        )
        rows.append(row)

    # The first row is the question itself, so its p is not adjusted.
    whole, *others = rows
    yield replace(whole, p_holm=whole.p)
    adjusted = iter(holm([row.p for row in others if row.p is not None]))
    for row in others:
        yield row if row.p is None else replace(row, p_holm=next(adjusted))


# ── questions on which they differ ───────────────────────────────────────────────────────────

_QUESTIONS: Final = """
SELECT {who}.suite, {who}.task, {who}.length, problem_id, {who}.condition, {who}.repeat, question,
    {who}.expected, a.answer AS answer_a, a.outcome AS outcome_a, a.trial_id AS trial_a,
    b.answer AS answer_b, b.outcome AS outcome_b, b.trial_id AS trial_b
FROM asked_a AS a JOIN asked_b AS b USING (suite, task, problem_id, turn) JOIN wanted USING (problem_id)
    LEFT JOIN (SELECT problem_id, any_value(question) AS question FROM texts GROUP BY ALL) USING (problem_id)
WHERE {who}.outcome = 'correct' AND a.outcome <> b.outcome ORDER BY place, turn
"""
_SHORTEST: Final = """
SELECT problem_id FROM (
    SELECT *, row_number() OVER (PARTITION BY suite, task ORDER BY length NULLS LAST, problem_id) AS place
    FROM (SELECT DISTINCT suite, task, length, problem_id FROM trials SEMI JOIN wanted USING (problem_id)
          WHERE run = $run)
) ORDER BY place, suite, task LIMIT $most
"""


def _right_alone(first: Marks, second: Marks) -> Bits:
    """Return the problems that the first got right, in some turn that both were asked, and the second not."""
    bits = 0
    for first_right, second_asked, second_right in zip(first.right, second.asked, second.right, strict=False):
        bits |= first_right & second_asked & ~second_right
    return bits


def _questions(
    views: FolderViews,
    sides: Sequence[ComparedSide],
    numbers: Mapping[str, int],
    chosen: Sequence[Sequence[str]],
) -> Iterator[tuple[Question, ...]]:
    """Yield the trials of chosen problems that one side alone got right: first those of A, then of B."""
    both = list(dict.fromkeys([*chosen[0], *chosen[1]]))
    wanted = pc.field("problem_id").isin(pa.array(both, pa.string()))
    folders = {path for side in sides for path in side.source.paths}
    texts = [read_problems(path, ["problem_id", "question"], wanted) for path in sorted(folders)]
    views.put("texts", pa.concat_tables(texts))
    for who, side in zip((A, B), sides, strict=True):
        views.put(f"asked_{who[0]}", trials_of_side(side, numbers, DETAILS, both))
    for who, problems in zip((A, B), chosen, strict=True):
        order = {"problem_id": pa.array(problems, pa.string()), "place": range(len(problems))}
        views.put("wanted", pa.table(order))
        yield tuple(Question(**row) for row in views.rows(_QUESTIONS.format(who=who[0])))
