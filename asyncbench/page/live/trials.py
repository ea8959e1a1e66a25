"""All trials of results folders in memory, as numbers, and the queries of them: each takes milliseconds.

A trial takes some 40 bytes: its id and its texts stay in the folder until they are asked for.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute
from multidict import MultiMapping

from asyncbench.analysis.anatomy.counts import ExaminedAnswer
from asyncbench.errors import ConfigError
from asyncbench.records import Outcome
from asyncbench.store.id_set import IdColumn, Numbers, fingerprints, firsts
from asyncbench.store.parts import with_codes
from asyncbench.store.reading import sibling_parts
from asyncbench.store.schema import ENTRANT
from asyncbench.store.snapshot import Snapshot

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

KIND: Final = ("suite", "task", "variant", "representation")
_CODED: Final = (*ENTRANT, *KIND, "outcome")
_COLUMNS: Final = ("trial_id", *_CODED, "problem_id", "load", "length", "finished_at")
_GRADES: Final = ("trial_id", "headline", "outcome")
UNKNOWN: Final = -1  # a length
_DIGITS: Final = 8  # of an id, that stand in its number
_HEXADECIMAL: Final = np.isin(np.arange(256), np.frombuffer(b"0123456789abcdef", np.uint8))  # by letter
_HALF: Final = np.uint64(2**32 - 1)  # of a number
_RIGHT: Final = Outcome.CORRECT.value
WRONG_FIRST: Final = ("wrong", "no_answer", "truncated", "refused", "failed", _RIGHT)

Key = tuple[str, ...]  # the values of an entrant, a kind or an outcome


Register = defaultdict[Key, int]  # values and their numbers, in the order in which they were met


def register(known: Iterable[Key] = ()) -> Register:
    """Return a register, in which a value that is asked for has a number."""
    values = Register(None, {value: number for number, value in enumerate(known)})
    values.default_factory = values.__len__
    return values


@dataclass(slots=True)
class Registers:
    """The values that numbers in rows in memory stand for."""

    entrants: Register = field(default_factory=register)  # with the folder first
    kinds: Register = field(default_factory=register)
    outcomes: Register = field(default_factory=lambda: register((outcome.value,) for outcome in Outcome))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsInMemory:
    """The trials of one part, or of a journal, column by column."""

    entrant: Numbers
    kind: Numbers
    outcome: Numbers
    length: Numbers
    since: int  # milliseconds since 1970, UTC: when the first of the trials was finished
    at: Numbers  # milliseconds from then on: when each was
    trial: Numbers  # of `id_numbers`
    problem: Numbers  # fingerprints of ids
    hexadecimal: bool  # whether all ids begin as ours do
    at_rest: Numbers  # True or False: whether it is no answer to a load
    differs: Numbers  # likewise: whether graders differ; False until their grades are read


def rows_in_memory(rows: pa.Table, registers: Registers, label: str) -> RowsInMemory:
    """Return rows of `trials` as numbers; `label`: what their folder is called."""
    at = rows["finished_at"].cast(pa.int64()).to_numpy() // 1000
    since, ids = int(at.min()) if len(at) else 0, rows["trial_id"]
    return RowsInMemory(
        entrant=_numbered(rows.select(ENTRANT), registers.entrants, label),
        kind=_numbered(rows.select(KIND), registers.kinds),
        outcome=_numbered(rows.select(["outcome"]), registers.outcomes).astype(np.int8),
        length=_narrow(pc.fill_null(rows["length"], UNKNOWN).to_numpy()),
        since=since,
        at=_narrow(at - since),
        trial=id_numbers(ids),
        problem=fingerprints(rows["problem_id"]),
        hexadecimal=bool(_HEXADECIMAL[_first_letters(ids)].all()),
        at_rest=pc.is_null(rows["load"]).to_numpy(),
        differs=np.zeros(len(rows), bool),
    )


def _narrow(values: Numbers) -> Numbers:
    """Return whole numbers in the smallest type that holds them."""
    ends = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    return values.astype(np.promote_types(*map(np.min_scalar_type, ends)))


def id_numbers(ids: IdColumn) -> Numbers:
    """Return a number for each id: its first digits, so that it ascends as the ids do; then a fingerprint."""
    letters = _first_letters(ids)
    digits = (letters & 15) + 9 * (letters >> 6) & 15
    octets: Numbers = np.ascontiguousarray(digits[:, ::2] << 4 | digits[:, 1::2])
    # The upper half of a fingerprint is of all letters; the lower one is not.
    return octets.view(">u4")[:, 0].astype(np.uint64) << 32 | fingerprints(ids) >> 32


def _first_letters(ids: IdColumn) -> Numbers:
    """Return the first `_DIGITS` letters of ids, with zeros behind those of a short one: a row for each."""
    cut: Any = pc.binary_slice(ids.cast(pa.binary()), 0, _DIGITS)
    if pc.min(pc.binary_length(cut)).as_py() != _DIGITS:
        cut = pc.binary_slice(pc.binary_join_element_wise(cut, bytes(_DIGITS), b""), 0, _DIGITS)
    letters: Any = cut.combine_chunks().cast(pa.binary(_DIGITS))
    return np.frombuffer(letters.buffers()[1], np.uint8, len(ids) * _DIGITS).reshape(-1, _DIGITS)


def _numbered(rows: pa.Table, register: Register, *first: str) -> Numbers:
    """Return the number of each row's values in a register."""
    together = np.zeros(len(rows), np.int64)
    columns: list[Any] = [column.combine_chunks() for column in rows.columns]
    for column in columns:
        together *= len(column.dictionary) + 1
        together += pc.fill_null(column.indices, len(column.dictionary)).to_numpy()
    codes: Any = pa.array(together).dictionary_encode()
    which, at = codes.indices.to_numpy(), np.zeros(len(codes.dictionary), np.int64)
    at[which] = np.arange(len(which))
    values = [column.take(pa.array(at)).to_pylist() for column in columns]
    numbers = [register[*first, *(value or "" for value in met)] for met in zip(*values, strict=True)]
    every: Numbers = np.array(numbers, np.int16)[which]
    return every


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPart:
    """The rows of a part, or of a journal, in one snapshot."""

    folder: "FolderInMemory"
    snapshot: Snapshot
    path: Path | None  # None: the journal
    rows: RowsInMemory
    counting: Numbers  # True or False: whether a row counts

    def ids(self, rows: Sequence[int]) -> list[Any]:
        """Return the ids of some rows, ascending."""
        if self.path is None:
            table = self.snapshot.journalled["trials"].take(rows)
        else:
            table = self.snapshot.read_part("trials", self.path, ["trial_id"], places=rows)
        return table["trial_id"].to_pylist()

    def with_id(self, text: str) -> Numbers:
        """Return whether a row's id begins with a text."""
        text = text.removeprefix(self.folder.prefix)
        sure = self.rows.hexadecimal
        if sure and not all(_HEXADECIMAL[letter] for letter in text.encode()):
            return np.zeros(len(self.counting), bool)
        least = int(known_ids([text])[0] & ~_HALF)
        most = least + (1 << 4 * (16 - min(len(text.encode()), _DIGITS))) - 1
        matches: Numbers = (self.rows.trial >= least) & (self.rows.trial <= most)
        rows = np.flatnonzero(matches)
        if len(rows) and not (sure and len(text) <= _DIGITS):
            matches[rows] = [name.startswith(text) for name in self.ids(rows.tolist())]
        return matches


@dataclass(frozen=True, slots=True)
class GradedTrials:
    """The trials of a part of `grades`, and where they begin: the grades of one mostly stand together."""

    halves: Numbers  # of the numbers of trials
    starts: Numbers  # rows, and the end of the last one

    def rows_of(self, halves: Numbers) -> list[int]:
        """Return the rows of some trials, and maybe of others."""
        at = np.flatnonzero(np.isin(self.halves, halves))
        ends = zip(self.starts[at].tolist(), self.starts[at + 1].tolist(), strict=True)
        return [row for start, end in ends for row in range(start, end)]


def graded_trials(ids: Numbers) -> GradedTrials:
    """Return where trials begin, given the number of the trial of each row."""
    first = np.flatnonzero(firsts(ids))
    return GradedTrials(ids[first].astype(np.uint32), np.append(first, len(ids)).astype(np.int32))


class FolderInMemory:
    """The trials of one folder; `read_trials` reads new parts."""

    def __init__(self, label: str, prefix: str, registers: Registers) -> None:
        self.label = label
        self.prefix = prefix  # of ids in views
        self._registers = registers
        self._parts: dict[Path, RowsInMemory] = {}
        self._graded: dict[Path, GradedTrials] = {}  # by part of `grades`

    def read_trials(self, snapshot: Snapshot) -> list[TrialPart]:
        """Return the rows of each part, and of the journal, with which of them count."""
        if not self._graded.keys() <= {*snapshot.files["grades"]}:  # others take their places
            self._graded, self._parts = {}, {}
        rows = {
            path: self._parts.get(path) or self._read(snapshot, path) for path in snapshot.files["trials"]
        }
        self._parts = rows
        gone = snapshot.uncounted("trials")
        fresh = rows_in_memory(_coded(snapshot, "trials", _COLUMNS), self._registers, self.label)
        return [
            TrialPart(
                folder=self,
                snapshot=snapshot,
                path=path,
                rows=its,
                counting=_without(its, gone[path] if path else ()),
            )
            for path, its in [*rows.items(), (None, fresh)]
        ]

    def _read(self, snapshot: Snapshot, part: Path) -> RowsInMemory:
        pa.default_memory_pool().release_unused()
        read = snapshot.read_part("trials", part, _COLUMNS, coded=_CODED)
        return rows_in_memory(read, self._registers, self.label)

    def known(self, ids: Any) -> Numbers:
        """Return the numbers, ascending, of those ids of the views that may be of this folder."""
        ids = pa.array(ids, pa.string())
        own = ids.filter(pc.starts_with(ids, self.prefix))
        return known_ids(pc.utf8_slice_codeunits(own, len(self.prefix)))

    def read_grades(self, snapshot: Snapshot, parts: Sequence[TrialPart]) -> None:
        """Read which trials each part of `grades` holds, and mark the rows of trials on which graders differ.

        So no trial's grades are searched for.
        """
        gone = snapshot.uncounted("grades")
        for path in snapshot.files["grades"]:
            if path not in self._graded:
                grades = snapshot.read_part("grades", path, _GRADES, coded=("outcome",))
                ids = id_numbers(grades["trial_id"])
                siblings = {*sibling_parts(snapshot, "trials", [path])}
                self._mark(ids, grades, gone[path], [part.rows for part in parts if part.path in siblings])
                self._graded[path] = graded_trials(ids)
                pa.default_memory_pool().release_unused()
        fresh = _coded(snapshot, "grades", _GRADES)
        of_journal = [part.rows for part in parts if part.path is None]
        self._mark(id_numbers(fresh["trial_id"]), fresh, (), of_journal)

    def _mark(self, ids: Numbers, grades: pa.Table, gone: Any, parts: Sequence[RowsInMemory]) -> None:
        """Mark the trials on which one of some grades, without those of trials that are gone, differs."""
        outcome = _numbered(grades.select(["outcome"]), self._registers.outcomes)
        other = ~grades["headline"].to_numpy() & ~among(ids, known_ids(gone))
        ids, outcome = ids[other], outcome[other]
        for rows in (rows for rows in parts if len(rows.trial)):
            order = np.argsort(rows.trial)
            at = order[np.searchsorted(rows.trial, ids, sorter=order) % len(order)]
            rows.differs[at[(rows.trial[at] == ids) & (rows.outcome[at] != outcome)]] = True

    def grades_of(self, parts: Iterable[Path], ids: Sequence[str]) -> dict[Path, Sequence[int]] | None:
        """Return the rows of trials in parts of `grades`, and maybe others; None: nobody knows yet."""
        wanted, by_part = known_ids(ids).astype(np.uint32), dict[Path, Sequence[int]]()
        for part in parts:
            if part not in self._graded:
                return None
            rows = self._graded[part].rows_of(wanted)
            by_part |= {part: rows} if rows else {}
        return by_part


def _coded(snapshot: Snapshot, table: str, columns: Sequence[str]) -> pa.Table:
    """Return columns of what only the journal holds, as those of a part are read."""
    fresh = snapshot.journalled[table].select(columns)
    return fresh.cast(with_codes(fresh.schema, _CODED)).unify_dictionaries()


def _without(rows: RowsInMemory, gone: Any) -> Numbers:
    """Return which rows count: those at rest, without those of trials that are gone."""
    return rows.at_rest & ~among(rows.trial, known_ids(gone)) if len(gone) else rows.at_rest


def known_ids(ids: Any) -> Numbers:
    """Return the numbers of some ids of trials, ascending."""
    return np.sort(id_numbers(pa.chunked_array([ids], pa.string())))


def known_problems(ids: Any) -> Numbers:
    """Return the fingerprints of some ids of problems, ascending."""
    return np.sort(fingerprints(pa.chunked_array([ids], pa.string())))


def among(numbers: Numbers, known: Numbers) -> Numbers:
    """Return which of some numbers are among others, which ascend."""
    inside: Numbers
    if len(known) < len(numbers):
        inside = pc.is_in(pa.array(numbers), value_set=pa.array(known)).to_numpy(zero_copy_only=False)
    else:  # a table of the others would have to be made for each part
        inside = known[np.searchsorted(known, numbers) % max(1, len(known))] == numbers
    return inside


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


A_PAGE: Final = 50  # trials
ENDS: Final = ("first", "last")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialQuery:
    """Which trials are asked for; what is empty or None leaves none out."""

    entrants: tuple[int, ...] = ()  # places among the entrants of the page
    versus: int | None = None  # the place of one whose answer to the same question is right where this is not
    kind: tuple[int, ...] = ()  # places among the kinds
    outcome: tuple[str, ...] = ()
    lengths: tuple[int | None, int | None] = (None, None)  # from, to
    finished: tuple[int | None, int | None] = (None, None)  # milliseconds since 1970, UTC: since, until
    error: str = ""  # the kind of error
    end: str = "first"  # of the true value, from which `position` counts
    position: int | None = None  # of a wrong digit, from 1
    question: str = ""  # the id of a problem
    trial: str = ""  # its own id
    text: str = ""
    disagree: bool = False  # whether graders differ
    page: int = 1

    @property
    def of_errors(self) -> bool:
        """Whether only answers that were examined can match."""
        return bool(self.error) or self.position is not None


def parsed(words: MultiMapping[str]) -> TrialQuery:
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

    if unknown := {*words.getall("outcome", [])} - {*map(str, Outcome)}:
        raise ConfigError(f"outcome {', '.join(sorted(unknown))}: there is none of that name")
    return TrialQuery(
        entrants=numbers("asked"),
        versus=number("versus"),
        kind=numbers("kind"),
        outcome=tuple(words.getall("outcome", [])),
        lengths=(number("from"), number("to")),
        finished=(number("since"), number("until")),
        error=words.get("error", ""),
        end=ENDS[words.get("end", "") == "last"],
        position=number("position"),
        question=words.get("question", ""),
        text=words.get("text", ""),
        disagree=words.get("disagree", "") not in ("", "0", "false"),
        page=max(1, number("page") or 1),
    )


TrialPlace = tuple[int, int]  # which part of an index a trial stands in, and in which row
Search = Callable[[Sequence[TrialPart]], Sequence[Numbers]]  # returns which rows of parts hold a text


@dataclass(slots=True, kw_only=True)
class TrialIndex:
    """All trials of one snapshot of the folders."""

    parts: Sequence[TrialPart]
    registers: Registers
    entrants: Numbers  # by their numbers in the register: their places on the page
    kinds: Numbers  # likewise
    starts: Numbers = field(init=False)  # where each part begins, when one comes after the other
    order: Numbers = field(init=False)  # of trials on the page: wrong ones first, by entrant, kind and length

    def __post_init__(self) -> None:
        self.starts = np.cumsum([0, *(len(part.counting) for part in self.parts)])
        ranks = places_in(self.registers.outcomes, {(name,): n for n, name in enumerate(WRONG_FIRST)})
        lengths = 2 + max((int(part.rows.length.max(initial=0)) for part in self.parts), default=0)
        entrants, kinds = int(self.entrants.max()) + 1, int(self.kinds.max()) + 1
        kind = np.min_scalar_type(-(len(WRONG_FIRST) + 1) * entrants * kinds * lengths)
        key = np.empty(self.starts[-1], kind)
        for part, start in zip(self.parts, self.starts, strict=False):
            rows, its = part.rows, key[start : start + len(part.counting)]
            its[:] = ranks[rows.outcome]
            for values, most in (
                (self.entrants[rows.entrant], entrants),
                (self.kinds[rows.kind], kinds),
                (rows.length.astype(kind) + 1, lengths),
            ):
                its *= most
                its += values.astype(kind)
        self.order = np.argsort(key, kind="stable").astype(np.int32)

    def keep_only(self, ids: Any) -> None:
        """Let only trials with one of these ids count."""
        self.parts = [
            replace(part, counting=part.counting & among(part.rows.trial, part.folder.known(ids)))
            for part in self.parts
        ]

    @property
    def trials(self) -> int:
        return sum(int(part.counting.sum()) for part in self.parts)

    def find(
        self, query: TrialQuery, examined: Sequence[ExaminedAnswer] = (), search: Search | None = None
    ) -> tuple[int, list[TrialPlace]]:
        """Return how many trials a query asks for, and those of its page; beyond the last comes the last one.

        Args:
            query: which trials.
            examined: the wrong answers whose errors are known.
            search: for the text of the query.
        """
        places = self._places(query, examined, search)
        first = (min(query.page, pages_of(len(places))) - 1) * A_PAGE
        return len(places), self._parts_of(places[first : first + A_PAGE])

    def of_question(
        self, problem_id: str, most: int, entrants: Sequence[int] = ()
    ) -> tuple[int, list[TrialPlace]]:
        """Return how many answers to a problem there are, and at most so many: as many of each entrant.

        `entrants`: of these alone, by their places on the page.
        """
        places = self._parts_of(self._places(TrialQuery(question=problem_id, entrants=tuple(entrants))))
        turns = Counter[int]()
        by_turn = list[tuple[int, TrialPlace]]()
        for place in places:
            entrant = self.entrant_at(place)
            by_turn.append((turns[entrant], place))
            turns[entrant] += 1
        return len(places), [place for _, place in sorted(by_turn)[:most]]

    def entrant_at(self, place: TrialPlace) -> int:
        """Return the entrant of a trial, by its place on the page."""
        part, row = place
        return int(self.entrants[self.parts[part].rows.entrant[row]])

    def answers_to(self, problem_id: str) -> tuple[int, int]:
        """Return how many answers to a problem there are, and of how many entrants."""
        places = self._parts_of(self._places(TrialQuery(question=problem_id)))
        return len(places), len({*map(self.entrant_at, places)})

    def right_on(self, entrant: int) -> tuple[Numbers, Numbers]:
        """Return the problems that an entrant mostly answered right, and the others that it was asked."""
        own = [
            (part.rows, part.counting & (self.entrants[part.rows.entrant] == entrant)) for part in self.parts
        ]
        right = np.concatenate([self._are_right(rows)[its] for rows, its in own])
        problems, at = np.unique(
            np.concatenate([rows.problem[its] for rows, its in own]), return_inverse=True
        )
        mostly = 2 * np.bincount(at, right) >= np.bincount(at)
        return problems[mostly], problems[~mostly]

    def _are_right(self, rows: RowsInMemory) -> Numbers:
        right: Numbers = rows.outcome == self.registers.outcomes[_RIGHT,]
        return right

    def _places(
        self, query: TrialQuery, examined: Sequence[ExaminedAnswer] = (), search: Search | None = None
    ) -> Numbers:
        """Return the places of the trials that match a query, when one part comes after the other."""
        ids = [answer.trial_id for answer in examined if query.of_errors and _is_asked(query, answer)]
        folders = {part.folder for part in self.parts} if query.of_errors else ()
        erring = {folder: folder.known(ids) for folder in folders}
        matches = [
            np.logical_and.reduce([part.counting, *self._conditions(part, query, erring)])
            for part in self.parts
        ]
        if query.versus is not None:
            right, others = self.right_on(query.versus)
            for n in _some(matches):
                its = self.parts[n].rows
                matches[n] &= np.where(
                    self._are_right(its), among(its.problem, others), among(its.problem, right)
                )
        if search:
            some = _some(matches)
            for n, hits in zip(some, search([self.parts[n] for n in some]), strict=True):
                matches[n] &= hits
        places: Numbers = self.order[np.concatenate(matches)[self.order]]
        return places

    def _parts_of(self, places: Numbers) -> list[TrialPlace]:
        part = np.searchsorted(self.starts, places, "right") - 1
        rows = places - self.starts[part]
        return [*zip(part.tolist(), rows.tolist(), strict=True)]

    def _conditions(
        self, part: TrialPart, query: TrialQuery, erring: Mapping[FolderInMemory, Numbers]
    ) -> Iterator[Numbers]:
        rows = part.rows
        if query.entrants:
            yield np.isin(self.entrants, query.entrants)[rows.entrant]
        if query.kind:
            yield np.isin(self.kinds, query.kind)[rows.kind]
        if query.outcome:
            yield np.isin(rows.outcome, [self.registers.outcomes[name,] for name in query.outcome])
        low, high = query.lengths
        if (low, high) != (None, None):
            yield rows.length >= max(0, low or 0)  # where there is a limit, unknown lengths are beyond it
        if high is not None:
            yield rows.length <= high
        since, until = query.finished
        if since is not None:
            yield rows.at >= since - rows.since
        if until is not None:
            yield rows.at <= until - rows.since
        if query.disagree:
            yield rows.differs
        if query.question:
            yield among(rows.problem, known_problems([query.question]))
        if query.trial:
            yield among(rows.trial, part.folder.known([query.trial]))
        if part.folder in erring:
            yield among(rows.trial, erring[part.folder])


def _some(matches: Sequence[Numbers]) -> list[int]:
    """Return which of some parts have a row that matches."""
    return [n for n, rows in enumerate(matches) if rows.any()]


def places_in(values: Iterable[Key], places: Mapping[Any, int]) -> Numbers:
    """Return the place of each value; the last place and one more where it has none."""
    return np.array([places.get(value, len(places)) for value in values] or [0], np.int64)


def pages_of(trials: int) -> int:
    """Return how many pages so many trials fill."""
    return max(1, -(-trials // A_PAGE))


def _is_asked(query: TrialQuery, answer: ExaminedAnswer) -> bool:
    at = query.position
    wrong = answer.wrong_from_left if query.end == "first" else answer.wrong_from_right
    return query.error in ("", answer.kind) and (at is None or at in wrong)
