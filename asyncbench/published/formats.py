"""The formats of other projects, by name, and the functions of each."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

from asyncbench.errors import ConfigError
from asyncbench.published.exported import ExportedPart, Row
from asyncbench.published.integer_addition import files as integer_addition
from asyncbench.published.llm_arithmetic import files as llm_arithmetic
from asyncbench.published.nupa import files as nupa
from asyncbench.published.recorded import RecordedRun


class FileFormat(Protocol):
    """How files of another project are read and written."""

    ENDING: str
    SUITES: tuple[str, ...]
    TASK_NAMES: tuple[str, ...]  # of those suites: all that it has a place for
    SUMMARIES: Mapping[str, Callable[[list[Row]], str]]  # names of files with a line for each of the others

    def reader(self, plan: Mapping[str, object], /) -> Callable[[Path], RecordedRun]:
        """Return what reads a file."""

    def file_name(self, part: ExportedPart, /) -> str:
        """Return the name of a file of trials of a sweep."""

    def texts(self, rows: list[Row], planned: Mapping[str, int], /) -> Iterator[str]:
        """Yield what a file of these trials, in order, holds; `planned`: suite → trials."""

    def notes(self, rows: list[Row], /) -> list[str]:
        """Return what the format cannot say of these trials."""


FORMATS: Final[Mapping[str, FileFormat]] = {
    "llm-arithmetic": llm_arithmetic,
    "integer-addition": integer_addition,
    "nupa": nupa,
}


def format_named(name: str, *, others: Iterable[str] = ()) -> FileFormat:
    """Return a format that can be read and written; `others` can be chosen as well, but are none.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in FORMATS:
        raise ConfigError(f"no format {name!r}. Choose one of: {', '.join([*FORMATS, *others])}")
    return FORMATS[name]
