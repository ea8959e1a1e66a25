"""Models under load: load."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from asyncbench.commands.sweep_flags import sweep_of
from asyncbench.commands.terminal import (
    KEYS,
    Budget,
    EnvFile,
    Json,
    Models,
    aliases_typed,
    awaited,
    environment_of,
)
from asyncbench.errors import ConfigError

SweepFile = Annotated[Path | None, typer.Argument(metavar="SWEEP", help="The sweep file, in YAML.")]
Rates = Annotated[
    str | None, typer.Option(metavar="X,…", help="Hold these rates, in calls a second, one after the other.")
]
Search = Annotated[
    str | None,
    typer.Option(metavar="LOW:HIGH", help="Find the highest rate between these that keeps the SLO."),
]
Slos = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=X,…", help="Promise this, in seconds: ttft=0.5,tpot=0.05,latency=20,share=0.95."
    ),
]
Arrivals = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Send calls constant, poisson, gamma or closed.")
]
Time = str | None


def load(
    context: typer.Context,
    sweep_file: SweepFile = None,
    rates: Rates = None,
    find: Search = None,
    slo: Slos = None,
    arrivals: Arrivals = None,
    duration: Annotated[Time, typer.Option(metavar="TIME", help="Measure each step so long: 2m.")] = None,
    warmup: Annotated[Time, typer.Option(metavar="TIME", help="Count no call before: 15s.")] = None,
    drain: Annotated[
        Time, typer.Option(metavar="TIME", help="Wait so long for the last answers: 60s.")
    ] = None,
    rest: Annotated[Time, typer.Option(metavar="TIME", help="Pause so long between two steps: 10s.")] = None,
    past_limits: Annotated[
        bool, typer.Option("--past-limits", help="Also ask rates above the rpm of a model.")
    ] = False,
    models: Models = None,
    budget: Budget = None,
    env_file: EnvFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Measure what an API really delivers, rate by rate.

    asyncbench load configs/load.yaml --budget 5

    asyncbench load configs/overnight.yaml --rates 1,2,4,8 --duration 60s

    Each step of the sweep's `load` holds a rate for a time. A call is sent when it is due, whatever is in
    flight, and its latency counts from then. No call is tried again. Every call is a graded row.

    Options replace keys of `load`, also beside a sweep file without it. After Ctrl-C or a spent budget, type
    the command again: it measures what is left, and an incomplete step as a whole.
    """
    from asyncbench.config import Place, with_load
    from asyncbench.run import RunOptions, default_screen, run_as_told

    times = {"duration": duration, "warmup": warmup, "drain": drain, "rest": rest}
    said = {"rates": rates, "find": find, "slo": slo, "arrivals": arrivals} | times
    typed = {name: words for name, words in said.items() if words is not None}
    keys = _keys(typed) | ({"past_limits": True} if past_limits else {})
    sweep = sweep_of(context, sweep_file)
    if keys:
        place = Place(source="command line", flags={name: f"--{name}" for name in typed})
        sweep = with_load(sweep, keys, place=place)
    env = environment_of(env_file, sweep.models)
    KEYS.add((sweep.notify.address(env) if sweep.notify else None) or "")
    words = [word for name, value in typed.items() for word in (f"--{name}", value)]
    words += ["--past-limits"] * past_limits
    options = RunOptions(
        models=aliases_typed(models),
        budget_usd=budget,
        load=words if sweep_file is not None else (),
        typed=True,
    )
    summary = awaited(run_as_told(sweep, options, env=env, screen=default_screen(quiet=quiet or as_json)))
    typer.echo(summary.as_json() if as_json else summary.as_text())
    raise typer.Exit(summary.exit)


def _keys(typed: Mapping[str, str]) -> dict[str, object]:
    """Return what the sweep file would hold for what was typed."""
    keys: dict[str, object] = dict(typed)
    if (rates := typed.get("rates")) is not None:
        keys["rates"] = [_number("rates", word, rates) for word in rates.split(",")]
    if (find := typed.get("find")) is not None:
        low, colon, high = find.partition(":")
        if not colon:
            raise ConfigError(f"--find {find}: not two rates. Type the lowest and the highest, such as 1:200")
        keys["find"] = {"lowest": _number("find", low, find), "highest": _number("find", high, find)}
    if (slo := typed.get("slo")) is not None:
        pairs = [part.partition("=") for part in slo.split(",")]
        keys["slo"] = {name.strip(): _number("slo", value, slo) for name, _, value in pairs}
    return keys


def _number(name: str, word: str, typed: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ConfigError(f"--{name} {typed}: {word!r} is not a number") from None
