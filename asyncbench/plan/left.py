"""What of a sweep is still to be asked, counted by shape: streamed, never held."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from asyncbench import preflight
from asyncbench.config import ProblemSource, Sweep
from asyncbench.problems import ProblemSet, generate
from asyncbench.prompting import worded_characters
from asyncbench.records import Model, Trial
from asyncbench.sweep import Asked, asked_by_model, places_of, trials


class Shape(NamedTuple):
    """All that a trial's cost depends on: many thousand trials have a few hundred shapes."""

    suite: str
    condition: str
    question: int  # characters, with all that the suite says beside it
    answer: int  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What of one model's trials is still to be asked."""

    done: int
    shapes: Counter[Shape]

    @property
    def trials(self) -> int:
        """How many trials are left."""
        return self.shapes.total()


def sets_of(sweep: Sweep, models: Sequence[Model], made: Path) -> dict[str, tuple[Asked, ...]]:
    """Return what each model is asked, by alias; sets that are not files yet are generated into `made`.

    Raises:
        ConfigError, ProblemSetError: what would keep `run` from starting.
    """
    files = preflight.open_sources(sweep, models)
    preflight.check_conditions(sweep, models, files)
    sources = preflight.sources_of(sweep, models)
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
    sets: Mapping[str, tuple[Asked, ...]],
    *,
    limit: int | None,
    finished: Collection[str],
) -> Iterator[tuple[str, Left]]:
    """Yield (alias, what is left of it); where nothing is finished, equal problems are counted once."""
    fresh: dict[tuple[str, ...], Left] = {}
    for model in models:
        places = places_of(sweep, model)
        left = fresh.get(places)
        if left is None:
            left = left_of(trials(sweep, model, sets[model.alias], limit=limit), finished)
        if not finished:
            fresh[places] = left
        yield model.alias, left


def left_of(every: Iterable[Trial], finished: Collection[str]) -> Left:
    """Return what is left of trials, without holding them."""
    done, shapes = 0, Counter[Shape]()
    for trial in every:
        if trial.trial_id in finished:
            done += 1
        else:
            problem = trial.problem
            size = worded_characters(problem, trial.condition), len(problem.expected)
            shapes[Shape(problem.suite, trial.condition.name, *size)] += 1
    return Left(done=done, shapes=shapes)
