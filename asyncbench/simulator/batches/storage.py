"""Where a simulator keeps files and batches: a folder, from which the next one goes on."""

import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from asyncbench.simulator.batches.course import ServedBatch

MONTH_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file as OpenAI lists it. Times are Unix seconds."""

    id: str
    name: str
    purpose: str
    bytes: int
    created_at: float
    workspace: str
    keep_s: float = MONTH_S  # by its own clock
    speedup: float = 1.0
    deleted_at: float | None = None

    def is_there(self, at: float) -> bool:
        """Tell whether it can be read at a moment."""
        gone = self.deleted_at is not None and self.deleted_at <= at
        return not gone and (at - self.created_at) * self.speedup < self.keep_s


_FILE, _BATCH = TypeAdapter(StoredFile), TypeAdapter(ServedBatch)


class BatchStorage:
    """Files and batches, oldest first. Records are in memory and on disk, contents on disk alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        files = [_FILE.validate_json(path.read_bytes()) for path in folder.glob("file-*.json")]
        batches = [_BATCH.validate_json(path.read_bytes()) for path in folder.glob("*batch_*.json")]
        self.files = {file.id: file for file in sorted(files, key=lambda file: file.created_at)}
        self.batches = {batch.id: batch for batch in sorted(batches, key=lambda batch: batch.created_at)}

    def path(self, name: str) -> Path:
        """Return where the contents of a file are, or what else has this name."""
        return self._folder / name

    def keep_file(self, file: StoredFile) -> StoredFile:
        self.files[file.id] = file
        self._write(file.id, _FILE.dump_json(file))
        return file

    def keep(self, batch: ServedBatch) -> ServedBatch:
        self.batches[batch.id] = batch
        self._write(batch.id, _BATCH.dump_json(batch))
        return batch

    def delete(self, file: StoredFile, at: float) -> None:
        """Note that a file is deleted; a batch that was made of it still reads it."""
        self.keep_file(replace(file, deleted_at=at))

    def _write(self, name: str, record: bytes) -> None:
        temporary = self.path(f"{name}.new")
        temporary.write_bytes(record)
        os.replace(temporary, self.path(f"{name}.json"))


def new_id(prefix: str) -> str:
    return f"{prefix}{secrets.token_hex(12)}"
