"""Statistics: exact where that is affordable, seeded where it is not, with no dependency.

In: counts by problem. Out: accuracies, intervals and tests. docs/metrics.md says what each figure means and
when it misleads.
"""

from asyncbench.stats.paired import (
    bootstrap_difference,
    mcnemar,
    pooled_z,
    problems_needed,
    sign_flip,
    smallest_detectable,
)
from asyncbench.stats.proportions import Z_95, Accuracy, Proportion, wilson
from asyncbench.stats.rankings import holm, quantile, tied, undominated
from asyncbench.stats.repeats import Clustered, clustered, pass_at_k, pass_hat_k

__all__ = [
    "Z_95",
    "Accuracy",
    "Clustered",
    "Proportion",
    "bootstrap_difference",
    "clustered",
    "holm",
    "mcnemar",
    "pass_at_k",
    "pass_hat_k",
    "pooled_z",
    "problems_needed",
    "quantile",
    "sign_flip",
    "smallest_detectable",
    "tied",
    "undominated",
    "wilson",
]
