"""The trace that a load replays, out of the problems that were made of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import orjson

from asyncbench.config.loading import Load
from asyncbench.errors import ConfigError
from asyncbench.planning.reuse import Lengths
from asyncbench.planning.trials import TrialSource
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.problems.schema import ROWS_AT_ONCE
from asyncbench.problems.traces import Trace, TraceCall
from asyncbench.records import Trial

AT_S, INPUT_TOKENS, OUTPUT_TOKENS = "at_s", "input_tokens", "output_tokens"  # in `extra` of such a problem
NAME = "trace"  # likewise: of the file


def settings_of(call: TraceCall, name: str) -> dict[str, object]:
    """Return what `extra` of a problem says of the call of a trace that it stands for."""
    settings = {AT_S: call.at_s, INPUT_TOKENS: call.input_tokens, OUTPUT_TOKENS: call.output_tokens}
    return {**settings, NAME: name}


def trace_in(problems: ProblemSet) -> Trace:
    """Return the trace that problems were made of, in their order.

    Raises:
        ConfigError: they were made of none.
    """
    trace: Trace | None = None
    for batch in problems.batches(ROWS_AT_ONCE, columns=["extra"]):
        for text in cast("list[str]", batch["extra"].to_pylist()):
            extra: dict[str, Any] = orjson.loads(text)
            if not {AT_S, INPUT_TOKENS, OUTPUT_TOKENS} <= extra.keys():
                raise ConfigError(
                    f"{problems.path}: its problems have no times, and `arrivals: trace` sends calls at "
                    "those. Type `asyncbench load --trace FILE`, which makes problems of a trace"
                )
            trace = trace or Trace(str(extra.get(NAME, problems.name)))
            trace.add(TraceCall(extra[AT_S], extra[INPUT_TOKENS], extra[OUTPUT_TOKENS]))
    if trace is None:
        raise ConfigError(f"{problems.path}: it has no problems. Name another file")
    return trace


def traces_of(load: Load, sets: Mapping[str, Sequence[TrialSource]]) -> dict[str, Trace]:
    """Return the trace that each model is sent, by alias; empty: the load replays none.

    Args:
        load: the load.
        sets: what each model is asked, by alias.

    Raises:
        ConfigError: a model's problems are not those of one trace, or all of its calls are warm-up.
    """
    if not load.replays:
        return {}
    read = dict[str, Trace]()  # by digest: models may share one
    traces = dict[str, Trace]()
    for alias, sources in sets.items():
        if len(sources) != 1:
            raise ConfigError(
                f"{alias}: has {len(sources)} problem sets, and a trace is one. Name that alone"
            )
        problems = sources[0].problems
        if problems.digest not in read:
            read[problems.digest] = trace_in(problems)
        trace = traces[alias] = read[problems.digest]
        if load.warmup > trace.at_s[-1] / max(load.rates):
            raise ConfigError(
                f"{alias}: `warmup: {load.warmup:g}` leaves no call of {trace.name}, which takes "
                f"{trace.at_s[-1] / max(load.rates):.3g} s. Set a shorter one"
            )
    return traces


def set_lengths(trials: Iterable[Trial]) -> Iterator[Trial]:
    """Yield trials of a trace, each with a reply as long as that of its call."""
    lengths = Lengths()
    for trial in trials:
        tokens = max(1, orjson.loads(trial.problem.extra)[OUTPUT_TOKENS])
        yield replace(trial, model=lengths.variant(trial.model, tokens))
