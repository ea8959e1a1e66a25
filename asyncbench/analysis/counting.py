"""Counting over results folders with DuckDB: views of one moment, within a bounded memory.

def trials_by_model(folder: Path) -> list[dict[str, Any]]:
    return counted(folder, lambda counting: counting.rows(
        "SELECT model, count(*) AS trials, sum_usd(cost_usd) AS cost_usd FROM trials GROUP BY model"
    ))
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter

from asyncbench.analysis.choosing import (
    Chosen,
    Folders,
    Names,
    add_chosen,
    chosen,
    explaining_where,
    folder_column,
    joined_manifests,
    raw,
)
from asyncbench.analysis.kept import KeptCounts, name_of, state_of, trials_in
from asyncbench.analysis.named_tables import Connector, NamedTables
from asyncbench.analysis.views import (
    MACROS,
    ROWS_OF_TEXTS,
    Sources,
    add_sums,
    add_tables,
    rest_filter,
    sums_query,
)
from asyncbench.problems.copies import iter_problems
from asyncbench.records import Sent
from asyncbench.store.catalog import patiently
from asyncbench.store.holdings import known_parts
from asyncbench.store.manifest import Manifest, folders_of, read_manifest
from asyncbench.store.reading import take_snapshot
from asyncbench.store.schema import CODED
from asyncbench.store.snapshot import MANY_ROWS, Snapshot

if TYPE_CHECKING:
    import duckdb

P = ParamSpec("P")
T = TypeVar("T")

MEMORY: Final = 150  # MB of DuckDB's own, beside 100 bytes a trial: what needs more is put on the disk
MEMORY_OF_UNKNOWN: Final = 1000  # MB, where no list tells how many trials there are
_SETTINGS: Mapping[str, str | bool | int | float | list[str]] = {
    "preserve_insertion_order": "false",
    "allocator_bulk_deallocation_flush_threshold": "1MB",  # else it keeps what it freed: 100 MB and more
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # FROM name must not find a variable of the program
}
_THEN = """
SET TimeZone = 'UTC';  -- as the tables have it, whatever the machine's is
SET enable_progress_bar = false;  -- it would be drawn over what a program prints
SET enable_external_access = false;
SET lock_configuration = true;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderViews(NamedTables):
    """The views of results folders at one moment, and DuckDB to count them."""

    snapshots: tuple[Snapshot, ...]  # of each folder
    chosen: Chosen
    names: Names = field(default_factory=dict)  # of models, where there are several folders
    made: dict[str, Any] = field(default_factory=dict)  # what functions made `once`, by their name

    @property
    def folders(self) -> Iterable[tuple[str, Path]]:
        """The folders, each with what it is called in the column `folder`."""
        return self.chosen.labels.items()

    @property
    def trials(self) -> int:
        """How many trials the folders list in their parts, chosen or not."""
        return _listed_trials(self.chosen.paths)

    def called(self, label: str, model: str) -> str:
        """Return the name of a folder's model in the views."""
        return self.names.get((label, model), model)

    @property
    def manifest(self) -> Manifest:
        """The manifests of the folders joined, with models as the views call them."""
        return self.manifest_of(*self.chosen.labels)

    def manifest_of(self, *labels: str) -> Manifest:
        """Return the joined manifests of the folders with these labels."""
        if self.chosen.plain:
            return read_manifest(self.chosen.paths[0])
        paths = self.chosen.labels
        return joined_manifests(
            [(read_manifest(paths[label]), partial(self.called, label)) for label in labels], self.chosen
        )

    def sums_query(self, name: str) -> str:
        """Return the query of a view that counts, such as `cells`, for `rows` or in brackets after FROM."""
        return sums_query(name, self._folder_column())

    def add_sums(self) -> None:
        """Make all views that count."""
        add_sums(self.connection, self._folder_column())

    def _folder_column(self) -> str:
        return folder_column(self.names) if self.chosen.several else ""

    @property
    def unended(self) -> tuple[Sent, ...]:
        """The calls without an end: in flight, or lost when no run is going; no view has them."""
        every = (sent for snapshot in self.snapshots for sent in snapshot.unfinished.sent.values())
        if self.chosen.partly:
            return ()  # it is not known whether their trials are among the chosen ones
        return tuple(sent for sent in every if sent.model in (self.chosen.models or (sent.model,)))

    def read(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Return columns of a table; texts of which there are few may come as dictionaries."""
        if self.chosen.plain:
            return self.snapshots[0].read_coded(name, columns, self._counted(name), coded=CODED)
        return self.table(f"SELECT {', '.join(columns)} FROM {name}")  # noqa: S608  names of ours

    def trial_rows(
        self, name: str, columns: Sequence[str], ids: Sequence[str], *, by: str = "trial_id"
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of a table, of rows alone that have one of these ids in the column `by`."""
        if self.chosen.plain:
            wanted = pc.field(by).isin(pa.array(ids, pa.string()))
            rows = ROWS_OF_TEXTS if "reply_text" in columns else MANY_ROWS
            filters = self._counted(name, wanted)
            yield from self.snapshots[0].batches(name, columns, filters, rows=rows, coded=CODED)
            return
        self.put("wanted_ids", pa.table({by: pa.array(ids, pa.string())}))
        query = f"SELECT {', '.join(columns)} FROM {name} SEMI JOIN wanted_ids USING ({by})"  # noqa: S608  our words
        yield from self.batches(query, rows=ROWS_OF_TEXTS)
        self.drop("wanted_ids")

    def _counted(self, name: str, wanted: pc.Expression | None = None) -> pc.Expression | None:
        return wanted if self.chosen.loaded else rest_filter(name, wanted)

    def problems(
        self, columns: Sequence[str], wanted: pc.Expression | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of the problems of all folders, so that one in several comes several times.

        Raises:
            ProblemSetError: a copy of a problem set is damaged.
        """
        for path in self.chosen.paths:
            yield from iter_problems(path, columns, wanted)

    def made_of_rows(self, name: str, kind: Any, make: Callable[[], T]) -> T:
        """Return a value that Python makes of rows, which takes seconds, or the one that the folder keeps.

        Args:
            name: what it is.
            kind: its type, as `pydantic` takes it: it is kept as JSON.
            make: makes it.
        """
        if self.counts.state is None:
            return make()  # `pydantic` need not read the type
        form = TypeAdapter[T](kind)
        return form.validate_json(self.json_made_of_rows(name, lambda: form.dump_json(make())))

    def json_made_of_rows(self, name: str, make: Callable[[], bytes]) -> bytes:
        """Return the JSON of what Python makes of rows, or what the folder keeps of it."""
        kept_as = name_of("json", (name, self.options))
        content = self.counts.get(kept_as)
        if content is None:
            content = make()
            self.counts.put(kept_as, content)
        return content


def once(make: Callable[Concatenate[FolderViews, P], T]) -> Callable[Concatenate[FolderViews, P], T]:
    """Let a function make what it makes of some views only once, however many ask for it."""

    @wraps(make)
    def made(views: FolderViews, /, *args: P.args, **options: P.kwargs) -> T:
        if make.__name__ not in views.made:
            views.made[make.__name__] = make(views, *args, **options)
        value: T = views.made[make.__name__]
        return value

    return made


def counted(folder: Folders, count: Callable[[FolderViews], T]) -> T:
    """Return the result of `count` on views; it counts again where parts were replaced meanwhile.

    Args:
        folder: one results folder, several, or what is chosen of them.
        count: what is asked of the views.

    Raises:
        ConfigError: one is not a results folder; a filter is wrong, or leaves nothing.
        StoreError: one cannot be read.
    """
    folders = chosen(folder)

    def count_once() -> T:
        with open_views(folders, *map(take_snapshot, folders.paths), keeps=True) as views:
            return count(views)

    return patiently(count_once)


@contextmanager
def open_views(
    folder: Folders, *snapshots: Snapshot, model_names: Names | None = None, keeps: bool = False
) -> Iterator[FolderViews]:
    """Open the views of folders as snapshots have them; from then on DuckDB gets no file and no setting.

    Args:
        folder: the folders.
        snapshots: of each.
        model_names: what models are called, where the snapshots do not hold enough to tell.
        keeps: whether a large folder keeps what is counted, as the snapshots hold all of it.

    Raises:
        ConfigError: a filter is wrong, or leaves nothing; meanwhile, too.
    """
    choice, names, sources = chosen(folder), dict[tuple[str, str], str](), Sources()
    alone = keeps and not choice.several and choice.where is None  # a condition may be another one each time
    state = state_of(choice.paths[0], snapshots[0]) if alone else None
    with ExitStack() as until_closed:
        connector = Connector(lambda: until_closed.enter_context(_connected(choice, snapshots, sources)))
        if not choice.plain:
            connection = connector.connection()
            with sources.telling():
                names = {**add_chosen(connection, choice, model_names)}
        with explaining_where(choice.where):  # it may fail on some rows
            yield FolderViews(
                connector=connector,
                sources=sources,
                snapshots=snapshots,
                chosen=choice,
                names=names,
                counts=KeptCounts(folder=choice.paths[0], state=state),
                options=(choice.options, choice.loaded),
            )


@contextmanager
def _connected(
    choice: Chosen, snapshots: Sequence[Snapshot], sources: Sources
) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Connect to DuckDB with the tables of all folders."""
    import duckdb  # 0.2 s, which commands without figures need not wait for

    listed = [[known_parts(each) for each in folders_of(folder)] for folder in choice.paths]
    # An exact quantile holds every value, and cannot spill.
    room = MEMORY + _listed_trials(choice.paths) // 10_000 if all(map(any, listed)) else MEMORY_OF_UNKNOWN
    with (
        tempfile.TemporaryDirectory(prefix="asyncbench-sql-") as spill,
        duckdb.connect(
            ":memory:", config={**_SETTINGS, "memory_limit": f"{room}MB", "temp_directory": spill}
        ) as connection,
    ):
        for n, (path, snapshot) in enumerate(zip(choice.paths, snapshots, strict=True)):
            named = str if choice.plain else partial(raw, n=n)
            add_tables(connection, path, snapshot, sources, named=named, loaded=choice.loaded)
        connection.execute(MACROS)
        connection.execute(_THEN)
        yield connection


def _listed_trials(folders: Sequence[Path]) -> int:
    return sum(trials_in(known_parts(each)) for folder in folders for each in folders_of(folder))


def manifest_of(folder: Folders) -> Manifest:
    """Return one manifest that joins those of folders; raises as `counted` does."""
    choice = chosen(folder)
    return read_manifest(choice.paths[0]) if choice.plain else counted(choice, lambda views: views.manifest)
