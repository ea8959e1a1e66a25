"""The drafts of a suite as batches: made here, or by several processes, with the same result.

Each process makes its part of every row and sends some rows at a time through a pipe. A full pipe makes it
wait, so memory does not grow with the set. Here the parts of each row are put together again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import accumulate, chain, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

import pyarrow as pa

from asyncbench.errors import ProblemSetError
from asyncbench.problems.schema import DRAFTED, drafted
from asyncbench.suites.suite import Rows, Suite

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
