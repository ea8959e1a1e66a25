"""Options of commands that take a sweep: those that replace its file, of steps, and of its suite."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from asyncbench.commands.making import default_typed
from asyncbench.commands.other_forms import join_lists, refuse_others
from asyncbench.commands.own_file import holds_problems
from asyncbench.commands.terminal import Command, is_alone, typed_options
from asyncbench.errors import ConfigError

WHAT: Final = "Instead of a sweep file"
OF_NO_LOAD: Final = ("concurrency", "mode")  # its calls go when they are due, in real time
# The option before which those of a load's steps stand, by the commands that have them.
STEPS_BEFORE: Final = {"plan": "env_file", "load": "models"}
SELDOM: Final = (  # options that only --help-all shows
    *("decimal", "answer_form", "key_env", "context", "style", "digits"),
    *("ignore", "accept_loss", "resubmit", "ray", "journal"),
)
_ALL: Final = "asyncbench.help_all"
_TYPED: Final = "asyncbench.flags"  # where the context of a command keeps them
_STEPS: Final = "asyncbench.steps"
_SUITE: Final = "asyncbench.suite"
_OWN_FILE: Final = "asyncbench.own_file"


def _what(
    model: Annotated[
        list[str] | None, typer.Option(metavar="PROVIDER/MODEL", help="Ask this model. Repeatable.")
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="SUITE",
            help="Generate the problems of this suite. --help then lists its parameters. Or custom: yours.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Generate from this seed. Default: 0.")
    ] = None,
    problems: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Ask the problems of this file. Repeatable.")
    ] = None,
    grader: Annotated[
        str | None,
        typer.Option(
            metavar="GRADER",
            help="Grade your own problems with exact, number, choice or MODULE:FUNCTION.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=COLUMN,…",
            help="Read these columns of yours, such as question=prompt. Default: usual names.",
        ),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option(
            metavar="MARK", help="With --grader number: this stands before decimals. Default: a point."
        ),
    ] = None,
    answer_form: Annotated[
        str | None,
        typer.Option(
            metavar="FORM",
            help="With choices: answers are a letter, index, position or text. Default: what fits.",
        ),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(metavar="N", help="Ask each problem N times. Default: 1.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the results and the sweep file here.")
    ] = None,
) -> None: ...


def _how(
    effort: Annotated[
        str | None, typer.Option(metavar="EFFORT,…", help="Let models think so hard: low,high.")
    ] = None,
    temperature: Annotated[
        str | None, typer.Option(metavar="X,…", help="Sample at this temperature.")
    ] = None,
    max_tokens: Annotated[
        str | None,
        typer.Option(
            metavar="N,…",
            help="Allow replies of up to N tokens. With --retry truncated: also beside a sweep file.",
        ),
    ] = None,
    rpm: Annotated[str | None, typer.Option(metavar="N,…", help="Send at most N requests a minute.")] = None,
    tpm: Annotated[str | None, typer.Option(metavar="N,…", help="Use at most N tokens a minute.")] = None,
    concurrency: Annotated[
        str | None, typer.Option(metavar="N,…", help="Hold at most N calls in flight.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask the server at this address.")
    ] = None,
    key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Read the key from this variable. Default: the provider's usual one."
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="MODE",
            help="Ask call by call (realtime), in batches of the provider (batch), which cost less and take "
            "up to a day, or in batches as far as the deadline allows (auto). Also beside a sweep file.",
        ),
    ] = None,
) -> None: ...


def _words(
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="Send this system prompt.")] = None,
    template: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help=r'Ask in such words: "{question}\nThink step by step.". Write \n for a new line.',
        ),
    ] = None,
    shots: Annotated[
        str | None, typer.Option(metavar="N", help="Show N worked examples, or those of a file.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Begin with small talk: 1k, 2k, 4k, or a file.")
    ] = None,
    style: Annotated[
        str | None, typer.Option(metavar="STYLE", help="Ask in this form: chat, completion or rules.")
    ] = None,
    digits: Annotated[
        str | None,
        typer.Option(
            metavar="FORM,…", help="Write numbers reversed, zero_padded, spaced, grouped or indexed."
        ),
    ] = None,
) -> None: ...


def _steps(
    rates: Annotated[
        str | None,
        typer.Option(metavar="X,…", help="Hold these rates, in calls a second, one after the other."),
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(metavar="LOW:HIGH", help="Find the highest rate between these that keeps the SLO."),
    ] = None,
    slo: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=X,…", help="Promise this, in seconds: ttft=0.5,tpot=0.05,latency=20,share=0.95."
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Replay the calls of this trace (CSV, JSON lines or Parquet) at their times, with questions "
            "and replies of their lengths.",
        ),
    ] = None,
    speed: Annotated[
        str | None,
        typer.Option(
            metavar="X,…", help="Replay the trace X times as fast, one after the other. Default: 1."
        ),
    ] = None,
    arrivals: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Send calls constant, poisson, gamma, closed or trace."),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Measure each step so long: 2m. --find makes steps longer until their calls can tell.",
        ),
    ] = None,
    warmup: Annotated[str | None, typer.Option(metavar="TIME", help="Count no call before: 15s.")] = None,
    drain: Annotated[
        str | None, typer.Option(metavar="TIME", help="Wait so long for the last answers: 60s.")
    ] = None,
    rest: Annotated[
        str | None, typer.Option(metavar="TIME", help="Pause so long between two steps: 10s.")
    ] = None,
    past_limits: Annotated[
        bool, typer.Option("--past-limits", help="Also ask rates above the rpm of a model.")
    ] = False,
) -> None: ...


def _of_load(
    tokens: Annotated[
        str | None,
        typer.Option(
            metavar="IN/OUT",
            help="Ask made-up questions of IN tokens, as the server counts, for replies of OUT: 512/128.",
        ),
    ] = None,
    concurrency: Annotated[
        str | None,
        typer.Option(
            metavar="N,…", help="Let so many callers ask in turn, step by step: --arrivals closed --rates N,…"
        ),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(metavar="N", help="The server has N GPUs: show tokens a second for each of them."),
    ] = None,
) -> None: ...


def _options_of(declared: Callable[..., None], panel: str | None = None) -> list[Any]:  # Any: of typer
    """Return the parameters of a function as options that stand under one heading of --help."""
    app = typer.Typer(add_completion=False)
    app.command()(declared)
    options: list[Any] = list(typer.main.get_command(app).params)
    for option in options:
        option.rich_help_panel = panel
    return options


def _suite_options(name: str, taken: Collection[str]) -> list[Any]:
    """Return an option for each parameter of a suite but those that the command has already.

    Raises:
        ConfigError: no suite has that name.
    """
    from asyncbench.config.entry import suggestion
    from asyncbench.suites.own_suites import suite_called
    from asyncbench.suites.table import SUITES

    suite = suite_called(name, place=f"--suite {name}")
    if suite is None:
        raise ConfigError(f"--suite {name}: unknown suite. {suggestion(name, SUITES)}")

    def declared() -> None: ...

    parameters = []
    for parameter, declaration in suite.parameters.items():
        if flag(parameter) in taken:
            continue
        meaning, default = declaration.help, default_typed(declaration.default)
        sentence = f"{meaning[:1].upper()}{meaning[1:]}{default}"
        text = f"{sentence}." if len(sentence) < 120 else f"{sentence[:119]}…"
        parameters.append(
            inspect.Parameter(
                parameter,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[str | None, typer.Option(metavar="VALUE", help=text)],
            )
        )
    declared.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    return _options_of(declared, f"Parameters of {name}")


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit


def _help(
    help_all: Annotated[
        bool,
        typer.Option(
            "--help-all",
            callback=_show_all,
            is_eager=True,
            expose_value=False,
            help="Show all options, also those that few need.",
        ),
    ] = False,
) -> None: ...


class SweepCommand(Command):
    """A command that takes a sweep file, or the flags that stand for one and parameters of their suite."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        groups = (
            (_what, WHAT),
            (_how, "How to ask (write 0,1 to compare values)"),
            (_words, "Words around each question"),
        )
        left_out = OF_NO_LOAD if self.name == "load" else ()
        self._flags = [
            option
            for group, panel in groups
            for option in _options_of(group, panel)
            if option.name not in left_out
        ]
        before = STEPS_BEFORE.get(self.name or "")
        self._steps = [] if before is None else _options_of(_steps)
        if self.name == "load":  # elsewhere --concurrency is the most calls in flight
            self._steps = [*_options_of(_of_load), *self._steps]
        names = [param.name for param in self.params]
        arguments = [param for param in self.params if param.param_type_name == "argument"]
        index = len(arguments) if before is None else names.index(before)
        options = [*self.params[len(arguments) : index], *self._steps, *self.params[index:]]
        self.params = [*arguments, *self._flags, *options, *_options_of(_help)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        alone = {word for param in self.get_params(ctx) for word in param.opts if is_alone(param)}
        args = join_lists(args)
        typed = list(typed_options(args, alone))
        options = {word for param in self.params for word in param.opts}
        suites = [value for word, value in typed if word == "--suite" and value is not None]
        if len(suites) > 1:
            raise ConfigError(f"--suite {suites[1]}: a second suite. Name one, or list both in a sweep file")
        if suites:
            ctx.meta[_SUITE] = _suite_options(suites[0], options)
        elif strays := [word for word, _ in typed if word not in options]:
            # A parameter of a suite needs a suite.
            from asyncbench.suites.table import SUITES

            for word in strays:
                owners = [name for name, suite in SUITES.items() if word in map(flag, suite.parameters)]
                if owners:
                    raise ConfigError(
                        f"{word}: a parameter of {', '.join(owners)}. Name the suite, such as --suite "
                        f"{owners[0]}"
                    )
        with_suite = {word for param in self.get_params(ctx) for word in param.opts}
        refuse_others((word for word, _ in typed), with_suite)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        return [*super().get_params(ctx), *ctx.meta.get(_SUITE, ())]

    def invoke(self, ctx: Any) -> Any:
        path = ctx.params["sweep_file"]
        is_own_file = path is not None and holds_problems(path)
        for key, params in ((_TYPED, (*self._flags, *ctx.meta.get(_SUITE, ()))), (_STEPS, self._steps)):
            typed = {param.name: ctx.params.pop(param.name) for param in params}
            flags = {name: value for name, value in typed.items() if value not in (None, [], ())}
            ctx.meta[key] = {name: value for name, value in flags.items() if value is not False}  # 0 is one
        ctx.meta[_OWN_FILE] = is_own_file
        if is_own_file:
            if "problems" in ctx.meta[_TYPED]:
                raise ConfigError(f"{path} and --problems both name problems. Leave one of them out")
            ctx.meta[_TYPED]["problems"] = [str(path)]
            ctx.params["sweep_file"] = None
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {"Arguments": [], WHAT: []}
        groups |= {option.rich_help_panel: [] for option in ctx.meta.get(_SUITE, ())}
        for param in self.get_params(ctx):
            if param.name in SELDOM and _ALL not in ctx.meta:
                continue
            kind = "Arguments" if param.param_type_name == "argument" else "Options"
            groups.setdefault(getattr(param, "rich_help_panel", None) or kind, []).append(param)
        for group, params in groups.items():
            with formatter.section(group):
                formatter.write_dl([record for param in params if (record := param.get_help_record(ctx))])


def flag(name: str) -> str:
    """Return how a key of a sweep file or a parameter of a suite is typed."""
    return f"--{name.replace('_', '-')}"


def flags_typed(context: typer.Context) -> dict[str, Any]:
    """Return the flags that were typed instead of a sweep file, by name; they may be added to."""
    typed: dict[str, Any] = context.meta[_TYPED]
    return typed


def is_own_file(context: typer.Context) -> bool:
    """Return whether a file of problems stands where a sweep file would."""
    return bool(context.meta[_OWN_FILE])


def steps_typed(context: typer.Context) -> Mapping[str, str | int | Path]:
    """Return the options of a load's steps that were typed, by their keys in a sweep file."""
    typed: Mapping[str, str | int | Path] = context.meta[_STEPS]
    return typed


Extend = Annotated[
    bool,
    typer.Option("--extend", help="Add this sweep to the one that its results folder holds."),
]


_ADDRESS = re.compile(r"auto|local|[^-].*:\d+|[^-].*://.*")  # of a Ray cluster


class RunCommand(SweepCommand):
    """`run`, whose `--ray` may stand without an address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        return super().parse_args(ctx, join_ray_address(args))


def join_ray_address(args: list[str]) -> list[str]:
    """Return arguments in which each `--ray` has a value; an address has a port, or is `auto` or `local`.

    >>> join_ray_address(["--ray", "night.yaml", "--ray", "head:6379"])
    ['--ray=', 'night.yaml', '--ray=head:6379']
    """
    words: list[str] = []
    for word in args:
        if words[-1:] == ["--ray="] and _ADDRESS.fullmatch(word):
            words[-1] += word
        else:
            words.append("--ray=" if word == "--ray" else word)
    return words
