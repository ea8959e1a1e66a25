"""What a simulated model says: the part in which models differ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from asyncbench.simulator.answers import Answerer
from asyncbench.simulator.questions import Questions
from asyncbench.simulator.thinking import reasoning_of
from asyncbench.simulator.wire import RefusedError, Why, WireAnswer, WireRequest, answer_of


def _nothing() -> None:
    """Have nothing to take back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one call gets, unless its limits or a fault are against it."""

    answer: WireAnswer  # of a failure: what it counts against the limits
    failed: bool = False  # the call ends as a failure of the server, not with the answer
    give_back: Callable[[], None] = _nothing  # to be called when no complete answer reached the client


class Voice(Protocol):
    """Where a model's answers come from."""

    def knows(self, question: str) -> bool:
        """Tell whether there is an answer to a question."""
        ...

    def take(self, asked: WireRequest) -> Taken:
        """Return what a call gets.

        Raises:
            RefusedError: the model has no answer to this question.
        """
        ...


class MadeUp:
    """Answers from what is right, by the seed, the model's name and the question alone."""

    def __init__(self, name: str, answerer: Answerer, questions: Questions, *, seed: int) -> None:
        self._answerer, self._questions = answerer, questions
        self._seed = f"{seed}/{name}"

    def knows(self, question: str) -> bool:
        return self._questions.find(question) is not None

    def take(self, asked: WireRequest) -> Taken:
        if (known := self._questions.find(asked.question)) is None:
            raise RefusedError(
                Why.UNKNOWN_QUESTION,
                f"The last user message, {asked.question[:80]!r}, is none of the {len(self._questions)} "
                "questions that this simulator knows; start it with their problem set.",
            )
        seed = f"{self._seed}/{asked.question}"
        reasoning = reasoning_of(asked.think_tokens, seed) if asked.think_tokens else ""
        # what completes a text goes on after its end: behind an = with a space, as base models do
        space = " " if asked.without_roles and asked.question.endswith("=") else ""
        return Taken(answer=answer_of(asked, space + self._answerer(known, seed), reasoning))
