"""The status of a sweep while another process runs it: looked at again and again, only ever read."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from asyncbench.reports.status.report import Status, status_of
from asyncbench.store.bucket.claiming import current_folder
from asyncbench.store.lock import writer_of

REDRAWN_EVERY_S = 2.0  # on a terminal
LINE_EVERY_S = 10.0  # in a log or a pipe, as of `run`
GLANCE_EVERY_S = 0.2  # whether the run has ended
IDLE = 9  # times as long as a look took: the run beside needs the processor more


def followed(folder: Path | str, *, every_s: float) -> Iterator[Status]:
    """Yield the status of a folder now and then, the last time when nobody is writing to it any more.

    Args:
        folder: a results folder.
        every_s: seconds from one to the next; more where a look takes more than a tenth of that.

    Raises:
        ConfigError, StoreError: as `status_of` does.
    """
    while True:
        began_s = time.monotonic()
        status = status_of(folder)
        took_s = time.monotonic() - began_s
        yield status
        if not status.running:
            return
        due_s = time.monotonic() + max(every_s, IDLE * took_s)
        while time.monotonic() < due_s and writer_of(current_folder(folder)) is not None:
            time.sleep(min(GLANCE_EVERY_S, every_s))


def follow_status(
    folder: Path | str, out: TextIO, *, as_json: bool = False, every_s: float | None = None
) -> None:
    """Show a sweep until its run ends: redrawn on a terminal, a line now and then elsewhere.

    Args:
        folder: a results folder.
        out: where to; what stands there in the end is the whole status.
        as_json: one JSON object a line instead, whatever `out` is.
        every_s: seconds between two looks; None: as suits `out`.
    """
    drawn = out.isatty() and not as_json
    statuses = followed(folder, every_s=every_s or (REDRAWN_EVERY_S if drawn else LINE_EVERY_S))
    if drawn:
        _redraw(statuses, Console(file=out))
        return
    for status in statuses:
        text = status.as_line() if status.running else status.as_text()
        print(status.as_json(indent=None) if as_json else text, file=out, flush=True)


def _redraw(statuses: Iterator[Status], console: Console) -> None:
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        for status in statuses:
            live.update(Text.from_ansi(status.as_text()), refresh=True)
