"""OpenAI's files and batches (its SDK's types, release 3.52)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import aiohttp
from aiohttp import web

from asyncbench.simulator.batches.pages import (
    PIECE,
    Anything,
    Dialect,
    Routes,
    ServedBatchApi,
    answer,
    body_of,
    carried_out,
    check_file,
    dialect_of,
    page_of,
    settings_asked,
    workspace_of,
)
from asyncbench.simulator.batches.records import MONTH_S, Course, ServedBatch, StoredFile, new_id
from asyncbench.simulator.batches.service import BatchService
from asyncbench.simulator.batches.settings import BatchFaultKind as Kind
from asyncbench.simulator.wire import Json, RefusedError, Why

MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000
PURPOSES = ("batch", "fine-tune", "assistants", "user_data", "evals", "vision")
MOST_METADATA, LONGEST_KEY, LONGEST_VALUE = 16, 64, 512
ENDPOINTS = ("/v1/chat/completions", "/v1/completions", "/v1/responses")
_STAMPED = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")


class OpenAIBatchApi(ServedBatchApi):
    """Answers what is asked of `/v1/files` and `/v1/batches`."""

    vendor = "openai"

    def __init__(self, service: BatchService) -> None:
        super().__init__(service)
        self.routes: Routes = (
            ("POST", "/files", self.upload),
            ("GET", "/files", self.files),
            ("GET", "/files/([^/]+)", self.file),
            ("DELETE", "/files/([^/]+)", self.delete),
            ("GET", "/files/([^/]+)/content", self.content),
            ("POST", "/batches", self.create),
            ("GET", "/batches", self.batches),
            ("GET", "/batches/([^/]+)", self.batch),
            ("POST", "/batches/([^/]+)/cancel", self.cancel),
        )

    async def upload(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.content_type != "multipart/form-data":
            raise RefusedError(Why.BAD_REQUEST, "A file is uploaded as multipart/form-data.")
        file_id = new_id("file-")
        path = self._service.storage.path(file_id)
        try:
            file = await self._receive(request, file_id, path)
            self.keep_upload(file)
        finally:
            if file_id not in self._service.storage.files:
                path.unlink(missing_ok=True)
        return await answer(request, _file(file), self._headers(request))

    async def _receive(self, request: web.BaseRequest, file_id: str, path: Path) -> StoredFile:
        fields, size, now = {"name": ""}, 0, self._service.clock.now()
        async for field in await request.multipart():
            if not isinstance(field, aiohttp.BodyPartReader):
                continue
            if field.name != "file":
                fields[field.name or ""] = await field.text()
                continue
            fields["name"] = field.filename or "upload"
            with path.open("wb") as file:
                while piece := await field.read_chunk(PIECE):
                    size += file.write(piece)
        dialect = dialect_of(request)
        for_batches = fields.get("purpose") == "batch"
        if not fields["name"] or fields.get("purpose") not in PURPOSES:
            raise RefusedError(Why.BAD_REQUEST, f"Missing: `file`, and `purpose` of {', '.join(PURPOSES)}.")
        settings = self._service.settings_of(settings_asked(path, "body"))
        max_bytes = settings.max_bytes or MOST_BYTES
        if size > max_bytes and for_batches:
            raise RefusedError(Why.TOO_LARGE, f"A file for batches has at most {max_bytes:,} bytes.")

        # How long the vendor keeps it.
        try:
            keep_s = float(fields.get("expires_after[seconds]", MONTH_S))
        except ValueError:
            keep_s = 0.0
        low, high = dialect.kept_s
        if not low <= keep_s <= high:
            raise RefusedError(Why.BAD_REQUEST, f"expires_after must be {low} to {high} seconds.")
        return StoredFile(
            id=file_id,
            name=fields["name"],
            purpose=fields["purpose"],
            bytes=size,
            created_at=now,
            workspace=workspace_of(request),
            keep_s=keep_s,
            speedup=settings.speedup,
        )

    async def files(self, request: web.BaseRequest) -> web.StreamResponse:
        now, purpose = self._service.clock.now(), request.query.get("purpose")
        there = [
            file
            for file in self._service.storage.files.values()
            if file.workspace == workspace_of(request)
            and file.is_there(now)
            and purpose in (None, file.purpose)
        ]
        there.sort(key=lambda file: file.created_at, reverse=request.query.get("order", "desc") == "desc")
        page, more = _page(request, there, lambda file: file.id, max_limit=10_000)
        return await answer(request, _list([_file(file) for file in page], more), self._headers(request))

    async def file(self, request: web.BaseRequest, file_id: str) -> web.StreamResponse:
        return await answer(request, _file(self._find(request, file_id)), self._headers(request))

    async def delete(self, request: web.BaseRequest, file_id: str) -> web.StreamResponse:
        self._service.delete(self._find(request, file_id))
        deleted = {"id": file_id, "object": "file", "deleted": True}
        return await answer(request, deleted, self._headers(request))

    async def content(self, request: web.BaseRequest, file_id: str) -> web.StreamResponse:
        file = self._find(request, file_id)
        headers = {
            **self._headers(request),
            "content-type": "application/octet-stream",
            "content-disposition": f'attachment; filename="{file.name}"',
        }
        batch = self._service.storage.batches.get(file.name.rpartition("_")[0])
        path = self._service.storage.path(file_id)
        return await self.send_results(batch, request, path, headers, with_length=True)

    async def create(self, request: web.BaseRequest) -> web.StreamResponse:
        dialect = dialect_of(request)
        body = dialect.asked(await body_of(request))
        batch = await carried_out(self._created(request, body, dialect))
        return await self._answer_batch(request, *await self._service.look(batch))

    async def _created(self, request: web.BaseRequest, body: Json, dialect: Dialect) -> ServedBatch:
        file = self._find(request, str(body.get("input_file_id")))
        endpoint = f"/v1{str(body.get('endpoint')).removeprefix('/v1')}"
        if endpoint not in ENDPOINTS:
            raise RefusedError(Why.BAD_REQUEST, f"endpoint must be one of {', '.join(ENDPOINTS)}.")
        if body.get("completion_window") != "24h":
            raise RefusedError(Why.BAD_REQUEST, "completion_window must be 24h.")
        metadata = body.get("metadata")
        pairs = metadata if isinstance(metadata, dict) else {}
        fits = len(pairs) <= MOST_METADATA and all(
            isinstance(value, str) and len(key) <= LONGEST_KEY and len(value) <= LONGEST_VALUE
            for key, value in pairs.items()
        )
        if metadata is not None and not (isinstance(metadata, dict) and fits):
            raise RefusedError(
                Why.BAD_REQUEST, "metadata may hold 16 pairs of text, of 64 and 512 characters."
            )
        path = self._service.storage.path(file.id)
        settings = self._service.settings_of(settings_asked(path, "body"))
        settings = replace(settings, faults=(*settings.faults, *dialect.faults))
        max_requests, knows = settings.max_requests or MOST_REQUESTS, self._service.models.model
        handed = await asyncio.to_thread(check_file, path, endpoint, max_requests=max_requests, knows=knows)
        draft = ServedBatch(
            id="",
            vendor=self.vendor,
            workspace=workspace_of(request),
            number=0,
            created_at=self._service.clock.now(),
            endpoint=str(body["endpoint"]),
            input_file_id=file.id,
            metadata=pairs or None,
            model=handed.model,
            requests=handed.requests,
            tokens=handed.tokens,
            errors=tuple(handed.errors) or None,
            settings=settings,
            latency_s=0,
        )
        return self._service.create(draft)

    async def batches(self, request: web.BaseRequest) -> web.StreamResponse:
        listed = self._service.listed(self.vendor, workspace_of(request))
        page, more = _page(request, listed, lambda batch: batch.id, max_limit=100)
        dialect = dialect_of(request)
        entries = [dialect.told(self._written(*await self._service.look_in_list(batch))) for batch in page]
        return await answer(request, _list(entries, more), self._headers(request))

    async def batch(self, request: web.BaseRequest, batch_id: str) -> web.StreamResponse:
        batch = self._service.find(self.vendor, workspace_of(request), batch_id)
        return await self._answer_batch(request, *await self._service.look(batch))

    async def cancel(self, request: web.BaseRequest, batch_id: str) -> web.StreamResponse:
        batch = self._service.find(self.vendor, workspace_of(request), batch_id)
        return await self._answer_batch(request, *await self._service.cancel(batch))

    async def _answer_batch(
        self, request: web.BaseRequest, batch: ServedBatch, course: Course
    ) -> web.StreamResponse:
        body = dialect_of(request).told(self._written(batch, course))
        return await answer(request, body, self._headers(request))

    def _written(self, batch: ServedBatch, course: Course) -> Json:
        return self.adapt(_batch(batch, course), batch, course)

    def _find(self, request: web.BaseRequest, file_id: str) -> StoredFile:
        file = self._service.storage.files.get(file_id)
        there = file is not None and file.is_there(self._service.clock.now())
        if file is None or not there or file.workspace != workspace_of(request):
            raise RefusedError(Why.NO_SUCH_OBJECT, f"No such File object: {file_id}.")
        return file

    def _headers(self, request: web.BaseRequest) -> dict[str, str]:
        return {
            "date": self._service.clock.date(),
            "x-request-id": new_id("req_"),
            "openai-organization": "org-simulated",
            "openai-project": f"proj_{workspace_of(request)}",
        }


def _page(
    request: web.BaseRequest, listed: Sequence[Anything], id_of: Callable[[Anything], str], *, max_limit: int
) -> tuple[Sequence[Anything], bool]:
    """Return the page of a list that is asked for in a dialect, and whether there is more."""
    if dialect_of(request).whole_lists:
        return listed, False
    return page_of(listed, request, id_of, after="after", max_limit=max_limit)


def _list(data: Sequence[Json], more: bool) -> Json:
    ids = [item["id"] for item in data] or [None]
    return {"object": "list", "data": data, "first_id": ids[0], "last_id": ids[-1], "has_more": more}


def _file(file: StoredFile) -> Json:
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.bytes,
        "created_at": int(file.created_at),
        "expires_at": int(file.created_at) + int(file.keep_s),
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }


def _batch(batch: ServedBatch, course: Course) -> Json:
    """Write a batch. It has counts from its validation on, and usage and files when it has ended."""
    created_at = int(batch.created_at)
    stamps = {state: created_at + int(began_s) for state, began_s in course.began_s.items()}
    outcome = batch.outcome if course.ended else None
    validated = course.status != "validating" and batch.errors is None
    usage = (outcome.input_tokens, outcome.output_tokens, outcome.reasoning_tokens) if outcome else (0, 0, 0)
    counts = (outcome.answered, outcome.failed) if outcome else (course.done if validated else 0, 0)
    errors = None if batch.errors is None or not course.ended else {"object": "list", "data": batch.errors}
    file_ids = outcome.files if outcome else {}
    no_id = "" if Kind.EMPTY_IDS in batch.met else None
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "model": batch.model if validated else None,
        "errors": errors,
        "input_file_id": batch.input_file_id,
        "completion_window": "24h",
        "status": course.status,
        "output_file_id": file_ids.get("output", no_id),
        "error_file_id": file_ids.get("error", no_id),
        "created_at": created_at,
        "expires_at": created_at + 86_400,
        **{f"{state}_at": stamps.get(state) for state in _STAMPED},
        "request_counts": {
            "total": batch.requests if validated else 0,
            "completed": counts[0],
            "failed": counts[1],
        },
        "usage": {
            "input_tokens": usage[0],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage[1],
            "output_tokens_details": {"reasoning_tokens": usage[2]},
            "total_tokens": usage[0] + usage[1],
        },
        "metadata": batch.metadata,
    }
