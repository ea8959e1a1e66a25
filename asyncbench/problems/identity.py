"""Problem ids, and the memory of what was already seen."""

from array import array
from collections.abc import Iterable, Iterator
from hashlib import blake2b

import pyarrow as pa

from asyncbench.problems.schema import DRAFTED, PROBLEM_SCHEMA, drafted_values
from asyncbench.records import Draft, Problem


class Occurrences:
    """How often each 64-bit digest was seen: a hash table in two flat arrays.

    12 bytes a slot: ten million digests take 200 MB, and 300 MB while the table doubles for the last
    time; a set of Python integers would take about 900.
    """

    def __init__(self, slots: int = 1024) -> None:
        """Start with room for `slots` (a power of two); the table grows by itself."""
        self._digests = array("Q", [0]) * slots
        self._counts = array("I", [0]) * slots  # 0: a free slot
        self._taken = 0

    def add(self, digest: int) -> int:
        """Count one more of a digest, [0, 2**64), and return how often it was seen before."""
        slot = self._slot(digest)
        before = self._counts[slot]
        self._digests[slot] = digest
        self._counts[slot] = before + 1
        if not before:
            self._taken += 1
            if self._taken * 4 > len(self._counts) * 3:
                self._double()
        return before

    def _slot(self, digest: int) -> int:
        digests, counts = self._digests, self._counts
        last = len(counts) - 1
        slot = digest & last
        while counts[slot] and digests[slot] != digest:
            slot = (slot + 1) & last
        return slot

    def _double(self) -> None:
        held = zip(self._digests, self._counts, strict=True)
        slots = 2 * len(self._counts)
        self._digests, self._counts = array("Q", [0]) * slots, array("I", [0]) * slots
        for digest, count in held:
            if count:
                slot = self._slot(digest)
                self._digests[slot] = digest
                self._counts[slot] = count


def identified(drafts: Iterable[Draft]) -> Iterator[Problem]:
    """Yield drafts as problems, each with its id (`Ids`)."""
    ids = Ids()
    for draft in drafts:
        problem_id = ids.of(draft.suite, draft.task, draft.question)
        yield Problem(problem_id=problem_id, **dict(zip(DRAFTED.names, drafted_values(draft), strict=True)))


def with_ids(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of drafts as batches of problems, each with its id (`Ids`)."""
    ids = Ids()
    for batch in batches:
        asked = (batch.column(name).to_pylist() for name in ("suite", "task", "question"))
        found = pa.array(map(ids.of, *asked), pa.string())
        yield pa.RecordBatch.from_arrays([found, *batch.columns], schema=PROBLEM_SCHEMA)


class Ids:
    """The ids of problems, given in the order of their set: 128 bits as 32 hexadecimal characters.

    An id says which question this is: suite, task, question, and how many of the same came before. The
    expected answer is no part of it: a corrected answer means grading again, not paying again.
    """

    def __init__(self) -> None:
        self._asked = Occurrences()

    def of(self, suite: str, task: str, question: str) -> str:
        """Return the id of the next problem."""
        # Each text with its length before it: no other texts give these bytes.
        framed = "".join(f"{len(text)}:{text}" for text in (suite, task, question))
        digest = blake2b(framed.encode(), digest_size=16)
        digest.update(b"%d" % self._asked.add(int.from_bytes(digest.digest()[:8])))
        return digest.hexdigest()
