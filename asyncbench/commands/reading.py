"""Results read: report, compare, sql, reconcile."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from asyncbench.commands.terminal import Folder, Json, Markdown, show
from asyncbench.errors import ConfigError

Style = Annotated[
    str | None,
    typer.Option(
        help="morning, standings, heatmap, anatomy, cost, quota, llm-arithmetic, integer-addition or nupa."
    ),
]
Figures = Annotated[Path | None, typer.Option(help="Write all charts (SVG, PNG) and tables to this folder.")]


def report(
    folder: Folder,
    style: Style = None,
    min_depth: Annotated[int | None, typer.Option(min=1, help="llm-arithmetic: no lesser depth. [5]")] = None,
    grader: Annotated[str | None, typer.Option(help="llm-arithmetic: layered, legacy or strict.")] = None,
    as_json: Json = False,
    markdown: Markdown = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX tables.")] = False,
    figures: Figures = None,
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
    printed: dict[str, object] = {"style": style, "json": as_json}
    printed |= {"min_depth": min_depth, "grader": grader, "prices": prices}
    if figures:
        printed |= {"markdown": markdown, "latex": latex, "html": html, "out": out}
        _write_figures(folder, figures, without=printed)
    elif html or out:
        _write_page(folder, out, without=printed, asked=html)
    else:
        from asyncbench.reports import report as report_of

        found = report_of(folder, style, prices=prices, min_depth=min_depth, grader=grader)
        show(found, as_json=as_json, markdown=markdown, latex=latex)


def _write_figures(folder: Path, out: Path, *, without: dict[str, object]) -> None:
    """Write a folder's charts and tables and list them; options that say what is shown do not go with it."""
    from asyncbench.charts import write_figures

    if odd := next((name for name, value in without.items() if value), None):
        raise ConfigError(f"--{odd.replace('_', '-')} does not go with --figures; leave one of them out")
    for path in write_figures(folder, out):
        typer.echo(path)


def _write_page(folder: Path, out: Path | None, *, without: dict[str, object], asked: bool) -> None:
    """Write a folder's page and say where it is; options that say what is printed do not go with it."""
    from asyncbench.page import write_page

    if not asked:
        raise ConfigError("--out is where --html writes its page: give both, or leave --out out")
    if odd := next((name for name, value in without.items() if value), None):
        raise ConfigError(f"--{odd.replace('_', '-')} does not go with --html; leave one of them out")
    typer.echo(write_page(folder, out).as_text())


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
    markdown: Markdown = False,
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
    show(found, as_json=as_json, markdown=markdown)


def reconcile(
    file: Annotated[Path, typer.Argument(help="A provider's usage export: CSV, JSON or JSON lines.")],
    folder: Folder,
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
    markdown: Markdown = False,
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
    show(found, as_json=as_json, markdown=markdown)
    raise typer.Exit(0 if found.close else 3)


def sql(
    folder: Folder,
    query: Annotated[str, typer.Argument(help="One SELECT.")],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Json = False,
    parquet: Annotated[Path | None, typer.Option(help="Write a Parquet file.")] = None,
) -> None:
    """Ask a results folder in SQL, over ready-made views; nothing is changed.

    asyncbench sql results/overnight "SELECT model, task, length, accuracy FROM accuracy ORDER BY ALL"

    The views: trials, grades, attempts, lanes, skipped, problems, accuracy, cost, latency; "DESCRIBE cost"
    lists a view's columns.
    """
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
