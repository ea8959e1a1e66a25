"""The manifest's list of all that a results folder holds, compared with the files on the disk.

    "holds": {
      "parts":      by path: table, partition and name → rows, bytes, digest; what the calls in it cost
      "next":       the change that is being made: a table that is exchanged, or single parts, and how they
                    will be, null where they will be gone
      "journal":    the names of its segments
      "lost":       parts that are gone, and whose loss was accepted: what their calls cost counts still
    "joining":    the folders of workers whose rows are being taken over, and the tables that are so already
    "joined":     those whose rows it holds: what is left of them, here or in a bucket, counts no more
      "sweep.yaml": the digest of the sweep file; two while it is being written
    }

What changes is written into the list before the first file changes, and again after the last. So a killed
process, or a power cut, leaves files each of which is as it was or as it was to be, and any other is damage.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from asyncbench.errors import StoreError
from asyncbench.files import publish, storing
from asyncbench.store.checksums import WAYS_OUT, check, fingerprint
from asyncbench.store.manifest import (
    HOLDS,
    IMPORTED,
    JOURNAL,
    WORKER,
    WORKERS,
    Manifest,
    changed_manifest,
    is_results_folder,
    lost_files,
    read_manifest,
    worker_folders,
)
from asyncbench.store.parts import TEMPORARY, Part, PartEntry, scanned
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.segment import QUARANTINE, calls_in, damaged_lines, segments
from asyncbench.store.spending import COLUMNS, JsonObject

READY = Path(TEMPORARY, "ready")  # a table that is complete, where two folders cannot be exchanged
SHOWN = 3  # wrong files named in a message

Holds = dict[str, Any]  # Any: JSON of our own
Changes = Mapping[str, JsonObject | None]  # by path: the entry that it will have; None: it will be gone
Wrong = tuple[str, str]  # the path of a file in the folder, and what is wrong with it


def table_path(folder: Path, table: str) -> Path:
    """Return where a table stands: in its place, but for a process that died between two renames."""
    present, ready = folder / table, folder / READY / table
    return ready if not present.exists() and ready.exists() else present


def parts_on_disk(folder: Path) -> dict[str, Path]:
    """Return the parts on the disk, by their paths in the list."""
    return {
        f"{name}/{path.relative_to(top).as_posix()}": path
        for name in SCHEMAS
        for top in [table_path(folder, name)]
        for path in top.rglob("*.parquet")
    }


# ── changes to the list ──────────────────────────────────────────────────────────────────────────


@contextmanager
def declared(
    folder: Path,
    changes: Changes,
    *,
    table: str | None = None,
    joins: bool = False,
    sealed: Path | None = None,
) -> Iterator[None]:
    """Write down the changes of the body, before and after it; the folder's lock must be held.

    Args:
        folder: the results folder; one without a list stays without.
        changes: parts that are new, another, or gone.
        table: the body exchanges this table as a whole: all changes are made, or none.
        joins: the new table holds the rows of the workers that are being joined, too.
        sealed: the segment whose rows stand in parts afterwards.
    """
    if not is_results_folder(folder) or "parts" not in read_manifest(folder).get(HOLDS, {}):
        yield
        return
    with changed_manifest(folder) as manifest:
        holds = resolved(folder, manifest[HOLDS])
        holds["next"] = {"table": table, "parts": dict(changes), "joins": joins}
        holds[JOURNAL] = [path.name for path in segments(folder / JOURNAL)]
    yield
    with changed_manifest(folder) as manifest:
        holds = manifest[HOLDS]
        _apply(holds, holds.pop("next"))
        holds[JOURNAL] = [path.name for path in segments(folder / JOURNAL) if path != sealed]


def known_parts(folder: Path) -> Changes:
    """Return the list of a folder's parts; one that has no manifest has no list."""
    holds = read_manifest(folder).get(HOLDS, {}) if is_results_folder(folder) else {}
    parts: Changes = holds.get("parts", {})
    return parts


def settled_manifest(folder: Path) -> Manifest:
    """Return the manifest without a change that a dead process was making; no part may be changing."""
    manifest = read_manifest(folder)
    manifest[HOLDS] = resolved(folder, manifest.get(HOLDS, {}))
    return manifest


def list_journal(folder: Path, *, but: Path | None = None) -> None:
    """Write down which segments there are, but one; all of them must be on the disk."""
    names = [path.name for path in segments(folder / JOURNAL) if path != but]
    if read_manifest(folder)[HOLDS].get(JOURNAL, []) != names:
        with changed_manifest(folder) as manifest:
            manifest[HOLDS][JOURNAL] = names


def begin_list(folder: Path, *, accept: bool = False) -> None:
    """Write down what a folder holds that an earlier version wrote; with `accept` but for damaged parts."""
    if "parts" not in read_manifest(folder).get(HOLDS, {}):
        with changed_manifest(folder) as manifest:
            manifest.setdefault(HOLDS, {})["parts"] = list_of(folder, accept=accept)


def list_of(folder: Path, *, accept: bool = False) -> dict[str, JsonObject]:
    """Return the list of a folder's parts as they are on the disk: a few columns of all are read."""
    columns = {"trials": ["attempts"], "attempts": COLUMNS}
    entries = {}
    for key, path in parts_on_disk(folder).items():
        table = key.partition("/")[0]
        entry = PartEntry(table)
        try:
            for batch in scanned(table, [path], columns=columns.get(table, SCHEMAS[table].names[:1])):
                entry.add(pa.table(batch))
            entries[key] = entry.json_object(path)
        except StoreError:
            if not accept:
                raise
    return entries


def _apply(holds: Holds, coming: JsonObject) -> None:
    if coming.get("joins"):
        holds["joining"]["tables"].append(coming["table"])
    for key, entry in coming["parts"].items():
        if entry is None:
            holds["parts"].pop(key, None)
        else:
            holds["parts"][key] = entry


def resolved(folder: Path, holds: Holds) -> Holds:
    """Take up what became of a change that a dead process was making."""
    if coming := holds.pop("next", None):
        on_disk, changes = parts_on_disk(folder), coming["parts"]
        if coming["table"] is None:
            made = {key: new for key, new in changes.items() if not _wrong(on_disk.get(key), [new])}
            _apply(holds, {"parts": made})
        elif _exchanged(on_disk, changes):
            _apply(holds, coming)
    return holds


def _exchanged(on_disk: Mapping[str, Path], changes: Changes) -> bool:
    """Whether a table is the new one already: every part in it has a name that none had before."""
    return any(entry is not None and key in on_disk for key, entry in changes.items())


# ── tables taken over from workers ───────────────────────────────────────────────────────────────


class TakenOver(NamedTuple):
    """What a folder holds already of the folders of workers that are being joined to it."""

    workers: Sequence[str] = ()  # the names of their folders
    tables: Sequence[str] = ()  # and `journal`: answers that are not graded yet


def taken_over(holds: Holds, on_disk: Mapping[str, Path]) -> TakenOver:
    """Return it of a folder whose parts are these."""
    if (joining := holds.get("joining")) is None:
        return TakenOver()
    coming = holds.get("next", {"table": None})
    exchanged = coming["table"] is not None and _exchanged(on_disk, coming["parts"])
    now = [coming["table"]] if exchanged and coming.get("joins") else []
    return TakenOver(joining["workers"], [*joining["tables"], *now])


def manifests_of(folder: Path) -> list[Manifest]:
    """Return the manifests of a folder and of those of its workers; what it took over is listed once."""
    main = read_manifest(folder)
    holds = main.get(HOLDS, {})
    taken = taken_over(holds, parts_on_disk(folder) if "joining" in holds else {})
    manifests = [main]
    for path in worker_folders(folder):
        manifest = read_manifest(path)
        if path.name in taken.workers:
            parts = manifest[HOLDS]["parts"]
            for key in [key for key in parts if key.partition("/")[0] in taken.tables]:
                del parts[key]
        manifests.append(manifest)
    return manifests


# ── comparison with the disk ─────────────────────────────────────────────────────────────────────


def mismatches(
    folder: Path, manifest: Manifest, on_disk: Mapping[str, Path], *, calls: bool = True
) -> list[Wrong]:
    """Return the files on the disk that differ from the list: by names, sizes and digests of checksums.

    Args:
        folder: the results folder.
        manifest: its manifest; of a version that kept no list, nothing is wrong.
        on_disk: its parts, as `parts_on_disk` returns them, listed after the manifest was read.
        calls: whether as many calls must stand in `attempts` as trials count.
    """
    holds = manifest.get(HOLDS, {})
    if "parts" not in holds:
        return []
    expected = _expected(holds, on_disk)
    wrong = [
        (key, what)
        for key in sorted({*expected, *on_disk})
        if (what := _wrong(on_disk.get(key), expected.get(key, [None])))
    ]
    for name in holds.get(JOURNAL, []):
        if what := _emptied(folder / JOURNAL / name):
            wrong.append((f"{JOURNAL}/{name}", what))
    if calls and not wrong and (few := _calls_missing(folder, manifest)):
        return [("attempts", f"lacks {few:,} of the calls that trials count, so a part is missing")]
    return wrong


def _expected(holds: Holds, on_disk: Mapping[str, Path]) -> dict[str, list[JsonObject | None]]:
    now: dict[str, list[JsonObject | None]] = {key: [entry] for key, entry in holds["parts"].items()}
    coming = holds.get("next")
    if coming is None:
        return now
    changes = coming["parts"]
    if coming["table"] is None:
        return now | {key: [*now.get(key, [None]), after] for key, after in changes.items()}
    return now | {key: [after] for key, after in changes.items()} if _exchanged(on_disk, changes) else now


def _wrong(path: Path | None, states: Sequence[JsonObject | None]) -> str | None:
    entries = [state for state in states if state is not None]
    if path is None:
        return None if None in states else "is missing"
    if not entries:
        return "does not belong here: it is a copy, or from an older state of the folder. Move it away"
    with suppress(OSError):  # it cannot be read: it counts as changed
        actual = fingerprint(path)
        if any(actual == (entry["bytes"], entry["digest"]) for entry in entries):
            return None
    return "has changed since it was written: it is damaged or was replaced"


def _emptied(segment: Path) -> str | None:
    try:
        return None if segment.stat().st_size else "is empty, so it was cut short"
    except FileNotFoundError:
        return "is missing"


def _calls_missing(folder: Path, manifest: Manifest) -> int:
    """Return how many fewer calls stand in `attempts` than trials count, by the list alone; none: 0.

    Damaged lines of the journal may have held them; what was imported never had them. While a segment is
    being sealed, some of its parts stand before the others. Calls of one worker may be counted by another's
    trials, and stand in a journal.
    """
    holds = manifest[HOLDS]
    if manifest.get(IMPORTED) or WORKER in manifest or "next" in holds or worker_folders(folder):
        return 0
    entries = [*holds["parts"].items(), *((lost["path"], lost) for lost in lost_files(manifest))]
    made = sum(entry["rows"] for key, entry in entries if key.startswith("attempts/"))
    counted = sum(entry["attempts"] for key, entry in holds["parts"].items() if key.startswith("trials/"))
    few: int = counted - made
    return max(0, few and few - sum(map(calls_in, damaged_lines(folder, []))))


def refusal(folder: Path, wrong: Sequence[Wrong]) -> StoreError:
    """Return the complaint about a folder that is not what was written."""
    shown = "; ".join(f"{folder / key} {what}" for key, what in wrong[:SHOWN])
    more = f"; and {len(wrong) - SHOWN:,} more files" if len(wrong) > SHOWN else ""
    return StoreError(f"{shown}{more}. {WAYS_OUT}")


def check_holdings(folder: Path, *, calls: bool = True) -> None:
    """Refuse a folder that is not what was written, as `mismatches` has it; nobody may be writing to it."""
    if wrong := mismatches(folder, read_manifest(folder), parts_on_disk(folder), calls=calls):
        raise refusal(folder, wrong)


# ── accepted losses ──────────────────────────────────────────────────────────────────────────────


def accept_loss(folder: Path) -> list[str]:
    """Take for lost what is missing or damaged, and return it; the folder's lock must be held.

    What is there and should not be is set aside. What the calls of lost parts cost stays known. Where grades
    are lost, an empty part takes their place: `regrade` fills it.

    Raises:
        StoreError: the disk does not take it.
    """
    _refuse_links(folder)

    # Parts that are missing or damaged are lost; what is damaged, or should not be there, is set aside.
    on_disk, holds = parts_on_disk(folder), read_manifest(folder)[HOLDS]
    expected = _expected(holds, on_disk)
    lost = {}
    for key, states in expected.items():
        path, entries = on_disk.get(key), [state for state in states if state is not None]
        try:
            sound = not _wrong(path, states) and (path is None or check(path) is not None)
        except StoreError:
            sound = False
        if entries and not sound:
            lost[key] = entries[0]
    for key, path in on_disk.items():
        if key in lost or not any(expected.get(key, ())):
            with storing(path):
                publish(path, folder / QUARANTINE / key)

    # The list of parts forgets them, and keeps what their calls cost.
    gone = [name for name in holds.get(JOURNAL, []) if _emptied(folder / JOURNAL / name)]
    with changed_manifest(folder) as manifest:
        holds = manifest[HOLDS]
        for parts in (holds["parts"], holds.get("next", {}).get("parts", {})):
            for key in lost:
                parts.pop(key, None)
        holds[JOURNAL] = [name for name in holds.get(JOURNAL, []) if name not in gone]
        holds["lost"] = [
            *holds.get("lost", []),
            *({"path": key, **entry} for key, entry in lost.items()),
            *({"path": f"{JOURNAL}/{name}"} for name in gone),
        ]

    # Where grades are lost, an empty part takes their place.
    empty = [Part(folder, Path(key), may_be_empty=True) for key in lost if key.startswith("grades/")]
    for part in empty:
        part.finish()
    with declared(folder, {part.key: part.entry for part in empty}):
        for part in empty:
            part.publish()
    return [*lost, *(f"{JOURNAL}/{name}" for name in gone)]


def _refuse_links(folder: Path) -> None:
    """Refuse folders that are links: what is taken for lost, or put in its place, may not lie elsewhere."""
    for top in (folder / name for name in (*SCHEMAS, JOURNAL, QUARANTINE, TEMPORARY, WORKERS)):
        below = (Path(parent, name) for parent, names, _ in os.walk(top) for name in names)
        for path in (path for path in (top, *below) if path.is_symlink()):
            raise StoreError(
                f"{path} is a link. --accept-loss changes nothing outside of {folder}. Put the folder itself "
                "in the link's place, and run again."
            )


def accept_missing_calls(folder: Path) -> None:
    """Take for lost calls that trials count and no part holds; nobody knows what they cost."""
    if calls := _calls_missing(folder, read_manifest(folder)):
        with changed_manifest(folder) as manifest:
            manifest[HOLDS].setdefault("lost", []).append({"path": "attempts/", "rows": calls})


def note_lost_journal(folder: Path, where: str) -> None:
    """Write down that calls are lost with a journal, once: nobody knows what they cost."""
    entry = {"path": f"{JOURNAL}/{where}"}
    if entry not in lost_files(read_manifest(folder)):
        with changed_manifest(folder) as manifest:
            manifest.setdefault(HOLDS, {}).setdefault("lost", []).append(entry)


def lost_calls(manifest: Manifest) -> Iterator[tuple[str, JsonObject]]:
    """Yield of each part of `attempts` that is lost its alias, and what its calls cost."""
    for entry in lost_files(manifest):
        if "spent" in entry:
            yield _alias_in(entry["path"]), entry["spent"]


def listed_calls(manifest: Manifest) -> Iterator[tuple[str, JsonObject]]:
    """Yield of each part of `attempts`, be it there or lost, its alias and what its calls cost."""
    yield from lost_calls(manifest)
    for path, entry in manifest.get(HOLDS, {}).get("parts", {}).items():
        if "spent" in entry:
            yield _alias_in(path), entry["spent"]


def _alias_in(path: str) -> str:
    """Return the alias of the calls in a part: the value in the name of its directory."""
    return unquote(Path(path).parent.name.partition("=")[2])


def unknown_loss(manifest: Manifest) -> bool:
    """Return whether calls are lost of which no list tells what they cost: say, a segment of the journal."""
    lost = (entry for entry in lost_files(manifest) if "spent" not in entry)
    return any(entry["path"].startswith(("attempts/", f"{JOURNAL}/")) for entry in lost)
