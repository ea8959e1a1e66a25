"""Options that replace a sweep file: the keys that people vary, and the parameters of a suite."""

import inspect
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from asyncbench.commands.making import default_typed
from asyncbench.commands.other_forms import model_in, refuse_others, with_lists
from asyncbench.commands.terminal import Command, is_alone, typed_options
from asyncbench.errors import ConfigError

if TYPE_CHECKING:
    from asyncbench.config.sweep import Sweep
    from asyncbench.suites.suite import Parameter, Suite

Flags = Mapping[str, Any]  # those that were typed: name → text or number, or a list of texts

WHAT: Final = "Instead of a sweep file"
HOW: Final = "How to ask (write 0,1 to compare values)"
WORDS: Final = "Words around each question"
SUITE_OF_LOADS: Final = "llm_arithmetic"  # short questions with short answers
OF_MODELS: Final = ("effort", "temperature", "max_tokens", "base_url", "rpm", "tpm", "concurrency")
OF_SWEEPS: Final = ("repeats", "mode")
OF_NO_LOAD: Final = ("concurrency", "mode")  # its calls go when they are due, in real time
OF_CONDITIONS: Final = ("system", "template", "shots", "style", "context", "digits")
# The option before which those of a load's steps stand, by the commands that have them.
STEPS_BEFORE: Final = {"plan": "env_file", "load": "models"}
_TYPED: Final = "asyncbench.flags"  # where the context of a command keeps them
_STEPS: Final = "asyncbench.steps"
_SUITE: Final = "asyncbench.suite"


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
            metavar="GRADER", help="With --suite custom: grade with exact, number, choice or MODULE:FUNCTION."
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
    arrivals: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Send calls constant, poisson, gamma or closed.")
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
    from asyncbench.suites.table import SUITES

    if name not in SUITES:
        raise ConfigError(f"--suite {name}: unknown suite. {suggestion(name, SUITES)}")

    def declared() -> None: ...

    parameters = [
        inspect.Parameter(
            parameter,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, typer.Option(metavar="VALUE", help=_help_of(declaration))],
        )
        for parameter, declaration in SUITES[name].parameters.items()
        if flag(parameter) not in taken
    ]
    declared.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    return _options_of(declared, f"Parameters of {name}")


def _help_of(parameter: "Parameter") -> str:
    sentence = f"{parameter.help[:1].upper()}{parameter.help[1:]}{default_typed(parameter.default)}"
    return f"{sentence}." if len(sentence) < 120 else f"{sentence[:119]}…"


class SweepCommand(Command):
    """A command that takes a sweep file, or the flags that stand for one and parameters of their suite."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        groups = ((_what, WHAT), (_how, HOW), (_words, WORDS))
        known = (option for group, panel in groups for option in _options_of(group, panel))
        left_out = OF_NO_LOAD if self.name == "load" else ()
        self._flags = [option for option in known if option.name not in left_out]
        before = STEPS_BEFORE.get(self.name or "")
        self._steps = [] if before is None else _options_of(_steps)
        names = [param.name for param in self.params]
        arguments = [param for param in self.params if param.param_type_name == "argument"]
        at = len(arguments) if before is None else names.index(before)
        own = [*self.params[len(arguments) : at], *self._steps, *self.params[at:]]
        self.params = [*arguments, *self._flags, *own]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        alone = {word for param in self.get_params(ctx) for word in param.opts if is_alone(param)}
        args = with_lists(args)
        typed = list(typed_options(args, alone))
        own = {word for param in self.params for word in param.opts}
        suites = [value for word, value in typed if word == "--suite" and value is not None]
        if len(suites) > 1:
            raise ConfigError(f"--suite {suites[1]}: a second suite. Name one, or list both in a sweep file")
        if suites:
            ctx.meta[_SUITE] = _suite_options(suites[0], own)
        elif strays := [word for word, _ in typed if word not in own]:
            _refuse_parameters(strays)
        known = {word for param in self.get_params(ctx) for word in param.opts}
        refuse_others((word for word, _ in typed), known)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        return [*super().get_params(ctx), *ctx.meta.get(_SUITE, ())]

    def invoke(self, ctx: Any) -> Any:
        for key, params in ((_TYPED, (*self._flags, *ctx.meta.get(_SUITE, ()))), (_STEPS, self._steps)):
            typed = {param.name: ctx.params.pop(param.name) for param in params}
            ctx.meta[key] = {
                name: value for name, value in typed.items() if value not in (None, False, [], ())
            }
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {"Arguments": [], WHAT: []}
        groups |= {option.rich_help_panel: [] for option in ctx.meta.get(_SUITE, ())}
        for param in self.get_params(ctx):
            kind = "Arguments" if param.param_type_name == "argument" else "Options"
            groups.setdefault(getattr(param, "rich_help_panel", None) or kind, []).append(param)
        for group, params in groups.items():
            with formatter.section(group):
                formatter.write_dl([record for param in params if (record := param.get_help_record(ctx))])


def flag(name: str) -> str:
    """Return how a key of a sweep file or a parameter of a suite is typed."""
    return f"--{name.replace('_', '-')}"


def _refuse_parameters(strays: Sequence[str]) -> None:
    """Refuse parameters of suites where none is named."""
    from asyncbench.suites.table import SUITES

    for word in strays:
        owners = [name for name, suite in SUITES.items() if word in map(flag, suite.parameters)]
        if owners:
            raise ConfigError(
                f"{word}: a parameter of {', '.join(owners)}. Name the suite, such as --suite {owners[0]}"
            )


# ── Sweeps from options


def sweep_of(
    context: typer.Context,
    sweep_file: Path | None,
    *,
    combinable: Collection[str] = (),
    read: "Callable[[Path | Sweep], Sweep] | None" = None,
    extend: bool = False,
) -> "Sweep":
    """Return the sweep of a file, or the one that the flags stand for.

    Args:
        context: of the command, which holds the flags.
        sweep_file: the file that was named.
        combinable: flags that go with a file.
        read: reads the file, or makes another sweep of the one typed. [as they are]
        extend: ask all that the sweep of the results folder asks, too.

    Raises:
        ConfigError: there is neither or both, or the sweep is wrong.
    """
    from asyncbench.config.overriding import with_out
    from asyncbench.config.sweep import load_sweep

    flags: Flags = context.meta[_TYPED]
    if sweep_file is not None and (odd := [flag(name) for name in flags if name not in combinable]):
        raise ConfigError(
            f"give either {sweep_file} or {', '.join(odd)}, not both. Keys of the sweep stand in the file"
        )
    read = read or load_sweep
    env_file = context.params.get("env_file") or Path(".env")
    sweep = _sweep_typed(flags, read, env_file) if sweep_file is None else read(sweep_file)
    if sweep_file is not None and "out" in flags:
        sweep = with_out(sweep, flags["out"])
    if not extend:
        return sweep
    from asyncbench.planning.belonging import extended

    return extended(sweep)


def fill_for_load(context: typer.Context) -> str:
    """Put in what a load without a sweep file may leave out: problems, and a folder. Return it in words."""
    from asyncbench.suites.table import SUITES

    flags: dict[str, Any] = context.meta[_TYPED]
    sentences = []
    if "model" in flags and not {"suite", "problems"} & flags.keys():
        flags["suite"], suite = SUITE_OF_LOADS, SUITES[SUITE_OF_LOADS]
        seed = flags.setdefault("seed", 0)
        drafts = suite.generate(seed, suite.parsed({}, place="load")) if suite.generate else ()
        sentences.append(f"Asks the {len(list(drafts)):,} problems of {SUITE_OF_LOADS}, seed {seed}.")
    if "model" in flags and "out" not in flags:
        flags["out"] = Path("results", re.sub(r"[^\w.-]+", "-", "-".join(["load", *flags["model"]])))
        sentences.append(f"Results go to {flags['out']}.")
    return " ".join(sentences)


def steps_typed(context: typer.Context) -> Mapping[str, str | bool]:
    """Return the options of a load's steps that were typed, by their keys in a sweep file."""
    typed: Mapping[str, str | bool] = context.meta[_STEPS]
    return typed


def flag_typed(context: typer.Context, name: str) -> str | None:
    """Return what was typed for a flag; None: nothing."""
    typed: Flags = context.meta[_TYPED]
    return typed.get(name)


def _sweep_typed(flags: Flags, read: "Callable[[Sweep], Sweep]", env_file: Path) -> "Sweep":
    from asyncbench.config.place import Place
    from asyncbench.config.sweep import sweep_from
    from asyncbench.planning.belonging import check_comparable

    lacking = [flag(name) for name in ("model", "out") if name not in flags]
    lacking += ["--suite or --problems"] * (not {"suite", "problems"} & flags.keys())
    if lacking:
        message = "give a sweep file, or --model, --suite or --problems, and --out"
        hint = "" if "model" in flags else model_in(env_file)
        raise ConfigError(f"{message} ({', '.join(lacking)} missing){hint}" if flags else f"{message}{hint}")
    named = {name: flag(name) for name in (*OF_MODELS, *OF_CONDITIONS, *OF_SWEEPS, "seed", "grader", "out")}
    place = Place(source="command line", flags=named | {"models": "--model", "problems": "--problems"})
    sweep = read(sweep_from(_mapping_of(flags), place=place))
    check_comparable(sweep)
    return sweep


def _mapping_of(flags: Flags) -> dict[str, object]:
    """Return what the sweep file holds that flags stand for."""
    out, models = flags["out"], flags["model"]
    if twice := [model for model in models if models.count(model) > 1]:
        raise ConfigError(
            f"--model {twice[0]}: given twice. For several answers to each problem use --repeats"
        )
    words = {name: _word(name, flags[name]) for name in OF_CONDITIONS if name in flags}
    condition = {"name": _condition_name(words), **words}
    return {
        "name": out.name,
        "problems": list(_problem_sets(flags)),
        "models": [{"model": model, **_values_of_models(model, flags)} for model in models],
        **({"conditions": [condition]} if words else {}),
        **{name: flags[name] for name in OF_SWEEPS if name in flags},
        "out": str(out),
    }


def _values_of_models(model: str, flags: Flags) -> dict[str, Any]:  # Any: as a sweep file may hold it
    """Return the other keys of a model; simulated ones cost nothing."""
    from asyncbench.providers.endpoints import known_endpoints

    endpoint = known_endpoints().get(model.partition("/")[0])
    simulated = endpoint is not None and endpoint.simulated and "base_url" not in flags
    free = {"price": {"input": 0, "output": 0}} if simulated else {}
    return {name: _values(name, flags) for name in OF_MODELS if name in flags} | free


def _values(name: str, flags: Flags) -> Any:
    """Return the value of a key of models, or a list of several."""
    read = str if name in ("effort", "base_url") else _number
    words = [flags[name]] if name == "base_url" else [word.strip() for word in flags[name].split(",")]
    if "" in words:
        raise ConfigError(f"{flag(name)} {flags[name]!r}: a value is empty. Write one, or several as a,b")
    try:
        values = [read(word) for word in words]
    except ValueError:
        raise ConfigError(f"{flag(name)} {flags[name]}: not a number. Write one, or several as 1,2") from None
    return values[0] if len(values) == 1 else values


def _number(word: str) -> int | float:
    try:
        return int(word)
    except ValueError:
        return float(word)


def _word(name: str, typed: str) -> object:
    """Return the value of a key of conditions."""
    if name == "digits":
        forms = [form.strip() for form in typed.split(",")]
        return forms[0] if len(forms) == 1 else forms
    if name == "shots" and typed.isdecimal():
        return int(typed)
    # A shell hands on \n as it is typed.
    return typed.replace(r"\n", "\n") if name in ("system", "template") else typed


def _condition_name(words: Mapping[str, object]) -> str:
    """Return a name that tells apart what people vary: `context=2k shots=3`, `template`."""
    parts = [
        name
        if name in ("system", "template")
        else f"{name}={','.join(value) if isinstance(value, list) else Path(str(value)).stem}"
        for name, value in words.items()
    ]
    return " ".join(parts) or "plain"


def _problem_sets(flags: Flags) -> Iterator[object]:
    """Yield the problem sets: the one that --suite and its parameters stand for, then those of --problems."""
    from asyncbench.suites.table import SUITES

    suite, files = SUITES.get(flags.get("suite", "")), flags.get("problems", ())
    own = suite is not None and suite.generate is None
    if own and not files:
        raise ConfigError("--suite custom: your own problems are in a file. Name it with --problems")
    if own and "grader" not in flags:
        way = f"`asyncbench problems inspect {files[0]}` shows which one fits"
        raise ConfigError(f"--suite custom: your own problems need a --grader. {way}")
    if "seed" in flags and (suite is None or own):
        raise ConfigError("--seed: only the problems of a suite are generated. Leave it out")
    if "grader" in flags and not own:
        raise ConfigError("--grader: only your own problems take one. Add --suite custom, or leave it out")
    if suite is not None and not own:
        yield {"suite": suite.name, "seed": flags.get("seed", 0), **_parameters(suite, flags)}
    for file in files:
        yield {"path": file, "suite": flags["suite"], "grader": flags["grader"]} if own else file


def _parameters(suite: "Suite", flags: Flags) -> dict[str, object]:
    """Return what was typed for the parameters of a suite."""
    parameters = dict[str, object]()
    for name in suite.parameters.keys() & flags.keys():
        try:
            value = suite.parameters[name].parse(flags[name])
        except ValueError as error:
            raise ConfigError(f"{flag(name)} {flags[name]}: {error}") from None
        parameters[name] = value if isinstance(value, int) else flags[name]
    suite.parsed(parameters, place=f"--suite {suite.name}")
    return {name: parameters[name] for name in suite.parameters if name in parameters}


def way_to_budget(sweep: "Sweep", context: typer.Context) -> str:
    """Return what to type, or which sweep file to write, so that a budget can hold all models of a sweep."""
    from asyncbench.planning.budget_bounds import priced

    if all(priced(sweep, model) for model in sweep.models):
        return "Add --max-tokens, such as --max-tokens 1000."
    mapping = _mapping_of(context.meta[_TYPED])
    entries = []
    for name in context.meta[_TYPED]["model"]:
        provider, _, model_id = name.partition("/")
        alike = [model for model in sweep.models if (model.provider, model.model_id) == (provider, model_id)]
        unpriced = not all(priced(sweep, model) for model in alike)
        price: dict[str, object] = {"price": {"input": "…", "output": "…"}} if unpriced else {}
        entries.append(
            {"model": name, "max_tokens": 1000} | _values_of_models(name, context.meta[_TYPED]) | price
        )
    return "\n".join(
        [
            "Write these lines to sweep.yaml, put in your own figures, and run that file:",
            *(
                f"{key}: {json.dumps(value, ensure_ascii=False)}"
                for key, value in (mapping | {"models": entries}).items()
            ),
        ]
    ).replace('"…"', "…")


# ── Options of `run` alone


Extend = Annotated[
    bool,
    typer.Option("--extend", help="Add this sweep to the one that its results folder holds."),
]


_ADDRESS = re.compile(r"auto|local|[^-].*:\d+|[^-].*://.*")  # of a Ray cluster


class RunCommand(SweepCommand):
    """`run`, whose `--ray` may stand without an address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        return super().parse_args(ctx, with_ray_address(args))


def with_ray_address(args: list[str]) -> list[str]:
    """Return arguments in which each `--ray` has a value; an address has a port, or is `auto` or `local`.

    >>> with_ray_address(["--ray", "night.yaml", "--ray", "head:6379"])
    ['--ray=', 'night.yaml', '--ray=head:6379']
    """
    words: list[str] = []
    for word in args:
        if words[-1:] == ["--ray="] and _ADDRESS.fullmatch(word):
            words[-1] += word
        else:
            words.append("--ray=" if word == "--ray" else word)
    return words
