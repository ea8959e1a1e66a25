"""The command line: arguments in, exit code out. Everything it does is in the Python API as well."""

import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import NoReturn

import typer

from asyncbench.commands import (
    compact,
    compare_two,
    doctor,
    export_results,
    generate,
    harmless,
    import_results,
    init,
    merge,
    models,
    plan,
    reconcile,
    regrade,
    report,
    run,
    simulate,
    sql,
    status,
    suites,
    withheld,
)
from asyncbench.errors import AsyncbenchError, DamageWarning, StoreError
from asyncbench.files import NO_ROOM, unwritten

app = typer.Typer(
    name="asyncbench",
    help="Find out what language models can do with numbers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback means a bug of ours; locals could show API keys
    rich_markup_mode=None,
)

# `--help` lists them in this order. What generate does not know is a parameter of its suite.
app.command("generate", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(generate)
app.command("suites")(suites)
app.command("init")(init)
app.command("plan")(plan)
app.command("run")(run)
app.command("status")(status)
app.command("report")(report)
app.command("compare")(compare_two)
app.command("reconcile")(reconcile)
app.command("models")(models)
app.command("doctor")(doctor)
app.command("simulate")(simulate)
app.command("import")(import_results)
app.command("export")(export_results)
app.command("regrade")(regrade)
app.command("merge")(merge)
app.command("sql")(sql)
app.command("compact")(compact)

_LOGS = ("OPENAI_LOG", "ANTHROPIC_LOG")  # by which SDKs print headers as servers send them, keys and all


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
        typer.echo(withheld(traceback.format_exc()), err=True)  # a bug of ours, or several
        sys.exit(1)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"asyncbench: {harmless(str(message))}", err=True)


def _refuse(error: AsyncbenchError) -> NoReturn:
    typer.echo(f"asyncbench: {harmless(str(error))}", err=True)
    sys.exit(5 if isinstance(error, StoreError) else 2)


def _give_up_output(error: OSError) -> None:
    """Say that nothing more can be printed; what was to be saved is saved."""
    typer.echo(f"asyncbench: standard output takes no more: {error.strerror}; make room for it", err=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes it at the end
