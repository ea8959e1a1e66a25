"""Whether a results folder is what was written: every byte is read, every row counted, every id looked up."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import StoreError
from asyncbench.store.checksums import WAYS_OUT, check
from asyncbench.store.holdings import stored, wrong_with
from asyncbench.store.manifest import SWEEP_FILE, kept_sweep_file, lost_files, read_manifest
from asyncbench.store.parts import scanned
from asyncbench.store.schema import PARTITIONED_BY, SCHEMAS
from asyncbench.store.segment import QUARANTINE, quarantined
from asyncbench.store.snapshot import Snapshot, take_snapshot

_KEYS = {  # what tells the rows of a table apart
    "trials": ("trial_id",),
    "grades": ("trial_id", "grader"),
    "attempts": ("trial_id", "attempt"),
    "lanes": ("lane", "started_at"),
    "skipped": ("trial_id",),
    "steps": ("model", "load", "began_at"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFinding:
    """Something in a results folder that is not as it should be."""

    place: str  # relative to the folder
    what: str  # and what to do
    known: bool = False  # it was told and dealt with before: nothing is to be done


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a folder holds, and all that is wrong with it."""

    rows: Mapping[str, int]  # of each table, the journal's included
    parts: int
    unchecked: int  # parts of a version that wrote no checksums
    findings: Sequence[FolderFinding]

    @property
    def sound(self) -> bool:
        return all(finding.known for finding in self.findings)


def verify_folder(folder: Path | str) -> Verified:
    """Read everything that a results folder holds but its problem sets; nothing is changed.

    Raises:
        ConfigError: it is not a results folder, or a later asyncbench wrote something in it.
        StoreError: its manifest or its journal cannot be read at all.
    """
    path = Path(folder)
    seen = take_snapshot(path, whatever_is_wrong=True)
    findings = [*_journal(path, seen), *_holdings(path)]
    sound: dict[str, list[Path]] = {name: [] for name in SCHEMAS}
    unchecked = 0
    for name, parts in seen.files.items():
        for part in parts:
            try:
                unchecked += not check(part)
                _read_all(name, part)
            except (StoreError, pa.ArrowException, OSError) as error:
                what = str(error).removeprefix(f"{part} ")  # the place says which it is
                findings.append(FolderFinding(place=str(part.relative_to(path)), what=what))
            else:
                sound[name].append(part)
    usable = replace(seen, files=sound)
    lost = {file["path"].partition("/")[0] for file in lost_files(read_manifest(path))}
    counted = {name: len(usable.read(name, schema.names[:1])) for name, schema in SCHEMAS.items()}
    return Verified(
        rows=counted,
        parts=sum(map(len, seen.files.values())),
        unchecked=unchecked,
        findings=(*findings, *_ids(usable, lost)),
    )


def _journal(folder: Path, seen: Snapshot) -> Iterator[FolderFinding]:
    for line in seen.damaged:
        place = f"{line.segment.relative_to(folder)}, line {line.line}"
        what = f"{line.size:,} damaged bytes; the next run moves them to {QUARANTINE}/"
        yield FolderFinding(place=place, what=what)
    for name, lines in quarantined(folder).items():
        what = f"{lines:,} damaged lines of the journal were moved here; their content is lost"
        yield FolderFinding(place=f"{QUARANTINE}/{name}", what=what, known=True)


def _holdings(folder: Path) -> Iterator[FolderFinding]:
    manifest = read_manifest(folder)
    for key, what in wrong_with(folder, manifest, stored(folder)):
        yield FolderFinding(place=key, what=f"{what}. {WAYS_OUT}")
    for file in lost_files(manifest):
        what = "was lost, and you accepted that; the cost of its calls still counts"
        yield FolderFinding(place=file["path"], what=what, known=True)
    try:
        kept_sweep_file(folder)
    except StoreError as error:
        yield FolderFinding(place=SWEEP_FILE, what=str(error))


def _read_all(name: str, part: Path) -> None:
    """Read every value of a part, and hold its rows against the folder it stands in."""
    keys = PARTITIONED_BY[name]
    said = dict(folder.split("=", 1) for folder in part.parts[-1 - len(keys) : -1])
    for batch in scanned(name, [part]):
        batch.validate(full=True)
        for key in keys:
            if (found := pc.unique(batch[key]).to_pylist()) != [unquote(said[key])]:
                raise StoreError(
                    f"is in the wrong folder: it holds rows of {key} {', '.join(map(str, found))}"
                )


def _ids(seen: Snapshot, lost: Collection[str]) -> Iterator[FolderFinding]:
    """Yield the rows that stand twice, and those that lack their counterpart in another table.

    Args:
        seen: what is sound.
        lost: tables of which parts are lost, and known to be.
    """
    for name, keys in _KEYS.items():
        counts = seen.read(name, list(keys)).group_by(list(keys)).aggregate([([], "count_all")])
        if twice := len(counts.filter(pc.field("count_all") > 1)):
            yield FolderFinding(
                place=name, what=f"{twice:,} rows are there more than once (same {' and '.join(keys)})"
            )
    trials, grades, attempts = (
        pc.unique(seen.read(name, ["trial_id"])["trial_id"]) for name in ("trials", "grades", "attempts")
    )
    asked = seen.read("trials", ["trial_id"], pc.field("attempts") > 0)  # not taken over
    called = pc.unique(asked["trial_id"])
    for place, what, ids, others in (
        ("grades", "trials have no grades", trials, grades),
        ("trials", "trials have grades but no row", grades, trials),
        ("attempts", "trials have no call", called, attempts),
    ):
        if lacking := len(ids.filter(pc.invert(pc.is_in(ids, value_set=others)))):
            missing = f"{lacking:,} {what}, so a part is missing. Restore it from a backup"
            yield FolderFinding(place=place, what=missing, known=place in lost)
    made = seen.read("attempts", ["trial_id", "attempt"]).group_by("trial_id").aggregate([("attempt", "max")])
    joined = seen.read("trials", ["trial_id", "attempts"]).join(made, "trial_id", join_type="inner")
    if fewer := len(joined.filter(pc.field("attempt_max") < pc.field("attempts"))):
        what = f"calls of {fewer:,} trials are missing, so a part is missing. Restore it from a backup"
        yield FolderFinding(place="attempts", what=what, known="attempts" in lost)
