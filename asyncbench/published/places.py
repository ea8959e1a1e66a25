"""Where files and folders are, and how a run and its files are named after each other.

What cannot be read or made is refused before anything is spent on it.
"""

from os.path import isdir, isfile, lexists
from pathlib import Path
from typing import Final
from urllib.parse import quote

from asyncbench.errors import ConfigError
from asyncbench.files import local

LONGEST: Final = 200  # characters once percent-encoded: a run names a file, with room for an ending


def check_file(path: Path) -> None:
    """Refuse what is no file that can be read.

    Raises:
        ConfigError: it is missing, may not be read, or is a pipe or the like.
    """
    try:
        path.stat()
        if not isfile(path):  # before it is opened: a pipe would be waited for
            raise ConfigError(
                f"{path} is not a regular file. Save its content to a file, and name that file."
            )
        path.open("rb").close()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. Name a file that you can read.") from None


def check_folder(path: Path) -> None:
    """Refuse what cannot be a folder, since a file is there or above it.

    Raises:
        ConfigError: so it is, and names that file; or the path is an address.
    """
    there = next(folder for folder in (path, *local(path).absolute().parents) if lexists(folder))
    if not isdir(there):
        raise ConfigError(f"{there} is not a folder. Name a folder, or a new one.")


def run_of(path: Path, ending: str) -> str:
    """Return the run that a file becomes: its name without the ending of its format.

    Raises:
        ConfigError: that can name no file in turn.
    """
    run = path.name.removesuffix(ending)
    try:
        encoded = quote(run, safe="")
    except UnicodeEncodeError:
        raise ConfigError(f"{str(path)!r}: the name is not UTF-8 text. Rename the file.") from None
    if not 1 <= len(encoded) <= LONGEST:
        raise ConfigError(
            f"{path}: the name of the run would be empty, or longer than {LONGEST} characters when "
            "percent-encoded. Rename the file."
        )
    return run


def file_of(run: str, ending: str) -> str:
    """Return the name of the file that an imported run becomes again."""
    return f"{run.replace('/', '%2F')}{ending}"


def problems_file(run: str) -> str:
    """Return where in a results folder the problems of an imported run are."""
    return f"problems/{quote(run, safe='')}.parquet"
