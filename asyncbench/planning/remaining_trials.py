"""What of a sweep is still to be asked, counted by shape: streamed, never held."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from asyncbench.config import ProblemSource, Sweep
from asyncbench.problems import ProblemSet, generate
from asyncbench.prompting import worded_size
from asyncbench.records import Model, Trial
from asyncbench.sweeps import (
    AskedSet,
    Cell,
    asked_by_model,
    cell_of,
    check_conditions,
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


@dataclass(slots=True)
class FinishedCell:
    """Finished trials of a cell under a condition: how many, and the characters of their questions."""

    trials: int = 0
    characters: int = 0


Finished = Mapping[tuple[str, Cell], FinishedCell]  # by condition and cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What of one model's trials is still to be asked."""

    shapes: Counter[Shape]
    finished: Finished = field(default_factory=dict)
    ids: Mapping[str, pa.StringArray] = field(default_factory=dict)  # of the finished, by condition
    longest: Mapping[str, Trial] = field(default_factory=dict)  # of the others, that of each condition

    @property
    def cells(self) -> int:
        """Of how many cells something is left, each condition's apart."""
        return len({(shape.cell, shape.condition) for shape in self.shapes})

    @property
    def done(self) -> int:
        """How many trials are finished."""
        return sum(one.trials for one in self.finished.values())

    @property
    def trials(self) -> int:
        """How many trials are left."""
        return self.shapes.total()


def sets_of(sweep: Sweep, models: Sequence[Model], made: Path) -> dict[str, tuple[AskedSet, ...]]:
    """Return what each model is asked, by alias; sets that are not files yet are generated into `made`.

    Raises:
        ConfigError, ProblemSetError: what would keep `run` from starting.
    """
    files = open_sources(sweep, models)
    check_conditions(sweep, models, files)
    sources = sources_of(sweep, models)
    placed = {
        source.place: files.get(source.place) or _generated(source, made / f"{source.suite}-{i}.parquet")
        for i, source in enumerate(sources)
    }
    return asked_by_model(sweep, models, placed)


def _generated(source: ProblemSource, out: Path) -> ProblemSet:
    made = generate(str(source.suite), out, seed=source.seed, workers=1, **source.parameters)
    return replace(made, name=str(source.suite))


def left_by_model(
    sweep: Sweep,
    models: Sequence[Model],
    sets: Mapping[str, tuple[AskedSet, ...]],
    *,
    limit: int | None,
    finished: Collection[str],
    skipped: Collection[str] = (),
) -> Iterator[tuple[str, Left]]:
    """Yield (alias, what is left of it); where nothing is finished, equal problems are counted once.

    Trials that were skipped, for enough was known of their cells, are neither left nor finished.
    """
    fresh: dict[tuple[str, ...], Left] = {}
    for model in models:
        places = places_of(sweep, model)
        left = fresh.get(places)
        if left is None:
            needed = trials_of(sweep, model, sets[model.alias], limit=limit, skip=skipped.__contains__)
            left = left_of(needed, finished)
        if not finished:
            fresh[places] = left
        yield model.alias, left


def left_of(every: Iterable[Trial], finished: Collection[str]) -> Left:
    """Return what is left of trials, without holding them."""
    shapes, closed = Counter[Shape](), defaultdict[tuple[str, Cell], FinishedCell](FinishedCell)
    ids, longest = defaultdict[str, list[str]](list), dict[str, tuple[int, Trial]]()
    for trial in every:
        problem, name = trial.problem, trial.condition.name
        cell, (question, most) = cell_of(problem), worded_size(problem, trial.condition)
        if trial.trial_id in finished:
            one = closed[name, cell]
            one.trials, one.characters = one.trials + 1, one.characters + question
            ids[name].append(trial.trial_id)
            continue
        shapes[Shape(cell, name, question, most, len(problem.expected))] += 1
        if name not in longest or question > longest[name][0]:
            longest[name] = question, trial
    return Left(
        shapes=shapes,
        finished=dict(closed),
        ids={name: pa.array(some, pa.string()) for name, some in ids.items()},
        longest={name: trial for name, (_, trial) in longest.items()},
    )
