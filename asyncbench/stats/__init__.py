"""Statistics: exact where that is affordable, seeded where it is not, with no dependency.

In: counts by problem. Out: accuracies, intervals and tests. docs/explanation/statistics.md explains them, and
docs/reference/metrics.md has their formulas.
"""

from asyncbench.stats.log_histogram import (
    added_histograms as added_histograms,
    histogram_percentile as histogram_percentile,
    histogram_text as histogram_text,
)
from asyncbench.stats.order_statistics import (
    Percentile as Percentile,
    fewest_for as fewest_for,
    percentile as percentile,
    rank_of as rank_of,
)
from asyncbench.stats.paired import (
    bootstrap_difference as bootstrap_difference,
    mcnemar as mcnemar,
    pooled_z as pooled_z,
    problems_needed as problems_needed,
    sign_flip as sign_flip,
    smallest_detectable as smallest_detectable,
    stratified as stratified,
)
from asyncbench.stats.problem_groups import (
    Moves as Moves,
    Shares as Shares,
    moves_of as moves_of,
)
from asyncbench.stats.proportions import (
    Z_95 as Z_95,
    Accuracy as Accuracy,
    Proportion as Proportion,
    wilson as wilson,
)
from asyncbench.stats.rankings import (
    holm as holm,
    quantile as quantile,
    tied as tied,
    undominated as undominated,
)
from asyncbench.stats.repeats import (
    AtK as AtK,
    Clustered as Clustered,
    Votes as Votes,
    at_each_k as at_each_k,
    clustered as clustered,
    majority_at_k as majority_at_k,
    pass_at_k as pass_at_k,
    pass_hat_k as pass_hat_k,
)
