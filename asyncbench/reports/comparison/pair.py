"""Two models on the same questions: the better one, the interval, and the questions on which they differ."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.analysis.choosing import Chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.entrants import Entrant, in_order, names_of
from asyncbench.analysis.notes import simulated_by
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
from asyncbench.errors import ConfigError
from asyncbench.problems.copies import read_problems
from asyncbench.stats.paired import holm, pooled_z, problems_needed, sign_flip, smallest_detectable
from asyncbench.store.manifest import Manifest, simulated_note
from asyncbench.store.schema import ENTRANT
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.numbers import first_of
from asyncbench.tables.screen import safe

LISTED: Final = 40  # names in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One of the two."""

    name: str
    folder: str
    run: str
    model: str
    conditions: tuple[str, ...]
    source: Chosen = field(metadata=HIDDEN)  # where its trials are

    def manifest(self, views: FolderViews) -> Manifest:
        """Return that of its folder, given views of its source."""
        own = [label for (label, _), name in views.names.items() if name == self.model]
        return views.manifest_of(*own or views.chosen.labels)

    def overlaps(self, other: "ComparedSide") -> bool:
        """Whether some trials are of both."""
        own, others = ((Path(one.folder).resolve(), one.run, one.model) for one in (self, other))
        return own == others and bool({*self.conditions} & {*other.conditions})


def sides_of(a: str, b: str, of: Chosen) -> tuple[ComparedSide, ComparedSide]:
    """Return who is meant by two names: of two folders, each in its own; else, by its name among all.

    Raises:
        ConfigError: no results folder; an unknown name; both are the same.
        StoreError: a folder cannot be read.
    """
    own = [replace(of, paths=(path,)) for path in of.paths] if len(of.paths) == 2 else [of]
    names = {place: _names_in(place) for place in own}
    both = [(a, own[0]), (b, own[-1])]
    if of not in own and not all(_entrants_named(name, names[place]) for name, place in both):
        names[of] = _names_in(of)
        if _entrants_named(a, names[of]) and _entrants_named(b, names[of]):
            both = [(a, of), (b, of)]
    first, second = (_side(name, place, names[place]) for name, place in both)
    sides = first, second
    if sides[0].overlaps(sides[1]):
        raise ConfigError(
            f"{a} and {b} are the same. Name two different models, conditions, runs or folders."
        )
    return sides


def simulated_notes(views: FolderViews, sides: Sequence[ComparedSide]) -> tuple[str, ...]:
    if (vendors := simulated_by(views)) is None:
        return ()
    manifests = [counted(side.source, side.manifest) for side in sides]
    simulated = [manifest for manifest in manifests if manifest.get("simulated")] or manifests
    return tuple(dict.fromkeys(simulated_note(manifest, vendors) for manifest in simulated))


def _names_in(of: Chosen) -> dict[Entrant, str]:
    def names_in(views: FolderViews) -> dict[Entrant, str]:
        rows = views.rows("SELECT DISTINCT run, model, condition FROM trials")
        return names_of(
            in_order(((row["run"], row["model"], row["condition"]) for row in rows), views.manifest)
        )

    if names := counted(of, names_in):
        return names
    raise ConfigError(f"{of} has no trials yet. Run its sweep first.")


def _entrants_named(name: str, names: Mapping[Entrant, str]) -> list[Entrant]:
    """Return who may be meant by a name."""
    matching = [entrant for entrant, called in names.items() if called == name]
    return matching or [entrant for entrant in names if name in entrant[:2]]


def _side(name: str, folder: Chosen, names: Mapping[Entrant, str]) -> ComparedSide:
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


def ways_of(a: ComparedSide, b: ComparedSide) -> Mapping[str, int]:
    """Return the conditions that are compared, with a number each: the only one of both, or those of a name.

    Raises:
        ConfigError: there is none.
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
A, B = ("a", "", ""), ("b", "", "")  # the two, as pairing calls whom it marks


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpaired:
    """The same of all that each was asked, as if the questions had been others."""

    correct_a: int
    trials_a: int
    correct_b: int
    trials_b: int

    @property
    @in_data("difference")
    def difference(self) -> float | None:
        """The accuracy of a less that of b; None: one was asked nothing."""
        if not (self.trials_a and self.trials_b):
            return None
        return self.correct_a / self.trials_a - self.correct_b / self.trials_b

    @property
    @in_data("p")
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
    # of their folders; empty: no results are simulated
    simulated_notes: tuple[str, ...] = field(metadata=HIDDEN)
    # the first: of all problems; then by suite and task, if several
    rows: tuple[ComparisonRow, ...] = field(metadata=HIDDEN)
    outcomes_a: dict[str, int]  # of all its trials, in common or not
    outcomes_b: dict[str, int]
    asked_a_alone: int  # problems
    asked_b_alone: int
    only_a: tuple[Question, ...]  # trials that a alone got right; as many problems as were asked for
    only_b: tuple[Question, ...]
    problems_only_a: int = field(metadata=HIDDEN)  # that have such a trial, among these or not
    problems_only_b: int = field(metadata=HIDDEN)
    conditions: int = field(metadata=HIDDEN)  # that are compared, each with its own kind
    repeats: int = field(metadata=HIDDEN)  # times that a problem was asked in one, at most

    @property
    def whole(self) -> ComparisonRow:
        """The two on all problems in common."""
        return self.rows[0]

    @property
    @in_data("problems_needed")
    def needed(self) -> int | None:
        """How many problems would show the difference that was seen, in four of five cases; None: it is 0."""
        shared = self.whole.found
        return problems_needed(shared.difference, shared.discordant_share) if shared.trials else None


def compared(
    sides: tuple[ComparedSide, ComparedSide], *, suite: str | None, task: str | None, examples: int | None
) -> Compared:
    """Compare two models on the problems in common: the same problem, condition and repeat.

    Failed and truncated trials count as not right.

    Args:
        sides: who is compared.
        suite: only its problems; None: those of all.
        task: only its problems; None: those of all.
        examples: the most problems in `only_a` and in `only_b`; None: all.

    Raises:
        ConfigError: an unknown suite or task; no condition in common.
        StoreError, ProblemSetError: a folder cannot be read.
    """
    ways = ways_of(*sides)
    trials = pa.concat_tables(
        _as_one(who, _trials(side, ways, COLUMNS)) for who, side in zip((A, B), sides, strict=True)
    )

    def count(views: FolderViews) -> Compared:
        views.put("trials", trials)
        marks = marked(views, trials=trials)
        return _compared(views, marks, sides, ways, suite=suite, task=task, examples=examples)

    return counted(sides[0].source, count)


def _compared(
    views: FolderViews,
    marked_trials: Marked,
    sides: Sequence[ComparedSide],
    ways: Mapping[str, int],
    *,
    suite: str | None,
    task: str | None,
    examples: int | None,
) -> Compared:
    """Return what the trials of the two, as `A` and `B`, say of them."""
    within = _within(marked_trials, suite, task)
    a, b = (marked_trials.marks.get(who, Marks(asked=(), right=())).within(within) for who in (A, B))
    only = [
        [marked_trials.problem_ids[place] for place in places(_only(first, second))]
        for first, second in ((a, b), (b, a))
    ]
    chosen = [_chosen(views, who[0], ids, examples) for who, ids in zip((A, B), only, strict=True)]
    only_a, only_b = _questions(views, sides, ways, chosen)
    repeats = views.rows(f"SELECT coalesce(max(repeat % {_WAYS}), 0) + 1 AS repeats FROM trials")  # noqa: S608  our number
    return Compared(
        a=sides[0],
        b=sides[1],
        simulated_notes=simulated_notes(views, sides),
        rows=tuple(_with_holm([_row(*key, a, b, bits) for key, bits in _parts(marked_trials, within)])),
        outcomes_a=marked_trials.outcomes(A, a.asked),
        outcomes_b=marked_trials.outcomes(B, b.asked),
        asked_a_alone=(a.problems & ~b.problems).bit_count(),
        asked_b_alone=(b.problems & ~a.problems).bit_count(),
        only_a=only_a,
        only_b=only_b,
        problems_only_a=len(only[0]),
        problems_only_b=len(only[1]),
        conditions=len({*ways.values()}),
        repeats=repeats[0]["repeats"],
    )


# ── who got what right ───────────────────────────────────────────────────────────────────────

_WAYS: Final = 10_000  # more repeats than anybody pays for


def _trials(
    side: ComparedSide,
    ways: Mapping[str, int],
    columns: Sequence[str],
    problems: Sequence[str] | None = None,
) -> pa.Table:
    """Return one's trials in these conditions; `turn` tells condition and repeat, the same for both."""
    conditions = [name for name in side.conditions if name in ways]
    wanted = (pc.field("run") == side.run) & pc.field("condition").isin(conditions)
    if problems is not None:
        wanted &= pc.field("problem_id").isin(pa.array(problems, pa.string()))
    rows = read_model(side.source, side.model, columns, wanted)
    way = pa.array([ways[str(name)] for name in rows["condition"].to_pylist()], pa.int32())
    turn = pc.add(pc.multiply(way, _WAYS), rows["repeat"].combine_chunks())
    return rows.append_column("turn", turn)


def _as_one(who: Entrant, trials: pa.Table) -> pa.Table:
    """Return trials as if they were of one run, model and condition, and each turn a repeat."""
    columns: dict[str, Any] = {name: trials[name] for name in COLUMNS}
    for name, value in zip(ENTRANT, who, strict=True):
        columns[name] = pa.array([value]).take(pa.repeat(0, len(trials)))
    return pa.table(columns | {"repeat": trials["turn"]})


def _within(marks: Marked, suite: str | None, task: str | None) -> Bits:
    """Return the problems of a suite and task.

    Raises:
        ConfigError: there is none.
    """
    within = marks.of(suite=suite, task=task)
    if not within:
        there = ", ".join(sorted(f"{its}/{task}" for its, task in marks.tasks))
        asked_for = "/".join(filter(None, (suite, task)))
        raise ConfigError(f"neither model was asked {asked_for}. Choose one of: {there}")
    return within


def _parts(marks: Marked, within: Bits) -> Iterator[tuple[tuple[str | None, str | None], Bits]]:
    """Yield ((suite, task), problems): all, then each suite and each task, where there are several."""
    yield (None, None), within
    tasks = {key: bits & within for key, bits in sorted(marks.tasks.items()) if bits & within}
    suites = list(dict.fromkeys(suite for suite, _ in tasks))
    for suite in suites:
        own = {key: bits for key, bits in tasks.items() if key[0] == suite}
        if len(suites) > 1:
            yield (suite, None), marks.of(suite=suite) & within
        if len(own) > 1:
            yield from own.items()


def _row(suite: str | None, task: str | None, a: Marks, b: Marks, problems: Bits) -> ComparisonRow:
    a, b = a.within(problems), b.within(problems)
    models = pair(a, b)
    return ComparisonRow(
        suite=suite,
        task=task,
        found=models,
        interval=difference_interval(models) if models.trials else None,
        p=sign_flip(models.differences) if models.trials else None,
        p_holm=None,
        detectable=smallest_detectable(models.problems, models.discordant_share) if models.trials else None,
        unpaired=Unpaired(correct_a=a.correct, trials_a=a.trials, correct_b=b.correct, trials_b=b.trials),
    )


def _with_holm(rows: Iterable[ComparisonRow]) -> Iterator[ComparisonRow]:
    """Yield rows with p adjusted; the first, of all problems, is the question itself and is not."""
    whole, *others = rows
    yield replace(whole, p_holm=whole.p)
    adjusted = iter(holm([row.p for row in others if row.p is not None]))
    for row in others:
        yield row if row.p is None else replace(row, p_holm=next(adjusted))


# ── where they differ ────────────────────────────────────────────────────────────────────────

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


def _only(first: Marks, second: Marks) -> Bits:
    """Return the problems that the first got right, in some turn that both were asked, and the second not."""
    bits = 0
    for right, answered, other in zip(first.right, second.asked, second.right, strict=False):
        bits |= right & answered & ~other
    return bits


def _chosen(views: FolderViews, run: str, problems: Sequence[str], most: int | None) -> list[str]:
    """Return some of these problems: the shortest of each task, then the next of each."""
    views.put("wanted", pa.table({"problem_id": pa.array(problems, pa.string())}))
    rows = views.rows(_SHORTEST, {"run": run, "most": len(problems) if most is None else most})
    return [row["problem_id"] for row in rows]


def _questions(
    views: FolderViews,
    sides: Sequence[ComparedSide],
    ways: Mapping[str, int],
    chosen: Sequence[Sequence[str]],
) -> Iterator[tuple[Question, ...]]:
    """Yield the trials of chosen problems that one alone got right: the first's, then the second's."""
    both = list(dict.fromkeys([*chosen[0], *chosen[1]]))
    wanted = pc.field("problem_id").isin(pa.array(both, pa.string()))
    folders = {path for side in sides for path in side.source.paths}
    texts = [read_problems(path, ["problem_id", "question"], wanted) for path in sorted(folders)]
    views.put("texts", pa.concat_tables(texts))
    for who, side in zip((A, B), sides, strict=True):
        views.put(f"asked_{who[0]}", _trials(side, ways, DETAILS, both))
    for who, problems in zip((A, B), chosen, strict=True):
        places = {"problem_id": pa.array(problems, pa.string()), "place": range(len(problems))}
        views.put("wanted", pa.table(places))
        yield tuple(Question(**row) for row in views.rows(_QUESTIONS.format(who=who[0])))
