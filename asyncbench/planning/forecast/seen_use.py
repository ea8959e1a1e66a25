"""What the finished trials of a results folder used, by their way of asking and their cell."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.planning.forecast.entrants import OF_CALLS, OF_TRIALS, cost_of_answers
from asyncbench.planning.forecast.straight_line import StraightLine
from asyncbench.records import Outcome
from asyncbench.store import read_attempts, read_trials
from asyncbench.sweeps import CELL, Cell

MEASURED = ("outcome", "input_tokens", "output_tokens", "latency_s", "cost_usd")
REMEMBERED = 64  # replies of a cell: more tell little more
POINTS = 5_000  # of a way, to learn what a token takes


class Way(NamedTuple):
    """Trials are alike that were asked of one model, under one condition, and are of one suite."""

    model: str  # the alias
    condition: str
    suite: str


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
    input_tokens: int  # of all of them
    output_tokens: int
    cost_usd: float | None  # of the calls that gave the answers; None: that of one is unknown
    latency: StraightLine | None = field(default=None)  # seconds of a call, and of a token of its reply
    price: StraightLine | None = field(
        default=None
    )  # USD of a token sent, and of one received, as was billed

    @property
    def replies(self) -> int:
        """How many replies there are whose length is known."""
        return sum(len(cell.outputs) for cell in self.cells.values())

    @property
    def mean_input(self) -> float | None:
        """Tokens of a prompt; None where no provider said."""
        told = [(one.trials, one.input_tokens) for one in self.cells.values() if one.input_tokens is not None]
        return sum(n * tokens for n, tokens in told) / sum(n for n, _ in told) if told else None

    @property
    def mean_output(self) -> float | None:
        """Tokens of a reply; None where no provider said."""
        return sum(sum(one.outputs) for one in self.cells.values()) / self.replies if self.replies else None

    @property
    def trials(self) -> int:
        """How many trials are finished."""
        return sum(cell.trials for cell in self.cells.values())


def seen_in(folder: Path, finished: Mapping[tuple[str, str], pa.StringArray]) -> Mapping[Way, SeenUse]:
    """Return what finished trials of a results folder used, by their way of asking.

    Args:
        folder: the results folder.
        finished: the ids of the trials that count, by alias and condition. Their ids tell whose they are: the
            folder may hold others of that model, of problems or parameters that the sweep had before.

    Raises:
        StoreError: the folder cannot be read.
    """
    trials = read_trials(folder, columns=[*OF_TRIALS, *CELL, "outcome", "latency_s", "cost_usd"])
    rows = _asked_by(_costs_of_answers(trials, folder), list(finished.values()))
    cells = rows.group_by(["asking", *CELL]).aggregate([(name, "list") for name in MEASURED])
    askings, ways = list(finished), dict[Way, dict[Cell, Trials]]()
    for row in _renamed(cells).to_pylist():
        cell = Cell(*(row[name] for name in CELL))
        alias, condition = askings[row["asking"]]
        ways.setdefault(Way(alias, condition, cell.suite), {})[cell] = list(_measured(row))
    return {way: seen_of(cells) for way, cells in ways.items()}


def _costs_of_answers(trials: pa.Table, folder: Path) -> pa.Table:
    """Return trials with what the call cost that gave the answer: failed and lost ones may cost anything.

    A trial that failed cost a forecast nothing; one that was taken over costs what it says.
    """
    found = cost_of_answers(trials, read_attempts(folder, list(OF_CALLS)))
    at = pc.index_in(trials["trial_id"], value_set=found["trial_id"].combine_chunks())
    failed = pc.equal(trials["outcome"], pa.scalar(Outcome.FAILED.value))
    cost = pc.coalesce(found["cost_usd"].combine_chunks().take(at), trials["cost_usd"])
    cost = pc.if_else(failed, pa.scalar(0.0), cost)
    return trials.set_column(trials.schema.get_field_index("cost_usd"), "cost_usd", cost)


def _asked_by(rows: pa.Table, ids: Sequence[pa.StringArray]) -> pa.Table:
    """Return the rows of these trials, each with the number of the ids that it is among: `asking`."""
    of = pa.array((number for number, some in enumerate(ids) for _ in some), pa.int32())
    at = pc.index_in(rows["trial_id"], value_set=pa.chunked_array(ids, pa.string()))
    return (
        rows.drop_columns(["trial_id", "reused_from"])
        .append_column("asking", of.take(at))
        .filter(pc.is_valid(at))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one finished trial used; None where nobody said."""

    replied: bool
    input_tokens: int | None
    output_tokens: int | None
    latency_s: float | None
    cost_usd: float | None


Trials = list[Measured]


def seen_of(cells: Mapping[Cell, Trials]) -> SeenUse:
    """Return what the trials of one way of asking tell."""
    every = [one for trials in cells.values() for one in trials]
    costs = [one.cost_usd for one in every if one.cost_usd is not None]
    some = every if len(every) <= POINTS else random.Random(0).sample(every, POINTS)  # noqa: S311  repeatable
    return SeenUse(
        cells={cell: _seen_cell(trials) for cell, trials in cells.items()},
        input_tokens=sum(one.input_tokens or 0 for one in every),
        output_tokens=sum(one.output_tokens or 0 for one in every),
        cost_usd=sum(costs) if len(costs) == len(every) else None,
        latency=StraightLine.through(
            (1.0, one.output_tokens, one.latency_s)
            for one in some
            if one.replied and one.output_tokens is not None and one.latency_s is not None
        ),
        price=StraightLine.through(
            (one.input_tokens, one.output_tokens, one.cost_usd)
            for one in some
            if one.input_tokens is not None and one.output_tokens is not None and one.cost_usd is not None
        ),
    )


def _seen_cell(trials: Trials) -> SeenCell:
    inputs = [one.input_tokens for one in trials if one.input_tokens is not None]
    outputs = [float(one.output_tokens) for one in trials if one.replied and one.output_tokens is not None]
    if len(outputs) > REMEMBERED:
        outputs = random.Random(0).sample(outputs, REMEMBERED)  # noqa: S311  repeatable
    return SeenCell(
        trials=len(trials),
        replied=sum(one.replied for one in trials),
        input_tokens=sum(inputs) / len(inputs) if inputs else None,
        outputs=tuple(outputs),
    )


def _renamed(cells: pa.Table) -> pa.Table:
    return cells.rename_columns([name.removesuffix("_list") for name in cells.column_names])


def _measured(row: Mapping[str, Any]) -> Iterator[Measured]:
    for outcome, *figures in zip(*(row[name] for name in MEASURED), strict=True):
        told, replied, latency_s, cost_usd = figures
        yield Measured(
            replied=outcome != Outcome.FAILED.value,
            input_tokens=told,
            output_tokens=replied,
            latency_s=latency_s,
            cost_usd=cost_usd,
        )
