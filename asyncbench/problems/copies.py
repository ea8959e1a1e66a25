"""The copies of problem sets in a results folder, with the questions behind its trials.

    problems/            each problem once, as the sweep asks it now
    earlier_problems/    copies that others have superseded, such as those with an answer that was corrected

They are two folders side by side: DuckDB and Polars read all that is below the folder that they are given.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.files import make_folder, storing, sync_to_disk
from asyncbench.problems.making import copy_some
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet, contract_batches
from asyncbench.problems.schema import PROBLEM_FIELDS, ROWS_AT_ONCE
from asyncbench.store.bucket.fetching import local_folder
from asyncbench.store.checksums import stamp
from asyncbench.store.manifest import IMPORTED, read_manifest
from asyncbench.store.snapshot import Columns, Filters, chosen_columns, expression, table_reader

PROBLEMS: Final = "problems"
EARLIER: Final = "earlier_problems"

COPY_SCHEMA = pa.schema([pa.field("problem_set", pa.string(), nullable=False), *PROBLEM_FIELDS])
_DIGEST = re.compile(r"-[0-9a-f]{12}\Z")  # at the end of a copy's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One file in a folder's problems/ or earlier_problems/."""

    path: Path
    problem_set: str  # as trials call it
    replaces: tuple[Path, ...]  # earlier copies of the same set, in which only other problems count


def copy_files(folder: Path) -> list[Path]:
    """Return the files of all copies in a results folder, those in problems/ first; each name once."""
    files = {path.name: path for name in (EARLIER, PROBLEMS) for path in (folder / name).glob("*.parquet")}
    return sorted(files.values(), key=lambda path: (path.parent.name == EARLIER, path.name))


def copies(folder: Path) -> tuple[Copy, ...]:
    """Return the copies that a results folder holds, by set.

    A set whose file has changed between two runs, say by a corrected answer, has several: the one that the
    last run used counts first, then the one written last.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: its manifest cannot be read.
    """
    manifest = read_manifest(folder)
    by_set: dict[str, list[Path]] = {}
    used: Mapping[str, Mapping[str, str]] = manifest.get("problem_sets", {})
    for path in copy_files(folder):
        set_name = used.get(path.name, {}).get("name") or _DIGEST.sub("", path.stem)
        by_set.setdefault(unquote(path.stem) if manifest.get(IMPORTED) else set_name, []).append(path)
    ordered: list[Copy] = []
    for name, paths in by_set.items():
        newest_first = sorted(paths, key=lambda path: (path.name in used, path.stat().st_mtime), reverse=True)
        for i, path in enumerate(newest_first):
            ordered.append(Copy(path=path, problem_set=name, replaces=tuple(newest_first[:i])))
    return tuple(ordered)


def set_apart(folder: Path, current: Collection[str]) -> None:
    """Leave each problem once in problems/; copies that others supersede go to earlier_problems/.

    Of a copy whose problems are in later ones in part, the others stay as a copy of their own: there are
    trials of them. Each step leaves all problems in place, so a killed process does no harm.

    Args:
        folder: the results folder. Its manifest names the copies that the last run used.
        current: the names of all copies that its sweep asks, which stay as they are.

    Raises:
        ProblemSetError: a copy is damaged.
        StoreError: the folder cannot be written.
    """
    present = [copy for copy in copies(folder) if copy.path.parent.name == PROBLEMS]
    older = [copy for copy in present if copy.path.name not in current]
    if not older:
        return
    older.sort(key=lambda copy: copy.path.stat().st_mtime, reverse=True)
    ids = _ids_in(*(copy.path for copy in present if copy.path.name in current))
    written = set[Path]()
    for copy in older:
        own_ids = _ids_in(copy.path)
        rest = own_ids.filter(pc.invert(pc.is_in(own_ids, value_set=ids)))
        if len(rest) == len(own_ids) or copy.path in written:
            ids = pa.chunked_array([*ids.chunks, *own_ids.chunks], pa.string())
            continue
        if len(rest):
            named = open_set(copy.path, name=copy.problem_set, any_suite=True)
            written.add(copy_some(named, rest, copy.path.parent, seal=stamp).path)
            ids = pa.chunked_array([*ids.chunks, *rest.chunks], pa.string())

        # move the copy in one step
        earlier = copy.path.parent.with_name(EARLIER)
        with storing(earlier / copy.path.name):
            make_folder(earlier)
            copy.path.replace(earlier / copy.path.name)
            sync_to_disk(earlier)
            sync_to_disk(copy.path.parent)


def _ids_in(*paths: Path) -> "pa.ChunkedArray[pa.StringScalar]":
    """Return the ids of the problems in copies."""
    columns = ("problem_id",)
    batches = (batch for path in paths for batch in contract_batches(path, columns=columns))
    return pa.chunked_array([batch.column(0) for batch in batches], pa.string())


def iter_problems(
    folder: Path | str,
    columns: Columns = None,
    filters: Filters | None = None,
    *,
    batch_rows: int = ROWS_AT_ONCE,
) -> Iterator[pa.RecordBatch]:
    """Read the problems in batches, for folders larger than memory.

        for batch in ab.iter_problems("results/night", ["problem_id", "question"]):
            print(batch.num_rows)

    Args:
        folder: the results folder.
        columns: the names of the columns, in the order you want. [all]
        filters: which rows, as `pyarrow.parquet.read_table` takes them, such as `[("model", "=", "small")]`.
            [all rows]
        batch_rows: the most rows of a batch. [8,192]

    Returns:
        An iterator of `pyarrow.RecordBatch`.

    Raises:
        ConfigError: The folder is not a results folder, a column does not exist, or a filter is wrong.
        ProblemSetError: A copy of a problem set is damaged.
        StoreError: The folder's manifest cannot be read.
    """
    chosen = chosen_columns("problems", columns, COPY_SCHEMA)
    wanted = expression("problems", filters, COPY_SCHEMA)
    filter_text = str(wanted)  # an expression does not tell its columns otherwise
    all_copies = copies(local_folder(folder))
    names = [name for name in COPY_SCHEMA.names[1:] if name in (*chosen, "problem_id") or name in filter_text]
    return (
        batch
        for copy in all_copies
        for rows in _rows(copy, names, batch_rows)
        for batch in rows.filter(wanted).select(chosen).to_batches()
    )


@table_reader
def read_problems(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Read the problems behind a results folder: one row per problem set and problem.

        problem = ab.read_problems("results/night").to_pylist()[0]
        print(problem["question"], ab.grade(problem, "The answer is 42."))

    Join them with `trials` on `problem_set` and `problem_id`. If a problem set changed between two runs,
    you get its newest state.

    Args:
        folder: the results folder, or a list of several: the column `folder` then comes first.
        columns: the names of the columns, in the order you want. [all]
        filters: which rows, as `pyarrow.parquet.read_table` takes them: `[("suite", "=", "nupa")]`
            or a `pyarrow.compute` expression. They may use any column. [all rows]
        as_: `arrow`, `pandas` or `polars`. [arrow]

    Returns:
        A `pyarrow.Table`, `pandas.DataFrame` or `polars.DataFrame`.

    Raises:
        ConfigError: The folder is not a results folder, a column does not exist, a filter is wrong, or
            the package that `as_` names is not installed.
        ProblemSetError: A copy of a problem set is damaged.
        StoreError: The folder's manifest cannot be read.
    """
    chosen = chosen_columns("problems", columns, COPY_SCHEMA)
    batches = list(iter_problems(folder, chosen, filters))
    return pa.Table.from_batches(batches, pa.schema([COPY_SCHEMA.field(name) for name in chosen]))


class ProblemTable:
    """The problems of a folder: those that its sweep asks now first, then those that it asked before."""

    def __init__(
        self, current: Iterable[Copy], earlier: Iterable[Copy], columns: Sequence[str] = COPY_SCHEMA.names[1:]
    ) -> None:
        """Read some columns, `problem_id` among them; `problem_set` comes first.

        Raises:
            ProblemSetError: a copy is damaged.
        """
        empty = pa.schema([COPY_SCHEMA.field(name) for name in ("problem_set", *columns)]).empty_table()
        newest, superseded = (
            pa.concat_tables(
                [empty, *(rows for copy in chosen for rows in _rows(copy, columns, ROWS_AT_ONCE))]
            )
            for chosen in (current, earlier)
        )
        self.rows = pa.concat_tables([newest, superseded]).combine_chunks()
        self._keys = [(_keys_in(table), table["problem_id"]) for table in (newest, self.rows)]

    def rows_of(self, trials: pa.Table) -> "pa.ChunkedArray[pa.Int32Scalar]":
        """Return the row in which the problem of each trial is as it is asked now; NULL: there is none.

        A file may have been renamed or merged since a trial: then its problem is in a set of another name.

        Args:
            trials: a table with `problem_set` and `problem_id`.
        """
        places: pa.ChunkedArray[pa.Int32Scalar] = pa.chunked_array([pa.nulls(len(trials), pa.int32())])
        for keys, ids in self._keys:
            for values, value_set in ((_keys_in(trials), keys), (trials["problem_id"], ids)):
                if places.null_count:
                    matches: pa.ChunkedArray[pa.Int32Scalar] = pc.index_in(values, value_set=value_set)  # type: ignore[assignment]  # the stubs: an array
                    places = pc.coalesce(places, matches)
        return places


def _keys_in(table: pa.Table) -> "pa.ChunkedArray[pa.StringScalar]":
    """Return `SET/ID` of each row; an id has no slash, so no two pairs look alike."""
    return pc.binary_join_element_wise(table["problem_set"], table["problem_id"], "/")  # type: ignore[call-overload,no-any-return]  # the stubs forget the separator


def _rows(copy: Copy, names: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """Yield columns of a copy, `problem_id` among them."""
    later: list[pa.ChunkedArray[pa.StringScalar]] = []  # the ids of the problems in each later copy
    for path in copy.replaces:
        columns = [batch.column("problem_id") for batch in _opened(path).batches(ROWS_AT_ONCE)]
        later.append(pa.chunked_array(columns, pa.string()))
    schema = pa.schema([COPY_SCHEMA.field(name) for name in ("problem_set", *names)])
    for batch in _opened(copy.path).batches(rows, columns=names):
        table = pa.table([pa.repeat(copy.problem_set, len(batch)), *batch.columns], schema=schema)
        for ids in later:
            table = table.filter(pc.invert(pc.is_in(table["problem_id"], value_set=ids)))
        yield table


def _opened(path: Path) -> ProblemSet:
    """Return a copy that was checked; one that is still the same is not checked again."""
    if not path.exists():  # a run has begun meanwhile, and set it apart
        path = path.parent.with_name(EARLIER) / path.name
    stat = path.stat()
    return _checked(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)


@lru_cache(64)
def _checked(path: Path, *_: int) -> ProblemSet:
    return open_set(path, any_suite=True)
