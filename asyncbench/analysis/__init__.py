"""Counting: views in DuckDB, your SQL, pairs of models, curves, and the anatomy of wrong answers."""

PUBLIC = (
    "anatomy.alignment",
    "anatomy.counts",
    "anatomy.error",
    "anatomy.numbers",
    "cells",
    "choosing",
    "counting",
    "curves",
    "entrants",
    "notes",
    "pairing",
    "sql",
    "views",
)
