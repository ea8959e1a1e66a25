"""The anatomy of a folder's wrong answers, counted by who was asked and what."""

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.records import Outcome
from asyncbench.results import cells
from asyncbench.results.anatomy.carries import CarryBin, CarryProblem, bins_by_group, problems_of
from asyncbench.results.anatomy.error import MOST_PLACES, Error, anatomy
from asyncbench.results.anatomy.examined_sample import GROUP, Group, chosen, group_of, wrong_of
from asyncbench.results.anatomy.kinds import ORDER, UNCLASSIFIED
from asyncbench.stats import Proportion
from asyncbench.store import Snapshot, steady

TRIALS: Final = tuple(dict.fromkeys((*cells.CELL_COLUMNS, "problem_id", "provider")))
GRADES: Final = (*cells.GRADE_COLUMNS, "grader", "grader_version")
TEXTS: Final = ("trial_id", "problem_id", *GROUP, "expected", "answer", "reply_text")
MOST_EXAMPLES: Final = 3  # of a kind and group
MOST_UNCLASSIFIED: Final = 20  # of a group
MOST_TEXT: Final = 200  # characters of an example's reply
TEXT_ROWS: Final = 256  # read at a time: replies may be long

_ANSWER_TYPES: Final = {"float": "decimal"}  # by representation, where no problem file tells


class WrongExample(NamedTuple):
    """One wrong answer, its texts cut to `MOST_TEXT`."""

    trial_id: str
    operands: tuple[str, ...]
    expected: str
    answer: str | None
    reply: str


def _place(kind: str) -> tuple[int, str]:
    return ORDER.get(kind, len(ORDER)), kind


@dataclass(slots=True, kw_only=True)
class ErrorFindings:
    """What was found out about the wrong answers of one group."""

    group: Group
    wrong: int = 0  # answers that are wrong, and
    unread: int = 0  # replies without an answer, examined or not
    examined: int = 0
    kinds: Counter[str] = field(default_factory=Counter)  # each examined answer has one
    flags: Counter[str] = field(default_factory=Counter)  # and any number of these
    compared: int = 0  # answers that were read and can be laid beside the truth, of them:
    too_short: int = 0  # fewer digits before the point than the truth
    too_long: int = 0
    reach: Counter[int] = field(default_factory=Counter)  # digits of the truth → answers, at most MOST_PLACES
    from_left: Counter[int] = field(default_factory=Counter)  # place → answers with a wrong digit there
    from_right: Counter[int] = field(default_factory=Counter)
    by_carries: tuple[CarryBin, ...] = ()
    by_chain: tuple[CarryBin, ...] = ()
    examples: dict[str, list[WrongExample]] = field(
        default_factory=dict
    )  # of each kind the first by trial_id

    def add(self, error: Error, example: WrongExample) -> None:
        """Count one examined answer."""
        self.examined += 1
        self.kinds[error.kind] += 1
        self.flags.update(error.flags)
        most = MOST_UNCLASSIFIED if error.kind == UNCLASSIFIED else MOST_EXAMPLES
        kept = self.examples.setdefault(error.kind, [])
        insort(kept, example, key=attrgetter("trial_id"))
        del kept[most:]
        if error.length_error is None:
            return
        self.compared += 1
        self.too_short += error.length_error < 0
        self.too_long += error.length_error > 0
        self.reach[min(error.digits, MOST_PLACES)] += 1
        self.from_left.update(error.wrong_from_left)
        self.from_right.update(error.wrong_from_right)

    def in_order(self) -> "ErrorFindings":
        """Return it with kinds and flags in the order of `kinds.KINDS`, however answers were added."""
        kinds, flags = (
            Counter({name: counts[name] for name in sorted(counts, key=_place)})
            for counts in (self.kinds, self.flags)
        )
        return replace(self, kinds=kinds, flags=flags)

    def wrong_at(self, wrong: Counter[int]) -> list[Proportion]:
        """Return for each place how many have a wrong digit there, of the truths that have such a digit."""
        longest = max(self.reach, default=0)
        reaching = (sum(n for digits, n in self.reach.items() if digits >= i) for i in range(1, longest + 1))
        return [Proportion(successes=wrong[i], trials=n) for i, n in enumerate(reaching, 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a folder holds of all this."""

    trials: pa.Table  # TRIALS
    grades: pa.Table  # GRADES, of the headline
    findings: Mapping[Group, ErrorFindings]  # of each group that has trials


def read_errors(folder: Path | str) -> Read:
    """Return a folder's trials and what was found out about them; of one moment.

    Replies are read a few at a time, and no more of them is kept than the examples show.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: its results cannot be read.
        ProblemSetError: one of its copies of the problems is damaged.
    """
    return steady(folder, lambda seen: _read(Path(folder), seen))


def _read(folder: Path, seen: Snapshot) -> Read:
    trials = seen.read("trials", list(TRIALS))
    return Read(
        trials=trials,
        grades=seen.read("grades", list(GRADES), pc.field("headline")),
        findings=_findings(folder, seen, trials),
    )


def _findings(folder: Path, seen: Snapshot, trials: pa.Table) -> dict[Group, ErrorFindings]:
    found = _counted(trials)
    ids = chosen(wrong_of(trials)).combine_chunks()
    wanted = pc.field("trial_id").isin(ids)
    asked: list[Any] = trials.filter(wanted)["problem_id"].to_pylist()
    problems, carried = problems_of(folder, set(asked))
    for row in _rows(seen.batches("trials", list(TEXTS), wanted, rows=TEXT_ROWS)) if len(ids) else ():
        _examine(row, problems.get(row["problem_id"]), found[group_of(row)])
    for group, bins in bins_by_group(trials, carried).items():
        found[group].by_carries, found[group].by_chain = bins
    return {group: one.in_order() for group, one in found.items()}


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield rows one by one, so that the text of one reply at a time is Python's."""
    for batch in batches:
        for i in range(batch.num_rows):
            yield batch.slice(i, 1).to_pylist()[0]


def _counted(trials: pa.Table) -> dict[Group, ErrorFindings]:
    counts = trials.group_by([*GROUP, "outcome"], use_threads=False).aggregate([([], "count_all")])
    found: dict[Group, ErrorFindings] = {}
    for row in counts.to_pylist():
        one = found.setdefault(group_of(row), ErrorFindings(group=group_of(row)))
        one.wrong += row["count_all"] * (row["outcome"] == Outcome.WRONG)
        one.unread += row["count_all"] * (row["outcome"] == Outcome.NO_ANSWER)
    return dict(sorted(found.items()))


def _examine(row: Mapping[str, Any], problem: CarryProblem | None, into: ErrorFindings) -> None:
    kind = row["representation"]
    known = problem or CarryProblem(_ANSWER_TYPES.get(kind, kind), ())
    reply = row["reply_text"] or ""
    error = anatomy(
        row["expected"],
        row["answer"],
        reply,
        answer_type=known.answer_type,
        task=row["task"],
        operands=known.operands,
    )
    answer = row["answer"]
    into.add(
        error,
        WrongExample(
            trial_id=row["trial_id"],
            operands=tuple(one[:MOST_TEXT] for one in known.operands),
            expected=row["expected"][:MOST_TEXT],
            answer=None if answer is None else answer[:MOST_TEXT],
            reply=reply[-MOST_TEXT:],
        ),
    )


# ── for the page ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCount:
    """One kind of error of one group."""

    group: Group
    kind: str
    count: int  # of the examined answers of the group
    examined: int
    examples: tuple[WrongExample, ...]  # at most MOST_EXAMPLES


def kinds_of(found: Iterable[ErrorFindings]) -> tuple[KindCount, ...]:
    """Return the kinds of each group, in the order of `kinds.KINDS`."""
    return tuple(
        KindCount(
            group=one.group,
            kind=kind,
            count=one.kinds[kind],
            examined=one.examined,
            examples=tuple(one.examples[kind][:MOST_EXAMPLES]),
        )
        for one in found
        for kind in sorted(one.kinds, key=_place)
    )
