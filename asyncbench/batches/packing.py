"""Requests become parts: files of one request a line, with a manifest of whose each line is."""

import hashlib
import math
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path

import orjson

from asyncbench.batches.formats import CUSTOM_ID, BatchFormat
from asyncbench.files import make_folder, publish, storing

USUAL_REQUESTS, USUAL_BYTES = 10_000, 50_000_000  # small enough to lose, large enough to be few
MOST_GIVEN_BACK = 100  # requests that a part may leave to the next one
LINES, MANIFEST = ".jsonl", ".manifest"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """One trial's request, ready to be packed."""

    trial_id: str
    attempt: int  # from 1
    model_id: str
    path: str  # of its endpoint: /v1/chat/completions
    body: bytes  # JSON
    tokens: int = 0  # of its prompt, estimated
    reserved_usd: float = 0.0  # the most that it may cost at batch rates


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLimits:
    """How large a part may be. The vendor's own limits hold, too."""

    max_requests: int = USUAL_REQUESTS
    max_bytes: int = USUAL_BYTES
    max_tokens: float = math.inf  # of all prompts; one request alone may have more
    max_usd: float = math.inf  # reserved for all requests


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPart:
    """One file of requests, which becomes one batch."""

    batch_key: str
    vendor: str
    model_id: str  # of its first request
    path: str  # of the endpoint
    requests: int
    bytes: int  # on disk
    sha256: str  # of these bytes
    tokens: int
    reserved_usd: float

    @property
    def name(self) -> str:
        """What the file is called at the vendor."""
        return f"asyncbench-{self.batch_key}.jsonl"

    def file(self, folder: Path) -> Path:
        return folder / f"{self.batch_key}{LINES}"

    def manifest(self, folder: Path) -> Path:
        return folder / f"{self.batch_key}{MANIFEST}"

    def custom_id(self, trial_id: str) -> str:
        """Return the id of a trial's line, which names the trial and this submission of it."""
        return f"{trial_id}{self.batch_key}"


def pack(
    asked: Iterable[BatchRequest],
    vendor: BatchFormat,
    folder: Path,
    *,
    limits: PartLimits,
    new_key: Callable[[], str],
    refuse: Callable[[BatchRequest, str], object],
    counts_taken: Collection[int] = (),
) -> Generator[BatchPart]:
    """Write requests to parts in their order, and yield each part when it is on the disk.

    No part is larger than a limit allows; a request that no part can hold is refused alone. In memory are a
    few requests at a time.

    Args:
        asked: the requests.
        vendor: whose lines they become.
        folder: where the parts go, each with its manifest.
        limits: how large a part may be.
        new_key: makes the key of a part: 16 hex digits, never used before.
        refuse: told a request that cannot be sent, and why.
        counts_taken: numbers of requests that no part should have, where a vendor's parts are known again by
            them; those of parts made here are added. Where every smaller number is taken, one comes twice.

    Raises:
        StoreError: a part cannot be written.
    """
    taken, source, given_back = set(counts_taken), iter(asked), deque[BatchRequest]()
    part = OpenPart(new_key(), vendor, limits, folder)
    try:
        while True:
            request = given_back.popleft() if given_back else next(source, None)
            if request is not None:
                try:
                    if part.add(request):
                        continue
                except UnfitError as error:
                    refuse(request, str(error))
                    continue
                given_back.appendleft(request)
            if not part.requests:
                return
            given_back.extendleft(reversed(part.trimmed(taken if vendor.unique_counts else ())))
            taken.add(part.requests)
            yield part.closed()
            part = OpenPart(new_key(), vendor, limits, folder)
    finally:
        part.discard()


class UnfitError(Exception):
    """A request that no part can hold; never leaves `pack`."""


class OpenPart:
    """A part that is being written."""

    def __init__(self, key: str, vendor: BatchFormat, limits: PartLimits, folder: Path) -> None:
        self._key, self._vendor, self._folder = key, vendor, folder
        self._most_requests = min(limits.max_requests, vendor.most_requests)
        self._most_bytes, self._limits = min(limits.max_bytes, vendor.most_bytes), limits
        self.requests, self._size, self._tokens, self._usd = 0, 0, 0, 0.0
        self._first: BatchRequest | None = None
        self._latest = deque[tuple[BatchRequest, int]](maxlen=MOST_GIVEN_BACK)  # with the line's start
        self._paths = [folder / f"{key}{ending}.new" for ending in (LINES, MANIFEST)]
        self._files: list[BufferedRandom] = []

    def add(self, request: BatchRequest) -> bool:
        """Write a request; False: it belongs to the next part, and nothing is written.

        Raises:
            UnfitError: no part can hold it.
        """
        custom_id = f"{request.trial_id}{self._key}"
        if not CUSTOM_ID.fullmatch(custom_id):
            raise UnfitError(f"its custom id {custom_id!r} is not of 1 to 64 letters, digits, _ or -")
        body = orjson.Fragment(request.body)
        line = orjson.dumps(self._vendor.line(custom_id, request.path, body)) + b"\n"
        if (why := self._over(len(line), request.reserved_usd)) is not None:
            raise UnfitError(why)
        if not self._takes(request, len(line)):
            return False
        with storing(self._paths[0]):
            self._open()
            owner = {"trial_id": request.trial_id, "attempt": request.attempt}
            self._files[0].write(line)
            self._files[1].write(orjson.dumps({**owner, "reserved_usd": request.reserved_usd}) + b"\n")
        self._latest.append((request, self._size))
        self._first = self._first or request
        self._count(request, len(line), 1)
        return True

    def _takes(self, request: BatchRequest, size: int) -> bool:
        """Tell whether a request that some part can hold still fits into this one."""
        if (first := self._first) is None:
            return True
        tokens, usd = self._tokens + request.tokens, self._usd + request.reserved_usd
        apart = (request.model_id, request.path) != (first.model_id, first.path)
        full = self.requests >= self._most_requests or tokens > self._limits.max_tokens
        return not (full or (self._vendor.one_model and apart) or self._over(self._size + size, usd))

    def _over(self, size: int, usd: float) -> str | None:
        """Return which limit so much would pass."""
        if (sent := self._vendor.sent_bytes(size)) > self._most_bytes:
            return f"it is {sent:,} bytes, and a batch may have {self._most_bytes:,}"
        if usd > self._limits.max_usd:
            return f"it may cost ${usd:.2f}, and a batch may cost ${self._limits.max_usd:.2f}"
        return None

    def _count(self, request: BatchRequest, size: int, sign: int) -> None:
        self.requests += sign
        self._size += sign * size
        self._tokens += sign * request.tokens
        self._usd += sign * request.reserved_usd

    def _open(self) -> None:
        if not self._files:
            make_folder(self._folder)
            self._files = [path.open("w+b") for path in self._paths]

    def trimmed(self, taken: Collection[int]) -> list[BatchRequest]:
        """Take back the last requests, in their order, until their number is not taken."""
        least = max(1, self.requests - len(self._latest) + 1)
        free = (count for count in range(self.requests, least - 1, -1) if count not in taken)
        count, back = next(free, self.requests), deque[BatchRequest]()
        while self.requests > count:
            request, start = self._latest.pop()
            self._count(request, self._size - start, -1)
            back.appendleft(request)
        with storing(self._paths[0]):
            self._files[0].truncate(self._size)
            self._files[1].seek(0)
            for _ in range(count):
                self._files[1].readline()
            self._files[1].truncate()
        return [*back]

    def closed(self) -> BatchPart:
        """Give the files their names, when they are on the disk, and return what they are."""
        first, lines = self._first, self._files[0]
        if first is None:
            raise ValueError("a part without requests")
        with storing(self._paths[0]):
            lines.seek(0)
            part = BatchPart(
                batch_key=self._key,
                vendor=self._vendor.vendor,
                model_id=first.model_id,
                path=first.path,
                requests=self.requests,
                bytes=self._size,
                sha256=hashlib.file_digest(lines, "sha256").hexdigest(),
                tokens=self._tokens,
                reserved_usd=self._usd,
            )
            for file in self._files:
                file.close()
            # The manifest first: where there is a part there is its manifest.
            publish(self._paths[1], part.manifest(self._folder))
            publish(self._paths[0], part.file(self._folder))
        return part

    def discard(self) -> None:
        """Remove what was not closed."""
        for file in self._files:
            file.close()
        for path in self._paths:
            path.unlink(missing_ok=True)
