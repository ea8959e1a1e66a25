"""Anthropic's Message Batches (its SDK's types, release 2.11)."""

from dataclasses import replace
from datetime import UTC, datetime

from aiohttp import web

from asyncbench.simulator.batches.pages import (
    PIECE,
    Routes,
    ServedBatchApi,
    answer,
    page_of,
    settings_asked,
    split_requests,
    workspace_of,
)
from asyncbench.simulator.batches.records import DAY_S, Course, ServedBatch, new_id
from asyncbench.simulator.batches.service import BatchService
from asyncbench.simulator.wire import Json, RefusedError, Why

MOST_REQUESTS, MOST_BYTES = 100_000, 256_000_000
ARCHIVED_S = 29 * DAY_S  # after its creation
COME_AGAIN_S = 10  # told with a batch that has not ended


class AnthropicBatchApi(ServedBatchApi):
    """Answers what is asked of `/v1/messages/batches`."""

    vendor = "anthropic"

    def __init__(self, service: BatchService) -> None:
        super().__init__(service)
        self.routes: Routes = (
            ("POST", "/messages/batches", self.create),
            ("GET", "/messages/batches", self.batches),
            ("GET", "/messages/batches/([^/]+)", self.batch),
            ("DELETE", "/messages/batches/([^/]+)", self.delete),
            ("GET", "/messages/batches/([^/]+)/results", self.results),
            ("POST", "/messages/batches/([^/]+)/cancel", self.cancel),
        )

    async def create(self, request: web.BaseRequest) -> web.StreamResponse:
        now, name = self._service.clock.now(), new_id("requests-")
        path = self._service.storage.path(name)
        try:
            handed = await split_requests(request.content.iter_chunked(PIECE), path)
            settings = self._service.settings_of(settings_asked(path, "params"))
            max_requests, max_bytes = settings.max_requests or MOST_REQUESTS, settings.max_bytes or MOST_BYTES
            if handed.requests > max_requests or path.stat().st_size > max_bytes:
                limits = f"{max_requests:,} requests, {max_bytes:,} bytes"
                raise RefusedError(Why.TOO_LARGE, f"A batch has at most {limits}.")
            draft = ServedBatch(
                id="",
                vendor=self.vendor,
                workspace=workspace_of(request),
                number=0,
                created_at=now,
                endpoint="/v1/messages",
                input_file_id=name,
                model=handed.model,
                requests=handed.requests,
                tokens=0,
                settings=settings,
                latency_s=0,
            )
            batch = self._service.create(draft)
        finally:
            if not any(batch.input_file_id == name for batch in self._service.storage.batches.values()):
                path.unlink(missing_ok=True)
        return await self._answer_batch(request, batch)

    async def batches(self, request: web.BaseRequest) -> web.StreamResponse:
        listed = self._service.listed(self.vendor, workspace_of(request))
        page, more = page_of(listed, request, lambda batch: batch.id, after="after_id", max_limit=1_000)
        shown = [await self._service.look_in_list(batch) for batch in page]
        entries = [self._written(batch, course, request.host) for batch, course in shown]
        ids = [batch["id"] for batch in entries] or [None]
        body = {"data": entries, "has_more": more, "first_id": ids[0], "last_id": ids[-1]}
        return await answer(request, body, self._headers(request))

    async def batch(self, request: web.BaseRequest, batch_id: str) -> web.StreamResponse:
        return await self._answer_batch(request, self._find(request, batch_id))

    async def cancel(self, request: web.BaseRequest, batch_id: str) -> web.StreamResponse:
        batch, course = await self._service.cancel(self._find(request, batch_id))
        return await answer(request, self._written(batch, course, request.host), self._headers(request))

    async def delete(self, request: web.BaseRequest, batch_id: str) -> web.StreamResponse:
        batch, course = await self._service.look(self._find(request, batch_id))
        if not course.ended:
            raise RefusedError(Why.BAD_REQUEST, "A batch can be deleted when it has ended; cancel it first.")
        self._service.storage.keep(replace(batch, deleted=True))
        deleted = {"id": batch_id, "type": "message_batch_deleted"}
        return await answer(request, deleted, self._headers(request))

    async def results(self, request: web.BaseRequest, batch_id: str) -> web.StreamResponse:
        batch, course = await self._service.look(self._find(request, batch_id))
        if not course.ended or batch.outcome is None or course.at_s >= ARCHIVED_S:
            raise RefusedError(Why.NO_SUCH_OBJECT, f"Batch {batch_id} has no available results.")
        headers = {**self._headers(request), "content-type": "application/x-jsonl"}
        path = self._service.storage.path(batch.outcome.files["output"])
        return await self.send_results(batch, request, path, headers, with_length=False)

    async def _answer_batch(self, request: web.BaseRequest, batch: ServedBatch) -> web.StreamResponse:
        batch, course = await self._service.look(batch)
        again = {} if course.ended else {"retry-after": str(COME_AGAIN_S)}
        body = self._written(batch, course, request.host)
        return await answer(request, body, self._headers(request) | again)

    def _written(self, batch: ServedBatch, course: Course, host: str) -> Json:
        """Write a batch. Its counts do not move before its end."""
        outcome = batch.outcome if course.ended else None
        archived = course.at_s >= ARCHIVED_S
        counts = {"processing": batch.requests, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        if outcome is not None:
            counts = {
                "processing": 0,
                "succeeded": outcome.answered,
                "errored": batch.requests - outcome.answered - outcome.cancelled - outcome.expired,
                "canceled": outcome.cancelled,
                "expired": outcome.expired,
            }
        status = "ended" if course.ended else "canceling" if course.cancelling else "in_progress"
        results_url = None
        if outcome and not archived:
            results_url = f"http://{host}/v1/messages/batches/{batch.id}/results"
        written: Json = {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": status,
            "request_counts": counts,
            "created_at": _moment(batch, 0.0),
            "expires_at": _moment(batch, DAY_S),
            "ended_at": _moment(batch, course.ends_s) if course.ended else None,
            "cancel_initiated_at": _moment(batch, course.began_s.get("cancelling")),
            "archived_at": _moment(batch, ARCHIVED_S) if archived else None,
            "results_url": results_url,
        }
        return self.adapt(written, batch, course)

    def _find(self, request: web.BaseRequest, batch_id: str) -> ServedBatch:
        return self._service.find(self.vendor, workspace_of(request), batch_id)

    def _headers(self, request: web.BaseRequest) -> dict[str, str]:
        return {
            "date": self._service.clock.date(),
            "request-id": new_id("req_"),
            "anthropic-organization-id": "org-simulated",
            "anthropic-workspace-id": f"wrkspc_{workspace_of(request)}",
        }


def _moment(batch: ServedBatch, after_s: float | None) -> str | None:
    if after_s is None:
        return None
    return datetime.fromtimestamp(batch.created_at + after_s, UTC).isoformat().replace("+00:00", "Z")
