"""Command line: arguments in, exit code out. The Python API does all of it as well."""

import gc
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from asyncbench.commands.controlling import cancel, pause, resume, set_limits, status
from asyncbench.commands.demo import demo
from asyncbench.commands.keeping import export_results, import_results, merge, regrade, track_results
from asyncbench.commands.making import generate, problems, schema, suites
from asyncbench.commands.providers import doctor, models, simulate
from asyncbench.commands.reading import compare_two, reconcile, report, sql, view
from asyncbench.commands.running import load, plan, run
from asyncbench.commands.starting import init
from asyncbench.commands.sweep_options import RunCommand, SweepCommand
from asyncbench.commands.terminal import Command, harmless, withheld
from asyncbench.errors import AsyncbenchError, DamageWarning, StoreError
from asyncbench.files import NO_ROOM, unwritten

# In the order of use, as `--help` lists them.
COMMANDS: Mapping[str, Mapping[str, Callable[..., None]]] = {
    "Start": {
        "demo": demo,
        "init": init,
        "doctor": doctor,
        "plan": plan,
        "run": run,
        "load": load,
        "cancel": cancel,
    },
    "Control": {"pause": pause, "resume": resume, "set": set_limits},
    "Look": {"status": status, "view": view, "report": report, "compare": compare_two, "sql": sql},
    "Data": {
        "generate": generate,
        "problems": problems,
        "suites": suites,
        "models": models,
        "schema": schema,
    },
    "Keep": {
        "regrade": regrade,
        "merge": merge,
        "import": import_results,
        "export": export_results,
        "track": track_results,
        "reconcile": reconcile,
        "simulate": simulate,
    },
}
_OPEN = {"allow_extra_args": True, "ignore_unknown_options": True}  # the parameters of a suite


class CommandsInGroups(TyperGroup):
    """Lists the commands in groups before the options, each with the first paragraph of its help."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        for group, named in COMMANDS.items():
            rows = [(name.ljust(width), str(self.commands[name].help).split("\n\n")[0]) for name in named]
            with formatter.section(group):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """They stand before the options."""


app = typer.Typer(
    name="asyncbench",
    cls=CommandsInGroups,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    pretty_exceptions_enable=False,  # a traceback means a bug of ours; locals could show API keys
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"asyncbench {version('asyncbench')}")
        raise typer.Exit


@app.callback(
    help="Find out what language models can do with numbers.",
    epilog="Help on one command: asyncbench run --help",
)
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


for _named in COMMANDS.values():
    for _name, _command in _named.items():
        _kind = RunCommand if _command is run else SweepCommand if _command in (plan, load) else Command
        app.command(_name, cls=_kind, context_settings=_OPEN if _command is generate else None)(_command)

COLLECTED_AFTER = 500_000  # objects: a command that makes fewer, as imports do, leaves no garbage to speak of
_OF_MEMORY = ("Out of Memory Error", "std::bad_alloc", "Unknown error: Failed to launch worker")
_NO_MEMORY = (
    "there is not enough memory for this. All results saved before are safe. Close other programs or raise "
    "the limit (`ulimit -v`, a container's or a job's), and repeat the command."
)
_NOWHERE = (
    "the current directory is gone: another program removed or moved it. Change to one that exists, and "
    "repeat the command there."
)
_LOGS = ("OPENAI_LOG", "ANTHROPIC_LOG")  # by which SDKs print headers as servers send them, keys and all


def main() -> None:
    """Run the command; an error of ours is one line on standard error and an exit code."""
    gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])
    for name in _LOGS:
        os.environ.pop(name, None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", DamageWarning)
            warnings.showwarning = _warn
            app()
    except (Exception, BaseExceptionGroup) as error:
        if _lacks_memory(error):
            _refuse(StoreError(_NO_MEMORY))
        if isinstance(error, AsyncbenchError):
            _refuse(error)
        if isinstance(error, FileNotFoundError) and _is_nowhere():
            _refuse(StoreError(_NOWHERE))
        if isinstance(error, OSError) and error.errno in NO_ROOM:  # results have errors of their own
            if error.filename is not None:  # a temporary file, say
                _refuse(unwritten(Path(os.fsdecode(error.filename)), error))
            # Nothing more can be printed; what was to be saved is saved.
            why = f"cannot write to standard output: {error.strerror}. Make room for it"
            typer.echo(f"asyncbench: {why}", err=True)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it is flushed at the end
            sys.exit(5)
        typer.echo(withheld(traceback.format_exc()), err=True)  # a bug of ours, or several
        sys.exit(1)


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether an error is that no memory was left, in Python's, Arrow's or DuckDB's words, or came of it."""
    while error is not None:
        if isinstance(error, MemoryError) or str(error).startswith(_OF_MEMORY):
            return True
        if isinstance(error, BaseExceptionGroup) and any(map(_lacks_memory, error.exceptions)):
            return True
        error = error.__cause__
    return False


def _is_nowhere() -> bool:
    """Whether the directory in which the command began is no more."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"asyncbench: {harmless(str(message))}", err=True)


def _refuse(error: AsyncbenchError) -> NoReturn:
    typer.echo(f"asyncbench: {harmless(str(error))}", err=True)
    sys.exit(5 if isinstance(error, StoreError) else 2)
