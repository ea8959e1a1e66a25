"""What a regrade changed: counted batch by batch, with a few examples of each kind."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.regrading.grades import OF_THE_GRADE, Regrade
from asyncbench.regrading.keys import Column, keys

EXAMPLES = 3  # of each kind of change, of as many models as there are
TAIL = 60  # characters of a reply: an answer stands at its end

_KIND = ("suite", "grader", "before", "now")
_SIMPLE = [name for name in OF_THE_GRADE if name not in ("grader", "grader_version", "flags")]
Row = dict[str, Any]  # Any: a value of a column


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Trials of one model that one grader takes for something else now, or for the same as before."""

    model: str
    suite: str
    grader: str
    headline: bool  # the grade that decides the trial
    before: str | None  # outcome; None: this grader had not graded them
    now: str
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """One grader, and how many of its grades differ from those that are stored."""

    suite: str
    grader: str
    version_before: int | None  # None: it had not graded them
    version: int | None  # None: there is no such grade any more
    grades: int
    changed: int  # in any column but the version


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedTrial:
    """One trial that changed."""

    trial_id: str
    model: str
    suite: str
    grader: str
    before: str | None
    now: str
    expected: str
    answer_before: str | None
    answer: str | None
    reply_end: str | None  # the last characters of the reply


class RegradeTally:
    """Takes in regraded batches."""

    def __init__(self) -> None:
        self.trials = 0
        self.corrected = 0  # trials whose problem has another answer now
        self.kept = Counter[tuple[str, str]]()  # trials that could not be graded: suite, problem set
        self._moves = Counter[tuple[str, str, str, bool, str | None, str]]()
        self._graders = Counter[tuple[str, str, int | None, int | None, bool]]()
        self._examples: defaultdict[tuple[str | None, ...], dict[str, list[ChangedTrial]]] = defaultdict(dict)

    def add(self, before: pa.Table, made: Regrade, earlier: pa.Table) -> None:
        """Take in a batch: its trials as they stood, what they became, and the grades that stood for them."""
        self.trials += len(before)
        self.corrected += _count(_differ(before["expected"], made.trials["expected"]))
        self._count_kept(before.filter(made.kept))
        compared = _compared(made.grades, earlier, before)
        self._count_moves(compared)
        self._count_graders(compared)
        self._count_gone(made.grades, earlier)
        self._collect(compared, before, made.trials)

    def moves(self) -> Iterator[Move]:
        """Yield what was counted, by model."""
        for (model, suite, grader, headline, before, now), trials in sorted(self._moves.items(), key=str):
            yield Move(
                model=model,
                suite=suite,
                grader=grader,
                headline=headline,
                before=before,
                now=now,
                trials=trials,
            )

    def graders(self) -> Iterator[Grader]:
        """Yield each grader with its versions, by suite."""
        for suite, grader, before, now in sorted({which[:4] for which in self._graders}, key=str):
            changed, same = (self._graders[suite, grader, before, now, one] for one in (True, False))
            yield Grader(
                suite=suite,
                grader=grader,
                version_before=before,
                version=now,
                grades=changed + same,
                changed=changed,
            )

    def examples(self) -> Iterator[ChangedTrial]:
        """Yield the examples of each kind, of different models first."""
        for _, by_model in sorted(self._examples.items(), key=str):
            in_turn = chain.from_iterable(zip_longest(*(by_model[model] for model in sorted(by_model))))
            yield from islice(filter(None, in_turn), EXAMPLES)

    def _count_kept(self, trials: pa.Table) -> None:
        for row, count in _counted(trials, ["suite", "problem_set"]):
            self.kept[row["suite"], row["problem_set"]] += count

    def _count_moves(self, compared: pa.Table) -> None:
        for row, count in _counted(compared, ["model", "suite", "grader", "headline", "before", "now"]):
            self._moves[tuple(row.values())] += count

    def _count_graders(self, compared: pa.Table) -> None:
        keys = ["suite", "grader", "version_before", "grader_version", "changed"]
        for row, count in _counted(compared, keys):
            self._graders[tuple(row.values())] += count

    def _count_gone(self, grades: pa.Table, earlier: pa.Table) -> None:
        """Count stored grades of graders that give none any more."""
        keys, stored = _keys(grades, earlier)
        gone = earlier.filter(pc.invert(pc.is_in(stored, value_set=keys)))
        for row, count in _counted(gone, ["suite", "grader", "grader_version"]):
            self._graders[row["suite"], row["grader"], row["grader_version"], None, True] += count

    def _collect(self, compared: pa.Table, before: pa.Table, now: pa.Table) -> None:
        changed = compared.filter(_differ(compared["before"], compared["now"]))
        if not len(changed):
            return
        for group, _ in _counted(changed, [*_KIND, "model"]):
            held = self._examples[tuple(group[key] for key in _KIND)].setdefault(group["model"], [])
            if len(held) < EXAMPLES:
                rows = changed.filter(_all_equal(group)).slice(0, EXAMPLES - len(held))
                held += map(_example, rows.to_pylist(), _trials(rows, before, now))


def _compared(grades: pa.Table, earlier: pa.Table, trials: pa.Table) -> pa.Table:
    """Return the new grades with the outcome, the answer and the version that stood there.

    Of a headline grade that is what the trial said, whichever grader was the headline then.
    """
    keys, stored = _keys(grades, earlier)
    places = pc.index_in(keys, value_set=stored)
    old = earlier.take(places)
    changed = pc.is_null(places)
    for name in _SIMPLE:
        changed = pc.or_(changed, _differ(old[name], grades[name]))
    changed = pc.or_(changed, _differ(_as_text(old["flags"]), _as_text(grades["flags"])))
    of_trial = trials.take(pc.index_in(grades["trial_id"], value_set=trials["trial_id"]))
    before, answer_before = (
        pc.if_else(grades["headline"], of_trial[name], old[name]) for name in ("outcome", "answer")
    )
    now = grades.select(["trial_id", "model", "suite", "grader", "headline", "grader_version", "answer"])
    return (
        now.append_column("now", grades["outcome"])
        .append_column("before", before)
        .append_column("answer_before", answer_before)
        .append_column("version_before", old["grader_version"])
        .append_column("changed", changed)
    )


def _keys(*tables: pa.Table) -> list[Column]:
    """Return what tells a grade of these tables from all others."""
    return [keys(table, "trial_id", "grader") for table in tables]


def _as_text(flags: Column) -> Column:
    joined: Column = pc.binary_join(flags, "\n")  # type: ignore[assignment]  # of a column it is a column
    return joined


def _differ(one: Column, other: Column) -> Column:
    """Return where two columns differ; NULL equals NULL."""
    both = pc.and_(pc.is_valid(one), pc.is_valid(other))
    one_alone = pc.xor(pc.is_valid(one), pc.is_valid(other))
    differ: Column = pc.if_else(both, pc.not_equal(one, other), one_alone)
    return differ


def _count(flags: Column) -> int:
    return int(pc.sum(flags, min_count=0).as_py())


def _counted(table: pa.Table, keys: list[str]) -> Iterator[tuple[Row, int]]:
    """Yield each combination of values, and how many rows have it."""
    counts = table.group_by(keys, use_threads=False).aggregate([([], "count_all")])
    for row in counts.to_pylist():
        count = row.pop("count_all")
        yield {key: row[key] for key in keys}, count


def _all_equal(values: Row) -> pc.Expression:
    wanted = pc.scalar(True)
    for name, value in values.items():
        wanted &= pc.field(name).is_null() if value is None else pc.field(name) == value
    return wanted


def _trials(rows: pa.Table, before: pa.Table, now: pa.Table) -> list[Row]:
    """Return what an example shows of the trial behind each row."""
    places = pc.index_in(rows["trial_id"], value_set=before["trial_id"])
    replies = before["reply_text"].take(places).to_pylist()
    expected = now["expected"].take(places).to_pylist()
    return [{"reply": reply, "expected": answer} for reply, answer in zip(replies, expected, strict=True)]


def _example(row: Row, trial: Row) -> ChangedTrial:
    names = ("trial_id", "model", "suite", "grader", "before", "now", "answer_before", "answer")
    reply = trial["reply"]
    return ChangedTrial(
        **{name: row[name] for name in names},
        expected=trial["expected"],
        reply_end=None if reply is None else str(reply)[-TAIL:],
    )
