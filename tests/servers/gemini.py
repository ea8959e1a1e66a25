"""A loopback server that speaks Gemini's wire format: contents, streams, files and batches, with faults.

It keeps the truth of what it did, which tests hold the run's own account against. Its clock can be put
forward, as a simulator's: a batch takes `BATCH_S`.
"""

import asyncio
import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import orjson
from aiohttp import web

from tests.processes import HANG_S

KEY = "AIza-of-the-test-0123456789"
BATCH_S = 100.0
PIECE = 3  # characters of an answer in one event
BAD_KEY = {
    "code": 400,
    "message": "API key not valid. Please pass a valid API key.",
    "status": "INVALID_ARGUMENT",
    "details": [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
            "metadata": {"service": "generativelanguage.googleapis.com"},
        }
    ],
}

NOT_THERE = {
    "code": 403,
    "message": "You do not have permission to access the File in1 or it may not exist.",
    "status": "PERMISSION_DENIED",
}


class Gemini:
    """The server's state; `faults` are met once each, `refusals` are answered first."""

    def __init__(self, answers: Mapping[str, str], *faults: str) -> None:
        self.answers, self.url, self.ahead_s = answers, "", 0.0
        self.faults = Counter(faults)
        self.refusals: deque[tuple[int, dict[str, Any]]] = deque()
        self.calls: list[dict[str, Any]] = []  # what was answered one by one: model, question, tokens
        self.executed: list[dict[str, Any]] = []  # what batches answered
        self.files: dict[str, dict[str, Any]] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self._numbers = itertools.count(1)

    def now(self) -> float:
        return time.time() + self.ahead_s

    def meets(self, fault: str) -> bool:
        """Whether a fault is due, which then is no more."""
        due = self.faults[fault] > 0
        self.faults[fault] -= due
        return due

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        question = body["contents"][-1]["parts"][0]["text"]
        said = self.answers[question]
        thoughts = 11 if body.get("generationConfig", {}).get("thinkingConfig") else 0
        used = {"promptTokenCount": 5 + len(question) // 4, "candidatesTokenCount": 1 + len(said) // 2}
        used |= {"thoughtsTokenCount": thoughts} if thoughts else {}
        candidate = {"content": {"parts": [{"text": said}], "role": "model"}, "finishReason": "STOP"}
        return {
            "candidates": [candidate | {"index": 0}],
            "usageMetadata": {**used, "totalTokenCount": sum(used.values()), "serviceTier": "standard"},
            "modelVersion": "gemini-2.5-flash",
            "responseId": f"r-{next(self._numbers)}",
        }

    # ── One by one ───────────────────────────────────────────────────────────────────────────────────────

    async def call(self, request: web.Request) -> web.StreamResponse:
        model, _, method = request.match_info["call"].partition(":")
        body = await request.json()
        if method == "batchGenerateContent":
            return await self.create(request, model, body["batch"])
        if self.refusals:
            status, refused = self.refusals.popleft()
            return web.json_response(refused, status=status)
        answer = self.answer(body)
        self.calls.append({"model": model, "usage": answer["usageMetadata"]})
        if method == "generateContent":
            return web.json_response(answer)
        assert (method, request.query["alt"]) == ("streamGenerateContent", "sse")
        return await self.stream(request, answer)

    async def stream(self, request: web.Request, answer: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        (candidate,) = answer["candidates"]
        (part,) = candidate["content"]["parts"]
        starts = range(0, len(part["text"]), PIECE)
        for at in starts:
            content = {"parts": [{"text": part["text"][at : at + PIECE]}], "role": "model"}
            piece = {**answer, "candidates": [{"content": content, "index": 0}]}
            if at == starts[-1]:
                piece["candidates"][0]["finishReason"] = "STOP"
            await response.write(b"data: " + orjson.dumps(piece) + b"\r\n\r\n")
        return response

    # ── Files ────────────────────────────────────────────────────────────────────────────────────────────

    async def begin(self, request: web.Request) -> web.Response:
        assert request.headers["x-goog-upload-protocol"] == "resumable"
        number = next(self._numbers)
        self.files[f"files/in{number}"] = {
            "name": f"files/in{number}",
            "displayName": (await request.json())["file"]["display_name"],
            "createTime": told(self.now()),
            "size": int(request.headers["x-goog-upload-header-content-length"]),
        }
        # Of another host, as behind a proxy: nobody may follow it there.
        address = f"http://elsewhere.invalid/upload/v1beta/files?upload_id=in{number}"
        return web.json_response({}, headers={"x-goog-upload-url": address, "x-goog-upload-status": "active"})

    async def finish(self, request: web.Request) -> web.Response:
        if "upload_id" not in request.query:
            return await self.begin(request)
        file = self.files[f"files/{request.query['upload_id']}"]
        file["content"] = await request.read()
        assert len(file["content"]) == file["size"]
        self.cut_off(request, "upload_reply_dropped")
        return web.json_response({"file": self.public(file)}, headers={"x-goog-upload-status": "final"})

    def public(self, file: dict[str, Any]) -> dict[str, Any]:
        kept = {name: file[name] for name in ("name", "displayName", "createTime")}
        return kept | {"sizeBytes": str(file["size"]), "state": "ACTIVE", "source": "UPLOADED"}

    async def list_files(self, _: web.Request) -> web.Response:
        there = [self.public(file) for file in self.files.values() if "content" in file]
        return web.json_response({"files": there[::-1]} if there else {})

    async def delete_file(self, request: web.Request) -> web.Response:
        if self.files.pop(f"files/{request.match_info['file']}", None) is None:
            return web.json_response({"error": NOT_THERE}, status=403)
        return web.json_response({})

    async def content(self, request: web.Request) -> web.Response:
        assert request.query["alt"] == "media"
        batch = self.batches[request.match_info["file"].removeprefix("batch-")]
        if self.faults["content_gone"]:
            return web.json_response({"error": NOT_THERE}, status=403)
        if self.meets("content_502"):
            return web.Response(status=502, text="<html>Bad Gateway</html>")
        body = b"".join(line + b"\n" for line in batch["results"])
        return web.Response(body=body[: len(body) // 2] if self.meets("content_cut") else body)

    # ── Batches ──────────────────────────────────────────────────────────────────────────────────────────

    async def create(self, request: web.Request, model: str, asked: Mapping[str, Any]) -> web.Response:
        if self.refusals:
            status, refused = self.refusals.popleft()
            return web.json_response(refused, status=status)
        self.cut_off(request, "create_dropped")
        number = f"b{next(self._numbers)}"
        file = self.files[asked["inputConfig"]["fileName"]]
        lines = [orjson.loads(line) for line in file["content"].splitlines()]
        self.batches[number] = {
            "asked": asked,
            "model": model,
            "lines": lines,
            "at": self.now(),
            "results": None,
            "state": None,
            "hidden": self.meets("unlisted"),
            "fate": next((one for one in ("expires", "fails", "no_file") if self.meets(one)), None),
        }
        self.cut_off(request, "create_reply_dropped")
        return web.json_response(self.operation(number))

    def operation(self, number: str) -> dict[str, Any]:
        batch = self.batches[number]
        self.go_on(number, batch)
        state, requests = batch["state"] or "RUNNING", len(batch["lines"])
        failed = sum(b'"error"' in line for line in batch["results"] or ())
        ran = len(batch["results"] or ()) - failed if state == "SUCCEEDED" else 0
        counts = {"successful": ran, "failed": failed, "pending": requests - ran - failed}
        metadata = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": f"models/{batch['model']}",
            "displayName": batch["asked"]["displayName"],
            "inputConfig": batch["asked"]["inputConfig"],
            "createTime": told(batch["at"]),
            "updateTime": told(batch["at"] + BATCH_S if batch["state"] else batch["at"]),
            "batchStats": {"requestCount": str(requests)}
            | {f"{name}RequestCount": str(count) for name, count in counts.items() if count},
            "state": f"BATCH_STATE_{state}",
            "name": f"batches/{number}",
        }
        operation: dict[str, Any] = {"name": f"batches/{number}", "metadata": metadata}
        if state == "SUCCEEDED" and batch["fate"] != "no_file":
            operation |= {"done": True, "response": {"responsesFile": f"files/batch-{number}"}}
        if state == "FAILED":
            operation |= {"done": True, "error": {"code": 13, "message": "Internal error encountered."}}
        return operation

    def go_on(self, number: str, batch: dict[str, Any]) -> None:
        """Let a batch end whose time has come."""
        if batch["state"] or self.now() < batch["at"] + BATCH_S:
            return
        batch["state"] = {"expires": "EXPIRED", "fails": "FAILED"}.get(batch["fate"], "SUCCEEDED")
        batch["results"] = []
        if batch["state"] == "SUCCEEDED":
            batch["results"] = [*self.results(number, batch["lines"])]

    def results(self, number: str, lines: list[dict[str, Any]]) -> Iterator[bytes]:
        for line in lines:
            if self.meets("line_missing"):
                continue
            if self.meets("line_error"):
                yield orjson.dumps({"key": line["key"], "error": {"code": 14, "message": "Overloaded."}})
                continue
            answer = self.answer(line["request"])
            used = answer["usageMetadata"]
            self.executed.append({"custom_id": line["key"], "billed": True, "batch": number, "usage": used})
            result = orjson.dumps({"key": line["key"], "response": answer})
            yield result
            if self.meets("line_twice"):
                yield result
            if self.meets("line_foreign"):
                yield orjson.dumps({"key": "nobody's", "response": answer})

    async def list_batches(self, request: web.Request) -> web.Response:
        shown = [number for number, batch in self.batches.items() if not batch["hidden"]][::-1]
        for batch in self.batches.values():
            batch["hidden"] = False  # it is there the next time
        first = int(request.query.get("pageToken", 0))
        page = shown[first : first + 2]  # so small that there are several
        more = {"nextPageToken": str(first + 2)} if shown[first + 2 :] else {}
        return web.json_response(({"operations": [*map(self.operation, page)]} if page else {}) | more)

    async def batch(self, request: web.Request) -> web.Response:
        number, _, verb = request.match_info["batch"].partition(":")
        if verb == "cancel":
            self.batches[number]["state"], self.batches[number]["results"] = "CANCELLED", []
            return web.json_response({})
        return web.json_response(self.operation(number))

    # ── All of it ────────────────────────────────────────────────────────────────────────────────────────

    def cut_off(self, request: web.Request, fault: str) -> None:
        if self.meets(fault):
            assert request.transport is not None
            request.transport.abort()
            raise ConnectionResetError

    async def clock(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            self.ahead_s += (await request.json())["forward_s"]
        return web.json_response({"ahead_s": self.ahead_s})

    async def truth(self, _: web.Request) -> web.Response:
        return web.Response(body=b"".join(orjson.dumps(line) + b"\n" for line in self.executed))

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**30, middlewares=[self._keyed])
        app.router.add_post("/v1beta/models/{call:.+}", self.call)
        app.router.add_post("/upload/v1beta/files", self.finish)
        app.router.add_get("/v1beta/files", self.list_files)
        app.router.add_delete("/v1beta/files/{file}", self.delete_file)
        app.router.add_get("/download/v1beta/files/{file}:download", self.content)
        app.router.add_get("/v1beta/batches", self.list_batches)
        app.router.add_route("*", "/v1beta/batches/{batch}", self.batch)
        app.router.add_route("*", "/clock", self.clock)
        app.router.add_get("/stats/batches/executed", self.truth)
        return app

    @web.middleware
    async def _keyed(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if "v1beta" in request.path and request.headers.get("x-goog-api-key") != KEY:
            return web.json_response({"error": BAD_KEY}, status=400)
        response: web.StreamResponse = await handler(request)
        if not response.prepared:
            response.headers["date"] = f"{datetime.fromtimestamp(self.now(), UTC):%a, %d %b %Y %H:%M:%S GMT}"
        return response


def told(at: float) -> str:
    """Return a time as Google writes it, to the nanosecond."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"


@contextmanager
def gemini(answers: Mapping[str, str], *faults: str) -> Iterator[Gemini]:
    """Run the server in a thread of its own."""
    server, loop = Gemini(answers, *faults), asyncio.new_event_loop()

    async def start() -> web.AppRunner:
        runner = web.AppRunner(server.app(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(start(), loop).result(HANG_S)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(HANG_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(HANG_S)
        loop.close()
