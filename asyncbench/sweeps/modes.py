"""How models of `mode: auto` are asked: in batches, where there are any and a budget can hold them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from asyncbench.config import Sweep, seconds_left
from asyncbench.errors import ConfigError
from asyncbench.providers import batch_complaint, known_endpoints
from asyncbench.records import AUTO, BATCH, REALTIME, Model
from asyncbench.sweeps.budget_bounds import priced


def in_their_modes(sweep: Sweep, models: Sequence[Model]) -> tuple[Model, ...]:
    """Return models as they are asked: in real time, or in batches."""
    return tuple(
        model
        if model.mode != AUTO
        else replace(model, mode=REALTIME if why_in_real_time(sweep, model) else BATCH)
        for model in models
    )


def why_in_real_time(sweep: Sweep, model: Model) -> str | None:
    """Return why a model whose mode is `auto` is not asked in batches; None: it is."""
    batched = replace(model, mode=BATCH)
    if fault := batch_complaint(batched, known_endpoints()[model.provider]):
        return fault.partition(". ")[0]
    if sweep.budgeted(model) and priced(sweep, model) and not priced(sweep, batched):
        return "no price of its batches is known, and a budget needs one"
    return None


def has_mode_auto(sweep: Sweep, alias: str) -> bool:
    """Whether a model of a sweep is asked in batches only as far as there is time."""
    return any(model.mode == AUTO for model in sweep.models if model.alias == alias)


def within_s(sweep: Sweep) -> float | None:
    """Return the seconds to the deadline of a run that begins now, 0: it has passed; None: it has none."""
    if sweep.deadline is None:
        return None
    try:
        return seconds_left(sweep.deadline, datetime.now().astimezone())
    except ConfigError:
        return 0.0
