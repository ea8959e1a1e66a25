"""The demo: recorded answers are replayed, and simulated models answer the same problems."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from asyncbench.commands.running import run_shown, show_overview
from asyncbench.files import quoted

if TYPE_CHECKING:
    from asyncbench.run.summary import Summary

_PACKAGE: Final = Path(__file__).parents[1]
_RECORDED: Final = "../data/recorded.parquet"  # as the sweep file names it


def demo(
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="The results folder. A second one, FOLDER-pairs, is beside it."),
    ] = Path("results/demo"),
    published: Annotated[
        bool,
        typer.Option("--published", help="Ask nobody: set 26 recorded runs beside their published table."),
    ] = False,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Run nothing: print the sweep file, to change it.")
    ] = False,
) -> None:
    """Replay recorded answers of real models, and rank them.

    asyncbench demo

    asyncbench demo --published --out results/published

    asyncbench demo --sweep > mine.yaml

    Eight published models answered these problems in 2025 and 2026. A server on this machine gives their
    answers again, through the real SDKs. You need no key and no network, and nothing is paid.

    Each recorded model has problems of its own. Three simulated models also answer the same 720 problems, so
    that you can compare two of them problem by problem.
    """
    if published:
        # Import the recorded runs, and show their published table as it was graded then.
        from asyncbench.published.llm_arithmetic.report import llm_arithmetic_report_on
        from asyncbench.upkeep.importing import import_files

        import_files("llm-arithmetic", [shipped("data/recorded.parquet")], out)
        report = llm_arithmetic_report_on(out, grader="legacy", published=True)
        for block in report.published_parts():
            typer.echo(block if isinstance(block, str) else block.as_text())
        typer.echo(f"All its tables: asyncbench report {quoted(out)} --style llm-arithmetic")
        return
    if sweep:
        typer.echo(sweep_text(), nl=False)
        return
    pairs = out.with_name(f"{out.name}-pairs")
    typer.echo("Three simulated models answer the same 720 problems. Then eight recorded ones answer theirs.")
    _run(shipped("configs/demo-pairs.yaml"), pairs, quiet=True)
    summary = _run(shipped("configs/demo.yaml"), out)
    typer.echo(summary.as_text(brief=True))
    show_overview(out)
    typer.echo(
        "  two models on the same problems  asyncbench compare simulated/noisy simulated/noisy-2 "
        f"{quoted(pairs)}"
    )
    raise typer.Exit(summary.exit)


def sweep_text() -> str:
    """Return the sweep file of the demo, with the full path of the recording: it can be saved anywhere."""
    text = shipped("configs/demo.yaml").read_text("utf-8")
    recorded = str(shipped("data/recorded.parquet").resolve())
    return text.replace(_RECORDED, recorded).replace("out: results/demo", "out: results/mine")


def shipped(name: str) -> Path:
    """Return where a file of the demo is: inside the package, or beside it in a checkout."""
    inside = _PACKAGE / "shipped" / name
    return inside if inside.exists() else _PACKAGE.parent / name


def _run(file: Path, out: Path, *, quiet: bool = False) -> "Summary":
    from asyncbench.config.sweep import load_sweep
    from asyncbench.run.options import RunOptions

    return run_shown(replace(load_sweep(file), out=out), RunOptions(), env={}, quiet=quiet)
