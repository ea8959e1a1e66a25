"""The tables of a results folder as DuckDB views, and the one place that sums them.

In: a snapshot of a folder. Out: rows and tables of figures. `asyncbench sql` offers users the same views.
"""

from asyncbench.views.counting import FolderViews as FolderViews, counted as counted, open_views as open_views
from asyncbench.views.views import USD_STEPS as USD_STEPS, VIEWS as VIEWS, Sources as Sources
