"""Trials in files of other projects: read from them, and written from a results folder."""

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, groupby
from operator import itemgetter
from os.path import isdir, isfile, lexists
from pathlib import Path
from reprlib import repr as shown
from typing import Any, BinaryIO, Final, TypeVar
from urllib.parse import quote

import pyarrow.compute as pc

from asyncbench.config.models import check_alias
from asyncbench.contents import Content, content_of, text_in
from asyncbench.errors import ConfigError, ProviderError, StoreError
from asyncbench.files import local
from asyncbench.problems.opening import open_set
from asyncbench.providers.endpoints import is_simulated
from asyncbench.records import REALTIME, Condition, Draft, Grade, Model, Outcome, Reply
from asyncbench.store.catalog import read_attempts, read_grades, read_trials
from asyncbench.store.manifest import IMPORTED, Manifest
from asyncbench.store.schema import AT_REST, ENTRANT
from asyncbench.suites.numbers import MAX_DIGITS

# ── Places of files and folders, and names of a run and of its files after each other
# What cannot be read or made is refused before anything is spent on it.


MOST_UNPACKED: Final = 1_000_000_000  # characters of a packed file
LONGEST: Final = 200  # characters once percent-encoded: a run names a file, with room for an ending


def check_file(path: Path) -> None:
    """Refuse what is no file that can be read.

    Raises:
        ConfigError: it is missing, may not be read, or is a pipe or the like.
    """
    try:
        path.stat()
        if not isfile(path):  # before it is opened: a pipe would be waited for
            raise ConfigError(
                f"{path} is not a regular file. Save its content to a file, and name that file."
            )
        path.open("rb").close()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. Name a file that you can read.") from None


def check_folder(path: Path) -> None:
    """Refuse what cannot be a folder, since a file is there or above it.

    Raises:
        ConfigError: a file is there or above it, which the message names; or the path is an address.
    """
    existing = next(folder for folder in (path, *local(path).absolute().parents) if lexists(folder))
    if not isdir(existing):
        raise ConfigError(f"{existing} is not a folder. Name a folder, or a new one.")


def run_of(path: Path, *endings: str) -> str:
    """Return the run that a file becomes: its name without the ending of its format, one of some.

    Raises:
        ConfigError: that can name no file in turn.
    """
    run = path.name.removesuffix(next(filter(path.name.endswith, endings), ""))
    try:
        encoded = quote(run, safe="")
    except UnicodeEncodeError:
        raise ConfigError(f"{str(path)!r}: the name is not UTF-8 text. Rename the file.") from None
    if not 1 <= len(encoded) <= LONGEST:
        raise ConfigError(
            f"{path}: the name of the run would be empty, or longer than {LONGEST} characters when "
            "percent-encoded. Rename the file."
        )
    return run


def problems_file(run: str) -> str:
    """Return where in a results folder the problems of an imported run are."""
    return f"problems/{quote(run, safe='')}.parquet"


# ── Trials as they were recorded: JSON, read exactly, each field checked
# A ValueError says what was found, and the rule.


# model → condition → suite → task → trials
Planned = Mapping[str, Mapping[str, Mapping[str, Mapping[str, int]]]]
Fields = Mapping[str, Any]  # Any: JSON, which is checked field by field
MOST = 2**31 - 1  # of a count, of dollars, of seconds: what a column of results holds, and more than enough

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a file says of one trial."""

    draft: Draft
    model: Model
    condition: Condition = field(default_factory=Condition)
    reply: Reply | None  # None: none came
    attempts: int = 1
    latency_s: float | None = None
    cost_usd: float | None = None
    accounting: Mapping[str, object] | None = None  # as it stood: an export writes the same again
    ended_at: float  # UTC, seconds since 1970
    timed: bool = True  # it tells that itself; else the time is its file's
    error: ProviderError | None = None  # why no reply came, where that is told
    price_source: str = "recorded"
    mode: str = REALTIME
    batch_id: str | None = None
    trial_id: str | None = None  # of a trial of ours; None: it is made of what the file says
    repeat: int = 0
    grades: tuple[Grade, ...] = ()  # that the file tells, the one that counts first


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What one file holds: a run."""

    run: str
    path: Path
    trials: tuple[Recorded, ...]  # in file order
    left_out: tuple[str, ...]  # entries that cannot be used: where, what, found, rule
    planned: Planned
    same_problems: bool = (
        False  # a question that is asked again is the same problem, of another model or repeat
    )


def counted(trials: Iterable[tuple[Model, Condition, Draft]]) -> Planned:
    """Return a plan for files without one: the number of trials that they hold."""
    planned: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for model, condition, draft in trials:
        tasks = planned.setdefault(model.alias, {}).setdefault(condition.name, {}).setdefault(draft.suite, {})
        tasks[draft.task] = tasks.get(draft.task, 0) + 1
    return planned


def sifted(
    entries: Iterable[tuple[str, T]], read: Callable[[T], Recorded]
) -> tuple[tuple[Recorded, ...], tuple[str, ...]]:
    """Return the trials that could be read, and the complaints about the others, each with its place."""
    trials, left_out = list[Recorded](), list[str]()
    for origin, entry in entries:
        try:
            trials.append(read(entry))
        except ValueError as error:
            left_out.append(f"{origin}: {error}")
    return tuple(trials), tuple(left_out)


def content(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        kind = content_of(path)
        if kind.form == "text" and kind != Content("text"):  # packed, or in another encoding
            return text_in(path, max_size=MOST_UNPACKED, way_out="Unpack it, and name its parts").encode()
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. Name a file that you can read.") from None


def lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each line that is not empty, with its place."""
    for count, line in enumerate(content(path).split(b"\n"), start=1):
        if line.strip():
            yield f"{path}, line {count}", line


def parsed(data: bytes, *, with_nan: bool = False) -> object:
    """Return the value of a JSON text; integers of any length up to 4,300 digits stay exact.

    `with_nan`: take `NaN` and `Infinity`, which Python's own writer puts into logs.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        odd = error.object[error.start]
        raise ValueError(f"is not UTF-8 text: it holds the byte 0x{odd:02x} at {error.start + 1}") from None
    try:
        return json.loads(text, parse_int=_integer, parse_constant=float if with_nan else _refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"{shown(text)} is not JSON ({error.msg} at character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError(f"{shown(text)} is nested too deeply") from None


def _integer(digits: str) -> int:
    if len(digits.removeprefix("-")) > MAX_DIGITS:
        raise ValueError(f"{shown(digits)} has more than {MAX_DIGITS:,} digits")
    return int(digits)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def mapping(value: object, what: str) -> Fields:
    if not isinstance(value, dict):
        raise ValueError(f"{shown(value)} is not {what}, a JSON object")
    return value


def required(fields: Fields, key: str) -> Any:
    """Return the value of a field that has to be there."""
    if key not in fields:
        raise ValueError(f"{key!r} is missing; found: {shown(list(fields))}")
    return fields[key]


def checked(value: T, key: str, *, right: bool, rule: str) -> T:
    """Return the value of a field, or refuse it with the rule."""
    if not right:
        raise ValueError(f"{key!r} is {shown(value)}, not {rule}")
    return value


def inner(fields: Fields, key: str) -> Fields:
    """Return the object that stands under a key; read its fields with the `field_errors` of the key."""
    value: Fields = required(fields, key)
    return checked(value, key, right=isinstance(value, dict), rule="a JSON object")


@contextmanager
def field_errors(key: str) -> Iterator[None]:
    """Say of complaints where they are from: two objects of a record may have fields of the same name."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"in {key!r}, {error}") from None


def text(fields: Fields, key: str) -> str:
    value: str = required(fields, key)
    return checked(value, key, right=isinstance(value, str), rule="a text")


def flag(fields: Fields, key: str) -> bool:
    """Return a yes or no; missing or null is no."""
    value = fields.get(key)
    return bool(checked(value, key, right=value is None or isinstance(value, bool), rule="true or false"))


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(fields: Fields, key: str, *, least: int = 0) -> int:
    value = required(fields, key)
    right = is_whole(value) and least <= value <= MOST
    return int(checked(value, key, right=right, rule=f"a whole number from {least} to {MOST:,}"))


def number(fields: Fields, key: str) -> float:
    value = required(fields, key)
    right = (is_whole(value) or isinstance(value, float)) and 0 <= value <= MOST  # which NaN is not
    return float(checked(value, key, right=right, rule=f"a number from 0 to {MOST:,}"))


def model_of(fields: Fields, *, simulated: bool) -> Model:
    """Return the model that a record names; it is not known how it was reached."""
    name = text(fields, "model")
    try:
        check_alias(name, place="'model'")
    except ConfigError as error:
        raise ValueError(str(error)) from None
    provider = "simulated" if simulated else "imported"
    return Model(alias=name, provider=provider, model_id=name, api="imported", simulated=simulated)


# ── Trials of a results folder as rows, from which every format is written

Row = dict[str, Any]  # Any: the columns of `trials` and what `_added` adds
Asked = Mapping[str, tuple[int, tuple[str, ...], str]]  # problem id → place in the set, operands, question

TRIALS = (
    *("trial_id", "run", "problem_id", "suite", "task", "variant", "representation", "length", "repeat"),
    *("condition", "condition_params", "style", "model", "provider", "expected"),
    *("reply_text", "reasoning_text", "answer", "outcome"),
    *("input_tokens", "output_tokens", "cost_usd", "attempts", "latency_s", "finished_at"),
)
GRADES = ("trial_id", "classification", "abs_error")
OF_A_PART = [*ENTRANT, "suite", "task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToWrite:
    """A file that an export is to write."""

    name: str
    write: Callable[[BinaryIO], tuple[int, Sequence[str]]]  # → its trials, and what it cannot say as it is


def names_told_apart(entrants: Sequence[Row], keys: Sequence[str], ending: str) -> list[str]:
    """Return a file name for each entrant, of its model and of those keys in which entrants differ.

    Viewers ask for a file by its address, so a name has no `%`, `#` or `?`.
    """
    varied = [key for key in keys if key == "model" or len({row[key] for row in entrants}) > 1]
    names: dict[str, None] = {}
    for row in entrants:
        stem = re.sub(r"[^\w.+=@-]+", "-", "+".join(str(row[key]) for key in varied))
        tried = (f"{stem}{suffix}{ending}" for suffix in chain([""], (f"-{n}" for n in itertools.count(2))))
        names[next(name for name in tried if name not in names)] = None
    return [*names]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPart:
    """The trials that one file is to hold: of a run that was imported, or of a model under a condition."""

    run: str
    model: str
    condition: str
    imported: bool  # then it is the whole run, of whatever models
    suffix: str  # of a file's name: the condition, where there are several
    last: datetime  # when the last of them was finished


def unsaid(rows: Iterable[Row], told_keys: Callable[[Row], set[str]]) -> list[str]:
    """Return the note about conditions of which a format tells only what is `said`."""
    if missing := {key for row in rows for key in row["asked"].keys() - told_keys(row["asked"])}:
        return [f"the format cannot tell that it was asked with {', '.join(sorted(missing))}"]
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """The files of another project, and how they are read and written."""

    ending: str
    suites: Collection[str]
    tasks: Collection[str]  # of those suites: all that it has a place for
    reader: Callable[[Mapping[str, object]], Callable[[Path], RecordedRun]]  # options → what reads a file
    texts: Callable[[list[Row], Mapping[str, int]], Iterator[str]]  # trials in order, planned ones by suite
    notes: Callable[[list[Row]], list[str]]  # what it cannot say of these trials
    stem: Callable[[ExportedPart], str] = lambda file: f"{quote(file.model, safe='')}{file.suffix}"
    # names of files with a line for each of the others
    summaries: Mapping[str, Callable[[list[Row]], str]] = field(default_factory=dict)
    # of a file of recorded answers, and the options
    facts: Callable[[Path, Mapping[str, object]], Iterator[RecordedRun]] | None = None

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of its files that may be imported."""
        return (self.ending,)

    def runs_in(self, paths: Iterable[Path], options: Mapping[str, object]) -> Iterator[RecordedRun]:
        """Return the runs of files: each is one, but a file of recorded answers (`.parquet`) holds several.

        Raises:
            ConfigError: the options are not of this format; later, that a file cannot be read.
            ProblemSetError: later, that a `.parquet` holds no recorded answers.
        """
        read, facts = self.reader(options), self.facts
        return chain.from_iterable(
            facts(path, options) if facts and path.suffix == ".parquet" else [read(path)] for path in paths
        )

    def file_name(self, exported: ExportedPart) -> str:
        """Return the name of a file: that of an imported run, or the one that the format gives."""
        stem = exported.run.replace("/", "%2F") if exported.imported else self.stem(exported)
        return f"{stem}{self.ending}"


def parts_of(folder: Path, manifest: Manifest, form: FileFormat) -> list[ExportedPart]:
    """Return the files to make of finished trials of a format's suites: runs in order, then by name.

    Answers to loads are left out: other projects know no steps, and would count a problem several times.

    Raises:
        ConfigError: they are of other tasks than the format knows, or there are none.
        StoreError: the folder cannot be read.
    """
    trials = read_trials(
        folder, [*OF_A_PART, "finished_at"], AT_REST & pc.field("suite").isin(list(form.suites))
    )
    rows = trials.group_by(OF_A_PART).aggregate([("finished_at", "max")]).to_pylist()
    if not rows:
        raise ConfigError(
            f"{folder} has no finished trial of {', '.join(form.suites)}, so there is nothing to export. "
            "Answers to loads are left out."
        )
    if unknown := sorted({row["task"] for row in rows} - set(form.tasks)):
        raise ConfigError(f"{folder} has tasks that this format cannot hold: {', '.join(unknown)}")
    several = len({row["condition"] for row in rows}) > 1
    imported = bool(manifest.get(IMPORTED))
    order = {run: n for n, run in enumerate(manifest.get("runs", {}))}
    file = itemgetter("run") if imported else itemgetter("run", "model", "condition")
    rows.sort(key=lambda row: (order.get(row["run"], len(order)), file(row)))
    return [
        ExportedPart(
            run=first["run"],
            model=first["model"],
            condition=first["condition"],
            imported=imported,
            suffix=f"+{quote(first['condition'], safe='')}" if several else "",
            last=max(row["finished_at_max"] for row in (first, *others)),
        )
        for first, *others in (list(of_a_file) for _, of_a_file in groupby(rows, key=file))
    ]


def rows_of(exported: ExportedPart, folder: Path, suites: Collection[str], problems: Asked) -> list[Row]:
    """Return the trials of a file, in the order of the problem set.

    Each has its headline grade and, where it was imported, the recorded accounting.

    Raises:
        StoreError: the folder cannot be read, or the problem of a trial is not in it.
    """
    wanted = AT_REST & pc.field("suite").isin(list(suites)) & (pc.field("run") == exported.run)
    if not exported.imported:
        wanted &= (pc.field("model") == exported.model) & (pc.field("condition") == exported.condition)
    trials = read_trials(folder, TRIALS, wanted)
    same = pc.field("trial_id").isin(trials["trial_id"].combine_chunks())
    table = trials.join(read_grades(folder, GRADES, same & pc.field("headline")), "trial_id")
    if exported.imported:
        table = table.join(read_attempts(folder, ["trial_id", "raw_usage"], same), "trial_id")
    rows = [_added(row, problems, folder) for row in table.to_pylist()]
    return sorted(rows, key=itemgetter("repeat", "place"))


def asked_in(run: str, folder: Path, *, imported: bool) -> Asked:
    """Return the problems of a run, in order; those of a sweep may be in any of the folder's sets.

    Raises:
        ProblemSetError: the folder's copies of the problems are damaged.
    """
    sets = [folder / problems_file(run)] if imported else sorted((folder / "problems").glob("*.parquet"))
    problems: dict[str, tuple[int, tuple[str, ...], str]] = {}
    for path in sets:
        for problem in open_set(path).read():
            problems.setdefault(problem.problem_id, (len(problems), problem.operands, problem.question))
    return problems


def _added(row: Row, problems: Asked, folder: Path) -> Row:
    """Return a trial with what formats need beside its columns."""
    if row["problem_id"] not in problems:
        raise StoreError(
            f"{folder}: problems/ lacks problem {row['problem_id']}. Put back the file that holds it."
        )
    index, operands, question = problems[row["problem_id"]]
    recorded = row.get("raw_usage")
    # What a condition adds to the bare question; the digest only tells one text from another.
    params = {k: value for k, value in json.loads(row["condition_params"]).items() if k != "turns_digest"}
    style = {} if row["style"] == Condition().style else {"style": row["style"]}
    return row | {
        "place": index,
        "operands": operands,
        "question": question,
        "accounting": None if recorded is None else json.loads(recorded),  # None: it is our own trial
        "asked": params | style,
        "failed": row["outcome"] == Outcome.FAILED,
        "simulated": is_simulated(row["provider"]),
    }
