"""The formats of other projects, by name."""

from collections.abc import Iterable, Mapping
from typing import Final

from asyncbench.errors import ConfigError
from asyncbench.published.files import FileFormat
from asyncbench.published.integer_addition import files as integer_addition
from asyncbench.published.llm_arithmetic import files as llm_arithmetic
from asyncbench.published.nupa import files as nupa

FORMATS: Final[Mapping[str, FileFormat]] = {
    "llm-arithmetic": llm_arithmetic.FILES,
    "integer-addition": integer_addition.FILES,
    "nupa": nupa.FILES,
}


def format_named(name: str, *, others: Iterable[str] = ()) -> FileFormat:
    """Return a format that can be read and written; `others` can be chosen as well, but are none.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in FORMATS:
        raise ConfigError(f"no format {name!r}. Choose one of: {', '.join([*FORMATS, *others])}")
    return FORMATS[name]
