"""The time of each call: lanes, limits, budgets and retries. Pure of files, providers and suites.

In: trials, and three functions that ask, grade and keep. Out: events.
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
