"""Commands for sweep files and problem sets: init, schema, generate, problems, suites."""

import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from asyncbench.commands.other_forms import with_lists
from asyncbench.commands.terminal import Json, show
from asyncbench.errors import ConfigError


def generate(
    context: typer.Context,
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite, such as llm_arithmetic.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write this Parquet file.")],
    seed: Annotated[
        int, typer.Option(metavar="N", help="Use this seed. It gives the same problems on every machine.")
    ] = 0,
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Use N processes. The problems stay the same.")
    ] = 1,
) -> None:
    """Generate a problem set as a Parquet file.

    asyncbench generate llm_arithmetic --out my.parquet --seed 7 --depths 2-10

    asyncbench generate nupa --out nupa.parquet --per-length 1000 --workers 4

    Other options are parameters of the suite. `asyncbench suites` lists them.

    A sweep can also generate its problems itself: put `{suite: llm_arithmetic, seed: 7}` under `problems:`.
    """
    from asyncbench.problems.making import generate as make
    from asyncbench.tables.numbers import number_of

    made = make(suite, out, seed=seed, workers=workers, **_parameters(with_lists(context.args)))
    typer.echo(f"{made.path}: {number_of(made.rows, 'problem')}, digest {made.digest[:12]}")


def _parameters(arguments: list[str]) -> dict[str, str]:
    """Return `--name value` and `--name=value` pairs as a mapping; dashes in names become underscores."""
    words = [
        word
        for argument in arguments
        for word in (argument.split("=", 1) if argument.startswith("--") else [argument])
    ]
    parameters: dict[str, str] = {}
    for name, value in zip(words[::2], [*words[1::2], None], strict=False):
        if not name.startswith("--") or value is None:
            raise ConfigError(f"{name!r}: unknown argument. Write parameters of the suite as --name value")
        parameters[name.removeprefix("--").replace("-", "_")] = value
    return parameters


def problems(
    action: Annotated[Literal["inspect"], typer.Argument(metavar="inspect", help="What to do: inspect.")],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A problem file: Parquet, CSV or JSON, or hf://datasets/OWNER/NAME."
        ),
    ],
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=COLUMN,…", help="Read these columns, such as question=prompt. Default: usual names."
        ),
    ] = None,
    grader: Annotated[
        str | None, typer.Option(metavar="GRADER", help="Grade with this grader. Default: one that fits.")
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="Only with --grader regex: its first group is the answer."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the columns and questions of a problem file.

    asyncbench problems inspect my.jsonl

    asyncbench problems inspect my.csv --columns question=text,expected=final

    asyncbench problems inspect hf://datasets/OWNER/NAME/FILE

    You see the columns that were found, ten problems as they would be asked, and the lines for a sweep file.
    """
    from asyncbench.reports.problem_file import inspect_problems

    del action  # there is one
    named = dict(_pair(pair) for pair in columns.split(",")) if columns else None
    show(inspect_problems(file, columns=named, grader=grader, pattern=pattern), as_json=as_json)


def _pair(pair: str) -> tuple[str, str]:
    ours, equals, theirs = (part.strip() for part in pair.partition("="))
    if not (ours and equals and theirs):
        raise ConfigError(f"--columns {pair}: this is no NAME=COLUMN. Write it as question=YOUR_COLUMN.")
    return ours, theirs


def suites(as_json: Json = False) -> None:
    """List the suites with their graders and parameters.

    asyncbench suites
    """
    from asyncbench.suites.table import SUITES

    if as_json:
        rows = {
            name: {"graders": suite.graders, "parameters": list(suite.parameters)}
            for name, suite in SUITES.items()
        }
        typer.echo(json.dumps(rows, indent=2))
        return
    for name, suite in SUITES.items():
        typer.echo(f"{name}  (graders: {', '.join(suite.graders)})")
        for parameter, meaning in suite.parameters.items():
            typer.echo(
                f"  --{parameter.replace('_', '-'):<12} {meaning.help}{default_typed(meaning.default)}"
            )


def default_typed(default: object) -> str:
    """Return a default as it would be typed, in brackets; empty where there is none."""
    if default is None:
        return ""
    values = default if isinstance(default, tuple) else (default,)
    numbers = [value for value in values if isinstance(value, int)]
    if len(values) > 2 and list(values) == list(range(min(numbers, default=0), max(numbers, default=0) + 1)):
        return f" (default: {numbers[0]}-{numbers[-1]})"
    return f" (default: {','.join(map(str, values))})"


def schema(
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file instead of the screen.")
    ] = None,
) -> None:
    """Print the JSON schema of sweep files, for editors.

    asyncbench schema --out sweep.schema.json

    An editor with the schema completes keys, explains them and marks mistakes. For YAML editors, put this
    line at the top of your sweep file: # yaml-language-server: $schema=sweep.schema.json
    """
    from asyncbench.config.sweep_file import sweep_schema
    from asyncbench.files import replacing, writing

    text = json.dumps(sweep_schema(), indent=2, ensure_ascii=False)
    if out is None:
        typer.echo(text)
        return
    with writing(out), replacing(out) as file:
        file.write(f"{text}\n".encode())
    typer.echo(f"{out} written. Put this line at the top of your sweep file:")
    typer.echo(f"# yaml-language-server: $schema={out}")


if TYPE_CHECKING:
    from asyncbench.config.starter import FirstSweep

# ── the first sweep file


SIMULATED = "simulated"
_SUITES = {
    "llm_arithmetic": "+ - * / on integers and decimals of 2 to 10 digits",
    "integer_addition": "sums of two integers of up to 30 digits",
    "string_reversal": "write a string backwards",
    "string_rehearsal": "repeat a string",
    "nupa": "44 tasks on numbers of up to 100 digits (Number Cookbook)",
}


def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Write this sweep file.")] = Path("sweep.yaml"),
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing. Use every provider whose API key is set.")
    ] = False,
) -> None:
    """Write a first sweep file, after a few questions.

    asyncbench init sweep.yaml

    It asks for providers, models, problems and a budget. Press Enter to accept what stands in brackets.
    If no API key is set, the sweep asks simulated models, and costs nothing.
    """
    from asyncbench.config.starter import (
        PROBLEMS,
        FirstSweep,
        providers_with_keys,
        providers_without_starter,
        refuse_existing,
        starter_models,
        write_sweep,
    )

    refuse_existing(path)  # before any question
    if yes or not sys.stdin.isatty():
        ready = PROBLEMS if PROBLEMS.is_file() else None
        models = starter_models(providers_with_keys(os.environ))
        first = FirstSweep(name=path.stem, models=models, problems=ready)
    else:
        first = _asked(path.stem)
    write_sweep(path, first)
    names = ", ".join(first.models) or "simulated models: they need no key and cost nothing"
    typer.echo(f"{path} written, with {names}.")
    if others := providers_without_starter(os.environ):
        typer.echo(f"Keys of {', '.join(others)} are set, too. To ask their models, add them to the file.")
    _say_what_is_next(path, first)


def _asked(name: str) -> "FirstSweep":
    """Return the sweep that a person describes."""
    from asyncbench.config.starter import FirstSweep, size_of
    from asyncbench.suites.table import SUITES

    models = tuple(model for provider in _providers() for model in _models(provider))
    (suite,) = _chosen("Which problems?", _SUITES, ["llm_arithmetic"], several=False)
    parameter, usual, most = size_of(suite)
    counted = SUITES[suite].parameters[parameter].help.partition(";")[0].removeprefix("of ")
    unit = counted if "problems" in counted else f"problems of {counted}"
    size = typer.prompt(f"\nHow many {unit}?", default=usual, value_proc=_whole_number(1, most))
    first = FirstSweep(name=name, models=models, suite=suite, size=size)
    return replace(first, budget_usd=_budget(first))


def _providers() -> list[str]:
    """Return the providers that a person chooses."""
    from asyncbench.config.starter import STARTERS, key_variable, providers_with_keys

    ready = providers_with_keys(os.environ)
    options = {name: f"your key is in {key_variable(name)}" for name in ready}
    options |= {SIMULATED: "needs no key and costs nothing"}
    options |= {name: f"needs a key in {key_variable(name)}" for name in STARTERS if name not in ready}
    return _chosen("Which providers?", options, ready or [SIMULATED])


def _models(provider: str) -> list[str]:
    """Return the models of a provider that a person chooses; of simulated ones there is no choice."""
    from asyncbench.config.starter import SIMULATED_MODELS, STARTERS, price_text

    if provider == SIMULATED:
        return [*SIMULATED_MODELS]
    starter = STARTERS[provider]
    names = (starter.model_id, *starter.more)
    options = {name: price_text(f"{provider}/{name}") or "price unknown" for name in names}
    question = f"Which models of {provider}? Prices are USD per million tokens."
    typed = _chosen(question, options, names[:1], free=True)
    models = [f"{provider}/{name.removeprefix(f'{provider}/')}" for name in typed]
    for model in models:
        if (price := price_text(model)) is None or model.partition("/")[2] not in options:
            typer.echo(f"  {model}: {price or 'price unknown'}")
    return models


def _budget(first: "FirstSweep") -> float | None:
    """Return what a sweep may cost, once a person has seen what it probably will."""
    from asyncbench.config.sweep import load_sweep
    from asyncbench.planning.sweep_plan import plan

    forecast = plan(load_sweep(first.as_mapping()))
    calls = sum(model.left for model in forecast.models)
    if forecast.cost_usd == 0:
        typer.echo(f"\n{calls:,} calls, at no cost.")
        return None
    if forecast.cost_usd is None:
        typer.echo(f"\n{calls:,} calls. No budget: the price of a model is unknown. To set one, add `price`.")
        return None
    typer.echo(f"\n{calls:,} calls, for about ${forecast.cost_usd:.2f}.")
    usual = max(1, math.ceil(2 * forecast.cost_usd))
    usd = typer.prompt(
        "Spend at most how many USD? (0: no limit)", default=usual, value_proc=_whole_number(0, 1_000_000)
    )
    return float(usd) or None


def _chosen(
    question: str,
    options: Mapping[str, str],
    usual: Sequence[str],
    *,
    several: bool = True,
    free: bool = False,
) -> list[str]:
    """Return what a person chooses, by number or name; `free`: names that are not listed, too."""
    names, width = list(options), max(map(len, options))
    typer.echo(f"\n{question}")
    for number, (name, about) in enumerate(options.items(), 1):
        typer.echo(f"  {number:>2}  {name:<{width}}  {about}")
    usual_numbers = ",".join(str(names.index(name) + 1) for name in usual)
    how = "Numbers or names, separated by commas" if several else "Number or name"
    while True:
        words = [word.strip() for word in typer.prompt(how, default=usual_numbers).split(",")]
        known = {str(number): name for number, name in enumerate(names, 1)}
        chosen = list(dict.fromkeys(known.get(word, word) for word in words if word))
        odd = [name for name in chosen if name not in options and (not free or name.isdigit())]
        if chosen and not odd and (several or len(chosen) == 1):
            return chosen
        typer.echo(f"{', '.join(odd) or 'That'}: not in the list. Choose again.")


def _whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number of these bounds, both included; others are asked for again."""
    from asyncbench.suites.suite import whole_number

    def read(typed: str) -> int:
        try:
            return whole_number(least, most)(typed)
        except ValueError as error:
            raise typer.BadParameter(f"{typed!s:.60} {error}.") from None

    return read


def _say_what_is_next(path: Path, first: "FirstSweep") -> None:
    from asyncbench.config.starter import key_variable, provider_of

    typer.echo("Next:")
    named = dict.fromkeys(key_variable(provider_of(model)) for model in first.models)
    for name in filter(None, named):
        if not os.environ.get(name, "").strip():
            typer.echo(f"  export {name}=…")
    for command, about in (
        ("doctor", "check keys and models"),
        ("plan", "see cost and time"),
        ("run", "run it; run it again to continue"),
    ):
        typed = f"asyncbench {command} {shlex.quote(str(path))}"
        typer.echo(f"  {typed:<32}  {about}")
