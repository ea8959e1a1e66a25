"""Routes and pages of both vendors' batch APIs, and files and requests as they come in and go out."""

import asyncio
import codecs
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson
from aiohttp import web

from asyncbench.simulator.batches.records import Course, ServedBatch, StoredFile, told_error
from asyncbench.simulator.batches.service import USUAL_WORKSPACE, BatchService
from asyncbench.simulator.delivery import HEADERS, Page, whole
from asyncbench.simulator.served import WIRES
from asyncbench.simulator.wire import Json, RefusedError, Why, object_in, tokens

# ── Departures from OpenAI's batches. The first part of a path chooses the vendor:
# http://HOST:PORT/azure/v1/batches answers as Azure does. A request in a dialect is turned into OpenAI's
# form, and OpenAI's answer is turned into the dialect.


Told = dict[str, Any]  # a batch as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one vendor's batches differ from OpenAI's; a field that is left out is as at OpenAI."""

    kept_s: tuple[float, float] = (3_600, 2_592_000)  # how long an upload may be kept
    endpoint: str = "/v1/"  # what the endpoint of a create begins with
    whole_lists: bool = False  # no pages
    counts_late: bool = False  # there are none before a batch is validated
    faults: tuple[str, ...] = ()  # faults that every batch has, as they are usual at this vendor
    absent: Why | None = None  # how a vendor without batches refuses; None: it has batches

    def asked(self, body: Json) -> Json:
        """Return a create in OpenAI's form; raises RefusedError for the path of another."""
        if not str(body.get("endpoint")).startswith(self.endpoint) or (
            self.endpoint == "/" and str(body.get("endpoint")).startswith("/v1/")
        ):
            raise RefusedError(Why.BAD_REQUEST, f"endpoint must begin with {self.endpoint}.")
        return {"completion_window": "24h", **body}

    def told(self, batch: Told) -> Told:
        """Return OpenAI's batch in its own form."""
        uncounted = self.counts_late and batch["status"] == "validating"
        return {**batch, "request_counts": None} if uncounted else batch


OWN = Dialect()
DIALECTS: Mapping[str, Dialect] = {
    "azure": Dialect(
        kept_s=(14 * 86_400, 30 * 86_400),
        endpoint="/",
        counts_late=True,
        faults=("empty_ids=1", "never_expires=1", "empty_error_file=1"),
    ),
    "groq": Dialect(whole_lists=True),
    "without": Dialect(absent=Why.NO_SUCH_PAGE),
    "forbidding": Dialect(absent=Why.WRONG_METHOD),
}
_DIALECT = "dialect"  # the key under which a request has its dialect


def read_dialect(request: web.BaseRequest) -> web.BaseRequest:
    """Return a request as OpenAI would get it, with the dialect of its path noted."""
    first, _, rest = request.path.removeprefix("/").partition("/")
    if first in DIALECTS:
        request = request.clone(rel_url=request.rel_url.with_path(f"/{rest}", keep_query=True))
        request[_DIALECT] = DIALECTS[first]
    return request


def dialect_of(request: web.BaseRequest) -> Dialect:
    return cast("Dialect", request.get(_DIALECT, OWN))


# ── Pages and files


PIECE = 1 << 18  # bytes of a file that are in memory at a time
Handler = Callable[..., Coroutine[Any, Any, web.StreamResponse]]
Routes = Sequence[tuple[str, str, Handler]]  # method, pattern of a path without /v1, who answers
Anything = TypeVar("Anything")


def handler_of(routes: Routes, request: web.BaseRequest) -> tuple[Handler, Sequence[str]] | None:
    """Return the handler of a request, and the ids in its path, or None."""
    path = request.path.removeprefix("/v1")
    for method, pattern, handler in routes:
        if request.method == method and (match := re.fullmatch(pattern, path)):
            return handler, match.groups()
    return None


def workspace_of(request: web.BaseRequest) -> str:
    """Return the workspace whose batches a key sees: behind its `@`, or of OpenAI's project header."""
    _scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    key = request.headers.get("x-api-key") or bearer
    return request.headers.get("openai-project") or key.partition("@")[2] or USUAL_WORKSPACE


async def answer(request: web.BaseRequest, body: object, headers: Mapping[str, str]) -> web.StreamResponse:
    return await whole(request, Page(status=200, headers={**HEADERS, **headers}, body=orjson.dumps(body)))


async def body_of(request: web.BaseRequest) -> Json:
    """Return the JSON object of a request; raises RefusedError."""
    try:
        body = orjson.loads(await request.read())
    except web.HTTPRequestEntityTooLarge:
        raise RefusedError(Why.TOO_LARGE, "The request is too large.") from None
    except orjson.JSONDecodeError as error:
        raise RefusedError(Why.BAD_REQUEST, f"The body is not JSON: {error}.") from None
    if not isinstance(body, dict):
        raise RefusedError(Why.BAD_REQUEST, "The body must be a JSON object.")
    return body


def page_of(
    listed: Sequence[Anything],
    request: web.BaseRequest,
    id_of: Callable[[Anything], str],
    *,
    after: str,
    max_limit: int,
) -> tuple[Sequence[Anything], bool]:
    """Return the page of a list that is asked for, and whether there is more.

    Args:
        listed: the whole list.
        request: its `limit` and its cursors choose the page.
        id_of: the id of an entry.
        after: the vendor's name for the parameter with the last id of the page before.
        max_limit: the longest page.
    """
    limit = request.query.get("limit", "20")
    if not limit.isdigit() or not 1 <= int(limit) <= max_limit:
        raise RefusedError(Why.BAD_REQUEST, f"limit must be 1 to {max_limit}.")
    ids = [id_of(item) for item in listed]
    for name in (after, "before_id"):
        if (cursor := request.query.get(name)) is not None and cursor not in ids:
            raise RefusedError(Why.BAD_REQUEST, f"{name}: no {cursor!r} in this list.")
    start = ids.index(request.query[after]) + 1 if after in request.query else 0
    end = ids.index(request.query["before_id"]) if "before_id" in request.query else len(ids)
    return listed[start : min(end, start + int(limit))], start + int(limit) < end


async def carried_out(work: Coroutine[Any, Any, Anything]) -> Anything:
    """Return the result of some work, which goes on when the client leaves meanwhile, as at vendors."""
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
    request: web.BaseRequest,
    path: Path,
    headers: Mapping[str, str],
    *,
    with_length: bool,
    size: int | None = None,
    end: bool = True,
) -> web.StreamResponse:
    """Send a file piece by piece.

    Args:
        request: who asks.
        path: the file.
        headers: of the response, without its length.
        with_length: tell the length; without it the content is sent in chunks.
        size: the bytes to send. [all]
        end: end the response, too.
    """
    with path.open("rb") as file:
        remaining = os.fstat(file.fileno()).st_size if size is None else size
        length = {"content-length": str(remaining)} if with_length else {}
        response = web.StreamResponse(headers={**HEADERS, **headers, **length})
        if not length:
            response.enable_chunked_encoding()
        await response.prepare(request)
        while remaining > 0 and (piece := file.read(min(PIECE, remaining))):
            await response.write(piece)
            remaining -= len(piece)
    if end:
        await response.write_eof()
    return response


class ServedBatchApi:
    """What the batch APIs of both vendors have in common. A server that plays more faults changes it here."""

    def __init__(self, service: BatchService) -> None:
        self._service = service

    def keep_upload(self, file: StoredFile) -> None:
        """Keep a file that came in whole."""
        self._service.storage.keep_file(file)

    def adapt(self, body: Json, _batch: ServedBatch, _course: Course) -> Json:
        """Return a batch as it is shown, given its usual form."""
        return body

    async def send_results(
        self,
        _batch: ServedBatch | None,
        request: web.BaseRequest,
        path: Path,
        headers: Mapping[str, str],
        *,
        with_length: bool,
    ) -> web.StreamResponse:
        """Send a file of a batch's results, or an uploaded file where the batch is None."""
        return await send_file(request, path, headers, with_length=with_length)


# ── Requests as they are handed in: a file line by line, a body piece by piece


MOST_ERRORS = 20  # of validation that are told
CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # Anthropic's rule
_OPENING, _BETWEEN = re.compile(r'\s*\{\s*"requests"\s*:\s*\['), re.compile(r"[\s,]*")


@dataclass(slots=True, kw_only=True)
class BatchInput:
    """What is known of the requests of a batch once they are read."""

    requests: int = 0
    tokens: int = 0  # of all prompts, estimated
    model: str = ""  # of the first request
    errors: list[Json] = field(default_factory=list)  # of validation, as OpenAI tells them


def settings_asked(path: Path, key: str) -> object:
    """Return the settings that the first request of a file has for its batch; `key`: of the body."""
    with path.open("rb") as file:
        body = object_in(object_in(_parsed(file.readline())).get(key))
    return object_in(body.get("simulate")).get("batch")


def check_file(path: Path, endpoint: str, *, max_requests: int, knows: Callable[[str], object]) -> BatchInput:
    """Read a file as OpenAI's validation does: one wrong line, and nothing of it is run.

    Args:
        path: the file.
        endpoint: the path that each line must name.
        max_requests: how many requests it may have.
        knows: raises RefusedError for a model that does not exist.
    """
    handed, ids = BatchInput(), set[str]()
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            handed.requests += 1
            if (wrong := _line_error(raw, endpoint, handed, ids, knows)) and len(handed.errors) < MOST_ERRORS:
                code, message = wrong
                handed.errors.append(told_error(code, message, number))
    if not handed.requests or handed.requests > max_requests:
        code = "too_many_tasks" if handed.requests else "empty_file"
        message = f"The file has {handed.requests} requests; it may have 1 to {max_requests}."
        handed.errors = [told_error(code, message)]
    return handed


def _line_error(
    raw: bytes, endpoint: str, handed: BatchInput, ids: set[str], knows: Callable[[str], object]
) -> tuple[str, str] | None:
    """Return code and message of a line's fault, and count it, or None for a good line."""
    line = _parsed(raw)
    if not isinstance(line, dict):
        return "invalid_json_line", "This line is not parseable as valid JSON."
    custom_id, body = line.get("custom_id"), line.get("body")
    if not isinstance(custom_id, str) or line.get("method") != "POST" or not isinstance(body, dict):
        return "invalid_request", "A line must have custom_id, method POST, url and body."
    if custom_id in ids:
        return "duplicate_custom_id", f"The custom_id {custom_id!r} is used twice."
    ids.add(custom_id)
    if line.get("url") not in (endpoint, f"/v1{endpoint}"):
        return "url_mismatch", f"The url must be {endpoint}, the endpoint of the batch."
    model = body.get("model")
    if handed.model and model != handed.model:
        return "model_mismatch", f"All lines must name one model; the first names {handed.model!r}."
    handed.model = str(model)
    try:
        knows(handed.model)
    except RefusedError:
        return "model_not_found", f"The model {model!r} does not exist."
    try:
        wire_request = WIRES[endpoint].read(body)
    except RefusedError:  # parameters are not validated here: a line of its own will tell
        handed.tokens += tokens(len(raw))
    else:
        handed.tokens += tokens(wire_request.prompt_characters)
    return None


async def requests_in(pieces: AsyncIterator[bytes]) -> AsyncIterator[Json]:
    """Yield the requests of a body of Anthropic's as its pieces come; `requests` is its first key.

    Raises:
        RefusedError: it is not such a body.
    """
    decoder, parser = codecs.getincrementaldecoder("utf-8")(), json.JSONDecoder()
    text, start, before, closed = "", 0, _OPENING, False
    async for piece in pieces:
        try:
            text, start = text[start:] + decoder.decode(piece), 0
        except UnicodeDecodeError:
            raise _not_requests() from None
        while not closed and (gap := before.match(text, start)) is not None:
            closed = text.startswith("]", gap.end())
            try:
                request, start = parser.raw_decode(text, gap.end())
            except json.JSONDecodeError:
                break  # not whole yet, or never: the end tells
            if not isinstance(request, dict):
                raise _not_requests()
            before = _BETWEEN
            yield request
    if not (closed and text.rstrip().endswith("}")):
        raise _not_requests()


def _not_requests() -> RefusedError:
    return RefusedError(Why.BAD_REQUEST, "The body must be JSON: a list of `requests`.")


async def split_requests(pieces: AsyncIterator[bytes], path: Path) -> BatchInput:
    """Write the requests of a body to a file, one a line, and return what they are.

    Raises:
        RefusedError: the body is not JSON, or a custom id is missing, used twice or not of the rule.
    """
    handed, ids = BatchInput(), set[str]()
    with path.open("wb") as file:
        async for request in requests_in(pieces):
            custom_id, params = request.get("custom_id"), request.get("params")
            where = f"requests.{handed.requests}"
            if not isinstance(custom_id, str) or not CUSTOM_ID.fullmatch(custom_id):
                rule = f"String should match pattern '^{CUSTOM_ID.pattern}$'"
                raise RefusedError(Why.BAD_REQUEST, f"{where}.custom_id: {rule}.")
            if not isinstance(params, dict):
                raise RefusedError(Why.BAD_REQUEST, f"{where}.params: Field required.")
            if custom_id in ids:
                raise RefusedError(Why.BAD_REQUEST, f"{where}.custom_id: {custom_id} is used twice.")
            ids.add(custom_id)
            handed.requests += 1
            handed.model = handed.model or str(params.get("model"))
            file.write(orjson.dumps(request) + b"\n")
    if not handed.requests:
        raise RefusedError(Why.BAD_REQUEST, "requests: List should have at least 1 item.")
    return handed


def _parsed(raw: bytes) -> object:
    """Return the JSON of a line, or None for others, such as one that begins with a byte order mark."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
