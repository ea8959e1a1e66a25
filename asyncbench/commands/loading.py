"""Command that loads models (`load`), and the sweeps that options of steps make."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asyncbench.commands.sweep_flags import fill_for_load, sweep_of
from asyncbench.commands.sweep_options import flag, steps_typed
from asyncbench.commands.terminal import (
    Budget,
    EnvFile,
    Journal,
    Json,
    Models,
    SweepFile,
    Workers,
    aliases_typed,
    awaited,
    environment_for,
    workers_typed,
)
from asyncbench.errors import ConfigError

if TYPE_CHECKING:
    from asyncbench.config.sweep import Sweep


def loaded_sweep(
    context: typer.Context,
    sweep_file: Path | None,
    *,
    combinable: Collection[str] = (),
    extend: bool = False,
    quiet: bool = False,
) -> "Sweep":
    """Return the sweep of a file with the load that was typed, or the one that flags stand for.

    Raises:
        ConfigError: it is wrong; of the flags that is told first.
    """
    from asyncbench.config.entry import Place
    from asyncbench.config.loading import check_keys
    from asyncbench.config.sweep import load_sweep, with_load

    keys = _keys(steps_typed(context))
    objectives = keys.get("slo")
    names = {name: flag(name) for name in keys}
    names |= {name: f"--slo {name}" for name in objectives} if isinstance(objectives, dict) else {}
    place = Place(source="command line", flags=names)
    check_keys(keys, place=place)
    wanted = keys or context.info_name == "load"
    if sweep_file is None and wanted and (message := fill_for_load(context)) and not quiet:
        typer.echo(f"asyncbench: {message}", err=True)

    def read(sweep: "Path | Sweep") -> "Sweep":
        return with_load(sweep, keys, place=place) if keys else load_sweep(sweep)

    return sweep_of(context, sweep_file, combinable=combinable, read=read, extend=extend)


def load(
    context: typer.Context,
    sweep_file: SweepFile = None,
    models: Models = None,
    budget: Budget = None,
    workers: Workers = None,
    journal: Journal = None,
    env_file: EnvFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Measure what an API really delivers, rate by rate.

    asyncbench load configs/load.yaml --budget 5

    asyncbench load configs/overnight.yaml --rates 1,2,4,8 --duration 60s

    asyncbench load --model openai/gpt-5-mini --rates 1,2,4,8 --duration 60s

    Each step of the sweep's `load` holds a rate for a time. A call is sent when it is due, whatever is in
    flight, and its latency counts from then. No call is tried again. Every call is a graded row.

    Options replace keys of `load`, also beside a sweep file without it. Without a file, --suite is
    llm_arithmetic and --out is results/load-MODEL. After Ctrl-C or a spent budget, type
    the command again: it measures what is left, and an incomplete step as a whole.
    """
    from asyncbench.run.options import RunOptions
    from asyncbench.run.progress import default_screen
    from asyncbench.run.sweep_run import run_with_options

    sweep = loaded_sweep(context, sweep_file, combinable=["out"], quiet=quiet or as_json)
    env = environment_for(sweep, env_file)
    options = RunOptions(
        models=aliases_typed(models),
        budget_usd=budget,
        workers=workers_typed(workers),
        journal=journal,
        load=_words(steps_typed(context)) if sweep_file is not None else (),
        typed=True,
    )
    summary = awaited(
        run_with_options(sweep, options, env=env, screen=default_screen(quiet=quiet or as_json))
    )
    typer.echo(summary.as_json() if as_json else summary.as_text())
    raise typer.Exit(summary.exit)


def _words(typed: Mapping[str, str | bool]) -> list[str]:
    """Return options as they are typed."""
    return [
        word
        for name, value in typed.items()
        for word in ([flag(name)] if value is True else [flag(name), str(value)])
    ]


def _keys(typed: Mapping[str, str | bool]) -> dict[str, object]:
    """Return what the sweep file would hold for what was typed."""
    keys: dict[str, object] = dict(typed)
    if isinstance(rates := typed.get("rates"), str):
        keys["rates"] = [_number("rates", word, rates) for word in rates.split(",")]
    if isinstance(find := typed.get("find"), str):
        low, colon, high = find.partition(":")
        if not colon:
            raise ConfigError(f"--find {find}: not two rates. Type the lowest and the highest, such as 1:200")
        keys["find"] = {"lowest": _number("find", low, find), "highest": _number("find", high, find)}
    if isinstance(slo := typed.get("slo"), str):
        pairs = [part.partition("=") for part in slo.split(",")]
        keys["slo"] = {name.strip(): _number("slo", value, slo) for name, _, value in pairs}
    return keys


def _number(name: str, word: str, typed: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ConfigError(f"--{name} {typed}: {word!r} is not a number") from None
