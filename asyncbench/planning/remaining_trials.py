"""What of a sweep is still to be asked, counted by shape: streamed, never held."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute

from asyncbench.config import Sweep
from asyncbench.planning.finished import ENOUGH, SeenUse, Way
from asyncbench.planning.shapes import Shape, ShapedProblems, shaped_problems
from asyncbench.problems import generate
from asyncbench.records import Condition, Model
from asyncbench.store import IdColumn, IdSet, strung
from asyncbench.sweeps import (
    AskedSet,
    Cell,
    Slot,
    asked_by_model,
    check_conditions,
    has_mode_auto,
    ids_of,
    looked_up,
    open_sources,
    places_of,
    sources_of,
)

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What of one model's trials is still to be asked."""

    shapes: Counter[Shape]
    finished: Counter[tuple[str, Cell]]  # trials, by condition and cell
    characters: Counter[tuple[str, Cell]]  # of their questions
    ids: Mapping[str, IdColumn]  # of the finished, by condition
    longest: Mapping[str, tuple[AskedSet, int]]  # of the others: a set and which of its problems

    @property
    def cells(self) -> int:
        """Of how many cells something is left, each condition's apart."""
        return len({(shape.cell, shape.condition) for shape in self.shapes})


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """What is left of a sweep, and what its finished trials tell of it."""

    sweep: Sweep
    models: Sequence[Model]  # those that are asked
    left: Mapping[str, Left]  # by alias
    seen: Mapping[Way, SeenUse]
    at_s: float  # when it will be asked, for prices: UTC, seconds since 1970
    ends_s: float | None = None  # until the deadline; None: there is none

    def switches_s(self, model: Model) -> float | None:
        """Return the seconds until the deadline for which a model leaves batches; None: it does not."""
        return self.ends_s if has_mode_auto(self.sweep, model.alias) else None

    def conditions_of(self, model: Model) -> dict[str, Condition]:
        """Return the conditions of a model by their names."""
        return {condition.name: condition for condition in self.sweep.conditions_of(model.alias)}

    def ways_left(self, model: Model) -> list[Way]:
        """Return the ways in which a model is still asked."""
        shapes = self.left[model.alias].shapes
        return sorted({Way(model.alias, shape.condition, shape.cell.suite) for shape in shapes})

    def uses_of(self, model: Model) -> list[SeenUse]:
        """Return what its finished trials used, for each way of asking."""
        return [use for way, use in self.seen.items() if way.model == model.alias]

    def is_known(self, way: Way) -> bool:
        """Whether enough replies were seen to forecast those to come."""
        return way in self.seen and self.seen[way].replies >= ENOUGH


def sets_of(sweep: Sweep, models: Sequence[Model], made: Path) -> dict[str, tuple[AskedSet, ...]]:
    """Return what each model is asked, by alias; sets that are not files yet are generated into `made`.

    Raises:
        ConfigError, ProblemSetError: what would keep `run` from starting.
    """
    files = open_sources(sweep, models)
    check_conditions(sweep, models, files)
    for i, source in enumerate(sources_of(sweep, models)):
        if source.place not in files:
            out = made / f"{source.suite}-{i}.parquet"
            problems = generate(str(source.suite), out, seed=source.seed, workers=1, **source.parameters)
            files[source.place] = replace(problems, name=str(source.suite))
    return asked_by_model(sweep, models, files)


def left_by_model(
    sweep: Sweep,
    models: Sequence[Model],
    sets: Mapping[str, tuple[AskedSet, ...]],
    *,
    limit: int | None,
    finished: Collection[str],
    skipped: Collection[str] = (),
) -> dict[str, Left]:
    """Return what is left, by alias; where nothing is finished, equal problems are counted once.

    Trials that were skipped, for enough was known of their cells, are neither left nor finished. No id is
    made where nothing is finished or skipped.
    """
    closed = _closed_slots(sweep, models, sets, limit, IdSet.of(finished), IdSet.of(skipped))
    shaped, counted = dict[object, Mapping[Slot, ShapedProblems]](), dict[object, Left]()
    by_model = dict[str, Left]()
    for model in models:
        conditions, alias = sweep.conditions_of(model.alias), model.alias
        alike = (places_of(sweep, model), tuple(condition.name for condition in conditions))
        if alike not in shaped:
            shaped[alike] = shaped_problems(conditions, sets[alias], sweep.repeats, limit=limit)
        one = alias if closed else alike
        if one not in counted:
            counted[one] = _left_of(shaped[alike], closed.get(alias, {}))
        by_model[alias] = counted[one]
    return by_model


class _ClosedSlot(NamedTuple):
    """What of the trials of a slot is finished, and what is neither that nor skipped."""

    ids: IdColumn  # of the finished
    finished: IdColumn  # of booleans, one for each problem
    left: IdColumn


def _closed_slots(
    sweep: Sweep,
    models: Sequence[Model],
    sets: Mapping[str, tuple[AskedSet, ...]],
    limit: int | None,
    finished: IdSet,
    skipped: IdSet,
) -> dict[str, dict[Slot, _ClosedSlot]]:
    """Return what is finished or skipped, by alias; empty where nothing is."""
    if not finished and not skipped:
        return {}
    ids = {model.alias: ids_of(sweep, model, sets[model.alias], limit=limit) for model in models}
    found, passed = looked_up(ids.items(), finished), looked_up(ids.items(), skipped)
    closed = dict[str, dict[Slot, _ClosedSlot]]()
    for alias in found:
        of_model = closed[alias] = dict[Slot, _ClosedSlot]()
        for slot, column in ids.pop(alias).items():
            needed = pc.invert(passed[alias][slot])
            done = pc.and_(found[alias][slot], needed)
            kept = column if pc.all(done).as_py() else column.filter(done)
            of_model[slot] = _ClosedSlot(kept, done, pc.and_(needed, pc.invert(done)))
    return closed


def _left_of(shaped: Mapping[Slot, ShapedProblems], closed: Mapping[Slot, _ClosedSlot]) -> Left:
    """Return what is left of a model's trials, of which some are `closed`, or none."""
    first: dict[Shape, tuple[object, ...]] = {}  # where the first trial stands in the order of all
    shapes, finished, characters = (
        Counter[Shape](),
        Counter[tuple[str, Cell]](),
        Counter[tuple[str, Cell]](),
    )
    ids = defaultdict[str, list[IdColumn]](list)
    at = dict[Shape, tuple[AskedSet, int]]()
    for number, (slot, problems) in enumerate(shaped.items()):
        left = pc.is_valid(problems.numbers)
        if known := closed.get(slot):
            for shape, count, _ in problems.counted(known.finished):
                finished[slot.condition, shape.cell] += count
                characters[slot.condition, shape.cell] += count * shape.question
            ids[slot.condition].append(known.ids)
            left = pc.and_(left, known.left)
        for shape, count, row in problems.counted(left):
            shapes[shape] += count
            place = (slot.repeat, (row + 0.5) / problems.asked.rows, slot.set_number, number)
            if shape not in first or place < first[shape]:
                first[shape], at[shape] = place, (problems.asked, row)
    ordered = sorted(shapes, key=first.__getitem__)  # as the trials are asked: sums of dollars stay the same
    longest = dict[str, Shape]()
    for shape in ordered:
        if shape.condition not in longest or shape.question > longest[shape.condition].question:
            longest[shape.condition] = shape
    return Left(
        shapes=Counter({shape: shapes[shape] for shape in ordered}),
        finished=finished,
        characters=characters,
        ids={name: strung(columns) for name, columns in ids.items() if any(map(len, columns))},
        longest={name: at[shape] for name, shape in longest.items()},
    )
