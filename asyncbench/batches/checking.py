"""Parts read back: whose each line is, and whether a vendor would take it.

One wrong line would fail all of them at the vendor.
"""

import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import orjson

from asyncbench.batches.formats import CUSTOM_ID, BatchFormat, Json, reading
from asyncbench.batches.packing import BatchPart
from asyncbench.errors import StoreError


def check_part(part: BatchPart, vendor: BatchFormat, folder: Path) -> None:
    """Read a part from the disk and hold it against its record, its manifest and the vendor's rules.

    Raises:
        StoreError: the file is not what was packed, or its vendor would refuse it; nothing was sent.
    """
    path, seen, digest = part.file(folder), set[str](), hashlib.sha256()
    with reading(path) as file:
        for number, (raw, owner) in enumerate(zip_longest(file, owners_of(part, folder)), 1):
            if raw is None or owner is None:
                raise _unsent(path, f"it and its manifest differ from line {number} on")
            digest.update(raw)
            custom_id = part.custom_id(str(owner["trial_id"]))
            if (why := _wrong(raw, custom_id, part, vendor)) is None and custom_id in seen:
                why = f"its custom id {custom_id} is there twice"
            if why is not None:
                raise _unsent(path, f"line {number}: {why}")
            seen.add(custom_id)
        size = file.tell()
    if (len(seen), size, digest.hexdigest()) != (part.requests, part.bytes, part.sha256):
        raise _unsent(path, "it is not the file that was packed")
    sent = vendor.sent_bytes(size)
    if not 0 < len(seen) <= vendor.most_requests or sent > vendor.most_bytes:
        raise _unsent(path, f"{len(seen):,} requests of {sent:,} bytes are more than {vendor.vendor} takes")


def owners_of(part: BatchPart, folder: Path) -> Iterator[Json]:
    """Yield the manifest of a part: trial_id, attempt and reserved_usd of each line.

    Raises:
        StoreError: it cannot be read.
    """
    with reading(part.manifest(folder)) as file:
        yield from map(orjson.loads, file)


def _unsent(path: Path, why: str) -> StoreError:
    return StoreError(f"{path}: {why}. Nothing of it was sent. Remove it, and run again to pack it anew.")


def _wrong(raw: bytes, custom_id: str, part: BatchPart, vendor: BatchFormat) -> str | None:
    """Return what a vendor would not take of a line; None: it would take it."""
    if not raw.endswith(b"\n"):
        return "it does not end"
    try:
        line = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return f"it is not JSON: {error}"
    body = vendor.body(line)
    if not isinstance(body, dict):
        return "it has no body"
    if line.get("custom_id") != custom_id or not CUSTOM_ID.fullmatch(custom_id):
        return f"its custom id is not {custom_id}"
    if vendor.one_model and (body.get("model"), vendor.path(line)) != (part.model_id, part.path):
        return f"it is not for {part.model_id} at {part.path}"
    return "it asks for a stream" if body.get("stream") else None
