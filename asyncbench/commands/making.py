"""Commands for sweep files and problem sets: schema, generate, problems, suites."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from asyncbench.commands.other_forms import join_lists
from asyncbench.commands.terminal import Json, show
from asyncbench.errors import ConfigError


def generate(
    context: typer.Context,
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite, such as llm_arithmetic.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write this Parquet file.")],
    seed: Annotated[
        int, typer.Option(metavar="N", help="Use this seed. It gives the same problems on every machine.")
    ] = 0,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Leave out the questions of this problem set. Repeatable."),
    ] = None,
) -> None:
    """Generate a problem set as a Parquet file.

    asyncbench generate llm_arithmetic --out my.parquet --seed 7 --depths 2-10

    asyncbench generate nupa --out nupa.parquet --per-length 1000

    asyncbench generate nupa --split train --exclude a.parquet --out b.parquet

    Other options are parameters of the suite. `asyncbench suites` lists them.

    A sweep can also generate its problems itself: put `{suite: llm_arithmetic, seed: 7}` under `problems:`.
    """
    from asyncbench.problems.making import generate as make
    from asyncbench.tables.numbers import number_of

    # Parameters of the suite are `--name value` and `--name=value`; dashes in names become underscores.
    words = [
        word
        for argument in join_lists(context.args)
        for word in (argument.split("=", 1) if argument.startswith("--") else [argument])
    ]
    parameters: dict[str, str] = {}
    for name, value in zip(words[::2], [*words[1::2], None], strict=False):
        if not name.startswith("--") or value is None:
            raise ConfigError(f"{name!r}: unknown argument. Write parameters of the suite as --name value")
        parameters[name.removeprefix("--").replace("-", "_")] = value

    made = make(suite, out, seed=seed, exclude=exclude or (), **parameters)
    typer.echo(f"{made.path}: {number_of(made.rows, 'problem')}, digest {made.digest[:12]}")


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
    decimal: Annotated[
        str | None,
        typer.Option(
            metavar="MARK", help="Only with numbers: this stands before decimals. Default: a point."
        ),
    ] = None,
    wording: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Ask in these words, such as '{question}\\n{choices}'. Default: as shown."
        ),
    ] = None,
    answer_form: Annotated[
        str | None,
        typer.Option(
            metavar="FORM", help="Only with choices: letter, index, position or text. Default: what fits."
        ),
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
    named = columns_typed(columns) if columns else None
    show(
        inspect_problems(
            file,
            columns=named,
            grader=grader,
            pattern=pattern,
            decimal=decimal,
            wording=wording,
            answer_form=answer_form,
        ),
        as_json=as_json,
    )


def columns_typed(typed: str) -> dict[str, str | Sequence[str]]:
    """Return the columns of `question=prompt,expected=final`: our name of a column → a file's.

    `expected=a+b`: each of these holds an accepted answer. `choices=A+B+C`: each holds a choice.

    Raises:
        ConfigError: a part of it is no such pair.
    """
    pairs = dict[str, str | Sequence[str]]()
    for pair in typed.split(","):
        ours, equals, theirs = map(str.strip, pair.partition("="))
        if not (ours and equals and theirs):
            raise ConfigError(f"--columns {pair}: this is no NAME=COLUMN. Write it as question=YOUR_COLUMN.")
        pairs[ours] = theirs.split("+") if ours in ("expected", "choices") and "+" in theirs else theirs
    return pairs


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
