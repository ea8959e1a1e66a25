"""NUPA's own files: its test set, and the replies that its programs record.

The test set is one JSON object, task → length → problems, each a question with its answer behind its `=`:

    {"add_Integer_Integer_Integer": {"3": ["Directly return … Add two numbers: 744 + 543 = 1287"]}}

Replies are JSON Lines, a file a model, a problem a line; the metrics in other files are not read:

    {"task": "add_Integer_Integer_Integer", "digit": 3, "generated_text": ["1287"], "groundtruth": "1287"}

A line of ours also has `question`, `style` and, for made-up replies, `simulated`. Without a question the
problem is only known by its answer.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, groupby, zip_longest
from os import PathLike
from pathlib import Path
from reprlib import repr as shown
from urllib.parse import quote

from asyncbench.errors import ConfigError
from asyncbench.files import writing
from asyncbench.problems import ProblemSet, identified, write_problems
from asyncbench.published.exported import ExportedPart, Row, unsaid
from asyncbench.published.fields import Fields, content, field, flag, mapping, model_of, parsed, text
from asyncbench.published.names import run_of
from asyncbench.published.places import check_file
from asyncbench.published.recorded import Planned, Recorded, RecordedRun, sifted
from asyncbench.records import Condition, Draft, Reply
from asyncbench.suites import parts
from asyncbench.suites.nupa import BASE_TASKS, FORMAT, STYLES, TASKS, NupaTask, draft_nupa, template

NAME = "nupa"
ENDING = ".jsonl"
TASK_NAMES = BASE_TASKS
PROFILE = "reference"  # of what the published code made
OURS = ("question", "style", "simulated")  # keys of a line that only ours have
NO_QUESTION = "(its question is not recorded) ="


# ── the test set ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedProblems:
    """What became of a test set."""

    problems: ProblemSet
    left_out: tuple[str, ...]  # entries that cannot be used: where, what, found, rule


def import_problems(file: PathLike[str] | str, out: PathLike[str] | str) -> ImportedProblems:
    """Make a problem set of a published test set, a problem of each task and length before the next of any.

    Raises:
        ConfigError: the file cannot be read or holds nothing that can be used, or `out` can be no file.
        StoreError: the disk does not take `out`.
    """
    file, out = Path(file), Path(out)
    check_file(file)
    left_out: list[str] = []
    try:
        tasks = mapping(parsed(content(file)), "a test set: task → length → problems")
        drafts = list(_drafts(file, tasks, left_out))
    except ValueError as error:
        raise ConfigError(f"{file}: {error}") from None
    if not drafts:
        raise ConfigError(f"nothing can be imported: {next(iter(left_out), f'{file} holds no problems')}")
    problems = write_problems(identified(drafts), out, told=writing)
    return ImportedProblems(problems=problems, left_out=tuple(left_out))


def _drafts(file: Path, tasks: Fields, left_out: list[str]) -> Iterator[Draft]:
    """Yield what can be used in balanced order; note the rest."""
    cells = [
        [(f"{file}, {name}, {length}[{i}]", name, length, entry) for i, entry in enumerate(_listed(entries))]
        for name, lengths in tasks.items()
        for length, entries in mapping(lengths, f"what {shown(name)} holds, length → problems").items()
    ]
    for place, name, length, entry in filter(None, chain.from_iterable(zip_longest(*cells))):
        try:
            yield _problem(name, length, entry)
        except ValueError as error:
            left_out.append(f"{place}: {error}")


def _listed(entries: object) -> list[object]:
    if not isinstance(entries, list):
        raise ValueError(f"{shown(entries)} is not a list of problems")
    return entries


def _problem(name: str, length: str, entry: object) -> Draft:
    if not isinstance(entry, str) or "=" not in entry:
        raise ValueError(f"{shown(entry)} is not a question with an answer behind its =")
    asked, _, answer = entry.partition("=")
    return _draft(_task(name), _length(length), f"{asked}=", answer.strip())


def _task(name: str) -> NupaTask:
    if name not in TASKS:
        raise ValueError(f"{shown(name)} is no task of NUPA, such as {next(iter(TASKS))}")
    return TASKS[name]


def _length(written: object) -> int:
    if re.fullmatch(r"[1-9]\d{0,3}", str(written), re.ASCII) is None or isinstance(written, bool):
        raise ValueError(f"{shown(written)} is not a length in digits, 1 to 9999")
    return int(str(written))


def _draft(task: NupaTask, length: int, question: str, answer: str) -> Draft:
    """Return a problem as it was published, its operands where the question shows them as usual."""
    try:
        parts(answer, task.answer_type)
    except ValueError:
        raise ValueError(f"the answer {shown(answer)} is not written as {task.answer_type}") from None
    operands = _operands(task, question)
    try:
        made = None if operands is None else draft_nupa(task, operands, profile=PROFILE, expected=answer)
    except (ValueError, ArithmeticError, IndexError):
        made = None  # operands of which the task makes nothing: it is the answer that counts
    return replace(made or _bare(task), length=length, question=question, expected=answer)


def _bare(task: NupaTask) -> Draft:
    """Return a problem of a task of which nothing else is known."""
    return Draft(
        suite=NAME,
        task=task.task,
        variant=task.variant,
        representation=task.representation,
        length=None,
        question=NO_QUESTION,
        expected="",
        answer_type=task.answer_type,
        extra=json.dumps({"profile": PROFILE, "task_name": task.name, "length_class": task.length_class}),
    )


def _operands(task: NupaTask, question: str) -> tuple[str, ...] | None:
    """Return the operands that a question shows; None where it is worded otherwise."""
    found = next(filter(None, (form.fullmatch(question) for form in _forms(task))), None)
    return None if found is None else found.groups()


@cache
def _forms(task: NupaTask) -> tuple[re.Pattern[str], ...]:
    """Return how a task asks in each profile, with its format prompt or without."""
    operands = ("\0",) * (1 if task.second is None else 2)
    asked = (re.escape(template(task, profile) % operands) for profile in (PROFILE, "fixed"))
    before = re.escape(f"{FORMAT[task.answer_type]} ")
    return tuple(
        re.compile(f"(?:{before})?{form.removeprefix(before)}".replace("\0", r"(\S+)"))
        for form in dict.fromkeys(asked)
    )


# ── replies, in ──────────────────────────────────────────────────────────────────────────────


def reader(given: Mapping[str, object]) -> Callable[[Path], RecordedRun]:
    """Return what reads files of replies to questions asked in a style: `chat` unless told otherwise.

    Raises:
        ConfigError: there is no such style, or something else was given.
    """
    style = given.get("style", STYLES[0])
    if other := sorted(given.keys() - {"style"}):
        raise ConfigError(f"import nupa: leave out {', '.join(other)}: the files hold their plan")
    if style not in STYLES:
        raise ConfigError(f"import nupa: style {style!r}: choose of {', '.join(STYLES)}")
    return partial(read, style=str(style))


def read(path: Path, *, style: str = STYLES[0]) -> RecordedRun:
    """Read a file. Lines that cannot be used are left out, each with the reason.

    Raises:
        ConfigError: the file cannot be read.
    """
    run, at = run_of(path, ENDING), path.stat().st_mtime
    trials, left_out = sifted(_entries(path), partial(_recorded, run=run, style=style, at=at))
    return RecordedRun(run=run, path=path, trials=trials, left_out=left_out, planned=_planned(trials))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One reply of a line, which may hold several to the same question."""

    line: object  # its JSON, or the complaint that it is none
    sample: int
    samples: int


def _entries(path: Path) -> Iterator[tuple[str, _Entry]]:
    for count, line in enumerate(content(path).split(b"\n"), start=1):
        if line.strip():
            value = _value(line)
            replies = value.get("generated_text") if isinstance(value, dict) else None
            samples = max(1, len(replies)) if isinstance(replies, list) else 1
            for sample in range(samples):
                yield f"{path}, line {count}", _Entry(line=value, sample=sample, samples=samples)


def _value(line: bytes) -> object:
    try:
        return parsed(line)
    except ValueError as error:
        return error


def _recorded(entry: _Entry, *, run: str, style: str, at: float) -> Recorded:
    if isinstance(entry.line, ValueError):
        raise entry.line
    fields = mapping(entry.line, "a reply")
    task = _task(text(fields, "task"))
    question = text(fields, "question") if "question" in fields else NO_QUESTION
    asked = text(fields, "style") if "style" in fields else style
    if asked not in STYLES:
        raise ValueError(f"'style' is {shown(asked)}, none of {', '.join(STYLES)}")
    truth = text(fields, "groundtruth").strip()
    reply = _reply(field(fields, "generated_text"), entry.sample)
    return Recorded(
        draft=_draft(task, _length(field(fields, "digit")), question, truth),
        model=model_of({"model": run}, simulated=flag(fields, "simulated")),
        condition=Condition(name=asked, style=asked),
        reply=Reply(text=reply, http_status=None),
        accounting={
            "sample": entry.sample,
            "samples": entry.samples,
            "ours": [key for key in OURS if key in fields],
        },
        at=at,
        timed=False,
    )


def _reply(given: object, sample: int) -> str:
    reply = given[sample] if isinstance(given, list) and given else given
    if not isinstance(reply, str):
        raise ValueError(f"'generated_text' is {shown(given)}, not a list of texts")
    return reply


def _planned(trials: Iterable[Recorded]) -> Planned:
    """Return what a file holds: it says nothing of what it was to hold."""
    planned: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for one in trials:
        tasks = (
            planned.setdefault(one.model.alias, {}).setdefault(one.condition.name, {}).setdefault(NAME, {})
        )
        tasks[one.draft.task] = tasks.get(one.draft.task, 0) + 1
    return planned


# ── replies, out ─────────────────────────────────────────────────────────────────────────────


def file_name(part: ExportedPart) -> str:
    """Return the name of a file of trials of a sweep."""
    return f"{quote(part.model, safe='')}{part.suffix}{ENDING}"


def texts(rows: list[Row], _planned: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines of a file; replies that were read from one line are one again."""
    for _, of_a_line in groupby(filter(_replied, rows), key=_Lines()):
        yield json.dumps(_line(list(of_a_line))) + "\n"


def notes(rows: list[Row]) -> list[str]:
    """Return what this format cannot say as it is."""
    failed = sum(row["failed"] for row in rows)
    said = f"{failed:,} trials without a reply are left out, for want of a place"
    return ([said] if failed else []) + unsaid(rows, lambda _: {"style"})


def _replied(row: Row) -> bool:
    return not row["failed"]


class _Lines:
    """Numbers the lines of a file: each of our own replies has one, recorded ones share theirs as before."""

    def __init__(self) -> None:
        self._line = 0

    def __call__(self, row: Row) -> int:
        self._line += not (row["accounting"] and row["accounting"]["sample"])
        return self._line


def _line(rows: list[Row]) -> Row:
    first = rows[0]
    task = next(
        one
        for one in TASKS.values()
        if (one.task, one.variant, one.representation)
        == (first["task"], first["variant"], first["representation"])
    )
    said = {
        "task": task.name,
        "digit": first["length"],
        "generated_text": [row["reply_text"] for row in rows],
        "groundtruth": first["expected"],
        "question": first["question"],
        "style": first["style"],
        "simulated": True,
    }
    recorded = first["accounting"]
    ours = set(recorded["ours"] if recorded else OURS if first["simulated"] else OURS[:-1])
    return {key: value for key, value in said.items() if key not in OURS or key in ours}
