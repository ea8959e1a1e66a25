"""Right answers as bits, one a problem: comparing two models is an AND of two integers.

A bit stands for a problem. So twenty models on fifty thousand problems are some milliseconds a pair.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_
from typing import Any, Final, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.analysis.choosing import Folders, chosen
from asyncbench.analysis.counting import FolderViews, counted, once
from asyncbench.analysis.entrants import Entrant, KindKey
from asyncbench.records import Outcome
from asyncbench.stats.paired import bootstrap_difference
from asyncbench.stats.repeats import Votes
from asyncbench.store.catalog import steady
from asyncbench.store.schema import ENTRANT
from asyncbench.store.snapshot import Snapshot
from asyncbench.tables.data import HIDDEN, in_data

SEED: Final = 8  # of the bootstrap
ALL: Final = -1  # as bits: every problem
MOST_IN_MEMORY: Final = 3_000_000  # trials, of 130 bytes each; of more, each query reads its columns anew

Bits = int  # bit n: the problem at place n
Ended = Mapping[str, Sequence[Bits]]  # outcome → the problems that ended so, by turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What one was asked and got right, by turn: a repeat, or a condition and repeat."""

    asked: tuple[Bits, ...]
    right: tuple[Bits, ...]

    @property
    def problems(self) -> Bits:
        """The problems that were asked at least once."""
        return _any(self.asked)

    def restrict(self, problems: Bits) -> "Marks":
        """Return the marks of these problems alone."""
        return Marks(
            asked=tuple(bits & problems for bits in self.asked),
            right=tuple(bits & problems for bits in self.right),
        )

    @property
    def trials(self) -> int:
        return sum(bits.bit_count() for bits in self.asked)

    @property
    def correct(self) -> int:
        return sum(bits.bit_count() for bits in self.right)

    def problem_counts(self) -> dict[tuple[int, int], int]:
        """Return how many problems there are by (times right, times asked)."""
        counts = Counter[tuple[int, int]]()
        for times, problems in _split(_counted(self.asked), self.problems).items():
            for right, asked_so_often in _split(_counted(self.right), problems).items():
                counts[right, times] += asked_so_often.bit_count()
        return dict(counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """The marks of everybody asked, over the same problems."""

    marks: Mapping[Entrant, Marks]
    ended: Mapping[Entrant, Ended]
    tasks: Mapping[tuple[str, str], Bits]  # (suite, task) → its problems
    problem_ids: Sequence[str]  # by place

    def problems_of(self, *, suite: str | None = None, task: str | None = None) -> Bits:
        """Return the problems of a suite or task. None means any."""
        wanted = (
            bits
            for (its_suite, its_task), bits in self.tasks.items()
            if suite in (None, its_suite) and task in (None, its_task)
        )
        return _any(wanted)

    def outcomes(self, entrant: Entrant, problems: Sequence[Bits]) -> dict[str, int]:
        """Return how many trials of an entrant ended in each outcome.

        Args:
            entrant: who was asked.
            problems: those that count, for each turn.
        """
        ended = self.ended.get(entrant) or dict.fromkeys(map(str, Outcome), ())
        return {outcome: _size(map(and_, turns, problems)) for outcome, turns in ended.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPair:
    """Two on the problems that both were asked, as often as both were."""

    problems: int
    trials: int
    both: int  # trials that both got right
    only_a: int
    only_b: int
    # (times right of a less those of b, times asked) → problems
    by_problem: Mapping[tuple[int, int], int] = field(metadata=HIDDEN)

    @property
    @in_data("neither")
    def neither(self) -> int:
        return self.trials - self.both - self.only_a - self.only_b

    @property
    def share_a(self) -> float:
        return (self.both + self.only_a) / self.trials

    @property
    def share_b(self) -> float:
        return (self.both + self.only_b) / self.trials

    @property
    @in_data("difference")
    def difference(self) -> float:
        """The accuracy of a less that of b."""
        return (self.only_a - self.only_b) / self.trials

    @property
    def differences(self) -> dict[int, int]:
        """Times right of a less those of b → problems."""
        counts = Counter[int]()
        for (difference, _), problems in self.by_problem.items():
            counts[difference] += problems
        return dict(counts)

    @property
    def discordant_share(self) -> float:
        """The mean square of a problem's difference, over the squared mean of its trials.

        Asked once: the share of problems that one alone got. It may be above 1 where repeats are
        unequal: the difference in accuracy is over trials, so a few problems that were asked often decide it.
        """
        squares = sum(difference**2 * problems for (difference, _), problems in self.by_problem.items())
        return squares * self.problems / self.trials**2


def pair(a: Marks, b: Marks, *, within: Bits = ALL) -> ModelPair:
    """Return how two compare on the problems in common; `within` leaves others out."""
    turns = range(min(len(a.asked), len(b.asked)))
    common = [a.asked[n] & b.asked[n] & within for n in turns]
    right_a = [a.right[n] & common[n] for n in turns]
    right_b = [b.right[n] & common[n] for n in turns]
    both = [right_a[n] & right_b[n] for n in turns]
    counts = [_size(bits) for bits in (common, both, right_a, right_b)]

    # Times right of a, plus times not right of b: the difference, moved up by the number of turns.
    problems = _any(common)
    planes = _counted([*right_a, *(problems & ~bits for bits in right_b)])
    by_problem = {
        (value - len(right_b), times): bits.bit_count()
        for times, asked_so_often in _split(_counted(common), problems).items()
        for value, bits in _split(planes, asked_so_often).items()
    }
    return ModelPair(
        problems=problems.bit_count(),
        trials=counts[0],
        both=counts[1],
        only_a=counts[2] - counts[1],
        only_b=counts[3] - counts[1],
        by_problem=dict(sorted(by_problem.items())),
    )


def common_marks(marks: Mapping[str, Marks]) -> dict[str, Marks]:
    """Return the marks of several on the problems that all were asked, repeat by repeat."""
    turns = zip(*(model_marks.asked for model_marks in marks.values()), strict=True)
    common = tuple(reduce(and_, asked_bits) for asked_bits in turns)
    return {
        name: Marks(asked=common, right=tuple(a & b for a, b in zip(model_marks.right, common, strict=True)))
        for name, model_marks in marks.items()
    }


def difference_interval(models: ModelPair) -> tuple[float, float]:
    """Return the 95 % interval of a pair's difference in accuracy: a bootstrap over problems, seeded."""
    return bootstrap_difference(models.by_problem, seed=SEED)


def _size(turns: Iterable[Bits]) -> int:
    return sum(bits.bit_count() for bits in turns)


def _any(turns: Iterable[Bits]) -> Bits:
    union = 0
    for bits in turns:
        union |= bits
    return union


def _counted(turns: Iterable[Bits]) -> list[Bits]:
    """Return in how many turns each bit is set: the ones, the twos, the fours … of all counts at once."""
    planes: list[Bits] = []
    for carry in turns:
        for n, plane in enumerate(planes):
            planes[n], carry = plane ^ carry, plane & carry  # as by hand: what is carried on
        if carry:
            planes.append(carry)
    return planes


def _split(planes: Sequence[Bits], problems: Bits) -> dict[int, Bits]:
    """Return the problems with each count."""
    by_count = {0: problems}
    for n, plane in enumerate(planes):
        halves = [
            (count | (1 << n if yes else 0), bits & (plane if yes else ~plane))
            for count, bits in by_count.items()
            for yes in (False, True)
        ]
        by_count = {count: bits for count, bits in halves if bits}
    return by_count if problems else {}


def places(bits: Bits) -> list[int]:
    """Return the places of the bits that are set, ascending."""
    return [index for index, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"]


# ── marks of a folder ────────────────────────────────────────────────────────────────────────────


def marked(views: FolderViews, more: Sequence[str] = (), *, trials: pa.Table | str | None = None) -> Marked:
    """Return the marks of trials, which later queries find as the table `answers`.

    Args:
        views: of the folder.
        more: columns of `answers` besides those that are counted here.
        trials: the trials to mark, or the query that gives them; None: all of the folder.
    """
    if trials is None:
        columns = (*ENTRANT, "suite", "task", "problem_id", "repeat", "outcome", *more)
        if views.trials > MOST_IN_MEMORY:
            views.define(ANSWERS, f"SELECT {', '.join(columns)} FROM trials")  # noqa: S608  names of ours
        else:  # DuckDB takes them as they are: no copy
            views.put_when_read(ANSWERS, f"trials {columns}", lambda views: views.read("trials", columns))
    elif isinstance(trials, str):
        views.keep(ANSWERS, trials)
    else:
        views.put(ANSWERS, trials)
    views.keep(
        "places",  # which problem has which bit; one of several tasks is there several times
        """SELECT *, (dense_rank() OVER (ORDER BY problem_id) - 1)::INTEGER AS place
        FROM (SELECT DISTINCT problem_id, suite, task FROM answers)""",
    )
    placed = views.table("SELECT DISTINCT problem_id, place FROM places ORDER BY place")
    problem_ids = cast("list[str]", placed["problem_id"].to_pylist())
    turns = [row["repeat"] for row in views.rows("SELECT DISTINCT repeat FROM answers ORDER BY repeat")]
    ended: dict[Entrant, dict[str, list[Bits]]] = {}
    by_outcome = _bits_by(views, (*ENTRANT, "repeat", "outcome"), _PLACED, len(problem_ids))
    for run, model, condition, repeat, outcome, bits in by_outcome:
        none = {outcome.value: [0] * len(turns) for outcome in Outcome}
        ended.setdefault((run, model, condition), none)[outcome][turns.index(repeat)] = bits
    by_task = _bits_by(views, ("suite", "task"), "places", len(problem_ids))
    return Marked(
        marks={
            entrant: Marks(
                asked=tuple(map(_any, zip(*by_ending.values(), strict=True))),
                right=tuple(by_ending[Outcome.CORRECT]),
            )
            for entrant, by_ending in ended.items()
        },
        ended=ended,
        tasks={(suite, task): bits for suite, task, bits in by_task},
        problem_ids=problem_ids,
    )


ANSWERS: Final = "answers"  # the table of `marked`
RANKED: Final = (  # columns of the answers that rankings count, `cells_in` and `asked_in`
    *("provider", "upstream", "variant", "representation", "length", "effort", "style", "cost_usd"),
    *("latency_s", "input_tokens", "output_tokens", "reasoning_tokens"),
)


@once
def marks_in(views: FolderViews) -> Marked:
    """Return the marks of which rankings are made; later queries have the table `answers`."""
    return marked(views, RANKED)


_PLACED: Final = "answers JOIN (SELECT DISTINCT problem_id, place FROM places) USING (problem_id)"


def skipped_problems(views: FolderViews, marks: Marked) -> dict[Entrant, Bits]:
    """Return the problems that need not be asked of each, by the rows of `held_skips`, as `marks` has them.

    A problem that no entrant was asked has no place in `marks`, and is left out.
    """
    rows = _bits_by(views, ENTRANT, _PLACED.replace("answers", "held_skips"), len(marks.problem_ids))
    return {(run, model, condition): bits for run, model, condition, bits in rows}


@once
def kind_bits(views: FolderViews) -> Mapping[KindKey, Mapping[int | None, Bits]]:
    """Return the problems of each kind by length; the first time while the table `answers` is there."""
    kinds = defaultdict[KindKey, dict[int | None, Bits]](dict)
    keys, problems = ("suite", "task", "variant", "representation", "length"), marks_in(views).problem_ids
    for suite, task, variant, form, length, bits in _bits_by(views, keys, _PLACED, len(problems)):
        kinds[suite, task, variant or "", form or ""][length] = bits
    return dict(kinds)


def _bits_by(
    views: FolderViews, keys: Sequence[str], source: str, problems: int
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of some columns, and the places of their problems as bits: the last bit is place 0."""
    if not problems:
        return
    last_bit = problems - 1 + -problems % 8
    query = f"""SELECT {", ".join(keys)}, bitstring_agg({last_bit} - place, 0, {last_bit})::BLOB AS bits
        FROM {source} GROUP BY ALL"""  # noqa: S608  made of our own words alone
    for row in views.rows(query):
        *values, bits = row.values()
        yield *values, int.from_bytes(bits)


def read_model(folder: Folders, model: str, columns: Sequence[str], filters: pc.Expression) -> pa.Table:
    """Return columns of one model's `trials`; of one whole folder, the parts of others are not opened.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: it cannot be read.
    """
    choice, wanted = chosen(folder), filters & (pc.field("model") == model) & pc.field("load").is_null()
    if not choice.plain:
        every = ", ".join(dict.fromkeys((*columns, "model", "run", "condition", "problem_id", "load")))
        query = f"SELECT {every} FROM trials WHERE model = $model"  # noqa: S608  names of ours
        return (
            counted(choice, lambda views: views.table(query, {"model": model})).filter(wanted).select(columns)
        )

    def read(seen: Snapshot) -> pa.Table:
        paths = [
            path for path in seen.files["trials"] if unquote(path.parent.name.removeprefix("model=")) == model
        ]
        return replace(seen, files={**seen.files, "trials": paths}).read("trials", columns, wanted)

    return steady(choice.paths[0], read)


# ── votes of repeats ─────────────────────────────────────────────────────────────────────────────


# Right answers are one, however they are written. Wrong ones are told apart as their grader read them.
_KEPT: Final = """
SELECT run, model, condition, place, turn, outcome = 'correct' AS is_right,
    CASE WHEN outcome <> 'correct' THEN answer END AS wrong_answer
FROM trials
    JOIN (SELECT DISTINCT problem_id, place FROM places) USING (problem_id)
    JOIN (SELECT repeat, row_number() OVER (ORDER BY repeat) - 1 AS turn
        FROM (SELECT DISTINCT repeat FROM answers)) USING (repeat)
"""
_VOTES: Final = """
WITH given AS (
    SELECT run, model, condition, place, is_right, wrong_answer, count(*) AS times
    FROM votes SEMI JOIN chosen USING (place, turn) GROUP BY ALL
), problems AS (
    SELECT run, model, condition, place, sum(times)::BIGINT AS asked,
        coalesce(sum(times) FILTER (is_right), 0)::BIGINT AS correct,
        coalesce(list(times ORDER BY times DESC) FILTER (wrong_answer IS NOT NULL), []) AS wrong
    FROM given GROUP BY run, model, condition, place
)
SELECT run, model, condition, asked, correct, wrong, count(*) AS problems FROM problems GROUP BY ALL
"""


def keep_votes(views: FolderViews) -> None:
    """Read the answers of all trials once, for `votes_on`; `marked` has to be called before."""
    views.keep("votes", _KEPT)


def votes_on(views: FolderViews, problems_by_turn: Sequence[Bits]) -> Mapping[Entrant, Mapping[Votes, int]]:
    """Return how many of the problems, by turn, have which votes, for everybody who answered them.

    `problems_by_turn`: bits, as `marked` has them.
    """
    chosen = [(index, turn) for turn, bits in enumerate(problems_by_turn) for index in places(bits)]
    columns = zip(*chosen, strict=True) if chosen else ([], [])
    views.put("chosen", pa.table(dict(zip(("place", "turn"), map(pa.array, columns), strict=True))))
    by_entrant = defaultdict[Entrant, Counter[Votes]](Counter)
    for run, model, condition, times, right, wrong, problems in map(dict.values, views.rows(_VOTES)):
        by_entrant[run, model, condition][Votes(times, right, tuple(wrong))] += problems
    return by_entrant
