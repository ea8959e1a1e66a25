"""All trials of results folders in memory, as numbers, and the queries of them: each takes milliseconds."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute

from asyncbench.analysis.anatomy.counts import ExaminedAnswer
from asyncbench.errors import ConfigError
from asyncbench.records import Outcome
from asyncbench.store.id_set import Numbers, fingerprints
from asyncbench.store.schema import ENTRANT
from asyncbench.store.snapshot import Snapshot

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

KIND: Final = ("suite", "task", "variant", "representation")
_CODED: Final = (*ENTRANT, *KIND, "outcome", "problem_id", "load")
_COLUMNS: Final = ("trial_id", *_CODED, "length", "finished_at", "expected", "answer")
_TEXTS: Final = ("trial_id", "expected", "answer")
UNKNOWN: Final = -1  # a length, or a trial that is not among others

Key = tuple[str, ...]  # the values of an entrant, a kind or an outcome


class Register:
    """Values and their numbers, in the order in which they were met."""

    def __init__(self, known: Iterable[Key] = ()) -> None:
        self._numbers: dict[Key, int] = {value: number for number, value in enumerate(known)}

    def __getitem__(self, value: Key) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def __iter__(self) -> Iterator[Key]:
        return iter(self._numbers)

    def get(self, value: Key) -> int:
        """Return the number of a value; `UNKNOWN` where it was never met."""
        return self._numbers.get(value, UNKNOWN)

    def among(self, places: Mapping[Key, int]) -> Numbers:
        """Return the place of each value, by number; the last place and one more where it has none."""
        return np.array([places.get(value, len(places)) for value in self._numbers] or [0], np.int64)


class TextRegister:
    """Many texts and their numbers, in the order in which they were met."""

    def __init__(self) -> None:
        self._known = pa.array([], pa.string())

    def numbers(self, values: Any) -> Numbers:
        """Return the number of each of some texts that differ."""
        indices = pc.index_in(values, value_set=self._known)
        new = values.filter(pc.is_null(indices))
        numbers: Numbers = indices.fill_null(UNKNOWN).to_numpy(zero_copy_only=False).copy()
        numbers[numbers == UNKNOWN] = np.arange(len(self._known), len(self._known) + len(new))
        self._known = pa.concat_arrays([self._known, new])
        return numbers

    def get(self, text: str) -> int:
        """Return the number of a text; `UNKNOWN` where it was never met."""
        return int(pc.index(self._known, pa.scalar(text)).as_py())


@dataclass(slots=True)
class Registers:
    """The values that numbers in rows in memory stand for."""

    entrants: Register = field(default_factory=Register)  # with the folder first
    kinds: Register = field(default_factory=Register)
    outcomes: Register = field(default_factory=lambda: Register((outcome.value,) for outcome in Outcome))
    problems: TextRegister = field(default_factory=TextRegister)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsInMemory:
    """The trials of one part, or of a journal, column by column."""

    texts: pa.Table  # `_TEXTS`
    entrant: Numbers
    kind: Numbers
    outcome: Numbers
    problem: Numbers
    length: Numbers
    at: Numbers  # milliseconds since 1970, UTC: when the trial was finished
    counted: Numbers | None  # which rows are answers at rest, True or False; None: all

    def __len__(self) -> int:
        return len(self.at)


def rows_in_memory(rows: pa.Table, registers: Registers, label: str) -> RowsInMemory:
    """Return rows of `trials` as numbers; `label`: what their folder is called."""
    length = pc.fill_null(rows["length"], UNKNOWN)
    at_rest = pc.is_null(rows["load"])
    problem: Any = rows["problem_id"].combine_chunks()
    return RowsInMemory(
        texts=rows.select(_TEXTS),
        entrant=_numbered(rows.select(ENTRANT), registers.entrants, label),
        kind=_numbered(rows.select(KIND), registers.kinds),
        outcome=_numbered(rows.select(["outcome"]), registers.outcomes).astype(np.int8),
        problem=registers.problems.numbers(problem.dictionary)[problem.indices.to_numpy()],
        length=length.to_numpy().astype(np.int32),
        at=rows["finished_at"].cast(pa.int64()).to_numpy() // 1000,
        counted=None if pc.all(at_rest).as_py() in (True, None) else at_rest.to_numpy(),
    )


def _numbered(rows: pa.Table, register: Register, *first: str) -> Numbers:
    """Return the number of each row's values in a register."""
    together = np.zeros(len(rows), np.int64)
    columns: list[Any] = [column.combine_chunks() for column in rows.columns]
    for column in columns:
        together *= len(column.dictionary) + 1
        together += pc.fill_null(column.indices, len(column.dictionary)).to_numpy()
    which, at = _distinct(together)
    values = [column.take(pa.array(at)).to_pylist() for column in columns]
    numbers = [register[*first, *(value or "" for value in met)] for met in zip(*values, strict=True)]
    return np.array(numbers, np.int32)[which]


def _distinct(values: Numbers) -> tuple[Numbers, Numbers]:
    """Return which of the distinct values each is, and where each of these first stands."""
    if len(values) and values.min() == values.max():  # most columns of a part have but one
        return np.zeros(len(values), np.int8), np.zeros(1, np.int64)
    _, at, which = np.unique(values, return_index=True, return_inverse=True)
    return which, at


class FolderInMemory:
    """The trials of one folder; `read_trials` reads new parts."""

    def __init__(self, label: str, registers: Registers) -> None:
        self.label = label
        self._registers = registers
        self._parts: dict[Path, RowsInMemory] = {}
        self._graded: dict[Path, Numbers] = {}  # fingerprints of the ids in parts of `grades`

    def read_trials(self, snapshot: Snapshot) -> list[tuple[Path | None, RowsInMemory, Numbers | None]]:
        """Return the rows of each part, and of the journal (None), with which of them count (None: all)."""
        self._parts = {
            part: self._parts.get(part) or self._read(snapshot, part) for part in snapshot.files["trials"]
        }
        pa.default_memory_pool().release_unused()
        gone = snapshot.uncounted("trials")
        parts: list[tuple[Path | None, RowsInMemory, Numbers | None]] = [
            (part, rows, _counting(rows, gone[part])) for part, rows in self._parts.items()
        ]
        fresh = snapshot.journalled["trials"].select(_COLUMNS)
        coded = pa.table(
            {
                name: column.dictionary_encode() if name in _CODED else column
                for name, column in zip(fresh.column_names, fresh.columns, strict=True)
            }
        ).unify_dictionaries()
        rows = rows_in_memory(coded, self._registers, self.label)
        return [*parts, (None, rows, rows.counted)] if len(rows) else parts

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

    def _read(self, snapshot: Snapshot, part: Path) -> RowsInMemory:
        rows = snapshot.read_part("trials", part, _COLUMNS, coded=_CODED)
        return rows_in_memory(rows, self._registers, self.label)


def _counting(rows: RowsInMemory, gone: "pa.Array[pa.StringScalar]") -> Numbers | None:
    if not len(gone):
        return rows.counted
    first: Numbers = pc.invert(pc.is_in(rows.texts["trial_id"], value_set=gone)).to_numpy()
    return first if rows.counted is None else first & rows.counted


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


A_PAGE: Final = 50  # trials
_BITS: Final = {
    "entrant": 10,
    "kind": 10,
    "length": 16,
    "row": 28,
}  # of the number by which trials are sorted
ENDS: Final = ("first", "last")


class Words(Protocol):
    """The words of an address by their names, of which each may come several times."""

    def getall(self, name: str, default: list[str]) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialQuery:
    """Which trials are asked for; what is empty or None leaves none out."""

    entrants: tuple[int, ...] = ()  # places among the entrants of the page
    kind: tuple[int, ...] = ()  # likewise
    outcome: tuple[str, ...] = ()
    lengths: tuple[int | None, int | None] = (None, None)  # from, to
    finished: tuple[int | None, int | None] = (None, None)  # milliseconds since 1970, UTC: since, until
    error: str = ""  # the kind of error
    end: str = "first"  # of the true value, from which `position` counts
    position: int | None = None  # of a wrong digit, from 1
    question: str = ""  # the id of a problem
    text: str = ""
    disagree: bool = False  # whether graders differ
    page: int = 1

    @property
    def of_errors(self) -> bool:
        """Whether only answers that were examined can match."""
        return bool(self.error) or self.position is not None


def parsed(words: Words) -> TrialQuery:
    """Return what an address asks for.

    Raises:
        ConfigError: a word is not of its kind.
    """

    def numbers(name: str) -> tuple[int, ...]:
        try:
            return tuple(int(float(word)) for word in words.getall(name, []) if word)
        except (ValueError, OverflowError) as error:
            raise ConfigError(f"{name} must be a number") from error

    def number(name: str) -> int | None:
        return next(iter(numbers(name)), None)

    def text(name: str) -> str:
        return next(iter(words.getall(name, [])), "")

    if unknown := {*words.getall("outcome", [])} - {*map(str, Outcome)}:
        raise ConfigError(f"outcome {', '.join(sorted(unknown))}: there is none of that name")
    return TrialQuery(
        entrants=numbers("asked"),
        kind=numbers("kind"),
        outcome=tuple(words.getall("outcome", [])),
        lengths=(number("from"), number("to")),
        finished=(number("since"), number("until")),
        error=text("error"),
        end=ENDS[text("end") == "last"],
        position=number("position"),
        question=text("question"),
        text=text("text"),
        disagree=text("disagree") not in ("", "0", "false"),
        page=max(1, number("page") or 1),
    )


class TrialPart(NamedTuple):
    """The rows of a part, or of a journal."""

    label: str  # of the folder
    path: Path | None  # None: the journal
    rows: RowsInMemory
    counting: Numbers | None  # which of them count; None: all


class TrialPlace(NamedTuple):
    """The part and the row of a trial."""

    part: int
    row: int


@dataclass(slots=True, kw_only=True)
class TrialIndex:
    """All trials of one snapshot of the folders."""

    parts: Sequence[TrialPart]
    registers: Registers
    entrants: Mapping[Key, int]  # folder, run, model and condition → place on the page
    kinds: Mapping[Key, int]  # likewise
    disagreeing: Callable[[], Sequence[Numbers]]  # by part: whether graders differ on its trials
    examined: Callable[[], Sequence[ExaminedAnswer]]
    several: bool  # whether ids begin with the folder

    @property
    def trials(self) -> int:
        return sum(_size(part) for part in self.parts)

    def find(self, query: TrialQuery) -> tuple[int, list[TrialPlace]]:
        """Return how many trials a query asks for, and those of its page.

        They are sorted by entrant, kind and length. Beyond the last page comes the last one.
        """
        by_part = list(self._rows(query))
        keys = [self._keys(part, rows) for part, rows in zip(self.parts, by_part, strict=True)]
        starts = np.cumsum([0, *map(len, by_part)])
        total, key = int(starts[-1]), np.concatenate(keys) if keys else np.zeros(0, np.uint64)
        key += np.arange(total, dtype=np.uint64)
        if not total:
            return total, []
        page = min(query.page, pages_of(total))
        first, last = (page - 1) * A_PAGE, min(total, page * A_PAGE)
        bounds = sorted({first, last - 1})
        places = np.argpartition(key, bounds)[first:last]
        places = places[np.argsort(key[places])]
        of = np.searchsorted(starts, places, "right") - 1
        pairs = zip(of.tolist(), (places - starts[of]).tolist(), strict=True)
        return total, [TrialPlace(part, int(by_part[part][row])) for part, row in pairs]

    def with_id(self, trial_id: str) -> list[TrialPlace]:
        """Return the place of a trial; empty: there is none."""
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(_and(part.counting, pc.equal(self.named(part), trial_id).to_numpy()))
            if len(rows):
                return [TrialPlace(number, int(rows[0]))]
        return []

    def of_question(self, problem_id: str, most: int) -> tuple[int, list[TrialPlace]]:
        """Return how many answers to a problem there are, and at most so many: as many of each entrant."""
        by_part = list(self._rows(TrialQuery(question=problem_id)))
        places = [TrialPlace(number, int(row)) for number, rows in enumerate(by_part) for row in rows]
        if len(places) <= most:
            return len(places), places
        met = Counter[int]()  # answers of each entrant
        ranked = []
        for part, row in places:
            entrant = int(self.parts[part].rows.entrant[row])
            ranked.append((met[entrant], part, row))
            met[entrant] += 1
        return len(places), [TrialPlace(part, row) for _, part, row in sorted(ranked)[:most]]

    def named(self, part: TrialPart) -> Any:
        """Return the ids of a part's trials as views have them."""
        ids = part.rows.texts["trial_id"]
        return pc.binary_join_element_wise(part.label, ids, "/") if self.several else ids

    def _keys(self, part: TrialPart, rows: Numbers) -> Numbers:
        """Return numbers by which rows are sorted; the last bits are left free for their places."""
        key, columns = np.zeros(len(rows), np.uint64), part.rows
        for values, bits in (
            (self.registers.entrants.among(self.entrants)[columns.entrant[rows]], _BITS["entrant"]),
            (self.registers.kinds.among(self.kinds)[columns.kind[rows]], _BITS["kind"]),
            (columns.length[rows] + 1, _BITS["length"]),
        ):
            key <<= np.uint64(bits)
            key |= np.minimum(values, 2**bits - 1).astype(np.uint64)
        return key << np.uint64(_BITS["row"])

    def _rows(self, query: TrialQuery) -> Iterator[Numbers]:
        """Yield which rows of each part a query asks for."""
        known = filter(partial(_matches_query, query), self.examined() if query.of_errors else ())
        erring = pa.array([answer.trial_id for answer in known], pa.string())
        differing = self.disagreeing() if query.disagree else ()
        for number, part in enumerate(self.parts):
            wanted = part.counting
            for condition in self._conditions(part.rows, query):
                wanted = _and(wanted, condition)
            if query.disagree:
                wanted = _and(wanted, differing[number])
            if query.of_errors:
                wanted = _and(wanted, pc.is_in(self.named(part), value_set=erring).to_numpy())
            rows = np.arange(len(part.rows)) if wanted is None else np.flatnonzero(wanted)
            if query.text and len(rows):
                texts = part.rows.texts
                texts = texts if len(rows) == len(texts) else texts.take(rows)
                label = f"{part.label}/" if self.several else ""
                rows = rows[_matches(texts, query.text, label)]
            yield rows

    def _conditions(self, rows: RowsInMemory, query: TrialQuery) -> Iterator[Numbers]:
        registers = self.registers
        for places, register, known, codes in (
            (query.entrants, registers.entrants, self.entrants, rows.entrant),
            (query.kind, registers.kinds, self.kinds, rows.kind),
        ):
            if places:
                yield np.isin(register.among(known), places)[codes]
        if query.outcome:
            numbers = [registers.outcomes.get((name,)) for name in query.outcome]
            yield np.isin(rows.outcome, numbers)
        for (low, high), values in ((query.lengths, rows.length), (query.finished, rows.at)):
            if low is not None or (high is not None and values is rows.length):
                yield values >= max(0, low or 0)  # where there is a limit, unknown lengths are beyond it
            if high is not None:
                yield values <= high
        if query.question:
            yield rows.problem == registers.problems.get(query.question)


def pages_of(trials: int) -> int:
    """Return how many pages so many trials fill."""
    return max(1, -(-trials // A_PAGE))


def _matches_query(query: TrialQuery, answer: ExaminedAnswer) -> bool:
    at = query.position
    wrong = answer.wrong_from_left if query.end == "first" else answer.wrong_from_right
    return query.error in ("", answer.kind) and (at is None or at in wrong)


def _size(part: TrialPart) -> int:
    return len(part.rows) if part.counting is None else int(part.counting.sum())


def _and(a: Numbers | None, b: Numbers) -> Numbers:
    return b if a is None else a & b


def _matches(texts: pa.Table, text: str, label: str) -> Numbers:
    """Return whether a row's id begins with a text, or another of its texts holds it in any case.

    `label`: what ids begin with on the page, and not here.
    """
    matches: Numbers = pc.starts_with(texts["trial_id"], text.removeprefix(label)).to_numpy()
    lowered = text.lower()
    for name in ("expected", "answer"):
        column = texts[name] if lowered == text.upper() else pc.utf8_lower(texts[name])
        matches = matches | pc.fill_null(pc.match_substring(column, lowered), False).to_numpy()
    return matches
