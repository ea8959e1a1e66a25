"""Answers of a simulated model: made up from the right one, or recorded in earlier runs."""

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.recorded import recorded_answers, recorded_runs
from asyncbench.records import Outcome, says_cut
from asyncbench.simulator.asked import reasoning_of, story_of
from asyncbench.simulator.questions import KnownAnswer, Questions, digest, rows
from asyncbench.simulator.wire import RefusedError, Why, WireAnswer, WireRequest, answer_of, tokens
from asyncbench.suites.numbers import rewritten
from asyncbench.suites.nupa.execution import AskedRule, asked_rule, written_execution
from asyncbench.suites.thinking import split_thinking

# ── what was recorded, and its names ─────────────────────────────────────────────────────────

ROWS = 4096  # held as Python objects at a time
ORDER = ("finished_at", "repeat", "trial_id")  # the last: imported trials may have finished all at once
COLUMNS = (
    *("run", "model", "problem_set", "problem_id", *ORDER),
    *("outcome", "reply_text", "reasoning_text", "finish_reason"),
    *("input_tokens", "output_tokens", "reasoning_tokens"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """How one trial ended."""

    failed: bool  # without a reply
    text: str
    reasoning: str = ""
    cut: bool  # the provider said so
    input_tokens: int | None  # None: the provider did not say
    output_tokens: int | None
    reasoning_tokens: int | None = None
    seconds: float | None = None  # that the call took; None: not known, or not to be repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one model answered in one run."""

    folder: Path
    run: str
    model: str  # the alias
    records: Mapping[bytes, Sequence[Record]]  # digest of a question → its records, the earliest first

    @property
    def place(self) -> str:
        """The place where it was recorded, for a person."""
        return f"run {self.run!r} of {self.folder}"


def read_recordings(folders: Sequence[Path]) -> tuple[Recording, ...]:
    """Read all recordings of results folders and files; a trial whose problem is not found is left out.

    Raises:
        ConfigError: a folder is not a results folder, is named twice or holds no finished trial.
        ProblemSetError: the problems of a whole problem set are not in its folder, or a file holds no
            recorded answers.
        StoreError: a folder cannot be read.
    """
    for folder, times in Counter(folder.resolve() for folder in folders).items():
        if times > 1:  # every name in it would be ambiguous
            raise ConfigError(f"simulator: replay names {folder} {times} times; name it once")
    return tuple(
        recording
        for folder in folders
        for recording in (_file_recordings if folder.suffix == ".parquet" else _folder_recordings)(folder)
    )


def recordings_by_name(recordings: Sequence[Recording]) -> dict[str, list[Recording]]:
    """Return the recordings that each name may mean: a run of one model, else an alias.

    Only a name with one recording is clear. A run's name comes before an alias.
    """
    aliases, runs = defaultdict[str, list[Recording]](list), defaultdict[str, list[Recording]](list)
    models = Counter((recording.folder, recording.run) for recording in recordings)
    for recording in recordings:
        aliases[recording.model].append(recording)
        if models[recording.folder, recording.run] == 1:
            runs[recording.run].append(recording)
    return aliases | runs


def _file_recordings(path: Path) -> Iterator[Recording]:
    """Yield the runs of a file of recorded answers."""
    records = defaultdict[str, defaultdict[bytes, list[Record]]](lambda: defaultdict(list))  # by run
    for answered in recorded_answers(path):
        records[answered.run][digest(answered.draft.question)].append(
            Record(
                failed=answered.failed,
                text=answered.text,
                cut=False,
                input_tokens=answered.input_tokens,
                output_tokens=answered.output_tokens,
                seconds=answered.seconds,
            )
        )
    for run in recorded_runs(path):
        yield Recording(folder=path, run=run.run, model=run.model, records=records[run.run])


def _folder_recordings(folder: Path) -> Iterator[Recording]:
    """Yield the runs of a results folder."""
    questions = {  # of the folder's copies of problem sets
        row["problem_id"]: digest(row["question"])
        for path in sorted((folder / "problems").glob("*.parquet"))
        for row in rows(path, ["problem_id", "question"])
    }
    by_run: defaultdict[tuple[str, str], defaultdict[bytes, list[tuple[Any, Record]]]]
    by_run = defaultdict(lambda: defaultdict(list))  # by question: its records with what orders them
    for row in _replayable(folder, questions):
        text, reasoning = row["reply_text"] or "", row["reasoning_text"] or ""
        record = Record(
            failed=row["outcome"] == Outcome.FAILED,
            text=text,
            reasoning="" if reasoning == split_thinking(text).thought else reasoning,  # it stands in the text
            cut=says_cut(row["finish_reason"]),
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
            reasoning_tokens=row["reasoning_tokens"],
        )
        order = tuple(row[name] for name in ORDER)
        by_run[row["run"], row["model"]][questions[row["problem_id"]]].append((order, record))
    for (run, model), by_question in sorted(by_run.items()):
        records = {
            question: [record for _, record in sorted(ordered, key=itemgetter(0))]
            for question, ordered in by_question.items()
        }
        yield Recording(folder=folder, run=run, model=model, records=records)


def _replayable(folder: Path, questions: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    """Yield the trials whose question is known, as rows of `COLUMNS`."""
    # Half the time and memory that a simulator needs to start, and most replay nothing.
    from asyncbench.store.catalog import read_trials

    trials = read_trials(folder, COLUMNS)
    if not len(trials):
        raise ConfigError(
            f"simulator: replay: {folder} holds no finished trial; name the folder of a run that got answers"
        )
    with_question = pc.is_in(trials["problem_id"], value_set=pa.array(list(questions), pa.string()))
    replayable = trials.filter(with_question)
    problem_sets, replayable_sets = (
        set(table["problem_set"].unique().to_pylist()) for table in (trials, replayable)
    )
    if lost := problem_sets - replayable_sets:
        raise ProblemSetError(
            f"{folder}: its trials cannot be replayed without their questions, and no file in "
            f"{folder / 'problems'} holds those of problem set {', '.join(sorted(map(repr, lost)))}; put the "
            "copy back that the run made there, or name a folder that has its problems"
        )
    for batch in replayable.to_batches(ROWS):
        yield from batch.to_pylist()


# ── what is made up, from what is right ──────────────────────────────────────────────────────

LENGTH_SCALE = 30.0  # `noisy` is right on exp(-length / LENGTH_SCALE) of the problems of a length
EMPTY_SHARE = 0.02  # of its wrong answers
DECORATED_SHARE = 0.1  # of its right answers: graders must read an answer out of a sentence, too

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?(/\d+)?")
_MANTISSA = re.compile(r"\d+(\.\d+)?")
LONGEST_EXECUTION = 20_000  # lines of a rule that is carried out
_VALUE = re.compile(r"\w+ = \d+")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

Answerer = Callable[[KnownAnswer, str], str]  # the known answer, and the text that seeds its random draws


def oracle(right: KnownAnswer, _seed: str) -> str:
    """Answer right, always."""
    return right.expected


def noisy(right: KnownAnswer, seed: str) -> str:
    """Answer wrong more often the longer the problem is, in the way that models get numbers wrong."""
    draw = random.Random(seed)
    if draw.random() < math.exp(-right.length / LENGTH_SCALE):
        return f"The answer is {right.expected}." if draw.random() < DECORATED_SHARE else right.expected
    if draw.random() < EMPTY_SHARE:
        return ""
    return mistaken(right.expected, draw)


# `noisy-2` is `noisy` under another name: it errs on other problems.
MODELS: Mapping[str, Answerer] = {"oracle": oracle, "noisy": noisy}


def answerer(model: str) -> Answerer | None:
    """Return how the model of this name answers, or None if there is no such model."""
    family, dash, suffix = model.partition("-")
    return None if dash and not suffix else MODELS.get(family)


def mistaken(expected: str, draw: random.Random) -> str:
    """Return an answer near the expected one that is never equal to it, in value or in text."""
    if _NUMBER.fullmatch(expected) is None:  # a text has another letter in it
        index = draw.randrange(len(expected)) if expected else 0
        letter = expected[index : index + 1].lower()
        wrong = draw.choice([candidate for candidate in _LETTERS if candidate != letter])
        return expected[:index] + wrong + expected[index + 1 :]
    # Only the mantissa or numerator: a change there always changes the value, one elsewhere may not.
    start, end = _MANTISSA.search(expected).span()  # type: ignore[union-attr]  # every number holds one
    right = wrong = expected[start:end]

    # Slips of the pen in random order, the last of which surely changes the value.
    indices = [index for index, character in enumerate(right) if character != "."]
    for slip in (*draw.sample(["dropped", "swapped", "carry lost", "changed"], k=4), "changed"):
        wrong = _slip(slip, right, draw.choice(indices), draw)
        if wrong and Decimal(wrong) != Decimal(right):
            break
    return expected[:start] + wrong + expected[end:]


def carried_out(
    asked: AskedRule, answer: str, expected: str, draw: random.Random, max_tokens: int | None
) -> str:
    """Return an answer behind the execution of its rule, in which one value is wrong if the answer is."""
    most = LONGEST_EXECUTION if max_tokens is None else min(max_tokens, LONGEST_EXECUTION)
    lines = written_execution(*asked, most=most)
    if expected in answer:
        return "\n".join([*lines, f"So the answer is {expected}."])
    values = [n for n, line in enumerate(lines) if _VALUE.fullmatch(line)]
    if values:
        n = draw.choice(values)
        name, _, value = lines[n].partition(" = ")
        lines[n] = f"{name} = {mistaken(value, draw)}"
    return "\n".join([*lines, f"So the answer is {answer}."])


def _slip(slip: str, digits: str, index: int, draw: random.Random) -> str:
    """Return a number with a slip at one of its digits; empty: this digit cannot have it."""
    before, after = digits[:index], digits[index + 1 :]
    if slip == "dropped":
        return before + after if _MANTISSA.fullmatch(before + after) else ""
    if slip == "swapped":
        pair = digits[index : index + 2]
        return before + pair[::-1] + digits[index + 2 :] if pair.isdigit() else ""
    added = -1 if slip == "carry lost" else draw.randint(1, 9)
    return f"{before}{(int(digits[index]) + added) % 10}{after}"


# ── sources ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The answer for one call, before its limits and faults are asked."""

    answer: WireAnswer  # of a failure: what it counts against the limits
    failed: bool = False  # the call ends as a failure of the server, not with the answer
    seconds: float | None = None  # that the recorded call took; None: not known
    give_back: Callable[[], object] = lambda: None  # to be called when no complete answer reached the client


class MadeUp:
    """Answers from what is right, by the seed, the model's name and the question alone."""

    def __init__(self, name: str, answerer: Answerer, questions: Questions, *, seed: int) -> None:
        self._answerer, self._questions = answerer, questions
        self._seed = f"{seed}/{name}"

    def knows(self, question: str, digits: tuple[str, ...] = ()) -> bool:
        """Tell whether there is an answer to a question, with its numbers in these forms."""
        return self._questions.find(question, digits) is not None

    def question_in(self, request: WireRequest, /) -> str | None:
        """Return the problem that a message asks, or None if it asks none or problems are not looked up."""
        return self._questions.find_inside(request.question, request.digits)

    def take(self, request: WireRequest, worse: float = 0.0, /) -> Taken:
        """Return the reply of a call; `worse`: the share of questions whose made-up answers are spoilt.

        Raises:
            RefusedError: the model has no answer to this question.
        """
        if request.ignore_eos and request.max_tokens is not None:  # whatever is asked
            return Taken(answer=answer_of(request, story_of(request.max_tokens)))
        if (right := self._questions.find(request.question, request.digits)) is None:
            raise RefusedError(
                Why.UNKNOWN_QUESTION,
                f"The last user message, {request.question[:80]!r}, is none of the {len(self._questions)} "
                "questions that this simulator knows; start it with their problem set.",
            )
        seed = f"{self._seed}/{request.question}"
        reasoning = reasoning_of(request.think_tokens, seed) if request.think_tokens else ""
        # what completes a text goes on after its end: behind an = with a space, as base models do
        space = " " if request.without_roles and request.question.endswith("=") else ""
        spoilt = worse and (draw := random.Random(f"{seed}/worse")).random() < worse
        text = mistaken(right.expected, draw) if spoilt else self._answerer(right, seed)
        message = next((each.content for each in reversed(request.messages) if each.role == "user"), "")
        if text and (asked := asked_rule(message)) is not None:
            text = carried_out(asked, text, right.expected, random.Random(f"{seed}/rule"), request.max_tokens)
        # Mistakes are made in plain digits: in another form, a slip might change no digit.
        return Taken(answer=answer_of(request, space + rewritten(text, request.digits), reasoning))


class Replay:
    """Serves one recording under one name, each question from its first record to its last.

    A record that was taken is delivered unless it is given back, and so never out on two calls at once.
    When none is left the last is repeated.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._gone = defaultdict[bytes, set[int]](set)  # by question: records delivered, or out on a call

    def knows(self, question: str, digits: tuple[str, ...] = ()) -> bool:
        return not digits and digest(question) in self._recording.records

    def question_in(self, _request: WireRequest, /) -> str | None:
        return None

    def take(self, request: WireRequest, _worse: float = 0.0, /) -> Taken:
        question = digest(request.question)
        if (records := self._recording.records.get(question)) is None:
            raise RefusedError(
                Why.UNKNOWN_QUESTION,
                f"The last user message, {request.question[:80]!r}, is none of the "
                f"{len(self._recording.records)} questions that were recorded of model {request.model!r} in "
                f"{self._recording.place}; ask what was asked there.",
            )
        gone = self._gone[question]
        unused = (index for index in range(len(records)) if index not in gone)
        if (index := next(unused, None)) is None:
            return _taken(records[-1], request)
        gone.add(index)
        return replace(_taken(records[index], request), give_back=partial(gone.discard, index))


AnswerSource = MadeUp | Replay


def _taken(record: Record, request: WireRequest) -> Taken:
    """Return the answer that was recorded, never cut anew; tokens that nobody told are estimated."""
    input_tokens, output_tokens = record.input_tokens, record.output_tokens
    estimated = tokens(len(record.text)) + (tokens(len(record.reasoning)) if record.reasoning else 0)
    answer = WireAnswer(
        model=request.model,
        text=record.text,
        reasoning=record.reasoning,
        cut=record.cut,
        input_tokens=tokens(request.prompt_characters) if input_tokens is None else input_tokens,
        output_tokens=estimated if output_tokens is None else output_tokens,
        reasoning_tokens=record.reasoning_tokens or 0,
    )
    return Taken(answer=answer, failed=record.failed, seconds=record.seconds)
