"""What a regrade changed: counted batch by batch, with a few examples of each kind."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.upkeep.grades import OF_THE_GRADE, Regrade
from asyncbench.upkeep.stored import Column, joined

EXAMPLES: Final = 3  # of each kind of change, of as many models as there are
TAIL: Final = 60  # characters of a reply: an answer stands at its end

Key = tuple[Any, ...]  # Any: values of columns
_MOVE: Final = ("model", "suite", "grader", "headline", "before", "now")
_GRADER: Final = ("suite", "grader", "version_before", "version")
_CHANGE: Final = ("suite", "grader", "before", "now", "model")
_SHOWN: Final = ("trial_id", "model", "suite", "grader", "before", "now", "answer_before", "answer")


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
        self.kept = Counter[Key]()  # trials that could not be graded: suite, problem set
        self._moves = Counter[Key]()
        self._graders = Counter[Key]()  # `_GRADER`, and whether it changed
        self._examples: defaultdict[Key, dict[str, list[ChangedTrial]]] = defaultdict(dict)

    def add(self, before: pa.Table, made: Regrade, earlier: pa.Table) -> None:
        """Take in a batch: its trials as they stood, what they became, and the grades that stood for them."""
        self.trials += len(before)
        corrected = pc.sum(_differ(before["expected"], made.trials["expected"]), min_count=0)
        self.corrected += int(corrected.as_py())
        self.kept += _counted(before.filter(made.kept), ("suite", "problem_set"))
        now_keys, earlier_keys = (joined(table, "trial_id", "grader") for table in (made.grades, earlier))
        compared = _compared(made.grades, earlier.take(pc.index_in(now_keys, value_set=earlier_keys)), before)
        self._moves += _counted(compared, _MOVE)
        self._graders += _counted(compared, (*_GRADER, "changed"))
        gone = earlier.filter(pc.invert(pc.is_in(earlier_keys, value_set=now_keys)))
        for (suite, grader, version), count in _counted(gone, ("suite", "grader", "grader_version")).items():
            self._graders[suite, grader, version, None, True] += count
        self._collect(compared.filter(_differ(compared["before"], compared["now"])), before, made.trials)

    def moves(self) -> Iterator[Move]:
        """Yield what was counted, by model."""
        for key, trials in sorted(self._moves.items(), key=str):
            yield Move(**dict(zip(_MOVE, key, strict=True)), trials=trials)

    def graders(self) -> Iterator[Grader]:
        """Yield each grader with its versions, by suite."""
        for key in sorted({which[:-1] for which in self._graders}, key=str):
            changed, same = self._graders[*key, True], self._graders[*key, False]
            yield Grader(**dict(zip(_GRADER, key, strict=True)), grades=changed + same, changed=changed)

    def examples(self) -> Iterator[ChangedTrial]:
        """Yield the examples of each kind, of different models first."""
        for _, by_model in sorted(self._examples.items(), key=str):
            in_turn = chain.from_iterable(zip_longest(*(by_model[model] for model in sorted(by_model))))
            yield from islice(filter(None, in_turn), EXAMPLES)

    def _collect(self, changed: pa.Table, before: pa.Table, now: pa.Table) -> None:
        for *kind, model in _counted(changed, _CHANGE):
            held = self._examples[tuple(kind)].setdefault(model, [])
            if len(held) == EXAMPLES:
                continue
            wanted = pc.scalar(True)
            for name, value in zip(_CHANGE, (*kind, model), strict=True):
                wanted &= pc.field(name).is_null() if value is None else pc.field(name) == value
            rows = changed.filter(wanted).slice(0, EXAMPLES - len(held))
            places = pc.index_in(rows["trial_id"], value_set=before["trial_id"])
            replies = before["reply_text"].take(places).to_pylist()
            answers: list[Any] = now["expected"].take(places).to_pylist()
            for row, reply, expected in zip(
                rows.select(list(_SHOWN)).to_pylist(), replies, answers, strict=True
            ):
                end = None if reply is None else str(reply)[-TAIL:]
                held.append(ChangedTrial(**row, expected=expected, reply_end=end))


def _compared(grades: pa.Table, old: pa.Table, trials: pa.Table) -> pa.Table:
    """Return the new grades with the outcome, the answer and the version that stood there.

    Of a headline grade that is what the trial said, whichever grader was the headline then.
    """
    changed = pc.is_null(old["trial_id"])
    for name in OF_THE_GRADE:
        if name not in ("grader", "grader_version", "flags"):
            changed = pc.or_(changed, _differ(old[name], grades[name]))
    old_flags, flags = (pc.binary_join(table["flags"], "\n") for table in (old, grades))
    changed = pc.or_(changed, _differ(old_flags, flags))
    of_trial = trials.take(pc.index_in(grades["trial_id"], value_set=trials["trial_id"]))
    before, answer_before = (
        pc.if_else(grades["headline"], of_trial[name], old[name]) for name in ("outcome", "answer")
    )
    now = grades.select(["trial_id", "model", "suite", "grader", "headline", "answer"])
    return (
        now.append_column("now", grades["outcome"])
        .append_column("before", before)
        .append_column("answer_before", answer_before)
        .append_column("version_before", old["grader_version"])
        .append_column("version", grades["grader_version"])
        .append_column("changed", changed)
    )


def _differ(left: Any, right: Any) -> Column:
    """Return where two columns differ; NULL equals NULL."""
    both = pc.and_(pc.is_valid(left), pc.is_valid(right))
    one_alone = pc.xor(pc.is_valid(left), pc.is_valid(right))
    differ: Column = pc.if_else(both, pc.not_equal(left, right), one_alone)
    return differ


def _counted(table: pa.Table, names: Sequence[str]) -> Counter[Key]:
    """Return how many rows have each combination of values."""
    counts = table.group_by(list(names), use_threads=False).aggregate([([], "count_all")])
    return Counter({tuple(row[name] for name in names): row["count_all"] for row in counts.to_pylist()})
