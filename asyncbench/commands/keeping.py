"""Results folders kept up: import, export, regrade, merge, compact."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from asyncbench.commands.terminal import Folder, Json, Markdown, interruptible, show
from asyncbench.errors import ConfigError

NUPA_PROBLEMS = "nupa-problems"  # a format of problems, beside those of results


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
    with interruptible("import again goes on"):
        from asyncbench.published import import_files

        imported = import_files(form, files, out, **plan)
    for complaint in imported.left_out:
        typer.echo(complaint, err=True)
    show(imported, as_json=as_json)
    raise typer.Exit(imported.exit)


def _import_problems(files: list[Path], out: Path, plan: dict[str, Any], *, as_json: bool) -> None:
    """Make a problem set of a published test set."""
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


def export_results(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="llm-arithmetic, integer-addition or nupa.")],
    folder: Folder,
    out: Annotated[Path, typer.Option(help="The folder for the files; nothing in it is written over.")],
    as_json: Json = False,
) -> None:
    """Write results as files of another project.

    asyncbench export llm-arithmetic results/overnight --out exported

    A run that was imported becomes a file of its name; of a sweep each model does, and each condition.
    """
    with interruptible("nothing was exported"):
        from asyncbench.published import export_folder

        exported = export_folder(form, folder, out)
    show(exported, as_json=as_json)


def regrade(
    folder: Folder,
    write: Annotated[
        bool, typer.Option("--write", help="Let the new grades take the old ones' place.")
    ] = False,
    grader: Annotated[str | None, typer.Option(help="Show what this grader changes. [headline]")] = None,
    as_json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Grade stored replies by the newest graders, and say what changes; nothing is asked.

    asyncbench regrade results/overnight

    asyncbench regrade results/overnight --write

    Answers that were corrected in the folder's problems/ count. --write keeps the old grades until the new
    are complete; all graders are written, whichever is shown.
    """
    with interruptible("a table whose new grades were not complete is as it was"):
        from asyncbench.reports import regrade_report

        found = regrade_report(folder, write=write, grader=grader)
    show(found, as_json=as_json, markdown=markdown)


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
    with interruptible("nothing was merged"):
        from asyncbench.merging import merge_folders

        merged = merge_folders(folders, out)
    show(merged, as_json=as_json)


def compact(folder: Folder) -> None:
    """Make the many Parquet parts of a results folder into few: asyncbench compact results/overnight.

    A run does so at its end when there are many. Whoever reads meanwhile finds the old parts or the new.
    """
    with interruptible("the parts are as they were"):
        from asyncbench.store import Store

        with Store.reopen(folder) as store:
            before, after = store.compact()
    typer.echo(f"{folder}: {before:,} parts are {after:,} now")
