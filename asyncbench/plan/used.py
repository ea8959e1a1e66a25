"""What finished trials really used: the best guess of what others like them will."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from asyncbench.prompting import sent_parameters
from asyncbench.records import Condition, Model, Outcome
from asyncbench.store.catalog import read_trials
from asyncbench.store.encoding import canonical

# Trials are alike that were asked the same model with the same parameters, of a suite, under a condition:
# the columns of `trials` that say so. Not the alias, which may stand for something else tomorrow.
WAY = ("provider", "model_id", "params", "suite", "condition_params")
Way = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What the trials of one way of asking used; None where no provider said."""

    trials: int  # that got a reply
    input_tokens: float | None  # mean
    output_tokens: float | None  # mean
    latency_s: float | None  # median


def way_of(model: Model, condition: Condition, suite: str) -> Way:
    """Return how a suite's problems are asked of a model, as `trials` has it."""
    params, described = canonical(sent_parameters(model)), canonical(condition.described)
    return model.provider, model.model_id, params, suite, described


def used_in(folder: Path) -> Mapping[Way, Used]:
    """Return what the finished trials of a results folder used, by their way of asking.

    Raises:
        StoreError: the folder cannot be read.
    """
    measured = ("input_tokens", "output_tokens", "latency_s")
    replied = pc.field("outcome") != Outcome.FAILED.value
    rows = read_trials(folder, columns=[*WAY, *measured], filters=replied)
    means = rows.group_by(list(WAY)).aggregate(
        [
            ([], "count_all"),
            ("input_tokens", "mean"),
            ("output_tokens", "mean"),
            ("latency_s", "approximate_median"),
        ]
    )
    return {
        tuple(row[name] for name in WAY): Used(
            trials=row["count_all"],
            input_tokens=row["input_tokens_mean"],
            output_tokens=row["output_tokens_mean"],
            latency_s=row["latency_s_approximate_median"],
        )
        for row in means.to_pylist()
    }
