"""Sweep files: YAML becomes a valid `Sweep`, or an error that names the place and what to write instead."""

PUBLIC = (
    "batching",
    "conditions",
    "deadline",
    "entry",
    "loading",
    "models",
    "notify",
    "overriding",
    "place",
    "sources",
    "starter",
    "sweep",
    "sweep_file",
    "workers",
)
