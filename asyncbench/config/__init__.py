"""Sweep files: YAML becomes a valid `Sweep`, or an error that names the place and what to write instead."""

PUBLIC = (
    "entry",
    "loading",
    "models",
    "overriding",
    "questions",
    "run_entries",
    "starter",
    "sweep",
    "sweep_file",
)
