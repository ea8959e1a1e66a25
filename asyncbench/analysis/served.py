"""Who really answered: an alias behind which several models, builds or upstreams stood within one folder."""

from collections import defaultdict
from typing import Final

import pyarrow as pa

COLUMNS: Final = ("model_served", "fingerprint", "upstream")
# Column of `trials` → how its values are spoken of.
_NAMES: Final = {"model_served": "models", "fingerprint": "system fingerprints", "upstream": "upstreams"}


def mixtures(trials: pa.Table) -> tuple[str, ...]:
    """Return a warning for each alias that was answered by several, with how many trials each.

    Args:
        trials: `trials` with the columns `model` and `COLUMNS`; what a provider does not tell is NULL.
    """
    return tuple(
        f"{model} was answered by {len(counts)} {_NAMES[column]}: {_counted(counts)}"
        for column in COLUMNS
        for model, counts in _by_model(trials, column).items()
        if len(counts) > 1
    )


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
