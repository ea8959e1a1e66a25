"""Options of commands over those of a sweep: sample, budget, mode, journal and number of workers."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Final, get_args

from pydantic import TypeAdapter, ValidationError

from asyncbench.config.entry import Dollars, Mode, quoted
from asyncbench.config.questions import ProblemSource
from asyncbench.config.run_entries import WorkersWanted, workers_from
from asyncbench.config.sweep import Sweep, results_place
from asyncbench.errors import ConfigError
from asyncbench.files import local
from asyncbench.problems.samples import Sample
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.params import batch_complaint

_DOLLARS: Final[TypeAdapter[float]] = TypeAdapter(Dollars)


def replace_budget(sweep: Sweep, usd: float | None, *, place: str, given_as: str = "budget_usd") -> Sweep:
    """Return a sweep with this budget in USD. None keeps its own `budget_usd`.

    Caps of its models and providers stay. `given_as` is what messages call the budget, such as `--budget`.

    Raises:
        ConfigError: it is not what a sweep file may hold.
    """
    if usd is None:
        return sweep
    try:
        return replace(sweep, budget_usd=_DOLLARS.validate_python(usd), budget_name=given_as)
    except ValidationError:
        raise ConfigError(
            f"{place}: {given_as} {usd!r} is not a number of dollars above 0. Give one, such as 5"
        ) from None


def replace_journal(sweep: Sweep, folder: Path | None, *, given_as: str = "journal") -> Sweep:
    """Return a sweep that keeps its copy for a bucket in this local folder. None: where runs do.

    Raises:
        ConfigError: its results go to no bucket.
    """
    if folder is None:
        return sweep
    if sweep.copied_to is None:
        raise ConfigError(
            f"{given_as} {folder}: the results go to {sweep.out}, which is on this machine. Leave it out, or "
            "set `out` to s3://BUCKET/FOLDER"
        )
    return replace(sweep, out=local(folder).absolute())


def replace_mode(
    sweep: Sweep, mode: str | None, *, models: Sequence[str] | None = None, given_as: str = "mode"
) -> Sweep:
    """Return a sweep with this mode for all its models. None keeps their own modes.

    Args:
        sweep: the sweep.
        mode: as a sweep file says it.
        models: the aliases of those models. [all]
        given_as: what messages call the mode, such as `--mode`.

    Raises:
        ConfigError: it is no mode, or a model cannot be asked like this.
    """
    if mode is None:
        return sweep
    if mode not in get_args(Mode):
        raise ConfigError(f"{given_as} {quoted(mode)}: unknown mode. Known: {', '.join(get_args(Mode))}")
    updated = [
        replace(model, mode=mode) if model.alias in (models or (model.alias,)) else model
        for model in sweep.models
    ]
    for model in updated:
        if fault := batch_complaint(model, known_endpoints()[model.provider]):
            raise ConfigError(
                f"{given_as} {mode}: {fault}. {given_as} is for all models that are asked: leave this one "
                "out with --models, or set the `mode` of each model in the sweep instead"
            )
    return replace(sweep, models=tuple(updated))


def replace_out(sweep: Sweep, out: PathLike[str] | str) -> Sweep:
    """Return a sweep whose results go to another folder, or to an address in a bucket."""
    folder, copied_to = results_place(out)
    return replace(sweep, out=folder, copied_to=copied_to)


def replace_sample(sweep: Sweep, sample: Sample | None) -> Sweep:
    """Return a sweep that asks this sample of each of its sets. None keeps its own samples."""
    if sample is None:
        return sweep
    return replace(
        sweep,
        problems=_sampled(sweep.problems, sample),
        own_problems={alias: _sampled(sources, sample) for alias, sources in sweep.own_problems.items()},
    )


def _sampled(sources: tuple[ProblemSource, ...], sample: Sample) -> tuple[ProblemSource, ...]:
    return tuple(replace(source, sample=sample) for source in sources)


def replace_workers(sweep: Sweep, workers: WorkersWanted | None, *, given_as: str = "workers") -> Sweep:
    """Return a sweep whose calls are made by so many processes. None keeps its own number.

    Raises:
        ConfigError: it is not what a sweep file may hold. `given_as` is its name, such as `--workers`.
    """
    return sweep if workers is None else replace(sweep, workers=workers_from(workers, given_as=given_as))
