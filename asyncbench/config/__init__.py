"""Sweep files: YAML becomes a valid `Sweep`, or an error that names the place and what to write instead."""

PUBLIC = (
    "conditions",
    "entry",
    "loading",
    "models",
    "overriding",
    "place",
    "run_entries",
    "sources",
    "starter",
    "sweep",
    "sweep_file",
)
