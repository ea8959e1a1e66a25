"""Running the requests of a batch and writing its files as its vendor does, a slice at a time."""

import asyncio
import math
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
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
_NOT_RUN = {Kind.LINE_EXPIRED: "expired", Kind.LINE_CANCELED: "cancelled"}


def executed_path(batch: ServedBatch, storage: BatchStorage) -> Path:
    """Return the file that tells which requests of an ended batch were run and billed."""
    return storage.path(f"{batch.id}.executed.jsonl")


def scattered(count: int, seed: str) -> Callable[[int], int]:
    """Return a permutation of the indices 0 to count − 1, the same for the same seed."""
    draw = random.Random(seed)
    start, step = draw.randrange(count), draw.randrange(count // 3, count) or 1
    while math.gcd(step, count) != 1:
        step += 1
    return lambda index: (start + index * step) % count


class BatchRun:
    """Runs the requests of an ended batch one after another, and writes its files as its vendor does."""

    def __init__(self, batch: ServedBatch, storage: BatchStorage, models: ServedModels, *, seed: int) -> None:
        self.batch, self.storage = batch, storage
        self.name = f"{seed}/{batch.model}/{batch.number}"  # seeds all that is drawn
        self._models = models
        self._lines = VENDOR_LINES[batch.vendor]
        self._faults, self._dealer = dealt(batch.settings.faults), Dealer(self.name)
        self._counts = Counter[str]()  # by the fields of `BatchOutcome`

    async def write_results(self, course: Course) -> BatchOutcome:
        """Run what the batch has come to, write its files, and return what they say together."""
        batch, rank = self.batch, scattered(self.batch.requests, f"rank/{self.name}")
        state = "expired" if course.status == "expired" else "cancelled"
        names = ("output", "error", "executed")
        paths = {name: self.storage.path(f"{batch.id}.{name}.new") for name in names}
        with ExitStack() as stack:
            files = {name: stack.enter_context(path.open("wb")) for name, path in paths.items()}
            for count, (index, raw) in enumerate(self.requests()):
                if count % SLICE == 0:
                    await asyncio.sleep(0)
                not_run = None if rank(index) < course.done else state
                met = self._dealer.deal(self._faults, "line", number=index + 1)
                self.run(index + 1, orjson.loads(raw), met, files, not_run)
        os.replace(paths["executed"], executed_path(batch, self.storage))

        # Store the files that the vendor shows, by name.
        ids: dict[str, str] = {}
        for name in ("output", "error"):
            size = paths[name].stat().st_size
            empty_shown = self._lines.one_file if name == "output" else Kind.EMPTY_ERROR_FILE in batch.met
            if not size and not empty_shown:
                paths[name].unlink()
                continue
            ids[name] = file_id = new_id("file-")
            os.replace(paths[name], self.storage.path(file_id))
            stored = StoredFile(
                id=file_id,
                name=f"{batch.id}_{name}.jsonl",
                purpose="batch_output",
                bytes=size,
                created_at=batch.created_at + course.ends_s / batch.settings.speedup,
                workspace=batch.workspace,
                speedup=batch.settings.speedup,
            )
            self.keep_file(stored)
        return BatchOutcome(files=ids, **self._counts)

    def requests(self) -> Iterator[tuple[int, bytes]]:
        """Yield the requests with their indices, in the order of their results."""
        with self.storage.path(self.batch.input_file_id).open("rb") as file:
            yield from enumerate(file)

    def keep_file(self, file: StoredFile) -> None:
        self.storage.keep_file(file)

    def run(
        self, number: int, line: Json, met: Met, files: Mapping[str, BinaryIO], not_run: str | None
    ) -> None:
        """Run a request, unless the batch ended before its turn, and write its line.

        Args:
            number: which line it is among those handed in, from 1.
            line: the request.
            met: the faults that it meets.
            files: output, error, executed.
            not_run: expired or cancelled, where the batch ended before its turn.
        """
        custom_id = str(line["custom_id"])
        not_run = next((state for kind, state in _NOT_RUN.items() if kind in met), not_run)
        if not_run is not None:
            self._counts[not_run] += 1
            name, result = "error", self._lines.not_run(custom_id, not_run)
        else:
            name, result = self._answer(custom_id, number, line, met, files["executed"])
        self.write_line(files["output" if self._lines.one_file else name], result, met)

    def write_line(self, file: BinaryIO, result: Json, _met: Met) -> None:
        """Write the line of a result."""
        file.write(orjson.dumps(result) + b"\n")

    def _answer(
        self, custom_id: str, number: int, line: Json, met: Met, executed: BinaryIO
    ) -> tuple[str, Json]:
        """Return the file for a request's line, and the line; count the tokens billed for it."""
        request_id = f"{self.batch.id[-12:]}-{number:06}"
        refusals = self._lines.refusals
        refused = next((refusal for kind, refusal in refusals.items() if kind in met), None)
        answer = None
        if refused is None:
            try:
                answer, body = self._ask(line, request_id, met)
            except RefusedError as error:
                refused = error

        self._counts["failed" if answer is None else "answered"] += 1
        record: Json = {"custom_id": custom_id, "batch_id": self.batch.id, "billed": answer is not None}
        for name in ("input_tokens", "output_tokens", "reasoning_tokens"):
            record[name] = 0 if answer is None else getattr(answer, name)
            self._counts[name] += 0 if answer is None else getattr(answer, name)
        executed.write(orjson.dumps(record) + b"\n")

        if refused is None:
            return "output", self._lines.answered(custom_id, request_id, body)
        status = 0 if Kind.LINE_STATUS_0 in met else None
        result = self._lines.refused(custom_id, request_id, refused, status)
        return "output" if Kind.LINE_ERROR_200 in met else "error", result

    def _ask(self, line: Json, request_id: str, met: Met) -> tuple[WireAnswer, Json]:
        """Return the answer that a call would get; raises RefusedError."""
        wire, body = self._lines.request(line)
        wire_request = wire.read(body)
        if wire_request.stream:
            raise RefusedError(Why.BAD_REQUEST, "`stream` is not for batches.")
        model = self._models.model(wire_request.model)
        model.vendor.check(body)
        taken = model.source.take(wire_request := find_known_question(wire_request, model.source))
        if taken.failed or self.is_unseen(met):
            taken.give_back()
        if taken.failed:
            raise RefusedError(Why.RECORDED_FAILURE, "This question is recorded as failed.")
        exchange = Exchange(
            request=wire_request, answer=taken.answer, vendor=model.vendor, request_id=request_id
        )
        return taken.answer, wire.reply(exchange)

    def is_unseen(self, _met: Met) -> bool:
        """Return whether nobody can read the line of a result, so that its answer is for who asks again."""
        return False
