"""Garbage collection where thousands of calls are in flight."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG_OBJECTS: Final = 20_000  # allocated between two collections of the youngest, beside those of calls
OBJECTS_OF_A_CALL: Final = 200  # of each call that may be in flight: through an SDK it holds about 140
MANY_CALLS: Final = 10_000  # beyond which the threshold no longer grows


def collect_rarely(calls: int) -> None:
    """Keep the cyclic collector from walking through the SDKs' million objects again and again.

    Calls leave few cycles behind, but they allocate a lot, and each collection held up every request in
    flight: a quarter of the CPU of a call, and half a second at a time with 5,000 in flight. What is alive
    now is set aside; what `calls` in flight hold is not taken for garbage; the young are still collected.
    """
    gc.freeze()
    young = YOUNG_OBJECTS + OBJECTS_OF_A_CALL * min(MANY_CALLS, calls)
    gc.set_threshold(young, *gc.get_threshold()[1:])


@contextmanager
def rare_garbage_collection(calls: int) -> Iterator[None]:
    """Collect rarely for as long as the block lasts; see `collect_rarely`."""
    threshold = gc.get_threshold()
    collect_rarely(calls)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()
