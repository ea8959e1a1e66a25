"""Counting: views in DuckDB, your SQL, pairs of models, curves, and the anatomy of wrong answers."""

PUBLIC = (
    "anatomy.alignment",
    "anatomy.carries",
    "anatomy.counts",
    "anatomy.error",
    "anatomy.kinds",
    "anatomy.numbers",
    "asked",
    "cells",
    "choosing",
    "counting",
    "curve",
    "digits",
    "names",
    "notes",
    "pairing",
    "repricing",
    "sql",
    "stopped_cells",
    "views",
    "votes",
)
