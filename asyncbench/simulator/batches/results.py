"""Running the requests of a batch and writing its files as its vendor does, a slice at a time."""

import asyncio
import math
import os
import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import orjson

from asyncbench.simulator.anthropic_wire import ANTHROPIC
from asyncbench.simulator.batches.records import (
    BatchOutcome,
    BatchStorage,
    Course,
    ServedBatch,
    StoredFile,
    new_id,
)
from asyncbench.simulator.batches.settings import BatchFaultKind as Kind, Dealer, Met, dealt
from asyncbench.simulator.openai_wire import CHAT
from asyncbench.simulator.served import WIRES, ServedModels, find_known_question
from asyncbench.simulator.wire import Exchange, Json, RefusedError, VendorWire, Why, WireAnswer, object_in

_TOO_LONG = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
)
REFUSED_LINES: Mapping[Kind, RefusedError] = {
    Kind.LINE_TOO_LONG: RefusedError(Why.TOO_LONG, _TOO_LONG),
    Kind.LINE_400: RefusedError(Why.BAD_REQUEST, "Invalid value for 'temperature'."),
    Kind.LINE_429: RefusedError(Why.RATE_LIMITED, "Rate limit reached, by chance."),
    Kind.LINE_NO_QUOTA: RefusedError(Why.NO_QUOTA, "You exceeded your current quota."),
    Kind.LINE_500: RefusedError(Why.SERVER_ERROR, "The server had an error."),
    Kind.LINE_504: RefusedError(Why.TIMED_OUT, "The request timed out generating."),
    Kind.LINE_STATUS_0: RefusedError(Why.SERVER_ERROR, "The connection to the model was lost."),
    Kind.LINE_ERROR_200: RefusedError(Why.UPSTREAM, "The model returned an error."),
}
# As it comes, on hundreds of lines, under `invalid_request_error`.
_NO_CREDIT = RefusedError(Why.BAD_REQUEST, "Your credit balance is too low to access the Anthropic API.")


class OpenAILines:
    """OpenAI's lines of requests and results."""

    refusals = REFUSED_LINES
    one_file = False  # answers and errors have a file each

    def request(self, line: Json) -> tuple[VendorWire, Json]:
        """Return the wire format and the body of a request."""
        return WIRES[str(line["url"])], object_in(line["body"])

    def answered(self, custom_id: str, request_id: str, body: Json) -> Json:
        return self._run(custom_id, request_id, 200, body)

    def refused(self, custom_id: str, request_id: str, refused: RefusedError, status: int | None) -> Json:
        """Return the line of a request that failed; `status`: None is the usual one."""
        usual, body = CHAT.error(refused, request_id)
        return self._run(custom_id, request_id, usual if status is None else status, body)

    def _run(self, custom_id: str, request_id: str, status: int, body: Json) -> Json:
        response = {"status_code": status, "request_id": request_id, "body": body}
        return {"id": f"batch_req_{request_id}", "custom_id": custom_id, "response": response, "error": None}

    def not_run(self, custom_id: str, state: str) -> Json:
        """Return the line of a request that had no turn: the batch expired or was cancelled."""
        messages = {
            "expired": "This request could not be executed before the completion window expired.",
            "cancelled": "This request was cancelled before it was executed.",
        }
        error = {"code": f"batch_{state}", "message": messages[state]}
        return {"id": f"batch_req_{custom_id}", "custom_id": custom_id, "response": None, "error": error}


class AnthropicLines:
    """Anthropic's lines of requests and results."""

    refusals: Mapping[Kind, RefusedError] = {**REFUSED_LINES, Kind.LINE_NO_QUOTA: _NO_CREDIT}
    one_file = True

    def request(self, line: Json) -> tuple[VendorWire, Json]:
        return ANTHROPIC, object_in(line["params"])

    def answered(self, custom_id: str, _request_id: str, body: Json) -> Json:
        usage = {
            **object_in(body.get("usage", {})),
            "service_tier": "batch",
            "inference_geo": "not_available",
        }
        message = {**body, "usage": usage} if "usage" in body else body
        return {"custom_id": custom_id, "result": {"type": "succeeded", "message": message}}

    def refused(self, custom_id: str, request_id: str, refused: RefusedError, _status: int | None) -> Json:
        _, error = ANTHROPIC.error(refused, request_id)
        return {"custom_id": custom_id, "result": {"type": "errored", "error": error}}

    def not_run(self, custom_id: str, state: str) -> Json:
        return {"custom_id": custom_id, "result": {"type": {"cancelled": "canceled"}.get(state, state)}}


VENDOR_LINES: Mapping[str, OpenAILines | AnthropicLines] = {
    "openai": OpenAILines(),
    "anthropic": AnthropicLines(),
}


SLICE = 100  # requests that are run before others of the server have their turn
_NEVER_SEEN = frozenset({Kind.LINE_LOST, Kind.LINE_BROKEN})  # their answers are given again to who asks again
_NOT_RUN = {Kind.LINE_EXPIRED: "expired", Kind.LINE_CANCELED: "cancelled"}
_FOREIGN_ID = "a-request-that-nobody-made"
_SEPARATORS = "a\u2028b\u2029c\u0085d"
_HOLDS_ANY_TEXT = b'"system_fingerprint":"simulated'  # a field of every answer that changes nothing


def executed_path(batch: ServedBatch, storage: BatchStorage) -> Path:
    """Return the file that tells which requests of an ended batch were run and billed."""
    return storage.path(f"{batch.id}.executed.jsonl")


async def write_results(
    batch: ServedBatch, course: Course, storage: BatchStorage, models: ServedModels, *, seed: int
) -> BatchOutcome:
    """Run what an ended batch has come to, write its files, and return what they say together."""
    name = f"{seed}/{batch.model}/{batch.number}"
    run, rank = BatchRun(batch, models, name), scattered(batch.requests, f"rank/{name}")
    state = "expired" if course.status == "expired" else "cancelled"
    paths = {name: storage.path(f"{batch.id}.{name}.new") for name in ("output", "error", "executed")}
    with ExitStack() as stack:
        files = {name: stack.enter_context(path.open("wb")) for name, path in paths.items()}
        for count, (index, raw) in enumerate(_input_lines(batch, storage, name)):
            if count % SLICE == 0:
                await asyncio.sleep(0)
            run.write(index + 1, orjson.loads(raw), files, None if rank(index) < course.done else state)
    os.replace(paths["executed"], executed_path(batch, storage))
    return BatchOutcome(files=_store_files(batch, course, storage, paths), **run.counts)


def _store_files(
    batch: ServedBatch, course: Course, storage: BatchStorage, paths: dict[str, Path]
) -> dict[str, str]:
    """Store the files of results that a vendor shows; return their ids by name."""
    ids: dict[str, str] = {}
    for name in ("output", "error"):
        size = paths[name].stat().st_size
        always = name == "output" and VENDOR_LINES[batch.vendor].one_file
        if not size and not always and not (name == "error" and Kind.EMPTY_ERROR_FILE in batch.met):
            paths[name].unlink()
            continue
        ids[name] = file_id = new_id("file-")
        os.replace(paths[name], storage.path(file_id))
        file = StoredFile(
            id=file_id,
            name=f"{batch.id}_{name}.jsonl",
            purpose="batch_output",
            bytes=size,
            created_at=batch.created_at + course.ends_s / batch.settings.speedup,
            workspace=batch.workspace,
            speedup=batch.settings.speedup,
        )
        storage.keep_file(replace(file, keep_s=0.0) if Kind.FILE_EXPIRED in batch.met else file)
    return ids


def scattered(count: int, seed: str) -> Callable[[int], int]:
    """Return a permutation of the indices 0 to count − 1, the same for the same seed."""
    draw = random.Random(seed)
    start, step = draw.randrange(count), draw.randrange(count // 3, count) or 1
    while math.gcd(step, count) != 1:
        step += 1
    return lambda index: (start + index * step) % count


def _input_lines(batch: ServedBatch, storage: BatchStorage, seed: str) -> Iterator[tuple[int, bytes]]:
    """Yield the requests with their indices, as they were handed in, or shuffled."""
    with storage.path(batch.input_file_id).open("rb") as file:
        if Kind.SHUFFLED not in batch.met:
            yield from enumerate(file)
            return
        starts = array("Q", [0])
        for line in file:
            starts.append(starts[-1] + len(line))
        order = scattered(batch.requests, f"order/{seed}")
        for index in map(order, range(batch.requests)):
            file.seek(starts[index])
            yield index, file.readline()


class BatchRun:
    """Runs requests one after another, and adds up what they come to."""

    def __init__(self, batch: ServedBatch, models: ServedModels, seed: str) -> None:
        self._batch, self._models = batch, models
        self._lines = VENDOR_LINES[batch.vendor]
        self._faults, self._dealer = dealt(batch.settings.faults), Dealer(seed)
        self.counts = Counter[str]()  # by the fields of `BatchOutcome`

    def write(self, number: int, line: Json, files: Mapping[str, BinaryIO], not_run: str | None) -> None:
        """Run a request, unless the batch ended before its turn, and write its line.

        `number`: its line among those handed in, from 1.
        """
        custom_id, met = str(line["custom_id"]), self._dealer.deal(self._faults, "line", number=number)
        if Kind.LINE_MISSING in met and not_run is None:
            return
        not_run = next((state for kind, state in _NOT_RUN.items() if kind in met), not_run)
        if not_run is not None:
            self.counts[not_run] += 1
            name, result = "error", self._lines.not_run(custom_id, not_run)
        else:
            name, result = self._run(custom_id, number, line, met, files["executed"])
        file = files["output" if self._lines.one_file else name]
        if Kind.LINE_FOREIGN in met:
            file.write(orjson.dumps({**result, "custom_id": _FOREIGN_ID}) + b"\n")
        if Kind.LINE_LOST in met:
            return

        content = orjson.dumps(result)
        more = _SEPARATORS.encode() if Kind.LINE_SEPARATORS in met else b""
        if more := more + b"x" * int(met.get(Kind.LINE_LONG, 0)):
            content = content.replace(_HOLDS_ANY_TEXT, _HOLDS_ANY_TEXT + more, 1)
        if Kind.LINE_BROKEN in met:
            content = content[: len(content) // 2]
        file.write((content + b"\n") * (2 if Kind.LINE_TWICE in met else 1))

    def _run(self, custom_id: str, number: int, line: Json, met: Met, executed: BinaryIO) -> tuple[str, Json]:
        """Return which file a request's line is for, and the line; count what is billed for it."""
        request_id = f"{self._batch.id[-12:]}-{number:06}"
        refused = next((self._lines.refusals[kind] for kind in met if kind in self._lines.refusals), None)
        answer = None
        if refused is None:
            try:
                answer, body = self._answer(line, request_id, met)
            except RefusedError as error:
                refused = error

        self.counts["failed" if answer is None else "answered"] += 1
        record: Json = {"custom_id": custom_id, "batch_id": self._batch.id, "billed": answer is not None}
        for name in ("input_tokens", "output_tokens", "reasoning_tokens"):
            record[name] = 0 if answer is None else getattr(answer, name)
            self.counts[name] += 0 if answer is None else getattr(answer, name)
        executed.write(orjson.dumps(record) + b"\n")

        if refused is None:
            return "output", self._lines.answered(custom_id, request_id, body)
        status = 0 if Kind.LINE_STATUS_0 in met else None
        result = self._lines.refused(custom_id, request_id, refused, status)
        return "output" if Kind.LINE_ERROR_200 in met else "error", result

    def _answer(self, line: Json, request_id: str, met: Met) -> tuple[WireAnswer, Json]:
        """Return the answer that a call would get; raises RefusedError."""
        wire, body = self._lines.request(line)
        wire_request = wire.read(body)
        if wire_request.stream:
            raise RefusedError(Why.BAD_REQUEST, "`stream` is not for batches.")
        model = self._models.model(wire_request.model)
        model.vendor.check(body)
        taken = model.source.take(wire_request := find_known_question(wire_request, model.source))
        if taken.failed or not _NEVER_SEEN.isdisjoint(met):
            taken.give_back()
        if taken.failed:
            raise RefusedError(Why.RECORDED_FAILURE, "This question is recorded as failed.")
        exchange = Exchange(
            request=wire_request, answer=taken.answer, vendor=model.vendor, request_id=request_id
        )
        return taken.answer, wire.reply(exchange)
