"""Snapshots of results folders: the trials that a server shows until it reads the folders anew."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from asyncbench.analysis.anatomy.counts import ExaminedAnswer
from asyncbench.analysis.choosing import Chosen, Names
from asyncbench.analysis.counting import FolderViews, open_views
from asyncbench.analysis.entrants import Asked, asked_in
from asyncbench.errors import AsyncbenchError
from asyncbench.page.answers import PROBLEMS, Row, summaries, whole_trials
from asyncbench.page.live.search import TextSearch
from asyncbench.page.live.trials import (
    FolderInMemory,
    Registers,
    TrialIndex,
    TrialPlace,
    TrialQuery,
    pages_of,
    places_in,
)
from asyncbench.store.manifest import folders_of
from asyncbench.store.reading import AT_ONCE, narrowed, sibling_parts, take_snapshot
from asyncbench.store.snapshot import Snapshot
from asyncbench.tables.data import Values

State = tuple[object, ...]  # of folders: two states differ where the contents of a folder do

MOST_OF_A_QUESTION: Final = 200  # answers that are shown side by side
MOST_PROBLEMS: Final = 1_000  # that were shown, whose rows are kept: a page turned back shows them at once
MOST_SEARCHES: Final = 2  # searches in memory: each may hold a part open in each thread
EXAMINED_WORDS: Final = "{:,} wrong answers were examined for their kind of error. Only these are found."


class NotCountedError(AsyncbenchError):
    """The figures of a query are not counted yet."""


class LiveMemory:
    """The trials of folders that stay in memory from snapshot to snapshot."""

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self.registers = Registers()
        self.folders = [
            FolderInMemory(label, f"{label}/" * chosen.several, self.registers) for label in chosen.labels
        ]
        self._searches: dict[tuple[object, ...], TextSearch] = {}  # the last one last

    def search_for(self, text: str) -> TextSearch:
        """Return the search for a text, which goes on where it was; other problem sets are searched anew."""
        sets = [path / "problems" for path in self.chosen.paths]
        key = (text, *(path.stat().st_mtime_ns for path in sets if path.exists()))
        search = self._searches.pop(key, None)
        if search is None:
            search = TextSearch(text, dict(zip(self.folders, self.chosen.paths, strict=True)))
        self._searches[key] = search
        while len(self._searches) > MOST_SEARCHES:
            self._searches.pop(next(iter(self._searches))).close()
        return self._searches[key]


@dataclass(slots=True, kw_only=True, eq=False)
class LiveSnapshot:
    """One moment of the folders, and the answers to queries of its trials."""

    memory: LiveMemory
    snapshots: tuple[Snapshot, ...]
    taken_at: float  # seconds since 1970: what the folders got later is not in it
    names: Names = field(default_factory=dict)
    roster: Asked | None = None  # None: not counted yet
    index: TrialIndex | None = None  # None: its trials are not read yet
    examined: Sequence[ExaminedAnswer] | None = None  # None: not counted yet
    _problems: dict[str, list[Row]] = field(default_factory=dict)  # that were shown, by id
    compared: bool = False  # whether it is known where graders differ

    @contextmanager
    def views(self) -> Iterator[FolderViews]:
        """Open the views of this moment, for the thread that asks."""
        with open_views(self.memory.chosen, *self.snapshots, keeps=True) as views:
            yield views

    def read_index(self, views: FolderViews, roster: Asked) -> None:
        """Read the trials that are new since the last snapshot."""
        self.names, self.roster = views.names, roster
        parts = [
            part
            for folder, snapshot in zip(self.memory.folders, self.snapshots, strict=True)
            for part in folder.read_trials(snapshot)
        ]
        registers = self.memory.registers
        named = ((run, views.called(label, model), how) for label, run, model, how in registers.entrants)
        self.index = TrialIndex(
            parts=parts,
            registers=registers,
            entrants=places_in(named, roster.entrant_places),
            kinds=places_in(registers.kinds, roster.kind_places),
        )
        if views.chosen.filtered:
            self.index.keep_only(views.table("SELECT trial_id FROM trials")["trial_id"].combine_chunks())

    def trials(self, query: TrialQuery) -> Values:
        """Return a page of the trials that a query asks for, as lines of a list.

        Raises:
            NotCountedError: nobody knows yet of what kind errors are, or where graders differ.
        """
        index = self._read()
        if query.needs_errors and self.examined is None:
            raise NotCountedError("wrong answers are being examined for their kind of error")
        if query.disagree and not self.compared:
            raise NotCountedError("graders are being compared")
        search = self.memory.search_for(query.text) if query.text else None
        total, places = index.find(query, self.examined or (), search.hits if search else None)
        with self.open_few(places) as (views, ids):
            rows = summaries(views, ids)
        pages = pages_of(total)
        page = min(query.page, pages)
        listing = {"found": total, "of": index.trials, "page": page, "pages": pages, "rows": rows}
        if query.needs_errors:
            listing["note"] = EXAMINED_WORDS.format(len(self.examined or ()))
        return listing | {"searched": search.share if search else 1.0}

    def trial(self, trial_id: str) -> Values | None:
        """Return one whole trial and how many answers its question has, or None if no trial has this id."""
        with self.open_few(self._read().find(TrialQuery(trial=trial_id))[1]) as (views, ids):
            for trial in whole_trials(views, ids):
                answers, entrants = self._read().answers_to(trial["question"])
                return trial | {"answers": answers, "entrants": entrants}
        return None

    def question(self, problem_id: str, entrants: Sequence[int] = ()) -> Values:
        """Return whole answers to one problem, in the order of the page; `of`: how many there are.

        With `entrants`, by their indices, only their answers are returned.
        """
        total, places = self._read().find_answers(problem_id, MOST_OF_A_QUESTION, entrants)
        with self.open_few(places) as (views, ids):
            trials = whole_trials(views, ids)
        trials.sort(key=lambda trial: (trial["asked"] or 0, trial["repeat"], trial["id"]))
        return {"of": total, "trials": trials}

    @contextmanager
    def open_few(self, places: Sequence[TrialPlace]) -> Iterator[tuple[FolderViews, list[str]]]:
        """Open views of a few trials, read from their rows alone; yields the views and the ids."""
        parts = self._read().parts
        rows = {part: sorted(row for trial_part, row in places if trial_part == part) for part, _ in places}
        with ThreadPoolExecutor(AT_ONCE) as threads:
            ids = dict(zip(rows, threads.map(lambda part: parts[part].ids(rows[part]), rows), strict=True))

        # Of each folder only the rows of these trials, and of their grades, are left.
        few = list[Snapshot]()
        for folder, snapshot in zip(self.memory.folders, self.snapshots, strict=True):
            folder_parts = [part for part in rows if parts[part].folder is folder]
            trials = {path: rows[part] for part in folder_parts if (path := parts[part].path) is not None}
            folder_ids = [trial_id for part in folder_parts for trial_id in ids[part]]
            grades = folder.grades_of(sibling_parts(snapshot, "grades", trials), folder_ids)
            few.append(narrowed(snapshot, folder_ids, trials, grades))

        if len(self._problems) > MOST_PROBLEMS:
            self._problems = {}
        with open_views(Chosen(paths=self.memory.chosen.paths), *few, model_names=self.names) as views:
            views.made[asked_in.__name__] = self.roster  # not the entrants of these few trials
            views.made[PROBLEMS] = self._problems
            names = {part: dict(zip(rows[part], ids[part], strict=True)) for part in rows}
            yield views, [f"{parts[part].folder.prefix}{names[part][row]}" for part, row in places]
        pa.default_memory_pool().release_unused()  # to the system

    def _read(self) -> TrialIndex:
        if self.index is None:
            raise AssertionError("a snapshot is queried before its trials are read")
        return self.index

    def read_grades(self) -> None:
        """Read where the grades of each trial are, and on which trials graders differ."""
        for folder, snapshot in zip(self.memory.folders, self.snapshots, strict=True):
            parts = [part for part in self._read().parts if part.folder is folder]
            folder.read_grades(snapshot, parts)
        self.compared = True


def take_live_snapshot(memory: LiveMemory) -> LiveSnapshot:
    """Take a snapshot of the folders.

    Raises:
        ConfigError: one is not a results folder.
        StoreError: one cannot be read.
    """
    taken_at = time.time()
    snapshots = tuple(map(take_snapshot, memory.chosen.paths))
    return LiveSnapshot(memory=memory, snapshots=snapshots, taken_at=taken_at)


def state_of(folders: Mapping[str, Path]) -> State:
    """Return a value that changes when a folder does, read without any rows; () of a folder that is gone.

    It has the manifests of each folder and of its workers' folders, and the sizes of their segments.
    """
    states = list[State]()
    for folder in folders.values():
        state = list[object]()
        try:
            for path in folders_of(folder):
                manifest = (path / "manifest.json").stat()
                journal = sorted((file.name, file.stat().st_size) for file in (path / "journal").iterdir())
                state.append((manifest.st_mtime_ns, manifest.st_size, *journal))
        except (OSError, AsyncbenchError):  # a segment was sealed a moment ago, or the folder is gone
            state = [None] if folder.exists() else []
        states.append(tuple(state))
    return tuple(states)
