"""Sweeps planned, run and looked at while they run: plan, run, status."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asyncbench.commands.terminal import (
    KEYS,
    Budget,
    EnvFile,
    Folder,
    Json,
    Limit,
    Models,
    aliases_typed,
    environment_of,
    harmless,
    interruptible,
)
from asyncbench.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from asyncbench.config import Sweep
    from asyncbench.records import Outcome
    from asyncbench.run import Summary


def plan(
    sweep_file: Annotated[Path, typer.Argument(help="A sweep file (YAML).")],
    limit: Limit = None,
    models: Models = None,
    pilot: Annotated[
        int | None, typer.Option(min=1, help="First ask so many problems of each task and length.")
    ] = None,
    budget: Budget = None,
    deadline: Annotated[str | None, typer.Option(help='When it has to stop: 8h, "07:30".')] = None,
    env_file: EnvFile = None,
    as_json: Json = False,
) -> None:
    """Say what a sweep would cost and how long it would take; only --pilot asks, and keeps the answers.

    asyncbench plan configs/overnight.yaml

    asyncbench plan configs/overnight.yaml --pilot 2 --budget 50

    What its folder holds is taken into account: where trials are finished, the rest is forecast from them,
    with a range. --pilot makes real calls first: they are results like any other, and nothing is asked twice.
    """
    from asyncbench.config import load_sweep
    from asyncbench.planning import bounded_plan, plan as plan_sweep

    sweep = load_sweep(sweep_file)
    meant = bounded_plan(sweep, budget, deadline)  # before a pilot spends anything
    asked = None
    if pilot:
        own = sweep.budget_usd
        lower = budget if own is None or (budget is not None and budget < own) else None
        held = bounded_plan(sweep, None, deadline)
        asked = _piloted(held, pilot, limit, models, lower, env_file, quiet=as_json)
    found = plan_sweep(meant, limit=limit, models=aliases_typed(models))
    if asked is not None:
        from asyncbench.planning import keep_forecast

        try:
            keep_forecast(found, by="pilot")
        except StoreError as error:  # what was asked is kept, and paid for: it is shown all the same
            typer.echo(f"the forecast is not kept: {error}", err=True)
        found = replace(found, pilot=json.loads(asked.as_json()))
        if not as_json:
            typer.echo(f"{asked.as_text()}\n")
    typer.echo(found.as_json() if as_json else found.as_text())
    raise typer.Exit(asked.exit if asked is not None else 0)


def _piloted(
    sweep: "Sweep",
    pilot: int,
    limit: int | None,
    models: str | None,
    budget: float | None,
    env_file: Path | None,
    *,
    quiet: bool,
) -> "Summary":
    """Ask the first problems of each task and length, for at most `budget`, USD."""
    from asyncbench.run import RunOptions, default_screen, run_as_told

    env = environment_of(env_file, sweep.models)
    screen = default_screen(quiet=quiet)
    options = RunOptions(
        pilot=pilot, limit=limit, models=aliases_typed(models), budget_usd=budget, typed=True
    )
    return asyncio.run(run_as_told(sweep, options, env=env, screen=screen))


RetryTokens = Annotated[
    int | None, typer.Option(min=1, help="With --retry truncated: how long those replies may get.")
]
AcceptLoss = Annotated[
    bool, typer.Option("--accept-loss", help="Ask again what is lost of the results folder.")
]


def run(
    sweep_file: Annotated[Path | None, typer.Argument(help="A sweep file (YAML).")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Without a sweep file: provider/model.")] = None,
    problems: Annotated[list[str] | None, typer.Option(help="Without a sweep file: a problem set.")] = None,
    out: Annotated[Path | None, typer.Option(help="Without a sweep file: the results folder.")] = None,
    limit: Limit = None,
    models: Models = None,
    budget: Budget = None,
    retry: Annotated[str | None, typer.Option(help="Ask again what ended so: failed,truncated.")] = None,
    max_tokens: RetryTokens = None,
    reuse: Annotated[Path | None, typer.Option(help="A results folder whose answers are taken over.")] = None,
    ignore: Annotated[str | None, typer.Option(help="With --reuse: max_tokens may differ.")] = None,
    accept_loss: AcceptLoss = False,
    env_file: EnvFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Ask what is unfinished of a sweep.

    asyncbench run configs/overnight.yaml --budget 50

    asyncbench run --model openai/gpt-5-mini --problems data/llm_arithmetic.parquet --out results/first

    asyncbench run configs/overnight.yaml --retry truncated --max-tokens 8000

    asyncbench run configs/overnight.yaml --reuse results/last-week --ignore max_tokens

    --budget takes the place of the sweep's `budget_usd` this time. It is never passed; a higher one goes on.
    --retry takes failed, no_answer, truncated and refused; where the new call fails, the old answer stays.
    --reuse takes over complete answers to what would be asked here; they cost nothing.
    --accept-loss takes parts that are missing or damaged for lost; what their calls cost counts still.
    """
    from asyncbench.run import RunOptions, default_screen, run_as_told

    sweep = _sweep_of(sweep_file, model or [], problems or [], out)
    if sweep_file is None and budget is not None:
        _check_ad_hoc_budget(sweep, budget, model or ())
    env = environment_of(env_file, sweep.models)
    KEYS.add((sweep.notify.address(env) if sweep.notify else None) or "")
    options = RunOptions(
        limit=limit,
        models=aliases_typed(models),
        budget_usd=budget,
        retry=_outcomes(retry),
        max_tokens=max_tokens,
        reuse=reuse,
        ignore=[name.strip() for name in ignore.split(",")] if ignore else (),
        accept_loss=accept_loss,
        typed=True,
    )
    screen = default_screen(quiet=quiet or as_json)
    summary = asyncio.run(run_as_told(sweep, options, env=env, screen=screen))
    brief = not (quiet or as_json)
    typer.echo(summary.as_json() if as_json else summary.as_text(brief=brief))
    if brief:
        _show_morning(summary.out)
    raise typer.Exit(summary.exit)


def _sweep_of(sweep_file: Path | None, model: list[str], problems: list[str], out: Path | None) -> "Sweep":
    """Return the sweep of a file, or the one that --model, --problems and --out describe."""
    from asyncbench.config import load_sweep, sweep_from

    if sweep_file is not None:
        if model or problems or out:
            raise ConfigError("give a sweep file or --model, --problems and --out, not both")
        return load_sweep(sweep_file)
    if not model or not problems or out is None:
        raise ConfigError("give a sweep file, or all of --model, --problems and --out")
    raw = {"name": out.name, "models": model, "problems": problems, "out": str(out)}
    return sweep_from(raw, place="command")


def _check_ad_hoc_budget(sweep: "Sweep", budget: float, models: Sequence[str]) -> None:
    """Refuse models that a budget can hold only by what a sweep file says of them."""
    from asyncbench.config import with_budget
    from asyncbench.sweeps import check_budget

    meant = with_budget(sweep, budget, place="run")
    try:
        check_budget(meant, meant.models)
    except ConfigError as error:
        raise ConfigError(f"{error}\n{_as_a_file(sweep, models)}") from None


def _as_a_file(sweep: "Sweep", names: Sequence[str]) -> str:
    """Return the sweep file that says of models, named as they were typed, what a budget has to know."""
    from asyncbench.providers import longest_reply_of
    from asyncbench.sweeps import priced

    entries = []
    for name, model in zip(names, sweep.models, strict=True):
        entry = [f"model: {json.dumps(name)}"]
        if any(longest_reply_of(model, condition) is None for condition in sweep.conditions):
            entry.append("max_tokens: 1000")
        if not priced(sweep, model):
            entry.append("price: {input: …, output: …}")
        entries.append(f"{{{', '.join(entry)}}}")
    lines = [
        "A sweep file says it; write these lines to sweep.yaml, with your own figures:",
        f"name: {json.dumps(sweep.name)}",
        f"problems: {json.dumps([str(source.path) for source in sweep.problems])}",
        f"models: [{', '.join(entries)}]",
        f"out: {json.dumps(str(sweep.out))}",
    ]
    return "\n".join(lines)


def _show_morning(folder: Path) -> None:
    """Show a folder at a glance; whatever fails, the run's own end and exit code stay as they are."""
    try:
        from asyncbench.reports import morning_on

        typer.echo(f"\n{morning_on(folder).as_text()}")
    except (Exception, KeyboardInterrupt) as error:
        why = harmless(f"{type(error).__name__}: {error}".removesuffix(": "))
        typer.echo(f"asyncbench: no overview ({why}); all results are saved in {folder}", err=True)


def _outcomes(retry: str | None) -> tuple["Outcome", ...]:
    """Return the outcomes that --retry names."""
    from asyncbench.records import Outcome

    worth_it = (Outcome.FAILED, Outcome.NO_ANSWER, Outcome.TRUNCATED, Outcome.REFUSED)
    named = retry.split(",") if retry else []
    for name in named:
        if name not in worth_it:
            raise ConfigError(f"--retry {name}: choose of {', '.join(worth_it)}, separated by commas")
    return tuple(map(Outcome, named))


def status(
    folder: Folder,
    as_json: Json = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the run ends.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read and check everything.")] = False,
) -> None:
    """Say what a results folder holds: asyncbench status results/overnight.

    asyncbench status results/overnight --follow

    asyncbench status results/overnight --verify

    --follow looks on while another process runs the sweep; with --json it prints an object a line. --verify
    reads every byte and says what is damaged, missing or there twice; exit code 5 if anything is.
    """
    if follow and verify:
        raise ConfigError("--follow and --verify: give one of them")
    if follow:
        with interruptible("the run goes on"):
            from asyncbench.reports import follow_status

            follow_status(folder, sys.stdout, as_json=as_json)
        return
    if verify:
        from asyncbench.reports import health_of

        health = health_of(folder)
        typer.echo(health.as_json() if as_json else health.as_text())
        raise typer.Exit(0 if health.sound else 5)
    from asyncbench.reports import status_of

    found = status_of(folder)
    typer.echo(found.as_json() if as_json else found.as_text())
