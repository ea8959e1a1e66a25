"""Commands that change results folders: import, export, track, regrade, merge."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from asyncbench.commands.making import columns_typed
from asyncbench.commands.terminal import Folder, Json, Markdown, aliases_typed, interruptible, show
from asyncbench.errors import ConfigError

NUPA_PROBLEMS = "nupa-problems"  # a format of problems, beside those of results
BATCH = "batch"  # files of a provider's batches, beside those of benchmarks


def import_results(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="inspect, lm-eval, promptfoo or jsonl; llm-arithmetic, integer-addition, nupa, "
            "nupa-problems or batch.",
        ),
    ],
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Result files, or folders of them.")],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Add the results to this folder. It is created if missing.")
    ],
    depths: Annotated[
        str | None,
        typer.Option(
            metavar="2-10", help="llm-arithmetic: the numbers of digits that were planned. Default: 2-10."
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(metavar="N", help="llm-arithmetic: the trials planned per task and depth. Default: 10."),
    ] = None,
    style: Annotated[
        str | None, typer.Option(metavar="STYLE", help="nupa: chat, completion or rules. Default: chat.")
    ] = None,
    shots: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="nupa: the worked examples before each question.")
    ] = None,
    condition: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="nupa: the name of the condition. Default: 5-shot, chat."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The name of the model, where the file does not tell it."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=FIELD,…", help="jsonl: the fields, such as question=q,reply=output,grade=ok."
        ),
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="batch: the folder that `export --batch-files` wrote."),
    ] = None,
    partial: Annotated[
        bool,
        typer.Option("--partial", help="batch: ask requests without a result again. Default: wait for it."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Import the logs and result files of other tools.

    asyncbench import inspect logs/*.eval --out results/logs

    asyncbench import lm-eval out/*/samples_*.jsonl --out results/logs

    asyncbench import promptfoo results.json --out results/logs

    asyncbench import llm-arithmetic data/*.jsonl --out results/published

    asyncbench import nupa llama.jsonl --style completion --out results/nupa

    asyncbench import nupa five.jsonl --model llama --shots 5 --out results/nupa

    asyncbench import nupa-problems test.json --out problems.parquet

    asyncbench import batch out/*.jsonl --requests requests --out results/mine

    asyncbench import batch output.jsonl errors.jsonl --out results/overnight

    batch without --requests gives results that you fetched yourself to the open batches of a run's folder.

    Each file becomes a run; all files of batches become one. If you import a file again, only new lines are
    added. Lines that cannot be used are named on standard error.

    nupa-problems makes a problem set from the published test set of NUPA.
    """
    options: dict[str, object] = {"depths": depths, "trials": trials, "style": style}
    options |= {"shots": shots, "condition": condition, "model": model}
    options["columns"] = None if columns is None else columns_typed(columns)
    plan = {name: value for name, value in options.items() if value is not None}
    if form == NUPA_PROBLEMS:
        return _import_problems(files, out, plan, as_json=as_json)
    if form != BATCH and requests is not None:
        raise ConfigError("--requests is for `import batch` alone. Remove it.")
    if form == BATCH and plan:
        raise ConfigError(f"import batch takes no --{', --'.join(plan)}. Remove them.")
    if partial and (form != BATCH or requests is not None):
        raise ConfigError("--partial is for `import batch` without --requests alone. Remove it.")
    with interruptible("run the same import again to continue"):
        from asyncbench.upkeep.batch_files.handed_in import HandedIn, hand_in_results
        from asyncbench.upkeep.batch_files.results import import_batches
        from asyncbench.upkeep.importing import Imported, import_files

        imported: Imported | HandedIn
        if requests is not None:
            imported = import_batches(files, out, requests=requests)
        elif form == BATCH:
            imported = hand_in_results(files, out, partial=partial)
        else:
            imported = import_files(form, files, out, **plan)
    for complaint in imported.left_out:
        typer.echo(complaint, err=True)
    show(imported, as_json=as_json)
    raise typer.Exit(imported.exit)


def _import_problems(files: list[Path], out: Path, plan: dict[str, Any], *, as_json: bool) -> None:
    """Make a problem set of a published test set."""
    from asyncbench.published.nupa.files import import_problems
    from asyncbench.tables.numbers import number_of

    if len(files) != 1 or plan:
        raise ConfigError(
            f"import {NUPA_PROBLEMS} takes exactly one file, and no option but --out and --json"
        )
    imported = import_problems(files[0], out)
    for complaint in imported.left_out:
        typer.echo(complaint, err=True)
    problems = imported.problems
    result = {
        "out": str(out),
        "problems": problems.rows,
        "digest": problems.digest,
        "left_out": imported.left_out,
    }
    typer.echo(json.dumps(result, indent=2) if as_json else f"{out}: {number_of(problems.rows, 'problem')}")
    raise typer.Exit(3 if imported.left_out else 0)


def export_results(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="csv, jsonl, llm-arithmetic, integer-addition, nupa, inspect, every-eval-ever; with "
            "--batch-files a sweep.",
        ),
    ],
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="The results folder. None with --batch-files.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Required: the folder for the files, or the file of csv and jsonl."
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="csv, jsonl: write this table or view of `sql`. Default: trials."),
    ] = None,
    batch_files: Annotated[
        str | None,
        typer.Option(
            "--batch-files",
            metavar="FORM",
            help="Write a sweep's open trials as batch requests: openai, anthropic or nupa.",
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(metavar="ALIAS,…", help="Write only the models with these aliases. Default: all."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Write at most N problems per model. Default: all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Export results as CSV, or in a format of another project.

    asyncbench export csv results/overnight --out trials.csv

    asyncbench export jsonl results/overnight --table cost --out cost.jsonl

    asyncbench export llm-arithmetic results/overnight --out exported

    asyncbench export inspect results/overnight --out logs

    asyncbench export configs/nupa-batch.yaml --batch-files nupa --out requests

    csv and jsonl write one table. In the formats of projects, each imported run becomes one file with its old
    name, and a sweep one file per model and condition. Existing files are never overwritten.

    inspect writes .eval logs, one per model, condition and suite. `inspect view --log-dir logs` shows them.
    every-eval-ever writes the accuracy of suites and tasks, one JSON file per model and condition.

    --batch-files is for batches that you submit yourself. Each model gets a folder of request files, and a
    map from custom id to trial.
    """
    if batch_files is not None:
        if folder is not None:
            raise ConfigError(f"{folder}: export --batch-files takes a sweep file alone. Remove the folder.")
        out, aliases = _required(out), aliases_typed(models)
        with interruptible("models that were not complete have no files"):
            from asyncbench.upkeep.exporting import export_batches

            exported = export_batches(batch_files, Path(form), out, models=aliases, limit=limit)
        show(exported, as_json=as_json)
        return
    if folder is None or (models, limit) != (None, None):
        raise ConfigError(
            "export needs a format and a results folder: asyncbench export csv FOLDER --out FILE. "
            "--models and --limit are for --batch-files"
        )
    with interruptible("nothing was exported"):
        from asyncbench.upkeep.exporting import OF_TABLES, export_folder, export_table

        if form in OF_TABLES:
            show(export_table(form, folder, _required(out), table=table or "trials"), as_json=as_json)
            return
        if table is not None:
            raise ConfigError(f"--table {table}: {form} has no tables. Leave it out, or export csv")
        show(export_folder(form, folder, _required(out)), as_json=as_json)


def track_results(
    folder: Folder,
    mlflow: Annotated[
        str | None, typer.Option(metavar="URI", help="An MLflow server. The sweep is its experiment.")
    ] = None,
    wandb: Annotated[
        str | None, typer.Option(metavar="PROJECT", help="A project at Weights & Biases.")
    ] = None,
    otel: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="An OpenTelemetry collector (OTLP over HTTP). Each call is a span."
        ),
    ] = None,
) -> None:
    """Send figures to MLflow, Weights & Biases or OpenTelemetry.

    asyncbench track results/overnight --mlflow http://127.0.0.1:5000

    asyncbench track results/overnight --wandb numbers

    asyncbench track results/overnight --otel http://127.0.0.1:4318

    Each model under each condition is a run of the tracker, with its settings and figures; the page is an
    artifact. What is sent again updates that run. `track:` in a sweep file does this at the end of each run.
    """
    with interruptible("not all was sent; send it again"):
        from asyncbench.trackers.tracking import track

        sent = track(folder, mlflow=mlflow, wandb=wandb, otel=otel)
    typer.echo("\n".join(f"{tracker}: {sentence}" for tracker, sentence in sent.items()))


def _required(out: Path | None) -> Path:
    if out is None:
        raise ConfigError("export needs --out: the file that csv or jsonl writes, else a folder")
    return out


def regrade(
    folder: Folder,
    write: Annotated[bool, typer.Option("--write", help="Replace the old grades by the new ones.")] = False,
    grader: Annotated[
        str | None,
        typer.Option(
            metavar="GRADER", help="Show the changes of this grader. Default: the suite's main one."
        ),
    ] = None,
    as_json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Grade stored replies again with the newest graders.

    asyncbench regrade results/overnight

    asyncbench regrade results/overnight --write

    No model is called. Without --write, you only see what would change. Corrected answers in the folder's
    problems/ count.

    --write keeps the old grades until all new ones are complete. It writes the grades of all graders.
    """
    with interruptible("tables that were not complete keep their old grades"):
        from asyncbench.reports.regrading import regrade_report

        report = regrade_report(folder, write=write, grader=grader)
    show(report, as_json=as_json, markdown=markdown)
    raise typer.Exit(3 if report.regraded.ungraded else 0)


def merge(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER", help="Two or more results folders of the same sweep.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Create this folder. The others stay as they are.")
    ],
    as_json: Json = False,
) -> None:
    """Merge results folders of one sweep into a new one.

    asyncbench merge results/night-a results/night-b --out results/both

    If several folders have the same trial, a complete answer wins over a truncated one, and any answer over
    none. If two are equally good, the older one wins. The cost of all calls is kept.

    You can run, report and regrade the new folder like any other.
    """
    with interruptible("nothing was merged"):
        from asyncbench.upkeep.merging import merge_folders

        merged = merge_folders(folders, out)
    show(merged, as_json=as_json)
