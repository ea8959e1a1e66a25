"""One run, from the first check to the last line of its summary."""

PUBLIC = (
    "calibrating",
    "checkup",
    "control",
    "costs",
    "findings",
    "open_batches",
    "options",
    "progress",
    "summary",
    "sweep_run",
)
