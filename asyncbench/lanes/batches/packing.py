"""Pack trials into a part: a file of requests for one batch, and a manifest that names their trials."""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from math import fsum
from pathlib import Path
from typing import BinaryIO, Final, TypedDict

import orjson

from asyncbench.engine.budget import Hold
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.errors import ErrorKind, ProviderError, StoreError
from asyncbench.files import make_folder, publish, storing
from asyncbench.lanes.batches.ledger import BatchPart
from asyncbench.pricing import picodollars
from asyncbench.providers.batch_calls import BatchApi, id_in

KEY_BYTES: Final = 8


class ManifestRow(TypedDict):
    """One request of a part."""

    trial_id: str
    attempt: int
    tries: int  # attempts of the run that packed it, this one included
    rounds: int  # parts that it was in, this one included
    cost_usd: float | None  # of its attempts before
    max_tokens: int | None
    reserved_usd: float | None
    most_usd: float | None
    bytes: int  # of its line
    tokens: int  # of its prompt, estimated


def manifest_rows(path: Path) -> Iterator[ManifestRow]:
    """Yield the rows of a part's manifest, in the order of its requests."""
    with path.open("rb") as lines:
        yield from map(orjson.loads, lines)


def packed_rows(path: Path) -> dict[str, bytes]:
    """Return the rows of a part's manifest, each as it is written, by trial in the order of its requests."""
    with path.open("rb") as lines:
        return {orjson.loads(line)["trial_id"]: line for line in lines}


def hold_of(row: ManifestRow) -> Hold:
    """Return the picodollars set aside for a request; without a budget, the most that it may cost."""
    most_pico = picodollars(row["most_usd"] or 0.0)
    return Hold(most_pico, most_pico if row["reserved_usd"] is None else picodollars(row["reserved_usd"]))


class PartWriter:
    """A part while it is being filled; nothing of it counts before `finish`."""

    def __init__(self, folder: Path, api: BatchApi, *, max_requests: int, max_bytes: int) -> None:
        self.key = secrets.token_hex(KEY_BYTES)
        self.requests = self.tokens = 0
        self._rows: list[bytes] = []  # of the manifest
        self._api, self._folder = api, folder
        self._most, self._most_bytes = min(max_requests, api.most_requests), min(max_bytes, api.most_bytes)
        self._size = 0
        self._file: BinaryIO | None = None

    @property
    def full(self) -> bool:
        """Whether no further request may come."""
        return self.requests >= self._most

    def line(self, pending: PendingTrial) -> bytes:
        """Return a trial's request as a line.

        Raises:
            ProviderError: it cannot be written, or is longer than a batch may be.
        """
        line = self._api.line(custom_id(pending.request.trial.trial_id, self.key), pending.request) + b"\n"
        if len(line) > self._api.most_bytes:
            why = f"the request is {len(line):,} bytes; a batch may have {self._api.most_bytes:,}"
            raise ProviderError(ErrorKind.TOO_LONG, why, never_sent=True)
        return line

    def fits(self, line: bytes) -> bool:
        return not self.requests or self._size + len(line) <= self._most_bytes

    def add(self, pending: PendingTrial, line: bytes) -> None:
        """Write a trial's request into the file."""
        with storing(self._folder):
            if self._file is None:
                make_folder(self._folder)
                self._file = self._draft("jsonl").open("wb")
            self._file.write(line)
        tokens = tokens_of(pending)
        self.requests += 1
        self._size, self.tokens = self._size + len(line), self.tokens + tokens
        row = ManifestRow(
            trial_id=pending.request.trial.trial_id,
            attempt=pending.attempts,
            tries=pending.tries,
            rounds=pending.rounds,
            cost_usd=pending.cost_usd,
            max_tokens=pending.longest,
            reserved_usd=pending.reserved_usd,
            most_usd=pending.most_usd,
            bytes=len(line),
            tokens=tokens,
        )
        self._rows.append(orjson.dumps(row) + b"\n")

    def rows(self) -> Iterator[ManifestRow]:
        """Yield the rows of its manifest."""
        yield from map(orjson.loads, self._rows)

    def drop(self) -> None:
        """Take out the request that was added last."""
        row: ManifestRow = orjson.loads(self._rows.pop())
        self.requests -= 1
        self.tokens -= row["tokens"]
        self._size -= row["bytes"]
        if self._file is not None:
            self._file.truncate(self._size)
            self._file.seek(self._size)

    def finish(self, alias: str) -> BatchPart:
        """Put both files in place, checked and on the disk; return the part, which the ledger does not know.

        Raises:
            StoreError: the file on the disk is not what was written.
        """
        if self._file is None:
            raise ValueError("a part holds one request at least")
        with storing(self._folder):
            self._file.close()
            manifest = self._draft("manifest")
            with manifest.open("wb") as file:
                file.writelines(self._rows)
            digest = _check(self._draft("jsonl"), self.key, self._rows)
            for suffix in ("jsonl", "manifest"):
                publish(self._draft(suffix), self._folder / f"{self.key}.{suffix}")
        reserved = [row["reserved_usd"] for row in self.rows() if row["reserved_usd"] is not None]
        return BatchPart(
            key=self.key,
            alias=alias,
            requests=self.requests,
            size=self._size,
            sha256=digest,
            tokens=self.tokens,
            reserved_usd=fsum(reserved) if reserved else None,
        )

    def abandon(self) -> None:
        """Leave no file."""
        if self._file is not None:
            self._file.close()
        for suffix in ("jsonl", "manifest"):
            self._draft(suffix).unlink(missing_ok=True)

    def _draft(self, suffix: str) -> Path:
        return self._folder / f"{self.key}.{suffix}.new"


def custom_id(trial_id: str, key: str) -> str:
    """Return the id of a request: of which trial it is, and of which part."""
    return trial_id + key


def trial_of(custom_id: str, key: str) -> str | None:
    """Return the trial of a part's request, or None for a request of another part or of nobody."""
    return custom_id.removesuffix(key) if custom_id.endswith(key) and custom_id != key else None


def tokens_of(pending: PendingTrial) -> int:
    """Return how many tokens of prompt a request has, estimated."""
    return 1 + int(pending.characters / CHARACTERS_PER_TOKEN)


def _check(path: Path, key: str, rows: Sequence[bytes]) -> str:
    """Read a file of requests back, and return its digest: one bad line would make all of them fail."""
    models, urls, trials = set[object](), set[object](), set[str]()
    digest = hashlib.sha256()
    with path.open("rb") as lines:
        for number, (line, row) in enumerate(zip(lines, map(orjson.loads, rows), strict=True), start=1):
            digest.update(line)
            trials.add(row["trial_id"])
            request = orjson.loads(line)
            body = request.get("body") or request.get("params") or request.get("request")
            models.add(body.get("model"))
            urls.add(request.get("url"))
            sound = id_in(request) == custom_id(row["trial_id"], key) and line.endswith(b"}\n")
            if not sound or body.get("stream") or max(len(models), len(urls)) > 1:
                raise StoreError(f"{path}, line {number}: is not the request that was written. Run again.")
    if len(trials) != len(rows) or not rows:
        raise StoreError(f"{path}: holds a trial twice, or nothing. Run again.")
    return digest.hexdigest()
