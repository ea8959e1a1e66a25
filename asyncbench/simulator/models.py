"""The models of a server: wire formats by path, models by name."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from asyncbench.simulator.answers import MODELS, AnswerSource, MadeUp, Replay, answerer
from asyncbench.simulator.anthropic_wire import ANTHROPIC
from asyncbench.simulator.asked import questions_in, tails
from asyncbench.simulator.openai_wire import CHAT, COMPLETIONS
from asyncbench.simulator.questions import Questions
from asyncbench.simulator.recordings import Recording
from asyncbench.simulator.responses_wire import RESPONSES
from asyncbench.simulator.served import Served
from asyncbench.simulator.settings import Settings
from asyncbench.simulator.vendors import OWN, VENDORS, split
from asyncbench.simulator.wire import RefusedError, VendorWays, VendorWire, Why, WireRequest

WIRES: Mapping[str, VendorWire] = {
    "/v1/chat/completions": CHAT,
    "/chat/completions": CHAT,
    "/v1/completions": COMPLETIONS,
    "/completions": COMPLETIONS,
    "/v1/responses": RESPONSES,
    "/responses": RESPONSES,
    "/v1/messages": ANTHROPIC,
    "/messages": ANTHROPIC,
}


class ServedModels:
    """The models of a server; one that was asked before is the same one again, by a batch as by a call."""

    def __init__(
        self, settings: Settings, questions: Questions, recordings: Mapping[str, Sequence[Recording]]
    ) -> None:
        self._settings, self._questions = settings, questions
        self.ways = VENDORS[settings.like or OWN]
        self._recordings = recordings  # what each name may mean
        clear = sorted(name for name, candidates in recordings.items() if len(candidates) == 1)
        self.names = tuple(dict.fromkeys([*MODELS, *clear]))
        self.models: dict[str, Served] = {}

    def model(self, name: str) -> Served:
        """Return the model of a name.

        Raises:
            RefusedError: there is none, or the name means several recordings.
        """
        if name not in self.models:
            ways, source = self._played(name)
            self.models[name] = Served(name, source, ways, self._settings, at_s=time.monotonic())
        return self.models[name]

    def _played(self, name: str) -> tuple[VendorWays, AnswerSource]:
        """Return how and by whom a name is played; a name that is known whole is never taken apart."""
        if (source := self._source(name)) is not None:
            return self.ways, source
        ways, rest = split(name)
        if ways is not None and (source := self._source(rest)) is not None:
            return ways, source
        raise RefusedError(
            Why.NO_SUCH_MODEL,
            f"No model {name!r}; there are: {', '.join(self.names)}, and noisy-2, …, each as any provider "
            f"would play it: {OWN}:noisy, …. Providers: {', '.join(VENDORS)}.",
        )

    def _source(self, name: str) -> AnswerSource | None:
        # A recording of `noisy-2` is meant by that name; `noisy` itself is always the simulator's own.
        if name not in MODELS and name in self._recordings:
            return Replay(_the_one(name, self._recordings[name]))
        if (play := answerer(name)) is None:
            return None
        return MadeUp(name, play, self._questions, seed=self._settings.seed)


def _the_one(name: str, recordings: Sequence[Recording]) -> Recording:
    if len(recordings) > 1:
        places = "; ".join(recording.place for recording in recordings)
        raise RefusedError(
            Why.NO_SUCH_MODEL,
            f"The name {name!r} stands for {len(recordings)} recordings: {places}. Ask for a run that holds "
            "one model by the run's name, or start the simulator with fewer folders.",
        )
    return recordings[0]


def with_known_question(request: WireRequest, source: AnswerSource) -> WireRequest:
    """Return the request with its question: in a suite's words, at the end of a prompt, in a template."""
    knows = partial(source.knows, digits=request.digits)
    if knows(request.question):
        return request
    candidates = [
        *questions_in(request.question),
        *(tails(request.question) if request.without_roles else ()),
    ]
    question = next(filter(knows, candidates), None) or source.found_in(request)
    return request if question is None else replace(request, question=question)
