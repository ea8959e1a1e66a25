"""export_folder(): results as files of another project."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from os import PathLike
from os.path import lexists
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final

from asyncbench.errors import ConfigError
from asyncbench.files import local, writing
from asyncbench.published.files import (
    ExportedPart,
    FileFormat,
    FileToWrite,
    Row,
    asked_in,
    check_folder,
    parts_of,
    rows_of,
)
from asyncbench.published.formats import format_named
from asyncbench.store.bucket.fetching import at_hand
from asyncbench.store.manifest import IMPORTED, Manifest, planned, read_manifest
from asyncbench.store.schema import ENTRANT
from asyncbench.tables.report import Report
from asyncbench.upkeep.inspect.logs import logs

INSPECT: Final = "inspect"  # a format that is only written


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """One file that was written."""

    path: str
    trials: int
    notes: tuple[str, ...]  # what the format cannot say as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported(Report):
    """What an export wrote."""

    files: tuple[ExportedFile, ...]
    summaries: tuple[str, ...] = ()  # paths of files with a line for each of the others

    def _notes(self) -> Iterator[str]:
        for file in self.files:
            yield "; ".join([f"{file.path}: {file.trials:,} trials", *file.notes])
        for path in self.summaries:
            yield f"{path}: the sums of each file"


def export_folder(form: str, folder: PathLike[str] | str, out: PathLike[str] | str) -> Exported:
    """Write the finished trials of a results folder in the file format of a published benchmark.

    You get one file for each imported run, or for each model and condition of a sweep: all of them or none.
    `llm-arithmetic` also gets `aggregate.jsonl`, with the sums of each file. `inspect` makes a log for each
    model, condition and suite of a run.

    Args:
        form: `llm-arithmetic`, `integer-addition`, `nupa` or `inspect`.
        folder: the results folder.
        out: the folder for the files. It is made if it does not exist.

    Returns:
        An `Exported`, with the files and their rows.

    Raises:
        ConfigError: The format is unknown, the folder has no trials of its suites, the format has no place
            for a problem, or a file exists already.
        StoreError: The folder cannot be read, or the files cannot be written.
        ProblemSetError: A copy of a problem set is damaged.
    """
    folder, out = at_hand(folder), local(out)
    chosen = None if form == INSPECT else format_named(form, others=[INSPECT])
    manifest = read_manifest(folder)
    files = _texts(chosen, folder, manifest) if chosen else logs(folder, manifest)
    summaries = [out / name for name in chosen.summaries] if chosen else []
    paths = _paths(files, out, summaries)
    with _all_or_none([*paths, *summaries], out) as drafts:
        # mapped: the rows of no file are held while those of the next are read
        written = tuple(map(partial(_written, drafts=drafts), paths, files))
    return Exported(files=written, summaries=tuple(map(str, summaries)))


def _texts(chosen: FileFormat, folder: Path, manifest: Manifest) -> list[FileToWrite]:
    """Return the files of a format that has lines."""
    parts = parts_of(folder, manifest, chosen)
    asked_by = lru_cache(maxsize=1)(partial(asked_in, folder=folder))  # parts of a run follow each other

    def write(part: ExportedPart, file: BinaryIO) -> tuple[int, Sequence[str]]:
        rows = rows_of(part, folder, chosen.suites, asked_by(part.run, imported=part.imported))
        try:
            file.writelines(text.encode() for text in chosen.texts(rows, _planned(rows, manifest)))
            for name, sums in chosen.summaries.items():
                with Path(file.name).with_name(name).open("ab") as summary:
                    summary.write(sums(rows).encode())
                    _sync(summary)
        except (ValueError, IndexError) as error:  # a set of one's own may call anything a task of the suite
            raise ConfigError(f"{folder} has problems that this format cannot hold: {error}") from error
        return len(rows), chosen.notes(rows)

    return [FileToWrite(name=chosen.file_name(part), write=partial(write, part)) for part in parts]


def _paths(files: Sequence[FileToWrite], out: Path, summaries: Sequence[Path]) -> list[Path]:
    """Return where each file goes; nothing is ever written over."""
    check_folder(out)
    paths: list[Path] = []
    for file in files:
        path = out / file.name
        if path in paths or path in summaries:
            raise ConfigError(f"two runs or models would become the same file {path}. Rename one.")
        _refuse_existing(path)
        paths.append(path)
    for path in summaries:
        _refuse_existing(path)
    return paths


def _refuse_existing(path: Path) -> None:
    if lexists(path):
        raise ConfigError(f"{path} exists already. Remove it, or name another folder.")


@contextmanager
def _all_or_none(paths: Sequence[Path], out: Path) -> Iterator[Path]:
    """Yield a folder for files of these names; at the end they get their places, all of them or none."""
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".export-", dir=out) as drafts:
            yield Path(drafts)
            moved: list[Path] = []
            try:
                for path in paths:
                    _refuse_existing(path)
                    moved.append(path)
                    (Path(drafts) / path.name).rename(path)
            except BaseException:  # an interruption too: what is left would be in the way of another try
                for path in moved:
                    path.unlink(missing_ok=True)
                raise


def _written(path: Path, file: FileToWrite, *, drafts: Path) -> ExportedFile:
    """Write a file, for now among the drafts."""
    with writing(path), (drafts / path.name).open("xb") as draft:
        trials, notes = file.write(draft)
        _sync(draft)
    return ExportedFile(path=str(path), trials=trials, notes=tuple(notes))


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _planned(rows: Sequence[Row], manifest: Manifest) -> Mapping[str, int]:
    """Return how many trials were planned for a file, by suite; never fewer than it holds."""
    file = tuple(rows[0][name] for name in ENTRANT)
    trials = Counter[str]()
    for entrant, suites in planned(manifest).items():
        if entrant == file or (manifest.get(IMPORTED) and entrant[0] == file[0]):
            trials.update({suite: sum(tasks.values()) for suite, tasks in suites.items()})
    return trials | Counter(row["suite"] for row in rows)
