"""All trials of results folders in memory, and the queries of them: each takes half a second at most."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute

from asyncbench.errors import ConfigError
from asyncbench.records import Outcome
from asyncbench.store.id_set import Numbers, fingerprints
from asyncbench.store.parts import with_codes
from asyncbench.store.schema import ENTRANT
from asyncbench.store.snapshot import Snapshot

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

KIND: Final = ("suite", "task", "variant", "representation")
_CODED: Final = (*ENTRANT, *KIND, "outcome", "problem_id", "load")
_COLUMNS: Final = ("trial_id", *_CODED, "length", "finished_at", "expected", "answer")
_KEPT: Final = ("trial_id", "outcome", "problem_id", "length", "expected", "answer")
_BETWEEN: Final = "\0"  # the values of a key

Key = tuple[str, ...]  # the values of an entrant or of a kind


def rows_in_memory(rows: pa.Table) -> pa.Table:
    """Return the answers at rest of a part: each with its row there, and its entrant and kind as keys."""
    columns: dict[str, Any] = {name: rows[name] for name in _KEPT}
    for name, values in (("entrant_key", ENTRANT), ("kind_key", KIND)):
        texts = [pc.fill_null(rows[value].cast(pa.string()), "") for value in values]
        columns[name] = pc.binary_join_element_wise(*texts, _BETWEEN).dictionary_encode()
    columns["finished"] = pc.divide(
        rows["finished_at"].cast(pa.int64()), 1000
    )  # milliseconds since 1970, UTC
    columns["row"] = pa.array(np.arange(len(rows)))
    return pa.table(columns).filter(pc.is_null(rows["load"]))


def places_of(keys: Any, place_of: Callable[[Key], int | None]) -> Any:  # Any: columns
    """Return the place on the page of the entrants or kinds of some rows; null: it has none."""
    codes = keys.combine_chunks()
    places = [place_of(tuple(key.split(_BETWEEN))) for key in codes.dictionary.to_pylist()]
    return pa.array(places, pa.int32()).take(codes.indices)


class FolderInMemory:
    """The trials of one folder; `read_trials` reads new parts."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._parts: dict[Path, pa.Table] = {}
        self._graded: dict[Path, Numbers] = {}  # fingerprints of the ids in parts of `grades`

    def read_trials(self, snapshot: Snapshot) -> Iterator[tuple[Path | None, pa.Table]]:
        """Yield the rows of each part that count, then those of the journal (None)."""
        self._parts = {
            part: self._parts.get(part) or self._read(snapshot, part) for part in snapshot.files["trials"]
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

    def _read(self, snapshot: Snapshot, part: Path) -> pa.Table:
        return rows_in_memory(snapshot.read_part("trials", part, _COLUMNS, coded=_CODED))


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

    def find(
        self, query: TrialQuery, order: str = IN_ORDER, most: int = A_PAGE
    ) -> tuple[int, list[dict[str, Any]]]:
        """Return how many trials a query asks for, and where those of its page are, at most so many.

        Beyond the last page comes the last one.
        """
        values = {
            field.name: getattr(query, field.name)
            for field in fields(query)
            if field.name in _CONDITIONS and getattr(query, field.name) not in (field.default, [])
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
