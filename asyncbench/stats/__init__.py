"""Statistics: exact where that is affordable, seeded where it is not, with no dependency.

In: counts by problem. Out: accuracies, intervals and tests. docs/metrics.md says what each figure means and
when it misleads. Each module imports only from lines above its own:

    proportions · quantiles · frontier
    accuracy · clustered · unpaired · repeats
    paired · power
    multiple
"""

from asyncbench.stats.accuracy import Accuracy
from asyncbench.stats.clusters import Clustered, clustered
from asyncbench.stats.frontier import undominated
from asyncbench.stats.multiple import holm, tied
from asyncbench.stats.paired import bootstrap_difference, mcnemar, sign_flip
from asyncbench.stats.power import problems_needed, smallest_detectable
from asyncbench.stats.proportions import Z_95, Proportion, wilson
from asyncbench.stats.quantiles import quantile
from asyncbench.stats.repeats import pass_at_k, pass_hat_k
from asyncbench.stats.unpaired import pooled_z

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
