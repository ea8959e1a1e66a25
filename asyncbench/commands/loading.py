"""Command that loads models (`load`), and the options of its steps."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from asyncbench.commands.sweep_flags import fill_for_load, sweep_of
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
Duration = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Measure each step so long: 2m. --find makes steps longer until their calls can tell.",
    ),
]
Warmup = Annotated[str | None, typer.Option(metavar="TIME", help="Count no call before: 15s.")]
Drain = Annotated[str | None, typer.Option(metavar="TIME", help="Wait so long for the last answers: 60s.")]
Rest = Annotated[str | None, typer.Option(metavar="TIME", help="Pause so long between two steps: 10s.")]
PastLimits = Annotated[bool, typer.Option("--past-limits", help="Also ask rates above the rpm of a model.")]


class LoadFlags(NamedTuple):
    """Options of a load, as typed."""

    rates: str | None
    find: str | None
    slo: str | None
    arrivals: str | None
    duration: str | None
    warmup: str | None
    drain: str | None
    rest: str | None
    past_limits: bool

    @property
    def typed(self) -> dict[str, str]:
        """The flags that have values, with these."""
        return {name: value for name, value in self._asdict().items() if isinstance(value, str)}

    @property
    def words(self) -> list[str]:
        """They as they are typed."""
        words = [word for name, value in self.typed.items() for word in (f"--{name}", value)]
        return words + ["--past-limits"] * self.past_limits


def loaded_sweep(
    context: typer.Context,
    sweep_file: Path | None,
    flags: LoadFlags,
    *,
    combinable: Collection[str] = (),
    extend: bool = False,
    quiet: bool = False,
) -> "Sweep":
    """Return the sweep of a file with the load that was typed, or the one that flags stand for.

    Raises:
        ConfigError: it is wrong; of the flags that is told first.
    """
    from asyncbench.config.loading import check_keys
    from asyncbench.config.place import Place
    from asyncbench.config.sweep import load_sweep, with_load

    keys = _keys(flags.typed) | ({"past_limits": True} if flags.past_limits else {})
    objectives = keys.get("slo")
    names = {name: f"--{name}" for name in flags.typed} | {"past_limits": "--past-limits"}
    names |= {name: f"--slo {name}" for name in objectives} if isinstance(objectives, dict) else {}
    place = Place(source="command line", flags=names)
    check_keys(keys, place=place)
    wanted = flags.words or context.info_name == "load"
    if sweep_file is None and wanted and (message := fill_for_load(context)) and not quiet:
        typer.echo(f"asyncbench: {message}", err=True)

    def read(sweep: "Path | Sweep") -> "Sweep":
        return with_load(sweep, keys, place=place) if keys else load_sweep(sweep)

    return sweep_of(context, sweep_file, combinable=combinable, read=read, extend=extend)


def load(
    context: typer.Context,
    sweep_file: SweepFile = None,
    rates: Rates = None,
    find: Search = None,
    slo: Slos = None,
    arrivals: Arrivals = None,
    duration: Duration = None,
    warmup: Warmup = None,
    drain: Drain = None,
    rest: Rest = None,
    past_limits: PastLimits = False,
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

    flags = LoadFlags(rates, find, slo, arrivals, duration, warmup, drain, rest, past_limits)
    sweep = loaded_sweep(context, sweep_file, flags, combinable=["out"], quiet=quiet or as_json)
    env = environment_for(sweep, env_file)
    options = RunOptions(
        models=aliases_typed(models),
        budget_usd=budget,
        workers=workers_typed(workers),
        journal=journal,
        load=flags.words if sweep_file is not None else (),
        typed=True,
    )
    summary = awaited(
        run_with_options(sweep, options, env=env, screen=default_screen(quiet=quiet or as_json))
    )
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
