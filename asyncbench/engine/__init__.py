"""The time of each call: lanes, limits, budgets and retries. Pure of files, providers and suites.

In: for each model a `ModelClient`, whose objects feed trials, make calls and keep records. Out: events.
"""

PUBLIC = (
    "attempts",
    "awake",
    "budget",
    "lane",
    "lane_model",
    "limits",
    "model_client",
    "pending_trial",
    "scheduler",
    "stopping",
    "telemetry",
)
