"""The command init: a first sweep file, after a few questions."""

import math
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asyncbench.commands.terminal import harmless, interruptible
from asyncbench.errors import AsyncbenchError

if TYPE_CHECKING:
    from asyncbench.config.starter import FirstSweep, OwnFile, OwnServer
    from asyncbench.reports.problem_file import ProblemFile

_HOSTED, _SERVER, _NOTHING = "provider", "server", "nothing"
_OWN_FILE = "file"
_OF_ONES_OWN = "questions and right answers of your own: CSV, TSV, JSON lines, JSON or Parquet"
_GRADERS = {
    "number": "the number that a reply gives equals the right one",
    "choice": "the letter that a reply chooses is the right one",
    "exact": "the whole reply is the right text",
    "text": "the same, whatever its case, accents, punctuation and articles",
    "contains": "the right text stands in the reply",
}
_LISTED = 20  # models of a server
_SHOWN = 60  # characters of a value


def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Write this sweep file.")] = Path("sweep.yaml"),
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing. Use every provider whose API key is set.")
    ] = False,
) -> None:
    """Write a first sweep file, after a few questions.

    asyncbench init sweep.yaml

    It asks what you have: a provider with a key, a server of your own, or nothing yet. Then it asks for
    models, for a suite or a file of yours, and for a budget. Press Enter to accept what stands in brackets.

    Without a terminal it asks nothing, as with --yes. If no API key is set, the sweep asks simulated models,
    and costs nothing. `asyncbench run --help` lists the flags that name models and files instead.
    """
    from asyncbench.config import starter

    starter.refuse_existing(path)  # before any question
    if yes or not sys.stdin.isatty():
        # Every provider whose key is set is asked, and the problems of a checkout where they are there.
        models = starter.starter_models(starter.providers_with_keys(os.environ))
        ready = starter.OwnFile(path=starter.PROBLEMS) if starter.PROBLEMS.is_file() else None
        first = starter.FirstSweep(name=path.stem, models=models, file=ready)
    else:
        with interruptible("no file was written"):
            first = _ask_for_sweep(path.stem)
    starter.write_sweep(path, first)
    names = ", ".join(first.models) or "simulated models: they need no key and cost nothing"
    typer.echo(harmless(f"{path} written, with {names}."))
    if not yes and not sys.stdin.isatty():
        typer.echo("Nothing was asked: standard input is no terminal. What it holds was not read.")
    if others := starter.providers_without_starter(os.environ):
        typer.echo(f"Keys of {', '.join(others)} are set, too. To ask their models, add them to the file.")

    # What to type next: keys that are not set, and the commands for the file.
    typer.echo("Next:")
    variables = dict.fromkeys(starter.key_variable(starter.provider_of(model)) for model in first.models)
    for name in filter(None, variables):
        if not os.environ.get(name, "").strip():
            typer.echo(f"  export {name}=…")
    for command, about in (
        ("doctor", "check keys and models"),
        ("plan", "see cost and time"),
        ("run", "run it; run it again to continue"),
    ):
        typed = f"asyncbench {command} {shlex.quote(str(path))}"
        typer.echo(f"  {typed:<32}  {about}")


def _ask_for_sweep(name: str) -> "FirstSweep":
    """Return the sweep that a person describes."""
    from asyncbench.config import starter
    from asyncbench.suites.table import SUITES

    models, servers = _ask_for_models()
    suites = {name: offered.about for name in SUITES if (offered := SUITES.find(name)) and offered.first}
    (suite,) = _choose("Which problems?", suites | {_OWN_FILE: _OF_ONES_OWN}, [*suites][:1], several=False)
    first = starter.FirstSweep(name=name, models=tuple(models), servers=servers)
    if suite == _OWN_FILE:
        first = replace(first, file=_ask_for_file())
    else:
        parameter, usual, largest = starter.size_of(suite)
        counted = SUITES[suite].parameters[parameter].help.partition(";")[0].removeprefix("of ")
        unit = counted if "problems" in counted else f"problems of {counted}"
        size = int(_prompt(f"\nHow many {unit}?", usual, _whole_number(1, largest)))
        first = replace(first, suite=suite, size=size)
    return replace(first, budget_usd=_ask_for_budget(first))


# ── models


def _ask_for_models() -> "tuple[list[str], dict[str, OwnServer]]":
    """Return the models that a person chooses, and the server of each that is not at its provider's."""
    from asyncbench.config import starter

    options = {
        _HOSTED: "a hosted provider, such as OpenAI or Anthropic, and a key for it",
        _SERVER: "a server of your own: vLLM, llama.cpp, Ollama, Azure, any address like OpenAI's",
        _NOTHING: "nothing yet: simulated models answer, without a key and for free",
    }
    ready = starter.providers_with_keys(os.environ)
    kinds = _choose("What do you have?", options, [_HOSTED if ready else _NOTHING])
    models = list[str]()
    if _HOSTED in kinds:
        options = {name: f"your key is in {starter.key_variable(name)}" for name in ready}
        others = [name for name in starter.starters() if name not in ready]
        options |= {name: f"needs a key in {starter.key_variable(name)}" for name in others}
        for provider in _choose("Which providers?", options, ready or [*options][:1]):
            models += _choose_models(provider)
    servers = _choose_served_models() if _SERVER in kinds else {}
    return [*models, *servers, *(starter.SIMULATED_MODELS if _NOTHING in kinds else ())], servers


def _choose_models(provider: str) -> list[str]:
    """Return the models of a provider that a person chooses."""
    from asyncbench.config import starter

    names = starter.starters()[provider].models
    options = {name: starter.price_text(f"{provider}/{name}") or "price unknown" for name in names}
    question = f"Which models of {provider}? Prices are USD per million tokens."
    typed = _choose(question, options, names[:1], free=True)
    models = [f"{provider}/{name.removeprefix(f'{provider}/')}" for name in typed]
    for model in models:
        if (price := starter.price_text(model)) is None or model.partition("/")[2] not in options:
            typer.echo(f"  {model}: {price or 'price unknown'}")
    return models


def _choose_served_models() -> "dict[str, OwnServer]":
    """Return the models of a server of one's own that a person chooses, each with that server."""
    from asyncbench.config import starter
    from asyncbench.providers.listing import models_at

    options = {name: kind.about for name, kind in starter.SERVERS.items()}
    (chosen,) = _choose("Which server?", options, ["vllm"], several=False)
    usual = starter.SERVERS[chosen]
    address = _prompt("\nIts address, up to /v1", usual.base_url, _web_address)
    variable = _prompt(
        "Which environment variable holds its key? (-: it needs none)", usual.key_env or "-", _variable
    )
    server = starter.OwnServer(base_url=str(address), key_env=str(variable) or None)

    # The models that the server lists, at the address that lists them.
    names: Sequence[str] = ()
    if usual.lists:
        key = os.environ.get(server.key_env or "", "").strip()
        faults = []
        for listing in dict.fromkeys((server.base_url, server.base_url.removesuffix("/v1") + "/v1")):
            names, fault = models_at(listing, key)
            if names:
                server = replace(server, base_url=listing)
                break
            faults.append(fault)
        else:
            typer.echo(harmless(f"{server.base_url} lists no models now: {faults[0]}. Type one yourself."))

    if names:
        options = dict.fromkeys(names[:_LISTED], "")
        typed = _choose(f"Which models of {server.base_url}?", options, names[:1], free=True)
    else:
        typed = [str(_prompt("Model, as the server calls it", None, _some_text))]
    return {f"{usual.provider}/{name}": server for name in typed}


# ── a file of one's own


def _ask_for_file() -> "OwnFile":
    """Return a file of one's own, with its columns and its grader."""
    from asyncbench.config import starter
    from asyncbench.problems.custom import first_row, guessed
    from asyncbench.problems.schema import PROBLEM_SCHEMA
    from asyncbench.reports.problem_file import inspect_problems

    while True:
        path = Path(str(_prompt("\nYour file", None, _some_text))).expanduser()
        try:
            row = first_row(path)
            if set(PROBLEM_SCHEMA.names) <= set(row):
                inspect_problems(path)
                return starter.OwnFile(path=path)
            columns = _choose_columns(row, guessed(list(row), {}))
            inspected = _inspect(path, columns)
            (grader,) = _choose("How are replies graded?", _GRADERS, [str(inspected.grader)], several=False)
            decimal = inspected.decimal if grader == "number" else None
            inspected = inspect_problems(path, columns=columns, grader=grader, decimal=decimal)
        except AsyncbenchError as error:
            typer.echo(harmless(f"{error}\nChoose again."))
            continue
        typer.echo(harmless(f"  {inspected.problems:,} problems. Expected answers: {inspected.as_read()}."))
        return starter.OwnFile(
            path=path,
            columns=inspected.columns,
            grader=grader,
            decimal=decimal,
            wording=inspected.wording,
            answer_form=inspected.answer_form,
        )


def _inspect(path: Path, columns: Mapping[str, str]) -> "ProblemFile":
    """Inspect a file, once a person has said what stands before its decimals where the file does not tell."""
    from asyncbench.problems.custom import DecimalUnknownError
    from asyncbench.reports.problem_file import inspect_problems

    try:
        return inspect_problems(path, columns=columns)
    except DecimalUnknownError as unknown:
        marks = {"point": "commas stand between groups", "comma": "points stand between groups"}
        question = f"What stands before decimals in {unknown.answer}?"
        (mark,) = _choose(question, marks, ["comma"], several=False)
        return inspect_problems(path, columns=columns, decimal="." if mark == "point" else ",")


def _choose_columns(row: Mapping[str, str], guesses: Mapping[str, str]) -> dict[str, str]:
    """Show the first row, and return the columns that a person chooses, by our names."""
    options = {}
    for name, value in row.items():
        text = " ".join(value.split())
        options[name] = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    _list("Its first row:", options)
    question = _pick_one("Which column is the question?", options, guesses.get("question"))
    expected = _pick_one("Which is the right answer?", options, guesses.get("expected"))
    task = _pick_one("Which groups the rows in reports, such as a topic? (-: none)", options | {"-": ""}, "-")
    return {"question": question, "expected": expected} | ({} if task == "-" else {"task": task})


# ── money


def _ask_for_budget(first: "FirstSweep") -> float | None:
    """Return the budget of a sweep that a person types, who has seen its probable cost."""
    from asyncbench.config.sweep import load_sweep
    from asyncbench.planning.sweep_plan import plan

    forecast = plan(load_sweep(first.mapping()))
    calls = sum(model.left for model in forecast.models)
    if forecast.cost_usd == 0:
        typer.echo(f"\n{calls:,} calls, at no cost.")
        return None
    if forecast.cost_usd is None:
        typer.echo(f"\n{calls:,} calls. No budget: the price of a model is unknown. To set one, add `price`.")
        return None
    typer.echo(f"\n{calls:,} calls, for about ${forecast.cost_usd:.2f}.")
    usual = max(1, math.ceil(2 * forecast.cost_usd))
    usd = _prompt("Spend at most how many USD? (0: no limit)", usual, _whole_number(0, 1_000_000))
    return float(usd) or None


# ── questions


def _prompt(question: str, usual: object, read: Callable[[str], object]) -> Any:  # Any: what `read` returns
    """Return the value that a person types, once `read` takes it. Enter takes the usual one.

    Raises:
        KeyboardInterrupt: Ctrl-C, or the terminal is closed.
    """
    try:
        return typer.prompt(question, default=usual, value_proc=read)
    except typer.Abort:
        typer.echo()  # ends the line of the question
        raise KeyboardInterrupt from None


def _choose(
    question: str,
    options: Mapping[str, str],
    usual: Sequence[str],
    *,
    several: bool = True,
    free: bool = False,
) -> list[str]:
    """Return the choice of a person, by number or name; `free` allows names that are not listed."""
    _list(question, options)
    if not several:
        return [_pick_one("Number or name", options, usual[0])]
    return _pick_all("Numbers or names, separated by commas", options, usual, free=free)


def _list(question: str, options: Mapping[str, str]) -> None:
    """Show options with their numbers."""
    width = max(map(len, options))
    columns, below = shutil.get_terminal_size().columns, " " * (width + 8)
    typer.echo(f"\n{question}")
    for number, (name, about) in enumerate(options.items(), 1):
        line = f"  {number:>2}  {name:<{width}}  {about}".rstrip()
        typer.echo(harmless(textwrap.fill(line, max(columns, 2 * len(below)), subsequent_indent=below)))


def _pick_one(how: str, options: Mapping[str, str], usual: str | None) -> str:
    """Return one of the options that are shown."""
    while len(picked := _pick_all(how, options, [usual] if usual else [])) > 1:
        typer.echo("Choose one alone.")
    return picked[0]


def _pick_all(how: str, options: Mapping[str, str], usual: Sequence[str], *, free: bool = False) -> list[str]:
    """Return the options that a person picks of those shown, by number or name."""
    names = {str(number): name for number, name in enumerate(options, 1)}
    numbers = {name: number for number, name in names.items()}
    default = ",".join(name if name == "-" else numbers[name] for name in usual) or None
    while True:
        words = [word.strip() for word in _prompt(how, default, _some_text).split(",")]
        picked = list(dict.fromkeys(names.get(word, word) for word in words if word))
        odd = [name for name in picked if name not in options and (not free or name.isdigit())]
        if picked and not odd:
            return picked
        typer.echo(harmless(f"{', '.join(odd) or 'That'}: not in the list. Choose again."))


def _whole_number(least: int, greatest: int) -> Callable[[str], int]:
    """Return a reader of whole numbers within these bounds, both included; others are asked for again."""
    from asyncbench.suites.suite import whole_number

    def read(typed: str) -> int:
        try:
            return whole_number(least, greatest)(typed)
        except ValueError as error:
            raise typer.BadParameter(f"{typed!s:.60} {error}.") from None

    return read


def _some_text(typed: str) -> str:
    if not typed.strip():
        raise typer.BadParameter("nothing was typed.")
    return typed.strip()


def _web_address(typed: str) -> str:
    """Return an address without a slash at its end; what is none is asked for again."""
    from asyncbench.errors import ConfigError
    from asyncbench.providers.endpoints import Endpoint

    try:
        return str(Endpoint(base_url=typed.strip().rstrip("/"), api_key="").base_url)
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from None


def _variable(typed: str) -> str:
    """Return the name of a variable; never repeat what is none, for it may be a key."""
    if typed.strip() in ("-", ""):
        return ""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", typed.strip()):
        raise typer.BadParameter("this is no NAME of a variable. Type its name, never the key itself.")
    return typed.strip()
