"""`load --trace FILE`: the calls of a trace, each with a question of its length that the server counted."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import typer

from asyncbench.commands.sweep_options import flag, flags_typed
from asyncbench.errors import ConfigError
from asyncbench.files import quoted

if TYPE_CHECKING:
    from asyncbench.config.sweep import Sweep
    from asyncbench.problems.traces import Trace
    from asyncbench.records import Model

ENDING: Final = ".questions.parquet"
TASK: Final = "trace"
_REFUSED: Final = (
    *("suite", "problems", "max_tokens", "template", "system", "shots", "context", "style", "digits"),
)


def fill_for_trace(context: typer.Context, trace: Path) -> None:
    """Put in the folder and the problems of a trace, where no sweep file has them; raises ConfigError."""
    flags = flags_typed(context)
    if odd := [name for name in _REFUSED if name in flags]:
        raise ConfigError(
            f"--trace {trace}: it tells the lengths of questions and replies. Leave out {flag(odd[0])}"
        )
    if context.params["sweep_file"] is None and "model" in flags:
        words = ["load", *flags["model"], trace.stem]
        flags.setdefault("out", Path("results", re.sub(r"[^\w.-]+", "-", "-".join(words))))
        flags["problems"] = [f"{flags['out']}{ENDING}"]  # which is made before anybody opens it


def apply_trace(
    sweep: "Sweep", file: Path, *, out: Path, seed: int, env_file: Path | None, drafts: Path | None
) -> "tuple[Sweep, str]":
    """Return a sweep that replays a trace, and the same in words.

    The questions of each model are made once, after a few warm-up calls, and stand beside the results folder.

    Args:
        sweep: whose models are asked.
        file: the trace, which is read before any call.
        out: the results folder.
        seed: of the questions.
        env_file: with keys; None: the usual one.
        drafts: a folder for questions without text, where nothing is to be asked; None: all are made.

    Raises:
        ConfigError: the sweep or the folder is for something else, or a warm-up call fails.
        ProblemSetError: the file is no trace.
    """
    from asyncbench.config.entry import Place
    from asyncbench.config.questions import ProblemsEntry, sources_from
    from asyncbench.problems.traces import read_trace
    from asyncbench.records import Condition, Model

    if sweep.load is None or sweep.conditions != (Condition(),):
        raise ConfigError(
            f"--trace {file}: the sweep has `conditions`, and its questions would be longer than those of "
            "the trace. Remove them, or name its models with --model"
        )
    load = sweep.load
    trace = read_trace(file, until_s=(load.warmup + load.duration) * max(load.rates))

    # the questions of each model: servers count differently
    messages, files, models = [_trace_text(trace, load.rates)], list[Path](), list[Model]()
    for model in sweep.models:
        slug = "" if len(sweep.models) == 1 else "." + re.sub(r"[^\w.-]+", "-", model.alias)
        questions = Path(f"{out}{slug}{ENDING}")
        if questions.exists():
            ignores_eos = _check_questions(questions, trace)
            messages.append(f"{model.alias} is asked the questions of {questions} again.")
        elif drafts is not None:
            questions, ignores_eos = drafts / questions.name, False
            _write(questions, trace, ("" for _ in trace.at_s), ignores_eos=False)
        else:
            ignores_eos, message = _make(questions, trace, model, seed, env_file)
            messages.append(message)
        files.append(questions)
        params = {**model.params, "ignore_eos": True} if ignores_eos else model.params
        models.append(replace(model, max_tokens=max(1, *trace.output_tokens), params=params))

    entries = [ProblemsEntry(path=str(questions)) for questions in files]
    sources = sources_from(entries, place=Place(source=f"--trace {file}"))
    several = zip((model.alias for model in models), sources, strict=True) if len(models) > 1 else ()
    sweep = replace(
        sweep,
        problems=sources,
        own_problems={alias: (source,) for alias, source in several},
        models=tuple(models),
        max_tokens_demanded=frozenset(),
    )
    return sweep, " ".join([*messages, f"Results go to {out}."])


def _trace_text(trace: "Trace", speeds: Sequence[float]) -> str:
    """Return what a trace holds, in a sentence."""
    from asyncbench.tables.numbers import duration

    lengths_s = ", ".join(
        f"{duration(trace.at_s[-1] / speed)} at speed {speed:g}" for speed in sorted(speeds)
    )
    text = (
        f"Replays {len(trace.at_s):,} calls of {trace.name}: {sum(trace.input_tokens):,} tokens in, "
        f"{sum(trace.output_tokens):,} out. The last one is due after {lengths_s}."
    )
    if silent := trace.output_tokens.count(0):
        text += f" Replies of 0 tokens may have 1 ({silent:,})."
    return text


def _check_questions(file: Path, trace: "Trace") -> bool:
    """Return whether the questions of a file were made for `ignore_eos`; refuse those of another trace."""
    from asyncbench.planning.traces import trace_in
    from asyncbench.problems.opening import open_set

    problems = open_set(file)
    if trace_in(problems) != trace:
        raise ConfigError(
            f"--trace: {file} holds the questions of another trace, or of another part of it. Delete it, or "
            "name another folder with --out"
        )
    settings: dict[str, Any] = json.loads(next(problems.batches(1)).to_pylist()[0]["extra"])
    return bool(settings["ignore_eos"])


def _make(file: Path, trace: "Trace", model: "Model", seed: int, env_file: Path | None) -> tuple[bool, str]:
    """Write the questions of a model; return whether it takes `ignore_eos`, and what is said of it."""
    from asyncbench.commands.terminal import awaited, environment_of
    from asyncbench.run.calibrating import WARM_UP_CALLS, calibrate
    from asyncbench.suites.synthetic import synthetic_questions

    env = environment_of(env_file, [model])
    usual = max(1, round(median(trace.input_tokens)))
    found = awaited(calibrate(model, usual, seed=seed, env=env, or_more=True))
    file.parent.mkdir(parents=True, exist_ok=True)
    questions = synthetic_questions(seed, trace.input_tokens, found.counted)
    _write(file, trace, questions, ignores_eos=found.ignores_eos)
    message = (
        f"{model.alias} counted pieces of questions in {WARM_UP_CALLS} warm-up calls. The questions are in "
        f"{quoted(file)}."
    )
    if short := sum(tokens < found.counted.shortest for tokens in trace.input_tokens):
        message += (
            f" The shortest has {found.counted.shortest:,} tokens, which are more than {short:,} of the "
        )
        message += "calls have."
    if found.refusal:
        message += f" It refuses `ignore_eos`, so replies may be shorter than asked: {found.refusal.strip()}"
    return found.ignores_eos, message


def _write(file: Path, trace: "Trace", questions: Iterable[str], *, ignores_eos: bool) -> None:
    """Write a question for each call of a trace, one after the other."""
    from asyncbench.planning.traces import settings_of
    from asyncbench.problems.making import write_problems
    from asyncbench.problems.schema import identified
    from asyncbench.suites.synthetic import draft_synthetic

    drafts = (
        replace(
            draft_synthetic(question, **settings_of(call, trace.name), ignore_eos=ignores_eos),
            task=TASK,
            length=None,  # so that all are of one kind, and keep their order
        )
        for call, question in zip(trace, questions, strict=True)
    )
    write_problems(identified(drafts), file)
