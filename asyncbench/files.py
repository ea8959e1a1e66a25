"""Files that are written whole or not at all, and the errors of those that cannot be written.

A refusal is a matter of storage (StoreError, exit code 5): a full disk, a quota that is used up, a limit on
the size of files, no right to write. Where the place of a file that somebody named is none, a folder perhaps,
it is a matter of the command (ConfigError, exit code 2).
"""

import difflib
import errno
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final

from asyncbench.errors import AsyncbenchError, ConfigError, StoreError

MOST_BYTES: Final = 4_000_000  # of a file that a person writes
OWNERS: Final = 0o700  # of a results folder: questions, replies and bills are for whoever asked

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_RIGHT: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_NAMES: Final = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ})
_EITHER: Final = "free disk space, or get write permission"
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)  # Path makes one slash of two
_NO_PLACE: Final = frozenset(
    {errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR}
)


def local(path: PathLike[str] | str) -> Path:
    """Return the path of a file or folder of this machine.

    Raises:
        ConfigError: it is an address such as s3://…, which would be made as a folder called `s3:`.
    """
    if _ADDRESS.match(os.fspath(path)):
        raise ConfigError(
            f"{os.fspath(path)}: addresses are not supported. Copy the data to this machine, and name the "
            "file or folder here. If a local folder has this name, give its absolute path."
        )
    return home_expanded(path)


def home_expanded(path: PathLike[str] | str) -> Path:
    """Return a path whose `~` or `~user` at its beginning is that home, for no shell may have seen it.

    A folder that is really called `~` here (`./~`) comes back absolute, and so does `file:x`: Arrow would
    take the one for the home, and the other for an address.

    Raises:
        ConfigError: there is no such user.
    """
    text = os.fspath(path)
    if not text.startswith("~"):
        here = Path(text)
        is_misread = str(here).startswith("~") or (":" in str(here) and not _ADDRESS.match(text))
        return here.absolute() if is_misread else here
    expanded = os.path.expanduser(text)
    if expanded == text:
        user = text.partition("/")[0]
        raise ConfigError(f"{text}: no home of {user} is known. Give the absolute path, or ./{text}.")
    return Path(expanded)


def quoted(path: object) -> str:
    """Return a path as a shell takes it, for a command that a message names."""
    return shlex.quote(str(path))


def input_path(path: PathLike[str] | str, near: Path | None) -> Path:
    """Return where an input of the sweep file `near` is: beside that file, or else in the working directory.

    It is `path` itself where neither has it, and where `near` is None: a sweep from Python or typed options.
    """
    path = home_expanded(path)
    beside = path if near is None else near.parent / path
    return path if _missing(beside) else beside


def found_input(
    path: PathLike[str] | str,
    near: Path | None,
    *,
    place: str,
    way_out: str,
    refuse: type[AsyncbenchError] = ConfigError,
) -> Path:
    """Return `input_path`, where there is a file or folder.

    Raises:
        ConfigError, or what `refuse` says: there is none; names `place`, and where asyncbench looked.
    """
    target, here = input_path(local(path), near), Path.cwd()
    if not _missing(target):
        return target
    beside = here if near is None else (here / near).parent
    places = f"the working directory {here}"
    if beside != here:
        places = f"{beside}, where the sweep file is, and in {places}"
    searched = "" if target.is_absolute() else f" asyncbench looked in {places}."
    similar = _similar(Path(path), (beside, here))
    raise refuse(f"{place}: {os.fspath(path)} was not found.{searched}{similar} {way_out}.")


def _similar(path: Path, places: Iterable[Path]) -> str:
    """Return a question for the file of nearly this name that is in one of the places, if there is one."""
    for folder in places:
        with suppress(OSError):
            names = os.listdir(folder / path.parent)
            if close := difflib.get_close_matches(path.name, names, n=1, cutoff=0.8):
                return f" Did you mean {path.parent / close[0]}?"
    return ""


def _missing(path: Path) -> bool:
    """Return whether there is nothing; what may not be looked at is there."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def make_folder(path: Path, *, mode: int = 0o777) -> None:
    """Make `path`, with the rights in `mode` that the umask leaves, and what is missing above it."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode, exist_ok=True)
        sync_to_disk(path.parent)


def sync_to_disk(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folders(top: Path) -> None:
    """Wait until the names in a folder, and in all folders below it, are on the disk."""
    for folder, _, _ in os.walk(top):
        sync_to_disk(Path(folder))


def publish(temporary: Path, path: Path) -> None:
    """Give a finished file its name, in place of any file of that name."""
    make_folder(path.parent)
    sync_to_disk(temporary)
    temporary.replace(path)
    sync_to_disk(path.parent)


def remove_durably(path: Path) -> None:
    """Remove a file, if it is there, so that it is not back when the power fails."""
    with suppress(FileNotFoundError):
        path.unlink()
        sync_to_disk(path.parent)


def discard(folder: Path) -> None:
    """Remove a folder of files that are worth nothing, and give their room free at once."""
    for path in folder.rglob("*"):
        with suppress(OSError):
            os.truncate(path, 0)  # some may be open still: removed alone, they would keep their room
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write `path` of a results folder into a StoreError that names it."""
    try:
        yield
    except OSError as error:
        raise refused(path, error) from error


def write_durably(path: Path, data: bytes, *, temporary: Path) -> None:
    """Write a file in one step: a reader finds the old bytes or the new, never a part of them."""
    with storing(path):
        make_folder(temporary.parent)
        temporary.write_bytes(data)
        publish(temporary, path)


def refused(path: Path, why: OSError | str) -> StoreError:
    """Return the error for a `path` of a results folder that cannot be written; `why`: or words for it."""
    cause, way_out = (why, _EITHER) if isinstance(why, str) else (_words(why), _way_out(why))
    return StoreError(
        f"{path} could not be written: {cause}. All results saved before are safe. To continue, {way_out} "
        "and run again."
    )


def _words(error: OSError) -> str:
    """Return the system's words; it gives the path and a number with them, which nobody needs twice."""
    return error.strerror or str(error)


def _way_out(error: OSError) -> str:
    if error.errno in NO_ROOM:
        return "free disk space"
    if error.errno in _NO_LOCKS:
        return "use a folder on a file system with locks"
    if error.errno in _NO_NAMES:
        return "choose a name that this disk takes (shorter, and not one like `aux.txt` or `a?` on Windows)"
    return "get write permission" if error.errno in _NO_RIGHT else _EITHER


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write a file that somebody named into an error of ours that names it."""
    try:
        yield
    except OSError as error:
        raise unwritten(path, error) from error


def unwritten(path: Path, error: OSError) -> AsyncbenchError:
    """Return the error for a file that a user named and that cannot be written."""
    message = f"{path}: cannot be written: {_words(error)}. Choose another path"
    if error.errno in _NO_PLACE:
        return ConfigError(f"{message}.")
    return StoreError(f"{message}, or {_way_out(error)}.")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that takes the place of `path` once it is complete and on the disk.

    Where `path` is a link, what it leads to is replaced, and the link stays.

    Raises:
        OSError: it cannot be written there; what stood at `path` is as it was.
    """
    target = Path(os.path.realpath(local(path)))
    with _drafted(target) as draft:
        yield draft
        draft.flush()
        os.fsync(draft.fileno())
        Path(draft.name).replace(target)
        sync_to_disk(target.parent)


@contextmanager
def creating(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that gets its name once it is complete and on the disk, if nothing has that name.

    Raises:
        FileExistsError: something has, perhaps since a moment ago; it stays as it is.
        OSError: it cannot be written there.
    """
    with _drafted(local(path)) as draft:
        yield draft
        draft.flush()
        os.fsync(draft.fileno())

        # Give it its name, which nothing must have; not every disk can do that in one step.
        finished = Path(draft.name)
        try:
            os.link(finished, path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with path.open("xb") as taken:
                taken.write(finished.read_bytes())
        sync_to_disk(path.parent)


@contextmanager
def _drafted(path: Path) -> Iterator[BinaryIO]:
    """Yield a file beside `path` that is gone in the end, unless it was renamed."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")  # no reader takes it for Parquet
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        make_folder(path.parent)
        with draft.open("xb") as file:
            yield file
    finally:
        with suppress(OSError):
            draft.unlink()
