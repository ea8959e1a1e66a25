"""The table of formats."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncbench.errors import ConfigError
from asyncbench.published.exported import ExportedPart, Row
from asyncbench.published.integer_addition import files as integer_addition
from asyncbench.published.llm_arithmetic import files as llm_arithmetic
from asyncbench.published.nupa import files as nupa
from asyncbench.published.recorded import RecordedRun
from asyncbench.suites import ARITHMETIC_TASKS


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """How files of another project are read and written.

    `reader(plan)` returns what reads a file. Of the trials of one file to be, in order, `file_name` names
    that of a sweep, `texts` yields what it holds (given suite → trials planned), and `notes` says what the
    format cannot say.
    """

    ending: str
    suites: tuple[str, ...]
    tasks: tuple[str, ...]  # of those suites: all that it has a place for
    reader: Callable[[Mapping[str, object]], Callable[[Path], RecordedRun]]
    file_name: Callable[[ExportedPart], str]
    texts: Callable[[list[Row], Mapping[str, int]], Iterator[str]]
    notes: Callable[[list[Row]], list[str]]


FORMATS: Mapping[str, FileFormat] = {
    "llm-arithmetic": FileFormat(
        ending=llm_arithmetic.ENDING,
        suites=(llm_arithmetic.NAME,),
        tasks=tuple(ARITHMETIC_TASKS),
        reader=llm_arithmetic.reader,
        file_name=llm_arithmetic.file_name,
        texts=llm_arithmetic.texts,
        notes=llm_arithmetic.notes,
    ),
    "integer-addition": FileFormat(
        ending=integer_addition.ENDING,
        suites=integer_addition.SUITES,
        tasks=integer_addition.SUITES,  # each has one, of its own name
        reader=integer_addition.reader,
        file_name=integer_addition.file_name,
        texts=integer_addition.texts,
        notes=integer_addition.notes,
    ),
    "nupa": FileFormat(
        ending=nupa.ENDING,
        suites=(nupa.NAME,),
        tasks=nupa.TASK_NAMES,
        reader=nupa.reader,
        file_name=nupa.file_name,
        texts=nupa.texts,
        notes=nupa.notes,
    ),
}


def format_named(name: str) -> FileFormat:
    """Return a format.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in FORMATS:
        raise ConfigError(f"no format {name!r}; there are: {', '.join(FORMATS)}")
    return FORMATS[name]
