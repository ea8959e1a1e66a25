"""What a simulated model says: made up from what is right, or recorded in earlier runs."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Protocol

from asyncbench.simulator.answers import Answerer, mistaken
from asyncbench.simulator.asked import reasoning_of
from asyncbench.simulator.questions import Questions, digest
from asyncbench.simulator.recordings import Record, Recording
from asyncbench.simulator.wire import RefusedError, Why, WireAnswer, WireRequest, answer_of, tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one call gets, unless its limits or a fault are against it."""

    answer: WireAnswer  # of a failure: what it counts against the limits
    failed: bool = False  # the call ends as a failure of the server, not with the answer
    seconds: float | None = None  # that the recorded call took; None: not known
    give_back: Callable[[], object] = lambda: None  # to be called when no complete answer reached the client


class Voice(Protocol):
    """Where a model's answers come from."""

    def knows(self, question: str, digits: tuple[str, ...] = ()) -> bool:
        """Tell whether there is an answer to a question, with its numbers in these forms."""
        ...

    def found_in(self, asked: WireRequest, /) -> str | None:
        """Return the known question that a message holds; None: it holds none, or nobody looked."""
        ...

    def take(self, asked: WireRequest, worse: float = 0.0, /) -> Taken:
        """Return what a call gets; `worse`: the share of questions whose answers are spoilt, if made up.

        Raises:
            RefusedError: the model has no answer to this question.
        """
        ...


class MadeUp:
    """Answers from what is right, by the seed, the model's name and the question alone."""

    def __init__(self, name: str, answerer: Answerer, questions: Questions, *, seed: int) -> None:
        self._answerer, self._questions = answerer, questions
        self._seed = f"{seed}/{name}"

    def knows(self, question: str, digits: tuple[str, ...] = ()) -> bool:
        return self._questions.find(question, digits) is not None

    def found_in(self, asked: WireRequest, /) -> str | None:
        return self._questions.within(asked.question, asked.digits)

    def take(self, asked: WireRequest, worse: float = 0.0, /) -> Taken:
        if (known := self._questions.find(asked.question, asked.digits)) is None:
            raise RefusedError(
                Why.UNKNOWN_QUESTION,
                f"The last user message, {asked.question[:80]!r}, is none of the {len(self._questions)} "
                "questions that this simulator knows; start it with their problem set.",
            )
        seed = f"{self._seed}/{asked.question}"
        reasoning = reasoning_of(asked.think_tokens, seed) if asked.think_tokens else ""
        # what completes a text goes on after its end: behind an = with a space, as base models do
        space = " " if asked.without_roles and asked.question.endswith("=") else ""
        spoilt = worse and (draw := Random(f"{seed}/worse")).random() < worse
        text = mistaken(known.expected, draw) if spoilt else self._answerer(known, seed)
        return Taken(answer=answer_of(asked, space + text, reasoning))


class Replay:
    """Serves one recording under one name, each question from its first record to its last.

    A record that was taken is delivered unless it is given back, and so never out on two calls at once.
    When none is left the last is repeated.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._gone = defaultdict[bytes, set[int]](set)  # of each question: delivered, or out on a call

    def knows(self, question: str, digits: tuple[str, ...] = ()) -> bool:
        return not digits and digest(question) in self._recording.records

    def found_in(self, _asked: WireRequest, /) -> str | None:
        return None

    def take(self, asked: WireRequest, _worse: float = 0.0, /) -> Taken:
        question = digest(asked.question)
        if (records := self._recording.records.get(question)) is None:
            raise RefusedError(Why.UNKNOWN_QUESTION, self._unknown(asked))
        gone = self._gone[question]
        left = (place for place in range(len(records)) if place not in gone)
        if (place := next(left, None)) is None:
            return _taken(records[-1], asked)
        gone.add(place)
        return replace(_taken(records[place], asked), give_back=partial(gone.discard, place))

    def _unknown(self, asked: WireRequest) -> str:
        return (
            f"The last user message, {asked.question[:80]!r}, is none of the {len(self._recording.records)} "
            f"questions that were recorded of model {asked.model!r} in {self._recording.place}; ask what was "
            "asked there."
        )


def _taken(record: Record, asked: WireRequest) -> Taken:
    return Taken(answer=recorded(record, asked), failed=record.failed, seconds=record.seconds)


def recorded(record: Record, asked: WireRequest) -> WireAnswer:
    """Make the answer that was recorded, never cut anew; tokens that nobody told are estimated."""
    input_tokens, output_tokens = record.input_tokens, record.output_tokens
    estimated = tokens(len(record.text)) + (tokens(len(record.reasoning)) if record.reasoning else 0)
    return WireAnswer(
        model=asked.model,
        text=record.text,
        reasoning=record.reasoning,
        cut=record.cut,
        input_tokens=tokens(asked.prompt_characters) if input_tokens is None else input_tokens,
        output_tokens=estimated if output_tokens is None else output_tokens,
        reasoning_tokens=record.reasoning_tokens or 0,
    )
