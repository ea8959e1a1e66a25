"""Making problem sets: generating them from a seed, writing them, and copying them into results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import accumulate, chain, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from os import PathLike
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.files import local, replacing, storing, writing
from asyncbench.problems.files import content_in, opened_parquet
from asyncbench.problems.problem_set import ProblemSet, Survey, metadata_in, metadata_of, state_of
from asyncbench.problems.schema import DRAFTED, PROBLEM_SCHEMA, ROWS_AT_ONCE, batches_of, drafted, with_ids
from asyncbench.records import Problem
from asyncbench.suites.suite import Rows, Suite
from asyncbench.suites.table import SUITES

# ── drafts of a suite as batches, made here or by several processes with the same result
# Each process makes its part of every row and sends some rows at a time through a pipe. A full pipe makes
# it wait, so memory does not grow with the set. Here the parts of each row are put together again.


_ROWS_AT_ONCE = 8  # of a part: some 20,000 problems of all of nupa together, 10 MB


class Some(NamedTuple):
    """Some rows of a part: how many drafts each has, and all of them as one batch in Arrow's own form."""

    sizes: list[int]
    batch: pa.Buffer | bytes


def draft_batches(
    suite: Suite, seed: int, parameters: Mapping[str, object], *, workers: int, rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the drafts of a suite in their order, `rows` to a batch; the last may be shorter.

    Raises:
        ProblemSetError: a worker process was ended by somebody else.
    """
    assert suite.generate is not None  # noqa: S101  # `generate` has refused the others
    if workers == 1 or suite.rows is None:
        drafts = iter(suite.generate(seed, parameters))
        while some := list(islice(drafts, rows)):
            yield drafted(some)
        return
    waiting = pa.Table.from_batches([], DRAFTED)
    with ExitStack() as stack:
        parts = [
            stack.enter_context(_working(suite.rows, seed, parameters, part, workers))
            for part in range(workers)
        ]
        while any(received := [_received(part) for part in parts]):
            batch = _in_rows([some_rows for some_rows in received if some_rows])
            waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
            while waiting.num_rows >= rows:
                yield _as_batch(waiting.slice(0, rows))
                waiting = waiting.slice(rows)
    if waiting.num_rows:
        yield _as_batch(waiting)


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


@contextmanager
def _working(
    rows: Rows, seed: int, parameters: Mapping[str, object], part: int, parts: int
) -> Iterator[Connection]:
    """Yield the near end of a pipe into which a process of its own sends a part."""
    context = get_context("spawn")  # a fork would copy locks that threads of Arrow hold
    near, far = context.Pipe(duplex=False)
    worker = context.Process(target=_send, args=(far, rows, seed, dict(parameters), part, parts), daemon=True)
    worker.start()
    far.close()
    try:
        yield near
    finally:
        near.close()
        worker.terminate()
        worker.join()


def _send(
    pipe: Connection, rows: Rows, seed: int, parameters: Mapping[str, object], part: int, parts: int
) -> None:
    """Send a part, some rows at a time; then None, or the error that ended it."""
    try:
        made = rows(seed, parameters, part, parts)
        while some := list(islice(made, _ROWS_AT_ONCE)):
            drafts = list(chain.from_iterable(some))
            batch = drafted(drafts).serialize().to_pybytes() if drafts else b""
            pipe.send(Some(list(map(len, some)), batch))
        pipe.send(None)
    except BrokenPipeError:  # nobody wants them any more
        return
    except Exception as error:
        pipe.send(error)


def _received(part: Connection) -> Some | None:
    """Return the next rows of a part; None, ever again, after its last."""
    if part.closed:
        return None
    try:
        some = part.recv()
    except EOFError:
        raise ProblemSetError(
            "a worker process was killed before its work was done, perhaps for lack of memory. Use fewer "
            "--workers."
        ) from None
    if isinstance(some, Exception):
        raise some
    if some is None:
        part.close()
        return None
    return Some(*some)


def _in_rows(parts: Sequence[Some]) -> pa.RecordBatch:
    """Return the rows of several parts as one batch: row by row, in each row part after part."""
    batches = [pa.ipc.read_record_batch(pa.py_buffer(part.batch), DRAFTED) for part in parts if part.batch]
    starts = list(accumulate((sum(part.sizes) for part in parts), initial=0))  # of each part
    order = list[int]()
    for row in range(max(len(part.sizes) for part in parts)):
        for n, part in enumerate(parts):
            size = part.sizes[row] if row < len(part.sizes) else 0
            order.extend(range(starts[n], starts[n] + size))
            starts[n] += size
    whole = pa.Table.from_batches(batches, DRAFTED)
    return _as_batch(whole.take(pa.array(order, pa.int64())))


# ── writing and copying


Writing = Callable[[Path], AbstractContextManager[None]]  # what becomes of the system's refusal to write


def generate(
    suite: str | Suite,
    out: str | PathLike[str],
    *,
    seed: int = 0,
    workers: int = 1,
    exclude: Iterable[str | PathLike[str]] = (),
    **parameters: object,
) -> ProblemSet:
    """Generate the problems of a suite and write them to a Parquet file, whole or not at all.

        problems = ab.generate("llm_arithmetic", "problems.parquet", seed=7)
        print(problems.rows)

    Args:
        suite: the name of a suite.
        out: the file. An existing one is replaced.
        seed: the same seed and parameters give the same problems on every machine. [0]
        workers: the number of processes; the problems stay the same. In a script, more than one needs
            `if __name__ == "__main__":`. [1]
        exclude: problem sets whose questions are left out: a test set, of training data. [none]
        parameters: those of the suite; `asyncbench suites` lists them. [the suite's own]

    Returns:
        A `ProblemSet`: the path, the number of rows and the digest.

    Raises:
        ConfigError: A suite or parameter is unknown, or `out` cannot be a file.
        ProblemSetError: One of `exclude` is no problem set.
        StoreError: The file cannot be written.
    """
    if isinstance(suite, str) and suite not in SUITES:
        raise ConfigError(f"no suite {suite!r}. Known: {', '.join(SUITES)}.")
    chosen = SUITES[suite] if isinstance(suite, str) else suite
    place = f"generate {chosen.name}"
    values = chosen.parsed(parameters, place=place)
    if chosen.generate is None:
        raise ConfigError(f"{place}: the problems of this suite are your own file. Name it in the sweep.")
    if workers < 1:
        raise ConfigError(f"{place}: workers: {workers} is too small: at least 1")
    out = local(out)

    def made(survey: Survey) -> ProblemSet:
        if not survey.rows:
            raise ConfigError(f"{place}: these parameters leave nothing to generate. Change them: {values}")
        return ProblemSet(
            path=out,
            name=out.stem,
            generator_version=chosen.generator_version,
            seed=seed,
            parameters=values,
            **survey.facts,
        )

    drafts = draft_batches(chosen, seed, values, workers=workers, rows=ROWS_AT_ONCE)
    if excluded := tuple(map(Path, exclude)):
        drafts = _without(excluded, drafts)
    return _written(with_ids(drafts), out, made, writing=writing, cells=chosen.rows is not None)


def _without(paths: Iterable[Path], drafts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield drafts but those whose question one of the sets holds."""
    from asyncbench.problems.opening import open_set  # which reads what is made here

    batches = chain.from_iterable(open_set(path).batches(ROWS_AT_ONCE) for path in paths)
    questions = [batch.column("question") for batch in batches]
    known = pa.chunked_array(questions, pa.string()).combine_chunks()
    for batch in drafts:
        if kept := batch.filter(pc.invert(pc.is_in(batch.column("question"), value_set=known))):
            yield kept


def write_problems(problems: Iterable[Problem], out: Path, *, writing: Writing = storing) -> ProblemSet:
    """Write problems that others made, by default into a results folder.

    Raises:
        StoreError: they cannot be written there; or as `writing` has it.
    """

    def made(survey: Survey) -> ProblemSet:
        return ProblemSet(path=out, name=out.stem, **survey.facts)

    return _written(batches_of(iter(problems), rows=ROWS_AT_ONCE), out, made, writing=writing)


def copy_into(
    problems: ProblemSet,
    folder: Path,
    *,
    seal: Callable[[Path], None] = lambda _: None,
    is_sound: Callable[[Path], bool] = lambda _: False,
) -> ProblemSet:
    """Put a set into a results folder, in the contract's form, so that the folder stands alone.

    Args:
        problems: the set.
        folder: where copies are; one that is there already is kept if it is sound.
        seal: is given the written file before it has its name.
        is_sound: whether a file is as it was sealed.

    Raises:
        ProblemSetError: the file changed since it was checked.
        StoreError: the folder cannot be written.
    """
    out = folder / f"{problems.name}-{problems.digest[:12]}.parquet"
    copy = replace(problems, path=out, custom=None, state=None)

    def made(survey: Survey) -> ProblemSet:
        if survey.digest != problems.digest:
            raise _changed(problems)
        return copy

    if is_sound(out) and metadata_in(pq.read_metadata(out).metadata).get("digest") == problems.digest:
        return copy
    if _is_as_copied(problems):
        with storing(out), replacing(out) as file:
            _copy_bytes(problems, file)
            seal(Path(file.name))
        return copy
    return _written(problems.batches(ROWS_AT_ONCE), out, made, writing=storing, seal=seal)


def _is_as_copied(problems: ProblemSet) -> bool:
    """Return whether a set's file is what `_written` would make of it."""
    if problems.state is None or content_in(problems.path).form != "parquet":
        return False
    ours = {b"ARROW:schema", *(key.encode() for key in metadata_of(problems))}
    with opened_parquet(problems.path) as file:
        groups = map(file.metadata.row_group, range(file.num_row_groups))
        same = file.schema_arrow.equals(PROBLEM_SCHEMA) and {*(file.metadata.metadata or {})} == ours
        return same and all(group.num_rows <= ROWS_AT_ONCE for group in groups)


def _copy_bytes(problems: ProblemSet, file: BinaryIO) -> None:
    with problems.path.open("rb") as source:
        copyfileobj(source, file, 2**20)
    file.flush()
    if state_of(problems.path) != problems.state:
        raise _changed(problems)


def _changed(problems: ProblemSet) -> ProblemSetError:
    return ProblemSetError(f"{problems.path}: the file changed while it was read. Start again.")


def _written(
    batches: Iterable[pa.RecordBatch],
    out: Path,
    made: Callable[[Survey], ProblemSet],
    *,
    writing: Writing,
    seal: Callable[[Path], None] = lambda _: None,
    cells: bool = False,
) -> ProblemSet:
    """Write batches to `out` and return the set that they are `made` into, which may still be refused."""
    survey = Survey(cells=cells)
    with writing(out), replacing(out) as file:
        with pq.ParquetWriter(file, PROBLEM_SCHEMA, compression="zstd") as writer:
            for batch in batches:
                survey.add(batch)
                writer.write_batch(batch)
            problems = made(survey)
            writer.add_key_value_metadata(metadata_of(problems))
        file.flush()
        seal(Path(file.name))
    return problems
