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
from asyncbench.store.parts import coded_schema
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


def register(first: Iterable[Key] = ()) -> Register:
    """Return a register, which gives each new value that is looked up the next number."""
    values = Register(None, {value: number for number, value in enumerate(first)})
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
    finished: Numbers  # milliseconds from then on: when each was
    trial: Numbers  # of `id_numbers`
    problem: Numbers  # fingerprints of ids
    hexadecimal: bool  # whether all ids begin as ours do
    at_rest: Numbers  # True or False: whether it is no answer to a load
    differs: Numbers  # True or False: whether graders differ; False until their grades are read


def rows_in_memory(rows: pa.Table, registers: Registers, label: str) -> RowsInMemory:
    """Return rows of `trials` as numbers; `label`: what their folder is called."""
    finished_ms = rows["finished_at"].cast(pa.int64()).to_numpy() // 1000
    since, ids = int(finished_ms.min()) if len(finished_ms) else 0, rows["trial_id"]
    return RowsInMemory(
        entrant=_numbered(rows.select(ENTRANT), registers.entrants, label),
        kind=_numbered(rows.select(KIND), registers.kinds),
        outcome=_numbered(rows.select(["outcome"]), registers.outcomes).astype(np.int8),
        length=_narrow(pc.fill_null(rows["length"], UNKNOWN).to_numpy()),
        since=since,
        finished=_narrow(finished_ms - since),
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
    # One code for the values of all columns together.
    combined = np.zeros(len(rows), np.int64)
    columns: list[Any] = [column.combine_chunks() for column in rows.columns]
    for column in columns:
        combined *= len(column.dictionary) + 1
        combined += pc.fill_null(column.indices, len(column.dictionary)).to_numpy()

    # Each combination is looked up once, with the values of one row that has it.
    codes: Any = pa.array(combined).dictionary_encode()
    row_codes, example_rows = codes.indices.to_numpy(), np.zeros(len(codes.dictionary), np.int64)
    example_rows[row_codes] = np.arange(len(row_codes))
    examples = [column.take(pa.array(example_rows)).to_pylist() for column in columns]
    numbers = [register[*first, *(value or "" for value in key)] for key in zip(*examples, strict=True)]
    by_row: Numbers = np.array(numbers, np.int16)[row_codes]
    return by_row


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

    def match_ids(self, text: str) -> Numbers:
        """Return for each row whether its id begins with a text."""
        text = text.removeprefix(self.folder.prefix)
        hexadecimal = self.rows.hexadecimal
        if hexadecimal and not all(_HEXADECIMAL[letter] for letter in text.encode()):
            return np.zeros(len(self.counting), bool)
        first = int(sorted_ids([text])[0] & ~_HALF)
        last = first + (1 << 4 * (16 - min(len(text.encode()), _DIGITS))) - 1
        matches: Numbers = (self.rows.trial >= first) & (self.rows.trial <= last)
        rows = np.flatnonzero(matches)
        if len(rows) and not (hexadecimal and len(text) <= _DIGITS):  # the number does not tell all of the id
            matches[rows] = [name.startswith(text) for name in self.ids(rows.tolist())]
        return matches


@dataclass(frozen=True, slots=True)
class GradedTrials:
    """The trials of a part of `grades`, and where they begin: the grades of one mostly stand together."""

    halves: Numbers  # of the numbers of trials
    starts: Numbers  # rows, and the end of the last one

    def rows_of(self, halves: Numbers) -> list[int]:
        """Return the rows of some trials; also those of trials whose numbers have the same halves."""
        indices = np.flatnonzero(np.isin(self.halves, halves))
        ends = zip(self.starts[indices].tolist(), self.starts[indices + 1].tolist(), strict=True)
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
        if not self._graded.keys() <= {*snapshot.files["grades"]}:  # parts were joined into others
            self._graded, self._parts = {}, {}

        rows_by_path: dict[Path | None, RowsInMemory] = {}
        for path in snapshot.files["trials"]:
            rows = self._parts.get(path)
            if rows is None:
                pa.default_memory_pool().release_unused()
                table = snapshot.read_part("trials", path, _COLUMNS, coded=_CODED)
                rows = rows_in_memory(table, self._registers, self.label)
            rows_by_path[path] = rows
        self._parts = {path: rows for path, rows in rows_by_path.items() if path}
        journalled = _journalled(snapshot, "trials", _COLUMNS)
        rows_by_path[None] = rows_in_memory(journalled, self._registers, self.label)

        # Only trials at rest count, and none that are gone.
        gone = snapshot.uncounted("trials")
        parts = list[TrialPart]()
        for part_path, rows in rows_by_path.items():
            counting = rows.at_rest
            if len(gone_ids := gone[part_path] if part_path else ()):
                counting = counting & ~among(rows.trial, sorted_ids(gone_ids))
            part = TrialPart(folder=self, snapshot=snapshot, path=part_path, rows=rows, counting=counting)
            parts.append(part)
        return parts

    def id_numbers(self, ids: Any) -> Numbers:
        """Return the numbers, ascending, of those ids of the views that may be of this folder."""
        ids = pa.array(ids, pa.string())
        folder_ids = ids.filter(pc.starts_with(ids, self.prefix))
        return sorted_ids(pc.utf8_slice_codeunits(folder_ids, len(self.prefix)))

    def read_grades(self, snapshot: Snapshot, parts: Sequence[TrialPart]) -> None:
        """Read which trials each part of `grades` holds, and mark the rows of trials on which graders differ.

        With these rows at hand, no query has to search for the grades of a trial.
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
        fresh = _journalled(snapshot, "grades", _GRADES)
        journal_rows = [part.rows for part in parts if part.path is None]
        self._mark(id_numbers(fresh["trial_id"]), fresh, (), journal_rows)

    def _mark(self, ids: Numbers, grades: pa.Table, gone: Any, parts: Sequence[RowsInMemory]) -> None:
        """Mark the trials of which a counted grade differs from the headline; `gone`: uncounted trials."""
        outcome = _numbered(grades.select(["outcome"]), self._registers.outcomes)
        compared = ~grades["headline"].to_numpy() & ~among(ids, sorted_ids(gone))
        ids, outcome = ids[compared], outcome[compared]
        for rows in (rows for rows in parts if len(rows.trial)):
            order = np.argsort(rows.trial)
            indices = order[np.searchsorted(rows.trial, ids, sorter=order) % len(order)]
            differing = (rows.trial[indices] == ids) & (rows.outcome[indices] != outcome)
            rows.differs[indices[differing]] = True

    def grades_of(self, parts: Iterable[Path], ids: Sequence[str]) -> dict[Path, Sequence[int]] | None:
        """Return trials by their rows of `grades`, and perhaps more, or None if they are not read yet."""
        wanted, by_part = sorted_ids(ids).astype(np.uint32), dict[Path, Sequence[int]]()
        for part in parts:
            if part not in self._graded:
                return None
            rows = self._graded[part].rows_of(wanted)
            by_part |= {part: rows} if rows else {}
        return by_part


def _journalled(snapshot: Snapshot, table: str, columns: Sequence[str]) -> pa.Table:
    """Return columns of the rows that only the journal holds, in the types of a part."""
    fresh = snapshot.journalled[table].select(columns)
    return fresh.cast(coded_schema(fresh.schema, _CODED)).unify_dictionaries()


def sorted_ids(ids: Any) -> Numbers:
    """Return the numbers of some ids of trials, ascending."""
    return np.sort(id_numbers(pa.chunked_array([ids], pa.string())))


def sorted_problems(ids: Any) -> Numbers:
    """Return the fingerprints of some ids of problems, ascending."""
    return np.sort(fingerprints(pa.chunked_array([ids], pa.string())))


def among(numbers: Numbers, ascending: Numbers) -> Numbers:
    """Return for each number whether it is among others, which have to ascend."""
    inside: Numbers
    if len(ascending) < len(numbers):
        inside = pc.is_in(pa.array(numbers), value_set=pa.array(ascending)).to_numpy(zero_copy_only=False)
    else:  # a hash table of the others would have to be made for each part
        inside = ascending[np.searchsorted(ascending, numbers) % max(1, len(ascending))] == numbers
    return inside


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


A_PAGE: Final = 50  # trials
ENDS: Final = ("first", "last")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialQuery:
    """Which trials are asked for; a field that is empty or None leaves none out."""

    entrants: tuple[int, ...] = ()  # indices among the entrants of the page
    versus: int | None = None  # an entrant: only questions on which either is right and the other is not
    kind: tuple[int, ...] = ()  # indices among the kinds of the page
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
    def needs_errors(self) -> bool:
        """Whether only answers whose errors were examined can match."""
        return bool(self.error) or self.position is not None


def parsed(words: MultiMapping[str]) -> TrialQuery:
    """Return the query of an address.

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
            rows, part_key = part.rows, key[start : start + len(part.counting)]
            part_key[:] = ranks[rows.outcome]
            for values, count in (
                (self.entrants[rows.entrant], entrants),
                (self.kinds[rows.kind], kinds),
                (rows.length.astype(kind) + 1, lengths),
            ):
                part_key *= count
                part_key += values.astype(kind)
        self.order = np.argsort(key, kind="stable").astype(np.int32)

    def keep_only(self, ids: Any) -> None:
        """Let only trials with one of these ids count."""
        self.parts = [
            replace(part, counting=part.counting & among(part.rows.trial, part.folder.id_numbers(ids)))
            for part in self.parts
        ]

    @property
    def trials(self) -> int:
        return sum(int(part.counting.sum()) for part in self.parts)

    def find(
        self, query: TrialQuery, examined: Sequence[ExaminedAnswer] = (), search: Search | None = None
    ) -> tuple[int, list[TrialPlace]]:
        """Return how many trials a query asks for, and those of its page, or of the last page instead.

        Args:
            query: which trials.
            examined: the wrong answers whose errors are known.
            search: for the text of the query.
        """
        places = self._places(query, examined, search)
        first = (min(query.page, pages_of(len(places))) - 1) * A_PAGE
        return len(places), self._parts_of(places[first : first + A_PAGE])

    def find_answers(
        self, problem_id: str, limit: int, entrants: Sequence[int] = ()
    ) -> tuple[int, list[TrialPlace]]:
        """Return how many answers to a problem there are, and `limit` of them: equally many of each entrant.

        With `entrants`, by their indices on the page, only their answers are counted and returned.
        """
        trials = self._parts_of(self._places(TrialQuery(question=problem_id, entrants=tuple(entrants))))
        turns = Counter[int]()
        by_turn = list[tuple[int, TrialPlace]]()
        for trial in trials:
            entrant = self.entrant_of(trial)
            by_turn.append((turns[entrant], trial))
            turns[entrant] += 1
        return len(trials), [trial for _, trial in sorted(by_turn)[:limit]]

    def entrant_of(self, trial: TrialPlace) -> int:
        """Return the entrant of a trial, by its index on the page."""
        part, row = trial
        return int(self.entrants[self.parts[part].rows.entrant[row]])

    def answers_to(self, problem_id: str) -> tuple[int, int]:
        """Return how many answers to a problem there are, and of how many entrants."""
        places = self._parts_of(self._places(TrialQuery(question=problem_id)))
        return len(places), len({*map(self.entrant_of, places)})

    def right_on(self, entrant: int) -> tuple[Numbers, Numbers]:
        """Return the problems that an entrant mostly answered right, and the others that it was asked."""
        answers = [
            (part.rows, part.counting & (self.entrants[part.rows.entrant] == entrant)) for part in self.parts
        ]
        right = np.concatenate([self._are_right(rows)[selected] for rows, selected in answers])
        problems, indices = np.unique(
            np.concatenate([rows.problem[selected] for rows, selected in answers]), return_inverse=True
        )
        mostly = 2 * np.bincount(indices, right) >= np.bincount(indices)
        return problems[mostly], problems[~mostly]

    def _are_right(self, rows: RowsInMemory) -> Numbers:
        right: Numbers = rows.outcome == self.registers.outcomes[_RIGHT,]
        return right

    def _places(
        self, query: TrialQuery, examined: Sequence[ExaminedAnswer] = (), search: Search | None = None
    ) -> Numbers:
        """Return the row numbers of the trials that match a query, counted through all parts."""
        erring: dict[FolderInMemory, Numbers] = {}
        if query.needs_errors:
            # answers with the kind of error, and the wrong digit, that the query asks for
            ids = list[str]()
            for answer in examined:
                wrong_digits = answer.wrong_from_left if query.end == "first" else answer.wrong_from_right
                if query.error in ("", answer.kind) and query.position in (None, *wrong_digits):
                    ids.append(answer.trial_id)
            erring = {folder: folder.id_numbers(ids) for folder in {part.folder for part in self.parts}}

        matches = [
            np.logical_and.reduce([part.counting, *self._conditions(part, query, erring)])
            for part in self.parts
        ]
        if query.versus is not None:
            right, wrong = self.right_on(query.versus)
            for n in _matching(matches):
                rows = self.parts[n].rows
                matches[n] &= np.where(
                    self._are_right(rows), among(rows.problem, wrong), among(rows.problem, right)
                )
        if search:
            searched = _matching(matches)
            for n, hits in zip(searched, search([self.parts[n] for n in searched]), strict=True):
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
            yield rows.finished >= since - rows.since
        if until is not None:
            yield rows.finished <= until - rows.since
        if query.disagree:
            yield rows.differs
        if query.question:
            yield among(rows.problem, sorted_problems([query.question]))
        if query.trial:
            yield among(rows.trial, part.folder.id_numbers([query.trial]))
        if part.folder in erring:
            yield among(rows.trial, erring[part.folder])


def _matching(matches: Sequence[Numbers]) -> list[int]:
    """Return the indices of the parts that have a row that matches."""
    return [n for n, rows in enumerate(matches) if rows.any()]


def places_in(values: Iterable[Key], places: Mapping[Any, int]) -> Numbers:
    """Return the index of each value on the page; the last index and one more where it has none."""
    return np.array([places.get(value, len(places)) for value in values] or [0], np.int64)


def pages_of(trials: int) -> int:
    """Return how many pages so many trials fill."""
    return max(1, -(-trials // A_PAGE))
