"""Statistics on counts by problem: intervals, paired tests, rankings and percentiles, in plain Python."""

PUBLIC = (
    "always_valid",
    "logistic",
    "noninferiority",
    "paired",
    "percentiles",
    "proportions",
    "repeats",
)
