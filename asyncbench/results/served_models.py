"""Who really answered: a simulator, another model than the one asked, or several models behind one alias."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from asyncbench.providers import is_simulated, same_model

# Column of `trials` → how its values are spoken of.
_NAMES: Final = {"model_served": "models", "fingerprint": "system fingerprints", "upstream": "upstreams"}
SERVED_COLUMNS: Final = (*_NAMES, "model_id")


def any_simulated(*trials: pa.Table) -> bool:
    """Whether a simulator answered any of some trials; of their columns only `provider` is needed."""
    return any(is_simulated(str(name)) for one in trials for name in one["provider"].unique().to_pylist())


def mixtures(trials: pa.Table) -> tuple[str, ...]:
    """Return a warning for each alias that several or others answered, with how many trials each.

    Args:
        trials: `trials` with the columns `model`, `provider` and `SERVED_COLUMNS`; what is not told is NULL.
    """
    several = (
        f"{model} was answered by {len(counts)} {_NAMES[column]}: {_counted(counts)}"
        for column in _NAMES
        for model, counts in _by_model(trials, column).items()
        if len(counts) > 1
    )
    return *several, *_others(trials)


def _others(trials: pa.Table) -> Iterator[str]:
    """Yield a warning for each model asked that another one answered.

    Not of simulated ones: what answers for them, or whose recorded replies they repeat, is no news.
    """
    found: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    keys = ["model", "provider", "model_id", "model_served"]
    for row in trials.group_by(keys).aggregate([([], "count_all")]).to_pylist():
        asked, by = row["model_id"], row["model_served"]
        if None not in (asked, by) and not is_simulated(row["provider"]) and not same_model(asked, by):
            counts = found[row["model"], asked]
            counts[by] = counts.get(by, 0) + row["count_all"]
    for (model, asked), counts in sorted(found.items()):
        yield f"{model} asked for {asked}, but others answered: {_counted(counts)}"


def _by_model(trials: pa.Table, column: str) -> dict[str, dict[str, int]]:
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in trials.group_by(["model", column]).aggregate([([], "count_all")]).to_pylist():
        if row[column] is not None:
            found[row["model"]][row[column]] = row["count_all"]
    return dict(sorted(found.items()))


def _counted(counts: dict[str, int]) -> str:
    """Return values with their counts, the commonest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{value} ({count:,})" for value, count in ordered)
