"""A load: what its lanes are given, and what is said of it in the end."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from asyncbench.config import Load, Sweep
from asyncbench.engine import AnyLane, Asker
from asyncbench.errors import ConfigError
from asyncbench.load import LoadLane, StepsBefore, listed
from asyncbench.records import Model, RetryPolicy, Trial
from asyncbench.run.state import RunState
from asyncbench.store import is_results_folder, read_attempts, read_steps
from asyncbench.sweeps import trials_of

WITHOUT_END: Final = 10**9  # repeats of the problems: a step takes as many as it needs


def load_of(sweep: Sweep, *, wanted: bool) -> Load | None:
    """Return the load that a run is to be; None: it is an ordinary one.

    Raises:
        ConfigError: the sweep is of the other kind.
    """
    if wanted and sweep.load is None:
        raise ConfigError(f"{sweep.name}: has no `load`. Set it in the sweep file, or type --rates 1,2,4")
    if not wanted and sweep.load is not None:
        raise ConfigError(f"{sweep.name}: has a `load`. Run it with `asyncbench load`, or remove it")
    return sweep.load


def as_loaded(models: Sequence[Model], load: Load | None) -> Sequence[Model]:
    """Return models as a load asks them: each call once, and as many in flight as are due."""
    if load is None:
        return models
    return [
        replace(
            model,
            retry=RetryPolicy(attempts=1),
            limits=replace(model.limits, most=load.max_in_flight),
        )
        for model in models
    ]


def load_lane(run: RunState, asker: Asker, load: Load) -> LoadLane:
    """Return the lane that measures the steps of one model."""
    model = asker.model
    measured = measured_in(run.store.folder, model.alias)

    def trials(step: str) -> Iterator[Trial]:
        return trials_of(
            replace(run.sweep, repeats=WITHOUT_END),
            model,
            run.sets[model.alias],
            limit=run.options.limit,
            model_of=run.room.model_of,
            load=step,
        )

    return LoadLane(
        name=model.alias,
        askers=[asker],
        load=load,
        steps=listed(load, run.sweep.repeats, measured),
        trials=trials,
        say=run.screen.say,
        turn=model.turn,
    )


def measured_in(folder: Path, alias: str) -> StepsBefore:
    """Return the steps of a model that earlier runs began; raises StoreError."""
    if not is_results_folder(folder):
        return StepsBefore()
    results = read_steps(folder, filters=[("model", "==", alias)]).to_pylist()
    calls = read_attempts(folder, ["model", "load"], [("model", "==", alias)])["load"].unique().to_pylist()
    names = {*(name for name in calls if name), *(row["load"] for row in results)}
    return StepsBefore(names=sorted(names), results=results)


def loads_in(lanes: Sequence[AnyLane]) -> list[LoadLane]:
    """Return the lanes of a run that are loads."""
    return [lane for lane in lanes if isinstance(lane, LoadLane)]
