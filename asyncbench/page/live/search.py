"""The search for a text, which goes a little further with each query, so that the first hits come at once."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute

from asyncbench.page.live.trials import FolderInMemory, TrialPart, among, sorted_problems
from asyncbench.problems.copies import iter_problems
from asyncbench.store.id_set import Numbers
from asyncbench.store.reading import AT_ONCE

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

SEARCH_S = 0.15  # that a search goes on before it tells its hits so far
MOST_UNFINISHED: Final = 0.99  # of a search that goes on
_TEXTS: Final = ("expected", "answer", "error_message", "reply_text", "reasoning_text")
_ROWS = 2048  # whose texts are in memory together

Steps = Generator[None, None, None]  # of a search through a part, or through the questions of a folder


class TextSearch:
    """The search for one text, through all texts of trials, their questions and the beginning of their ids.

    What was searched is not searched again: a part never changes. A part that cannot be read is an error
    each time.
    """

    share = 0.0  # of the rows of the last call of `hits` that are searched

    def __init__(self, text: str, paths: Mapping[FolderInMemory, Path]) -> None:
        self._text = text
        self._paths = paths
        self._hits: dict[Path, Numbers] = {}  # by part: which rows hold the text, so far
        self._problems: dict[FolderInMemory, list[Numbers]] = {}  # fingerprints of problems that hold it
        self._searched: dict[Path, int] = {}  # by part: how many rows were searched
        self._going: dict[Path, Steps] = {}  # unfinished searches by part, or by folder
        self._through: set[Path] = set()  # parts and folders whose search is finished

    def hits(self, parts: Sequence[TrialPart]) -> list[Numbers]:
        """Search some parts, and the questions of their folders; return which rows hold the text, so far.

        Raises:
            StoreError, ProblemSetError: one cannot be read.
        """
        end = time.monotonic() + SEARCH_S
        searches: dict[Path, Callable[[], Steps]] = {
            self._paths[part.folder]: partial(self._search_questions, part.folder) for part in parts
        }
        searches |= {path: partial(self._search_part, part, path) for part in parts if (path := part.path)}
        waiting = [path for path in searches if path not in self._through]

        def step(n: int) -> None:
            """Search the next part, or the questions of a folder, until the moment `end`."""
            if n >= AT_ONCE and time.monotonic() >= end:  # a few go on in any case
                return
            path = waiting[n]
            steps = self._going.pop(path, None) or searches[path]()
            for _ in steps:  # what fails begins anew the next time
                if time.monotonic() >= end:
                    self._going[path] = steps
                    return
            self._through.add(path)
            pa.default_memory_pool().release_unused()  # of this thread, which ends soon

        with ThreadPoolExecutor(AT_ONCE) as threads:
            for _ in threads.map(step, range(len(waiting))):
                pass
        rows = sum(len(part.counting) for part in parts)
        searched = sum(self._searched[part.path] for part in parts if part.path in self._searched)
        self.share = 1.0 if searches.keys() <= self._through else min(searched / rows, MOST_UNFINISHED)
        return [self._part_hits(part) for part in parts]

    def close(self) -> None:
        """Let go of the parts that are open."""
        for steps in self._going.values():
            steps.close()
        self._going.clear()

    def _search_part(self, part: TrialPart, path: Path) -> Steps:
        hits, start = self._hits.setdefault(path, np.zeros(len(part.counting), bool)), 0
        for batch in part.snapshot.part_batches("trials", path, _TEXTS, rows=_ROWS):
            hits[start : start + len(batch)] = self._matches(*batch.columns)
            start += len(batch)
            self._searched[path] = start
            yield

    def _search_questions(self, folder: FolderInMemory) -> Steps:
        problems = self._problems[folder] = []
        for batch in iter_problems(self._paths[folder], ["problem_id", "question"], batch_rows=_ROWS):
            matches = pa.array(self._matches(batch["question"]))
            problems.append(sorted_problems(batch["problem_id"].filter(matches)))
            yield

    def _matches(self, *columns: Any) -> Numbers:
        """Return for each row whether any of the columns holds the text, in any case."""
        any_case = self._text.upper() != self._text.lower()
        matches = (pc.match_substring(column, self._text, ignore_case=any_case) for column in columns)
        hits: Numbers = np.logical_or.reduce([pc.fill_null(rows, False).to_numpy(False) for rows in matches])
        return hits

    def _part_hits(self, part: TrialPart) -> Numbers:
        """Return the rows of a part that hold the text, as far as it was searched."""
        hits = part.match_ids(self._text)
        if part.path is None:
            hits |= self._matches(*part.snapshot.journalled["trials"].select(_TEXTS).columns)
        elif part.path in self._hits:
            hits |= self._hits[part.path]
        problems = self._problems.get(part.folder)
        if problems:
            hits |= among(part.rows.problem, np.sort(np.concatenate(problems)))
        return hits
