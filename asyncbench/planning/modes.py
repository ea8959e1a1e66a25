"""Modes of models: those of `mode: auto` go into batches where possible; some need a server to start."""

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from asyncbench.config.run_entries import seconds_left
from asyncbench.config.sweep import Sweep
from asyncbench.errors import ConfigError
from asyncbench.planning.budget_bounds import priced
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.model_rules import batch_complaint
from asyncbench.records import AUTO, BATCH, REALTIME, Model, Serve


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


def without_batch_price(models: Iterable[Model]) -> str | None:
    """Return whose batches count at the full price, since the sweep's price says no other; None: nobody's."""
    full = [
        model.alias
        for model in models
        if model.mode == BATCH and model.price and model.price.input and model.price.batch is None
    ]
    if not full:
        return None
    return (
        f"the batches of {', '.join(full)} count at the full price. If they cost less, say so: "
        "`price: {input: …, output: …, batch: 0.5}` in the sweep, for half of it."
    )


def has_mode_auto(sweep: Sweep, alias: str) -> bool:
    """Return whether a model of a sweep is asked in batches only as far as there is time."""
    return any(model.mode == AUTO for model in sweep.models if model.alias == alias)


def within_s(sweep: Sweep) -> float | None:
    """Return the seconds to the deadline of a run that begins now, 0: it has passed; None: it has none."""
    if sweep.deadline is None:
        return None
    try:
        return seconds_left(sweep.deadline, datetime.now().astimezone())
    except ConfigError:
        return 0.0


def by_server(models: Iterable[Model]) -> Mapping[Serve, Sequence[str]]:
    """Return the aliases of the models that each server answers, of those that a run starts."""
    aliases: dict[Serve, list[str]] = {}
    for model in models:
        if model.serve is not None:
            aliases.setdefault(model.serve, []).append(model.alias)
    return aliases


def check_servers(models: Iterable[Model]) -> None:
    """Refuse servers that cannot be started, or not side by side.

    Raises:
        ConfigError: no program is there, or two are to listen at one address.
    """
    servers = by_server(models)
    for serve, aliases in servers.items():
        if shutil.which(serve.command[0]) is None:
            raise ConfigError(
                f"{', '.join(aliases)}: `serve.command` starts {Path(serve.command[0]).name!r}, which is not "
                "a program on this computer. Install it, or write its whole path"
            )
    places = Counter(urlsplit(serve.ready).netloc for serve in servers)
    for place in (place for place, times in places.items() if times > 1):
        named = [
            ", ".join(group) for serve, group in servers.items() if urlsplit(serve.ready).netloc == place
        ]
        raise ConfigError(
            f"{' and '.join(named)} have different servers at {place}. Give them different ports, or run one "
            "after the other with --models"
        )
