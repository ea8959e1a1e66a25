"""How vendors want a batch: its lines, what they allow, and the bytes that are sent of a part."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from asyncbench.errors import StoreError

Json = Mapping[str, object]

CUSTOM_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # Anthropic's rule is the strictest
BATCH_KEY_LENGTH: Final = 16  # hex digits, at the end of each custom id
PIECE: Final = 1 << 18  # bytes of a file that are in memory at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFormat:
    """One vendor's way to take batches.

    On disk a part is always one request a line. `opening`, `between` and `closing` stand around and between
    the lines when it is sent.
    """

    vendor: str
    most_requests: int  # of a part
    most_bytes: int
    line: Callable[[str, str, object], Json]  # custom id, path of the endpoint, body → what a line holds
    body: Callable[[Json], object]  # what a line holds → its body
    path: Callable[[Json], str | None]  # what a line holds → its endpoint; None: it names none
    one_model: bool  # a part holds requests to one model and one endpoint
    unique_counts: bool  # parts are known again by their number of requests alone
    opening: bytes = b""
    between: bytes = b"\n"
    closing: bytes = b"\n"

    def sent_bytes(self, part_bytes: int) -> int:
        """Return how many bytes are sent of a part that has so many on disk."""
        return part_bytes - 1 + len(self.opening) + len(self.closing)

    def sent(self, path: Path) -> Iterator[bytes]:
        """Yield what is sent of a part, in pieces; raises StoreError when it cannot be read."""
        yield self.opening
        held = b""  # its last byte may be the file's last end of a line, which `closing` replaces
        with reading(path) as file:
            while piece := file.read(PIECE):
                yield held.replace(b"\n", self.between)
                held = piece
        yield held[:-1].replace(b"\n", self.between)
        yield self.closing


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Open a file of a batch; raises StoreError when it cannot be read."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. Restore it, and run again.") from error


OPENAI: Final = BatchFormat(
    vendor="openai",
    most_requests=50_000,
    most_bytes=200_000_000,
    line=lambda custom_id, path, body: {"custom_id": custom_id, "method": "POST", "url": path, "body": body},
    body=lambda line: line.get("body"),
    path=lambda line: str(line.get("url")),
    one_model=True,
    unique_counts=False,
)
ANTHROPIC: Final = BatchFormat(
    vendor="anthropic",
    most_requests=100_000,
    most_bytes=256_000_000,
    line=lambda custom_id, _path, body: {"custom_id": custom_id, "params": body},
    body=lambda line: line.get("params"),
    path=lambda _line: None,
    one_model=False,
    unique_counts=True,
    opening=b'{"requests":[',
    between=b",",
    closing=b"]}",
)
