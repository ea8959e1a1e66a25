"""export_folder(): results as files of another project."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from os.path import lexists
from pathlib import Path

from asyncbench.errors import ConfigError
from asyncbench.exchange.exported import Row, files_of
from asyncbench.exchange.formats import Format, format_named
from asyncbench.problems.files import replacing
from asyncbench.store.manifest import IMPORTED, Manifest, planned, read_manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """One file that was written."""

    path: str
    trials: int
    notes: tuple[str, ...]  # what the format cannot say as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export wrote."""

    files: tuple[ExportedFile, ...]

    def as_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(asdict(self), indent=2)

    def as_text(self) -> str:
        """Return a line for each file."""
        return "\n".join("; ".join([f"{one.path}: {one.trials:,} trials", *one.notes]) for one in self.files)


def export_folder(form: str, folder: PathLike[str] | str, out: PathLike[str] | str) -> Exported:
    """Write the finished trials of a results folder as files of another project, each whole or not at all.

    A run that was imported becomes a file of its name; of a sweep each model does, under each condition.

    Args:
        form: llm-arithmetic or integer-addition.
        folder: a results folder.
        out: the folder for the files; one that is missing is made.

    Raises:
        ConfigError: no such format, nothing of its suites in the folder, a file that is there already or
            cannot be written.
        StoreError, ProblemSetError: the folder cannot be read.
    """
    chosen, folder = format_named(form), Path(folder)
    manifest = read_manifest(folder)
    files = files_of(folder, manifest, chosen.suites)
    if not files:
        raise ConfigError(
            f"{folder} holds no finished trial of {', '.join(chosen.suites)}: nothing to export"
        )
    paths = _paths(files, chosen, manifest, Path(out))
    for path, rows in zip(paths, files, strict=True):
        with replacing(path, refusal=ConfigError) as file:
            file.writelines(text.encode() for text in chosen.texts(rows, _planned(rows, files, manifest)))
    return Exported(
        files=tuple(
            ExportedFile(path=str(path), trials=len(rows), notes=tuple(chosen.notes(rows)))
            for path, rows in zip(paths, files, strict=True)
        )
    )


def _paths(files: Sequence[list[Row]], chosen: Format, manifest: Manifest, out: Path) -> list[Path]:
    """Return where each file goes; nothing is ever written over."""
    paths: list[Path] = []
    for rows in files:
        run = str(rows[0]["run"]).replace("/", "%2F")
        path = out / (f"{run}{chosen.ending}" if manifest.get(IMPORTED) else chosen.file_name(rows))
        if lexists(path) or path in paths:
            raise ConfigError(f"{path} is there already: remove it, or name another folder")
        paths.append(path)
    return paths


def _planned(rows: Sequence[Row], files: Sequence[list[Row]], manifest: Manifest) -> Mapping[str, int]:
    """Return how many trials were planned for a file, by suite.

    A plan counts all conditions together: of a sweep with several, a file has its share.
    """
    imported, run, model = manifest.get(IMPORTED), rows[0]["run"], rows[0]["model"]
    trials = Counter[str]()
    for (of, asked), suites in planned(manifest).items():
        if of == run and (imported or asked == model):
            trials.update({suite: sum(tasks.values()) for suite, tasks in suites.items()})
    held = Counter(row["suite"] for row in rows)
    alike = [other for other in files if other[0]["run"] == run and other[0]["model"] == model]
    shares = Counter(suite for other in alike for suite in {row["suite"] for row in other})
    return {suite: max(trials[suite] // (shares[suite] or 1), held[suite]) for suite in trials | held}
