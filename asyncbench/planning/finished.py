"""Tokens and cost of the finished trials of a results folder, by way of asking and by cell."""

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import mul
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute

from asyncbench.planning.records import Needs
from asyncbench.planning.trials import CELL, numbered
from asyncbench.records import Cell, Outcome
from asyncbench.store.catalog import steady, together
from asyncbench.store.id_set import IdColumn, IdSet, strung
from asyncbench.store.snapshot import MANY_ROWS, Snapshot

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

TELLING_REPLIES: Final = 2  # replies, before anything can be said
REMEMBERED: Final = 64  # replies of a cell: more tell little more
POINTS: Final = 5_000  # trials of a group, to learn what a token takes

_SAME: Final = ("input_tokens", "output_tokens")  # of a trial and of the call that gave its answer
_USED: Final = (*_SAME, "reused_from", "attempts", "latency_s", "cost_usd")
_OF_TRIALS: Final = ("trial_id", "model", *CELL, "outcome", *_USED)
_OF_CALLS: Final = ("trial_id", "attempt", "status", "cost_usd", *_SAME)
_WORDS: Final = ("model", *CELL[:-1], "reused_from", "outcome")  # columns of few different texts


class TrialGroup(NamedTuple):
    """Trials that are asked alike: of one model, under one condition, and of one suite."""

    model: str  # the alias
    condition: str
    suite: str


class Measured(NamedTuple):
    """The usage of one finished trial; None where it is unknown."""

    replied: bool
    input_tokens: int | None
    output_tokens: int | None
    latency_s: float | None
    cost_usd: float | None


class StraightLine(NamedTuple):
    """What a piece of either of two kinds takes, never less than nothing: a call and a token, in seconds."""

    first: float
    second: float
    error: float  # of the mean of all points, as a share of it: one standard deviation

    @classmethod
    def through(cls, points: Iterable[tuple[float, float, float]]) -> Self | None:
        """Return the least squares fit, which keeps the sum of all points; None where nothing tells.

        Args:
            points: so many pieces of a kind, of the other, and what they took.
        """
        rows = list(points)
        xs, ys, zs = zip(*rows, strict=True) if rows else ((), (), ())

        # The two slopes; where one would be below zero, the other explains it all.
        xx, yy, xy = sum(map(mul, xs, xs)), sum(map(mul, ys, ys)), sum(map(mul, xs, ys))
        xz, yz = sum(map(mul, xs, zs)), sum(map(mul, ys, zs))
        determinant = xx * yy - xy * xy
        first, second = (xz / xx, 0.0) if xx else (0.0, yz / yy if yy else 0.0)
        if determinant > 1e-9 * xx * yy:
            both = (xz * yy - yz * xy) / determinant, (yz * xx - xz * xy) / determinant
            if min(both) >= 0:
                first, second = both
            elif both[0] < 0 and yy:
                first, second = 0.0, yz / yy

        # They are scaled to keep the sum of all points.
        fitted = sum([first * x + second * y for x, y in zip(xs, ys, strict=True)])
        whole = sum(zs)
        if not rows or (whole > 0 and fitted <= 0):
            return None
        scale = whole / fitted if fitted > 0 else 0.0
        first, second = first * scale, second * scale
        squares = sum([(z - first * x - second * y) ** 2 for x, y, z in rows])
        error = math.sqrt(squares / max(len(rows) - 2, 1) * len(rows)) / whole if whole > 0 else 0.0
        return cls(first, second, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCell:
    """The trials of one cell that were asked alike."""

    trials: int
    replied: int
    input_tokens: float | None  # mean; None: no provider said
    outputs: tuple[float, ...]  # tokens of replies, at most `REMEMBERED`; of a cut one, what it was cut at


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenUse:
    """The usage of the trials that were asked alike."""

    cells: Mapping[Cell, SeenCell]
    used: Needs  # without seconds and batches; dollars are those of the calls that gave the answers
    latency: StraightLine | None = None  # seconds of a call, and of a token of its reply
    price: StraightLine | None = None  # USD of a token sent, and of one received, as was billed

    @property
    def replies(self) -> int:
        """The number of replies whose length is known."""
        return sum(len(cell.outputs) for cell in self.cells.values())

    @property
    def mean_input(self) -> float | None:
        """Tokens of a prompt; None where no provider said."""
        cells = [
            (cell.trials, cell.input_tokens) for cell in self.cells.values() if cell.input_tokens is not None
        ]
        return sum(n * tokens for n, tokens in cells) / sum(n for n, _ in cells) if cells else None

    @property
    def mean_output(self) -> float | None:
        """Tokens of a reply; None where no provider said."""
        return sum(sum(cell.outputs) for cell in self.cells.values()) / self.replies if self.replies else None

    @property
    def longest_call_s(self) -> float:
        """Seconds of the longest call; 0 where no trial tells."""
        longest = max((length for cell in self.cells.values() for length in cell.outputs), default=0.0)
        return 0.0 if self.latency is None else self.latency.first + self.latency.second * longest


def seen_in(folder: Path, finished: Mapping[tuple[str, str], IdColumn]) -> Mapping[TrialGroup, SeenUse]:
    """Return the use of finished trials in a results folder, by the way they were asked.

    `finished`: the ids of the trials that count, by alias and condition. The folder may hold others of that
    model, of problems or parameters that the sweep had before.

    Raises:
        StoreError: the folder cannot be read.
    """
    rows, cells = steady(folder, lambda seen: _rows(seen, finished))
    pa.default_memory_pool().release_unused()  # to the system: reading took far more
    # without threads: the order of rows decides what is drawn, and two plans of a folder shall say the same
    groups = rows.group_by(["asking", "cell"], use_threads=False)
    grouped, askings = groups.aggregate([(name, "list") for name in Measured._fields]), list(finished)
    trials_by_group = dict[TrialGroup, dict[Cell, pa.Table]]()
    for i, row in enumerate(grouped.select(["asking", "cell"]).to_pylist()):
        cell, (alias, condition) = cells[row["cell"]], askings[row["asking"]]
        columns: dict[str, Any] = {name: grouped[f"{name}_list"][i] for name in Measured._fields}
        used = pa.table({name: column.values for name, column in columns.items()})
        trials_by_group.setdefault(TrialGroup(alias, condition, cell.suite), {})[cell] = used
    return {group: seen_of(trials) for group, trials in trials_by_group.items()}


def _rows(seen: Snapshot, finished: Mapping[tuple[str, str], IdColumn]) -> tuple[pa.Table, Sequence[Cell]]:
    """Return the use of finished trials, with the numbers of their group and cell, and the cells."""
    by_model, askings = dict[str, list[IdColumn]](), list[Any]()
    for number, ((alias, _), ids) in enumerate(finished.items()):  # one model's after the other's
        by_model.setdefault(alias, []).append(ids)
        askings.append(pa.repeat(pa.scalar(number, pa.int32()), len(ids)))
    wanted = IdSet.join_models({alias: strung(columns) for alias, columns in by_model.items()})
    cells, tables = dict[Cell, int](), list[pa.Table]()

    def ids_by_model() -> Iterator[tuple[str, IdColumn]]:
        """Yield the ids in the folder, and keep beside them what their trials used, with their cells."""
        batches = seen.batches("trials", _OF_TRIALS, rows=MANY_ROWS, coded=_WORDS)
        for alias, model_batches in groupby(
            batches, lambda batch: str(batch["model"][0])
        ):  # a part has but one
            trials = pa.Table.from_batches(model_batches).unify_dictionaries()
            number, firsts = numbered(trials, CELL)
            cell_numbers = [cells.setdefault(Cell(**row), len(cells)) for row in firsts.to_pylist()]
            columns: dict[str, Any] = {name: trials[name] for name in _USED}
            columns["replied"] = pc.not_equal(trials["outcome"], pa.scalar(Outcome.FAILED.value))
            columns["cell"] = pa.array(cell_numbers, pa.int32()).take(number)
            tables.append(pa.table(columns))
            yield alias, trials["trial_id"]

    chunks = [chunk for indices in wanted.places_each(ids_by_model()) for chunk in indices.chunks]
    index: IdColumn = pa.chunked_array(chunks, pa.int32())
    rows = pa.concat_tables(tables).append_column("trial_id", index)
    rows = rows.filter(pc.is_valid(index)) if index.null_count else rows
    # A failed trial costs a forecast nothing; one that was taken over costs what it says.
    cost = pc.if_else(rows["replied"], _costs(seen, rows, wanted), pa.scalar(0.0))
    asking = pa.chunked_array(askings, pa.int32()).take(rows["trial_id"])
    used = {name: rows[name] for name in ("cell", "replied", *_SAME, "latency_s")}
    return pa.table(used | {"asking": asking, "cost_usd": cost}), list(cells)


def _costs(seen: Snapshot, rows: pa.Table, wanted: IdSet) -> Any:  # a column
    """Return the cost of the call behind each answer; after a single call it is the trial's own cost."""
    several = rows.filter(pc.greater(rows["attempts"], 1))
    ids, calls = IdSet(wanted.column.take(several["trial_id"])), list[pa.Table]()
    for attempts in together(seen, "attempts", _OF_CALLS, len(ids)) if ids else ():
        index = ids.places(attempts["trial_id"])
        calls.append(attempts.set_column(0, "trial_id", index).filter(pc.is_valid(index)))
    if not calls:
        return rows["cost_usd"]
    numbers = pa.array(range(len(ids)), pa.int32())
    trials = several.drop_columns("trial_id").append_column("trial_id", numbers)
    answers = cost_of_answers(trials, pa.concat_tables(calls))
    trial_ids = several["trial_id"].take(answers["trial_id"]).combine_chunks()
    cost = answers["cost_usd"].combine_chunks().take(pc.index_in(rows["trial_id"], value_set=trial_ids))
    return pc.coalesce(cost, rows["cost_usd"])


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
    if pc.count_distinct(rows["trial_id"]).as_py() == len(rows):
        return rows.select(["trial_id", "cost_usd"])
    rows = rows.append_column("same", pc.cast(same, pa.int8()))
    rows = rows.sort_by([("same", "ascending"), ("attempt", "ascending")])
    groups = rows.group_by("trial_id", use_threads=False)  # the only way in which the order of rows counts
    last = groups.aggregate([("cost_usd", "last", pc.ScalarAggregateOptions(skip_nulls=False))])
    return last.rename_columns(["trial_id", "cost_usd"])


def columns_of(trials: Iterable[Measured]) -> pa.Table:
    """Return the use of trials as the columns that `seen_of` takes."""
    kinds = (pa.bool_(), pa.int32(), pa.int32(), pa.float64(), pa.float64())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*trials, strict=True), kinds, strict=True)]
    return pa.table(columns, names=[*Measured._fields])


def seen_of(cells: Mapping[Cell, pa.Table]) -> SeenUse:
    """Return the use in the trials of a group: for each cell the columns of `Measured`."""
    trials = pa.concat_tables(cells.values())
    sample = trials
    if len(trials) > POINTS:
        sample = trials.take(random.Random(0).sample(range(len(trials)), POINTS))  # noqa: S311  repeatable
    points = list(zip(*(sample[name].to_pylist() for name in Measured._fields), strict=True))

    # a sum of floats depends on their order, which is that of the column
    costs = [usd for usd in trials["cost_usd"].to_pylist() if usd is not None]
    spent_usd = sum(costs, 0.0) if len(costs) == len(trials) else None

    return SeenUse(
        cells={cell: _seen_cell(measured) for cell, measured in cells.items()},
        used=Needs(
            trials=len(trials),
            input_tokens=pc.sum(trials["input_tokens"]).as_py() or 0,
            output_tokens=pc.sum(trials["output_tokens"]).as_py() or 0,
            cost_usd=spent_usd,
        ),
        latency=StraightLine.through(
            (1.0, received, latency_s)
            for replied, _, received, latency_s, _ in points
            if replied and received is not None and latency_s is not None
        ),
        price=StraightLine.through(
            (sent, received, usd)
            for _, sent, received, _, usd in points
            if sent is not None and received is not None and usd is not None
        ),
    )


def _seen_cell(trials: pa.Table) -> SeenCell:
    inputs = pc.drop_null(trials["input_tokens"])
    outputs = trials.filter(pc.and_(trials["replied"], pc.is_valid(trials["output_tokens"])))["output_tokens"]
    if len(outputs) > REMEMBERED:
        outputs = outputs.take(random.Random(0).sample(range(len(outputs)), REMEMBERED))  # noqa: S311  repeatable
    return SeenCell(
        trials=len(trials),
        replied=pc.sum(trials["replied"]).as_py() or 0,
        input_tokens=pc.sum(inputs).as_py() / len(inputs) if len(inputs) else None,
        outputs=tuple(float(tokens) for tokens in outputs.to_pylist() if tokens is not None),
    )
