"""Commands that read results: view, report, compare, sql, reconcile."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ctypes import CDLL
from dataclasses import replace
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asyncbench.commands.terminal import Folder, Json, Markdown, aliases_typed, awaited, show
from asyncbench.errors import ConfigError
from asyncbench.reports.styles import DRAWN, DRAWN_OPTIONS, NAMES, STYLES, described

if TYPE_CHECKING:
    from asyncbench.analysis.choosing import Chosen
    from asyncbench.tables.gates import GateResult
    from asyncbench.tables.report import Report

_M_MMAP_THRESHOLD, _LARGE = -3, 1 << 20  # a setting of glibc, and from how many bytes on it holds


Folders = Annotated[
    list[Path], typer.Argument(metavar="FOLDER", help="The results folder, or several to compare.")
]
OfSuite = Annotated[str | None, typer.Option(metavar="SUITE", help="Count only trials of this suite.")]
OfTask = Annotated[str | None, typer.Option(metavar="TASK", help="Count only trials of this task.")]
OfModels = Annotated[str | None, typer.Option(metavar="ALIAS,…", help="Count only trials of these models.")]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="SQL", help="Count only trials that meet this condition over columns of trials: length > 5."
    ),
]
Junit = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Also write the answers of the gates to this file, in the form of JUnit."
    ),
]


def view(
    folders: Folders,
    suite: OfSuite = None,
    task: OfTask = None,
    models: OfModels = None,
    where: Where = None,
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, show_default="a free one", help="Listen on this port."
        ),
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, but do not open it.")
    ] = False,
) -> None:
    """Look at results in your browser, while a sweep runs, too.

    asyncbench view results/overnight

    asyncbench view results/monday results/tuesday --models gpt-5-mini,sonnet

    The page has every trial. It follows a running sweep by itself, with its lanes, money and errors. Only you
    can open it: the address holds a secret, and only this machine can reach it. Ctrl-C ends it.

    A folder above several sweeps is a list of them: a click opens one.

    To send results to somebody, write one file: asyncbench report FOLDER --html.
    """
    from asyncbench.page.live.serving import serve_view

    return_freed_memory()
    awaited(
        serve_view(
            folders,
            port=port,
            open_browser=not no_browser,
            suite=suite,
            task=task,
            models=aliases_typed(models),
            where=where,
        )
    )


def return_freed_memory() -> None:
    """Let the system have large arrays back as soon as they are freed.

    glibc keeps what its threads free from 32 MB on downwards: a server of hours held 90 MB more.
    """
    with suppress(AttributeError, OSError, TypeError):  # other C libraries have no such setting, or no name
        CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


def report(
    folders: Folders,
    style: Annotated[
        str | None,
        typer.Option(
            metavar="STYLE", help=f"Show another report: {', '.join(NAMES)}.", autocompletion=lambda: NAMES
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Compare what varied: model, a parameter such as effort, condition, or folder. Or show the "
            'accuracy for each value of an SQL expression over trials: "length % 3".',
        ),
    ] = None,
    suite: OfSuite = None,
    task: OfTask = None,
    models: OfModels = None,
    where: Where = None,
    min_depth: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="llm-arithmetic: leave out fewer digits than N. Default: 5."),
    ] = None,
    grader: Annotated[
        str | None,
        typer.Option(metavar="GRADER", help="llm-arithmetic: layered, legacy or strict. Default: layered."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="heatmap: exact_match, digit_match, dlength, format, cost or latency. Default: accuracy.",
        ),
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="llm-arithmetic, nupa: also show what the benchmark's document prints."
        ),
    ] = False,
    intervals: Annotated[
        bool,
        typer.Option("--intervals", help="nupa: show the 95 % interval of every figure in the tables."),
    ] = False,
    training_length: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LENGTH",
            help="nupa: show figures at the length that models were trained on, and mark it in pictures by "
            "length: 8; 8,20 for tasks of up to 20 and up to 100 digits; MODEL=8. Repeatable.",
        ),
    ] = None,
    as_json: Json = False,
    markdown: Markdown = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX tables instead of text.")] = False,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write all charts (SVG, PNG, PDF) and tables to this folder. With --style nupa, "
            "llm-arithmetic or error-map: the pictures of that style. `nupa:5,nupa:table-7` instead of a "
            "folder: only Figure 5 and Table 7, to the folder of --out.",
        ),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(
            "--width",
            metavar="COLUMNS",
            help="With --figures: draw pictures as wide as one or two columns of a paper. Default: two.",
            autocompletion=lambda: ("one", "two"),
        ),
    ] = None,
    html: Annotated[
        bool,
        typer.Option(
            "--html", help="Write a page to open in a browser. With --style: that report, to print."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="With --html: write the page to this file. With --figures nupa:5: write to this folder. "
            "Default: FOLDER/report.html or FOLDER/STYLE.html; figures.",
        ),
    ] = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="THRESHOLD", help="Exit with 4 unless this is so. Repeatable."),
    ] = None,
    junit: Junit = None,
) -> None:
    """Show accuracy, cost and latency of all models.

    asyncbench report results/overnight

    asyncbench report results/nupa --style nupa --published --figures paper/nupa

    asyncbench report results/nupa --figures nupa:5,nupa:table-7 --out paper

    asyncbench report results/mon results/tue --by effort --where "length > 5"

    asyncbench report results/ci --fail-under "gpt-5-mini: accuracy >= 0.9"

    Filters work with every style, --html and --figures. Several folders are compared on the same problems. A
    folder above several sweeps is a list of them: asyncbench report results
    """
    from asyncbench.analysis.choosing import chosen as choose

    # `--style card red`: a style of one model takes its alias behind the folders.
    single = style in STYLES and STYLES[style].single
    if single and models is None and len(folders) > 1 and not folders[-1].exists():
        *folders, alias = folders
        models = str(alias)
    chosen = choose(folders, suite=suite, task=task, models=aliases_typed(models), where=where)
    if junit and not fail_under:
        raise ConfigError("--junit is for --fail-under. Add --fail-under, or leave --junit out")
    gates: Sequence[GateResult] = ()
    if fail_under:
        from asyncbench.reports.thresholds import threshold_results

        gates = threshold_results(chosen, fail_under)
    options: dict[str, Any] = {"by": by, "min_depth": min_depth, "grader": grader, "metric": metric}
    options |= {"published": published, "intervals": intervals}  # Any: of the style
    options |= {"training_length": training_length}
    if figures or width:
        form = {"json": as_json, "markdown": markdown, "latex": latex, "html": html}
        _write_figures(chosen, figures, out, width, style, options=options, form=form)
    elif html or out:
        forms = {"json": as_json, "markdown": markdown, "latex": latex}
        _write_page(chosen, out, style, gates, html=html, options=options, forms=forms)
    else:
        from asyncbench.reports.report import report as report_of

        made = report_of(chosen, style, **options)
        _show_with(gates, made, as_json=as_json, markdown=markdown, latex=latex)
    if gates:
        from asyncbench.analysis.served import simulated_note_of

        simulated = simulated_note_of(chosen, simulated=False)
        _end_with(gates, junit, [simulated] if simulated else [])


# The styles stand once, in their table.
report.__doc__ = "\n\n".join([cleandoc(report.__doc__ or ""), "Styles:", *described()])


def _show_with(gates: "Sequence[GateResult]", report: "Report", **forms: bool) -> None:
    """Print a report with what its gates answered; in text they stand on standard error alone, as the end."""
    show(replace(report, gates=tuple(gates)) if any(forms.values()) else report, **forms)


def _end_with(results: "Sequence[GateResult]", junit: Path | None, notes: Sequence[str]) -> None:
    """Print the answers of the gates, write them to a file if one is named, and exit unless all passed."""
    from asyncbench.tables.gates import exit_code, write_junit

    if junit is not None:
        write_junit(junit, results, notes=notes)
    for result in results:
        typer.echo(result.line, err=True)
    if code := exit_code(results):
        raise typer.Exit(code)


def _write_figures(
    chosen: "Chosen",
    typed: Path | None,
    out: Path | None,
    width: str | None,
    style: str | None,
    *,
    options: Mapping[str, Any],
    form: Mapping[str, object],
) -> None:
    """Write a folder's charts and tables and list them; options that say what is shown do not go with it."""
    from asyncbench.page.charts.figure_files import write_figures

    if typed is None:
        raise ConfigError("--width is for --figures. Add --figures, or leave --width out")
    named = _pictures_typed(str(typed))
    form = form if named else {**form, "out": out}
    options_given = {name: value for name, value in (*options.items(), *form.items()) if value}
    allowed = DRAWN_OPTIONS if style or named else ()
    if odd := next((name for name in options_given if name not in allowed), None):
        raise ConfigError(
            f"--{odd.replace('_', '-')} cannot be combined with --figures. Leave one of them out"
        )
    if unknown := sorted({*named} - {*DRAWN}):
        raise ConfigError(
            f"--figures {typed}: no style {unknown[0]!r} draws pictures. Choose of: {', '.join(DRAWN)}. "
            f"If it is a folder, write ./{typed}"
        )
    if named and style and {style} != {*named}:
        raise ConfigError(f"--figures {typed} is not of --style {style}. Leave --style out")

    folder = (out or Path("figures")) if named else typed
    for of_style, pictures in named.items() or [(style, None)]:
        written = write_figures(
            chosen,
            folder,
            of_style,
            width=width or "two",
            pictures=pictures,
            notify=partial(typer.echo, err=True),
            **options_given,
        )
        for path in written:
            typer.echo(path)


def _pictures_typed(typed: str) -> dict[str, list[str]]:
    """Return the pictures that are chosen of each style: `nupa:5,nupa:table-7`; empty: it names a folder."""
    named = dict[str, list[str]]()
    style = ""
    for item in typed.split(","):
        before, colon, name = item.strip().partition(":")
        if colon and "/" not in before and not name.startswith("/"):
            style = before
        elif not style:
            return {}
        named.setdefault(style, []).append(name if colon else before)
    return named


def _write_page(
    chosen: "Chosen",
    out: Path | None,
    style: str | None,
    gates: "Sequence[GateResult]",
    *,
    html: bool,
    options: Mapping[str, Any],
    forms: Mapping[str, bool],
) -> None:
    """Write a folder's page, or that of a report in a style, and say where it is."""
    from asyncbench.page.report_page import write_report
    from asyncbench.page.writing import page_path, write_page

    if not html:
        raise ConfigError("--out names the page of --html. Add --html, or leave --out out")
    without = forms if style else {**options, **forms}
    if odd := next((name for name, value in without.items() if value), None):
        raise ConfigError(f"--{odd.replace('_', '-')} cannot be combined with --html. Leave one of them out")
    if style is None:
        typer.echo(write_page(chosen, out).as_text())
        return

    from asyncbench.reports.report import report as report_of

    path = page_path(chosen, out, name=f"{style}.html")
    made = replace(report_of(chosen, style, **options), gates=tuple(gates))
    write_report(made, path, title=made.heading() or f"{style}: {chosen}")
    typer.echo(f"{path}. Open it in a browser, or print it.")


def compare_two(
    a: Annotated[
        str, typer.Argument(metavar="A", help="The first model: its alias, run, or name in reports.")
    ],
    b: Annotated[
        str, typer.Argument(metavar="B", help="The second model. Left out: A, in the second of two folders.")
    ],
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER", help="The results folder. Of two, A is in the first and B in the second."
        ),
    ],
    suite: Annotated[
        str | None, typer.Option(metavar="SUITE", help="Compare on this suite only. Default: all.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="TASK", help="Compare on this task only. Default: all.")
    ] = None,
    where: Where = None,
    examples: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Show N questions that only A, and N that only B got right."),
    ] = 5,
    unpaired: Annotated[bool, typer.Option("--unpaired", help="Also show the unpaired test.")] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(metavar="GATE", help="Exit with 4 if B is worse than A, 3 if undecided. Repeatable."),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(metavar="N", help="With --fail-if: accept a loss of up to N points, or percent."),
    ] = None,
    junit: Junit = None,
    as_json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Test whether one of two models is really better.

    asyncbench compare gpt-5-mini sonnet results/overnight

    asyncbench compare "mini (zero-shot)" "mini (5-shot)" results/nupa

    asyncbench compare gpt-5-mini results/last-week results/overnight

    asyncbench compare mini results/main results/pr --fail-if worse --margin 2

    asyncbench compare "mini in a" "mini in b" results/a results/b results/c

    The test is paired: only problems that both models were asked count. So it finds small differences.
    --unpaired is for models that were asked different problems.

    --json has all questions on which the two differ.

    --fail-if worse is a gate for accuracy, --fail-if "latency_p95_s worse by 10 %" one for another figure:
    cost_usd, latency_p50_s, latency_p95_s, ttft_p50_s or ttft_p95_s. It passes only where the 95 % interval
    rules out a loss as large as the margin.
    """
    from asyncbench.reports.comparison.baseline import gate_results, gates_from
    from asyncbench.reports.comparison.report import compare_on
    from asyncbench.store.manifest import is_results_folder

    if len(folders) == 1 and is_results_folder(Path(b)):
        b, folders = a, [Path(b), *folders]
    if junit and not fail_if:
        raise ConfigError("--junit is for --fail-if. Add --fail-if worse, or leave --junit out")
    gates = gates_from(fail_if or (), margin)

    comparison = compare_on(
        a,
        b,
        folders,
        suite=suite,
        task=task,
        where=where,
        unpaired=unpaired,
        examples=examples,
        every=as_json,
    )
    results = gate_results(a, b, folders, gates, suite=suite, task=task, where=where) if gates else ()
    _show_with(results, comparison, as_json=as_json, markdown=markdown)
    if results:
        _end_with(results, junit, comparison.found.simulated_notes)


def reconcile(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The provider's usage export: CSV, JSON or JSON lines.")
    ],
    folder: Folder,
    columns: Annotated[
        str | None,
        typer.Option(metavar="OURS=THEIRS,…", help="Name the columns of the file: day=date,cost=amount_usd."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=ALIAS", help="Match a model name of the file to an alias. Repeatable."),
    ] = None,
    provider: Annotated[
        str | None, typer.Option(metavar="PROVIDER", help="Compare the calls of this provider only.")
    ] = None,
    utc_offset: Annotated[
        float, typer.Option(metavar="HOURS", min=-12, max=14, help="Set the time zone of the file's days.")
    ] = 0.0,
    tolerance: Annotated[
        float, typer.Option(metavar="PERCENT", min=0, help="Accept a difference of up to this much.")
    ] = 1.0,
    as_json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Compare recorded cost with a provider's bill.

    asyncbench reconcile usage.json results/overnight

    asyncbench reconcile bill.csv results/overnight --columns day=date,cost=usd

    asyncbench reconcile bill.csv results/overnight --model "Haiku 4.5=haiku"

    The comparison is by day and model. The exit code is 3 if a difference is above the tolerance.

    These exports need no --columns, from the API or by the Export button: usage and costs of OpenAI and
    Anthropic, activity of OpenRouter.

    Names for --columns: day, model, line_item, cost, cost_cents, currency, input, uncached_input,
    cached_input, cache_write, output, reasoning, requests. `a+b` adds two columns.
    """
    from asyncbench.reports.reconciliation.comparing import reconcile as compared

    reconciliation = compared(
        file,
        folder,
        columns=columns,
        models=model or (),
        provider=provider,
        utc_offset_h=utc_offset,
        tolerance=tolerance / 100,
    )
    show(reconciliation, as_json=as_json, markdown=markdown)
    raise typer.Exit(0 if reconciliation.close else 3)


def sql(
    folders: Folders,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One SELECT or DESCRIBE.")],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    as_json: Json = False,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a Parquet file instead of a table.")
    ] = None,
) -> None:
    """Query results with SQL.

    asyncbench sql results/overnight "SELECT model, task, outcome FROM trials"

    asyncbench sql results/overnight "DESCRIBE cost"

    asyncbench sql results/a results/b "SELECT folder, model, calls FROM cost"

    Views: trials, grades, attempts, lanes, skipped, steps, problems, cells, accuracy, cost, latency, minutes.
    DESCRIBE lists the columns of a view. Of several folders, each view has the column `folder`. A query
    cannot change a folder.
    """
    from asyncbench.analysis.sql import asking

    if as_csv + as_json + (parquet is not None) > 1:
        raise ConfigError("--csv, --json and --parquet cannot be combined. Give one of them")
    with asking(folders, query) as answer:
        if parquet is not None:
            typer.echo(f"{parquet}: {answer.write_parquet(parquet):,} rows")
        elif as_csv:
            answer.write_csv(sys.stdout)
        elif as_json:
            answer.write_json(sys.stdout)
        else:
            typer.echo(answer.as_text())
