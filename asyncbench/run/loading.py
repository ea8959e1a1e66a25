"""A load: what its lanes are given, and what is said of it in the end."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from asyncbench.config.loading import Find, Load
from asyncbench.config.sweep import Sweep
from asyncbench.engine.asker import Asker
from asyncbench.engine.scheduler import AnyLane
from asyncbench.errors import ConfigError
from asyncbench.lanes.load.open_lane import LoadLane
from asyncbench.lanes.load.resuming import killed_steps, limits_before, steps_before
from asyncbench.lanes.load.searching import RateSearch
from asyncbench.lanes.load.steps import CLOSED_LOOP, listed, to_measure
from asyncbench.planning.asked_alike import asked_by_steps
from asyncbench.planning.trials import trials_of
from asyncbench.records import Model, RetryPolicy, Trial
from asyncbench.run.state import RunState

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
            limits=replace(model.limits, most=load.max_in_flight, concurrency=None),
        )
        for model in models
    ]


def cautions_of_load(load: Load, models: Sequence[Model], written: Sequence[Model]) -> Iterator[str]:
    """Yield what is said of a load before its first call; `written` are models as the sweep has them."""
    for model in written:
        if (attempts := model.retry.attempts) not in (1, RetryPolicy().attempts):
            yield f"{model.alias}: `retry.attempts: {attempts}` does not hold: a load makes each call once"
    fewest = min(model.limits.most_in_flight for model in models)
    if fewest < load.max_in_flight:
        yield (
            f"this system allows {fewest:,} calls in flight to each model, not `max_in_flight` "
            f"({load.max_in_flight:,}): what is due beyond them is dropped. Raise the limit of open files "
            "(`ulimit -Hn`)"
        )
    if load.closed:
        yield CLOSED_LOOP


def load_lane(run: RunState, asker: Asker, load: Load) -> LoadLane:
    """Return the lane that measures the steps of one model."""
    model = asker.model
    folder = run.store.folder
    before = steps_before(folder, model.alias, asked_by_steps(run.sweep, load, model, run.sets[model.alias]))
    for step in killed_steps(folder, model.alias, before):
        asker.keep(step)
    finding = None
    if load.find is not None:
        finding = RateSearch(load=load, find=_within(load.find, model, load, folder), before=before)

    planned = to_measure(load, run.sweep.repeats, before)

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
        steps=listed(planned, before) if finding is None else finding.steps(),
        known=planned if finding is None else None,
        found=None if finding is None else partial(getattr, finding, "text"),
        trials=trials,
        begun=before.calls,
        say=run.screen.say,
        turn=model.turn,
    )


def _within(find: Find, model: Model, load: Load, folder: Path) -> Find:
    """Return a search that ends at a model's limit: above it every further call is refused."""
    rpm = model.limits.rpm or limits_before(folder, model.alias).get("requests")
    if rpm is None or load.past_limits:
        return find
    return replace(find, highest=min(find.highest, max(find.lowest, rpm / 60)))


def loads_in(lanes: Sequence[AnyLane]) -> list[LoadLane]:
    """Return the lanes of a run that are loads."""
    return [lane for lane in lanes if isinstance(lane, LoadLane)]
