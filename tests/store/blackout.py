"""Works that the power may fail in, and what each of them believes to be safe.

    python -m tests.store.blackout ROOT WORK…

Each work has a folder of its own in ROOT. A line of JSON goes to ROOT/told before an event is written
down, and another after the store has called it durable: the record of all changes holds both in their order.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from asyncbench.records import Ended, Event, LaneMinute, Result, Sent, Skipped, StepResult
from asyncbench.store import folder as of_folder, generation, lock, sealing as of_sealing
from asyncbench.store.folder import Store
from asyncbench.store.journal import Journal
from asyncbench.store.sealing import seal
from asyncbench.store.segment import Damage, Segment
from asyncbench.upkeep.importing import import_files
from asyncbench.upkeep.merging import merge_folders
from asyncbench.upkeep.regrading import regrade_folder
from tests.store import night
from tests.store.made import add, answered, ended, minute, model, refused, reply, result, sent, skipped, trial
from tests.upkeep.exchange import made as exchanged
from tests.upkeep.regrading import made as regraded

RESERVED_USD = 2.0  # of each call; it costs a quarter
TOLD = "told"


def tell(**said: object) -> None:
    os.write(_told, json.dumps(said).encode() + b"\n")


def said_of(event: Event) -> list[object]:
    """Return what is to be found again of an event."""
    match event:
        case Sent():
            most = event.most_usd if event.reserved_usd is None else event.reserved_usd
            return ["sent", event.trial_id, event.attempt, most]
        case Ended():
            call, answer = event.attempt, event.reply
            most = call.most_usd if call.reserved_usd is None else call.reserved_usd
            paid = most if call.cost_usd is None else call.cost_usd
            return ["ended", call.trial_id, call.attempt, call.status, paid, answer and answer.text]
        case Result():
            outcome = event.grades[0].outcome if event.reply else "failed"
            return [
                "result",
                event.trial.trial_id,
                outcome,
                event.reply and event.reply.text,
                len(event.grades),
            ]
        case Skipped():
            return ["skipped", event.trial.trial_id]
        case LaneMinute():
            return ["lane", event.lane, event.started_at]
        case StepResult():
            return ["step", event.model, event.load]


def announce() -> None:
    """Let the store tell what it is about to write, and what it has called durable."""
    append, sync, close = Journal.append, Segment.sync, Store.close
    begin_run, write_file, remove_mark = Store.begin_run, Store.write_file, lock.remove_mark
    appended = Counter[str]()

    def appending(self: Journal, event: Event) -> None:
        segment = str(self.segment.path)
        tell(kept=said_of(event), segment=segment)
        append(self, event)
        appended[segment] += 1

    def syncing(self: Segment) -> None:
        upto = appended[str(self.path)]
        sync(self)
        tell(durable=str(self.path), upto=upto)

    def sealing(segment: Path, folder: Path) -> list[Damage]:
        damaged = seal(segment, folder)
        tell(durable=str(segment), upto=appended[str(segment)])
        return damaged

    def closing(self: Store) -> None:
        close(self)
        tell(closed=str(self.folder))

    def beginning(self: Store) -> None:
        tell(changing=str(self.folder))
        begin_run(self)
        tell(running=str(self.folder))

    def taking_away(folder: Path) -> None:
        tell(changing=str(folder))
        remove_mark(folder)

    def writing(self: Store, name: str, data: bytes) -> None:
        tell(writing=str(self.folder / name), digest=sha256(data).hexdigest())
        write_file(self, name, data)
        tell(written=str(self.folder / name))

    for place, name, telling in (
        (Journal, "append", appending),
        (Segment, "sync", syncing),
        (of_sealing, "seal", sealing),
        (of_folder, "remove_mark", taking_away),
        (Store, "close", closing),
        (Store, "begin_run", beginning),
        (Store, "write_file", writing),
    ):
        setattr(place, name, telling)


# ── works ────────────────────────────────────────────────────────────────────────────────────


def evening(folder: Path) -> None:
    """A run from its first step to its last, with three segments."""
    with Store.open(folder, sweep="night") as store:
        store.begin_run()
        store.write_file("sweep.yaml", b"name: night\n" * 100)
        store.write_manifest({"runs": {"night": {"planned": {}}}, "filler": "x" * 700})
        keep(store, *refused(0), *answered(1), minute(), skipped(2), skipped(8))
        with moved_on(store):
            keep(store, *answered(3), *answered(4, alias="large"), sent(trial(5)), ended(trial(5), reply(5)))
            keep(store, sent(trial(6)), sent(trial(7)))
        keep(store, result(trial(5), reply(5)), ended(trial(6), reply(6)), *answered(2), *refused(9))
        store.journal.segment.sync()
        store.write_file("sweep.yaml", b"name: night\n" * 90)
        with moved_on(store):
            keep(store, *answered(10), skipped(11), ended(trial(7), None, cost_usd=0.0))
        keep(store, *(event for n in range(12, 16) for event in answered(n)))
        store.journal.segment.sync()
        keep(store, sent(trial(20)), sent(trial(21)), ended(trial(21), reply(21)), *answered(22))


def again(folder: Path) -> None:
    """A failed trial is asked again, one that was skipped is asked, under another alias."""
    evening(folder)
    with Store.open(folder, sweep="night", again=night.AGAIN) as store:
        store.begin_run()
        keep(store, *answered(0, attempt=2), *answered(11, alias="large"), *answered(9, attempt=2))
        store.journal.segment.sync()
        store.write_manifest({"filler": "y" * 900})


def compaction(folder: Path) -> None:
    """Parts of three nights become one of each partition."""
    for n in range(3):
        add(folder, *answered(2 * n), *answered(2 * n + 1, alias="large"))
    with Store.reopen(folder) as store:
        store.compact(all_tables=True)
    add(folder, *answered(7))


def compaction_by_renames(folder: Path) -> None:
    """The same on a system that cannot exchange two folders."""
    able, generation.exchanged = generation.exchanged, lambda first, second: False  # noqa: ARG005  # as it is called
    try:
        compaction(folder)
    finally:
        generation.exchanged = able


def regrading(folder: Path) -> None:
    """Every reply is graded again."""
    tell(outcomes=["no_answer", "correct"])
    regraded.fill(folder, regraded.sums(1, 2, 3), regraded.right, aliases=("small", "large"))
    (problems,) = (folder / "problems").iterdir()
    tell(writing=str(problems), digest=sha256(problems.read_bytes()).hexdigest())
    tell(written=str(problems))
    regrade_folder(folder, write=True)
    tell(outcomes=["correct"])


def merging(folder: Path) -> None:
    """Two folders become one."""
    for name, first in (("one", 0), ("other", 3)):
        with Store.open(folder / name, sweep="night") as store:
            store.write_file("sweep.yaml", SWEEP)
            keep(store, *answered(first), *answered(2), *refused(first + 1))
            keep(store, sent(trial(first + 20)), ended(trial(first + 20), reply(first + 20)))
    merge_folders([folder / "one", folder / "other"], folder / "out")
    tell(merged=str(folder / "out"))


def importing(folder: Path) -> None:
    """What others recorded is taken in."""
    lines = [exchanged.trial(operands=[12, n], correct=12 + n, raw_response=str(12 + n)) for n in range(20)]
    for name in ("gpt-x", "gpt-y"):
        import_files("llm-arithmetic", [exchanged.jsonl(folder.parents[1] / f"{name}.jsonl", *lines)], folder)


def recovering(folder: Path) -> None:
    """What a crash left is taken up, and a little is asked."""
    with Store.open(folder, sweep="night", again=night.AGAIN) as store:
        store.begin_run()
        keep(store, *answered(30), *answered(31, alias="large"))
        store.journal.segment.sync()
        keep(store, *answered(32))


def keep(store: Store, *events: Event) -> None:
    for event in events:
        if isinstance(event, Sent):
            event = replace(event, reserved_usd=RESERVED_USD)
        elif isinstance(event, Ended):
            event = replace(event, attempt=replace(event.attempt, reserved_usd=RESERVED_USD))
        store.keep(event)


@contextmanager
def moved_on(store: Store) -> Iterator[None]:
    """Begin the next segment; make parts of the one before once this one holds something."""
    store.journal.rotate()
    yield
    store.journal.seal()


SWEEP = f"""\
name: night
problems: [data/nupa.parquet]
models: [{{model: openai/{model().model_id}, alias: small}}]
""".encode()
WORKS: dict[str, Callable[[Path], None]] = {
    work.__name__: work
    for work in (again, compaction, compaction_by_renames, regrading, merging, importing, evening, recovering)
}


if __name__ == "__main__":
    _root = Path(sys.argv[1])
    _told = os.open(_root / TOLD, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    announce()
    for _word in sys.argv[2:]:  # the work, and its folder if that has another name
        _work, _, _name = _word.partition(":")
        tell(work=_name or _work)
        WORKS[_work](_root / (_name or _work))
