"""Folders from folders: import, export, merge and regrade."""

PUBLIC = (
    "batch_files.handed_in",
    "batch_files.results",
    "exporting",
    "importing",
    "merging",
    "regrading",
)
