"""Views over rows made by hand, as a folder's are."""

from contextlib import contextmanager
from pathlib import Path

import duckdb

from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.kept import KeptCounts
from asyncbench.analysis.named_tables import Connector
from asyncbench.analysis.views import MACROS, Sources
from asyncbench.store.journal import Unfinished
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.snapshot import Snapshot


class MadeViews(FolderViews):
    """Views of no folder, whose manifest says nothing."""

    @property
    def manifest(self):
        return {}


@contextmanager
def views_of(**tables):
    """Views whose tables hold these rows (Arrow tables); the others are empty."""
    with duckdb.connect() as connection:
        for name, schema in SCHEMAS.items():
            connection.register(name, tables.get(name, schema.empty_table()))
        connection.execute(MACROS)
        seen = Snapshot(files={}, journalled={}, unfinished=Unfinished(), damaged=())
        yield MadeViews(
            connector=Connector(lambda: connection),
            sources=Sources(),
            snapshots=(seen,),
            chosen=chosen("made"),
            counts=KeptCounts(folder=Path("made"), state=None),
        )
