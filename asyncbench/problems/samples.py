"""A random sample of a problem set: the same for every model, on every machine and in every run.

    sample: 200                                200 problems, drawn with seed 0
    sample: {size: 200, seed: 7, by: task}     each task has its share of them

The seed and the problems decide what is drawn, and not their order in the file. The first problems of a
sample are a smaller sample, so a larger one of the same seed only adds problems.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

DRAWN_FROM: Final = ("problem_id", "suite", "task")  # columns of a problem set
Strata: TypeAlias = Literal["task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A number of problems, and how they are drawn."""

    size: int
    seed: int = 0
    by: Strata | None = None  # each of its values has its share; None: it has what falls to it

    def includes(self, other: "Sample | None") -> bool:
        """Return whether another sample of a set is a part of this one. None stands for the whole set."""
        if other is None:
            return False
        return (self.seed, self.by) == (other.seed, other.by) and self.size >= other.size

    @property
    def said(self) -> str:
        """Its size and how it is drawn, such as `200, seed 7, by task`."""
        return f"{self.size:,}, seed {self.seed}{f', by {self.by}' if self.by else ''}"

    def text(self, rows: int) -> str:
        """Return its part of a set with so many rows, such as `200 of 14,042 problems, drawn at random`."""
        if self.size >= rows:
            return f"all {rows:,} problems, which are no more than the sample of {self.size:,}"
        by = f", {self.by} by {self.by} in proportion" if self.by else ""
        return (
            f"{self.size:,} of {rows:,} problems, drawn at random with seed {self.seed}{by}, the same for "
            "every model"
        )


def drawn_rows(batches: Iterable[pa.RecordBatch], sample: Sample) -> npt.NDArray[np.int32]:
    """Return the rows of a problem set that are in a sample, in the order in which they are drawn.

    `batches` have the columns `DRAWN_FROM`. Of each row about a hundred bytes are held, and no text.
    """
    # a random number for each problem, and the number of its stratum
    key = f"asyncbench sample {sample.seed}".encode()
    numbers, strata = list[npt.NDArray[np.uint64]](), list[npt.NDArray[np.int32]]()
    known = dict[tuple[str, str], int]()
    for batch in batches:
        ids, suites, tasks = (cast("list[str]", batch[name].to_pylist()) for name in DRAWN_FROM)
        digests = b"".join(blake2b(text.encode(), digest_size=8, key=key).digest() for text in ids)
        numbers.append(np.frombuffer(digests, ">u8").astype(np.uint64))
        pairs = zip(suites, tasks, strict=True) if sample.by else [("", "")] * len(ids)
        strata.append(np.array([known.setdefault(pair, len(known)) for pair in pairs], np.int32))
    number, stratum = np.concatenate(numbers), np.concatenate(strata)

    # Each stratum is spread evenly over the whole: any number of first rows has a fair share of it.
    order = np.lexsort((number, stratum))
    sizes = np.bincount(stratum)
    ranks: Any = np.empty(len(number), np.float64)
    ranks[order] = np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.lexsort((number, (ranks + 0.5) / sizes[stratum]))[: sample.size].astype(np.int32)
