"""Recorded replies, served again: the nth complete answer to a question is its nth record."""

from collections import defaultdict
from functools import partial

from asyncbench.simulator.questions import digest
from asyncbench.simulator.recordings import Record, Recording
from asyncbench.simulator.speakers import Taken
from asyncbench.simulator.wire import RefusedError, Why, WireAnswer, WireRequest, tokens


class Replay:
    """Serves one recording under one name, each question from its first record to its last.

    A record that was taken is delivered unless it is given back, and so never out on two calls at once.
    When none is left the last is repeated.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._gone = defaultdict[bytes, set[int]](set)  # of each question: delivered, or out on a call

    def knows(self, question: str) -> bool:
        return digest(question) in self._recording.records

    def take(self, asked: WireRequest) -> Taken:
        question = digest(asked.question)
        if (records := self._recording.records.get(question)) is None:
            raise RefusedError(Why.UNKNOWN_QUESTION, self._unknown(asked))
        gone = self._gone[question]
        left = (place for place in range(len(records)) if place not in gone)
        if (place := next(left, None)) is None:
            return Taken(answer=recorded(records[-1], asked), failed=records[-1].failed)
        gone.add(place)
        return Taken(
            answer=recorded(records[place], asked),
            failed=records[place].failed,
            give_back=partial(gone.discard, place),
        )

    def _unknown(self, asked: WireRequest) -> str:
        return (
            f"The last user message, {asked.question[:80]!r}, is none of the {len(self._recording.records)} "
            f"questions that were recorded of model {asked.model!r} in {self._recording.place}; ask what was "
            "asked there."
        )


def recorded(record: Record, asked: WireRequest) -> WireAnswer:
    """Make the answer that was recorded, never cut anew; tokens that nobody told are estimated."""
    input_tokens, output_tokens = record.input_tokens, record.output_tokens
    return WireAnswer(
        model=asked.model,
        text=record.text,
        reasoning=record.reasoning,
        cut=record.cut,
        input_tokens=tokens(asked.prompt_characters) if input_tokens is None else input_tokens,
        output_tokens=_estimate(record) if output_tokens is None else output_tokens,
        reasoning_tokens=record.reasoning_tokens or 0,
    )


def _estimate(record: Record) -> int:
    thought = tokens(len(record.reasoning)) if record.reasoning else 0
    return thought + tokens(len(record.text))
