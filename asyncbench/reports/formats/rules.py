"""Replies that carry out a rule: the share that follows the executed rule, and first wrong lines."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import median_low
from typing import Any, Final

from asyncbench.analysis.anatomy.numbers import problems_of
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, names_of
from asyncbench.records import Outcome
from asyncbench.stats.proportions import wilson
from asyncbench.store.schema import ENTRANT
from asyncbench.suites.nupa.execution import NO_LINE, WRONG_LINES, WrongLine, first_wrong_line
from asyncbench.suites.thinking import split_thinking
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.headings import FIRST_LINES, FOLLOWED
from asyncbench.tables.numbers import MISSING, count, counted_note, percent
from asyncbench.tables.report import Columns, Sheet

MOST_REPLIES: Final = 1000  # of a model: the first by trial_id, a hash
MOST_LINES: Final = 10  # that go wrong first
RULES: Final = (
    "A reply that carries out a rule is compared line by line with the executed rule, up to the first line "
    "that differs. Lines without a value may be left out. Line 1 is the first that is executed."
)
LEFT_OUT: Final = "replies are left out, since their rule cannot be carried out with their operands."
_IDS: Final = """
SELECT trial_id, problem_id FROM trials
WHERE style = 'rules' AND suite = 'nupa' AND outcome <> 'failed'
QUALIFY row_number() OVER (PARTITION BY run, model, condition ORDER BY trial_id) <= $most
"""
_TEXTS: Final = (*ENTRANT, "problem_id", "task", "representation", "outcome", "reply_text")


@dataclass(slots=True, kw_only=True)
class Followed:
    """How far the replies of one model follow the rules."""

    name: str
    replies: int = 0
    followed: int = 0  # have no wrong line
    followed_right: int = 0  # and a right answer
    strayed_right: int = 0  # have a wrong line, and a right answer all the same
    kinds: Counter[str] = field(default_factory=Counter)  # of first wrong lines
    numbers: Counter[int] = field(default_factory=Counter)  # of the lines where they are

    def add(self, wrong: WrongLine | None, *, right: bool) -> None:
        """Count one reply."""
        self.replies += 1
        self.followed += wrong is None
        self.followed_right += wrong is None and right
        self.strayed_right += wrong is not None and right
        if wrong is not None:
            self.kinds[wrong.kind] += 1
        if wrong is not None and wrong.kind != NO_LINE:
            self.numbers[wrong.number] += 1

    @property
    @in_data("interval")
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share that follows its rule."""
        return wilson(self.followed / self.replies, self.replies)

    @property
    @in_data("median_line")
    def median_line(self) -> int | None:
        """The median place of a first wrong line; None: there is none."""
        return median_low(self.numbers.elements()) if self.numbers else None

    def share_between(self, first: int, last: int | None) -> float:
        """Return the share of all replies whose first wrong line is one of these."""
        places = (number >= first and (last is None or number <= last) for number in self.numbers.elements())
        return sum(places) / self.replies


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayedLine:
    """A line of a rule that is the first wrong one of some replies."""

    routine: str
    line: str
    replies: int
    share: float  # of all replies that have a first wrong line
    expected: str  # in that with the shortest value
    found: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFollowing:
    """How far replies follow their rules, by model, and the lines that go wrong first."""

    models: tuple[Followed, ...]
    lines: tuple[StrayedLine, ...]
    left_out: int = field(metadata=HIDDEN)  # replies whose rule cannot be carried out

    def remarks(self) -> Iterator[str]:
        """Yield what to know of the figures."""
        if self.models:
            yield RULES
        yield from counted_note(self.left_out, LEFT_OUT)

    def sheets(self) -> Iterator[Sheet]:
        """Yield the tables."""
        yield Sheet.of("Rule following", FOLLOWED_COLUMNS, self.models)
        yield Sheet.of("The first wrong line by its place", PLACE_COLUMNS, self.models)
        yield Sheet.of(
            "Lines that go wrong first, all models", LINE_COLUMNS, self.lines[:MOST_LINES], labels=2
        )


def rule_following_in(views: FolderViews, entrants: Collection[Entrant]) -> RuleFollowing:
    """Compare the replies of these entrants with the executed rules.

    Raises:
        StoreError: results cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    models = {who: Followed(name=name) for who, name in names_of(entrants).items()}
    strayed = defaultdict[tuple[str, str], list[WrongLine]](list)
    left_out = 0
    chosen = views.rows(_IDS, {"most": MOST_REPLIES}) if models else []
    problems = problems_of(views, {row["problem_id"] for row in chosen})
    for row in _replies(views, [row["trial_id"] for row in chosen]):
        problem = problems.get(row["problem_id"])
        reply = split_thinking(row["reply_text"] or "").answer
        if row["outcome"] == Outcome.TRUNCATED:
            reply = reply.rpartition("\n")[0]  # its last line was not finished
        try:
            wrong = first_wrong_line(
                reply, row["task"], row["representation"], problem.operands if problem else ()
            )
        except (KeyError, ValueError):  # a set that others made may call anything a task of nupa
            left_out += 1
            continue
        models[row["run"], row["model"], row["condition"]].add(wrong, right=row["outcome"] == Outcome.CORRECT)
        if wrong is not None and wrong.kind != NO_LINE:
            strayed[wrong.routine, wrong.line].append(wrong)

    total, lines = sum(map(len, strayed.values())), list[StrayedLine]()
    for (routine, line), wrong_lines in strayed.items():
        shortest = min(wrong_lines, key=lambda each: (len(each.expected), each.expected, each.found or ""))
        lines.append(
            StrayedLine(
                routine=routine,
                line=line,
                replies=len(wrong_lines),
                share=len(wrong_lines) / total,
                expected=shortest.expected,
                found=shortest.found,
            )
        )
    return RuleFollowing(
        models=tuple(each for each in models.values() if each.replies),
        lines=tuple(sorted(lines, key=lambda each: (-each.replies, each.routine, each.line))),
        left_out=left_out,
    )


def _replies(views: FolderViews, ids: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the texts of these trials, in the order of their ids in a batch."""
    for batch in views.trial_rows("trials", _TEXTS, ids) if ids else ():
        yield from batch.to_pylist()


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if whole else MISSING


def _kind(each: Followed, kind: str) -> str:
    return _share(each.kinds[kind], each.replies)


def _between(each: Followed, first: int, last: int | None) -> str:
    return percent(each.share_between(first, last))


FOLLOWED_COLUMNS: Final[Columns[Followed]] = {
    "model": lambda each: each.name,
    "rule replies": lambda each: count(each.replies),
    FOLLOWED: lambda each: percent(each.followed / each.replies, each.interval),
    "right of these": lambda each: _share(each.followed_right, each.followed),
    "right of the others": lambda each: _share(each.strayed_right, each.replies - each.followed),
    **{kind: partial(_kind, kind=kind) for kind in WRONG_LINES},
}
PLACE_COLUMNS: Final[Columns[Followed]] = {
    "model": lambda each: each.name,
    "median line": lambda each: MISSING if each.median_line is None else count(each.median_line),
    **{heading: partial(_between, first=first, last=last) for heading, (first, last) in FIRST_LINES.items()},
}
LINE_COLUMNS: Final[Columns[StrayedLine]] = {
    "routine": lambda each: each.routine,
    "line": lambda each: each.line,
    "rule replies": lambda each: count(each.replies),
    "of first wrong lines": lambda each: percent(each.share),
    "executed": lambda each: each.expected,
    "found": lambda each: each.found or MISSING,
}
