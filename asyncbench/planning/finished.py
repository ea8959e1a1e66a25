"""What the finished trials of a results folder used, by their way of asking and their cell."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute

from asyncbench.planning.estimates import Needs, StraightLine, total
from asyncbench.records import Outcome
from asyncbench.store import read_attempts, read_trials
from asyncbench.sweeps import CELL, Cell

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

ENOUGH: Final = 2  # replies, before anything can be said
REMEMBERED: Final = 64  # replies of a cell: more tell little more
POINTS: Final = 5_000  # of a way, to learn what a token takes

_SAME: Final = ("input_tokens", "output_tokens")  # of a trial and of the call that gave its answer
_OF_TRIALS: Final = ("trial_id", "reused_from", *_SAME)
_OF_CALLS: Final = ("trial_id", "attempt", "status", "cost_usd", *_SAME)


class Way(NamedTuple):
    """Trials are alike that were asked of one model, under one condition, and are of one suite."""

    model: str  # the alias
    condition: str
    suite: str


class Measured(NamedTuple):
    """What one finished trial used; None where nobody said."""

    replied: bool
    input_tokens: int | None
    output_tokens: int | None
    latency_s: float | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCell:
    """The trials of one cell that were asked one way."""

    trials: int
    replied: int
    input_tokens: float | None  # mean; None: no provider said
    outputs: tuple[float, ...]  # tokens of replies, at most `REMEMBERED`; of a cut one, what it was cut at


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenUse:
    """What the trials of one way of asking used."""

    cells: Mapping[Cell, SeenCell]
    used: Needs  # without seconds and batches; dollars are those of the calls that gave the answers
    latency: StraightLine | None = None  # seconds of a call, and of a token of its reply
    price: StraightLine | None = None  # USD of a token sent, and of one received, as was billed

    @property
    def replies(self) -> int:
        """How many replies there are whose length is known."""
        return sum(len(cell.outputs) for cell in self.cells.values())

    @property
    def mean_input(self) -> float | None:
        """Tokens of a prompt; None where no provider said."""
        told = [
            (cell.trials, cell.input_tokens) for cell in self.cells.values() if cell.input_tokens is not None
        ]
        return sum(n * tokens for n, tokens in told) / sum(n for n, _ in told) if told else None

    @property
    def mean_output(self) -> float | None:
        """Tokens of a reply; None where no provider said."""
        return sum(sum(cell.outputs) for cell in self.cells.values()) / self.replies if self.replies else None

    @property
    def longest_call_s(self) -> float:
        """Seconds of the longest call; 0 where no trial tells."""
        longest = max((length for cell in self.cells.values() for length in cell.outputs), default=0.0)
        return 0.0 if self.latency is None else self.latency.first + self.latency.second * longest


def seen_in(folder: Path, finished: Mapping[tuple[str, str], pa.StringArray]) -> Mapping[Way, SeenUse]:
    """Return what finished trials of a results folder used, by their way of asking.

    `finished`: the ids of the trials that count, by alias and condition. The folder may hold others of that
    model, of problems or parameters that the sweep had before.

    Raises:
        StoreError: the folder cannot be read.
    """
    rows = read_trials(folder, columns=[*_OF_TRIALS, *CELL, "outcome", "latency_s", "cost_usd"])
    replied = pc.not_equal(rows["outcome"], pa.scalar(Outcome.FAILED.value))
    # A failed trial costs a forecast nothing; one that was taken over costs what it says.
    answers = cost_of_answers(rows, read_attempts(folder, list(_OF_CALLS)))
    at = pc.index_in(rows["trial_id"], value_set=answers["trial_id"].combine_chunks())
    cost = pc.coalesce(answers["cost_usd"].combine_chunks().take(at), rows["cost_usd"])
    cost = pc.if_else(replied, cost, pa.scalar(0.0))
    rows = rows.set_column(rows.schema.get_field_index("cost_usd"), "cost_usd", cost)
    rows = rows.append_column("replied", replied)

    of = pa.array((number for number, ids in enumerate(finished.values()) for _ in ids), pa.int32())
    at = pc.index_in(rows["trial_id"], value_set=pa.chunked_array(list(finished.values()), pa.string()))
    rows = rows.append_column("asking", of.take(at)).filter(pc.is_valid(at))
    # without threads: the order of rows decides what is drawn, and two plans of a folder shall say the same
    cells = rows.group_by(["asking", *CELL], use_threads=False)
    askings, ways = list(finished), dict[Way, dict[Cell, list[Measured]]]()
    for row in cells.aggregate([(name, "list") for name in Measured._fields]).to_pylist():
        cell = Cell(*(row[name] for name in CELL))
        columns = (row[f"{name}_list"] for name in Measured._fields)
        alias, condition = askings[row["asking"]]
        ways.setdefault(Way(alias, condition, cell.suite), {})[cell] = list(map(Measured, *columns))
    return {way: seen_of(trials) for way, trials in ways.items()}


def cost_of_answers(trials: pa.Table, calls: pa.Table) -> pa.Table:
    """Return trial_id and cost_usd (NULL: unknown) of the calls that gave finished trials their answers.

    A forecast is of these calls, and of no others. Of a trial that was asked again it is the last that was
    answered; in a merged folder, where the better answer stays, the last whose tokens are those of the trial.
    Trials that failed, and those whose answers were taken over, have none.

    Args:
        trials: the finished ones: trial_id, reused_from, input_tokens, output_tokens.
        calls: any: trial_id, attempt, status, cost_usd, input_tokens, output_tokens.
    """
    ours = trials.filter(pc.is_null(trials["reused_from"])).select(["trial_id", *_SAME])
    ours = ours.rename_columns(["trial_id", *(f"{name} of the trial" for name in _SAME)])
    answered = calls.select(list(_OF_CALLS)).filter(pc.equal(calls["status"], pa.scalar("ok")))
    rows = answered.join(ours, "trial_id", join_type="inner")
    same = pc.and_(
        *(
            pc.equal(pc.fill_null(rows[name], -1), pc.fill_null(rows[f"{name} of the trial"], -1))
            for name in _SAME
        )
    )
    rows = rows.append_column("same", pc.cast(same, pa.int8()))
    rows = rows.sort_by([("same", "ascending"), ("attempt", "ascending")])
    groups = rows.group_by("trial_id", use_threads=False)  # the only way in which the order of rows counts
    last = groups.aggregate([("cost_usd", "last", pc.ScalarAggregateOptions(skip_nulls=False))])
    return last.rename_columns(["trial_id", "cost_usd"])


def seen_of(cells: Mapping[Cell, list[Measured]]) -> SeenUse:
    """Return what the trials of one way of asking tell."""
    every = [trial for trials in cells.values() for trial in trials]
    some = every if len(every) <= POINTS else random.Random(0).sample(every, POINTS)  # noqa: S311  repeatable
    return SeenUse(
        cells={cell: _seen_cell(trials) for cell, trials in cells.items()},
        used=Needs(
            trials=len(every),
            input_tokens=sum(trial.input_tokens or 0 for trial in every),
            output_tokens=sum(trial.output_tokens or 0 for trial in every),
            cost_usd=total(trial.cost_usd for trial in every),
        ),
        latency=StraightLine.through(
            (1.0, trial.output_tokens, trial.latency_s)
            for trial in some
            if trial.replied and trial.output_tokens is not None and trial.latency_s is not None
        ),
        price=StraightLine.through(
            (trial.input_tokens, trial.output_tokens, trial.cost_usd)
            for trial in some
            if trial.input_tokens is not None
            and trial.output_tokens is not None
            and trial.cost_usd is not None
        ),
    )


def _seen_cell(trials: list[Measured]) -> SeenCell:
    inputs = [trial.input_tokens for trial in trials if trial.input_tokens is not None]
    outputs = [
        float(trial.output_tokens) for trial in trials if trial.replied and trial.output_tokens is not None
    ]
    if len(outputs) > REMEMBERED:
        outputs = random.Random(0).sample(outputs, REMEMBERED)  # noqa: S311  repeatable
    return SeenCell(
        trials=len(trials),
        replied=sum(trial.replied for trial in trials),
        input_tokens=sum(inputs) / len(inputs) if inputs else None,
        outputs=tuple(outputs),
    )
