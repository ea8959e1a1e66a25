"""Ctrl-C and SIGTERM, taken as a wish and not as an error."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_interrupt(what: Callable[[], None]) -> Iterator[None]:
    """Call `what` in the event loop at every Ctrl-C or SIGTERM while the body lasts; they do nothing else."""
    loop = asyncio.get_running_loop()
    # Only the main thread may: elsewhere (a notebook's worker) the caller cancels the task instead.
    is_main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    for number in signals:
        loop.add_signal_handler(number, what)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
