"""A loopback provider with real sockets, limits and faults.

In: problem sets or recorded replies. Out: a server process that speaks OpenAI's and Anthropic's wire formats,
and takes their batches.
"""

PUBLIC = (
    "answers",
    "batches.settings",
    "counts",
    "process",
    "questions",
    "serving",
    "settings",
    "vendors",
)
