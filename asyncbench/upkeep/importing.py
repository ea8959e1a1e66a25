"""import_files(): what others recorded becomes a results folder like any other."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from os.path import isdir
from pathlib import Path

from asyncbench.errors import ConfigError
from asyncbench.files import local, storing
from asyncbench.published.formats import format_named
from asyncbench.published.places import check_file, check_folder, run_of
from asyncbench.published.recorded import RecordedRun
from asyncbench.run.summary import Exit
from asyncbench.store.folder import Store
from asyncbench.store.manifest import check_owner, is_results_folder, read_manifest
from asyncbench.tables.report import Report
from asyncbench.upkeep.keeping import ImportedRun, Keeper


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported(Report):
    """What an import brought into a results folder."""

    out: Path
    runs: tuple[ImportedRun, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """The complaint about each line that could not be used."""
        return tuple(complaint for run in self.runs for complaint in run.left_out)

    @property
    def exit(self) -> Exit:
        """The exit code of a command that did only this."""
        return Exit.UNFINISHED if self.left_out else Exit.COMPLETE

    def _notes(self) -> Iterator[str]:
        for run in self.runs:
            before = f", {run.there_before:,} were there already" if run.there_before else ""
            left_out = f", {len(run.left_out):,} could not be used" if run.left_out else ""
            yield f"{run.run}: {run.trials:,} trials imported{before}{left_out}"
        yield f"Results: {self.out}. Look at them with `asyncbench report {self.out}`."


def import_files(
    form: str, files: Iterable[PathLike[str] | str], out: PathLike[str] | str, **plan: object
) -> Imported:
    """Import result files of a published benchmark into a results folder. Each file becomes a run.

    You can import again: trials that are in the folder already stay as they are, and new ones are added.

    Args:
        form: `llm-arithmetic`, `integer-addition` or `nupa`.
        files: files, or folders that hold them.
        out: the results folder. It is made if it does not exist.
        plan: what the runs were meant to hold. `llm-arithmetic`: `depths` (2-10) and `trials` of each cell
            (10). `nupa`: the `style` of lines that do not name one (chat).

    Returns:
        An `Imported`, with the rows of each file.

    Raises:
        ConfigError: The format or a file is unknown, no line can be used, two files would be the same run,
            or the folder holds a sweep: nothing was written. Or the folder has another run of that
            name: the files before it were imported, and the message says so.
        StoreError: The folder cannot be written.
    """
    chosen = format_named(form)
    read = chosen.reader(plan)
    folder, sweep, there = folder_for(out)
    paths = _paths([Path(file) for file in files], chosen.ENDING, chosen.SUMMARIES)
    recordings = _once_usable(map(read, paths), there=there)
    with Store.open(folder, sweep=sweep, imported=True) as store:
        return Imported(out=Path(out), runs=_kept(recordings, Keeper(store, form)))


def folder_for(out: PathLike[str] | str) -> tuple[Path, str, bool]:
    """Return the folder of an import, its sweep, and whether it is there already.

    Raises:
        ConfigError: it holds a sweep, or cannot be a folder.
        StoreError: it cannot be read.
    """
    folder = local(out).resolve()
    there = is_results_folder(folder)
    sweep = str(read_manifest(folder)["sweep"]) if there else folder.name
    check_folder(folder)
    with storing(folder):
        check_owner(folder, sweep=sweep, imported=True)
    return folder, sweep, there


def _paths(given: Sequence[Path], ending: str, summaries: Container[str]) -> list[Path]:
    """Return the files that are meant: of a folder those with the format's ending, by name; no summaries.

    Raises:
        ConfigError: one cannot be read, or two would be the same run.
    """
    runs: dict[str, Path] = {}
    for path in given:
        files = [path]
        if isdir(path):
            files = sorted(file for file in path.glob(f"*{ending}") if not file.name.startswith("."))
        if not files:
            raise ConfigError(f"{path} has no {ending} files.")
        for file in files:
            if file.name in summaries:  # sums of the trials in the others
                continue
            run = run_of(file, ending)
            check_file(file)
            if run in runs:
                raise ConfigError(
                    f"{runs[run]} and {file} would both be run {run!r}. Rename one, or import it into "
                    "another folder."
                )
            runs[run] = file
    if given and not runs:
        raise ConfigError(f"{given[0]} holds sums, not trials. Name the files of the runs.")
    return list(runs.values())


def _once_usable(recordings: Iterator[RecordedRun], *, there: bool) -> Iterator[RecordedRun]:
    """Return all recordings, once one of them holds something to write.

    Those before it, which hold no trials, have waited for it. In a folder that is `there`, bad lines are
    something to write as well: that they were left out.
    """
    waiting: list[RecordedRun] = []
    for recording in recordings:
        waiting.append(recording)
        if recording.trials or (there and recording.left_out):
            return chain(iter(waiting), recordings)  # the iterator lets go of them, the list would not
    left_out = (complaint for recording in waiting for complaint in recording.left_out)
    raise ConfigError(f"Nothing can be imported: {next(left_out, 'the files have no trials')}")


def _kept(recordings: Iterator[RecordedRun], keeper: Keeper) -> tuple[ImportedRun, ...]:
    runs: list[ImportedRun] = []
    try:
        for run in map(keeper.keep, recordings):  # so that no recording is held while the next is read
            runs.append(run)
    except ConfigError as error:
        before = " The files before it were imported." if runs else ""
        raise ConfigError(f"{error}{before}") from None
    return tuple(runs)
