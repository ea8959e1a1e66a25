"""Counts of a folder's wrong answers, by entrant, task and kind of error.

A million trials may hold half a million of them. Of each group (run, model, condition, task as it is asked)
the first by trial_id are examined: that is a hash, so it is as good as a draw, and the same on every machine.
"""

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

from asyncbench.analysis.anatomy.alignment import nearest_answer
from asyncbench.analysis.anatomy.error import (
    MOST_PLACES,
    ORDER,
    UNCLASSIFIED,
    Error,
    anatomy,
    are_words,
)
from asyncbench.analysis.anatomy.numbers import (
    CarryBin,
    CarryProblem,
    Group,
    bins_by_group,
    problems_of,
)
from asyncbench.analysis.counting import FolderViews, once
from asyncbench.analysis.curves import GROUP
from asyncbench.analysis.views import counts_by
from asyncbench.records import Outcome, accepted_answers
from asyncbench.stats.proportions import Proportion
from asyncbench.suites.numbers import plain
from asyncbench.suites.requests import digits_stored
from asyncbench.suites.thinking import split_thinking

MOST_OF_A_GROUP: Final = 500
MOST_IN_ALL: Final = 30_000
LEAST_OF_A_GROUP: Final = 20
MOST_EXAMPLES: Final = 3  # of a kind and group
MOST_UNCLASSIFIED: Final = 20  # of a group
MOST_TEXT: Final = 200  # characters of an example's reply

_ANSWER_TYPES: Final = {"float": "decimal"}  # by representation, where no problem file tells
_GROUP: Final = ", ".join(GROUP)
_BAD: Final = (Outcome.WRONG, Outcome.NO_ANSWER)
OUTCOMES: Final = counts_by(
    "trials",
    GROUP,
    only=_BAD,
    more=[
        f"min(trial_id, {MOST_OF_A_GROUP}) FILTER (outcome IN {(*map(str, _BAD),)}) AS trial_ids",
        f"min_by(problem_id, trial_id, {MOST_OF_A_GROUP}) FILTER (outcome IN {(*map(str, _BAD),)})"
        " AS problem_ids",
    ],
)
_EXAMINED: Final = f"""
SELECT {_GROUP}, unnest(trial_ids[:$most]) AS trial_id, unnest(problem_ids[:$most]) AS problem_id
FROM errors
"""  # noqa: S608  made of our own words alone
_TEXTS: Final = ("trial_id", "expected", "answer", "condition_params", "reply_text")


class WrongExample(NamedTuple):
    """One wrong answer, its texts cut to `MOST_TEXT`."""

    trial_id: str
    operands: tuple[str, ...]
    expected: str
    answer: str | None
    reply: str


class ExaminedAnswer(NamedTuple):
    """One wrong answer, and what is wrong with it."""

    trial_id: str
    kind: str
    wrong_from_left: tuple[int, ...]  # digits of the truth: 1 is the first,
    wrong_from_right: tuple[int, ...]  # and 1 the last; none where no answer was read


def _most_of(kind: str) -> int:
    return MOST_UNCLASSIFIED if kind == UNCLASSIFIED else MOST_EXAMPLES


@dataclass(slots=True, kw_only=True)
class ErrorFindings:
    """What was found out about the wrong answers of one group."""

    group: Group
    wrong: int = 0  # answers that are wrong, and
    unread: int = 0  # replies without an answer, examined or not
    examined: int = 0
    kinds: Counter[str] = field(default_factory=Counter)  # each examined answer has one
    flags: Counter[str] = field(default_factory=Counter)  # and any number of these
    words: Counter[str] = field(default_factory=Counter)  # of answers in words: what was answered instead
    compared: int = 0  # answers that were read and can be laid beside the truth, of them:
    too_short: int = 0  # fewer digits before the point than the truth
    too_long: int = 0
    reach: Counter[int] = field(default_factory=Counter)  # digits of the truth → answers, at most MOST_PLACES
    from_left: Counter[int] = field(default_factory=Counter)  # place → answers with a wrong digit there
    from_right: Counter[int] = field(default_factory=Counter)
    by_carries: tuple[CarryBin, ...] = ()
    by_chain: tuple[CarryBin, ...] = ()
    # of each kind the first by trial_id
    examples: dict[str, list[WrongExample]] = field(default_factory=dict)
    answers: list[ExaminedAnswer] = field(default_factory=list)  # all that were examined

    def wants(self, kind: str, trial_id: str) -> bool:
        """Return whether an answer of this kind is one of the first by trial_id, which are the examples."""
        kept = self.examples.get(kind, [])
        return len(kept) < _most_of(kind) or trial_id < kept[-1].trial_id

    def keep(self, kind: str, example: WrongExample) -> None:
        """Take an example, and let go of those that it is before."""
        kept = self.examples.setdefault(kind, [])
        insort(kept, example, key=attrgetter("trial_id"))
        del kept[_most_of(kind) :]

    def add(self, trial_id: str, error: Error) -> None:
        """Count one examined answer."""
        self.examined += 1
        self.answers.append(
            ExaminedAnswer(trial_id, error.kind, error.wrong_from_left, error.wrong_from_right)
        )
        self.kinds[error.kind] += 1
        self.flags.update(error.flags)
        if error.length_error is None:
            return
        self.compared += 1
        self.too_short += error.length_error < 0
        self.too_long += error.length_error > 0
        self.reach[min(error.digits, MOST_PLACES)] += 1
        self.from_left.update(error.wrong_from_left)
        self.from_right.update(error.wrong_from_right)

    def sorted_by_kind(self) -> "ErrorFindings":
        """Return it with kinds and flags in the order of `error.KINDS`, however answers were added."""
        kinds, flags = (
            Counter(
                {
                    name: counts[name]
                    for name in sorted(counts, key=lambda name: (ORDER.get(name, len(ORDER)), name))
                }
            )
            for counts in (self.kinds, self.flags)
        )
        return replace(self, kinds=kinds, flags=flags)

    def wrong_at(self, wrong: Counter[int]) -> list[Proportion]:
        """Return for each place how many have a wrong digit there, of the truths that have such a digit."""
        longest = max(self.reach, default=0)
        reaching = (sum(n for digits, n in self.reach.items() if digits >= i) for i in range(1, longest + 1))
        return [Proportion(successes=wrong[i], trials=n) for i, n in enumerate(reaching, 1)]


@once
def errors_in(views: FolderViews) -> dict[Group, ErrorFindings]:
    """Return the findings about a folder's trials, by group.

    Raises:
        StoreError: its results cannot be read.
        ProblemSetError: one of its copies of the problems is damaged.
    """
    findings = dict(examined_in(views))
    for group, (by_carries, by_chain) in bins_by_group(views).items():
        findings[group] = replace(findings[group], by_carries=by_carries, by_chain=by_chain)
    return findings


@once
def examined_in(views: FolderViews) -> Mapping[Group, ErrorFindings]:
    """Return the same without bins by carries, for which all trials are read once more.

    Replies are read a few at a time, and no more of them is kept than the examples show.
    """
    views.keep("errors", OUTCOMES)
    findings = views.made_of_rows("examined", list[ErrorFindings], lambda: [*_examined(views).values()])
    return {each.group: each for each in findings}


def _examined(views: FolderViews) -> dict[Group, ErrorFindings]:
    by_group = {
        group_of(row): ErrorFindings(group=group_of(row), wrong=row["wrong"], unread=row["no_answer"])
        for row in views.rows(f"SELECT {_GROUP}, wrong, no_answer FROM errors ORDER BY ALL")  # noqa: S608  our words
    }
    examined = {row["trial_id"]: row for row in examined_of(views, most_of_a_group(by_group.values()))}
    problems = problems_of(views, {row["problem_id"] for row in examined.values()})
    for batch in views.trial_rows("trials", _TEXTS, list(examined)):
        replies = batch["reply_text"]
        for index, row in enumerate(batch.drop_columns("reply_text").to_pylist()):
            whole = {**row, "reply_text": replies[index].as_py(), **examined[row["trial_id"]]}
            _examine(whole, problems.get(whole["problem_id"]), by_group[group_of(whole)])
    return {group: findings.sorted_by_kind() for group, findings in by_group.items()}


def examined_of(views: FolderViews, limit: int) -> list[dict[str, Any]]:  # Any: texts
    """Return the answers of each group of the table `errors` to examine: ids, and the group's columns."""
    return views.rows(_EXAMINED, {"most": limit})


def group_of(row: Mapping[str, Any]) -> Group:
    """Return the group of a row that has its columns."""
    return tuple(row[name] for name in GROUP)


def most_of_a_group(findings: Iterable[ErrorFindings]) -> int:
    """Return how many answers of each group are examined; there may be more in all where groups are many."""
    groups = sum(1 for group in findings if group.wrong or group.unread)
    return min(MOST_OF_A_GROUP, max(LEAST_OF_A_GROUP, MOST_IN_ALL // max(1, groups)))


def _examine(row: Mapping[str, Any], problem: CarryProblem | None, into: ErrorFindings) -> None:
    """Add one wrong answer to the findings of its group, as an example too if it is one of the first."""
    problem = problem or CarryProblem(None, ())
    accepted = accepted_answers(row["expected"], problem.extra)
    row = {**row, "expected": nearest_answer(accepted, row["answer"])}
    error = error_of(row, answer_type=problem.answer_type, operands=problem.operands)
    into.add(row["trial_id"], error)
    answer_type = problem.answer_type or type_of(row["representation"])
    if row["answer"] is not None and are_words(answer_type, problem.operands):
        into.words[" ".join(row["answer"][:MOST_TEXT].split())] += 1
    if not into.wants(error.kind, row["trial_id"]):
        return
    answer = row["answer"]
    example = WrongExample(
        trial_id=row["trial_id"],
        operands=tuple(operand[:MOST_TEXT] for operand in problem.operands),
        expected=row["expected"][:MOST_TEXT],
        answer=None if answer is None else answer[:MOST_TEXT],
        reply=(row["reply_text"] or "")[-MOST_TEXT:],
    )
    into.keep(error.kind, example)


def error_of(row: Mapping[str, Any], *, answer_type: str | None, operands: Sequence[str]) -> Error:
    """Return the anatomy of a row of `trials` with a wrong or unread answer.

    Args:
        row: its task, representation, expected, answer, reply_text and condition_params.
        answer_type, operands: those of its problem; None: no problem file tells.
    """
    return anatomy(
        row["expected"],
        row["answer"],
        # the answer stands in plain digits, too
        plain(split_thinking(row["reply_text"] or "").answer, digits_stored(row["condition_params"])),
        answer_type=answer_type or type_of(row["representation"]),
        task=row["task"],
        operands=operands,
    )


def type_of(representation: str) -> str:
    """Return the answer type of a problem that no file tells of."""
    return _ANSWER_TYPES.get(representation, representation)
