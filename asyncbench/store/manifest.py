"""The manifest, `manifest.json`: the owner of a results folder, its version and its contents."""

import os
import platform
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import orjson

from asyncbench.errors import ConfigError, StoreError
from asyncbench.files import OWNERS, local, make_folder, quoted, storing, write_durably
from asyncbench.store.lock import LOCK
from asyncbench.store.parts import TEMPORARY
from asyncbench.store.schema import SCHEMA_VERSION, SCHEMAS, check_version
from asyncbench.tables.numbers import first_of
from asyncbench.tables.report import SIMULATED

MANIFEST = "manifest.json"
JOURNAL = "journal"
SWEEP_FILE = "sweep.yaml"  # of a results folder: the sweep as it was run
HOLDS = "holds"  # the key of what the folder holds: see `holdings`
WORKERS = "workers"  # in a results folder: those of the workers of its run, until they are joined
WORKER = "worker"  # the key of who writes such a folder, and where
DIGEST = "digest"  # the key of the digest of all else in it
RECORDED = "recorded"  # the key of whose recorded answers were replayed: see `joined_recordings`
LOADS = "loads"  # the key of the settings of loads, by alias, each `since` a time (UTC)
IMPORTED = "imported"  # the key of a folder that holds what others recorded
JOINED = "joined"  # in what it holds, the key of the folders of workers whose rows it holds
Manifest = dict[str, Any]  # Any: JSON, which its readers know

_WRITTEN: dict[Path, bytes] = {}  # by folder: what this process wrote there last
_CHANGING = threading.RLock()  # a run describes itself while another of its threads makes parts

MOST_NAMED: Final = 20  # results folders, in a message
DEEPEST: Final = 3  # folders between one that is named and a sweep below it
_REFUSALS = {  # by whether it is an import that is refused
    False: "holds imported results, and a sweep cannot add to them. Set `out:` to a new or empty folder.",
    True: "holds the results of a sweep, and nothing can be imported there. Name a new or empty folder.",
}


def is_results_folder(folder: Path) -> bool:
    """Return whether a folder, which may be missing, holds results.

    Raises:
        ConfigError: it may not be looked into.
    """
    try:
        return (folder / MANIFEST).exists()
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be opened: {error.strerror}. Name another folder, or get permission to read it."
        ) from None


def workers_folder(folder: Path) -> Path:
    """Return where the workers of a folder's run write: each to a results folder of its own."""
    return folder / WORKERS


def worker_folders(folder: Path) -> list[Path]:
    """Return the folders of workers, without those whose rows the folder itself holds by now.

    Raises:
        ConfigError: the folder is not a results folder, or may not be looked into.
        StoreError: its manifest cannot be read, or that of a worker with rows is missing.
    """
    try:
        names = sorted(os.listdir(workers_folder(folder)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be opened: {error.strerror}. Get permission to read it."
        ) from None
    joined = joined_workers(folder) if names else ()
    shown = (name for name in names if name not in joined and not name.startswith("."))  # or a draft
    paths = [workers_folder(folder) / name for name in shown]
    torn = [path for path in paths if not is_results_folder(path) and _has_rows(path)]
    joined = joined_workers(folder) if torn else ()  # meanwhile: then it is being removed
    if lacking := [path for path in torn if path.name not in joined]:
        raise StoreError(
            f"{lacking[0]} has no {MANIFEST}, but rows. Restore the file from a backup. Or move this folder "
            "elsewhere: then its trials are asked, and paid, again."
        )
    return [path for path in paths if is_results_folder(path)]


def is_partial(worker: Path) -> bool:
    """Return whether another machine has more of a worker's folder than this one."""
    return _partial(worker).exists()


def set_partial(worker: Path, *, partial: bool) -> None:
    """Write down, beside a worker's folder, that it is not to be joined yet; or that it may be."""
    mark = _partial(worker)
    with storing(mark):
        if partial:
            make_folder(mark.parent, mode=OWNERS)
            mark.touch()
        else:
            mark.unlink(missing_ok=True)


def _partial(worker: Path) -> Path:
    return worker.with_name(f".{worker.name}.partial")


def joined_workers(folder: Path) -> frozenset[str]:
    """Return the names of the folders of workers whose rows a folder holds; raises as `read_manifest`."""
    return frozenset(read_manifest(folder).get(HOLDS, {}).get(JOINED, ()))


def worker_hosts(folder: Path) -> dict[str, str]:
    """Return on which machine each worker of a cluster was, by name; raises as `read_manifest` does."""
    here = (read_manifest(path).get(WORKER, {}) for path in worker_folders(folder))
    joined: dict[str, str] = read_manifest(folder).get(WORKERS, {})
    return joined | {worker["name"]: worker["host"] for worker in here if worker}


def folders_of(folder: Path) -> list[Path]:
    """Return a results folder and those of its workers, as `worker_folders` does."""
    return [folder, *worker_folders(folder)]


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a results folder.

    Raises:
        ConfigError: this is no results folder, or a later asyncbench wrote it.
        StoreError: the manifest cannot be read.
    """
    path = folder / MANIFEST
    try:
        manifest: Manifest = orjson.loads(path.read_bytes())
    except NotADirectoryError:
        raise ConfigError(
            f"{folder} is a file, not a results folder. Name the folder that a run wrote: `out` of its sweep "
            "file, else results/NAME."
        ) from None
    except FileNotFoundError:
        raise ConfigError(_no_manifest(folder)) from None
    except (OSError, orjson.JSONDecodeError) as error:
        raise StoreError(f"{path} cannot be read: {error}. Restore it from a backup.") from error
    match manifest:
        case {"schema_version": int(version), "sweep": str()}:
            check_version(folder, version)
        case _:
            raise ConfigError(
                f"{folder} is not a results folder: another program wrote its {MANIFEST}. Name another "
                f"folder. If it is one, restore {path} from a backup."
            )
    digest = manifest.pop(DIGEST, None)
    if digest != _digest(manifest) and (digest or HOLDS in manifest):  # earlier versions wrote neither
        raise StoreError(f"{path} has changed since it was written. Restore it from a backup.")
    return manifest


def _no_manifest(folder: Path) -> str:
    """Return the sentence for a folder that has no manifest, or is not there."""
    if not folder.exists():
        beside = sweeps_below(folder.parent, deepest=0)
        names = first_of([path.name for path in beside], MOST_NAMED)
        return f"{folder} does not exist. {_NAME_ONE}{f' {folder.parent} holds {names}.' if beside else ''}"
    if _has_rows(folder):
        return f"{folder} has no {MANIFEST}, but rows. Restore {folder / MANIFEST} from a backup."
    if sweeps := sweeps_below(folder):
        names = first_of([str(sweep.relative_to(folder)) for sweep in sweeps], MOST_NAMED)
        return (
            f"{folder} is not a results folder, but holds {len(sweeps):,}: {names}. Name one of them, for "
            f"example `asyncbench view {quoted(sweeps[0])}`. `asyncbench report {quoted(folder)}` lists them."
        )
    return f"{folder} is not a results folder: it has no {MANIFEST}. {_NAME_ONE}"


_NAME_ONE = "Name the folder that a run wrote: `out` of its sweep file, else results/NAME."


def sweeps_below(folder: Path, *, deepest: int = DEEPEST) -> list[Path]:
    """Return the results folders below a folder that is none, each once however many links lead there.

    One that is damaged, or may not be read, is among them. Hidden folders and those inside results are not.

    Args:
        folder: where to look; one that lost its manifest holds those of its workers at most, which are none.
        deepest: how many folders may stand between it and a sweep.
    """
    if is_results_folder(folder) or _has_rows(folder):
        return []
    here = folder.resolve()
    return sorted(_walk(folder, deepest, {here, *here.parents}))  # a link upwards leads to nothing below


def _walk(folder: Path, deepest: int, seen: set[Path]) -> Iterator[Path]:
    try:
        folders = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except OSError:
        return
    for path in sorted(folders, key=lambda path: (path.is_symlink(), path.name)):  # a link comes last
        real = path.resolve()
        if real in seen:
            continue
        seen.add(real)
        if _is_sweep(path):
            yield path
        elif deepest:
            yield from _walk(path, deepest - 1, seen)


def _is_sweep(folder: Path) -> bool:
    """Return whether a folder holds results, damaged ones too; another program's manifest is none of ours."""
    try:
        manifest = orjson.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return _has_rows(folder)
    except (OSError, orjson.JSONDecodeError):
        return True
    return isinstance(manifest, dict) and {"schema_version", "sweep"} <= manifest.keys()


def _has_rows(folder: Path) -> bool:
    """Return whether a folder has what a run writes beside the manifest."""
    return any((folder / name).exists() for name in (JOURNAL, *SCHEMAS))


def planned(manifest: Manifest) -> dict[tuple[str, str, str], dict[str, dict[str, int]]]:
    """Return how many trials were planned: (run, model, condition) → suite → task → trials.

    A plan from before conditions were told apart (suite → task → trials) is left out, as if there were none.
    """
    return {
        (run, model, condition): suites
        for run, entry in manifest.get("runs", {}).items()
        for model, conditions in entry["planned"].items()
        for condition, suites in conditions.items()
        if all(isinstance(tasks, Mapping) for tasks in suites.values())
    }


def joined_recordings(
    sources: Iterable[tuple[Collection[str], Iterable[Mapping[str, Any]]]],
) -> list[dict[str, Any]]:  # Any: JSON of our own
    """Return the models whose recorded answers a folder holds: alias, model, first and last day.

    Such an alias is `mixed` where another source of the folder asked it without a recording.

    Args:
        sources: of each run or merged folder: the aliases asked, and the recordings among them.
    """
    by_alias: dict[str, dict[str, Any]] = {}
    asked_plainly = set[str]()
    for aliases, recordings in sources:
        recorded = {recording["alias"]: dict(recording) for recording in recordings}
        asked_plainly |= {alias for alias in aliases if recorded.get(alias, {"mixed": True}).get("mixed")}
        by_alias |= recorded
    return [
        recording | ({"mixed": True} if alias in asked_plainly else {})
        for alias, recording in by_alias.items()
    ]


def planned_trials(manifest: Manifest) -> Counter[str]:
    """Return how many trials were planned of each model; one that no run has planned is not in it."""
    trials = Counter[str]()
    for (_, model, _), suites in planned(manifest).items():
        trials[model] += sum(sum(tasks.values()) for tasks in suites.values())
    return trials


def planned_aliases(manifest: Manifest) -> set[str]:
    """Return every alias that any run of a folder has planned."""
    return {alias for run in manifest.get("runs", {}).values() for alias in run["planned"]}


def simulated_note(manifest: Manifest, vendors: Sequence[str] = ()) -> str:
    """Return a note on simulated results: no model was asked, or whose recorded answers they are.

    `vendors`: in whose names the simulator answered.
    """
    if vendors:
        return f"{SIMULATED} It answered in the name of {', '.join(vendors)} (see `base_url`)."
    recorded = manifest.get(RECORDED, [])
    if not recorded and manifest.get(IMPORTED):
        return "SIMULATED: imported replies came from simulators or mock models. No model was asked for them."
    if not recorded:
        return SIMULATED
    whole = {recording["alias"] for recording in recorded if not recording.get("mixed")}
    if planned_aliases(manifest) - whole:
        return f"{SIMULATED} Some of them are recorded answers, but not all."
    first, last = (f(recording[key] for recording in recorded) for f, key in ((min, "first"), (max, "last")))
    models = "1 model" if len(recorded) == 1 else f"{len(recorded):,} models"
    return f"RECORDED: {models} gave these answers ({first[:7]} to {last[:7]}). None is asked now."


def lost_files(manifest: Manifest) -> list[dict[str, Any]]:  # Any: JSON of our own
    """Return the entries of files that were lost, and whose loss was accepted."""
    entries: list[dict[str, Any]] = manifest.get(HOLDS, {}).get("lost", [])
    return entries


def write_manifest(folder: Path, manifest: Mapping[str, object]) -> None:
    """Write the manifest, with the digest of what it says, in one step."""
    data = stamped(manifest)
    write_durably(folder / MANIFEST, data, temporary=folder / TEMPORARY / MANIFEST)
    if folder in _WRITTEN:
        _WRITTEN[folder] = data


def know_manifest(folder: Path) -> None:
    """Remember the manifest of a folder that this process holds for writing."""
    with storing(folder / MANIFEST):
        _WRITTEN[folder] = (folder / MANIFEST).read_bytes()


def put_back_manifest(folder: Path) -> bool:
    """Write a manifest again that another program removed since this process wrote it; return whether."""
    with _CHANGING:
        if folder not in _WRITTEN or (folder / MANIFEST).exists():
            return False
        write_durably(folder / MANIFEST, _WRITTEN[folder], temporary=folder / TEMPORARY / MANIFEST)
        return True


def forget_manifest(folder: Path) -> None:
    """Keep the manifest of a folder no longer that this process lets go."""
    _WRITTEN.pop(folder, None)


def stamped(manifest: Mapping[str, object]) -> bytes:
    """Return the bytes of a manifest's file."""
    entries = {**manifest, DIGEST: _digest(manifest)}
    return orjson.dumps(entries, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _digest(manifest: Mapping[str, object]) -> str:
    return digest_of(orjson.dumps(manifest, option=orjson.OPT_SORT_KEYS))


def digest_of(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


@contextmanager
def changed_manifest(folder: Path) -> Iterator[Manifest]:
    """Yield the manifest, to be changed; it is written on the way out. The folder's lock must be held."""
    with _CHANGING:
        manifest = read_manifest(folder)
        yield manifest
        write_manifest(folder, manifest)


# ── the folder's sweep file ──────────────────────────────────────────────────────────────────


def write_sweep_file(folder: Path, text: bytes, update: Mapping[str, object]) -> None:
    """Write the folder's sweep file, and into the manifest its digest and what else is new.

    In between, the manifest names the digests of both: killed there, the folder is sound.
    """
    digest = digest_of(text)
    with changed_manifest(folder) as manifest:
        holds = manifest.setdefault(HOLDS, {})
        holds[SWEEP_FILE] = [*holds.get(SWEEP_FILE, [])[-1:], digest]
    write_durably(folder / SWEEP_FILE, text, temporary=folder / TEMPORARY / SWEEP_FILE)
    with changed_manifest(folder) as manifest:
        manifest[HOLDS][SWEEP_FILE] = [digest]
        manifest |= {key: value for key, value in update.items() if key != HOLDS}


def kept_sweep_file(folder: Path) -> Path | None:
    """Return the sweep file of a results folder, or None if it never had one.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: the manifest or the sweep file is not what was written.
    """
    path = folder / SWEEP_FILE
    digests = read_manifest(folder).get(HOLDS, {}).get(SWEEP_FILE)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if digests is None:
            return None
        raise StoreError(f"{path} is missing. {_AGAIN}") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. {_AGAIN}") from None
    if digests is not None and digest_of(data) not in digests:
        raise StoreError(f"{path} has changed since a run wrote it: it is damaged or was edited. {_AGAIN}")
    return path


_AGAIN = (
    "Restore it from a backup. Or run the sweep again from its own file, edited as you like: the run writes "
    "this copy again. If this is your only one, copy it out of the folder and run that."
)


def folder_of_sweep_file(path: Path) -> Path | None:
    """Return the results folder that a sweep file belongs or leads to, or None if there is none."""
    for file in (path, path.resolve()):
        if file.name == SWEEP_FILE and is_results_folder(file.parent):
            return file.parent
    return None


def check_sweep_file(path: Path) -> None:
    """Refuse a sweep file that lies in a results folder and is not what was written there.

    Raises:
        StoreError: it is not.
    """
    if path.name == SWEEP_FILE:
        with suppress(ConfigError):  # it lies elsewhere
            kept_sweep_file(path.parent)


def check_owner(folder: Path, *, sweep: str, imported: bool = False) -> None:
    """Refuse a folder that this sweep, or this import, may not write to; a missing or empty one is welcome.

    Raises:
        ConfigError: it holds the results of another sweep, or something that is none of ours.
    """
    if is_results_folder(local(folder)):
        manifest = read_manifest(folder)
        if manifest.get(IMPORTED, False) != imported:
            raise ConfigError(f"{folder} {_REFUSALS[imported]}")
        if (owner := manifest["sweep"]) != sweep:
            raise ConfigError(
                f"{folder} holds the results of sweep {owner!r}, not of {sweep!r}. Set another folder with "
                f"`out:`, or rename the sweep to {owner!r}."
            )
    elif folder.is_dir() and {path.name for path in folder.iterdir()} - {LOCK, TEMPORARY}:
        raise ConfigError(
            f"{folder} holds files but no {MANIFEST}, so it is not a results folder. Name a new or empty "
            f"one. If it holds results, restore {MANIFEST} from a backup."
        )


def claim_folder(folder: Path, *, sweep: str, imported: bool = False) -> Manifest:
    """Return the manifest of this sweep's folder, which it gets now if it has none."""
    check_owner(folder, sweep=sweep, imported=imported)
    if not is_results_folder(folder):
        # A worker's stands among those of workers; elsewhere the run's own may be missing.
        run_folder = folder.parent.parent
        of_worker = folder.parent.name == WORKERS and (
            is_results_folder(run_folder) or {path.name for path in run_folder.iterdir()} == {WORKERS}
        )
        if of_worker and is_results_folder(run_folder) and folder.name in joined_workers(run_folder):
            raise ConfigError(  # nobody would read what it holds
                f"{run_folder} holds what a worker wrote to {folder} before. Use a new name for it."
            )
        created_at = datetime.now(UTC).isoformat(timespec="seconds")
        manifest: Manifest = {"schema_version": SCHEMA_VERSION, "sweep": sweep, "created_at": created_at}
        manifest[HOLDS] = {"parts": {}}
        manifest |= {IMPORTED: True} if imported else {}
        manifest |= {WORKER: {"name": folder.name, "host": platform.node()}} if of_worker else {}
        write_manifest(folder, manifest)
    return read_manifest(folder)
