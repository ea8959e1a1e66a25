"""Servers that send what nobody asked for, such as an answer twice: their connections serve one call each.

HTTP/1.1 does not say which request a response belongs to. An answer that comes again, late, while the next
request is under way looks like the answer to that one. So a connection is used again only if its server never
sent anything unasked. Its first connections show that: each serves one call, is listened to for a moment, and
closed. No more of them are held open, as some servers serve only a few connections at a time.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

LISTENED_TO: Final = 8  # answers of a server, before the first of its connections is used again
LISTENS_S: Final = 0.5  # to each of them: what is sent twice comes again that soon
# Refusals of idle connections (408), and what is no answer yet (103).
_NO_ANSWER: Final = re.compile(rb"HTTP/\d\.\d [1345]\d\d\b")
_EMPTY_LINES: Final = b"\r\n"


def is_blank(data: bytes) -> bool:
    """Return whether these are but the empty lines that some servers write after a body."""
    return not data.strip(_EMPTY_LINES)


def is_answer(data: bytes) -> bool:
    """Return whether what came unasked is an answer, or nothing known: no farewell of an idle connection."""
    return _NO_ANSWER.match(data) is None


# ── Ids of answers

KNOWN_FROM: Final = 16  # ids in a row, each another
RANDOM: Final = 12  # characters that differ from one id to the next: a time, or a count, changes fewer
REMEMBERED: Final = 4_096


class AnswerIds:
    """The ids that a server gives its answers: do they tell one answer from another?

    An id may be the same in all answers, tell the second, or be a number up to 999.
    """

    __slots__ = ("_ids", "_latest", "_random", "_seen_twice")

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}  # the latest, oldest first
        self._latest = ""
        self._random = 0  # ids in a row that differ from the one before as random ones do
        self._seen_twice = False

    @property
    def unique(self) -> bool:
        """Return whether each answer is known to have an id of its own."""
        return self._random >= KNOWN_FROM and not self._seen_twice

    def note(self, answer_id: str | None) -> None:
        """Count the id of another answer. None is not counted."""
        if answer_id is None or self._seen_twice:
            return
        if answer_id in self._ids:
            self._seen_twice = True
            self._ids.clear()
            return

        if self._random < KNOWN_FROM:
            differing = sum(a != b for a, b in zip(self._latest, answer_id, strict=False))
            self._random = self._random + 1 if differing >= RANDOM or not self._latest else 0
            self._latest = answer_id
        self._ids[answer_id] = None
        if len(self._ids) > REMEMBERED:
            del self._ids[next(iter(self._ids))]


# ── Servers


class ServerRecord:
    """One server of a run, or the proxy before it, as its connections have shown it.

    Args:
        name: scheme, host and port.
        on_caught: called once, with the name, when it sends an answer that nobody asked for.
    """

    __slots__ = ("_answers", "_listens_until_s", "_on_caught", "caught", "ids", "name")

    def __init__(self, name: str, on_caught: Callable[[str], None]) -> None:
        self.name, self._on_caught = name, on_caught
        self.caught = False
        self.ids = AnswerIds()
        self._answers = 0  # that it was listened to after, up to `LISTENED_TO`
        self._listens_until_s = 0.0

    def keeps(self, at_s: float) -> bool:
        """Return whether a connection may serve another call, at a time of the event loop."""
        return not self.caught and self._answers >= LISTENED_TO and at_s >= self._listens_until_s

    def listens(self, at_s: float) -> bool:
        """Note that a whole answer was read; return whether its connection is to be listened to."""
        if self._answers >= LISTENED_TO:
            return False
        self._answers += 1
        self._listens_until_s = at_s + LISTENS_S
        return True

    def catch(self) -> None:
        """Note that it sent an answer that nobody asked for."""
        if not self.caught:
            self.caught = True
            self._on_caught(self.name)


class ServerRecords:
    """The servers of a run, by name.

    Args:
        notify: called once for each server that is caught, with what a person should hear.
    """

    def __init__(self, notify: Callable[[str], None]) -> None:
        self._notify = notify
        self._servers: dict[str, ServerRecord] = {}
        self.listeners: list[Callable[[str], None]] = []  # told the name of one that is caught

    def named(self, name: str) -> ServerRecord:
        """Return the server of a name."""
        if name not in self._servers:
            self._servers[name] = ServerRecord(name, self._caught)
        return self._servers[name]

    def _caught(self, name: str) -> None:
        self._notify(
            f"{name} sent an answer that nobody asked for: it, or a proxy before it, answers twice. From now "
            "on each call to it has a connection of its own, which costs each the time of a new connection "
            "(and of a TLS handshake)"
        )
        for tell in self.listeners:
            tell(name)


_SERVERS: ContextVar[ServerRecords | None] = ContextVar("servers of the run", default=None)


def servers() -> ServerRecords:
    """Return the servers of the run that the running code serves; outside of runs, new ones."""
    return _SERVERS.get() or ServerRecords(lambda _: None)


@contextmanager
def watching_servers(notify: Callable[[str], None]) -> Iterator[ServerRecords]:
    """Share what is known of servers among all models of a run; see `ServerRecords`."""
    watched = ServerRecords(notify)
    token = _SERVERS.set(watched)
    try:
        yield watched
    finally:
        _SERVERS.reset(token)
