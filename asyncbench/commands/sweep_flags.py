"""Sweeps that options stand for: typed options become the keys of a sweep file."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from asyncbench.commands.making import columns_typed
from asyncbench.commands.other_forms import model_in
from asyncbench.commands.own_file import fill_for_file
from asyncbench.commands.sweep_options import flag, flags_typed, is_own_file
from asyncbench.errors import ConfigError
from asyncbench.files import quoted

if TYPE_CHECKING:
    from asyncbench.config.sweep import Sweep
    from asyncbench.problems.samples import Sample

Flags = Mapping[str, Any]  # those that were typed: name → text or number, or a list of texts

SUITE_OF_LOADS: Final = "llm_arithmetic"  # short questions with short answers
OF_MODELS: Final = ("effort", "temperature", "max_tokens", "base_url", "key_env", "rpm", "tpm", "concurrency")
OF_SERVERS: Final = ("base_url", "key_env")  # of them: one value each
OF_SWEEPS: Final = ("repeats", "mode")
OF_OWN_FILES: Final = ("grader", "columns", "decimal", "answer_form")
OF_CONDITIONS: Final = ("system", "template", "shots", "style", "context", "digits")


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
    from asyncbench.config.overriding import replace_out, replace_sample
    from asyncbench.config.sweep import load_sweep

    flags = flags_typed(context)
    sample = flags.get("sample")
    if sample is not None:
        combinable = [*combinable, "sample", "seed"]
    if sweep_file is not None and (odd := [flag(name) for name in flags if name not in combinable]):
        raise ConfigError(
            f"give either {sweep_file} or {', '.join(odd)}, not both. Keys of the sweep stand in the file"
        )
    read = read or load_sweep
    env_file = context.params.get("env_file") or Path(".env")
    if is_own_file(context):
        message = fill_for_file(flags, env_file=env_file)
        if not (context.params["as_json"] or context.params.get("quiet")):
            typer.echo(f"asyncbench: {message}", err=True)
    sweep = _sweep_typed(flags, read, env_file) if sweep_file is None else read(sweep_file)
    if sweep_file is not None:
        sweep = replace_sample(sweep, sample)
    if sweep_file is not None and "out" in flags:
        sweep = replace_out(sweep, flags["out"])
    if not extend:
        return sweep
    from asyncbench.planning.belonging import extended

    return extended(sweep)


def sample_typed(context: typer.Context, size: int | None, by: str | None) -> "Sample | None":
    """Return the typed sample, and add it to the other flags, or None if none was typed.

    Raises:
        ConfigError: it is none, or --by stands without it.
    """
    from asyncbench.config.entry import Place
    from asyncbench.config.questions import sample_from

    if size is None:
        if by is not None:
            raise ConfigError(f"--by {by}: how a sample is drawn. Add --sample, such as --sample 200")
        return None
    flags = flags_typed(context)
    options = {"size": size, "seed": flags.get("seed", 0), "by": by}
    names = {"size": "--sample"} | {name: flag(name) for name in options}
    sample = flags["sample"] = sample_from(options, place=Place(source="command line", flags=names))
    return sample


def fill_for_load(context: typer.Context) -> str:
    """Put in what a load without a sweep file may leave out: problems, and a folder. Return it in words."""
    from asyncbench.suites.table import SUITES

    flags = flags_typed(context)
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


def _sweep_typed(flags: Flags, read: "Callable[[Sweep], Sweep]", env_file: Path) -> "Sweep":
    """Return the sweep that flags stand for; raises ConfigError with what is missing."""
    from asyncbench.config.entry import Place
    from asyncbench.config.sweep import sweep_from
    from asyncbench.planning.belonging import check_comparable

    lacking = [flag(name) for name in ("model", "out") if name not in flags]
    lacking += ["--suite or --problems"] * (not {"suite", "problems"} & flags.keys())
    if lacking:
        message = "give a sweep file, or --model, --suite or --problems, and --out"
        hint = "" if "model" in flags else model_in(env_file)
        raise ConfigError(f"{message} ({', '.join(lacking)} missing){hint}" if flags else f"{message}{hint}")
    named = {
        name: flag(name)
        for name in (*OF_MODELS, *OF_CONDITIONS, *OF_SWEEPS, "seed", "grader", "decimal", "out")
    }
    source = Place(source="command line", flags=named | {"models": "--model", "problems": "--problems"})
    sweep = read(sweep_from(_sweep_mapping(flags), place=source))
    check_comparable(sweep)
    return sweep


def _sweep_mapping(flags: Flags) -> dict[str, object]:
    """Return the mapping of a sweep file that says the same as flags."""
    out, models = flags["out"], flags["model"]
    if twice := [model for model in models if models.count(model) > 1]:
        raise ConfigError(
            f"--model {twice[0]}: given twice. For several answers to each problem use --repeats"
        )

    # The keys of a condition.
    words = dict[str, object]()
    for name in OF_CONDITIONS:
        if name not in flags:
            continue
        typed = words[name] = flags[name]
        if name == "digits":
            forms = [form.strip() for form in typed.split(",")]
            words[name] = forms[0] if len(forms) == 1 else forms
        elif name == "shots" and typed.isdecimal():
            words[name] = int(typed)
        elif name in ("system", "template"):
            words[name] = typed.replace(r"\n", "\n")  # a shell hands on \n as it is typed

    # The condition's name tells apart what people vary: `context=2k shots=3`, `template`.
    varied = [
        name
        if name in ("system", "template")
        else f"{name}={','.join(value) if isinstance(value, list) else Path(str(value)).stem}"
        for name, value in words.items()
    ]
    condition = {"name": " ".join(varied) or "plain", **words}

    return {
        "name": out.name,
        "problems": list(_problem_sets(flags)),
        "models": [{"model": model, **_model_values(model, flags)} for model in models],
        **({"conditions": [condition]} if words else {}),
        **{name: flags[name] for name in OF_SWEEPS if name in flags},
        "out": str(out),
    }


def _model_values(model: str, flags: Flags) -> dict[str, Any]:  # Any: as a sweep file may hold it
    """Return the other keys of a model, one value or a list of several; simulated models cost nothing."""
    from asyncbench.providers.endpoints import known_endpoints

    endpoint = known_endpoints().get(model.partition("/")[0])
    simulated = endpoint is not None and endpoint.simulated and "base_url" not in flags
    free = {"price": {"input": 0, "output": 0}} if simulated else {}
    keys = dict[str, Any]()
    for name in OF_MODELS:
        if name not in flags:
            continue
        read = str if name in ("effort", *OF_SERVERS) else _number
        words = [flags[name]] if name in OF_SERVERS else [word.strip() for word in flags[name].split(",")]
        if "" in words:
            raise ConfigError(f"{flag(name)} {flags[name]!r}: a value is empty. Write one, or several as a,b")
        try:
            values = [read(word) for word in words]
        except ValueError:
            raise ConfigError(
                f"{flag(name)} {flags[name]}: not a number. Write one, or several as 1,2"
            ) from None
        keys[name] = values[0] if len(values) == 1 else values
    params = {"params": flags["params"]} if flags.get("params") else {}
    return keys | params | free


def _number(word: str) -> int | float:
    try:
        return int(word)
    except ValueError:
        return float(word)


def _problem_sets(flags: Flags) -> Iterator[object]:
    """Yield the problem sets: the one that --suite and its parameters stand for, then those of --problems."""
    from asyncbench.suites.own_suites import suite_called

    called, files = flags.get("suite", ""), flags.get("problems", ())
    suite = suite_called(called, place=f"--suite {called}")
    is_custom = suite is not None and suite.generate is None
    if is_custom and not files:
        raise ConfigError("--suite custom: your own problems are in a file. Name it with --problems")
    columns = {"columns": columns_typed(flags["columns"])} if "columns" in flags else {}
    if is_custom and "grader" not in flags and "grader" not in columns.get("columns", {}):
        hint = f"`asyncbench problems inspect {quoted(files[0])}` shows which one fits"
        raise ConfigError(f"--suite custom: your own problems need a --grader. {hint}")
    if "seed" in flags and not flags.get("sample") and (suite is None or is_custom):
        raise ConfigError(
            "--seed: only the problems of a suite are generated. To draw some from this seed, add --sample. "
            "Or leave it out"
        )
    if not is_custom and (odd := [flag(name) for name in OF_OWN_FILES if name in flags]):
        raise ConfigError(f"{odd[0]}: only your own problems take one. Add --suite custom, or leave it out")

    sample = {"sample": asdict(flags["sample"])} if "sample" in flags else {}
    if suite is not None and not is_custom:
        parameters = dict[str, object]()
        for name in suite.parameters.keys() & flags.keys():
            try:
                value = suite.parameters[name].parse(flags[name])
            except ValueError as error:
                raise ConfigError(f"{flag(name)} {flags[name]}: {error}") from None
            parameters[name] = value if isinstance(value, int) else flags[name]
        suite.parsed(parameters, place=f"--suite {suite.name}")
        in_order = {name: parameters[name] for name in suite.parameters if name in parameters}
        yield {"suite": called, "seed": flags.get("seed", 0), **in_order, **sample}

    custom = {name: flags[name] for name in ("suite", *OF_OWN_FILES) if name in flags} | columns
    for file in files:
        if is_custom:
            yield {"path": file, **custom, **sample}
        else:
            entry = file if isinstance(file, Mapping) else {"path": file}
            yield {**entry, **sample} if sample else file


def way_to_budget(sweep: "Sweep", context: typer.Context) -> str:
    """Return a command or a sweep file with which a budget can hold all models of a sweep."""
    from asyncbench.planning.budget_bounds import priced

    if all(priced(sweep, model) for model in sweep.models):
        return "Add --max-tokens, such as --max-tokens 1000."
    flags = flags_typed(context)
    mapping = _sweep_mapping(flags)
    entries = []
    for name in flags["model"]:
        provider, _, model_id = name.partition("/")
        alike = [model for model in sweep.models if (model.provider, model.model_id) == (provider, model_id)]
        unpriced = not all(priced(sweep, model) for model in alike)
        price: dict[str, object] = {"price": {"input": "…", "output": "…"}} if unpriced else {}
        entries.append({"model": name, "max_tokens": 1000} | _model_values(name, flags) | price)
    return "\n".join(
        [
            "Write these lines to sweep.yaml, put in your own figures, and run that file:",
            *(
                f"{key}: {json.dumps(value, ensure_ascii=False)}"
                for key, value in (mapping | {"models": entries}).items()
            ),
        ]
    ).replace('"…"', "…")
