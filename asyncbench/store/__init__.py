"""The results folder, here and in a bucket. Each event is on disk before it counts, and becomes Parquet.

In: events of a run. Out: tables, snapshots, and the finished trials of a folder.
"""

PUBLIC = (
    "bucket.claiming",
    "bucket.fetching",
    "bucket.objects",
    "budget_state",
    "catalog",
    "checksums",
    "copying",
    "folder",
    "holdings",
    "id_set",
    "joining",
    "lock",
    "manifest",
    "names",
    "parts",
    "reading",
    "rows",
    "salvage",
    "schema",
    "sealing",
    "segment",
    "snapshot",
    "spending",
    "status",
    "verify",
)
