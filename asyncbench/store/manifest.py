"""manifest.json: whose results a folder holds, and what wrote them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from asyncbench.errors import ConfigError, StoreError
from asyncbench.store.durable import write
from asyncbench.store.lock import LOCK
from asyncbench.store.schema import SCHEMA_VERSION
from asyncbench.store.staging import TEMPORARY
from asyncbench.writing import local

MANIFEST = "manifest.json"
SWEEP_FILE = "sweep.yaml"  # of a results folder: the sweep as it was run
IMPORTED = "imported"  # the key of a folder that holds what others recorded
Manifest = dict[str, Any]  # Any: JSON, which its readers know

_REFUSALS = {  # by whether it is an import that is refused
    False: "holds imported results: no sweep can add to them. Give the sweep an `out:` that is new or empty.",
    True: "holds a sweep's results: nothing can be imported into it. Name a folder that is new or empty.",
}


def is_results_folder(folder: Path) -> bool:
    """Return whether a folder, which may be missing, holds results.

    Raises:
        ConfigError: it may not be looked into.
    """
    try:
        return (folder / MANIFEST).exists()
    except OSError as error:
        raise ConfigError(f"{folder} cannot be looked into: {error.strerror}. Name another folder.") from None


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a results folder.

    Raises:
        ConfigError: this is no results folder, or a later asyncbench wrote it.
        StoreError: the manifest cannot be read.
    """
    path = folder / MANIFEST
    try:
        manifest: Manifest = orjson.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(
            f"{folder} is not a results folder: it has no {MANIFEST}. Name the folder that a run wrote."
        ) from None
    except (OSError, orjson.JSONDecodeError) as error:
        raise StoreError(f"{path} cannot be read: {error}. Put back a copy of it.") from error
    match manifest:
        case {"schema_version": int(version), "sweep": str()} if version <= SCHEMA_VERSION:
            return manifest
        case {"schema_version": int(version), "sweep": str()}:
            raise ConfigError(
                f"{folder} has schema version {version}; this asyncbench knows versions up to "
                f"{SCHEMA_VERSION}. Install a later one."
            )
    raise ConfigError(f"{folder} is not a results folder: its {MANIFEST} is not ours. Name another folder.")


def planned(manifest: Manifest) -> dict[tuple[str, str, str], dict[str, dict[str, int]]]:
    """Return how many trials were planned: (run, model, condition) → suite → task → trials.

    A plan from before conditions were told apart (suite → task → trials) is left out, as if there were none.
    """
    return {
        (run, model, condition): suites
        for run, said in manifest.get("runs", {}).items()
        for model, conditions in said["planned"].items()
        for condition, suites in conditions.items()
        if all(isinstance(tasks, Mapping) for tasks in suites.values())
    }


def write_manifest(folder: Path, manifest: Mapping[str, object]) -> None:
    """Write the manifest in one step."""
    text = orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write(folder / MANIFEST, text, temporary=folder / TEMPORARY / MANIFEST)


def check(folder: Path, *, sweep: str, imported: bool = False) -> None:
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
                f"{folder} holds the results of sweep {owner!r}, not of {sweep!r}: give {sweep!r} another "
                f"`out:`, or name it {owner!r}."
            )
    elif folder.is_dir() and {path.name for path in folder.iterdir()} - {LOCK, TEMPORARY}:
        raise ConfigError(
            f"{folder} holds files but no {MANIFEST}: it is not a results folder. Name one that is new or "
            "empty."
        )


def claim(folder: Path, *, sweep: str, imported: bool = False) -> Manifest:
    """Return the manifest of this sweep's folder, which it gets now if it has none."""
    check(folder, sweep=sweep, imported=imported)
    if not is_results_folder(folder):
        created_at = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = {"schema_version": SCHEMA_VERSION, "sweep": sweep, "created_at": created_at}
        manifest |= {IMPORTED: True} if imported else {}
        write_manifest(folder, manifest)
    return read_manifest(folder)
