"""Snapshots of results folders: the trials that a server shows until it reads the folders anew."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow.compute

from asyncbench.analysis.anatomy.counts import ExaminedAnswer
from asyncbench.analysis.choosing import Chosen, Names
from asyncbench.analysis.counting import FolderViews, open_views
from asyncbench.analysis.entrants import Asked, asked_in
from asyncbench.errors import AsyncbenchError
from asyncbench.page.answers import summaries, whole_trials
from asyncbench.page.blocks import Values
from asyncbench.page.live.trials import (
    FolderInMemory,
    Registers,
    TrialIndex,
    TrialPart,
    TrialPlace,
    TrialQuery,
    pages_of,
)
from asyncbench.store.id_set import Numbers
from asyncbench.store.manifest import folders_of
from asyncbench.store.reading import narrowed, sibling_parts, take_snapshot
from asyncbench.store.snapshot import Snapshot

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

State = tuple[object, ...]  # of folders: differs where what they hold does

MOST_OF_A_QUESTION: Final = 200  # answers that are shown side by side
_DISAGREEING: Final = """
SELECT DISTINCT trial_id
FROM grades JOIN (SELECT trial_id, outcome AS decided FROM trials) USING (trial_id)
WHERE NOT headline AND outcome <> decided
"""
SEARCHED_WORDS: Final = (
    "The search looks at expected values, answers and the beginning of ids, not at replies."
)
EXAMINED_WORDS: Final = "{:,} wrong answers were examined for their kind of error. Only these are found."


class NotCountedError(AsyncbenchError):
    """The figures of a query are not counted yet."""


class LiveMemory:
    """The trials of folders that stay in memory from snapshot to snapshot."""

    def __init__(self, of: Chosen) -> None:
        self.of = of
        self.registers = Registers()
        self.folders = [FolderInMemory(label, self.registers) for label in of.labels]


@dataclass(slots=True, kw_only=True, eq=False)
class LiveSnapshot:
    """One moment of the folders, and the answers to queries of its trials."""

    memory: LiveMemory
    snapshots: tuple[Snapshot, ...]
    names: Names = field(default_factory=dict)
    roster: Asked | None = None  # None: not counted yet
    index: TrialIndex | None = None  # likewise
    examined: Sequence[ExaminedAnswer] | None = None  # None: not counted yet
    _disagreeing: Sequence[Numbers] | None = None  # by part; None: not read yet

    @contextmanager
    def views(self) -> Iterator[FolderViews]:
        """Open the views of this moment, for the thread that asks."""
        with open_views(self.memory.of, *self.snapshots, keeps=True) as views:
            yield views

    def read_index(self, views: FolderViews, roster: Asked) -> None:
        """Read the trials that are new since the last snapshot."""
        self.names = views.names
        self.roster = roster
        wanted = views.table("SELECT trial_id FROM trials")["trial_id"] if views.chosen.filtered else None
        index = TrialIndex(
            parts=(),
            registers=self.memory.registers,
            entrants={},
            kinds={kind.key: place for place, kind in enumerate(roster.kinds)},
            disagreeing=self._graders_differ,
            examined=lambda: self.examined or (),
            several=views.chosen.several,
        )
        parts = [
            TrialPart(folder.label, *part)
            for folder, snapshot in zip(self.memory.folders, self.snapshots, strict=True)
            for part in folder.read_trials(snapshot)
        ]
        index.parts = parts if wanted is None else [_among(part, index.named(part), wanted) for part in parts]
        index.entrants = {
            key: place
            for key in self.memory.registers.entrants
            for label, run, model, condition in [key]
            for place in [roster.entrant_places.get((run, views.called(label, model), condition))]
            if place is not None
        }
        self.index = index

    def trials(self, query: TrialQuery) -> Values:
        """Return a page of the trials that a query asks for, as lines of a list.

        Raises:
            NotCountedError: nobody knows yet of what kind errors are.
        """
        index = self._read()
        if query.of_errors and self.examined is None:
            raise NotCountedError("wrong answers are being examined for their kind of error")
        total, places = index.find(query)
        notes = [SEARCHED_WORDS] * bool(query.text)
        notes += [EXAMINED_WORDS.format(len(self.examined or ()))] * query.of_errors
        with self.open_few(places) as (views, ids):
            rows = summaries(views, ids)
        pages = pages_of(total)
        page = min(query.page, pages)
        listing = {"found": total, "of": index.trials, "page": page, "pages": pages, "rows": rows}
        return listing | ({"note": " ".join(notes)} if notes else {})

    def trial(self, trial_id: str) -> Values | None:
        """Return one trial whole; None: there is none of this id."""
        with self.open_few(self._read().with_id(trial_id)) as (views, ids):
            return next(iter(whole_trials(views, ids)), None)

    def question(self, problem_id: str) -> Values:
        """Return answers to one problem whole, in the order of the page; `of`: how many there are."""
        total, places = self._read().of_question(problem_id, MOST_OF_A_QUESTION)
        with self.open_few(places) as (views, ids):
            trials = whole_trials(views, ids)
        trials.sort(key=lambda trial: (trial["asked"] or 0, trial["repeat"], trial["id"]))
        return {"of": total, "trials": trials}

    @contextmanager
    def open_few(self, places: Sequence[TrialPlace]) -> Iterator[tuple[FolderViews, list[str]]]:
        """Open views of a few trials, read from their rows alone; yields the views and the ids."""
        of, index = self.memory.of, self._read()
        own: dict[str, list[str]] = {label: [] for label in of.labels}
        rows: dict[str, dict[Path, list[int]]] = {label: {} for label in of.labels}
        ids = []
        for part, row in places:
            at = index.parts[part]
            trial_id = at.rows.texts["trial_id"][row].as_py()
            ids.append(f"{at.label}/{trial_id}" if index.several else trial_id)
            own[at.label].append(trial_id)
            if at.path is not None:
                rows[at.label].setdefault(at.path, []).append(row)
        few = [
            narrowed(snapshot, own[folder.label], trials, grades)
            for folder, snapshot in zip(self.memory.folders, self.snapshots, strict=True)
            for trials in [{path: sorted(numbers) for path, numbers in rows[folder.label].items()}]
            for grades in [folder.grades_of(sibling_parts(snapshot, "grades", trials), own[folder.label])]
        ]
        with open_views(Chosen(paths=of.paths), *few, known=self.names) as views:
            views.made[asked_in.__name__] = self.roster  # not the entrants of these few trials
            yield views, ids

    def _read(self) -> TrialIndex:
        if self.index is None:
            raise AssertionError("a snapshot is queried before its trials are read")
        return self.index

    def read_grades(self, views: FolderViews) -> None:
        """Read where the grades of each trial are, and on which trials graders differ."""
        for folder, snapshot in zip(self.memory.folders, self.snapshots, strict=True):
            folder.read_grades(snapshot)
        self._compare_graders(views)

    def _compare_graders(self, views: FolderViews) -> None:
        index, ids = self._read(), views.table(_DISAGREEING)["trial_id"]
        self._disagreeing = [pc.is_in(index.named(part), value_set=ids).to_numpy() for part in index.parts]

    def _graders_differ(self) -> Sequence[Numbers]:
        if self._disagreeing is None:
            with self.views() as views:
                self._compare_graders(views)
        return self._disagreeing or ()


def take_live_snapshot(memory: LiveMemory) -> LiveSnapshot:
    """Take a snapshot of the folders.

    Raises:
        ConfigError: one is not a results folder.
        StoreError: one cannot be read.
    """
    return LiveSnapshot(memory=memory, snapshots=tuple(map(take_snapshot, memory.of.paths)))


def state_of(folders: Mapping[str, Path]) -> State:
    """Return a value that changes when a folder does, read without any rows; () of one that is gone."""
    return tuple(_state(path) for path in folders.values())


def _state(folder: Path) -> tuple[object, ...]:
    """Return the state of a folder and of its workers' folders."""
    try:
        return tuple(map(_state_alone, folders_of(folder)))
    except (OSError, AsyncbenchError):  # a segment was sealed a moment ago, or the folder is gone
        return () if not folder.exists() else (None,)


def _state_alone(folder: Path) -> tuple[object, ...]:
    manifest = (folder / "manifest.json").stat()
    journal = sorted((path.name, path.stat().st_size) for path in (folder / "journal").iterdir())
    return manifest.st_mtime_ns, manifest.st_size, *journal


def _among(part: TrialPart, ids: Any, wanted: Any) -> TrialPart:
    """Return a part in which only trials with one of the wanted ids count."""
    matches = pc.is_in(ids, value_set=wanted).to_numpy()
    return part._replace(counting=matches if part.counting is None else part.counting & matches)
