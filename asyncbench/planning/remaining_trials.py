"""What of a sweep is still to be asked, counted by shape: streamed, never held."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from asyncbench.config import Sweep
from asyncbench.planning.finished import ENOUGH, SeenUse, Way
from asyncbench.problems import generate
from asyncbench.prompting import worded_size
from asyncbench.records import Condition, Model, Trial
from asyncbench.sweeps import (
    AskedSet,
    Cell,
    asked_by_model,
    cell_of,
    check_conditions,
    has_mode_auto,
    open_sources,
    places_of,
    sources_of,
    trials_of,
)


class Shape(NamedTuple):
    """All that a trial's cost depends on: many thousand trials have a few thousand shapes."""

    cell: Cell
    condition: str
    question: int  # characters, with all that the suite says beside it
    most: int  # tokens of them, as a budget counts
    answer: int  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What of one model's trials is still to be asked."""

    shapes: Counter[Shape]
    finished: Counter[tuple[str, Cell]]  # trials, by condition and cell
    characters: Counter[tuple[str, Cell]]  # of their questions
    ids: Mapping[str, pa.StringArray]  # of the finished, by condition
    longest: Mapping[str, Trial]  # of the others, that of each condition

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

    Trials that were skipped, for enough was known of their cells, are neither left nor finished.
    """
    by_model: dict[str, Left] = {}
    fresh: dict[object, Left] = {}
    for model in models:
        names = tuple(condition.name for condition in sweep.conditions_of(model.alias))
        left = fresh.get(alike := (places_of(sweep, model), names))
        if left is None:
            needed = trials_of(sweep, model, sets[model.alias], limit=limit, skip=skipped.__contains__)
            left = _left_of(needed, finished)
        if not finished:
            fresh[alike] = left
        by_model[model.alias] = left
    return by_model


def _left_of(every: Iterable[Trial], finished: Collection[str]) -> Left:
    """Return what is left of trials, without holding them."""
    shapes, closed, characters = Counter[Shape](), Counter[tuple[str, Cell]](), Counter[tuple[str, Cell]]()
    ids, longest = defaultdict[str, list[str]](list), dict[str, tuple[int, Trial]]()
    for trial in every:
        problem, name = trial.problem, trial.condition.name
        cell, (question, most) = cell_of(problem), worded_size(problem, trial.condition)
        if trial.trial_id in finished:
            closed[name, cell] += 1
            characters[name, cell] += question
            ids[name].append(trial.trial_id)
            continue
        shapes[Shape(cell, name, question, most, len(problem.expected))] += 1
        if name not in longest or question > longest[name][0]:
            longest[name] = question, trial
    return Left(
        shapes=shapes,
        finished=closed,
        characters=characters,
        ids={name: pa.array(some, pa.string()) for name, some in ids.items()},
        longest={name: trial for name, (_, trial) in longest.items()},
    )
