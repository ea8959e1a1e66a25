"""Statistics on counts by problem: intervals, paired tests, rankings and percentiles, in plain Python."""

PUBLIC = (
    "always_valid",
    "log_histogram",
    "order_statistics",
    "paired",
    "problem_groups",
    "proportions",
    "rankings",
    "repeats",
)
