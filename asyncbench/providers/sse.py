"""Server-sent events, cut anywhere: bytes in, the data of whole events out. Knows no JSON and no connection.

After the standard (html.spec.whatwg.org, Server-sent events), and kinder than it in what servers were seen
to do: `[DONE]` without `data:`, and a last event without the blank line that should close it.
"""

from typing import Final

_DONE: Final = b"[DONE]"
_BOM: Final = b"\xef\xbb\xbf"  # some put it before a stream; it is no part of a line


class TooLongError(ValueError):
    """A body, or an event of a stream, that is longer than any reply."""


class Scanner:
    """Finds the events of one stream; each byte is looked at a bounded number of times."""

    __slots__ = ("_after_cr", "_at_start", "_data", "_line", "_most", "_size", "done")

    def __init__(self, most: int) -> None:
        self._most = most  # bytes of an event; the last one of a response may repeat the whole reply
        self.done = False  # the stream said that it is complete
        self._at_start = True  # no line was read yet
        self._line: list[bytes] = []  # the pieces of a line that has not ended yet
        self._data: list[bytes] = []  # the data lines of an event that has not ended yet
        self._size = 0  # bytes in both, and one for each piece
        self._after_cr = False  # a line feed that follows belongs to it

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take in the next bytes; return the data of the events that they complete.

        Raises:
            TooLongError: an event is longer than it may be.
        """
        if not chunk:
            return []
        lines = (chunk[1:] if self._after_cr and chunk[0] == 0x0A else chunk).splitlines()
        self._after_cr = chunk[-1] == 0x0D
        unfinished = lines.pop() if chunk[-1] not in b"\r\n" else b""
        if lines and self._line:
            lines[0] = self._begun() + lines[0]
        events = self._events(lines)
        if unfinished:
            self._keep(self._line, unfinished)
        return events

    def end(self) -> list[bytes]:
        """Return the data of an event that the end of the stream cut off from its blank line."""
        return self._events([self._begun(), b""])

    def _begun(self) -> bytes:
        line = b"".join(self._line)
        self._size -= len(line) + len(self._line)
        self._line.clear()
        return line

    def _events(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        if self._at_start and lines:
            self._at_start = False
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                data = b"\n".join(self._data)
                self._data.clear()
                self._size = 0
                if data.strip() and not self.done:
                    events.append(data)
        return events

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            data = line[5:]
        elif line.startswith(_DONE):
            data = line
        else:
            return  # a comment, which is how servers keep a connection alive, or a field such as `event`
        if not self._data and data.strip() == _DONE:
            self.done = True
        else:
            self._keep(self._data, data)

    def _keep(self, pieces: list[bytes], piece: bytes) -> None:
        self._size += len(piece) + 1  # an empty one counts too
        if self._size > self._most:
            raise TooLongError(f"it holds an event of more than {self._most:,} bytes")
        pieces.append(piece)
