"""Results folders at one moment: what a server counts and shows until it looks again."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow.compute

from asyncbench.analysis.anatomy.counts import ExaminedAnswer
from asyncbench.analysis.choosing import Chosen, Names
from asyncbench.analysis.counting import FolderViews, open_views
from asyncbench.analysis.entrants import Asked
from asyncbench.errors import AsyncbenchError
from asyncbench.page.answers import summaries, whole_trials
from asyncbench.page.live.index import FolderInMemory, Registers
from asyncbench.page.live.queries import HeldPart, HeldPlace, TrialIndex, TrialQuery, pages_of
from asyncbench.store.id_set import Numbers
from asyncbench.store.manifest import folders_of
from asyncbench.store.reading import beside, narrowed, take_snapshot
from asyncbench.store.snapshot import Snapshot

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

Values = dict[str, Any]  # Any: whatever JSON can hold
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
    """What was asked is not counted yet."""


class Holding:
    """What stays in memory from look to look."""

    def __init__(self, of: Chosen) -> None:
        self.of = of
        self.registers = Registers()
        self.folders = [FolderInMemory(label, self.registers) for label in of.labels]


@dataclass(slots=True, kw_only=True, eq=False)
class LiveSnapshot:
    """One moment of the folders, and what is asked of it."""

    holding: Holding
    snapshots: tuple[Snapshot, ...]
    names: Names = field(default_factory=dict)
    asked: Asked | None = None  # None: not counted yet
    index: TrialIndex | None = None  # likewise
    examined: Sequence[ExaminedAnswer] | None = None  # None: not counted yet
    _disagreeing: Sequence[Numbers] | None = None  # by part; None: not read yet

    @contextmanager
    def views(self) -> Iterator[FolderViews]:
        """Open the views of this moment, for the thread that asks."""
        with open_views(self.holding.of, *self.snapshots) as views:
            yield views

    def read_index(self, views: FolderViews, asked: Asked) -> None:
        """Read the trials, those that are new since the look before."""
        self.names = views.names
        self.asked = asked
        wanted = views.table("SELECT trial_id FROM trials")["trial_id"] if views.chosen.filtered else None
        index = TrialIndex(
            parts=(),
            registers=self.holding.registers,
            entrants={},
            kinds={kind.key: place for place, kind in enumerate(asked.kinds)},
            disagreeing=self._graders_differ,
            examined=lambda: self.examined or (),
            several=views.chosen.several,
        )
        held = [
            HeldPart(folder.label, *part)
            for folder, seen in zip(self.holding.folders, self.snapshots, strict=True)
            for part in folder.look(seen)
        ]
        index.parts = held if wanted is None else [_among(part, index.named(part), wanted) for part in held]
        index.entrants = {
            key: place
            for key in self.holding.registers.entrants
            for label, run, model, condition in [key]
            for place in [asked.entrant_places.get((run, views.called(label, model), condition))]
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
        found, places = index.found(query)
        notes = [SEARCHED_WORDS] * bool(query.text)
        notes += [EXAMINED_WORDS.format(len(self.examined or ()))] * query.of_errors
        with self.few(places) as (views, ids):
            rows = summaries(views, ids)
        pages = pages_of(found)
        page = min(query.page, pages)
        told = {"found": found, "of": index.trials, "page": page, "pages": pages, "rows": rows}
        return told | ({"note": " ".join(notes)} if notes else {})

    def trial(self, trial_id: str) -> Values | None:
        """Return one trial whole; None: there is none of this id."""
        with self.few(self._read().with_id(trial_id)) as (views, ids):
            return next(iter(whole_trials(views, ids)), None)

    def question(self, problem_id: str) -> Values:
        """Return answers to one problem whole, in the order of the page; `of`: how many there are."""
        found, places = self._read().of_question(problem_id, MOST_OF_A_QUESTION)
        with self.few(places) as (views, ids):
            trials = whole_trials(views, ids)
        trials.sort(key=lambda trial: (trial["asked"] or 0, trial["repeat"], trial["id"]))
        return {"of": found, "trials": trials}

    @contextmanager
    def few(self, places: Sequence[HeldPlace]) -> Iterator[tuple[FolderViews, list[str]]]:
        """Open views of a few trials, which are read from where they stand, and return their ids."""
        of, index = self.holding.of, self._read()
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
            narrowed(seen, own[held.label], trials, grades)
            for held, seen in zip(self.holding.folders, self.snapshots, strict=True)
            for trials in [{path: sorted(found) for path, found in rows[held.label].items()}]
            for grades in [held.grades_of(beside(seen, "grades", trials), own[held.label])]
        ]
        with open_views(Chosen(paths=of.paths), *few, known=self.names) as views:
            views.once("asked", lambda: self.asked)  # not those of the few
            yield views, ids

    def _read(self) -> TrialIndex:
        if self.index is None:
            raise AssertionError("a look is asked before its trials are read")
        return self.index

    def look_at_grades(self, views: FolderViews) -> None:
        """Learn where the grades of each trial stand, and on which trials graders differ."""
        for folder, seen in zip(self.holding.folders, self.snapshots, strict=True):
            folder.look_at_grades(seen)
        self._compare_graders(views)

    def _compare_graders(self, views: FolderViews) -> None:
        index, ids = self._read(), views.table(_DISAGREEING)["trial_id"]
        self._disagreeing = [pc.is_in(index.named(part), value_set=ids).to_numpy() for part in index.parts]

    def _graders_differ(self) -> Sequence[Numbers]:
        if self._disagreeing is None:
            with self.views() as views:
                self._compare_graders(views)
        return self._disagreeing or ()


def read_live(holding: Holding) -> LiveSnapshot:
    """Return a look at the folders.

    Raises:
        ConfigError: one is not a results folder.
        StoreError: one cannot be read.
    """
    return LiveSnapshot(holding=holding, snapshots=tuple(map(take_snapshot, holding.of.paths)))


def state_of(folders: Mapping[str, Path]) -> State:
    """Return what changes when a folder does, without reading anything; () of one that is gone."""
    return tuple(_state(path) for path in folders.values())


def _state(folder: Path) -> tuple[object, ...]:
    """Return it of a folder, and of those of its workers."""
    try:
        return tuple(map(_state_alone, folders_of(folder)))
    except (OSError, AsyncbenchError):  # a segment was sealed a moment ago, or the folder is gone
        return () if not folder.exists() else (None,)


def _state_alone(folder: Path) -> tuple[object, ...]:
    manifest = (folder / "manifest.json").stat()
    journal = sorted((path.name, path.stat().st_size) for path in (folder / "journal").iterdir())
    return manifest.st_mtime_ns, manifest.st_size, *journal


def _among(part: HeldPart, ids: Any, wanted: Any) -> HeldPart:
    """Return a part of which only trials that are among some ids count."""
    found = pc.is_in(ids, value_set=wanted).to_numpy()
    return part._replace(counting=found if part.counting is None else part.counting & found)
