"""Sweeps of one file of problems: all else that a sweep needs is guessed from the file, and said."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from asyncbench.commands.making import columns_typed
from asyncbench.commands.other_forms import model_in
from asyncbench.commands.terminal import harmless
from asyncbench.errors import ConfigError

if TYPE_CHECKING:
    from asyncbench.reports.problem_file import ProblemFile

_SWEEPS: Final = (".yaml", ".yml")
_WORKBOOKS: Final = (".xlsx", ".xls", ".ods", ".numbers")  # refused where they are read, with the way out


def holds_problems(path: Path) -> bool:
    """Return whether a path names a file of problems instead of a sweep file.

    Its ending tells. A .json may be either: a sweep is one object.

    Raises:
        ProblemSetError: a .json cannot be read.
    """
    if path.suffix.lower() in _SWEEPS:
        return False
    from asyncbench.contents import unpacked_name
    from asyncbench.problems.hub import ENDINGS, hub_address
    from asyncbench.problems.text_files import JSON, is_one_object

    if unpacked_name(path).suffix.lower() == JSON and hub_address(path) is None:
        return not is_one_object(path)
    return path.name.lower().endswith((*ENDINGS, *_WORKBOOKS)) or hub_address(path) is not None


def fill_for_file(flags: dict[str, Any], *, env_file: Path) -> str:  # Any: as they were typed
    """Put in what a sweep of one file of problems may leave out, and return it in words.

    Args:
        flags: those that were typed, with the file as the only one of `problems`.
        env_file: may name a model for another program.

    Raises:
        ConfigError: a flag is missing or does not go with a file.
        ProblemSetError: the file cannot be read, or does not tell what to ask or how to grade.
    """
    from asyncbench.contents import set_name
    from asyncbench.reports.problem_file import inspect_problems

    (path,) = flags["problems"]
    if "model" not in flags:
        raise ConfigError(
            f"{path} holds problems. Name the models to ask, such as `--model openai/gpt-5-mini`. Repeat it "
            f"for several{model_in(env_file)}"
        )
    if (suite := flags.pop("suite", "custom")) != "custom":
        raise ConfigError(f"{path} has the problems, and --suite {suite} makes others. Leave one of them out")
    if "seed" in flags and "sample" not in flags:
        raise ConfigError("--seed: the problems are in a file. To draw some from this seed, add --sample")

    # Guess what is not said as `problems inspect` does.
    settings = {
        name: flags.pop(name) for name in ("columns", "grader", "decimal", "answer_form") if name in flags
    }
    if "columns" in settings:
        settings["columns"] = columns_typed(settings["columns"])
    inspected = inspect_problems(path, **settings)
    flags["problems"] = [inspected.entry()]

    if "out" not in flags:
        flags["out"] = Path("results", re.sub(r"[^\w.-]+", "-", set_name(path)))
        _refuse_other_problems(flags["out"], path)
    sentence = ", ".join([*_guesses(inspected, settings), f"results go to {flags['out']}"])
    return harmless("\n".join([sentence, *inspected.warnings()]))


def _refuse_other_problems(folder: Path, path: str) -> None:
    """Refuse a folder, chosen by the name of a file, that has the results of another file of this name."""
    from asyncbench.config.sweep import load_sweep
    from asyncbench.store.manifest import SWEEP_FILE

    if not (folder / SWEEP_FILE).exists():
        return
    files = [str(source.path) for source in load_sweep(folder / SWEEP_FILE).problems if source.path]
    if Path(path).absolute() not in [Path(file).absolute() for file in files]:
        raise ConfigError(
            f"{folder} has the results of {' and '.join(files) or 'other problems'}. Name another folder for "
            f"those of {path}: --out FOLDER"
        )


def _guesses(inspected: "ProblemFile", settings: Collection[str]) -> Iterator[str]:
    """Yield the file and what was guessed of it, each guess with the option that changes it."""
    from asyncbench.tables.numbers import number_of

    yield f"{inspected.file}: {number_of(inspected.problems, 'problem')}"
    if guessed := [name for name in inspected.columns if name in inspected.guessed]:
        columns = [inspected.columns[name] for name in guessed]
        theirs = [column if isinstance(column, str) else "+".join(column) for column in columns]
        pairs = ", ".join(f"{name} from {column}" for name, column in zip(guessed, theirs, strict=True))
        yield f"{pairs} (guessed; --columns to change)"
    if inspected.answer_form and "answer_form" not in settings:
        yield f"answers as {inspected.answer_form} (guessed; --answer-form to change)"
    if inspected.grader and inspected.grader_guessed:
        yield f"grader {inspected.grader} (guessed; --grader to change)"
        if inspected.decimal and "decimal" not in settings:
            yield f"decimals after {inspected.decimal!r} (guessed; --decimal to change)"
