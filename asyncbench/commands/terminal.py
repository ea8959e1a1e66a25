"""Parts that commands share: common options, printing, and the answer to Ctrl-C."""

import os
import re
from collections.abc import Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from typer.core import TyperCommand

from asyncbench.errors import ConfigError

if TYPE_CHECKING:
    from asyncbench.config.run_entries import WorkersWanted
    from asyncbench.config.sweep import Sweep
    from asyncbench.records import Model
    from asyncbench.tables.report import Report

# ── Parsing: each option takes one value, and none is dropped

# ./~/x is in a folder called ~. The parser makes a Path of it, which leaves ./ out, and ~/x is in the home.
_CALLED_TILDE: Final = re.compile(r"^(--[\w-]+=)?(?:\./+)+(?=~)")


class Command(TyperCommand):
    """A command that refuses an option with two values, of which the parser would keep the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        args = [_CALLED_TILDE.sub(lambda match: f"{match[1] or ''}{os.getcwd()}/", word) for word in args]
        params = self.get_params(ctx)
        names = {word: param for param in params for word in (*param.opts, *param.secondary_opts)}
        alone = {word for word, param in names.items() if is_alone(param)}
        before: dict[str, str] = {}
        for word, value in typed_options(args, alone):
            if word in names and names[word].multiple:
                continue
            option, text = names[word].opts[0] if word in names else word, word if value is None else value
            if before.setdefault(option, text) != text:
                raise ConfigError(f"{option} stands twice, with {before[option]} and {text}. Give it once.")
        words = [word for word in args if not word.startswith("-")]
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if words and error.param is not None and error.param.nargs == -1:
                # the parser keeps the one word for the argument behind the folders; a person means a folder
                *_, error.param = (
                    param for param in ctx.command.params if param.param_type_name == "argument"
                )

            # Say what a value must be, and what it is.
            from pydantic import ValidationError

            from asyncbench.config.entry import rule_of

            if isinstance(error.__cause__, ValidationError):
                fault = error.__cause__.errors()[0]
                if (rule := rule_of(fault)) != fault["msg"]:
                    error.message = f"it must be {rule}, not {fault['input']}."
            raise


def is_alone(option: Any) -> bool:  # Any: typer names no class of them
    """Return whether an option takes no value."""
    return bool(getattr(option, "is_flag", False) or getattr(option, "count", False))


def typed_options(args: Sequence[str], alone: Collection[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each option as it is typed, with its value; those of `alone` take none."""
    words = iter(args)
    for word in words:
        if word == "--":
            return
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            yield name, value if equals else None if name in alone else next(words, None)


# ── Shared options and their values

T = TypeVar("T")
KEYS: set[str] = set()  # API keys that this command was given

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown tables instead of text.")]
SweepFile = Annotated[
    Path | None,
    typer.Argument(metavar="SWEEP", help="The sweep file, in YAML. With --model: a file of problems."),
]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The results folder.")]
Limit = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Ask at most N problems per model. Default: all.")
]
SampleSize = Annotated[
    int | None,
    typer.Option("--sample", metavar="N", min=1, help="Ask N problems of each set, drawn by --seed."),
]
SampledBy = Annotated[
    str | None, typer.Option("--by", metavar="task", help="With --sample: draw of each task in proportion.")
]
Models = Annotated[
    str | None, typer.Option(metavar="ALIAS,…", help="Ask only the models with these aliases. Default: all.")
]
EnvFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Read API keys from this file of NAME=value lines. Default: .env."),
]


def dollars_typed(typed: str) -> float:
    """Return an amount of USD as it was typed: a number alone, without words or currency signs."""
    try:
        usd = float(typed)
    except ValueError:
        usd = nan
    if not 0 < usd < inf:
        raise ConfigError(f"--budget {typed}: not a number of dollars above 0. Give one, such as 5")
    return usd


Budget = Annotated[
    float | None,
    typer.Option(
        parser=dollars_typed,
        metavar="USD",
        help="Spend at most this much, all runs of the folder together. Default: budget_usd of the sweep.",
    ),
]


Workers = Annotated[
    str | None,
    typer.Option(
        metavar="N|auto",
        help="Let N processes make the calls. auto: one fewer than there are cores. Default: workers of the "
        "sweep, else 0: the run makes them itself.",
    ),
]


Journal = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Keep results that go to a bucket (s3://…) in this folder until they are there. Default: one in "
        "~/.local/state.",
    ),
]


def awaited(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of async work; `--help` does not wait for asyncio."""
    import asyncio

    return asyncio.run(work)


def aliases_typed(models: str | None) -> list[str] | None:
    """Return the aliases that --models names, or None for all.

    Raises:
        ConfigError: one of them is empty.
    """
    return names_typed(models, "--models", like="aliases", example="red,blue")


def names_typed(typed: str | None, flag: str, *, like: str, example: str) -> list[str] | None:
    """Return the names of a flag, which commas separate, or None if the flag is not given.

    Raises:
        ConfigError: one of them is empty.
    """
    if typed is None:
        return None
    names = [name.strip() for name in typed.split(",")]
    if not all(names):
        problem = f'{flag} "{typed}": name {names.index("") + 1} of {len(names)} is empty'
        raise ConfigError(f"{problem}. Give {like} with one comma between them, such as {example}")
    return names


def parts_typed(typed: str | None, flag: str) -> list[str]:
    """Return the keys of parts that are named behind a flag."""
    return names_typed(typed, flag, like="parts", example="0f3a51c2b4d6e879,1c2b4d6e8790f3a5") or []


def workers_typed(typed: str | None) -> "WorkersWanted | None":
    """Return the number of workers that was typed, or None.

    Raises:
        ConfigError: it is none.
    """
    from asyncbench.config.run_entries import workers_from

    if typed is None:
        return None
    return workers_from(int(typed) if typed.isascii() and typed.isdecimal() else typed, given_as="--workers")


def environment_of(
    env_file: Path | None,
    models: Collection["Model"],
    *,
    sweep_file: Path | None = None,
    more: Iterable[str | None] = (),
) -> dict[str, str]:
    """Return the variables in which keys are looked up: of this process, and of a file.

    Args:
        env_file: a file that was named, which wins. None: keys that are not set may stand in a `.env` beside
            the sweep, or in the working folder; that is said.
        models: whose keys are needed.
        sweep_file: where the sweep was read from.
        more: names of other variables that are needed.
    """
    from asyncbench.planning.env_files import keys_beside, read_env_file

    if env_file is not None:
        from_file = read_env_file(env_file)
    else:
        names = dict.fromkeys([*(name for model in models for name in model.variables), *filter(None, more)])
        path, from_file = keys_beside(sweep_file, names)
        if path is not None:
            typer.echo(f"asyncbench: {', '.join(from_file)} from {harmless(str(path))}", err=True)
    env = {**os.environ, **from_file}
    KEYS.update(from_file.values(), (env.get(name, "") for model in models for name in model.variables))
    return env


def environment_for(sweep: "Sweep", env_file: Path | None) -> dict[str, str]:
    """Return the variables for a run of a sweep; the address of its notices is a secret, too."""
    webhook = sweep.notify.webhook_env if sweep.notify else None
    env = environment_of(env_file, sweep.models, sweep_file=sweep.file, more=[webhook])
    KEYS.add((sweep.notify.address(env) if sweep.notify else None) or "")
    return env


def show(report: "Report", *, as_json: bool = False, markdown: bool = False, latex: bool = False) -> None:
    """Print a report in the form asked for; LaTeX before JSON before Markdown before text."""
    if latex:
        typer.echo(report.as_latex())
    else:
        typer.echo(report.as_json() if as_json else report.as_markdown() if markdown else report.as_text())


def harmless(text: str) -> str:
    """Return the lines of a message that may quote what others wrote."""
    from asyncbench.tables.screen import safe_note

    return "\n".join(map(safe_note, text.split("\n")))


def withheld(text: str) -> str:
    """Return a traceback without what may be a key: libraries quote what a server said."""
    from asyncbench.providers.secrets import looks_secret, withhold_secret

    named = {value for name, value in os.environ.items() if looks_secret(name)}
    for secret in sorted(named | KEYS, key=len, reverse=True):
        text = withhold_secret(text, key=secret)
    return text


@contextmanager
def interruptible(what_now: str) -> Iterator[None]:
    """Answer Ctrl-C with one line and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"asyncbench: interrupted; {what_now}", err=True)
        raise typer.Exit(130) from None
