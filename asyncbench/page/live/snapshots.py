"""Snapshots of results folders, and the queries of their trials: each takes half a second at most.

All trials are in memory. A server shows them until it reads the folders anew.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute

from asyncbench.analysis.anatomy.counts import ExaminedAnswer
from asyncbench.analysis.choosing import Chosen, Names
from asyncbench.analysis.counting import FolderViews, open_views
from asyncbench.analysis.entrants import Asked
from asyncbench.errors import AsyncbenchError, ConfigError
from asyncbench.page.answers import summaries, whole_trials
from asyncbench.page.blocks import Values
from asyncbench.records import Outcome
from asyncbench.store.id_set import Numbers, fingerprints
from asyncbench.store.manifest import folders_of
from asyncbench.store.parts import with_codes
from asyncbench.store.reading import narrowed, sibling_parts, take_snapshot
from asyncbench.store.schema import ENTRANT
from asyncbench.store.snapshot import Snapshot

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

# ── trials in memory ─────────────────────────────────────────────────────────────────────────────


KIND: Final = ("suite", "task", "variant", "representation")
_CODED: Final = (*ENTRANT, *KIND, "outcome", "problem_id", "load")
_COLUMNS: Final = ("trial_id", *_CODED, "length", "finished_at", "expected", "answer")
_KEPT: Final = ("trial_id", "outcome", "problem_id", "length", "expected", "answer")
_BETWEEN: Final = "&"  # the values of a key, which are quoted as those of an address are


def rows_in_memory(rows: pa.Table) -> pa.Table:
    """Return the answers at rest of a part: each with its row there, and its entrant and kind as keys."""
    columns: dict[str, Any] = {name: rows[name] for name in _KEPT}
    for name, values in (("asked_key", ENTRANT), ("kind_key", KIND)):
        texts = [_quoted(rows[value]) for value in values]
        columns[name] = pc.binary_join_element_wise(*texts, _BETWEEN).dictionary_encode()
    # milliseconds since 1970, UTC
    columns["finished"] = pc.divide(rows["finished_at"].cast(pa.int64()), 1000)
    columns["row"] = pa.array(np.arange(len(rows)))
    return pa.table(columns).filter(pc.is_null(rows["load"]))


def _quoted(texts: Any) -> Any:  # Any: columns
    """Return texts in which `unquote` finds what they were; names may hold any sign."""
    plain = pc.replace_substring(pc.fill_null(texts.cast(pa.string()), ""), "%", "%25")
    return pc.replace_substring(plain, _BETWEEN, "%26")


def on_page(rows: pa.Table, views: FolderViews, roster: Asked, label: str, part: int) -> pa.Table:
    """Return the rows of a part of a folder with their ids, entrants and kinds as the page has them."""

    def entrant(run: str, model: str, condition: str) -> int | None:
        return roster.entrant_places.get((run, views.called(label, model), condition))

    def kind(suite: str, task: str, variant: str, representation: str) -> int | None:
        return roster.kind_places.get((suite, task, variant, representation))

    ids = rows["trial_id"]
    shown_ids = pc.binary_join_element_wise(label, ids, "/") if views.chosen.several else ids
    rows = rows.append_column("id", shown_ids)
    rows = rows.append_column("part", pa.repeat(part, len(rows)))
    for name, place_of in (("asked", entrant), ("kind", kind)):
        codes: Any = rows[f"{name}_key"].combine_chunks()
        places = [place_of(*map(unquote, key.split(_BETWEEN))) for key in codes.dictionary.to_pylist()]
        rows = rows.append_column(name, pa.array(places, pa.int32()).take(codes.indices))
    return rows.drop_columns(["asked_key", "kind_key"])


class FolderInMemory:
    """The trials of one folder; `read_trials` reads new parts."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._parts: dict[Path, pa.Table] = {}
        self._graded: dict[Path, Numbers] = {}  # fingerprints of the ids in parts of `grades`

    def read_trials(self, snapshot: Snapshot) -> Iterator[tuple[Path | None, pa.Table]]:
        """Yield the rows of each part that count, then those of the journal (None)."""
        self._parts = {
            part: self._parts.get(part)
            or rows_in_memory(snapshot.read_part("trials", part, _COLUMNS, coded=_CODED))
            for part in snapshot.files["trials"]
        }
        pa.default_memory_pool().release_unused()
        gone = snapshot.uncounted("trials")
        for part, rows in self._parts.items():
            counting = pc.invert(pc.is_in(rows["trial_id"], value_set=gone[part]))
            yield part, rows if pc.all(counting).as_py() else rows.filter(counting)
        fresh = snapshot.journalled["trials"].select(_COLUMNS)
        yield None, rows_in_memory(fresh.cast(with_codes(fresh.schema, _CODED)))

    def read_grades(self, snapshot: Snapshot) -> None:
        """Read which trials each part of `grades` holds, so that one trial needs no search."""
        for part in snapshot.files["grades"]:
            if part not in self._graded:
                ids = snapshot.read_part("grades", part, ["trial_id"], coded=())["trial_id"]
                self._graded[part] = fingerprints(ids)
        self._graded = {part: self._graded[part] for part in snapshot.files["grades"]}
        pa.default_memory_pool().release_unused()

    def grades_of(self, parts: Iterable[Path], ids: Sequence[str]) -> dict[Path, Sequence[int]] | None:
        """Return the rows of trials in parts of `grades`, and maybe others; None: nobody knows yet."""
        wanted, by_part = fingerprints(pa.chunked_array([ids], pa.string())), dict[Path, Sequence[int]]()
        for part in parts:
            if part not in self._graded:
                return None
            rows: list[int] = np.flatnonzero(np.isin(self._graded[part], wanted)).tolist()
            by_part |= {part: rows} if rows else {}
        return by_part


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


A_PAGE: Final = 50  # trials
LARGEST: Final = 2**62  # number that a query compares with


class Words(Protocol):
    """The words of an address by their names, of which each may come several times."""

    def getall(self, name: str, default: list[str]) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialQuery:
    """Which trials are asked for; what has its default leaves none out."""

    trial_id: str = ""  # as views have it
    entrants: Sequence[int] = ()  # places among the entrants of the page
    kind: Sequence[int] = ()  # likewise
    outcome: Sequence[str] = ()
    shortest: int | None = None
    longest: int | None = None
    since: int | None = None  # milliseconds since 1970, UTC: when trials were finished
    until: int | None = None
    error: str = ""  # the kind of error
    from_first: int | None = None  # place of a wrong digit, 1 is the first of the true value
    from_last: int | None = None  # likewise, 1 is the last
    question: str = ""  # the id of a problem
    text: str = ""
    disagree: bool = False  # whether graders differ
    page: int = 1

    @property
    def of_errors(self) -> bool:
        """Whether only answers that were examined can match."""
        return bool(self.error) or (self.from_first, self.from_last) != (None, None)


# The condition of each field of a query. An unknown length is beyond any limit. `text` begins an id, where
# several folders have one with or without the folder, or is in another text in any case.
_CONDITIONS: Final[Mapping[str, str]] = {
    "trial_id": "id = $trial_id",
    "entrants": "list_contains($entrants, asked)",
    "kind": "list_contains($kind, kind)",
    "outcome": "list_contains($outcome, outcome)",
    "shortest": "length >= $shortest",
    "longest": "length <= $longest",
    "since": "finished >= $since",
    "until": "finished <= $until",
    "error": "id IN (SELECT trial_id FROM examined WHERE kind = $error)",
    "from_first": "id IN (SELECT trial_id FROM examined WHERE list_contains(wrong_from_left, $from_first))",
    "from_last": "id IN (SELECT trial_id FROM examined WHERE list_contains(wrong_from_right, $from_last))",
    "question": "problem_id = $question",
    "text": """(starts_with(trial_id, $text) OR contains(lower(expected), lower($text))
        OR contains(lower(answer), lower($text))
        OR id <> trial_id AND starts_with(id, $text) AND starts_with($text, left(id, -length(trial_id))))""",
    "disagree": "$disagree AND id IN (SELECT trial_id FROM disagreeing)",
}
IN_ORDER: Final = "asked, kind, length NULLS FIRST, nth"
OF_EACH_IN_TURN: Final = "row_number() OVER (PARTITION BY asked ORDER BY nth), nth"


def parsed(words: Words) -> TrialQuery:
    """Return what an address asks for.

    Raises:
        ConfigError: a word is not of its kind.
    """

    def numbers(name: str) -> list[int]:
        try:
            values = [int(float(word)) for word in words.getall(name, []) if word]
        except (ValueError, OverflowError) as error:
            raise ConfigError(f"{name} must be a number") from error
        return [max(-LARGEST, min(LARGEST, value)) for value in values]

    def number(name: str) -> int | None:
        return next(iter(numbers(name)), None)

    def text(name: str) -> str:
        return next(iter(words.getall(name, [])), "")

    if unknown := {*words.getall("outcome", [])} - {*map(str, Outcome)}:
        raise ConfigError(f"outcome {', '.join(sorted(unknown))}: there is none of that name")
    position, last = number("position"), text("end") == "last"
    return TrialQuery(
        entrants=numbers("asked"),
        kind=numbers("kind"),
        outcome=words.getall("outcome", []),
        shortest=number("from"),
        longest=number("to"),
        since=number("since"),
        until=number("until"),
        error=text("error"),
        from_first=None if last else position,
        from_last=position if last else None,
        question=text("question"),
        text=text("text"),
        disagree=text("disagree") not in ("", "0", "false"),
        page=max(1, number("page") or 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialIndex:
    """All trials of one snapshot of the folders."""

    parts: Sequence[tuple[str, Path | None]]  # folder, and path; None: its journal
    tables: dict[str, pa.Table]  # `trials`; `examined` and `disagreeing` once they are known

    def find(self, query: TrialQuery, order: str = IN_ORDER, most: int = A_PAGE) -> tuple[int, list[Values]]:
        """Return how many trials a query asks for, and where those of its page are, at most so many.

        Beyond the last page comes the last one.
        """
        values = {
            each.name: getattr(query, each.name)
            for each in fields(query)
            if each.name in _CONDITIONS and getattr(query, each.name) not in (each.default, [])
        }
        chosen = f"FROM trials WHERE {' AND '.join(map(_CONDITIONS.__getitem__, values)) or 'true'}"
        (total,) = self._query(f"SELECT count(*) {chosen}", values)
        first = A_PAGE * (min(query.page, pages_of(total)) - 1)
        page = f"SELECT nth {chosen} ORDER BY {order} LIMIT {most} OFFSET {first}"
        rows = pa.array(self._query(page, values), pa.int64())
        places = self.tables["trials"].select(["part", "row", "trial_id", "id"])
        return total, places.take(rows).to_pylist()

    def _query(self, query: str, values: Mapping[str, object]) -> list[int]:
        import duckdb

        with duckdb.connect(":memory:") as connection:
            for name, rows in dict(self.tables).items():  # a copy: what is counted meanwhile is added
                connection.register(name, rows)
            return [number for (number,) in connection.execute(query, values).fetchall()]


def pages_of(trials: int) -> int:
    """Return how many pages so many trials fill."""
    return max(1, -(-trials // A_PAGE))


# ── snapshots ────────────────────────────────────────────────────────────────────────────────────


State = tuple[object, ...]  # of folders: differs where what they hold does

MOST_OF_A_QUESTION: Final = 200  # answers that are shown side by side
_DISAGREEING: Final = """
SELECT DISTINCT trial_id
FROM grades JOIN (SELECT trial_id, outcome AS decided FROM trials) USING (trial_id)
WHERE NOT headline AND outcome <> decided
"""
_PLACES: Final = pa.list_(pa.int64())
_EXAMINED: Final = pa.schema(
    {"trial_id": pa.string(), "kind": pa.string(), "wrong_from_left": _PLACES, "wrong_from_right": _PLACES}
)
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
        self.folders = [FolderInMemory(label) for label in of.labels]


@dataclass(slots=True, kw_only=True, eq=False)
class LiveSnapshot:
    """One moment of the folders, and the answers to queries of its trials."""

    memory: LiveMemory
    snapshots: tuple[Snapshot, ...]
    names: Names = field(default_factory=dict)
    roster: Asked | None = None  # None: not counted yet
    index: TrialIndex | None = None  # likewise

    def views(self) -> AbstractContextManager[FolderViews]:
        """Open the views of this moment, for the thread that asks."""
        return open_views(self.memory.of, *self.snapshots, keeps=True)

    def read_index(self, views: FolderViews, roster: Asked) -> None:
        """Read the trials that are new since the last snapshot."""
        self.names = views.names
        self.roster = roster
        parts, tables = list[tuple[str, Path | None]](), list[pa.Table]()
        for folder, snapshot in zip(self.memory.folders, self.snapshots, strict=True):
            for path, rows in folder.read_trials(snapshot):
                tables.append(on_page(rows, views, roster, folder.label, len(parts)))
                parts.append((folder.label, path))
        trials = pa.concat_tables(tables)
        if views.chosen.filtered:
            wanted = views.table("SELECT trial_id FROM trials")["trial_id"]
            trials = trials.filter(pc.is_in(trials["id"], value_set=wanted))
        trials = trials.append_column("nth", pa.array(np.arange(len(trials))))
        self.index = TrialIndex(parts=parts, tables={"trials": trials})

    def trials(self, query: TrialQuery) -> Values:
        """Return a page of the trials that a query asks for, as lines of a list.

        Raises:
            NotCountedError: nobody knows yet of what kind errors are.
        """
        index = self._read()
        if query.of_errors and "examined" not in index.tables:
            raise NotCountedError("wrong answers are being examined for their kind of error")
        if query.disagree and "disagreeing" not in index.tables:
            with self.views() as views:
                self._compare_graders(views)
        total, places = index.find(query)
        notes = [SEARCHED_WORDS] * bool(query.text)
        if query.of_errors:
            notes.append(EXAMINED_WORDS.format(len(index.tables["examined"])))
        with self.open_few(places) as (views, ids):
            rows = summaries(views, ids)
        pages = pages_of(total)
        page = min(query.page, pages)
        listing = {
            "found": total,
            "of": len(index.tables["trials"]),
            "page": page,
            "pages": pages,
            "rows": rows,
        }
        return listing | ({"note": " ".join(notes)} if notes else {})

    def trial(self, trial_id: str) -> Values | None:
        """Return one trial whole; None: there is none of this id."""
        _, places = self._read().find(TrialQuery(trial_id=trial_id))
        with self.open_few(places) as (views, ids):
            return next(iter(whole_trials(views, ids)), None)

    def question(self, problem_id: str) -> Values:
        """Return answers to one problem whole, in the order of the page; `of`: how many there are."""
        query = TrialQuery(question=problem_id)
        total, places = self._read().find(query, OF_EACH_IN_TURN, MOST_OF_A_QUESTION)
        with self.open_few(places) as (views, ids):
            trials = whole_trials(views, ids)
        trials.sort(key=lambda trial: (trial["asked"] or 0, trial["repeat"], trial["id"]))
        return {"of": total, "trials": trials}

    @contextmanager
    def open_few(self, places: Sequence[Values]) -> Iterator[tuple[FolderViews, list[str]]]:
        """Open views of a few trials, read from their rows alone; yields the views and the ids."""
        of, index = self.memory.of, self._read()
        own: dict[str, list[str]] = {label: [] for label in of.labels}
        rows: dict[str, dict[Path, list[int]]] = {label: {} for label in of.labels}
        for place in places:
            label, path = index.parts[place["part"]]
            own[label].append(place["trial_id"])
            if path is not None:
                rows[label].setdefault(path, []).append(place["row"])
        few = [
            narrowed(snapshot, own[folder.label], trials, grades)
            for folder, snapshot in zip(self.memory.folders, self.snapshots, strict=True)
            for trials in [{path: sorted(numbers) for path, numbers in rows[folder.label].items()}]
            for grades in [folder.grades_of(sibling_parts(snapshot, "grades", trials), own[folder.label])]
        ]
        with open_views(Chosen(paths=of.paths), *few, known=self.names) as views:
            views.once("asked", lambda: self.roster)  # not the entrants of these few trials
            yield views, [place["id"] for place in places]

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
        self._read().tables["disagreeing"] = views.table(_DISAGREEING)

    def read_examined(self, answers: Sequence[ExaminedAnswer]) -> None:
        """Take over which wrong answers were examined, and what is wrong with each."""
        rows = [answer._asdict() for answer in answers]
        self._read().tables["examined"] = pa.Table.from_pylist(rows, _EXAMINED)


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
