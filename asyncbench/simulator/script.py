"""A streamed answer as server-sent events: what opens it, the pieces of its text, and what closes it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

PIECE = 4  # characters, about a token
HOLE = "\x00"  # stands for the text of a piece
_HOLE_WRITTEN = orjson.dumps(HOLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The events of one stream, written out."""

    opening: Sequence[bytes]  # before the first token
    pieces: Sequence[bytes]  # one for each piece of text, with the events that must come with it
    closing: Sequence[bytes]  # why it ended, usage, the terminator
    error: bytes  # the event in which a stream that fails midway says so

    def first_half(self) -> "Script":
        """Return half of the events, never with one that closes the stream."""
        count = (len(self.opening) + len(self.pieces) + len(self.closing)) // 2
        pieces = self.pieces[: max(0, count - len(self.opening))]
        return replace(self, opening=self.opening[:count], pieces=pieces, closing=())


def event(data: object, name: str | None = None) -> bytes:
    """Write an event that holds JSON."""
    head = b"" if name is None else f"event: {name}\n".encode()
    return head + b"data: " + orjson.dumps(data) + b"\n\n"


def deltas(data: object, texts: Sequence[str], name: str | None = None) -> list[bytes]:
    """Write an event for each text: `data` with the text in the place of `HOLE`."""
    # Written once and filled in: a long answer has hundreds of pieces.
    before, _, after = event(data, name).partition(_HOLE_WRITTEN)
    return [before + orjson.dumps(text) + after for text in texts]


def cut_up(text: str, chunks: int | None) -> list[str]:
    """Cut a text into at most `chunks` pieces, or into pieces of `PIECE` characters."""
    size = PIECE if chunks is None else max(1, -(-len(text) // chunks))
    return [text[start : start + size] for start in range(0, len(text), size)]
