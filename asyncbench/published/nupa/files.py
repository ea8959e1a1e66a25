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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate, chain, groupby, zip_longest
from operator import itemgetter
from os import PathLike
from pathlib import Path
from reprlib import repr as shown

from asyncbench.errors import ConfigError
from asyncbench.files import local, writing
from asyncbench.problems.making import write_problems
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.problems.schema import identified
from asyncbench.published.files import (
    Fields,
    FileFormat,
    Recorded,
    RecordedRun,
    Row,
    check_file,
    content,
    counted,
    flag,
    lines,
    mapping,
    model_of,
    parsed,
    required,
    run_of,
    sifted,
    text,
    unsaid,
)
from asyncbench.records import Condition, Draft, Reply
from asyncbench.suites.numbers import parts
from asyncbench.suites.nupa.generation import draft_nupa
from asyncbench.suites.nupa.suite import MOST, STYLES
from asyncbench.suites.nupa.tasks import BASE_TASKS, FORMAT, TASKS, NupaTask, task_of, template
from asyncbench.suites.suite import whole_number

NAME = "nupa"
ENDING = ".jsonl"
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
    """Make a problem set from the published test set of NUPA, with tasks and lengths in turns.

    Args:
        file: the published test set (JSON).
        out: the problem set to write (Parquet).

    Returns:
        An `ImportedProblems`, with the number of problems.

    Raises:
        ConfigError: The file cannot be read or holds nothing usable, or `out` cannot be a file.
        StoreError: `out` cannot be written.
    """
    file, out = local(file), local(out)
    check_file(file)
    left_out: list[str] = []
    try:
        tasks = mapping(parsed(content(file)), "a test set: task → length → problems")
        drafts = list(_drafts(file, tasks, left_out))
    except ValueError as error:
        raise ConfigError(f"{file}: {error}") from None
    if not drafts:
        raise ConfigError(f"Nothing can be imported: {next(iter(left_out), f'{file} has no problems')}")
    problems = write_problems(identified(drafts), out, writing=writing)
    return ImportedProblems(problems=problems, left_out=tuple(left_out))


def _drafts(file: Path, tasks: Fields, left_out: list[str]) -> Iterator[Draft]:
    """Yield usable drafts in balanced order, and note the rest."""
    cells = list[list[tuple[str, str, str, object]]]()
    for name, lengths in tasks.items():
        for length, entries in mapping(lengths, f"what {shown(name)} holds, length → problems").items():
            if not isinstance(entries, list):
                raise ValueError(f"{shown(entries)} is not a list of problems")
            origin = f"{file}, {name}, {length}"
            cells.append([(f"{origin}[{i}]", name, length, entry) for i, entry in enumerate(entries)])
    for origin, name, length, entry in filter(None, chain.from_iterable(zip_longest(*cells))):
        try:
            if not isinstance(entry, str) or "=" not in entry:
                raise ValueError(f"{shown(entry)} is not a question with an answer behind its =")
            question, _, answer = entry.partition("=")
            yield _draft(_task(name), _length(length), f"{question}=", answer.strip())
        except ValueError as error:
            left_out.append(f"{origin}: {error}")


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
    made = Draft(
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
    match = next(filter(None, (form.fullmatch(question) for form in _forms(task))), None)
    # operands of which the task makes nothing are let go: it is the answer that counts
    with suppress(ValueError, ArithmeticError, IndexError):
        made = draft_nupa(task, match.groups(), profile=PROFILE, expected=answer) if match else made
    return replace(made, length=length, question=question, expected=answer)


@cache
def _forms(task: NupaTask) -> tuple[re.Pattern[str], ...]:
    """Return how a task asks in each profile, with its format prompt or without."""
    operands = ("\0",) * (1 if task.second is None else 2)
    questions = (re.escape(template(task, profile) % operands) for profile in (PROFILE, "fixed"))
    before = re.escape(f"{FORMAT[task.answer_type]} ")
    return tuple(
        re.compile(f"(?:{before})?{form.removeprefix(before)}".replace("\0", r"(\S+)"))
        for form in dict.fromkeys(questions)
    )


# ── replies, in ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class HowAsked:
    """How the questions of a file of replies were asked, and of whom, as its lines do not say."""

    style: str
    shots: int = 0  # worked examples
    condition: str = ""  # the name of the condition; empty: made of style and shots
    model: str = ""  # empty: that of the run

    def condition_in(self, style: str) -> Condition:
        """Return the condition of a reply in a style."""
        name = self.condition or (f"{self.shots}-shot" if self.shots else style)
        return Condition(name=name, style=style, described={"shots": self.shots} if self.shots else {})


def reader(options: Mapping[str, object]) -> Callable[[Path], RecordedRun]:
    """Return a reader of files of replies, to questions asked as `HowAsked` has it, `chat` by default.

    Raises:
        ConfigError: there is no such style, or something else was given.
    """
    style = options.get("style", STYLES[0])
    if unknown := sorted(options.keys() - set(HowAsked.__slots__)):
        raise ConfigError(f"import nupa: leave out {', '.join(unknown)}. The files hold their own plan.")
    if style not in STYLES:
        raise ConfigError(f"import nupa: style {style!r} is unknown. Choose one of: {', '.join(STYLES)}")
    shots = whole_number(0, MOST)
    try:
        examples = shots(options.get("shots", 0))
    except ValueError as error:
        raise ConfigError(f"import nupa: shots: {options['shots']!r} {error}") from None
    names = {name: str(options.get(name, "")) for name in ("condition", "model")}
    return partial(read, how=HowAsked(style=str(style), shots=examples, **names))


def read(path: Path, *, how: HowAsked) -> RecordedRun:
    """Read a file. Lines that cannot be used are left out, each with the reason.

    Raises:
        ConfigError: the file cannot be read.
    """
    run = run_of(path, ENDING)
    how = replace(how, model=how.model or run)
    trials, left_out = sifted(_entries(path), partial(_recorded, how=how, ended_at=path.stat().st_mtime))
    planned = counted((trial.model, trial.condition, trial.draft) for trial in trials)
    return RecordedRun(run=run, path=path, trials=trials, left_out=left_out, planned=planned)


def _entries(path: Path) -> Iterator[tuple[str, tuple[object, int, int]]]:
    """Yield each reply: its line, or the complaint that it is no JSON; and which of how many it holds."""
    for origin, line in lines(path):
        value: object
        try:
            value = parsed(line)
        except ValueError as error:
            value = error
        replies = value.get("generated_text") if isinstance(value, dict) else None
        samples = max(1, len(replies)) if isinstance(replies, list) else 1
        for sample in range(samples):
            yield origin, (value, sample, samples)


def _recorded(entry: tuple[object, int, int], *, how: HowAsked, ended_at: float) -> Recorded:
    line, sample, samples = entry
    if isinstance(line, ValueError):
        raise line
    fields = mapping(line, "a reply")
    task = _task(text(fields, "task"))
    question = text(fields, "question") if "question" in fields else NO_QUESTION
    reply_style = text(fields, "style") if "style" in fields else how.style
    if reply_style not in STYLES:
        raise ValueError(f"'style' is {shown(reply_style)}, none of {', '.join(STYLES)}")
    truth = text(fields, "groundtruth").strip()
    generated = required(fields, "generated_text")
    reply = generated[sample] if isinstance(generated, list) and generated else generated
    if not isinstance(reply, str):
        raise ValueError(f"'generated_text' is {shown(generated)}, not a list of texts")
    ours = [key for key in OURS if key in fields]
    return Recorded(
        draft=_draft(task, _length(required(fields, "digit")), question, truth),
        model=model_of({"model": how.model}, simulated=flag(fields, "simulated")),
        condition=how.condition_in(reply_style),
        reply=Reply(text=reply, http_status=None),
        accounting={"sample": sample, "samples": samples, "ours": ours},
        ended_at=ended_at,
        timed=False,
    )


# ── replies, out ─────────────────────────────────────────────────────────────────────────────


def texts(rows: list[Row], _planned: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines of a file; replies that were read from one line are one again."""
    replied = [row for row in rows if not row["failed"]]
    # Each of our own replies begins a line, and so does the first sample of a recorded one.
    numbers = accumulate(not (row["accounting"] and row["accounting"]["sample"]) for row in replied)
    for _, numbered in groupby(zip(numbers, replied, strict=True), key=itemgetter(0)):
        samples = [row for _, row in numbered]
        first = samples[0]
        fields = {
            "task": task_of(first["task"], first["variant"], first["representation"]).name,
            "digit": first["length"],
            "generated_text": [row["reply_text"] for row in samples],
            "groundtruth": first["expected"],
            "question": first["question"],
            "style": first["style"],
            "simulated": True,
        }
        recorded = first["accounting"]
        ours = set(recorded["ours"] if recorded else OURS if first["simulated"] else OURS[:-1])
        line = {key: value for key, value in fields.items() if key not in OURS or key in ours}
        yield json.dumps(line) + "\n"


def notes(rows: list[Row]) -> list[str]:
    """Return notes on what this format cannot hold as it is."""
    failed = sum(row["failed"] for row in rows)
    note = f"{failed:,} trials without a reply are left out, for want of a place"
    return ([note] if failed else []) + unsaid(rows, lambda _: {"style"})


FILES = FileFormat(ending=ENDING, suites=(NAME,), tasks=BASE_TASKS, reader=reader, texts=texts, notes=notes)
