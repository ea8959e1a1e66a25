"""The command line: arguments in, exit code out. Everything it does is in the Python API as well."""

import asyncio
import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Protocol

import typer

from asyncbench.errors import AsyncbenchError, DamageWarning, StoreError
from asyncbench.files import NO_ROOM, unwritten

if TYPE_CHECKING:
    from asyncbench.config import Sweep
    from asyncbench.records import Model, Outcome
    from asyncbench.run import Summary

# Imports of the rest stand inside the commands: `--help` must not wait for SDKs and Arrow.

app = typer.Typer(
    name="asyncbench",
    help="Find out what language models can do with numbers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback means a bug of ours; locals could show API keys
    rich_markup_mode=None,
)

NUPA_PROBLEMS = "nupa-problems"  # a format of problems, beside those of results

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def dollars_typed(given: str) -> float:
    """Return an amount of USD as it was typed; words and signs of money are none."""
    from asyncbench.errors import ConfigError

    try:
        usd = float(given)
    except ValueError:
        usd = nan
    if not 0 < usd < inf:
        raise ConfigError(f"--budget {given}: not a number of dollars above 0; give one, such as 5")
    return usd


BUDGET = typer.Option(parser=dollars_typed, metavar="USD", help="USD that all calls of the folder may cost.")


class Shown(Protocol):
    """A report, in whatever form is asked for."""

    def as_text(self) -> str: ...

    def as_markdown(self) -> str: ...

    def as_latex(self) -> str: ...

    def as_json(self) -> str: ...


def main() -> None:
    """Run the command; an error of ours is one line on standard error and an exit code."""
    for name in _LOGS:
        os.environ.pop(name, None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", DamageWarning)
            warnings.showwarning = _warn
            app()
    except AsyncbenchError as error:
        _refuse(error)
    except (Exception, BaseExceptionGroup) as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:  # results have errors of their own
            if error.filename is not None:  # a temporary file, say
                _refuse(unwritten(Path(os.fsdecode(error.filename)), error))
            _give_up_output(error)
            sys.exit(5)
        typer.echo(_withheld(traceback.format_exc()), err=True)  # a bug of ours, or several
        sys.exit(1)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"asyncbench: {_harmless(str(message))}", err=True)


def _refuse(error: AsyncbenchError) -> NoReturn:
    typer.echo(f"asyncbench: {_harmless(str(error))}", err=True)
    sys.exit(5 if isinstance(error, StoreError) else 2)


def _give_up_output(error: OSError) -> None:
    """Say that nothing more can be printed; what was to be saved is saved."""
    typer.echo(f"asyncbench: standard output takes no more: {error.strerror}; make room for it", err=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes it at the end


def _harmless(text: str) -> str:
    """Return the lines of a message that may quote what others wrote."""
    from asyncbench.shown import safe_note

    return "\n".join(map(safe_note, text.split("\n")))


_LOGS = ("OPENAI_LOG", "ANTHROPIC_LOG")  # by which SDKs print headers as servers send them, keys and all
_KEYS: set[str] = set()  # that this command was given


def _environment(env_file: Path | None, models: Iterable["Model"]) -> dict[str, str]:
    """Return the variables in which these models' keys are looked up: of this process, then of a file."""
    from asyncbench.sweeps import read_env_file

    given = read_env_file(env_file) if env_file else {}
    env = {**os.environ, **given}
    _KEYS.update(given.values(), (env.get(model.key_env or "", "") for model in models))
    return env


def _withheld(text: str) -> str:
    """Return a traceback without what may be a key: libraries quote what a server said."""
    from asyncbench.providers import looks_secret, without_secret

    named = {value for name, value in os.environ.items() if looks_secret(name)}
    for secret in sorted(named | _KEYS, key=len, reverse=True):
        text = without_secret(text, key=secret)
    return text


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def generate(
    context: typer.Context,
    suite: Annotated[str, typer.Argument(help="The suite, e.g. llm_arithmetic.")],
    out: Annotated[Path, typer.Option(help="The Parquet file to write.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same problems on every machine.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the problems are the same.")] = 1,
) -> None:
    """Make a problem set.

    asyncbench generate llm_arithmetic --out problems.parquet --seed 7 --depths 2-10 --trials 10

    asyncbench generate nupa --out nupa.parquet --seed 7 --per-length 1000 --workers 4

    Further options are the suite's own parameters; `asyncbench suites` lists them.
    """
    from asyncbench.problems import generate as make

    made = make(suite, out, seed=seed, workers=workers, **_parameters(context.args))
    typer.echo(f"{made.path}: {made.rows:,} problems, digest {made.digest[:12]}")


def _parameters(arguments: list[str]) -> dict[str, str]:
    """Return `--name value` and `--name=value` pairs as a mapping; dashes in names become underscores."""
    from asyncbench.errors import ConfigError

    words = [part for argument in arguments for part in _split(argument)]
    parameters: dict[str, str] = {}
    for name, value in zip(words[::2], [*words[1::2], None], strict=False):
        if not name.startswith("--") or value is None:
            raise ConfigError(f"{name!r} is not understood: suite parameters are given as --name value")
        parameters[name.removeprefix("--").replace("-", "_")] = value
    return parameters


def _split(argument: str) -> list[str]:
    return argument.split("=", 1) if argument.startswith("--") else [argument]


@app.command()
def suites(as_json: Json = False) -> None:
    """List the suites with their graders and parameters: asyncbench suites."""
    from asyncbench.suites import SUITES

    if as_json:
        rows = {
            name: {"graders": one.graders, "parameters": list(one.parameters)} for name, one in SUITES.items()
        }
        typer.echo(json.dumps(rows, indent=2))
        return
    for name, suite in SUITES.items():
        typer.echo(f"{name}  (graders: {', '.join(suite.graders)})")
        for parameter, meaning in suite.parameters.items():
            typer.echo(f"  --{parameter.replace('_', '-'):<12} {meaning.help}{_shown(meaning.default)}")


def _shown(default: object) -> str:
    """Return a default as it would be typed."""
    if default is None:
        return ""
    values = default if isinstance(default, tuple) else (default,)
    return f" (default: {','.join(map(str, values))})"


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="The sweep file to write.")] = Path("sweep.yaml"),
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing: use every key that is found.")] = False,
) -> None:
    """Write a first sweep for the providers whose keys are set; without any, a simulated one.

    asyncbench init sweep.yaml
    """
    from asyncbench.config import (
        SIMULATED_MODELS,
        described_models,
        providers_with_keys,
        providers_without_starter,
        refuse_existing,
        write_sweep,
    )

    refuse_existing(path)  # before any question
    found = providers_with_keys(os.environ)
    ask = not yes and sys.stdin.isatty()
    used = [name for name in found if not ask or typer.confirm(f"{described_models(name)}: use it?", True)]
    write_sweep(path, used)
    typer.echo(f"{path}: a sweep of {', '.join(used) if used else SIMULATED_MODELS}")
    if others := providers_without_starter(os.environ):
        typer.echo(f"keys of {', '.join(others)} are set as well: add a model of theirs by its name")
    typer.echo(f"next: asyncbench plan {path}")


@app.command()
def plan(
    sweep_file: Annotated[Path, typer.Argument(help="A sweep file (YAML).")],
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many problems per model.")] = None,
    models: Annotated[str | None, typer.Option(help="Only these aliases, separated by commas.")] = None,
    pilot: Annotated[
        int | None, typer.Option(min=1, help="First ask so many problems of each task and length.")
    ] = None,
    budget: Annotated[float | None, BUDGET] = None,
    deadline: Annotated[str | None, typer.Option(help='When it has to stop: 8h, "07:30".')] = None,
    env_file: Annotated[Path | None, typer.Option(help="With --pilot: a file with API keys.")] = None,
    as_json: Json = False,
) -> None:
    """Say what a sweep would cost and how long it would take; only --pilot asks, and keeps the answers.

    asyncbench plan configs/overnight.yaml

    asyncbench plan configs/overnight.yaml --pilot 2 --budget 50

    What its folder holds is taken into account: where trials are finished, the rest is forecast from them,
    with a range. --pilot makes real calls first: they are results like any other, and nothing is asked twice.
    """
    from asyncbench.config import load_sweep
    from asyncbench.planning import bounded_plan
    from asyncbench.planning import plan as plan_sweep

    sweep = load_sweep(sweep_file)
    meant = bounded_plan(sweep, budget, deadline)  # before a pilot spends anything
    asked = None
    if pilot:
        own = sweep.budget_usd
        lower = budget if own is None or (budget is not None and budget < own) else None
        held = bounded_plan(sweep, None, deadline)
        asked = _piloted(held, pilot, limit, models, lower, env_file, quiet=as_json)
    found = plan_sweep(meant, limit=limit, models=_aliases(models))
    if asked is not None:
        from asyncbench.planning import keep_forecast

        try:
            keep_forecast(found, by="pilot")
        except StoreError as error:  # what was asked is kept, and paid for: it is shown all the same
            typer.echo(f"the forecast is not kept: {error}", err=True)
        found = replace(found, pilot=json.loads(asked.as_json()), pilot_said=asked.as_text())
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
    from asyncbench.run import default_screen, run_sweep

    env = _environment(env_file, sweep.models)
    screen = default_screen(quiet=quiet)
    return asyncio.run(
        run_sweep(
            sweep,
            pilot=pilot,
            limit=limit,
            models=_aliases(models),
            budget_usd=budget,
            env=env,
            screen=screen,
        )
    )


def _aliases(models: str | None) -> list[str] | None:
    """Return the aliases that --models names; None: all."""
    return [alias.strip() for alias in models.split(",")] if models else None


@app.command()
def run(
    sweep_file: Annotated[Path | None, typer.Argument(help="A sweep file (YAML).")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Without a sweep file: provider/model.")] = None,
    problems: Annotated[list[str] | None, typer.Option(help="Without a sweep file: a problem set.")] = None,
    out: Annotated[Path | None, typer.Option(help="Without a sweep file: the results folder.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many problems per model.")] = None,
    models: Annotated[str | None, typer.Option(help="Only these aliases, separated by commas.")] = None,
    budget: Annotated[float | None, BUDGET] = None,
    retry: Annotated[str | None, typer.Option(help="Ask again what ended so: failed,truncated.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="With --retry truncated: how long those replies may get.")
    ] = None,
    reuse: Annotated[Path | None, typer.Option(help="A results folder whose answers are taken over.")] = None,
    ignore: Annotated[str | None, typer.Option(help="With --reuse: max_tokens may differ.")] = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Ask again what is lost of the results folder.")
    ] = False,
    env_file: Annotated[Path | None, typer.Option(help="A file of NAME=value lines with API keys.")] = None,
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
    from asyncbench.config import load_sweep, sweep_from
    from asyncbench.run import default_screen, run_sweep

    ad_hoc = _ad_hoc(sweep_file, model, problems, out)
    sweep = load_sweep(sweep_file) if sweep_file else sweep_from(ad_hoc, place="command")
    if sweep_file is None and budget is not None:
        _check_ad_hoc_budget(sweep, budget, model or ())
    env = _environment(env_file, sweep.models)
    _KEYS.add((sweep.notify.address(env) if sweep.notify else None) or "")
    summary = asyncio.run(
        run_sweep(
            sweep,
            limit=limit,
            models=_aliases(models),
            budget_usd=budget,
            retry=_outcomes(retry),
            max_tokens=max_tokens,
            reuse=reuse,
            ignore=[name.strip() for name in ignore.split(",")] if ignore else (),
            accept_loss=accept_loss,
            env=env,
            screen=default_screen(quiet=quiet or as_json),
        )
    )
    typer.echo(summary.as_json() if as_json else summary.as_text())
    if not (quiet or as_json):
        _show_morning(summary.out)
    raise typer.Exit(summary.exit)


def _show_morning(folder: Path) -> None:
    """Show a folder at a glance; whatever fails, the run's own end and exit code stay as they are."""
    try:
        from asyncbench.reports import morning_on

        typer.echo(f"\n{morning_on(folder).as_text()}")
    except (Exception, KeyboardInterrupt) as error:
        why = _harmless(f"{type(error).__name__}: {error}".removesuffix(": "))
        typer.echo(f"asyncbench: no overview ({why}); all results are saved in {folder}", err=True)


def _outcomes(retry: str | None) -> tuple["Outcome", ...]:
    """Return the outcomes that --retry names."""
    from asyncbench.errors import ConfigError
    from asyncbench.records import Outcome

    worth_it = (Outcome.FAILED, Outcome.NO_ANSWER, Outcome.TRUNCATED, Outcome.REFUSED)
    named = retry.split(",") if retry else []
    for name in named:
        if name not in worth_it:
            raise ConfigError(f"--retry {name}: choose of {', '.join(worth_it)}, separated by commas")
    return tuple(map(Outcome, named))


def _ad_hoc(
    sweep_file: Path | None, model: list[str] | None, problems: list[str] | None, out: Path | None
) -> dict[str, object]:
    """Return the sweep that --model, --problems and --out describe, instead of a file."""
    from asyncbench.errors import ConfigError

    if sweep_file is not None:
        if model or problems or out:
            raise ConfigError("give a sweep file or --model, --problems and --out, not both")
        return {}
    if not model or not problems or out is None:
        raise ConfigError("give a sweep file, or all of --model, --problems and --out")
    return {"name": out.name, "models": list(model), "problems": list(problems), "out": str(out)}


def _check_ad_hoc_budget(sweep: "Sweep", budget: float, models: Sequence[str]) -> None:
    """Refuse models that a budget can hold only by what a sweep file says of them."""
    from asyncbench.config import with_budget
    from asyncbench.errors import ConfigError
    from asyncbench.sweeps import check_budget

    meant = with_budget(sweep, budget, place="run")
    try:
        check_budget(meant, meant.models)
    except ConfigError as error:
        raise ConfigError(f"{error}\n{_as_a_file(sweep, models)}") from None


def _as_a_file(sweep: "Sweep", models: Sequence[str]) -> str:
    """Return the sweep file that says of models, named as they were typed, what a budget has to know."""
    given = [
        ", ".join([f"model: {json.dumps(name)}", *_unsaid(sweep, model)])
        for name, model in zip(models, sweep.models, strict=True)
    ]
    lines = [
        f"name: {json.dumps(sweep.name)}",
        f"problems: {json.dumps([str(one.path) for one in sweep.problems])}",
        f"models: [{', '.join(f'{{{one}}}' for one in given)}]",
        f"out: {json.dumps(str(sweep.out))}",
    ]
    return "\n".join(
        ["A sweep file says it; write these lines to sweep.yaml, with your own figures:", *lines]
    )


def _unsaid(sweep: "Sweep", model: "Model") -> list[str]:
    """Return what a budget has to know of a model and nobody knows: the longest reply, the price."""
    from asyncbench.providers import most_output
    from asyncbench.sweeps import priced

    endless = any(most_output(model, condition) is None for condition in sweep.conditions)
    return ["max_tokens: 1000"] * endless + ["price: {input: …, output: …}"] * (not priced(sweep, model))


@app.command()
def status(
    folder: Annotated[Path, typer.Argument(help="A results folder.")],
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
    from asyncbench.errors import ConfigError

    if follow and verify:
        raise ConfigError("--follow and --verify: give one of them")
    if follow:
        with _interruptible("the run goes on"):
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


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A results folder.")],
    style: Annotated[
        str | None,
        typer.Option(
            help="morning, standings, heatmap, anatomy, cost, quota, "
            "llm-arithmetic, integer-addition or nupa."
        ),
    ] = None,
    min_depth: Annotated[int | None, typer.Option(min=1, help="llm-arithmetic: no lesser depth. [5]")] = None,
    grader: Annotated[str | None, typer.Option(help="llm-arithmetic: layered, legacy or strict.")] = None,
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX tables.")] = False,
    figures: Annotated[
        Path | None, typer.Option(help="Write all charts (SVG, PNG) and tables to this folder.")
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Write a page to open in a browser.")] = False,
    out: Annotated[Path | None, typer.Option(help="--html: where. [FOLDER/report.html]")] = None,
    prices: Annotated[str | None, typer.Option(help="now: what the same calls would cost today.")] = None,
) -> None:
    """Show accuracy, outcomes, tokens, cost and latency: asyncbench report results/overnight.

    asyncbench report results/overnight --prices now

    asyncbench report results/overnight --style heatmap

    asyncbench report results/overnight --style anatomy

    asyncbench report results/overnight --style cost

    asyncbench report results/overnight --style quota

    asyncbench report results/published --style llm-arithmetic --min-depth 5

    asyncbench report results/overnight --html

    asyncbench report results/overnight --figures paper/figures

    morning: who is better, on one screen, as `run` shows it at its end. standings: the same in full.
    heatmap: where each breaks, model × task and task × length, shaded on a terminal.
    anatomy: what is wrong with wrong answers, where digits fail, and what right ones take. cost: dollars by
    model, task, outcome and kind of token, and what was forecast and capped. quota: how much of its limits
    each lane used, and what the rest was lost to. Another style shows the tables that the
    benchmark of that name publishes.
    """
    given = {"min_depth": min_depth, "grader": grader, "prices": prices}
    options = {name: value for name, value in given.items() if value is not None}
    if figures:
        shown: dict[str, object] = {"style": style, "json": as_json, "markdown": markdown, "latex": latex}
        shown |= {"html": html, "out": out}
        _write_figures(folder, figures, without={**shown, **options})
        return
    if html or out:
        _write_page(folder, out, without={"style": style, "json": as_json, **options}, asked=html)
        return
    from asyncbench.results import NothingToShowError

    found: Shown
    try:
        found = _report_on(folder, style, options)
    except NothingToShowError as nothing:
        found = nothing.page
    if latex:
        typer.echo(found.as_latex())
        return
    typer.echo(found.as_json() if as_json else found.as_markdown() if markdown else found.as_text())


def _write_figures(folder: Path, out: Path, *, without: dict[str, object]) -> None:
    """Write a folder's charts and tables and list them; options that say what is shown do not go with it."""
    from asyncbench.charts import write_figures
    from asyncbench.errors import ConfigError

    if odd := next((name for name, value in without.items() if value), None):
        raise ConfigError(f"--{odd.replace('_', '-')} does not go with --figures; leave one of them out")
    for path in write_figures(folder, out):
        typer.echo(path)


def _write_page(folder: Path, out: Path | None, *, without: dict[str, object], asked: bool) -> None:
    """Write a folder's page and say where it is; options that say what is printed do not go with it."""
    from asyncbench.errors import ConfigError
    from asyncbench.page import write_page

    if not asked:
        raise ConfigError("--out is where --html writes its page: give both, or leave --out out")
    if odd := next((name for name, value in without.items() if value), None):
        raise ConfigError(f"--{odd.replace('_', '-')} does not go with --html; leave one of them out")
    typer.echo(write_page(folder, out).as_text())


def _report_on(folder: Path, style: str | None, options: dict[str, Any]) -> Shown:
    """Return the report of a style; None: our own."""
    from asyncbench.errors import ConfigError

    known = {
        None: {"prices"},
        "morning": set[str](),
        "standings": set[str](),
        "heatmap": set[str](),
        "anatomy": set[str](),
        "cost": set[str](),
        "quota": set[str](),
        "llm-arithmetic": {"min_depth", "grader"},
        "integer-addition": set[str](),
        "nupa": set[str](),
    }
    if style not in known:
        raise ConfigError(f"--style {style}: choose of {', '.join(filter(None, known))}")
    if odd := sorted(options.keys() - known[style]):
        said = f"--style {style}" if style else "a report without --style"
        raise ConfigError(f"--{odd[0].replace('_', '-')} does not go with {said}; leave one of them out")
    match style:
        case "anatomy":
            from asyncbench.reports import anatomy_on

            return anatomy_on(folder)
        case "morning":
            from asyncbench.reports import morning_on

            return morning_on(folder)
        case "standings":
            from asyncbench.reports import standings_on

            return standings_on(folder)
        case "heatmap":
            from asyncbench.reports import accuracy_maps_on

            return accuracy_maps_on(folder)
        case "cost":
            from asyncbench.reports import cost_report_on

            return cost_report_on(folder)
        case "quota":
            from asyncbench.reports import quota_report_on

            return quota_report_on(folder)
        case "llm-arithmetic":
            from asyncbench.published.llm_arithmetic import llm_arithmetic_report_on

            return llm_arithmetic_report_on(folder, **options)
        case "integer-addition":
            from asyncbench.published.integer_addition import integer_addition_report_on

            return integer_addition_report_on(folder)
        case "nupa":
            from asyncbench.published.nupa import nupa_report_on

            return nupa_report_on(folder)
    return _own_report_on(folder, **options)


def _own_report_on(folder: Path, prices: str | None = None) -> Shown:
    from datetime import UTC, datetime

    from asyncbench.errors import ConfigError
    from asyncbench.reports import report_on

    if prices not in (None, "now"):
        raise ConfigError(f"--prices {prices}: only `now` can be asked for; leave it out for the run's own")
    return report_on(folder, prices_at=datetime.now(UTC) if prices else None)


@app.command("compare")
def compare_two(
    a: Annotated[str, typer.Argument(help="An alias, a run, or a name as reports show it.")],
    b: Annotated[str, typer.Argument(help="The other.")],
    folder: Annotated[Path, typer.Argument(help="The results folder.")],
    folder_of_b: Annotated[Path | None, typer.Argument(help="Where B is, if that is another.")] = None,
    suite: Annotated[str | None, typer.Option(help="Only this suite.")] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    examples: Annotated[int, typer.Option(min=0, help="Questions shown each way.")] = 5,
    unpaired: Annotated[bool, typer.Option("--unpaired", help="Show the unpaired test, too.")] = False,
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables.")] = False,
) -> None:
    """Say which of two models is better, whether that is real, and where they differ.

    asyncbench compare gpt-5-mini sonnet results/overnight

    asyncbench compare "gpt-5-mini (zero-shot)" "gpt-5-mini (5-shot)" results/overnight --task add

    asyncbench compare gpt-5-mini gpt-5-mini results/last-week results/overnight

    Only problems that both were asked count, so small differences show. --json has all questions where they
    differ; --unpaired compares models that were asked different problems.
    """
    from asyncbench.reports import compare_on

    found = compare_on(
        a,
        b,
        folder,
        folder_of_b,
        suite=suite,
        task=task,
        unpaired=unpaired,
        examples=examples,
        every=as_json,
    )
    typer.echo(found.as_json() if as_json else found.as_markdown() if markdown else found.as_text())


@app.command()
def reconcile(
    file: Annotated[Path, typer.Argument(help="A provider's usage export: CSV, JSON or JSON lines.")],
    folder: Annotated[Path, typer.Argument(help="A results folder.")],
    columns: Annotated[
        str | None, typer.Option(help="What holds what: day=date,model=model_id,cost=amount_usd,input=….")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="NAME=ALIAS: what the file calls a model of the folder.")
    ] = None,
    provider: Annotated[str | None, typer.Option(help="Only this provider's calls.")] = None,
    utc_offset: Annotated[float, typer.Option(min=-12, max=14, help="Hours from UTC, of its days.")] = 0.0,
    tolerance: Annotated[float, typer.Option(min=0, help="The gap that is let pass, in percent.")] = 1.0,
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables.")] = False,
) -> None:
    """Hold a results folder against a provider's usage export, and name what may be behind a gap.

    asyncbench reconcile usage.json results/overnight

    asyncbench reconcile bill.csv results/overnight --columns day=date,model=name,cost=usd,output=tokens_out

    asyncbench reconcile bill.csv results/overnight --model "Claude Haiku 4.5=haiku" --utc-offset -8

    By day and model. Known by their columns: OpenAI's usage and costs, Anthropic's usage and cost reports,
    OpenRouter's activity. Columns for --columns: day, model, line_item, cost, cost_cents, currency, input,
    uncached_input, cached_input, cache_write, output, reasoning, requests; a+b adds two of them up.
    Exit code 3 where the gap is above the tolerance.
    """
    from asyncbench.reconciliation import reconcile as compared

    found = compared(
        file,
        folder,
        columns=columns,
        models=model or (),
        provider=provider,
        utc_offset_h=utc_offset,
        tolerance=tolerance / 100,
    )
    typer.echo(found.as_json() if as_json else found.as_markdown() if markdown else found.as_text())
    raise typer.Exit(0 if found.close else 3)


@app.command()
def models(
    provider: Annotated[str | None, typer.Argument(help="Whose models; left out: the providers.")] = None,
    as_json: Json = False,
) -> None:
    """List the providers that a sweep may name, or one's models with their prices.

    asyncbench models

    asyncbench models openai
    """
    from datetime import UTC, datetime

    from asyncbench.providers import (
        endpoint_lines,
        endpoints_as_json,
        endpoints_as_text,
        models_as_json,
        models_as_text,
        models_of,
    )

    at = datetime.now(UTC)
    if provider is None:
        lines = endpoint_lines(os.environ, at=at)
        typer.echo(endpoints_as_json(lines) if as_json else endpoints_as_text(lines))
        return
    found = models_of(provider, at=at)
    typer.echo(models_as_json(found) if as_json else models_as_text(found))


@app.command()
def doctor(
    what: Annotated[list[str] | None, typer.Argument(help="provider/model …, or one sweep file.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Where the models are, instead of their own.")] = None,
    key_env: Annotated[str | None, typer.Option(help="The variable that holds the key.")] = None,
    env_file: Annotated[Path | None, typer.Option(help="A file of NAME=value lines with API keys.")] = None,
    latency: Annotated[bool, typer.Option("--latency", help="Measure what this client adds.")] = False,
    as_json: Json = False,
) -> None:
    """Make two tiny calls to each model, whole and streamed, and say what is wrong, with the way out.

    asyncbench doctor openai/gpt-5-mini anthropic/claude-haiku-4-5

    asyncbench doctor configs/overnight.yaml

    asyncbench doctor --latency

    Exit code 3 where a sweep would fail: only the kind of call that it makes, streamed or not, counts. What
    the calls cost is shown; keys never are.
    """
    from asyncbench import checkup as doctors

    asked = doctors.models_from(what or [], base_url=base_url, key_env=key_env, or_nothing=latency)
    checkups = asyncio.run(doctors.examine(asked, env=_environment(env_file, asked)))
    noise = asyncio.run(doctors.noise_floor()) if latency else ()
    typer.echo(doctors.as_json(checkups, noise) if as_json else doctors.as_text(checkups, noise))
    raise typer.Exit(0 if all(one.fine for one in checkups) else 3)


@app.command()
def simulate(
    problems: Annotated[list[Path] | None, typer.Option(help="A problem set to answer; repeatable.")] = None,
    replay: Annotated[list[Path] | None, typer.Option(help="A results folder to repeat; repeatable.")] = None,
    port: Annotated[int, typer.Option(help="0: any free port.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the answers, latencies and faults.")] = 0,
    rpm: Annotated[float | None, typer.Option(help="Requests a minute, per model.")] = None,
    tpm: Annotated[float | None, typer.Option(help="Tokens a minute, per model.")] = None,
    input_tpm: Annotated[float | None, typer.Option(help="Input tokens a minute, per model.")] = None,
    output_tpm: Annotated[float | None, typer.Option(help="Output tokens a minute, per model.")] = None,
    limit_model: Annotated[
        str, typer.Option(help="token_bucket, gcra, fixed_window, sliding_window or quanta.")
    ] = "token_bucket",
    burst: Annotated[float | None, typer.Option(help="Seconds' worth that a bucket holds. [1]")] = None,
    tokens_counted: Annotated[str, typer.Option(help="Against --tpm: used or demanded.")] = "used",
    latency: Annotated[float, typer.Option(help="Median seconds to an answer.")] = 0.0,
    latency_sigma: Annotated[float, typer.Option(help="Of a lognormal; 0: always the median.")] = 0.0,
    ttft: Annotated[float | None, typer.Option(help="Median seconds to a stream's first token.")] = None,
    chunks: Annotated[int | None, typer.Option(help="The most pieces that a stream has.")] = None,
    like: Annotated[str | None, typer.Option(help="The provider to play: mistral, vllm, azure ….")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="KIND=RATE or KIND=RATE@MODEL; repeatable.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="Accept only this API key; repeatable.")] = None,
) -> None:
    """Serve simulated models on the loopback interface until Ctrl-C.

    asyncbench simulate --problems data/llm_arithmetic.parquet --latency 0.5 --fault 429=0.05

    asyncbench simulate --replay results/published

    asyncbench simulate --problems data/llm_arithmetic.parquet --like deepseek --latency 2 --ttft 0.3

    asyncbench simulate --problems data/llm_arithmetic.parquet --rpm 6000 --limit-model sliding_window

    It speaks OpenAI's and Anthropic's wire formats, streamed or not, as models oracle, noisy, noisy-2 and so
    on, and as every run and model that a --replay folder holds; what it saw is at /stats, what its limits did
    in each second at /stats/seconds. Other providers' ways are played with --like, or for one call by the
    model's name: mistral:noisy. Kinds of faults: 429, 500, 529, stall, reset, cut, invalid_json, dead_key,
    no_quota, error_200, stale, and of streams cut_stream, no_terminator, stream_error, silent.
    """
    from asyncbench.errors import ConfigError
    from asyncbench.simulator import Settings, parse_fault, serve

    if not problems and not replay:
        raise ConfigError(
            "nothing to serve: give --problems with a problem set, or --replay with a results folder"
        )
    settings = Settings(
        port=port,
        seed=seed,
        problems=tuple(problems or ()),
        replay=tuple(replay or ()),
        keys=tuple(key or ()),
        rpm=rpm,
        tpm=tpm,
        input_tpm=input_tpm,
        output_tpm=output_tpm,
        limit_model=limit_model,
        burst_s=burst,
        tokens_counted=tokens_counted,
        latency_s=latency,
        latency_sigma=latency_sigma,
        ttft_s=ttft,
        chunks=chunks,
        like=like,
        faults=tuple(map(parse_fault, fault or ())),
    )
    asyncio.run(serve(settings))


@app.command("import")
def import_results(
    form: Annotated[
        str, typer.Argument(metavar="FORMAT", help="llm-arithmetic, integer-addition, nupa or nupa-problems.")
    ],
    files: Annotated[list[Path], typer.Argument(help="Result files, or folders of them.")],
    out: Annotated[Path, typer.Option(help="The results folder; one that is missing is made.")],
    depths: Annotated[str | None, typer.Option(help="llm-arithmetic: what was planned. [2-10]")] = None,
    trials: Annotated[int | None, typer.Option(help="llm-arithmetic: per task and depth. [10]")] = None,
    style: Annotated[str | None, typer.Option(help="nupa: chat, completion or rules. [chat]")] = None,
    as_json: Json = False,
) -> None:
    """Bring result files of another project into a results folder, each as a run.

    asyncbench import llm-arithmetic data/*.jsonl --out results/published

    asyncbench import nupa llama.jsonl --style completion --out results/published

    asyncbench import nupa-problems test.json --out problems.parquet

    The last makes a problem set of NUPA's published test set.

    Importing a file again adds what is new in it. Lines that cannot be used are named on standard error.
    """
    given = {"depths": depths, "trials": trials, "style": style}
    plan = {name: value for name, value in given.items() if value is not None}
    if form == NUPA_PROBLEMS:
        return _import_problems(files, out, plan, as_json=as_json)
    with _interruptible("import again goes on"):
        from asyncbench.published import import_files

        imported = import_files(form, files, out, **plan)
    for complaint in imported.left_out:
        typer.echo(complaint, err=True)
    typer.echo(imported.as_json() if as_json else imported.as_text())
    raise typer.Exit(imported.exit)


def _import_problems(files: list[Path], out: Path, plan: dict[str, Any], *, as_json: bool) -> None:
    """Make a problem set of a published test set."""
    from asyncbench.errors import ConfigError
    from asyncbench.published.nupa import import_problems

    if len(files) != 1 or plan:
        raise ConfigError(f"import {NUPA_PROBLEMS} takes one file and no further options")
    imported = import_problems(files[0], out)
    for complaint in imported.left_out:
        typer.echo(complaint, err=True)
    made = imported.problems
    said = {"out": str(out), "problems": made.rows, "digest": made.digest, "left_out": imported.left_out}
    typer.echo(json.dumps(said, indent=2) if as_json else f"{out}: {made.rows:,} problems")
    raise typer.Exit(3 if imported.left_out else 0)


@app.command("export")
def export_results(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="llm-arithmetic, integer-addition or nupa.")],
    folder: Annotated[Path, typer.Argument(help="A results folder.")],
    out: Annotated[Path, typer.Option(help="The folder for the files; nothing in it is written over.")],
    as_json: Json = False,
) -> None:
    """Write results as files of another project.

    asyncbench export llm-arithmetic results/overnight --out exported

    A run that was imported becomes a file of its name; of a sweep each model does, and each condition.
    """
    with _interruptible("nothing was exported"):
        from asyncbench.published import export_folder

        exported = export_folder(form, folder, out)
    typer.echo(exported.as_json() if as_json else exported.as_text())


@app.command()
def regrade(
    folder: Annotated[Path, typer.Argument(help="A results folder.")],
    write: Annotated[
        bool, typer.Option("--write", help="Let the new grades take the old ones' place.")
    ] = False,
    grader: Annotated[str | None, typer.Option(help="Show what this grader changes. [headline]")] = None,
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables.")] = False,
) -> None:
    """Grade stored replies by the newest graders, and say what changes; nothing is asked.

    asyncbench regrade results/overnight

    asyncbench regrade results/overnight --write

    Answers that were corrected in the folder's problems/ count. --write keeps the old grades until the new
    are complete; all graders are written, whichever is shown.
    """
    with _interruptible("a table whose new grades were not complete is as it was"):
        from asyncbench.reports import regrade_report

        found = regrade_report(folder, write=write, grader=grader)
    typer.echo(found.as_json() if as_json else found.as_markdown() if markdown else found.as_text())


@app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Results folders of the same sweep; two or more.")],
    out: Annotated[Path, typer.Option(help="The folder to make; the others stay as they are.")],
    as_json: Json = False,
) -> None:
    """Join results folders of the same sweep.

    asyncbench merge results/night-a results/night-b --out results/both

    A trial that stands in several folders has one row: a complete answer before one that was cut short, that
    before none; of equals the one finished first. Every call is kept and counted in what it cost. The new
    folder is run, reported and regraded like any other.
    """
    with _interruptible("nothing was merged"):
        from asyncbench.merging import merge_folders

        merged = merge_folders(folders, out)
    typer.echo(merged.as_json() if as_json else merged.as_text())


@app.command()
def sql(
    folder: Annotated[Path, typer.Argument(help="A results folder.")],
    query: Annotated[str, typer.Argument(help="One SELECT.")],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Json = False,
    parquet: Annotated[Path | None, typer.Option(help="Write a Parquet file.")] = None,
) -> None:
    """Ask a results folder in SQL, over ready-made views; nothing is changed.

    asyncbench sql results/overnight "SELECT model, task, length, accuracy FROM accuracy ORDER BY ALL"

    The views: trials, grades, attempts, lanes, skipped, problems, accuracy, cost, latency; "DESCRIBE cost"
    lists a view's columns. Needs DuckDB: pip install 'asyncbench[sql]'.
    """
    from asyncbench.errors import ConfigError
    from asyncbench.queries import asking

    if as_csv + as_json + (parquet is not None) > 1:
        raise ConfigError("--csv, --json and --parquet: give one of them")
    with asking(folder, query) as answer:
        if parquet is not None:
            typer.echo(f"{parquet}: {answer.write_parquet(parquet):,} rows")
        elif as_csv:
            answer.write_csv(sys.stdout)
        elif as_json:
            answer.write_json(sys.stdout)
        else:
            typer.echo(answer.as_text())


@app.command()
def compact(folder: Annotated[Path, typer.Argument(help="A results folder.")]) -> None:
    """Make the many Parquet parts of a results folder into few: asyncbench compact results/overnight.

    A run does so at its end when there are many. Whoever reads meanwhile finds the old parts or the new.
    """
    with _interruptible("the parts are as they were"):
        from asyncbench.store import Store

        with Store.reopen(folder) as store:
            before, after = store.compact()
    typer.echo(f"{folder}: {before:,} parts are {after:,} now")


@contextmanager
def _interruptible(what_now: str) -> Iterator[None]:
    """Answer Ctrl-C with one line and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"asyncbench: interrupted; {what_now}", err=True)
        raise typer.Exit(130) from None
