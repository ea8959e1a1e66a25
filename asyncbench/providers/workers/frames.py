"""Python values over a socket pair, in the order in which they were sent."""

import asyncio
import pickle
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import Any, Final

PIECE: Final = 2**18  # bytes read at once
_LENGTH: Final = Struct("<I")


class Frames(asyncio.Protocol):
    """Sends values and takes those that come: all of one turn of the event loop in one piece.

    Values are pickled: both ends are our own processes, run the same code, and share no socket with anyone.
    So each arrives as it left: half a surrogate, an integer of thirty digits, NaN.

    Args:
        take: is called with each value that comes.
        lost: is called once, when the other end is gone.
    """

    def __init__(self, take: Callable[[Any], None], lost: Callable[[], None]) -> None:
        self._take, self._lost = take, lost
        self._transport: asyncio.Transport | None = None  # None: not yet there, or gone
        self._over = False
        self._loop = asyncio.get_running_loop()
        self._unsent: list[bytes] = []
        self._unread = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  a stream has no other
        self._transport = transport
        self._flush()

    def connection_lost(self, _: Exception | None) -> None:
        self._drain()
        self._transport, self._over = None, True
        self._lost()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        at = 0
        while len(self._unread) >= (begin := at + _LENGTH.size):
            at_end = begin + _LENGTH.unpack_from(self._unread, at)[0]
            if len(self._unread) < at_end:
                break
            value = pickle.loads(self._unread[begin:at_end])  # noqa: S301  our own process sent it
            at = at_end
            self._take(value)
        del self._unread[:at]

    def send(self, value: object) -> None:
        """Send a value soon; where the other end is gone, it is dropped.

        Raises:
            Exception: whatever keeps the value from being pickled. Nothing of it was sent.
        """
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        if self._over:
            return
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent += (_LENGTH.pack(len(data)), data)

    def close(self) -> None:
        """Send what waits, then end the connection."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def _drain(self) -> None:
        """Take what the other end sent before it went: where writing fails first, nobody has read it."""
        if self._transport is not None:
            with suppress(OSError), self._transport.get_extra_info("socket").dup() as remains:
                remains.setblocking(False)
                while data := remains.recv(PIECE):
                    self.data_received(data)

    def _flush(self) -> None:
        if self._transport is not None and self._unsent:
            self._transport.write(b"".join(self._unsent))
            self._unsent.clear()
