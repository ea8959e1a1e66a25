"""Routes and pages of both vendors' batch APIs, and files as they are sent."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson
from aiohttp import web

from asyncbench.simulator.batches.service import USUAL_WORKSPACE
from asyncbench.simulator.batches.settings import BatchFaultKind as Kind, Met
from asyncbench.simulator.delivery import HEADERS, Page, reset, whole
from asyncbench.simulator.wire import Json, RefusedError, Why

# ── Departures from OpenAI's batches; the first part of a path chooses the vendor
# http://HOST:PORT/azure/v1/batches as Azure has them
# What is asked in a dialect is made what OpenAI would be asked; what OpenAI would answer is made the
# dialect.


Told = dict[str, Any]  # a batch as JSON


def _same(batch: Told) -> Told:
    return batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The ways of one vendor; what is left out is OpenAI's own way."""

    kept_s: tuple[float, float] = (3_600, 2_592_000)  # how long an upload may be kept
    endpoint: str = "/v1/"  # what the endpoint of a create begins with
    whole_lists: bool = False  # no pages
    told: Callable[[Told], Told] = _same  # OpenAI's batch → its own
    faults: tuple[str, ...] = ()  # which are none here
    absent: Why | None = None  # there are no batches, and it is said so

    def asked(self, body: Json) -> Json:
        """Return a create in OpenAI's form; raises RefusedError for the path of another."""
        if not str(body.get("endpoint")).startswith(self.endpoint) or (
            self.endpoint == "/" and str(body.get("endpoint")).startswith("/v1/")
        ):
            raise RefusedError(Why.BAD_REQUEST, f"endpoint must begin with {self.endpoint}.")
        return {"completion_window": "24h", **body}


def _azure(batch: Told) -> Told:
    young = batch["status"] == "validating"
    return {**batch, "request_counts": None if young else batch["request_counts"]}


_DAY_S = 86_400
OWN = Dialect()
DIALECTS: Mapping[str, Dialect] = {
    "azure": Dialect(
        kept_s=(14 * _DAY_S, 30 * _DAY_S),
        endpoint="/",
        told=_azure,
        faults=("empty_ids=1", "never_expires=1", "empty_error_file=1"),
    ),
    "groq": Dialect(whole_lists=True),
    "without": Dialect(absent=Why.NO_SUCH_PAGE),
    "forbidding": Dialect(absent=Why.WRONG_METHOD),
}
_PLACE = "dialect"


def in_dialect(request: web.BaseRequest) -> web.BaseRequest:
    """Return a request as OpenAI would get it, with the dialect of its path noted."""
    first, _, rest = request.path.removeprefix("/").partition("/")
    if first in DIALECTS:
        request = request.clone(rel_url=request.rel_url.with_path(f"/{rest}", keep_query=True))
        request[_PLACE] = DIALECTS[first]
    return request


def dialect_of(request: web.BaseRequest) -> Dialect:
    return cast("Dialect", request.get(_PLACE, OWN))


# ── Pages and files


PIECE = 1 << 18  # bytes of a file that are in memory at a time
Handler = Callable[..., Coroutine[Any, Any, web.StreamResponse]]
Routes = Sequence[tuple[str, str, Handler]]  # method, pattern of a path without /v1, who answers
Anything = TypeVar("Anything")


def handler_of(routes: Routes, request: web.BaseRequest) -> tuple[Handler, Sequence[str]] | None:
    """Return who answers a request, and the ids in its path; None: nobody."""
    path = request.path.removeprefix("/v1")
    for method, pattern, handler in routes:
        if request.method == method and (match := re.fullmatch(pattern, path)):
            return handler, match.groups()
    return None


def workspace_of(request: web.BaseRequest) -> str:
    """Return whose batches a key sees: those of what stands behind its `@`, or OpenAI's project header."""
    _scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    key = request.headers.get("x-api-key") or bearer
    return request.headers.get("openai-project") or key.partition("@")[2] or USUAL_WORKSPACE


async def answer(
    request: web.BaseRequest, body: object, headers: Mapping[str, str], *, status: int = 200
) -> web.StreamResponse:
    return await whole(request, Page(status=status, headers={**HEADERS, **headers}, body=orjson.dumps(body)))


async def body_of(request: web.BaseRequest) -> Json:
    """Return a small body; raises RefusedError: it is no JSON object."""
    try:
        body = orjson.loads(await request.read())
    except (orjson.JSONDecodeError, web.HTTPRequestEntityTooLarge):
        body = None
    if not isinstance(body, dict):
        raise RefusedError(Why.BAD_REQUEST, "The body must be a JSON object.")
    return body


def page_of(
    listed: Sequence[Anything],
    request: web.BaseRequest,
    id_of: Callable[[Anything], str],
    *,
    after: str,
    most: int,
) -> tuple[Sequence[Anything], bool]:
    """Return the part of a list that is asked for, and whether there is more; `after`: its parameter."""
    limit = request.query.get("limit", "20")
    if not limit.isdigit() or not 1 <= int(limit) <= most:
        raise RefusedError(Why.BAD_REQUEST, f"limit must be 1 to {most}.")
    ids = [id_of(item) for item in listed]
    for name in (after, "before_id"):
        if (cursor := request.query.get(name)) is not None and cursor not in ids:
            raise RefusedError(Why.BAD_REQUEST, f"{name}: no {cursor!r} in this list.")
    start = ids.index(request.query[after]) + 1 if after in request.query else 0
    end = ids.index(request.query["before_id"]) if "before_id" in request.query else len(ids)
    return listed[start : min(end, start + int(limit))], start + int(limit) < end


async def carried_out(work: Coroutine[Any, Any, Anything]) -> Anything:
    """Return what comes of it, which is done though the client leaves meanwhile, as vendors do."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be there to ask
    return await asyncio.shield(task)


async def send_pieces(request: web.BaseRequest, pieces: AsyncIterator[bytes]) -> web.StreamResponse:
    """Send lines of JSON as they come."""
    response = web.StreamResponse(headers={**HEADERS, "content-type": "application/x-jsonl"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    async for piece in pieces:
        await response.write(piece)
    await response.write_eof()
    return response


async def send_file(
    request: web.BaseRequest, path: Path, headers: Mapping[str, str], met: Met, *, with_length: bool
) -> web.StreamResponse:
    """Send a file piece by piece, or spoil it in the ways that it meets."""
    if Kind.CONTENT_502 in met:
        page = Page(status=502, headers={"content-type": "text/html"}, body=b"<h1>502 Bad Gateway</h1>")
        return await whole(request, page)
    size = _size(path)
    upto = _upto(path, size, met)
    content_length = upto if Kind.CONTENT_WRONG_LENGTH in met else size
    cut = Kind.CONTENT_CUT in met or Kind.CONTENT_CUT_IN_LINE in met
    length = {"content-length": str(content_length)} if with_length and not cut else {}
    response = web.StreamResponse(headers={**HEADERS, **headers, **length})
    if not length:
        response.enable_chunked_encoding()
    await response.prepare(request)
    with path.open("rb") as file:
        while upto > 0 and (piece := file.read(min(PIECE, upto))):
            await response.write(piece)
            upto -= len(piece)
    if Kind.CONTENT_RESET in met:
        return await reset(request, Page(status=200, headers={}, body=b""))
    await response.write_eof()
    return response


def _size(path: Path) -> int:
    return path.stat().st_size


def _upto(path: Path, size: int, met: Met) -> int:
    """Return how many bytes are sent."""
    if not met:
        return size
    with path.open("rb") as file:
        whole_lines = 0
        for line in file:
            if whole_lines + len(line) > size // 2:
                break
            whole_lines += len(line)
    if Kind.CONTENT_CUT in met:
        return whole_lines
    return size // 2 if size // 2 > whole_lines else whole_lines + 1
