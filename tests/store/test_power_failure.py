"""When the power fails nothing that was called durable is lost, doubled or changed.

`ASYNCBENCH_SEED` sets the first seed: the same draws the same failure of the same work.
"""

import json
import os
import random
import signal
import subprocess
import sys
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from asyncbench.store.sealing import part_files
from tests.conftest import ROOT
from tests.store import power
from tests.store.blackout import TOLD
from tests.store.power import Change, Disk, changes
from tests.store.promises import Told, broken
from tests.temporary_root import folder_in_memory

pytestmark = pytest.mark.long

SEED = int(os.environ.get("ASYNCBENCH_SEED", "0"))
A_TEST = {  # draws
    "again": 3,
    "compaction": 3,
    "compaction_by_renames": 3,
    "regrading": 4,
    "merging": 3,
    "importing": 4,
}
SOAK = 130  # times as many


@dataclass(frozen=True, slots=True)
class Recording:
    """What a work did to its folder, and what it told meanwhile."""

    place: Path
    disk: Disk
    told: Told
    said: list[Change | dict[str, object]]

    def moments(self, seeds: Iterable[int]) -> Iterator[tuple[int, random.Random, Disk, Told]]:
        """Yield the moment of each seed, the earliest first; once."""
        drawn = [(self._moment(rng), seed, rng) for seed in seeds for rng in [random.Random(seed)]]
        at = 0
        for moment, seed, rng in sorted(drawn, key=lambda one: one[:2]):
            for change in self.said[at:moment]:
                self.follow(change)
            at = moment
            yield seed, rng, self.disk, self.told

    def follow(self, change: Change | dict[str, object]) -> None:
        if isinstance(change, dict):
            self.told.hear(change, self.place)
        else:
            self.disk.do(change)

    def _moment(self, rng: random.Random) -> int:
        """Return when the power fails: after any change, or soon after one of a kind that may be rare."""
        if rng.random() < 0.5:
            return rng.randrange(len(self.said) + 1)
        kinds: dict[str, list[int]] = defaultdict(list)
        for at, change in enumerate(self.said):
            kinds[_kind(change)].append(at)
        return min(len(self.said), rng.choice(kinds[rng.choice(sorted(kinds))]) + rng.randrange(1, 6))


def _kind(change: Change | dict[str, object]) -> str:
    if isinstance(change, dict):
        return min(change)
    return change.what if change.what in "wta" else change.what + Path(os.fsdecode(change.first)).suffix


def record(
    tap: Path, root: Path, *works: str, kill_at: int = 0, before: Mapping[str, Told] | None = None
) -> dict[str, Recording]:
    """Let works run in a process of their own and return all that they did.

    Args:
        tap: the library that writes it down.
        root: where each work has a folder.
        works: their names, and that of the folder if it has another: `recovering:evening`.
        kill_at: the change before which the process is killed; 0: none.
        before: what was told of folders that are there already.
    """
    log, names = root.with_suffix(".log"), [work.rpartition(":")[2] for work in works]
    for name in names:
        (root / name).mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    found = {
        name: Recording(root / name, Disk.of(root / name), (before or {}).get(name, Told()), [])
        for name in names
    }
    tapped = {"LD_PRELOAD": str(tap), "TAP_ROOT": str(root), "TAP_LOG": str(log), "TAP_DIE_AT": str(kill_at)}
    words = [sys.executable, "-m", "tests.store.blackout", str(root), *works]
    ended = subprocess.run(words, check=False, env=os.environ | tapped, cwd=ROOT)
    assert ended.returncode == (-signal.SIGKILL if kill_at else 0)
    tells, said = -1, list[Change | dict[str, object]]()
    for change in changes(log):
        if change.what == "o" and change.first == os.fsencode(root / TOLD):
            tells = change.one
        elif change.what == "w" and change.one == tells:
            line = json.loads(change.first)
            said = found[line["work"]].said if "work" in line else said
            said += [] if "work" in line else [line]
        else:
            said.append(change)
    return found


def hunt(recording: Recording, seeds: Iterable[int], within: Path) -> Iterator[str]:
    """Yield what is broken by the power failure of each seed."""
    for seed, rng, disk, told in recording.moments(seeds):
        found = complaints(told, disk, rng, within)
        yield from (f"{recording.place.name}, seed {seed}: {line}" for line in found)


def complaints(told: Told, disk: Disk, rng: random.Random, within: Path) -> list[str]:
    """Let the power fail now, and return what is broken."""
    with TemporaryDirectory(dir=within) as place:
        disk.draw(rng, found := Path(place, "disk"))
        try:
            return list(broken(told, found))
        except Exception:  # whatever it is, it is told with its seed
            return [traceback.format_exc(limit=-4)]


def twice(tap: Path, recording: Recording, root: Path, *, firsts: range, seconds: range) -> list[str]:
    """Let the power fail in the recoveries from some power failures."""
    before = dict[str, Told]()
    root.mkdir()
    for seed, rng, disk, told in recording.moments(firsts):
        if told.events:
            disk.draw(rng, root / str(seed))
            before[str(seed)] = deepcopy(told)
    recordings = record(tap, root, *(f"recovering:{name}" for name in before), before=before)
    return [line for again in recordings.values() for line in hunt(again, seconds, root)]


def killed(tap: Path, root: Path, at: int, seeds: range, work: str) -> Iterator[str]:
    """Let the power fail while a run is taken up that was killed after so many changes."""
    first = record(tap, root, work, kill_at=at)[work]
    second = record(tap, root, f"recovering:{work}")[work]
    for change in first.said:
        first.follow(change)
    yield from hunt(replace(second, disk=first.disk, told=first.told), seeds, root)


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    """A folder where nobody waits for a disk."""
    with folder_in_memory() as folder:
        yield folder


@pytest.fixture(scope="module")
def tap(memory: Path) -> Path:
    return power.tapped(memory)


@pytest.fixture(scope="module")
def recorded(tap: Path, memory: Path) -> dict[str, Recording]:
    return record(tap, memory / "works", *A_TEST)


@pytest.fixture
def recordings(recorded: dict[str, Recording]) -> dict[str, Recording]:
    """What each work did; a test that lets time go by does so for itself."""
    return deepcopy(recorded)


@pytest.fixture
def root(memory: Path, tmp_path: Path) -> Path:
    return memory / tmp_path.name


def after(recording: Recording, what: str) -> list[int]:
    """Return the numbers of those changes of a kind that have to do with whole folders."""
    changes = [(at, one) for at, one in enumerate(recording.said) if not isinstance(one, dict)]
    return [at + 1 for at, one in changes if one.what == what and not Path(os.fsdecode(one.first)).suffix]


@pytest.mark.long
def test_the_record_is_of_all_that_was_done(recordings):
    for recording in recordings.values():
        for change in recording.said:
            recording.follow(change)
        there = {path.relative_to(recording.place): path for path in recording.place.rglob("*")}
        bytes_of = {str(name): path.read_bytes() if path.is_file() else None for name, path in there.items()}
        assert recording.said
        assert recording.disk.tree() == bytes_of
    assert recordings


@pytest.mark.long
def test_what_was_durable_is_there_once_and_nothing_else_is(recordings, memory):
    seeds = {work: range(SEED, SEED + draws) for work, draws in A_TEST.items()}
    found = [line for work in A_TEST for line in hunt(recordings[work], seeds[work], memory)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("work", ["again", "compaction", "regrading", "merging"])
def test_without_fsync_it_would_not_be(recordings, memory, work):
    """The harness can fail: the record of a store that waits for no disk breaks its promises."""
    kept = [change for change in recordings[work].said if isinstance(change, dict) or change.what != "s"]
    assert any(hunt(replace(recordings[work], said=kept), range(10), memory))


@pytest.mark.long
def test_so_it_is_when_the_power_fails_in_the_recovery_too(tap, recordings, root):
    found = twice(tap, recordings["again"], root, firsts=range(SEED, SEED + 3), seconds=range(SEED, SEED + 2))
    assert not found, "\n".join(found)


def tables_stand(disk: Disk, root: Path) -> bool:
    """Return whether each table has parts wherever the power fails now, in twenty draws."""
    for seed in range(20):
        with TemporaryDirectory(dir=root) as place:
            disk.draw(random.Random(seed), found := Path(place, "disk"))
            if not all(part_files(found, name) for name in ("trials", "grades", "attempts")):
                return False
    return True


@pytest.mark.long
def test_a_table_between_two_names_is_under_one_of_them(recordings, memory):
    recording, moved = recordings["compaction_by_renames"], after(recordings["compaction_by_renames"], "r")
    for at, change in enumerate(recording.said):
        recording.follow(change)
        assert not {at, at + 1} & set(moved) or tables_stand(recording.disk, memory), at
    assert moved


@pytest.mark.long
def test_a_table_stands_when_a_run_was_killed_before_the_disk_knew_of_the_exchange(tap, recordings, root):
    last = after(recordings["compaction"], "x")[-1] + 2  # before them stand two changes of the process itself
    first = record(tap, root, "compaction", kill_at=last)["compaction"]
    for change in first.said:
        first.follow(change)
    changes = record(tap, root, "recovering:compaction")["compaction"].said[:60]
    assert changes
    for at, change in enumerate(changes):
        first.follow(change)
        assert at % 4 or tables_stand(first.disk, root), change


@pytest.mark.long
def test_a_part_whose_last_row_left_it_is_not_back(recordings, memory):
    """The list names it no more: back on the disk, it would be a stranger's."""
    recording = recordings["again"]
    (gone,) = (at for at, one in enumerate(recording.said) if emptied(one))
    for change in recording.said[: gone + 1]:
        recording.follow(change)
    for change in recording.said[gone + 1 : gone + 24]:  # to the end of the segment, whose rows they are
        recording.follow(change)
        drawn = (complaints(recording.told, recording.disk, random.Random(seed), memory) for seed in range(3))
        assert not any(drawn), change


def emptied(change: Change | dict[str, object]) -> bool:
    return not isinstance(change, dict) and change.what == "u" and change.first.endswith(b".parquet")


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("work", A_TEST)
def test_the_power_fails_again_and_again(recordings, memory, work):
    seeds = range(SEED, SEED + SOAK * A_TEST[work])
    print(f"\n{work}: power failures of the seeds {seeds}; ASYNCBENCH_SEED sets the first", flush=True)
    found = [line for line in hunt(recordings[work], seeds, memory) if not print(line, flush=True)]
    assert not found


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_the_power_fails_in_many_recoveries(tap, recordings, root):
    print(f"\nfirst failures of the seeds {SEED} to {SEED + 99}; ASYNCBENCH_SEED sets the first", flush=True)
    found = twice(
        tap, recordings["again"], root, firsts=range(SEED, SEED + 100), seconds=range(SEED, SEED + 10)
    )
    assert not found, "\n".join(found)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("work", ["again", "compaction"])
def test_the_power_fails_after_many_kills(tap, recordings, root, work):
    rng, last = random.Random(SEED), len(recordings[work].said)
    for at in sorted(rng.sample(range(20, last), 40)):
        print(f"{work}: killed after {at} changes", flush=True)
        found = [*killed(tap, root / str(at), at, range(SEED, SEED + 10), work)]
        assert not found, "\n".join(found)
