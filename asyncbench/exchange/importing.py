"""import_files(): what others recorded becomes a results folder like any other."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from os import PathLike
from os.path import isdir
from pathlib import Path
from urllib.parse import quote

from asyncbench.errors import ConfigError
from asyncbench.exchange.formats import format_named
from asyncbench.exchange.recorded import ImportedRun, Recording, keep, trials_of
from asyncbench.store.catalog import read_trials
from asyncbench.store.folder import Store
from asyncbench.store.manifest import is_results_folder, read_manifest
from asyncbench.summary import Exit

LONGEST_RUN = 200  # characters once percent-encoded: it names a file, with room for an ending

Read = Callable[[Path], Recording]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import brought into a results folder."""

    out: Path
    runs: tuple[ImportedRun, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """The complaint about each line that could not be used."""
        return tuple(one for run in self.runs for one in run.left_out)

    @property
    def exit(self) -> Exit:
        """The exit code of a command that did only this."""
        return Exit.UNFINISHED if self.left_out else Exit.COMPLETE

    def as_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps({"out": str(self.out), "runs": [asdict(run) for run in self.runs]}, indent=2)

    def as_text(self) -> str:
        """Return a line for each run, and where it all is."""
        return "\n".join(
            [*map(_sentence, self.runs), f"results in {self.out}; `asyncbench report {self.out}`"]
        )


def _sentence(run: ImportedRun) -> str:
    parts = [f"{run.run}: {run.trials:,} trials imported"]
    if run.there_before:
        parts.append(f"{run.there_before:,} were there before")
    if run.left_out:
        parts.append(f"{len(run.left_out):,} could not be used")
    return ", ".join(parts)


def import_files(
    form: str, files: Iterable[PathLike[str] | str], out: PathLike[str] | str, **plan: object
) -> Imported:
    """Bring files of another project into a results folder, each as a run named after it.

    Trials that are there already are left as they are: importing a file again changes nothing, and one
    that has grown adds what is new.

    Args:
        form: llm-arithmetic or integer-addition.
        files: files, or folders of them.
        out: the results folder; one that is missing is made.
        plan: what the runs were to hold; llm-arithmetic: `depths` (2-10), `trials` of each cell (10).

    Raises:
        ConfigError: no such format or file, nothing in the files can be used, two would be the same run, or
            the folder holds a sweep or another run of that name.
        StoreError: the folder cannot be written.
    """
    chosen = format_named(form)
    read = chosen.reader(plan)
    paths = _paths([Path(file) for file in files], chosen.ending)
    _check(paths, chosen.ending)
    _refuse_nothing(paths, read)
    folder = Path(out).resolve()
    with Store.open(folder, sweep=_sweep(folder), imported=True) as store:
        _refuse_others(paths, chosen.ending, read, store)
        runs = tuple(_kept(read(path), store, form) for path in paths)
    return Imported(out=Path(out), runs=runs)


def _paths(given: Sequence[Path], ending: str) -> list[Path]:
    """Return the files that are meant: of a folder those with the format's ending, by name."""
    found: list[Path] = []
    for path in given:
        if not isdir(path):
            found.append(path)
            continue
        within = sorted(one for one in path.glob(f"*{ending}") if not one.name.startswith("."))
        if not within:
            raise ConfigError(f"{path}: no {ending} files in this folder")
        found += within
    return found


def _check(paths: Sequence[Path], ending: str) -> None:
    """Refuse files that cannot be read, or that would not be runs of their own."""
    runs: dict[str, Path] = {}
    for path in paths:
        try:
            with path.open("rb"):
                run = _run(path, ending)
                encoded = quote(run, safe="")
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}; name a file that can be read") from None
        except UnicodeEncodeError:
            raise ConfigError(f"{str(path)!r}: the name is not UTF-8 text; rename the file") from None
        if not 1 <= len(encoded) <= LONGEST_RUN:
            raise ConfigError(
                f"{path}: the name of the run would be empty or longer than {LONGEST_RUN} characters "
                "once percent-encoded; rename the file"
            )
        if run in runs:
            raise ConfigError(
                f"{runs[run]} and {path} would both be run {run!r}; rename one, or import it elsewhere"
            )
        runs[run] = path


def _run(path: Path, ending: str) -> str:
    return path.name.removesuffix(ending)


def _refuse_nothing(paths: Sequence[Path], read: Read) -> None:
    left_out: list[str] = []
    for path in paths:
        recording = read(path)
        if recording.trials:
            return
        left_out += recording.left_out
    first = f": {left_out[0]}" if left_out else ": the files hold no trials"
    raise ConfigError(f"nothing can be imported{first}")


def _sweep(folder: Path) -> str:
    """Return the name of the folder, or the one it had when the first files were imported."""
    return str(read_manifest(folder)["sweep"]) if is_results_folder(folder) else folder.name


def _refuse_others(paths: Sequence[Path], ending: str, read: Read, store: Store) -> None:
    """Refuse a file that is not the one which was imported under its name before, nor has grown from it."""
    there = defaultdict[str, set[str]](set)
    for row in read_trials(store.folder, ["run", "trial_id"]).to_pylist():
        there[row["run"]].add(row["trial_id"])
    for path in (path for path in paths if _run(path, ending) in there):
        recording = read(path)
        found = {trial.trial_id for trial in trials_of(recording, sweep=store.manifest["sweep"])}
        if lost := len(there[recording.run] - found):
            raise ConfigError(
                f"{path}: {store.folder} holds run {recording.run!r} with {lost:,} trials that are not in "
                "this file: rename it, import it into another folder, or give the same plan as before"
            )


def _kept(recording: Recording, store: Store, form: str) -> ImportedRun:
    if not recording.trials:
        return ImportedRun(run=recording.run, left_out=recording.left_out)
    imported = keep(recording, store)
    _describe(recording, store, form)
    return imported


def _describe(recording: Recording, store: Store, form: str) -> None:
    run = {
        "file": recording.path.name,
        "format": form,
        "left_out": len(recording.left_out),
        "planned": recording.planned,
    }
    simulated = any(one.model.simulated for one in recording.trials)
    store.write_manifest(
        {
            "asyncbench": version("asyncbench"),
            "simulated": simulated or bool(store.manifest.get("simulated")),
            "runs": store.manifest.get("runs", {}) | {recording.run: run},
        }
    )
