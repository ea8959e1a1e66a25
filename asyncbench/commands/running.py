"""Commands that ask, or plan to: plan, run and load."""

import gc
import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from asyncbench.commands.sweep_flags import fill_for_load, sample_typed, sweep_of, way_to_budget
from asyncbench.commands.sweep_options import Extend, flag, flags_typed, steps_typed
from asyncbench.commands.synthetic_load import fill_for_tokens
from asyncbench.commands.terminal import (
    Budget,
    EnvFile,
    Journal,
    Json,
    Limit,
    Models,
    SampledBy,
    SampleSize,
    SweepFile,
    Workers,
    aliases_typed,
    awaited,
    environment_for,
    harmless,
    parts_typed,
    show,
    workers_typed,
)
from asyncbench.commands.trace_load import apply_trace, fill_for_trace
from asyncbench.errors import ConfigError, StoreError
from asyncbench.files import quoted

if TYPE_CHECKING:
    from asyncbench.config.sweep import Sweep
    from asyncbench.planning.report import Plan
    from asyncbench.problems.samples import Sample
    from asyncbench.records import Outcome
    from asyncbench.run.options import RunOptions
    from asyncbench.run.summary import Summary


def plan(
    context: typer.Context,
    sweep_file: SweepFile = None,
    limit: Limit = None,
    sample: SampleSize = None,
    by: SampledBy = None,
    models: Models = None,
    pilot: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="First ask N problems of each task and length. This costs money."
        ),
    ] = None,
    extend: Extend = False,
    budget: Budget = None,
    deadline: Annotated[
        str | None, typer.Option(metavar="TIME", help='Plan for a run that stops then: 8h, "07:30".')
    ] = None,
    env_file: EnvFile = None,
    as_json: Json = False,
) -> None:
    """Show what a sweep will cost and how long it will take.

    asyncbench plan configs/overnight.yaml

    asyncbench plan configs/overnight.yaml --pilot 2 --budget 50

    asyncbench plan --model openai/gpt-5-mini --suite llm_arithmetic --out mine

    asyncbench plan configs/overnight.yaml --mode batch

    A plan calls no model and costs nothing. If the results folder already has finished trials, the plan
    forecasts the rest from them, with a range.

    --pilot makes real calls first, so that the forecast is better; models in batches are called in real time
    for it. The answers stay in the results folder, and the run does not ask them again.

    Of a sweep with `load` the plan shows its steps: calls, calls in flight, dollars and time. So it does with
    the options of `asyncbench load`, such as --rates 1,2,4 or --trace FILE.
    """
    from asyncbench.config.overriding import replace_mode
    from asyncbench.planning.sweep_plan import bounded_plan, plan as plan_sweep

    drawn = sample_typed(context, sample, by)
    sweep = loaded_sweep(context, sweep_file, combinable=["mode", "out"], extend=extend, quiet=as_json)
    sweep = replace_mode(
        sweep, flags_typed(context).get("mode"), models=aliases_typed(models), given_as="--mode"
    )
    bounded = bounded_plan(sweep, budget, deadline, given_as="--budget")  # before a pilot spends anything
    if sweep.load is not None:
        _plan_load(bounded, pilot, limit, models, as_json=as_json)
        return
    piloted = None
    if pilot:
        without_budget = bounded_plan(sweep, None, deadline)
        typed = drawn if sweep_file is not None else None
        piloted = _run_pilot(without_budget, pilot, limit, typed, models, budget, env_file, quiet=as_json)
    forecast = plan_sweep(bounded, limit=limit, models=aliases_typed(models))
    if piloted is not None:
        forecast = _keep_forecast(forecast, piloted, sweep.out, quiet=as_json)
    typer.echo(forecast.as_json() if as_json else forecast.as_text())
    raise typer.Exit(piloted.exit if piloted is not None else 0)


def _run_pilot(
    sweep: "Sweep",
    pilot: int,
    limit: int | None,
    sample: "Sample | None",
    models: str | None,
    budget: float | None,
    env_file: Path | None,
    *,
    quiet: bool,
) -> "Summary":
    """Ask the first problems of each task and length. Of `budget` and the sweep's own the lower holds."""
    from asyncbench.run.options import RunOptions

    is_lower = budget is not None and (sweep.budget_usd is None or budget < sweep.budget_usd)
    options = RunOptions(
        pilot=pilot,
        limit=limit,
        sample=sample,
        models=aliases_typed(models),
        budget_usd=budget if is_lower else None,
        typed=True,
    )
    return run_shown(sweep, options, env=environment_for(sweep, env_file), quiet=quiet)


def _keep_forecast(forecast: "Plan", piloted: "Summary", folder: Path, *, quiet: bool) -> "Plan":
    """Keep a plan in the results folder, show its pilot, and return the plan with it."""
    from asyncbench.planning.forecast_file import keep_forecast

    try:
        keep_forecast(forecast, folder, by="pilot")
    except StoreError as error:  # what was asked is kept, and paid for: it is shown all the same
        typer.echo(f"the forecast is not kept: {error}", err=True)
    if not quiet:
        typer.echo(f"{piloted.as_text()}\n")
    return replace(forecast, pilot=json.loads(piloted.as_json()))


def _plan_load(
    sweep: "Sweep",
    pilot: int | None,
    limit: int | None,
    models: str | None,
    *,
    as_json: bool,
) -> None:
    """Show what the load of a sweep will take."""
    from asyncbench.planning.planned_load import load_plan

    for name, value in (("--pilot", pilot), ("--limit", limit)):
        if value is not None:
            raise ConfigError(
                f"{name}: {sweep.name} has a `load`, whose steps say how much is asked. Leave it out"
            )
    show(load_plan(sweep, models=aliases_typed(models)), as_json=as_json)


def run_shown(sweep: "Sweep", options: "RunOptions", *, env: Mapping[str, str], quiet: bool) -> "Summary":
    """Run a sweep, and show its progress on standard error."""
    from asyncbench.run.progress import default_screen
    from asyncbench.run.sweep_run import run_with_options

    return awaited(run_with_options(sweep, options, env=env, screen=default_screen(quiet=quiet)))


def run(
    context: typer.Context,
    sweep_file: SweepFile = None,
    limit: Limit = None,
    sample: SampleSize = None,
    by: SampledBy = None,
    models: Models = None,
    budget: Budget = None,
    retry: Annotated[
        str | None,
        typer.Option(
            metavar="OUTCOME,…",
            help="Ask again the trials with these outcomes: failed, no_answer, truncated, refused.",
        ),
    ] = None,
    reuse: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="Take over the complete answers of this results folder. Repeat it for more.",
        ),
    ] = None,
    ignore: Annotated[
        str | None,
        typer.Option(metavar="max_tokens", help="With --reuse: also take answers with other max_tokens."),
    ] = None,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="If files of the results folder are lost or damaged, ask those trials again. The cost of "
            "their calls still counts.",
        ),
    ] = False,
    extend: Extend = False,
    detach: Annotated[
        bool,
        typer.Option("--detach", help="Exit once all batches are sent. Run again to collect them."),
    ] = False,
    resubmit: Annotated[
        str | None,
        typer.Option(
            metavar="PART,…",
            help="Send these parts again if nobody finds their batch. This may pay them twice.",
        ),
    ] = None,
    workers: Workers = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="[ADDRESS]",
            help="Have workers on a Ray cluster ask the models in real time. Without an ADDRESS: the "
            "cluster of RAY_ADDRESS, of this machine, or a new one here.",
        ),
    ] = None,
    journal: Journal = None,
    env_file: EnvFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Run a sweep, or continue one that was interrupted.

    asyncbench run my.csv --model openai/gpt-5-mini --model xai/grok-4

    asyncbench run configs/overnight.yaml --budget 50

    asyncbench run --model openai/gpt-5-mini --suite llm_arithmetic --out mine

    asyncbench run configs/overnight.yaml --mode batch --detach

    asyncbench run configs/overnight.yaml --retry truncated --max-tokens 8000

    Flags can stand for a sweep file, which the run writes to FOLDER/sweep.yaml. Beside a file of questions
    and answers, only --model is needed: columns and grader are guessed and said.
    A run never asks a finished trial again, so you never pay twice. Ctrl-C stops it and keeps all answers.

    --budget replaces the budget_usd of the sweep for this run. Raise it and run again to continue.
    --retry keeps the old answer if the new call fails. --reuse costs nothing: it copies answers.
    """
    from asyncbench.run.options import RunOptions

    drawn = sample_typed(context, sample, by)
    sweep = sweep_of(
        context, sweep_file, combinable=["mode", "out", *["max_tokens"] * bool(retry)], extend=extend
    )
    if sweep_file is None:
        _check_typed_budget(sweep, budget, context)
    options = RunOptions(
        limit=limit,
        sample=drawn if sweep_file is not None else None,
        models=aliases_typed(models),
        mode=flags_typed(context).get("mode") if sweep_file is not None else None,
        detach=detach,
        budget_usd=budget,
        retry=_outcomes(retry),
        max_tokens=_retry_tokens(context, sweep) if retry else None,
        reuse=tuple(reuse or ()),
        ignore=[name.strip() for name in ignore.split(",")] if ignore else (),
        accept_loss=accept_loss,
        extend=extend,
        resubmit=parts_typed(resubmit, "--resubmit"),
        workers=workers_typed(workers),
        ray=ray,
        journal=journal,
        typed=True,
    )
    summary = run_shown(sweep, options, env=environment_for(sweep, env_file), quiet=quiet or as_json)
    _show_end(summary, typed=sweep_file is None, quiet=quiet, as_json=as_json)


def _show_end(summary: "Summary", *, typed: bool, quiet: bool, as_json: bool) -> None:
    """Print what a run did, and the sweep file of one whose sweep was `typed`; exit with its code."""
    from asyncbench.store.manifest import SWEEP_FILE

    brief = not (quiet or as_json)
    text = summary.as_json() if as_json else summary.as_text(brief=brief)
    if typed and not as_json:
        text += f"\nTo ask the same from a file: asyncbench run {quoted(summary.out / SWEEP_FILE)}"
    typer.echo(text)
    if brief and (any(counters.done for counters in summary.models.values()) or not summary.batches):
        show_overview(summary.out, below=text.count("\n") + 2)
    raise typer.Exit(summary.exit)


def _retry_tokens(context: typer.Context, sweep: "Sweep") -> int | None:
    """Return how long the replies of --retry truncated may be."""
    from asyncbench.store.manifest import SWEEP_FILE

    if (typed := flags_typed(context).get("max_tokens")) is None:
        return None
    if sweep.file is None:  # typed for the sweep, it would be another sweep, all of which is asked
        raise ConfigError(
            "--retry with --max-tokens needs a sweep file. Type `asyncbench run "
            f"{quoted(sweep.out / SWEEP_FILE)} --retry truncated --max-tokens {typed}`"
        )
    if not typed.isdecimal() or int(typed) < 1:
        raise ConfigError(f"--max-tokens {typed}: not a whole number above 0. Write one, such as 8000")
    return int(typed)


def _check_typed_budget(sweep: "Sweep", budget: float | None, context: typer.Context) -> None:
    """Refuse a budget that cannot bound the cost of a typed sweep, and say what to type. None: no budget."""
    from asyncbench.config.overriding import replace_budget
    from asyncbench.planning.budget_bounds import check_budget

    bounded = replace_budget(sweep, budget, place="run", given_as="--budget")
    try:
        check_budget(bounded, bounded.models)
    except ConfigError as error:
        raise ConfigError(f"{error}\n{way_to_budget(sweep, context)}") from None


def show_overview(folder: Path, *, below: int = 0) -> None:
    """Show a folder at a glance, `below` so many lines on the same screen.

    Whatever fails, the run's own end and exit code stay as they are.
    """
    try:
        import pyarrow

        from asyncbench.analysis.counting import counted
        from asyncbench.reports.status.run_overview import run_overview_of

        gc.collect()  # the run held the ids of all its trials: the overview gets their room
        pyarrow.default_memory_pool().release_unused()
        room = get_terminal_size().lines - below - 1 if sys.stdout.isatty() else None
        overview = counted(folder, partial(run_overview_of, after_run=True))
        typer.echo(f"\n{overview.as_text(height=room)}")
    except KeyboardInterrupt:
        typer.echo("Stopped before the overview. All results are saved.", err=True)
    except Exception as error:
        why = harmless(f"{type(error).__name__}: {error}".removesuffix(": "))
        typer.echo(f"asyncbench: no overview ({why}); all results are saved in {folder}", err=True)


def _outcomes(retry: str | None) -> tuple["Outcome", ...]:
    """Return the outcomes that --retry names."""
    from asyncbench.records import Outcome

    worth_it = (Outcome.FAILED, Outcome.NO_ANSWER, Outcome.TRUNCATED, Outcome.REFUSED)
    named = retry.split(",") if retry else []
    for name in named:
        if name not in worth_it:
            raise ConfigError(f"--retry {name}: unknown outcome. Known: {', '.join(worth_it)}")
    return tuple(map(Outcome, named))


# ── loads


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
        ConfigError: a flag or the sweep is wrong; flags are checked first.
    """
    from asyncbench.config.entry import Place
    from asyncbench.config.loading import check_keys
    from asyncbench.config.sweep import load_sweep, replace_load

    keys = _load_keys(steps_typed(context))
    objectives = keys.get("slo")
    names = {name: flag(name) for name in keys}
    for option in steps_typed(context).keys() & {"concurrency", "speed"}:
        names["rates"] = flag(option)
    names |= {name: f"--slo {name}" for name in objectives} if isinstance(objectives, dict) else {}
    source = Place(source="command line", flags=names)
    check_keys(keys, place=source)
    trace, tokens = (steps_typed(context).get(name) for name in ("trace", "tokens"))
    if isinstance(trace, Path):
        fill_for_trace(context, trace)
    if isinstance(tokens, str):
        message = fill_for_tokens(context, tokens, context.params["env_file"])
        if not quiet:
            typer.echo(f"asyncbench: {message}", err=True)
    is_load = keys or context.info_name == "load"
    if sweep_file is None and is_load and (message := fill_for_load(context)) and not quiet:
        typer.echo(f"asyncbench: {message}", err=True)

    flags = flags_typed(context)
    seed = flags.pop("seed", 0) if isinstance(trace, Path) else 0

    def read(read_from: "Path | Sweep") -> "Sweep":
        sweep = replace_load(read_from, keys, place=source) if keys else load_sweep(read_from)
        if not isinstance(trace, Path):
            return sweep
        drafts = None
        if context.info_name != "load":  # a plan asks nobody
            drafts = Path(context.with_resource(TemporaryDirectory(prefix="asyncbench-trace-")))
        sweep, message = apply_trace(
            sweep,
            trace,
            out=flags.get("out", sweep.out),
            seed=seed,
            env_file=context.params["env_file"],
            drafts=drafts,
        )
        if not quiet:
            typer.echo(f"asyncbench: {message}", err=True)
        return sweep

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

    asyncbench load --model vllm/qwen3-8b --concurrency 1,2,4,8 --tokens 512/128

    asyncbench load --model vllm/qwen3-8b --trace azure.csv --speed 2

    Each step of the sweep's `load` holds a rate for a time. A call is sent when it is due, whatever is in
    flight, and its latency counts from then. No call is tried again. Every call is a graded row.

    Options replace keys of `load`, also beside a sweep file without it. Without a file, --suite is
    llm_arithmetic and --out is results/load-MODEL. After Ctrl-C or a spent budget, type
    the command again: it measures what is left, and an incomplete step as a whole.
    """
    from asyncbench.run.options import RunOptions

    sweep = loaded_sweep(context, sweep_file, combinable=["out"], quiet=quiet or as_json)
    env = environment_for(sweep, env_file)
    words = list[str]()  # the options of steps, as they are typed
    for name, value in steps_typed(context).items():
        words += [flag(name)] if value is True else [flag(name), str(value)]
    options = RunOptions(
        models=aliases_typed(models),
        budget_usd=budget,
        workers=workers_typed(workers),
        journal=journal,
        load=words if sweep_file is not None else (),
        typed=True,
    )
    summary = run_shown(sweep, options, env=env, quiet=quiet or as_json)
    figures, text = dict[str, object](), ""
    load = sweep.load
    if "tokens" in steps_typed(context) or (load and (load.replays or load.gpus is not None)):
        from asyncbench.analysis.choosing import chosen
        from asyncbench.analysis.counting import counted
        from asyncbench.reports.load.closing import closing_figures
        from asyncbench.tables.data import data_of

        closing = counted(chosen(sweep.out, loaded=True), closing_figures)
        figures, text = data_of(closing), closing.text
    lines = filter(None, [summary.as_text(), text])
    typer.echo(summary.as_json(**figures) if as_json else "\n".join(lines))
    raise typer.Exit(summary.exit)


def _load_keys(typed: Mapping[str, str | int | Path]) -> dict[str, object]:
    """Return the keys of `load` in a sweep file that typed options stand for."""
    keys: dict[str, object] = dict(typed)
    if keys.keys() & {"trace", "speed"}:
        of_trace = "--trace" if "trace" in typed else "--speed"
        if others := [
            name for name in ("tokens", "concurrency", "rates", "find", "arrivals") if name in typed
        ]:
            raise ConfigError(
                f"{of_trace} {typed[of_trace[2:]]}: a trace has times and lengths of its own. Leave out "
                f"{flag(others[0])}"
            )
        speeds = str(keys.pop("speed", "1"))
        keys |= {"arrivals": "trace", "rates": [_number("speed", word, speeds) for word in speeds.split(",")]}
        if keys.pop("trace", None) is not None:  # all of it counts, whatever the file's own load says
            keys = {"warmup": None, "duration": None, **keys}
    if keys.pop("tokens", None) is not None:
        keys["same_problems"] = False  # or a prefix cache would serve them at the second step
    if isinstance(callers := keys.pop("concurrency", None), str):
        if others := [name for name in ("rates", "find", "arrivals") if name in typed]:
            raise ConfigError(
                f"--concurrency {callers}: callers ask in turn, so no rate is held. "
                f"Leave out {flag(others[0])}"
            )
        numbers = [_number("concurrency", word, callers) for word in callers.split(",")]
        keys |= {"arrivals": "closed", "rates": numbers}
    if isinstance(rates := typed.get("rates"), str):
        keys["rates"] = [_number("rates", word, rates) for word in rates.split(",")]
    if isinstance(find := typed.get("find"), str):
        low, colon, high = find.partition(":")
        if not colon:
            raise ConfigError(f"--find {find}: not two rates. Type the lowest and the highest, such as 1:200")
        keys["find"] = {"lowest": _number("find", low, find), "highest": _number("find", high, find)}
    if isinstance(slo := typed.get("slo"), str):
        pairs = [pair.partition("=") for pair in slo.split(",")]
        keys["slo"] = {name.strip(): _number("slo", value, slo) for name, _, value in pairs}
    return keys


def _number(name: str, word: str, typed: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ConfigError(f"--{name} {typed}: {word!r} is not a number") from None
