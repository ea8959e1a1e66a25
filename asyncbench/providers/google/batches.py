"""Gemini's batches: a file of requests is uploaded, and a batch created of it, which names that file."""

from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.batch_calls import BatchLine, RemoteBatch, Submission
from asyncbench.providers.endpoints import LARGEST_BATCHES, Endpoint
from asyncbench.providers.error_kinds import encoded
from asyncbench.providers.google.client import VERSION, GoogleProvider
from asyncbench.providers.sdk_batches import SdkBatches, id_of, line_object, time_of
from asyncbench.providers.wire import Wire, count_in, items, mapping_in, text
from asyncbench.records import Request

PAGE: Final = 100
KEPT_S: Final = 48 * 3600.0  # files are, those of results too (its page on files, 2026)
GIVEN_UP_S: Final = 3600.0  # after the end of a batch without a file of results: there is none
_GONE: Final = (403, 404)  # of a file: Google does not tell apart what is not there and what is another's
# So creates are refused beyond the enqueued tokens of a model (googleapis/js-genai, issue 1264; 2026).
_FULL: Final = "(no quota is named, so the batch queue is full)"
_STATES: Final[Mapping[str, str]] = {  # → the words of others
    "PENDING": "validating",
    "RUNNING": "in_progress",
    "SUCCEEDED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "EXPIRED": "expired",
}
_ENDED: Final = frozenset({"completed", "failed", "cancelled", "expired"})
_UNKNOWN: Final = "ended"  # what ran left nothing to collect: nobody knows what it cost
_STATUSES: Final[Mapping[int, int]] = {  # by the codes of google.rpc
    1: 499,
    3: 400,
    4: 504,
    5: 404,
    7: 403,
    8: 429,
    9: 400,
    10: 409,
    11: 400,
    12: 501,
    13: 500,
    14: 503,
    16: 401,
}


class GoogleBatches(SdkBatches):
    """`upload`, `batchGenerateContent`, `batches` and `files`."""

    uploads = True
    kept_s: float | None = KEPT_S
    most_requests, most_bytes = LARGEST_BATCHES["google"]

    def __init__(self, endpoint: Endpoint, wire: Wire, now: Callable[[], float], model_id: str) -> None:
        super().__init__(GoogleProvider(endpoint, wire), wire, key=endpoint.api_key, now=now)
        self._model_id = model_id.removeprefix("models/")

    def line(self, custom_id: str, request: Request) -> bytes:
        return encoded({"key": custom_id, "request": self.batch_body(request)})

    async def upload(self, path: Path, name: str, size: int) -> str:
        begin = {
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(size),
            "x-goog-upload-header-content-type": "application/jsonl",
        }
        start_path, start = f"upload/{VERSION}/files", {"file": {"display_name": name}}
        async with self._sdk.exchange(
            "post", start_path, within_s=60.0, headers=begin, body=start
        ) as response:
            self._note(response)
            address = urlsplit(response.headers.get("x-goog-upload-url", ""))
        # Its host is not looked at: the key goes to the one that the sweep names, and no other.
        path_with_query = f"{address.path.lstrip('/')}?{address.query}"
        finish = {"x-goog-upload-command": "upload, finalize", "x-goog-upload-offset": "0"}
        with path.open("rb") as file:
            reply = await self.call("post", path_with_query, size=size, headers=finish, content=file)
        return id_of({"id": mapping_in(reply.get("file")).get("name")})

    async def uploaded(self, name: str, size: int) -> str | None:
        async for page in self._listed("files", "files"):
            for file in page:
                if (file.get("displayName"), _number(file.get("sizeBytes"))) == (name, size):
                    return id_of({"id": file.get("name")})
        return None

    async def create(self, submission: Submission) -> RemoteBatch:
        source = {"fileName": submission.file_id}
        body = {"batch": {"displayName": submission.key, "inputConfig": source}}
        path = f"{VERSION}/models/{self._model_id}:batchGenerateContent"
        try:
            return self._batch(await self.call("post", path, body=body))
        except ProviderError as error:
            if error.kind is ErrorKind.RATE_LIMITED and not error.allowances:
                error.message = f"{error.message} {_FULL}"
            raise

    async def retrieve(self, batch_id: str) -> RemoteBatch:
        return self._batch(await self.call("get", f"{VERSION}/{batch_id}"))

    async def pages(self) -> AsyncGenerator[list[RemoteBatch]]:
        async for page in self._listed("batches", "operations"):
            yield [self._batch(batch) for batch in page]

    async def _listed(self, path: str, name: str) -> AsyncGenerator[list[dict[str, object]]]:
        token: str | None = ""
        while token is not None:
            query = urlencode({"pageSize": PAGE} | ({"pageToken": token} if token else {}))
            page = await self.call("get", f"{VERSION}/{path}?{query}")
            yield [mapping_in(entry) for entry in items(page.get(name))]
            token = text(page.get("nextPageToken"))

    async def cancel(self, batch_id: str) -> RemoteBatch:
        await self.call("post", f"{VERSION}/{batch_id}:cancel", body={})
        return await self.retrieve(batch_id)

    async def download(self, batch: RemoteBatch, into: Path) -> None:
        try:
            with into.open("wb") as file:
                for name in batch.files:
                    await self.save_results(_content(name), file, batch)
        except ProviderError as error:
            if error.http_status in _GONE:  # the batch itself could be read just before
                error.http_status = 404
            raise

    async def custom_ids(self, batch: RemoteBatch, max_ids: int) -> list[str]:
        return await self.first_ids(_content(batch.files[0]), max_ids) if batch.files else []

    def read(self, line: bytes) -> BatchLine:
        fields = line_object(line)
        custom_id = str(fields["key"])
        if error := mapping_in(fields.get("error")) or mapping_in(fields.get("status")):
            refused = self.line_refusal({"error": _add_status(error)}, _status_of(error))
            refused.may_have_been_billed = False  # without a response there is no usage to bill
            return BatchLine(custom_id=custom_id, ended=refused)
        try:
            return BatchLine(custom_id=custom_id, ended=self.line_reply(fields.get("response"), 200))
        except ProviderError as broken:
            broken.may_have_been_billed = True
            return BatchLine(custom_id=custom_id, ended=broken)

    async def delete_input(self, file_id: str) -> None:
        try:
            await self.call("delete", f"{VERSION}/{file_id}")
        except ProviderError as error:
            if error.http_status not in _GONE:
                raise

    def _batch(self, operation: Mapping[str, object]) -> RemoteBatch:
        fields, response = mapping_in(operation.get("metadata")), mapping_in(operation.get("response"))
        state = (text(fields.get("state")) or "").rpartition("STATE_")[2]
        status = _STATES.get(state, state.lower())

        # The file of results, whichever object tells it; it may come some time after the end.
        objects = response, fields
        nested = (mapping_in(entry.get(name)) for entry in objects for name in ("output", "dest"))
        files = (entry.get(name) for entry in (*objects, *nested) for name in ("responsesFile", "fileName"))
        file = next(filter(None, map(text, files)), None)
        counts = {name: _number(count) for name, count in mapping_in(fields.get("batchStats")).items()}
        ran = counts.get("successfulRequestCount") or 0
        ended_at = time_of(fields.get("endTime")) or time_of(fields.get("updateTime"))
        age_s = self._now() + self.skew_s - (ended_at or 0.0)
        is_awaiting_file = status == "completed" and file is None and ran > 0 and age_s < GIVEN_UP_S
        if file is None and ran and status in ("cancelled", "expired"):
            status = _UNKNOWN
        error = mapping_in(operation.get("error"))
        return RemoteBatch(
            id=id_of({"id": operation.get("name")}),
            ended=(status in _ENDED or status == _UNKNOWN) and not is_awaiting_file,
            status=status,
            created_at=time_of(fields.get("createTime")) or 0.0,
            ended_at=ended_at if status in _ENDED or status == _UNKNOWN else None,
            requests=counts.get("requestCount") or None,
            done=ran + (counts.get("failedRequestCount") or 0),
            files=(file,) if file else (),
            input_file_id=text(mapping_in(fields.get("inputConfig")).get("fileName")),
            batch_key=text(fields.get("displayName")),
            faults=(_add_status(error),) if status == "failed" else (),
        )


def _content(file: str) -> str:
    return f"download/{VERSION}/{file}:download?alt=media"


def _number(written: object) -> int | None:
    """Return a count, which JSON of Google's writes as text."""
    if isinstance(written, str) and written.isascii() and written.isdigit():
        return int(written)
    return count_in(written)


def _status_of(error: Mapping[str, object]) -> int:
    code = count_in(error.get("code")) or 0
    return code if code >= 100 else _STATUSES.get(code, 500)


def _add_status(error: Mapping[str, object]) -> dict[str, object]:
    """Return an error with the status that an answer to a single call has."""
    return {**error, "code": _status_of(error)}
