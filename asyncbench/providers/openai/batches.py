"""OpenAI's batches, of chat completions and responses: a file is uploaded, and a batch created of it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.batch_calls import BatchLine, BatchState, NotRun, RemoteBatch, Submission
from asyncbench.providers.endpoints import BatchWays, Endpoint
from asyncbench.providers.failures import encoded
from asyncbench.providers.loose_json import count_in, items, mapping_in, text
from asyncbench.providers.openai.client import OpenAIProvider
from asyncbench.providers.sdk_batches import SdkBatches, line_object, time_of, unstreamed
from asyncbench.providers.wire import Wire
from asyncbench.records import Request

MOST_REQUESTS: Final = 50_000
MOST_BYTES: Final = 200_000_000
PAGE: Final = 100
_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
_ENDS: Final = ("completed_at", "failed_at", "expired_at", "cancelled_at")


class OpenAIBatches(SdkBatches):
    """`/files` and `/batches`."""

    uploads = True

    def __init__(self, endpoint: Endpoint, wire: Wire, now: Callable[[], float], ways: BatchWays) -> None:
        super().__init__(OpenAIProvider(endpoint, wire), wire, key=endpoint.api_key, now=now)
        self._path, self._created_for = f"/v1/{wire.path}", f"{ways.endpoint}{wire.path}"
        self.most_requests = ways.most_requests or MOST_REQUESTS
        self.most_bytes = ways.most_bytes or MOST_BYTES

    def line(self, custom_id: str, request: Request) -> bytes:
        body = self._wire.body(unstreamed(request))
        return encoded({"custom_id": custom_id, "method": "POST", "url": self._path, "body": body})

    async def upload(self, path: Path, name: str, size: int) -> str:
        with path.open("rb") as file:
            said = await self._json(
                "post",
                "files",
                size=size,
                headers={"Content-Type": "multipart/form-data"},
                body={"purpose": "batch"},
                files=[("file", (name, file, "application/jsonl"))],
            )
        return _id_of(said)

    async def uploaded(self, name: str, size: int) -> str | None:
        page = await self._json("get", f"files?purpose=batch&order=desc&limit={PAGE}")
        found = [mapping_in(file) for file in items(page.get("data"))]
        same = (file for file in found if file.get("filename") == name and file.get("bytes") == size)
        return next(map(_id_of, same), None)

    async def create(self, submission: Submission) -> RemoteBatch:
        metadata = {
            "asyncbench": "1",
            "batch_key": submission.key,
            "requests": str(submission.requests),
            "sha256": submission.sha256,
        }
        body = {
            "input_file_id": submission.file_id,
            "endpoint": self._created_for,
            "completion_window": "24h",
            "metadata": metadata,
        }
        return _batch(await self._json("post", "batches", body=body))

    async def retrieve(self, batch_id: str) -> RemoteBatch:
        return _batch(await self._json("get", f"batches/{batch_id}"))

    async def recent(self, since: float) -> list[RemoteBatch]:
        found, after = list[RemoteBatch](), ""
        while True:
            page = await self._json("get", f"batches?limit={PAGE}{after}")
            batches = [_batch(mapping_in(batch)) for batch in items(page.get("data"))]
            found += [batch for batch in batches if batch.created_at >= since]
            if not batches or not page.get("has_more") or batches[-1].created_at < since:
                return found
            after = f"&after={batches[-1].id}"

    async def cancel(self, batch_id: str) -> RemoteBatch:
        return _batch(await self._json("post", f"batches/{batch_id}/cancel"))

    async def download(self, batch: RemoteBatch, into: Path) -> None:
        with into.open("wb") as file:
            for file_id in batch.files:
                await self._save(f"files/{file_id}/content", file)

    async def first_custom_id(self, batch: RemoteBatch) -> str | None:
        line = await self._first_line(f"files/{batch.files[0]}/content") if batch.files else b""
        return str(line_object(line)["custom_id"]) if line else None

    def read(self, line: bytes) -> BatchLine:
        said = line_object(line)
        custom_id, response = str(said["custom_id"]), mapping_in(said.get("response"))
        if not response:
            code = text(mapping_in(said.get("error")).get("code")) or ""
            if "expired" in code or "cancel" in code:
                why = NotRun.EXPIRED if "expired" in code else NotRun.CANCELLED
                return BatchLine(custom_id=custom_id, ended=why)
            return BatchLine(custom_id=custom_id, ended=self._refusal(said, 500))
        status, body = count_in(response.get("status_code")) or 0, response.get("body")
        if status >= 300:
            error = self._refusal(body, status)
            # What tells no usage was refused before any work, whatever it would mean for a single call.
            error.may_have_been_billed = bool(mapping_in(mapping_in(body).get("usage")))
            return BatchLine(custom_id=custom_id, ended=error)
        if status < 200:
            broken = self._broken(body, status, "the line tells no status")
            return BatchLine(custom_id=custom_id, ended=broken)
        try:
            return BatchLine(custom_id=custom_id, ended=self._reply(body, status))
        except ProviderError as error:
            return BatchLine(custom_id=custom_id, ended=error)

    async def delete_input(self, file_id: str) -> None:
        try:
            await self._json("delete", f"files/{file_id}")
        except ProviderError as error:
            if error.http_status != 404:
                raise


def _id_of(said: Mapping[str, object]) -> str:
    """Return the id of what was made; where there is none, nobody knows what was made."""
    if (found := text(said.get("id"))) is None:
        raise ProviderError(ErrorKind.BAD_REPLY, "the reply names no id", http_status=200)
    return found


def _batch(said: Mapping[str, object]) -> RemoteBatch:
    counts, used = mapping_in(said.get("request_counts")), mapping_in(said.get("usage"))
    metadata, status = mapping_in(said.get("metadata")), (text(said.get("status")) or "").lower()
    total, done = count_in(counts.get("total")), count_in(counts.get("completed"))
    failed = count_in(counts.get("failed"))
    told = count_in(used.get("input_tokens")), count_in(used.get("output_tokens"))
    files = [text(said.get(name)) for name in ("output_file_id", "error_file_id")]
    # A batch may be complete before it tells where its answers are.
    waits = status == "completed" and bool(done) and not files[0]
    ended = status in _ENDED and not waits
    faults = items(mapping_in(said.get("errors")).get("data"))
    return RemoteBatch(
        id=_id_of(said),
        state=BatchState.ENDED if ended else BatchState.RUNNING,
        status=status,
        created_at=time_of(said.get("created_at")) or 0.0,
        ended_at=next((at for name in _ENDS if (at := time_of(said.get(name)))), None),
        requests=total or None,
        done=None if done is None else done + (failed or 0),
        files=tuple(file for file in files if file),
        input_file_id=text(said.get("input_file_id")),
        batch_key=text(metadata.get("batch_key")),
        tokens=None if None in told or not ended else (told[0] or 0, told[1] or 0),
        faults=tuple(mapping_in(fault) for fault in faults),
    )
