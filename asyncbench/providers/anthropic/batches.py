"""Anthropic's batches of messages: a batch is created of all its requests at once, and has no name."""

from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Final

import orjson

from asyncbench.errors import ProviderError
from asyncbench.providers.anthropic.client import AnthropicProvider
from asyncbench.providers.batch_calls import BatchLine, NotRun, RemoteBatch, Submission
from asyncbench.providers.endpoints import LARGEST_BATCHES, Endpoint
from asyncbench.providers.error_kinds import encoded
from asyncbench.providers.params import SAMPLING_VERSION, needs_sampling_version
from asyncbench.providers.sdk_batches import SdkBatches, bytes_of, id_of, line_object, time_of
from asyncbench.providers.wire import Wire, count_in, items, mapping_in, text
from asyncbench.records import Request

PAGE: Final = 1000
PATH: Final = "v1/messages/batches"
_PREFIX, _SUFFIX = b'{"requests":[', b"]}"
# An errored line tells no status: these are what such errors have as answers to single calls.
_STATUSES: Final[Mapping[str | None, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatches(SdkBatches):
    """`/v1/messages/batches`."""

    uploads = False
    most_requests, most_bytes = LARGEST_BATCHES["anthropic"]

    def __init__(self, endpoint: Endpoint, wire: Wire, now: Callable[[], float]) -> None:
        super().__init__(AnthropicProvider(endpoint, wire), wire, key=endpoint.api_key, now=now)

    def line(self, custom_id: str, request: Request) -> bytes:
        return encoded({"custom_id": custom_id, "params": self.batch_body(request)})

    async def upload(self, path: Path, name: str, size: int) -> str:
        raise NotImplementedError(f"{path}: {name} of {size:,} bytes goes with the create")

    async def uploaded(self, name: str, size: int) -> str | None:
        raise NotImplementedError(f"{name} of {size:,} bytes goes with the create")

    async def create(self, submission: Submission) -> RemoteBatch:
        length = len(_PREFIX) + submission.size - 1 + len(_SUFFIX)
        headers = {"content-type": "application/json", "content-length": str(length)}
        with submission.path.open("rb") as lines:  # one model, so one version of the API for all
            first = mapping_in(orjson.loads(lines.readline()).get("params"))
        if needs_sampling_version(first):
            headers["anthropic-version"] = SAMPLING_VERSION
        content = bytes_of(submission.path, submission.size, prefix=_PREFIX, suffix=_SUFFIX)
        return _batch(await self.call("post", PATH, size=length, headers=headers, content=content))

    async def retrieve(self, batch_id: str) -> RemoteBatch:
        return _batch(await self.call("get", f"{PATH}/{batch_id}"))

    async def pages(self) -> AsyncGenerator[list[RemoteBatch]]:
        page_query = ""
        while True:
            page = await self.call("get", f"{PATH}?limit={PAGE}{page_query}")
            batches = [_batch(mapping_in(batch)) for batch in items(page.get("data"))]
            yield batches
            if not batches or not page.get("has_more"):
                return
            page_query = f"&after_id={batches[-1].id}"

    async def cancel(self, batch_id: str) -> RemoteBatch:
        return _batch(await self.call("post", f"{PATH}/{batch_id}/cancel"))

    async def download(self, batch: RemoteBatch, into: Path) -> None:
        # Never from where `results_url` leads: the key goes to the host that the sweep names, and no other.
        with into.open("wb") as file:
            await self.save_results(f"{PATH}/{batch.id}/results", file, batch)

    async def custom_ids(self, batch: RemoteBatch, max_ids: int) -> list[str]:
        return await self.first_ids(f"{PATH}/{batch.id}/results", max_ids)

    def read(self, line: bytes) -> BatchLine:
        fields = line_object(line)
        custom_id, result = str(fields["custom_id"]), mapping_in(fields.get("result"))
        kind = text(result.get("type"))
        if kind in ("canceled", "expired"):
            why = NotRun.EXPIRED if kind == "expired" else NotRun.CANCELLED
            return BatchLine(custom_id=custom_id, ended=why)
        if kind == "errored":
            body = mapping_in(result.get("error"))
            family = text(mapping_in(body.get("error")).get("type"))
            error = self.line_refusal(body, _STATUSES.get(family, 500))
            error.may_have_been_billed = False  # only what succeeded is billed
            return BatchLine(custom_id=custom_id, ended=error)
        if kind != "succeeded":
            return BatchLine(
                custom_id=custom_id, ended=self.line_fault(fields, 200, "the line tells no result")
            )
        try:
            return BatchLine(custom_id=custom_id, ended=self.line_reply(result.get("message"), 200))
        except ProviderError as error:
            return BatchLine(custom_id=custom_id, ended=error)

    async def delete_input(self, file_id: str) -> None:
        raise NotImplementedError(f"{file_id}: nothing was uploaded")


def _batch(fields: Mapping[str, object]) -> RemoteBatch:
    counts = mapping_in(fields.get("request_counts"))
    numbers = {name: count_in(number) or 0 for name, number in counts.items()}
    status, total = text(fields.get("processing_status")) or "", sum(numbers.values())
    return RemoteBatch(
        id=id_of(fields),
        ended=status == "ended",
        status=status,
        created_at=time_of(fields.get("created_at")) or 0.0,
        ended_at=time_of(fields.get("ended_at")),
        requests=total or None,
        done=total - numbers.get("processing", 0),
    )
