"""The plan of a sweep: the remaining trials, their cost and their time."""

PUBLIC = (
    "belonging",
    "budget_bounds",
    "env_files",
    "finished",
    "forecast_file",
    "guesses",
    "modes",
    "outdated",
    "planned_load",
    "preflight",
    "records",
    "remaining_trials",
    "report",
    "reuse",
    "skipping",
    "sweep_plan",
    "traces",
    "trials",
)
