"""Streams for tests of wire formats: texts cut into pieces, and events put to an Assembly."""

from collections.abc import Callable, Iterable, Mapping

import pytest
from hypothesis import strategies as st

from asyncbench.errors import ProviderError
from asyncbench.providers.wire import Response, Wire
from asyncbench.records import Reply

RESPONSE = Response(status=200, headers={"x-request-id": "req_1"}, body=b"")
PIECES = st.lists(st.text(max_size=5), max_size=6)  # some of them empty, as servers send them


def streamed(wire: Wire, events: Iterable[Mapping[str, object]]) -> Reply:
    """Return the reply that the events make up."""
    assembly = wire.stream(RESPONSE)
    for event in events:
        assembly.feed(event)
    return assembly.complete()


def failure(read: Callable[..., Reply], *what: object) -> ProviderError:
    """Return why no reply can be read."""
    with pytest.raises(ProviderError) as caught:
        read(*what)
    return caught.value


def first_word(wire: Wire, events: Iterable[Mapping[str, object]]) -> int | None:
    """Return the place of the first event that brought text or thinking."""
    assembly = wire.stream(RESPONSE)
    return next((place for place, event in enumerate(events) if assembly.feed(event)), None)
