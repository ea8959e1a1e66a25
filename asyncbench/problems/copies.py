"""The copies of problem sets in a results folder, with the questions behind its trials."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.problems.schema import PROBLEM_FIELDS, ROWS_AT_ONCE
from asyncbench.store.bucket.fetching import at_hand
from asyncbench.store.manifest import IMPORTED, read_manifest
from asyncbench.store.snapshot import Columns, Filters, chosen_columns, expression, in_frames

COPY_SCHEMA = pa.schema([pa.field("problem_set", pa.string(), nullable=False), *PROBLEM_FIELDS])
_DIGEST = re.compile(r"-[0-9a-f]{12}\Z")  # at the end of a copy's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One file in a folder's problems/."""

    path: Path
    problem_set: str  # as trials call it
    replaces: tuple[Path, ...]  # earlier copies of the same set, in which only other problems count


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
    for path in sorted((folder / "problems").glob("*.parquet")):
        set_name = used.get(path.name, {}).get("name") or _DIGEST.sub("", path.stem)
        by_set.setdefault(unquote(path.stem) if manifest.get(IMPORTED) else set_name, []).append(path)
    ordered: list[Copy] = []
    for name, paths in by_set.items():
        newest_first = sorted(paths, key=lambda path: (path.name in used, path.stat().st_mtime), reverse=True)
        for i, path in enumerate(newest_first):
            ordered.append(Copy(path=path, problem_set=name, replaces=tuple(newest_first[:i])))
    return tuple(ordered)


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
    all_copies = copies(at_hand(folder))
    names = [name for name in COPY_SCHEMA.names[1:] if name in (*chosen, "problem_id") or name in filter_text]
    return (
        batch
        for copy in all_copies
        for rows in _rows(copy, names, batch_rows)
        for batch in rows.filter(wanted).select(chosen).to_batches()
    )


@in_frames
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
    stat = path.stat()
    return _checked(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)


@lru_cache(64)
def _checked(path: Path, *_: int) -> ProblemSet:
    return open_set(path)
