"""Bugs of asyncbench that single replies bring to light: the first traceback of each kind goes to a file.

A bug of an adapter, a wire format or a grader costs one call or one grade, never a run.
"""

import traceback
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from asyncbench.providers.secrets import without_secret

FAULTS: Final = "faults.txt"  # in the results folder
LONGEST: Final = 20_000  # characters of one of them: its beginning and its end


class Faults:
    """The first traceback of each kind of fault of each model, in a file of the results folder."""

    def __init__(self, folder: Path, keys: Collection[str]) -> None:
        self._file = folder / FAULTS
        self._keys = [key for key in keys if key]
        self._told: set[tuple[str, str]] = set()

    def note(self, alias: str, error: Exception) -> None:
        """Write a fault down, without any API key, if it is the first of its kind in this run.

        A file that cannot be written is no reason to stop: what was counted is told all the same.
        """
        kind = alias, type(error).__name__
        if kind in self._told:
            return
        self._told.add(kind)
        text = "".join(traceback.format_exception(error))
        for key in self._keys:
            text = without_secret(text, key=key)
        if len(text) > LONGEST:
            text = f"{text[: LONGEST // 2]}\n[…]\n{text[-LONGEST // 2 :]}"
        head = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, model {alias}\n"
        with suppress(OSError), self._file.open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{head}{text}\n")
