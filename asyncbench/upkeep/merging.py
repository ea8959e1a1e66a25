"""merge_folders(): built beside, put in place in one step; the folders that are merged stay as they are."""

import os
import shutil
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path

import yaml

from asyncbench.config.sweep import Sweep, as_mapping
from asyncbench.errors import ConfigError, StoreError
from asyncbench.files import OWNERS, local, make_folder, storing, sync_folders, sync_to_disk, write_durably
from asyncbench.lanes.batches.spending import copy_given_up, trials_out
from asyncbench.planning.budget_bounds import ASKED, named_before
from asyncbench.planning.forecast_file import FORECAST, joined_forecasts, read_forecasts
from asyncbench.store.bucket.fetching import at_hand, display_name
from asyncbench.store.catalog import read_steps
from asyncbench.store.lock import LOCK, locked
from asyncbench.store.manifest import (
    RECORDED,
    WORKERS,
    Manifest,
    claim_folder,
    folders_of,
    joined_recordings,
    planned_aliases,
    read_manifest,
    worker_hosts,
    write_sweep_file,
)
from asyncbench.store.merging import JoinedFolders, join_folders
from asyncbench.store.parts import TEMPORARY
from asyncbench.tables.report import Report
from asyncbench.upkeep.merged_sweep import Source, merged_plan, merged_sweep, sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged(Report):
    """What a merge brought together."""

    out: str
    folders: tuple[str, ...]
    joined: JoinedFolders

    def _notes(self) -> Iterator[str]:
        joined = self.joined
        yield f"{len(self.folders)} folders: {joined.trials:,} trials, {joined.attempts:,} calls"
        if joined.trials_twice or joined.attempts_twice:
            twice = f"{joined.trials_twice:,} trials were in several folders; the best answer of each is kept"
            calls = f"; {joined.attempts_twice:,} calls were, too, and count once"
            yield twice + (calls if joined.attempts_twice else "")
        if joined.damaged:
            yield f"{joined.damaged:,} damaged lines of their journals are in quarantine/"
        yield f"results in {self.out}; `asyncbench report {self.out}`"

    def _data(self) -> Mapping[str, object]:
        return {"out": self.out, "folders": self.folders, **asdict(self.joined)}


def merge_folders(folders: Iterable[PathLike[str] | str], out: PathLike[str] | str) -> Merged:
    """Merge results folders of the same sweep into a new one. You can run, report and regrade it.

        ab.merge_folders(["results/machine-a", "results/machine-b"], "results/both")

    If several folders answered the same trial, one row stays: a complete answer before a truncated one, and
    any answer before none. If two folders answered the same trial equally well, the older answer stays. All
    calls are kept and counted, each once. The merged folders do not change.

    Args:
        folders: two or more results folders. No run may be going in any of them.
        out: the folder to make.

    Returns:
        A `Merged`, with the rows of the new folder.

    Raises:
        ConfigError: The folders are not of one sweep, their problems or models differ, one has open
            batches, or `out` exists.
        ProblemSetError: A copy of a problem set is damaged.
        StoreError: A run is going in a folder, a folder cannot be read, or `out` cannot be written.
    """
    paths, place = [at_hand(folder) for folder in folders], local(out)
    _check_places(paths, place)
    for path in paths:
        read_manifest(path)  # before a lock is put into what is none of ours
    with ExitStack() as locks:
        for path in paths:
            for each in folders_of(path):
                locks.enter_context(_held_still(each))
            _refuse_open_batches(path)
        _refuse_unlike_steps(paths)
        opened = sources(paths)
        sweep = merged_sweep(opened, place)
        forecasts = joined_forecasts(map(read_forecasts, paths))
        with _built_beside(place.absolute()) as draft:
            claim_folder(draft, sweep=sweep.name)
            joined = join_folders(paths, draft)
            copy_given_up(paths, draft)
            _copy_problems(opened, draft)
            _describe(opened, sweep, read_manifest(draft), draft)
            if forecasts is not None:
                write_durably(draft / FORECAST, forecasts, temporary=draft / TEMPORARY / FORECAST)
    return Merged(out=str(out), folders=tuple(map(display_name, folders)), joined=joined)


def _check_places(folders: Sequence[Path], out: Path) -> None:
    if len({path.resolve() for path in folders}) < max(2, len(folders)):
        raise ConfigError("merge needs at least two results folders. Name each once.")
    if out.exists() or out.is_symlink():
        raise ConfigError(f"{out} exists. Name a new folder with --out.")
    for path in folders:
        if out.resolve().is_relative_to(path.resolve()):
            raise ConfigError(f"{out} is inside {path}. Name a folder outside of those to merge with --out.")


def _refuse_open_batches(folder: Path) -> None:
    """Refuse a folder with batches to collect: a merged one could not, and would ask their trials again."""
    if trials := trials_out(folder):
        raise ConfigError(
            f"{folder}: {len(trials):,} trials are in open batches, and only this folder can collect "
            f"them. Run its sweep once more, or cancel them: `asyncbench cancel {folder}`. Then merge."
        )


def _refuse_unlike_steps(folders: Iterable[Path]) -> None:
    """Refuse folders that measured a step each: their calls bear the same ids, but are not the same."""
    known = dict[tuple[str, str], tuple[object, Path]]()
    for folder in folders:
        for step in read_steps(folder, ["model", "load", "began_at"]).to_pylist():
            began_at, other = known.setdefault((step["model"], step["load"]), (step["began_at"], folder))
            if began_at != step["began_at"]:
                raise ConfigError(
                    f"{other} and {folder} have both measured {step['load']} of {step['model']}, each for "
                    "itself. Do not merge them: most reports take several folders"
                )


@contextmanager
def _held_still(folder: Path) -> Iterator[None]:
    """Keep writers out of a folder while it is read; where nothing can be written there are none."""
    if not os.access(folder, os.W_OK):
        yield
        return
    there_before = (folder / LOCK).exists()
    with locked(folder):
        try:
            yield
        finally:
            if not there_before:
                (folder / LOCK).unlink(missing_ok=True)


@contextmanager
def _built_beside(out: Path) -> Iterator[Path]:
    """Yield a new folder that gets its name once it is complete and on the disk.

    Raises:
        StoreError: another merge is making it, or the disk does not take it.
    """
    draft = out.with_name(f".{out.name}.merging")
    with storing(draft):
        make_folder(draft, mode=OWNERS)
    with locked(draft):
        for path in draft.iterdir():  # what a dead process left there
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:
                path.unlink()
        try:
            yield draft
            shutil.rmtree(draft / TEMPORARY, ignore_errors=True)
            with storing(out):
                sync_folders(draft)
                if out.exists():
                    raise StoreError(
                        f"{out} was made by another program meanwhile. Merge into another folder."
                    )
                draft.rename(out)
                sync_to_disk(out.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def _copy_problems(folders: Sequence[Source], draft: Path) -> None:
    """Copy every problem set; of two states of one, the one written last still is."""
    folder = draft / "problems"
    with storing(folder):
        make_folder(folder)
        for path in (
            path for source in folders for path in sorted((source.folder / "problems").glob("*.parquet"))
        ):
            copy = folder / path.name
            if not copy.exists():  # the name tells its content
                shutil.copyfile(path, copy)  # its rights follow the umask
                os.utime(copy, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
                sync_to_disk(copy)


def _describe(folders: Sequence[Source], sweep: Sweep, manifest: Manifest, draft: Path) -> None:
    """Write the sweep and the manifest of the merged folder."""
    manifests = [source.manifest for source in folders]
    names_by_alias: dict[str, list[str]] = {}
    for source in folders:
        for alias, names in named_before(source.folder, source.manifest).items():
            names_by_alias[alias] = list(dict.fromkeys([*names_by_alias.get(alias, []), *names]))
    sets = {name: each for one in manifests for name, each in one.get("problem_sets", {}).items()}
    write_sweep_file(
        draft,
        yaml.safe_dump(as_mapping(sweep), sort_keys=False).encode(),
        dict(ChainMap(*manifests))  # what the folder named first says, and the others beside
        | manifest
        | {
            "created_at": min(str(one.get("created_at", manifest["created_at"])) for one in manifests),
            "asyncbench": version("asyncbench"),
            "simulated": any(one.get("simulated") for one in manifests),
            "runs": {sweep.name: {"planned": merged_plan(folders, sweep)}},
            "problem_sets": dict(sorted(sets.items())),
            ASKED: names_by_alias,
            RECORDED: joined_recordings((planned_aliases(one), one.get(RECORDED, [])) for one in manifests),
            "merged": [source.folder.resolve().name for source in folders],
        }
        | ({WORKERS: hosts} if (hosts := _hosts(folders)) else {}),
    )


def _hosts(folders: Sequence[Source]) -> dict[str, str]:
    """Return on which machines workers were, by name; one name may stand for a worker of each folder."""
    hosts: dict[str, set[str]] = {}
    for name, host in (item for source in folders for item in worker_hosts(source.folder).items()):
        hosts.setdefault(name, set()).add(host)
    return {name: ", ".join(sorted(several)) for name, several in hosts.items()}
