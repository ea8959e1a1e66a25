"""The HTTP server: one request in, one page out, everything counted."""

import itertools
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import orjson
from aiohttp import web

from asyncbench.simulator.answers import MODELS, answerer
from asyncbench.simulator.anthropic_wire import ANTHROPIC
from asyncbench.simulator.counts import ServerStats, Tally, Visit
from asyncbench.simulator.delivery import DELIVERIES, Page, whole
from asyncbench.simulator.faults import FaultKind
from asyncbench.simulator.openai_wire import OPENAI
from asyncbench.simulator.questions import Questions
from asyncbench.simulator.recordings import Recording
from asyncbench.simulator.replay import Replay
from asyncbench.simulator.served import Served
from asyncbench.simulator.settings import Settings
from asyncbench.simulator.voice import MadeUp, Voice
from asyncbench.simulator.wire import Answer, Json, RefusedError, Why, Wire

HEADERS = {"content-type": "application/json", "server": "asyncbench", "x-simulated": "asyncbench"}

WIRES: Mapping[str, Wire] = {
    "/v1/chat/completions": OPENAI,
    "/chat/completions": OPENAI,
    "/v1/messages": ANTHROPIC,
    "/messages": ANTHROPIC,
}
MODEL_LISTS = frozenset({"/v1/models", "/models"})
REFUSALS: Mapping[FaultKind, tuple[Why, str, float | None]] = {  # why, message, seconds to wait
    FaultKind.RATE_LIMITED: (Why.RATE_LIMITED, "Rate limit reached, by chance.", 1.0),
    FaultKind.SERVER_ERROR: (Why.SERVER_ERROR, "The server had an error.", None),
    FaultKind.OVERLOADED: (Why.OVERLOADED, "The server is overloaded.", None),
    FaultKind.DEAD_KEY: (Why.BAD_KEY, "The API key has been revoked.", None),
    FaultKind.NO_QUOTA: (Why.NO_QUOTA, "The quota is exhausted.", None),
}


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of a model, and what is known of it so far."""

    wire: Wire
    request_id: str
    model: Served | None = None  # None until the body is read
    fault: FaultKind | None = None  # what goes wrong with it
    undo: ExitStack = field(default_factory=ExitStack)  # done unless the answer is delivered

    def reply(self, answer: Answer) -> Page:
        """Return the page of an answer."""
        return self._page(200, self.wire.reply(answer, self.request_id), {})

    def refusal(self, refused: RefusedError) -> Page:
        """Return the page of a refusal."""
        wait_s = refused.retry_after_s
        status, body = self.wire.error(refused, self.request_id)
        return self._page(status, body, {} if wait_s is None else self.wire.retry_headers(wait_s))

    def _page(self, status: int, body: Json, headers: Mapping[str, str]) -> Page:
        allowances = self.model.gate.allowances(time.monotonic()) if self.model else {}
        return Page(
            status=status,
            headers={
                **HEADERS,
                self.wire.request_id_header: self.request_id,
                **self.wire.limit_headers(allowances),
                **headers,
            },
            body=orjson.dumps(body),
        )


class Server:
    """Answers HTTP requests, whatever connection they come from: the handler of `web.Server`."""

    def __init__(
        self, settings: Settings, questions: Questions, recordings: Mapping[str, Sequence[Recording]]
    ) -> None:
        self._settings, self._questions = settings, questions
        self._recordings = recordings  # what each name may mean
        clear = sorted(name for name, meant in recordings.items() if len(meant) == 1)
        self._names = tuple(dict.fromkeys([*MODELS, *clear]))
        self._keys = frozenset(settings.keys)
        self._models: dict[str, Served] = {}
        self._total = Tally()
        start = secrets.token_hex(4)  # two starts of a server give no request the same id
        self._request_ids = (f"simulated-{start}-{number:08}" for number in itertools.count(1))

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request: a call of a model is counted, a look at anything else is not."""
        wire = WIRES.get(request.path)
        call = Call(wire=wire or _wire_of(request), request_id=next(self._request_ids))
        if wire is None or request.method != "POST":
            return await whole(request, self._looked_up(request, call))
        with Visit(self._total) as visit, call.undo:
            page = await self._asked(request, call, visit)
            response = await DELIVERIES.get(call.fault, whole)(request, page)
            if response.prepared:
                delivered = page.status == 200 and call.fault is None
                visit.answered(page.status, delivered=delivered)
                if delivered:
                    call.undo.pop_all()
            return response

    async def _asked(self, request: web.BaseRequest, call: Call, visit: Visit) -> Page:
        try:
            return call.reply(await self._answer(request, call, visit))
        except RefusedError as refused:
            return call.refusal(refused)

    async def _answer(self, request: web.BaseRequest, call: Call, visit: Visit) -> Answer:
        self._check_key(request)
        asked = call.wire.read(await _body(request))
        call.model = model = self._model(asked.model)
        visit.under(model.tally)
        if asked.stream:
            raise RefusedError(Why.NOT_STREAMED, "Streaming is not simulated: leave `stream` out.")
        taken = model.voice.take(asked)
        call.undo.callback(taken.give_back)
        model.admit(taken.answer, time.monotonic())
        # Drawn after the limits: whom they refuse depends on the clock, and faults must not.
        call.fault = model.faults.draw()
        if call.fault is not None:
            visit.met(call.fault)
            _refuse(call.fault)
        await model.think(asked.latency)
        if taken.failed:
            raise RefusedError(Why.SERVER_ERROR, "This question is recorded as failed.")
        return taken.answer

    def _check_key(self, request: web.BaseRequest) -> None:
        _scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        key = request.headers.get("x-api-key") or bearer
        if not key:
            raise RefusedError(Why.BAD_KEY, "No API key: send `Authorization: Bearer …` or `x-api-key: …`.")
        if self._keys and key not in self._keys:
            raise RefusedError(Why.BAD_KEY, "The API key is not one that this simulator was started with.")

    def _model(self, name: str) -> Served:
        if name not in self._models:
            voice = self._voice(name)
            self._models[name] = Served(name, voice, self._settings, at_s=time.monotonic())
        return self._models[name]

    def _voice(self, name: str) -> Voice:
        # A recording of `noisy-2` is meant by that name; `noisy` itself is always the simulator's own.
        if name not in MODELS and name in self._recordings:
            return Replay(_the_one(name, self._recordings[name]))
        if (found := answerer(name)) is None:
            there = ", ".join(self._names)
            raise RefusedError(Why.NO_SUCH_MODEL, f"No model {name!r}; there are: {there}, and noisy-2, ….")
        return MadeUp(name, found, self._questions, seed=self._settings.seed)

    def _looked_up(self, request: web.BaseRequest, call: Call) -> Page:
        """Return the page of anything but a call of a model."""
        if request.path == "/stats":
            return Page(status=200, headers=HEADERS, body=orjson.dumps(self.stats()))
        try:
            if request.path not in MODEL_LISTS:
                why = Why.WRONG_METHOD if request.path in WIRES else Why.NO_SUCH_PAGE
                raise RefusedError(why, f"Nothing answers {request.method} {request.path}.")
            self._check_key(request)
        except RefusedError as refused:
            return call.refusal(refused)
        return Page(status=200, headers=HEADERS, body=orjson.dumps(call.wire.models(self._names)))

    def stats(self) -> ServerStats:
        """Return all counts as they are now."""
        return ServerStats(
            simulated=True,
            questions=len(self._questions),
            cpu_s=time.process_time(),
            **self._total.stats(),
            models={name: model.tally.stats() for name, model in self._models.items()},
        )


def _the_one(name: str, meant: Sequence[Recording]) -> Recording:
    if len(meant) > 1:
        places = "; ".join(recording.place for recording in meant)
        raise RefusedError(
            Why.NO_SUCH_MODEL,
            f"The name {name!r} stands for {len(meant)} recordings: {places}. Ask for a run that holds one "
            "model by the run's name, or start the simulator with fewer folders.",
        )
    return meant[0]


def _refuse(fault: FaultKind) -> None:
    if fault in REFUSALS:
        why, message, retry_after_s = REFUSALS[fault]
        raise RefusedError(why, message, retry_after_s=retry_after_s)


def _wire_of(request: web.BaseRequest) -> Wire:
    """Return the format for pages that both vendors have under one path."""
    return ANTHROPIC if "anthropic-version" in request.headers else OPENAI


async def _body(request: web.BaseRequest) -> Json:
    try:
        body = orjson.loads(await request.read())
    except web.HTTPRequestEntityTooLarge:
        raise RefusedError(Why.TOO_LARGE, "The request is too large.") from None
    except orjson.JSONDecodeError as error:
        raise RefusedError(Why.BAD_REQUEST, f"The body is not JSON: {error}.") from None
    if not isinstance(body, dict):
        raise RefusedError(Why.BAD_REQUEST, "The body must be a JSON object.")
    return body
