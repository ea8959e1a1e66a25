"""Where files are read and folders written: refused before anything is spent on them."""

from os.path import isdir, isfile, lexists
from pathlib import Path

from asyncbench.errors import ConfigError
from asyncbench.files import local


def check_file(path: Path) -> None:
    """Refuse what is no file that can be read.

    Raises:
        ConfigError: it is missing, may not be read, or is a pipe or the like.
    """
    try:
        path.stat()
        if not isfile(path):  # before it is opened: a pipe would be waited for
            raise ConfigError(f"{path} is not a regular file: save what it gives to a file, and name that")
        path.open("rb").close()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; name a file that can be read") from None


def check_folder(path: Path) -> None:
    """Refuse what cannot be a folder, since a file is there or above it.

    Raises:
        ConfigError: so it is, and names that file; or the path is an address.
    """
    there = next(one for one in (path, *local(path).absolute().parents) if lexists(one))
    if not isdir(there):
        raise ConfigError(f"{there} is not a folder: name one that is, or one that is new")
