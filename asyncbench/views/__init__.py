"""The tables of a results folder as views of DuckDB.

In: a snapshot of a folder. Out: views over verified parts; `asyncbench sql` offers them to users.
"""

from asyncbench.views.views import VIEWS, Sources, add_views

__all__ = [
    "VIEWS",
    "Sources",
    "add_views",
]
