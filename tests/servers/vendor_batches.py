"""Batches that go wrong in all the ways in which vendors' batches did: the simulator's, with more faults.

`asyncbench simulate` plays the faults of `BatchFaultKind`. A `VendorServer` plays those of `VendorFault`,
too: calls whose connection breaks, batches that nobody can see yet, and spoiled files of results.
"""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import orjson
from aiohttp import web

from asyncbench.simulator.batches.anthropic_api import AnthropicBatchApi
from asyncbench.simulator.batches.openai_api import OpenAIBatchApi
from asyncbench.simulator.batches.pages import ServedBatchApi, send_file, settings_asked
from asyncbench.simulator.batches.records import (
    Course,
    ServedBatch,
    StoredFile,
    course_of,
    new_id,
    told_error,
)
from asyncbench.simulator.batches.results import BatchRun, scattered
from asyncbench.simulator.batches.service import PREFIXES, BatchService
from asyncbench.simulator.batches.settings import KINDS, FaultName, Met, dealt
from asyncbench.simulator.delivery import HEADERS, Page, reset, whole
from asyncbench.simulator.server import ServedCall, Server
from asyncbench.simulator.wire import Json, RefusedError, Why, object_in


class VendorFault(FaultName):
    """Faults of batches that vendors were seen to have."""

    # the call: nothing is done, or it is done and the reply does not come
    UPLOAD_DROPPED = "upload_dropped", "upload"
    UPLOAD_REPLY_DROPPED = "upload_reply_dropped", "upload"
    UPLOAD_500 = "upload_500", "upload"  # after it is done
    CREATE_DROPPED = "create_dropped", "create"
    CREATE_REPLY_DROPPED = "create_reply_dropped", "create"
    CREATE_LATE = "create_late", "create", "60"  # done so many seconds after the connection was lost
    CREATE_500 = "create_500", "create"  # after it is done
    CREATE_429 = "create_429", "create"
    CREATE_400 = "create_400", "create", "billing_hard_limit_reached"  # the error's code
    CREATE_TWICE = "create_twice", "create"
    CANCEL_500 = "cancel_500", "cancel"  # after it is done
    # visibility
    UNLISTED = "unlisted", "batch", "120"  # for so many seconds
    UNKNOWN = "unknown", "batch", "120"  # retrieving answers 404 for so many seconds
    UNKNOWN_AGAIN = "unknown_again", "retrieve"
    RESULTS_UNKNOWN = "results_unknown", "batch", "120"  # for so many seconds after the end
    SKIPPED = "skipped", "list"  # the list lacks one entry
    LIST_BEHIND = "list_behind", "batch", "1e9"  # a list shows it as it was so many seconds before
    # validation
    FAILED_UNEXPLAINED = "failed_unexplained", "batch"
    POOL_FULL = "pool_full", "batch", "3600"  # for so many seconds after the first create of the model
    POOL_HELD = "pool_held", "batch", "3600"  # its tokens count for so many seconds after its end
    POOL_COUNTS_REPLIES = "pool_counts_replies", "batch"  # the longest ones allowed, beside the prompts
    TOKEN_LIMIT_AT_CREATE = "token_limit_at_create", "batch"  # 400, instead of `failed` by polling
    WITHOUT_COMMAS = "without_commas", "batch"  # the number in the token limit's message
    INPUT_NEEDED = "input_needed", "batch"  # it fails when its input file is deleted before its end
    # result files
    SHUFFLED = "shuffled", "batch"
    OUTPUT_LATE = "output_late", "batch", "95"  # its id is told so many seconds after the end
    FILE_EXPIRED = "file_expired", "batch"
    RESULTS_ELSEWHERE = "results_elsewhere", "batch", "http://127.0.0.2:9"  # the host of `results_url`
    CONTENT_502 = "content_502", "content"
    CONTENT_CUT = "content_cut", "content"  # at the end of a line, and no error tells
    CONTENT_CUT_IN_LINE = "content_cut_in_line", "content"  # within a line, and no error tells
    CONTENT_RESET = "content_reset", "content"  # the connection breaks halfway
    CONTENT_WRONG_LENGTH = "content_wrong_length", "content"  # the length of half is told, and half is sent
    # lines of results
    LINE_MISSING = "line_missing", "line"  # never run
    LINE_LOST = "line_lost", "line"  # run and billed, and in no file
    LINE_TWICE = "line_twice", "line"
    LINE_FOREIGN = "line_foreign", "line"  # one more, of a request that nobody made
    LINE_BROKEN = "line_broken", "line"  # it does not parse
    LINE_SEPARATORS = "line_separators", "line"  # U+2028, U+2029 and U+0085 within a string
    LINE_LONG = "line_long", "line", "1000000"  # so many bytes more


KINDS.update({kind.value: kind for kind in VendorFault})

_FOREIGN_ID = "a-request-that-nobody-made"
_SEPARATORS = "a\u2028b\u2029c\u0085d"
_HOLDS_ANY_TEXT = b'"system_fingerprint":"simulated'  # a field of every answer that changes nothing


class DroppedError(Exception):
    """A call whose connection breaks before the reply."""


class VendorRun(BatchRun):
    """Results whose lines are lost, doubled, foreign or odd."""

    def requests(self) -> Iterator[tuple[int, bytes]]:
        if VendorFault.SHUFFLED not in self.batch.met:
            yield from super().requests()
            return
        with self.storage.path(self.batch.input_file_id).open("rb") as file:
            starts = array("Q", [0])
            for line in file:
                starts.append(starts[-1] + len(line))
            order = scattered(self.batch.requests, f"order/{self.name}")
            for index in map(order, range(self.batch.requests)):
                file.seek(starts[index])
                yield index, file.readline()

    def keep_file(self, file: StoredFile) -> None:
        expired = VendorFault.FILE_EXPIRED in self.batch.met
        super().keep_file(replace(file, keep_s=0.0) if expired else file)

    def run(
        self, number: int, line: Json, met: Met, files: Mapping[str, BinaryIO], not_run: str | None
    ) -> None:
        if VendorFault.LINE_MISSING not in met or not_run is not None:
            super().run(number, line, met, files, not_run)

    def write_line(self, file: BinaryIO, result: Json, met: Met) -> None:
        if VendorFault.LINE_FOREIGN in met:
            super().write_line(file, {**result, "custom_id": _FOREIGN_ID}, met)
        if VendorFault.LINE_LOST in met:
            return
        content = orjson.dumps(result)
        more = _SEPARATORS.encode() if VendorFault.LINE_SEPARATORS in met else b""
        if more := more + b"x" * int(met.get(VendorFault.LINE_LONG, 0)):
            content = content.replace(_HOLDS_ANY_TEXT, _HOLDS_ANY_TEXT + more, 1)
        if VendorFault.LINE_BROKEN in met:
            content = content[: len(content) // 2]
        file.write((content + b"\n") * (2 if VendorFault.LINE_TWICE in met else 1))

    def is_unseen(self, met: Met) -> bool:
        return VendorFault.LINE_LOST in met or VendorFault.LINE_BROKEN in met


class VendorService(BatchService):
    """Batches whose calls fail, which come late or twice, and which nobody sees for a while."""

    run_type = VendorRun

    def create(self, draft: ServedBatch) -> ServedBatch:
        faults = dealt(draft.settings.faults)
        call = self.dealer.deal(faults, "create", draft.model)
        if VendorFault.CREATE_DROPPED in call:
            raise DroppedError
        if VendorFault.CREATE_429 in call:
            raise self.too_many_creates(draft)
        if (code := call.get(VendorFault.CREATE_400)) is not None:
            raise RefusedError(Why.BAD_REQUEST, "This batch cannot be created.", code=code)

        late_s = float(call.get(VendorFault.CREATE_LATE, 0)) / draft.settings.speedup
        number = self.next_number(draft.model)
        if VendorFault.POOL_COUNTS_REPLIES in self.dealer.deal(faults, "batch", draft.model, number=number):
            draft = replace(draft, tokens=draft.tokens + self._reply_tokens(draft))
        batch = super().create(replace(draft, created_at=draft.created_at + late_s))

        if VendorFault.CREATE_TWICE in call:
            self.storage.keep(replace(batch, id=new_id(PREFIXES[draft.vendor])))
        if VendorFault.CREATE_REPLY_DROPPED in call or VendorFault.CREATE_LATE in call:
            raise DroppedError
        if VendorFault.CREATE_500 in call:
            raise RefusedError(Why.SERVER_ERROR, "The server had an error.")
        return batch

    def _reply_tokens(self, draft: ServedBatch) -> int:
        """Return the tokens of the longest replies that the requests of a batch allow."""
        names = ("max_completion_tokens", "max_output_tokens", "max_tokens")
        with self.storage.path(draft.input_file_id).open("rb") as file:
            bodies = [object_in(orjson.loads(line)["body"]) for line in file]
        longest = (next((body[name] for name in names if name in body), None) for body in bodies)
        return sum(tokens for tokens in longest if isinstance(tokens, int))

    def validation_errors(self, batch: ServedBatch) -> tuple[Mapping[str, object], ...] | None:
        if batch.errors is None and batch.vendor == "openai" and VendorFault.FAILED_UNEXPLAINED in batch.met:
            return ()
        errors = super().validation_errors(batch)
        if errors is None and batch.vendor == "openai" and self._pool_is_full(batch):
            errors = (self.token_limit_error(batch),)
        if not errors or errors[0]["code"] != "token_limit_exceeded":
            return errors
        message = str(errors[0]["message"])
        if VendorFault.WITHOUT_COMMAS in batch.met:
            before, _, after = message.partition("Limit: ")
            limit, _, rest = after.partition(" ")
            message = f"{before}Limit: {limit.replace(',', '')} {rest}"
        if VendorFault.TOKEN_LIMIT_AT_CREATE in batch.met:
            text = message.removesuffix(" (simulated)")
            raise RefusedError(Why.BAD_REQUEST, text, code="token_limit_exceeded")
        return ({**errors[0], "message": message},)

    def _pool_is_full(self, batch: ServedBatch) -> bool:
        """Return whether a model is in the time after its first create in which no batch has room."""
        models = (earlier for earlier in self.storage.batches.values() if earlier.model == batch.model)
        first = min((earlier.created_at for earlier in models), default=batch.created_at)
        full_s = batch.seconds(VendorFault.POOL_FULL)
        return full_s > 0 and (batch.created_at - first) * batch.settings.speedup < full_s

    def unfinished(self, batch: ServedBatch) -> list[ServedBatch]:
        now, unfinished = batch.created_at, super().unfinished(batch)
        ids = {earlier.id for earlier in unfinished}
        held = [
            earlier
            for earlier in self.storage.batches.values()
            if earlier.id not in ids
            and VendorFault.POOL_HELD in earlier.met
            and (earlier.vendor, earlier.workspace) == (batch.vendor, batch.workspace)
            and earlier.elapsed_s(now)
            < course_of(earlier, now).ends_s + earlier.seconds(VendorFault.POOL_HELD)
        ]
        return [*unfinished, *held]

    def listed(self, vendor: str, workspace: str) -> list[ServedBatch]:
        now = self.clock.now()
        return [
            batch
            for batch in super().listed(vendor, workspace)
            if batch.elapsed_s(now) >= batch.seconds(VendorFault.UNLISTED)
            and not self.dealer.deal(dealt(batch.settings.faults), "list", batch.model)
        ]

    def find(self, vendor: str, workspace: str, batch_id: str) -> ServedBatch:
        batch = super().find(vendor, workspace, batch_id)
        too_young = batch.elapsed_s(self.clock.now()) < batch.seconds(VendorFault.UNKNOWN)
        if too_young or self.dealer.deal(dealt(batch.settings.faults), "retrieve", batch.model):
            raise RefusedError(Why.NO_SUCH_OBJECT, f"No such batch: {batch_id}.")
        return batch

    async def look_in_list(self, batch: ServedBatch) -> tuple[ServedBatch, Course]:
        behind_s = batch.seconds(VendorFault.LIST_BEHIND) / batch.settings.speedup
        course = course_of(batch, max(batch.created_at, self.clock.now() - behind_s))
        if behind_s and not course.ended:
            return replace(batch, outcome=None), course
        return await super().look_in_list(batch)

    async def cancel(self, batch: ServedBatch) -> tuple[ServedBatch, Course]:
        cancelled = await super().cancel(batch)
        if self.dealer.deal(dealt(batch.settings.faults), "cancel", batch.model):
            raise RefusedError(Why.SERVER_ERROR, "The server had an error.")
        return cancelled

    def delete(self, file: StoredFile) -> None:
        super().delete(file)
        error = told_error("input_no_permissions", "The input file is gone.")
        for batch in [*self.storage.batches.values()]:
            made_of_it = batch.input_file_id == file.id and VendorFault.INPUT_NEEDED in batch.met
            if made_of_it and not course_of(batch, self.clock.now()).ended:
                self.storage.keep(replace(batch, errors=(error,)))


class VendorApi(ServedBatchApi):
    """Uploads whose connection breaks, and results that are late, elsewhere or spoiled."""

    def keep_upload(self, file: StoredFile) -> None:
        path = self._service.storage.path(file.id)
        settings = self._service.settings_of(settings_asked(path, "body"))
        call = self._service.dealer.deal(dealt(settings.faults), "upload")
        if VendorFault.UPLOAD_DROPPED in call:
            raise DroppedError
        super().keep_upload(file)
        if VendorFault.UPLOAD_REPLY_DROPPED in call:
            raise DroppedError
        if VendorFault.UPLOAD_500 in call:
            raise RefusedError(Why.SERVER_ERROR, "The server had an error.")

    def adapt(self, body: Json, batch: ServedBatch, course: Course) -> Json:
        late_s = batch.seconds(VendorFault.OUTPUT_LATE)
        if "output_file_id" in body and course.at_s - course.ends_s < late_s:
            body = {**body, "output_file_id": "" if body.get("error_file_id") == "" else None}
        host = batch.met.get(VendorFault.RESULTS_ELSEWHERE)
        if host is not None and body.get("results_url"):
            path = str(body["results_url"]).partition("/v1/")[2]
            body = {**body, "results_url": f"{host}/v1/{path}"}
        return body

    async def send_results(
        self,
        batch: ServedBatch | None,
        request: web.BaseRequest,
        path: Path,
        headers: Mapping[str, str],
        *,
        with_length: bool,
    ) -> web.StreamResponse:
        if batch is None:
            return await super().send_results(batch, request, path, headers, with_length=with_length)
        course = course_of(batch, self._service.clock.now())
        late = course.at_s - course.ends_s < batch.seconds(VendorFault.RESULTS_UNKNOWN)
        if late or VendorFault.FILE_EXPIRED in batch.met:
            raise RefusedError(Why.NO_SUCH_OBJECT, f"Batch {batch.id} has no available results.")
        met = self._service.dealer.deal(dealt(batch.settings.faults), "content", batch.model)
        if not met:
            return await super().send_results(batch, request, path, headers, with_length=with_length)
        return await spoil_file(request, path, headers, met)


async def spoil_file(
    request: web.BaseRequest, path: Path, headers: Mapping[str, str], met: Met
) -> web.StreamResponse:
    """Send half of a file, or none of it, in the way of a fault."""
    if VendorFault.CONTENT_502 in met:
        page = Page(status=502, headers={"content-type": "text/html"}, body=b"<h1>502 Bad Gateway</h1>")
        return await whole(request, page)

    sent = _half(path, whole_lines=VendorFault.CONTENT_CUT in met)
    cut = VendorFault.CONTENT_CUT in met or VendorFault.CONTENT_CUT_IN_LINE in met
    if VendorFault.CONTENT_RESET in met:
        await send_file(request, path, headers, with_length=False, size=sent, end=False)
        return await reset(request, Page(status=200, headers=HEADERS, body=b""))
    wrong_length = VendorFault.CONTENT_WRONG_LENGTH in met and not cut
    return await send_file(request, path, headers, with_length=wrong_length, size=sent)


def _half(path: Path, *, whole_lines: bool) -> int:
    """Return the bytes of about half of a file: of whole lines, or with a line that is cut."""
    size, lines = path.stat().st_size, 0
    with path.open("rb") as file:
        for line in file:
            if lines + len(line) > size // 2:
                break
            lines += len(line)
    return lines if whole_lines else max(size // 2, lines + 1)


class VendorOpenAIApi(VendorApi, OpenAIBatchApi):
    """OpenAI's batches with the faults of vendors."""


class VendorAnthropicApi(VendorApi, AnthropicBatchApi):
    """Anthropic's batches with the faults of vendors."""


class VendorServer(Server):
    """A simulator with the faults of vendors."""

    service_type = VendorService
    openai_type = VendorOpenAIApi
    anthropic_type = VendorAnthropicApi

    async def _show(self, request: web.BaseRequest, call: ServedCall) -> web.StreamResponse:
        try:
            return await super()._show(request, call)
        except DroppedError:
            return await reset(request, Page(status=200, headers=HEADERS, body=b""))
