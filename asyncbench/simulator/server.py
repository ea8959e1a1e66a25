"""The HTTP server: one request in, one page or stream out, everything counted."""

import asyncio
import itertools
import secrets
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import orjson
from aiohttp import web

from asyncbench.simulator.answers import Recording
from asyncbench.simulator.anthropic_wire import ANTHROPIC
from asyncbench.simulator.batches.anthropic_api import AnthropicBatchApi
from asyncbench.simulator.batches.openai_api import OpenAIBatchApi
from asyncbench.simulator.batches.pages import body_of, dialect_of, handler_of, read_dialect, send_pieces
from asyncbench.simulator.batches.service import BatchService
from asyncbench.simulator.counts import (
    LAST_CALLS,
    Arrival,
    ServerSeconds,
    ServerStats,
    Visit,
    no_calls,
    ordered_stats,
)
from asyncbench.simulator.delivery import HEADERS, PAGES, STREAMS, Broadcast, Page, whole, whole_stream
from asyncbench.simulator.limits import ServiceLine
from asyncbench.simulator.openai_wire import CHAT
from asyncbench.simulator.questions import Questions
from asyncbench.simulator.served import WIRES, Served, ServedModels, Timing, find_known_question, think
from asyncbench.simulator.settings import COMPLETE, FaultKind, Settings
from asyncbench.simulator.wire import Exchange, Json, RefusedError, Vendor, VendorWire, Why

STREAM_HEADERS = {"content-type": "text/event-stream", "cache-control": "no-cache"}
KEY_HEADERS = ("x-api-key", "api-key")  # besides `authorization`: Anthropic's, Azure's

MODEL_LISTS = frozenset({"/v1/models", "/models"})
REFUSALS: Mapping[FaultKind, tuple[Why, str, float | None]] = {  # why, message, seconds to wait
    FaultKind.RATE_LIMITED: (Why.RATE_LIMITED, "Rate limit reached, by chance.", 1.0),
    FaultKind.SERVER_ERROR: (Why.SERVER_ERROR, "The server had an error.", None),
    FaultKind.OVERLOADED: (Why.OVERLOADED, "The server is overloaded.", None),
    FaultKind.DEAD_KEY: (Why.BAD_KEY, "The API key has been revoked.", None),
    FaultKind.NO_QUOTA: (Why.NO_QUOTA, "The quota is exhausted.", None),
    FaultKind.ERROR_200: (Why.UPSTREAM, "The provider behind this one returned an error.", None),
}


@dataclass(slots=True, kw_only=True)
class ServedCall:
    """One call of a model, and what is known of it so far."""

    wire: VendorWire
    vendor: Vendor  # the server's until the body is read
    arrival: Arrival
    model: Served | None = None  # None until the body is read
    fault: FaultKind | None = None  # what goes wrong with it
    undo: ExitStack = field(default_factory=ExitStack)  # done unless the answer is delivered

    def reply(self, exchange: Exchange) -> Page:
        body = self.vendor.blank + orjson.dumps(self.wire.reply(exchange))
        return Page(status=200, headers=self._headers(), body=body)

    def broadcast(self, exchange: Exchange, timing: Timing, start_s: float) -> Broadcast:
        return Broadcast(
            headers=self._headers() | STREAM_HEADERS,
            script=self.wire.script(exchange),
            timing=timing,
            start_s=start_s,
            waiting=self.vendor.waiting,
            closes=self.vendor.closes_streams,
            arrival=self.arrival,
        )

    async def wait_turn(self, line: ServiceLine, timing: Timing) -> tuple[Timing, float]:
        """Wait for a slot; return when the answer comes from then on, and when that was."""
        job = line.enter(timing.latency_s)
        self.undo.callback(line.leave, job)
        start_s = await line.begun_s(job)
        return replace(timing, freeze=line.freeze.since(start_s)), start_s

    def refusal(self, refused: RefusedError) -> Page:
        wait_s, headers = refused.retry_after_s, self._headers()
        status, body = self.vendor.error(refused, *self.wire.error(refused, self.arrival.request_id))
        if wait_s is not None:
            headers |= self.vendor.retry_headers(self.wire, wait_s)
        return Page(status=status, headers=headers, body=orjson.dumps(body))

    def _headers(self) -> dict[str, str]:
        allowances = self.model.gate.allowances(time.monotonic()) if self.model else {}
        limits = self.vendor.limit_headers(self.wire, allowances)
        request_id = {self.wire.request_id_header: self.arrival.request_id} if self.vendor.request_id else {}
        return {**HEADERS, **request_id, **limits}


class Server:
    """Answers HTTP requests, whatever connection they come from: the handler of `web.Server`."""

    service_type: type[BatchService] = BatchService
    openai_type: type[OpenAIBatchApi] = OpenAIBatchApi
    anthropic_type: type[AnthropicBatchApi] = AnthropicBatchApi

    def __init__(
        self, settings: Settings, questions: Questions, recordings: Mapping[str, Sequence[Recording]]
    ) -> None:
        self._questions = questions
        self._models = ServedModels(settings, questions, recordings)
        self._keys = frozenset(settings.keys)
        self._service = self.service_type(settings, self._models)
        openai, anthropic = self.openai_type(self._service), self.anthropic_type(self._service)
        self._routes = (*openai.routes, *anthropic.routes)
        self._total = no_calls()
        self._arrivals = deque[Arrival](maxlen=LAST_CALLS)
        start = secrets.token_hex(4)  # two starts of a server give no request the same id
        self._request_ids = (f"simulated-{start}-{number:08}" for number in itertools.count(1))

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request: a call of a model is counted, a look at anything else is not."""
        request = read_dialect(request)
        wire = WIRES.get(request.path)
        # Pages that both vendors have under one path are written in the format of who asks.
        anthropics = "anthropic-version" in request.headers or "/messages/" in request.path
        by_header = ANTHROPIC if anthropics else CHAT
        arrival = Arrival(request_id=next(self._request_ids), arrived_s=time.monotonic())
        call = ServedCall(wire=wire or by_header, vendor=self._models.vendor, arrival=arrival)
        if wire is None or request.method != "POST":
            return await self._show(request, call)
        self._arrivals.append(arrival)
        with Visit(self._total) as visit, call.undo:
            try:
                content = await self._answer(request, call, visit)
            except RefusedError as refused:
                content = call.refusal(refused)
            if isinstance(content, Page):
                if call.fault is None or call.fault in {*COMPLETE, *REFUSALS}:
                    arrival.writes_end()
                response = await PAGES.get(call.fault, whole)(request, content)
            else:
                visit.add(streams=1)
                response = await STREAMS.get(call.fault, whole_stream)(request, content)
                visit.add(chunks=len(content.script.pieces) if response.prepared else 0)
            if response.prepared:
                arrival.status = response.status
                delivered = response.status == 200 and (call.fault is None or call.fault in COMPLETE)
                visit.answered(response.status, delivered=delivered)
                if delivered:
                    call.undo.pop_all()
            return response

    async def _answer(self, request: web.BaseRequest, call: ServedCall, visit: Visit) -> Page | Broadcast:
        self._check_key(request)
        body = await body_of(request)
        wire_request = call.wire.read(body)
        call.model = model = self._models.model(wire_request.model)
        call.arrival.model = wire_request.model
        call.vendor = vendor = model.vendor
        visit.count_under(model.tally)
        vendor.check(body)
        wire_request = find_known_question(wire_request, model.source)
        unasked = vendor.streams_unasked and call.wire.may_stream_unasked
        streamed = unasked if wire_request.stream is None else wire_request.stream
        taken = model.take(wire_request, time.monotonic())
        call.undo.callback(taken.give_back)
        model.admit(wire_request, taken.answer, time.monotonic())
        # Drawn after the limits: whom they refuse depends on the clock, and faults must not.
        call.fault = model.faults.draw(streamed=streamed)
        if call.fault is not None:
            visit.met(call.fault)
            if call.fault in REFUSALS:
                why, message, retry_after_s = REFUSALS[call.fault]
                raise RefusedError(why, message, retry_after_s=retry_after_s)
        timing = model.latency.draw(wire_request.pace, recorded_s=taken.seconds)
        line, start_s = model.line(wire_request.pace), asyncio.get_running_loop().time()
        if line is not None:
            timing, start_s = await call.wait_turn(line, timing)
        call.arrival.started_s = start_s
        exchange = Exchange(
            request=wire_request,
            answer=taken.answer,
            vendor=call.vendor,
            request_id=call.arrival.request_id,
            chunks=timing.chunks,
        )
        if streamed and not taken.failed:
            return call.broadcast(exchange, timing, start_s)
        await think(timing, passed_s=asyncio.get_running_loop().time() - start_s if line else 0.0)
        if taken.failed:
            raise RefusedError(Why.RECORDED_FAILURE, "This question is recorded as failed.")
        return call.reply(exchange)

    def _check_key(self, request: web.BaseRequest) -> None:
        _scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        key = next((key for name in KEY_HEADERS if (key := request.headers.get(name))), bearer)
        if not key:
            raise RefusedError(Why.BAD_KEY, "No API key: send `Authorization: Bearer …` or `x-api-key: …`.")
        if self._keys and key not in self._keys:
            raise RefusedError(Why.BAD_KEY, "The API key is not one that this simulator was started with.")

    async def _show(self, request: web.BaseRequest, call: ServedCall) -> web.StreamResponse:
        """Answer anything but a call of a model: batches, files, statistics, the clock, lists of models."""
        if (match := handler_of(self._routes, request)) is not None:
            handler, ids = match
            try:
                self._check_key(request)
                if (absent := dialect_of(request).absent) is not None:
                    raise RefusedError(absent, f"Nothing answers {request.method} {request.path}.")
                return await handler(request, *ids)
            except RefusedError as refused:
                return await whole(request, call.refusal(refused))
        if request.path == "/stats/batches/executed":
            return await send_pieces(request, self._service.executed())
        if request.path == "/stats/batches":
            return await whole(request, _page(await self._service.truth()))
        if request.path == "/clock" and request.method == "POST":
            self._service.clock.forward((await body_of(request)).get("forward_s"))
        statistics = {
            "/stats": self.stats,
            "/stats/seconds": self.seconds,
            "/stats/arrivals": self.arrivals,
            "/clock": self.clock,
        }
        if (read := statistics.get(request.path)) is not None:
            return await whole(request, _page(read()))
        try:
            if request.path not in MODEL_LISTS:
                why = Why.WRONG_METHOD if request.path in WIRES else Why.NO_SUCH_PAGE
                raise RefusedError(why, f"Nothing answers {request.method} {request.path}.")
            self._check_key(request)
        except RefusedError as refused:
            return await whole(request, call.refusal(refused))
        return await whole(request, _page(call.wire.models(self._models.names)))

    async def aclose(self) -> None:
        """Let go of files and batches."""
        await self._service.aclose()

    def clock(self) -> Json:
        """Return the time by which batches go, Unix seconds, and how far it was put forward."""
        clock = self._service.clock
        return {"simulated": True, "now_s": clock.now(), "ahead_s": clock.ahead_s}

    def stats(self) -> ServerStats:
        return ServerStats(
            simulated=True,
            questions=len(self._questions),
            cpu_s=time.process_time(),
            **ordered_stats(self._total),
            models={name: ordered_stats(model.tally) for name, model in self._models.models.items()},
        )

    def seconds(self) -> ServerSeconds:
        """Return the work of each model's limits, second by second."""
        models = {name: list(model.seconds.rows) for name, model in self._models.models.items()}
        return ServerSeconds(simulated=True, now_s=time.monotonic(), models=models)

    def arrivals(self) -> Json:
        """Return when the last calls came and were answered."""
        return {"simulated": True, "now_s": time.monotonic(), "arrivals": list(self._arrivals)}


def _page(body: object) -> Page:
    return Page(status=200, headers=HEADERS, body=orjson.dumps(body))
