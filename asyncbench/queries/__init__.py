"""The user's SQL over the views of a results folder.

In: one SELECT. Out: an `Answer`, as rows, a table for a terminal, CSV, JSON or Parquet. Nothing else is read,
and nothing is written.
"""

from asyncbench.queries.select import asking as asking, sql as sql
