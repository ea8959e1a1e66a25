"""Commands for the run of a folder: status, pause, resume, set, cancel."""

import sys
import warnings
from typing import Annotated

import typer

from asyncbench.commands.terminal import (
    EnvFile,
    Folder,
    Json,
    awaited,
    environment_of,
    interruptible,
    parts_typed,
    show,
)
from asyncbench.errors import ConfigError, DamageWarning


def status(
    folder: Folder,
    as_json: Json = False,
    follow: Annotated[bool, typer.Option("--follow", help="Refresh the screen until the run ends.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read and check every file.")] = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="First ask the providers how open batches stand.")
    ] = False,
    env_file: EnvFile = None,
) -> None:
    """Show how far a sweep is, and check its files.

    asyncbench status results/overnight

    asyncbench status results/overnight --follow

    asyncbench status results/overnight --refresh

    asyncbench status results/overnight --verify

    A folder above several sweeps is a list of them, running ones first: asyncbench status results

    --follow watches a run of another process. With --json it prints one object per line.

    --verify reads every byte and lists what is damaged, missing or duplicate. The exit code is then 5.
    """
    if follow + verify + refresh > 1:
        raise ConfigError("--follow, --verify and --refresh cannot be combined. Give one of them")
    if refresh:
        from asyncbench.run.open_batches import refresh_batches, sweep_in

        env = environment_of(env_file, sweep_in(folder).models)
        for note in awaited(refresh_batches(folder, env=env)):
            typer.echo(f"asyncbench: {note}", err=True)
    if follow:
        with interruptible("the run goes on"):
            from asyncbench.reports.status.watching import follow_status

            follow_status(folder, sys.stdout, as_json=as_json)
        return
    if verify:
        from asyncbench.reports.status.watching import health_of

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)  # whose advice is --verify
            health = health_of(folder)
        typer.echo(health.as_json() if as_json else health.as_text())
        raise typer.Exit(0 if health.sound else 5)
    from asyncbench.reports.status.report import status_of
    from asyncbench.reports.sweeps import sweeps_in

    report = sweeps_in(folder, progress=True) or status_of(folder)
    typer.echo(report.as_json() if as_json else report.as_text())


def pause(folder: Folder, as_json: Json = False) -> None:
    """Pause a run that is going on: it sends nothing new.

    asyncbench pause results/overnight

    Calls in flight end. Batches go on at the provider. A deadline and Ctrl-C still end the run. A step of a
    load that is under way becomes incomplete; it is measured again, as a whole, when you resume.

    Only the user who started the run can pause it. `status` shows who did.
    """
    from asyncbench.run.control import send_request

    show(send_request(folder, {"do": "pause"}), as_json=as_json)


def resume(folder: Folder, as_json: Json = False) -> None:
    """Let a paused run go on.

    asyncbench resume results/overnight

    It is for runs that are paused. To continue a sweep whose run has ended, type `asyncbench run SWEEP`
    again.
    """
    from asyncbench.run.control import send_request

    show(send_request(folder, {"do": "resume"}), as_json=as_json)


def set_limits(
    folder: Folder,
    limits: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=N…",
            help="The limits: rpm, tpm, input_tpm, output_tpm, concurrency. N may be none.",
        ),
    ],
    model: Annotated[
        str | None, typer.Option("--model", metavar="ALIAS", help="Set them for this model. Default: all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Set other rate limits for a run that is going on.

    asyncbench set results/overnight rpm=30

    asyncbench set results/overnight rpm=300 tpm=90000 --model small

    asyncbench set results/overnight concurrency=4

    The limits hold until the run ends; the next one reads the sweep file again. They may be higher than
    those of the sweep. A lower limit that the provider reports still holds. Models of a group share theirs.

    A load takes no limits: its calls go when they are due.
    """
    from asyncbench.run.control import limits_typed, send_request

    show(send_request(folder, {"do": "set", "limits": limits_typed(limits), "model": model}), as_json=as_json)


def cancel(
    folder: Folder,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
    abandon: Annotated[
        str | None,
        typer.Option(
            metavar="PART,…", help="Only give up these parts, of which nobody knows whether they were sent."
        ),
    ] = None,
    env_file: EnvFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Cancel the open batches of a sweep and collect answers.

    asyncbench cancel results/overnight

    asyncbench cancel results/overnight --abandon 0f3a51c2b4d6e879

    Requests that were answered are billed, and their answers collected. A provider may take half an hour to
    end a batch. Ctrl-C leaves it: cancel or run again to go on. The exit code is 3 if a batch is still open.

    A later run asks what was not answered. It does not ask the trials of a part that you gave up: they may be
    paid already. For that there is `asyncbench run SWEEP --resubmit PART`.
    """
    from asyncbench.run.open_batches import cancel_in_folder, price_of_cancelling, sweep_in
    from asyncbench.run.progress import default_screen

    abandoned = parts_typed(abandon, "--abandon")
    sweep, price = sweep_in(folder), price_of_cancelling(folder)
    if price is not None and not (yes or abandoned):
        typer.echo(price, err=True)
        with interruptible("nothing was cancelled"):
            if not _confirm("Cancel them?"):
                typer.echo("nothing was cancelled, and the batches are still open")
                raise typer.Exit(3)
    env = environment_of(env_file, sweep.models)
    screen = default_screen(quiet=quiet or as_json)
    cancelled = awaited(cancel_in_folder(folder, abandoned, env=env, screen=screen))
    show(cancelled, as_json=as_json)
    raise typer.Exit(cancelled.exit)


def _confirm(question: str) -> bool:
    """Ask a person yes or no; raises ConfigError: there is nobody."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:  # Ctrl-C, or there is nobody
        if sys.stdin.isatty():
            raise KeyboardInterrupt from None
        typer.echo(err=True)  # ends the line of the question
        raise ConfigError("this command asks first, and nobody answered. Add --yes") from None
