"""One run, from the first check to the last line of its summary."""

PUBLIC = (
    "cancelling",
    "checkup",
    "client_speed",
    "control_client",
    "costs",
    "findings",
    "options",
    "progress",
    "refreshing",
    "summary",
    "sweep_run",
)
