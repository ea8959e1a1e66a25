"""Counting: views in DuckDB, your SQL, pairs of models, curves, and the anatomy of wrong answers."""

PUBLIC = (
    "anatomy.alignment",
    "anatomy.counts",
    "anatomy.error",
    "anatomy.numbers",
    "anatomy.places",
    "batch_use",
    "cells",
    "choosing",
    "counting",
    "curves",
    "entrants",
    "folder_report",
    "graders",
    "lost_trials",
    "pairing",
    "served",
    "sql",
    "views",
)
