"""Counting: the tables of a results folder as views of DuckDB, and the one place that sums them.

In: a snapshot of a folder. Out: rows and tables of figures. `asyncbench sql` offers users the same views.
"""

from asyncbench.views.counting import FolderViews, counted, open_views
from asyncbench.views.views import USD_STEPS, VIEWS, Sources

__all__ = [
    "USD_STEPS",
    "VIEWS",
    "FolderViews",
    "Sources",
    "counted",
    "open_views",
]
