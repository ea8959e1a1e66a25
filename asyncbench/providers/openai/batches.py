"""Batches as OpenAI has them, and those who imitate it: a file is uploaded, and a batch created of it.

How an imitation departs is data: `BatchWays`, of the endpoint table. What comes back is read for all alike.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from asyncbench.errors import ProviderError
from asyncbench.providers.batch_calls import BatchLine, NotRun, RemoteBatch, Submission
from asyncbench.providers.endpoints import LARGEST_BATCHES, BatchWays, Endpoint
from asyncbench.providers.error_kinds import encoded
from asyncbench.providers.openai.client import OpenAIProvider
from asyncbench.providers.sdk_batches import SdkBatches, id_of, line_object, time_of
from asyncbench.providers.wire import Wire, count_in, items, mapping_in, text
from asyncbench.records import Request

PAGE: Final = 100
LATE_S: Final = 600.0  # after the end of a batch, for the id of its answers; then its file is sought by name
GIVEN_UP_S: Final = 3600.0  # then there are none
_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
_ENDS: Final = ("completed_at", "failed_at", "expired_at", "cancelled_at")


class OpenAIBatches(SdkBatches):
    """`/files` and `/batches`."""

    uploads = True

    def __init__(self, endpoint: Endpoint, wire: Wire, now: Callable[[], float], batch: BatchWays) -> None:
        super().__init__(OpenAIProvider(endpoint, wire), wire, key=endpoint.api_key, now=now)
        self._ways = batch
        requests, size = LARGEST_BATCHES["openai"]
        self.most_requests, self.most_bytes = batch.most_requests or requests, batch.most_bytes or size
        self._least_poll_s = batch.poll_s

    def line(self, custom_id: str, request: Request) -> bytes:
        url = f"/v1/{self._wire.path}"
        line = {"custom_id": custom_id, "method": "POST", "url": url, "body": self.batch_body(request)}
        return encoded(line)

    async def upload(self, path: Path, name: str, size: int) -> str:
        with path.open("rb") as file:
            reply = await self.call(
                "post",
                "files",
                size=size,
                headers={"Content-Type": "multipart/form-data"},
                body=dict(self._ways.upload),
                files=[("file", (name, file, "application/jsonl"))],
            )
        return id_of(reply)

    async def uploaded(self, name: str, size: int) -> str | None:
        files = await self._files("batch")
        return next(
            (id_of(file) for file in files if (file.get("filename"), file.get("bytes")) == (name, size)),
            None,
        )

    async def _files(self, purpose: str) -> list[dict[str, object]]:
        """Return the files that were made last."""
        query = "" if self._ways.listed == "whole" else f"?purpose={purpose}&order=desc&limit={PAGE}"
        page = await self.call("get", f"files{query}")
        return [mapping_in(file) for file in items(page.get("data"))]

    async def create(self, submission: Submission) -> RemoteBatch:
        body = {
            "input_file_id": submission.file_id,
            "endpoint": f"{self._ways.endpoint}{self._wire.path}",
            "completion_window": "24h",
            "metadata": {
                "asyncbench": "1",
                "batch_key": submission.key,
                "requests": str(submission.requests),
                "sha256": submission.sha256,
            },
        }
        return self._batch(await self.call("post", "batches", body=body))

    async def retrieve(self, batch_id: str) -> RemoteBatch:
        return await self._whole(await self.call("get", f"batches/{batch_id}"))

    async def pages(self) -> AsyncGenerator[list[RemoteBatch]]:
        is_whole_list = self._ways.listed == "whole"
        query = "" if is_whole_list else f"?limit={PAGE}"
        while True:
            page = await self.call("get", f"batches{query}")
            batches = [await self._whole(mapping_in(batch)) for batch in items(page.get("data"))]
            yield batches
            if not batches or not page.get("has_more") or is_whole_list:
                return
            query = f"?limit={PAGE}&after={batches[-1].id}"

    async def cancel(self, batch_id: str) -> RemoteBatch:
        return self._batch(await self.call("post", f"batches/{batch_id}/cancel"))

    async def download(self, batch: RemoteBatch, into: Path) -> None:
        with into.open("wb") as file:
            for file_id in batch.files:
                await self.save_results(f"files/{file_id}/content", file, batch)

    async def custom_ids(self, batch: RemoteBatch, max_ids: int) -> list[str]:
        return await self.first_ids(f"files/{batch.files[0]}/content", max_ids) if batch.files else []

    def read(self, line: bytes) -> BatchLine:
        fields = line_object(line)
        custom_id, response = str(fields["custom_id"]), mapping_in(fields.get("response"))
        if not response:
            code = text(mapping_in(fields.get("error")).get("code")) or ""
            if "expired" in code or "cancel" in code:
                why = NotRun.EXPIRED if "expired" in code else NotRun.CANCELLED
                return BatchLine(custom_id=custom_id, ended=why)
            return BatchLine(custom_id=custom_id, ended=self.line_refusal(fields, 500))
        body, status = response.get("body"), count_in(response.get("status_code")) or 0
        if "status_code" not in response and body and not fields.get("error"):
            status = 200  # some write answers alone so
        if status >= 300:
            error = self.line_refusal(body, status)
            # What tells no usage was refused before any work, whatever it would mean for a single call.
            error.may_have_been_billed = bool(mapping_in(mapping_in(body).get("usage")))
            return BatchLine(custom_id=custom_id, ended=error)
        if status < 200:
            broken = self.line_fault(body, status, "the line tells no status")
            return BatchLine(custom_id=custom_id, ended=broken)
        try:
            return BatchLine(custom_id=custom_id, ended=self.line_reply(body, status))
        except ProviderError as error:
            error.may_have_been_billed = True  # the line says that it was answered
            return BatchLine(custom_id=custom_id, ended=error)

    async def delete_input(self, file_id: str) -> None:
        try:
            await self.call("delete", f"files/{file_id}")
        except ProviderError as error:
            if error.http_status != 404:
                raise

    async def _whole(self, fields: Mapping[str, object]) -> RemoteBatch:
        """Return a batch; where it never tells where its answers are, with the file that has their name."""
        batch = self._batch(fields)
        if batch.status != "completed" or batch.ended or batch.ended_at is None:
            return batch
        age_s = self._now() + self.skew_s - batch.ended_at
        if age_s < LATE_S:
            return batch
        name = f"{batch.id}_output.jsonl"
        file_ids = [
            text(file.get("id")) for file in await self._files("batch_output") if file.get("filename") == name
        ]
        if not any(file_ids) and age_s < GIVEN_UP_S:
            return batch
        return replace(batch, ended=True, files=(*filter(None, file_ids[:1]), *batch.files))

    def _batch(self, fields: Mapping[str, object]) -> RemoteBatch:
        """Read a batch, whichever of the known names its vendor has for what it tells."""
        word = (text(fields.get("status")) or "").lower()
        status = self._ways.words.get(word, word)
        counts, used = mapping_in(fields.get("request_counts")), mapping_in(fields.get("usage"))
        total, answered, failed = (count_in(counts.get(name)) for name in ("total", "completed", "failed"))
        tokens = count_in(used.get("input_tokens")), count_in(used.get("output_tokens"))
        files = [text(fields.get(name)) for name in ("output_file_id", "error_file_id")]
        # A batch may be complete before it tells where its answers are.
        unsure = answered is None and not files[1]
        waits = status == "completed" and not files[0] and bool(answered or unsure)
        ended = status in _ENDED and not waits
        faults = items(mapping_in(fields.get("errors")).get("data"))
        return RemoteBatch(
            id=id_of(fields),
            ended=ended,
            status=status,
            created_at=time_of(fields.get("created_at")) or 0.0,
            ended_at=next((time_s for name in _ENDS if (time_s := time_of(fields.get(name)))), None),
            requests=total or None,
            done=None if answered is None else answered + (failed or 0),
            files=tuple(file for file in files if file),
            input_file_id=text(fields.get("input_file_id")),
            batch_key=text(mapping_in(fields.get("metadata")).get("batch_key")),
            tokens=None if None in tokens or not ended else (tokens[0] or 0, tokens[1] or 0),
            # What a batch tells that ran is a sum of what its lines tell.
            faults=tuple(mapping_in(fault) for fault in faults) if status == "failed" else (),
        )
