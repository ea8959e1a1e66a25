"""What a folder must hold after a power failure: all that was called durable, nothing that nobody wrote."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from asyncbench.pricing import picodollars
from asyncbench.store.budget_state import spending_of
from asyncbench.store.folder import Store
from asyncbench.store.lock import read_mark
from asyncbench.store.manifest import IMPORTED, is_results_folder, read_manifest
from asyncbench.store.reading import take_snapshot
from asyncbench.store.verify import verify_folder

Call = tuple[str, int]  # trial and attempt
OUT = Path("out")  # of a merge
PATHS = frozenset({"segment", "durable", "closed", "writing", "written", "running", "changing", "merged"})


@dataclass(slots=True)
class Written:
    """An event that was about to be written, as `blackout.said_of` tells it."""

    said: Sequence[Any]  # Any: JSON of our own
    segment: Path
    durable: bool = False


@dataclass(slots=True)
class Told:
    """What a work has told up to a moment, of each of its results folders; by paths relative to its own."""

    events: dict[Path, list[Written]] = field(default_factory=lambda: defaultdict(list))
    files: dict[Path, list[str]] = field(default_factory=lambda: defaultdict(list))  # digests of all states
    sure_files: dict[Path, int] = field(default_factory=dict)  # from which state on
    running: dict[Path, bool | None] = field(default_factory=dict)  # None: either
    outcomes: list[str] = field(default_factory=list)  # of every trial, once it is graded anew
    merged: bool = False

    def hear(self, line: Mapping[str, Any], place: Path) -> None:
        relative: dict[str, Any] = {
            key: Path(said).relative_to(place) if key in PATHS else said for key, said in line.items()
        }
        match relative:
            case {"kept": said, "segment": Path() as segment}:
                self.events[segment.parents[1]].append(Written(said, segment))
            case {"durable": Path() as segment, "upto": upto}:
                here = [
                    written
                    for written in self.events.get(segment.parents[1], ())
                    if written.segment == segment
                ]
                for written in here[:upto]:
                    written.durable = True
            case {"closed": folder}:
                for written in self.events.get(folder, ()):
                    written.durable = True
                if folder in self.running:
                    self.running[folder] = False
            case {"writing": path, "digest": digest}:
                self.files[path].append(digest)
            case {"written": path}:
                self.sure_files[path] = len(self.files[path]) - 1
            case {"running": folder}:
                self.running[folder] = True
            case {"changing": folder}:
                self.running[folder] = None
            case {"outcomes": outcomes}:
                self.outcomes = outcomes
            case {"merged": _}:
                self.merged = True


def broken(told: Told, found: Path) -> Iterator[str]:
    """Yield what does not hold in `found`, what is left of a work's folder; it is opened on the way."""
    for name, events in list(told.events.items()):
        certain = any(written.durable for written in events) or name in told.running
        yield from _folder(told, name, events, found, certain=certain)
    if OUT.name in os.listdir(found) or told.merged:  # it is there whole, or not at all
        yield from _folder(told, OUT, _together(told), found, certain=True)


def _folder(
    told: Told, name: Path, events: Sequence[Written], found: Path, *, certain: bool
) -> Iterator[str]:
    folder = found / name
    for path, digests in told.files.items():
        if path.is_relative_to(name):
            yield from _file(found / path, digests, told.sure_files.get(path, -1))
    if certain or is_results_folder(folder):
        yield from _rows(folder, events, told.outcomes, opened=False)
    if told.running.get(name) not in {None, read_mark(folder) is not None}:
        yield f"{name}: .running is wrong"
    yield from _opened(folder, events, told.outcomes)


def _together(told: Told) -> list[Written]:
    """Return the events of all folders that are merged."""
    return [Written(one.said, one.segment, durable=True) for events in told.events.values() for one in events]


def _file(path: Path, digests: Sequence[str], sure: int) -> Iterator[str]:
    there = sha256(path.read_bytes()).hexdigest() if path.exists() else None
    if there not in [*digests[max(0, sure) :], *([None] if sure < 0 else [])]:
        yield f"{path} is {'not there' if there is None else 'none that was written'}"


def _opened(folder: Path, events: Sequence[Written], outcomes: Sequence[str]) -> Iterator[str]:
    sweep, imported = "night", False
    if is_results_folder(folder):
        manifest = read_manifest(folder)
        sweep, imported = manifest["sweep"], manifest.get(IMPORTED, False)
    with Store.open(folder, sweep=sweep, imported=imported) as store:
        replies = {one: history.ended for one, history in store.histories.items()}
    yield from _rows(folder, events, outcomes, opened=True)
    closed = {one.said[1] for one in events if one.said[0] == "result"}
    for one in events:
        match one.said:
            case ["ended", trial_id, _, _, _, str(text)] if one.durable and trial_id not in closed:
                ended = replies.get(trial_id)
                if ended is None or ended.reply is None or ended.reply.text != text:
                    yield f"the reply to {trial_id} is lost"
    if not imported:  # that is others' money
        yield from _money(folder, events)
    if read_mark(folder) is None and (folder / ".tmp").exists():
        yield f"{folder}/.tmp is left"
    yield from (f"{one.place}: {one.what}" for one in verify_folder(folder).findings if not one.known)


def _rows(folder: Path, events: Sequence[Written], outcomes: Sequence[str], *, opened: bool) -> Iterator[str]:
    seen = take_snapshot(folder)
    trials = seen.read("trials", ["trial_id", "outcome", "reply_text"]).to_pylist()
    yield from _twice("trials", (row["trial_id"] for row in trials))
    answers = {row["trial_id"]: (row["outcome"], row["reply_text"]) for row in trials}
    may, must = _allowed(
        ((one.said[1], (one.said[2], one.said[3])), one.durable) for one in events if one.said[0] == "result"
    )
    if outcomes:
        may = {
            key: {(outcome, text) for _, text in found for outcome in outcomes} for key, found in may.items()
        }
    yield from _compared("trials", answers, may, must)

    rows = seen.read("grades", ["trial_id", "grader"]).to_pylist()
    yield from _twice("grades", ((row["trial_id"], row["grader"]) for row in rows))
    wanted = {one.said[1]: one.said[4] for one in events if one.said[0] == "result"}
    grades = Counter(row["trial_id"] for row in rows)
    if grades != {key: wanted.get(key) for key in answers}:
        yield "grades: not those of the trials"

    rows = seen.read("attempts", ["trial_id", "attempt", "status"]).to_pylist()
    yield from _twice("attempts", ((row["trial_id"], row["attempt"]) for row in rows))
    calls = {(row["trial_id"], row["attempt"]): row["status"] for row in rows}
    may, must = _allowed(
        (((one.said[1], one.said[2]), one.said[3]), one.durable) for one in events if one.said[0] == "ended"
    )
    for one in events:
        if one.said[0] in {"sent", "ended"} and (key := (one.said[1], one.said[2])) not in must:
            may.setdefault(key, set()).add("lost")
            must |= {key} if one.durable and opened else set()
    yield from _compared("attempts", calls, may, must)

    skipped = [row["trial_id"] for row in seen.read("skipped", ["trial_id"]).to_pylist()]
    yield from _twice("skipped", skipped)
    said = {one.said[1]: one.durable for one in events if one.said[0] == "skipped"}
    if lacking := {key for key, durable in said.items() if durable} - set(skipped) - set(wanted):
        yield f"skipped: lacks {lacking}"
    if invented := set(skipped) - set(said):
        yield f"skipped: has {invented}"


def _allowed(said: Iterable[tuple[tuple[Any, Any], bool]]) -> tuple[dict[Any, set[Any]], set[Any]]:
    """Return what may stand for each key, the last durable value or a later one, and which must be there."""
    may: dict[Any, set[Any]] = {}
    must = set()
    for (key, value), durable in said:
        if durable:
            may[key] = set()
            must.add(key)
        may.setdefault(key, set()).add(value)
    return may, must


def _compared(table: str, found: Mapping[Any, Any], may: Mapping[Any, Any], must: set[Any]) -> Iterator[str]:
    for key, value in found.items():
        if value not in may.get(key, ()):
            yield f"{table}: {key} is {value}, may be {may.get(key)}"
    if lacking := must - found.keys():
        yield f"{table}: lacks {sorted(lacking)}"


def _twice(table: str, keys: Iterable[Any]) -> Iterator[str]:
    yield from (f"{table}: {key} stands {count} times" for key, count in Counter(keys).items() if count > 1)


def _money(folder: Path, events: Sequence[Written]) -> Iterator[str]:
    least: dict[Call, float] = {}
    for one in events:
        match one.said:
            case ["sent", trial_id, attempt, float(most)] if one.durable:
                least.setdefault((trial_id, attempt), most)
            case ["ended", trial_id, attempt, _, paid, _] if paid is not None:
                key = (trial_id, attempt)
                if one.durable:
                    least[key] = paid
                elif key in least:
                    least[key] = min(least[key], paid)
    charged = sum(spending_of(folder).charges("sweep", "night")[:2])
    if charged < (wanted := sum(map(picodollars, least.values()))):
        yield f"{charged} picodollars are counted, {wanted} were spent or set aside"
