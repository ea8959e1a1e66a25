"""The tables of results folders as DuckDB views, and the one place that sums them.

In: one folder or several, and which of their trials count. Out: rows and tables of figures. `asyncbench sql`
offers users the same views.
"""

from asyncbench.views.choosing import (
    Chosen as Chosen,
    Folders as Folders,
    Names as Names,
    chosen as chosen,
)
from asyncbench.views.contained import check_select as check_select, line_of as line_of
from asyncbench.views.counting import (
    FolderViews as FolderViews,
    counted as counted,
    manifest_of as manifest_of,
    open_views as open_views,
)
from asyncbench.views.views import (
    BEGAN as BEGAN,
    BIN_OF_MINUTES as BIN_OF_MINUTES,
    CALLS_IN_BINS as CALLS_IN_BINS,
    CALLS_IN_REAL_TIME as CALLS_IN_REAL_TIME,
    CALLS_OF_ENTRANTS as CALLS_OF_ENTRANTS,
    HEADLINE_GRADES as HEADLINE_GRADES,
    USD_STEPS as USD_STEPS,
    VIEWS as VIEWS,
    Sources as Sources,
    cells_of as cells_of,
)
