"""A results folder and its copy in a bucket: what goes up, what comes down, and who may write."""

import asyncio
import os
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import asyncbench as ab
from asyncbench.config.sweep import Sweep
from asyncbench.errors import ConfigError, StoreError
from asyncbench.records import Outcome
from asyncbench.run.copying import claimed_copy
from asyncbench.run.options import RunOptions
from asyncbench.run.sweep_worker import _hand_in_dead
from asyncbench.store.bucket.fetching import bring_folder, local_folder, newest_manifest, remove_folder
from asyncbench.store.bucket.objects import BucketAddress, BucketObjects
from asyncbench.store.copying import LAST_TRIES, FolderCopy
from asyncbench.store.folder import Store
from asyncbench.store.manifest import read_manifest
from tests.processes import HANG_S
from tests.store.bucket.s3_server import Answer, Request, S3Server, nothing, refusal
from tests.store.made import add, answered, keep, refused, seal, sent, trial, trial_id

URL = "s3://bucket/mine/night"
pytestmark = pytest.mark.usefixtures("s3")


def ids(folder: Path | str) -> list[str]:
    """The trials of a folder that are answered."""
    return sorted(map(str, ab.read_trials(folder, ["trial_id"])["trial_id"].to_pylist()))


def write(folder: Path, *numbers: int, copy: FolderCopy | None = None) -> None:
    """Answer some trials; with a copy, upload after each."""
    with Store.open(folder, sweep="night") as store:
        for number in numbers:
            keep(store, *answered(number))
            if copy is not None:
                seal(store)
                copy.push(store)


def finish(copy: FolderCopy, *, tries: int = LAST_TRIES) -> list[str]:
    messages: list[str] = []
    asyncio.run(copy.finish(messages.append, tries=tries))
    return messages


def copied(folder: Path, *numbers: int, **options: bool) -> None:
    """Run a sweep that answers some trials, from claim to finish."""
    copy = FolderCopy.claim(URL, folder, **options)
    write(folder, *numbers, copy=copy)
    finish(copy)


def left_open(folder: Path, *numbers: int) -> None:
    """Answer some trials, and the last of them only in the journal; then die."""
    copy = FolderCopy.claim(URL, folder)
    write(folder, *numbers[:-1], copy=copy)
    with Store.open(folder, sweep="night") as store:
        keep(store, *answered(numbers[-1]))
        seal(store)
    copy._claim.close()


def names() -> list[str]:
    return BucketObjects(BucketAddress.parse(URL)).names()


def test_what_was_copied_is_read_like_the_folder(tmp_path: Path):
    folder = tmp_path / "night"
    copied(folder, 1, 2, 3)

    assert ids(URL) == ids(folder) == [trial_id(1), trial_id(2), trial_id(3)]
    for read in (ab.read_attempts, ab.read_grades):
        assert read(URL).sort_by("trial_id").equals(read(folder).sort_by("trial_id"))


def test_readers_see_what_was_sealed_while_the_run_goes_on(tmp_path: Path):
    copy = FolderCopy.claim(URL, tmp_path / "night")
    with Store.open(tmp_path / "night", sweep="night") as store:
        for number in (1, 2):
            keep(store, *answered(number))
            seal(store)
            copy.push(store)
            assert ids(URL) == [trial_id(n) for n in range(1, number + 1)]
    finish(copy)


def test_an_object_is_written_once_and_read_whole(s3: S3Server, tmp_path: Path):
    copied(tmp_path / "night", 1, 2)

    puts = [request for request in s3.requests if request.method == "PUT"]
    assert {request.headers["if-none-match"] for request in puts} == {"*"}
    assert len({request.key for request in puts}) == len(puts)


def test_a_push_of_nothing_new_asks_the_bucket_nothing(s3: S3Server, tmp_path: Path):
    copy = FolderCopy.claim(URL, tmp_path / "night")
    with Store.open(tmp_path / "night", sweep="night") as store:
        copy.push(store)
        before = len(s3.requests)
        copy.push(store)
        assert len(s3.requests) == before
    finish(copy)


@pytest.mark.long
def test_another_machine_goes_on_with_what_the_bucket_holds(tmp_path: Path):
    copied(tmp_path / "here" / "night", 1, 2)
    copied(tmp_path / "there" / "night", 3)
    copied(tmp_path / "here" / "night", 4)  # the first folder is older by now

    assert ids(URL) == ids(tmp_path / "here" / "night") == [trial_id(n) for n in (1, 2, 3, 4)]


def test_calls_in_flight_at_the_end_are_known_to_another_machine(tmp_path: Path):
    folder = tmp_path / "here" / "night"
    copy = FolderCopy.claim(URL, folder)
    with Store.open(folder, sweep="night") as store:
        store.keep(sent(trial(1)))
    finish(copy)

    copied(tmp_path / "there" / "night")
    assert ab.read_attempts(URL, ["status"])["status"].to_pylist() == ["lost"]


def test_a_status_says_who_has_not_ended(tmp_path: Path):
    left_open(tmp_path / "night", 1, 2)

    said = ab.status(URL).as_text()
    assert f"a run on {os.uname().nodename}, begun at " in said
    assert re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC, has not ended; it uploaded this at", said)
    copied(tmp_path / "night")
    assert "has not ended" not in ab.status(URL).as_text()


@pytest.mark.long
def test_what_compaction_replaced_is_gone_from_the_bucket(tmp_path: Path):
    folder = tmp_path / "night"
    copied(folder, *range(1, 6))
    copy = FolderCopy.claim(URL, folder)
    with Store.open(folder, sweep="night") as store:
        store.compact(all_tables=True)
    finish(copy)

    assert ids(URL) == [trial_id(n) for n in range(1, 6)]
    parts = [name for name in names() if name.startswith("trials/")]
    assert len(parts) == 1


def test_an_answer_that_replaced_another_is_the_one_that_is_read(tmp_path: Path):
    folder = tmp_path / "night"
    copy = FolderCopy.claim(URL, folder)
    add(folder, *refused(1))
    finish(copy)
    copy = FolderCopy.claim(URL, folder)
    add(folder, *answered(1, attempt=2), again=[Outcome.FAILED])
    finish(copy)

    assert ab.read_trials(URL, ["outcome"])["outcome"].to_pylist() == ["correct"]
    assert len(ab.read_attempts(URL)) == 2


# ── who may write ──────────────────────────────────────────────────────────────────────────


def test_a_run_that_has_not_ended_keeps_other_machines_out(tmp_path: Path):
    left_open(tmp_path / "here" / "night", 1, 2)

    with pytest.raises(StoreError, match=r"has not ended.*here/night.*--accept-loss"):
        FolderCopy.claim(URL, tmp_path / "there" / "night")
    assert not (tmp_path / "there" / "night").exists()


def test_the_machine_of_a_run_that_died_goes_on_with_its_folder(tmp_path: Path):
    left_open(tmp_path / "night", 1, 2)
    assert ids(URL) == [trial_id(1)]

    copied(tmp_path / "night")
    assert ids(URL) == [trial_id(1), trial_id(2)]


def test_a_run_that_died_before_it_wrote_anything_is_begun_again(tmp_path: Path):
    FolderCopy.claim(URL, tmp_path / "night")._claim.close()

    copied(tmp_path / "night", 1)
    assert ids(URL) == [trial_id(1)]


def test_a_folder_that_was_deleted_before_it_ended_is_missed(tmp_path: Path):
    left_open(tmp_path / "night", 1, 2)
    shutil.rmtree(tmp_path / "night")

    with pytest.raises(StoreError, match="has not ended"):
        FolderCopy.claim(URL, tmp_path / "night")


def test_a_loss_that_is_accepted_is_written_down(tmp_path: Path):
    left_open(tmp_path / "here" / "night", 1, 2)
    copied(tmp_path / "there" / "night", 3, accept_loss=True)

    assert ids(URL) == [trial_id(1), trial_id(3)]
    (lost,) = read_manifest(local_folder(URL))["holds"]["lost"]
    assert lost["path"].startswith(f"journal/of a run on {os.uname().nodename}")


def test_answers_of_a_machine_that_was_given_up_are_not_thrown_away(tmp_path: Path):
    left_open(tmp_path / "here" / "night", 1, 2)
    copied(tmp_path / "there" / "night", 3, accept_loss=True)

    with pytest.raises(StoreError, match="asyncbench merge"):
        FolderCopy.claim(URL, tmp_path / "here" / "night", accept_loss=True)
    assert ids(tmp_path / "here" / "night") == [trial_id(1), trial_id(2)]


def test_a_writer_that_was_overtaken_stops_and_changes_nothing(tmp_path: Path):
    slow = FolderCopy.claim(URL, tmp_path / "here" / "night")
    write(tmp_path / "here" / "night", 1, copy=slow)
    copied(tmp_path / "there" / "night", 2, accept_loss=True)
    before = names()

    with pytest.raises(StoreError, match="This run stops"):
        finish(slow)
    assert ids(URL) == [trial_id(1), trial_id(2)]
    assert {*before} <= {*names()}


def test_of_two_that_begin_at_once_one_is_told_of_the_other(s3: S3Server, tmp_path: Path):
    copied(tmp_path / "first" / "night", 1)

    def overtake(_: int, request: Request) -> None:
        if request.method == "PUT":  # the claim of the second; the first comes before it
            s3.before = nothing
            FolderCopy.claim(URL, tmp_path / "there" / "night")

    s3.before = overtake
    with pytest.raises(StoreError, match=r"writes there now, in .*there/night"):
        FolderCopy.claim(URL, tmp_path / "here" / "night")


def test_a_folder_of_something_else_is_refused(tmp_path: Path):
    copied(tmp_path / "here" / "night", 1)
    write(tmp_path / "there" / "night", 2)

    with pytest.raises(ConfigError, match="is not the copy of"):
        FolderCopy.claim(URL, tmp_path / "there" / "night")
    with pytest.raises(ConfigError, match="is the copy of"):
        FolderCopy.claim(f"{URL}-other", tmp_path / "here" / "night")


def test_a_folder_that_exists_already_is_copied_to_a_new_place(tmp_path: Path):
    write(tmp_path / "night", 1, 2)
    copied(tmp_path / "night", 3)

    assert ids(URL) == [trial_id(1), trial_id(2), trial_id(3)]


def test_a_place_with_other_things_is_refused(tmp_path: Path):
    BucketObjects(BucketAddress.parse(URL)).put_new("photo.jpg", b"...")

    with pytest.raises(ConfigError, match=r"holds other things \(photo.jpg"):
        FolderCopy.claim(URL, tmp_path / "night")


def test_a_claim_that_led_to_nothing_leaves_the_bucket_free(tmp_path: Path):
    finish(FolderCopy.claim(URL, tmp_path / "here" / "night"))

    copied(tmp_path / "there" / "night", 1)
    assert ids(URL) == [trial_id(1)]


def test_one_process_of_a_machine_works_on_the_folder(tmp_path: Path):
    copy = FolderCopy.claim(URL, tmp_path / "night")

    with pytest.raises(StoreError, match="another process works on it"):
        FolderCopy.claim(URL, tmp_path / "night")
    finish(copy)


def test_what_a_dead_writer_had_uploaded_for_nothing_is_cleared_away(tmp_path: Path):
    copied(tmp_path / "night", 1)
    BucketObjects(BucketAddress.parse(URL)).put_new("trials/stray-1.parquet", b"...")

    copied(tmp_path / "night", 2)
    assert not [name for name in names() if "stray" in name]


def test_a_manifest_whose_answer_was_lost_is_followed_by_the_next(s3: S3Server, tmp_path: Path):
    copy = FolderCopy.claim(URL, tmp_path / "night")

    def lose(_: int, request: Request) -> Answer | None:
        return refusal(400, "Lost") if request.method == "PUT" and "manifests/" in request.key else None

    s3.after = lose
    with pytest.raises(StoreError, match="Lost"):
        write(tmp_path / "night", 1, copy=copy)
    s3.after = nothing
    finish(copy)
    numbers = sorted(int(name[-11:-5]) for name in names() if name.startswith("manifests/"))
    assert numbers == [1, 2, 3]
    assert ids(URL) == [trial_id(1)]


def test_a_manifest_that_was_refused_leaves_no_gap(s3: S3Server, tmp_path: Path):
    copy = FolderCopy.claim(URL, tmp_path / "night")

    def refuse(_: int, request: Request) -> Answer | None:
        return (
            refusal(403, "AccessDenied") if request.method == "PUT" and "manifests/" in request.key else None
        )

    s3.before = refuse
    with pytest.raises(ConfigError, match="denies access"):
        write(tmp_path / "night", 1, copy=copy)
    s3.before = nothing
    finish(copy)
    assert sorted(name for name in names() if "manifests/" in name)[-1] == "manifests/000002.json"


def test_a_file_that_is_back_after_it_was_gone_is_uploaded_again(tmp_path: Path):
    folder, page = tmp_path / "night", tmp_path / "night" / "report.html"
    copy = FolderCopy.claim(URL, folder)
    with Store.open(folder, sweep="night") as store:
        page.write_bytes(b"x" * 2**21)
        copy.push(store)
        page.rename(tmp_path / "aside")
        copy.push(store)
        (tmp_path / "aside").rename(page)
        copy.push(store)
        assert (local_folder(URL) / "report.html").stat().st_size == 2**21
    finish(copy)


# ── workers ────────────────────────────────────────────────────────────────────────────────


def test_a_folder_of_a_worker_comes_with_its_run(tmp_path: Path):
    copied(tmp_path / "night", 1)
    place = tmp_path / "w1-e1"
    copy = FolderCopy.claim(f"{URL}/workers/w1-e1", place)
    write(place, 2, copy=copy)
    finish(copy)

    assert ids(URL) == [trial_id(1), trial_id(2)]
    assert bring_folder(f"{URL}/workers/w1-e1", tmp_path / "brought")
    assert ids(tmp_path / "brought") == [trial_id(2)]
    remove_folder(f"{URL}/workers/w1-e1")
    assert ids(URL) == [trial_id(1)]
    assert not bring_folder(f"{URL}/workers/w1-e1", tmp_path / "again")


def test_a_manifest_says_nothing_of_keys(tmp_path: Path):
    copied(tmp_path / "night", 1)
    manifest = newest_manifest(BucketObjects(BucketAddress.parse(URL)))
    assert manifest is not None
    assert manifest.ended
    assert os.environ["AWS_SECRET_ACCESS_KEY"].encode() not in manifest.encode()


def half_of_worker(folder: Path) -> None:
    """Have a worker upload trial 2, and keep trial 3 in its journal; then its machine goes away."""
    worker = FolderCopy.claim(f"{URL}/workers/w001-e1", folder)
    write(folder, 2, copy=worker)
    add(folder, *answered(3))
    worker._claim.close()


def run_with_workers(out: Path) -> bool | None:
    """Run with nothing to ask; return whether the folder of the worker was whole, None: there was none."""
    copy = FolderCopy.claim(URL, out)
    copy.fetch_workers()
    whole = copy.workers.get("w001-e1")
    Store.open(out, sweep="night").close()
    finish(copy)
    copy.remove_workers()
    return whole


@pytest.mark.long
def test_the_rest_of_a_workers_folder_counts_once_its_machine_is_back(tmp_path: Path):
    out, there = tmp_path / "night", tmp_path / "there" / "w001-e1"
    copied(out, 1)
    half_of_worker(there)
    assert run_with_workers(out) is run_with_workers(out) is False
    assert ids(URL) == ids(out) == [trial_id(1), trial_id(2)]

    finish(FolderCopy.claim(f"{URL}/workers/w001-e1", there))
    assert run_with_workers(out) is True
    assert ids(URL) == ids(out) == [trial_id(1), trial_id(2), trial_id(3)]
    assert BucketObjects(BucketAddress.parse(URL)).folders("workers") == []


def test_half_of_a_workers_folder_is_not_whole_after_a_crash(tmp_path: Path):
    copied(tmp_path / "night", 1)
    half_of_worker(tmp_path / "there" / "w001-e1")
    for _ in range(2):
        copy = FolderCopy.claim(URL, tmp_path / "night")
        copy.fetch_workers()
        assert copy.workers == {"w001-e1": False}
        copy._claim.close()


def test_a_draft_of_a_workers_folder_is_no_folder(tmp_path: Path):
    out = tmp_path / "night"
    write(out, 1)
    write(out / "workers" / "w001-e1", 2)
    draft = out / "workers" / ".w001-e1.1a2b3c4d"
    draft.mkdir()
    shutil.copy(out / "workers" / "w001-e1" / "manifest.json", draft)

    assert ids(out) == [trial_id(1), trial_id(2)]


# ── damage, and starts that are refused ──────────────────────────────────────────────────


def test_a_damaged_part_does_not_replace_the_good_one(tmp_path: Path):
    folder = tmp_path / "night"
    copied(folder, 1, 2)
    part = sorted((folder / "trials").rglob("*.parquet"))[0]
    data = bytearray(part.read_bytes())
    data[len(data) // 3] ^= 0xFF
    part.write_bytes(data)

    copy = FolderCopy.claim(URL, folder)
    with pytest.raises(StoreError, match=f"{part} is damaged"):
        finish(copy, tries=1)
    assert ids(URL) == [trial_id(1), trial_id(2)]


async def start(folder: Path, body: Callable[[], None]) -> None:
    """Start a run in a folder; `body` is what comes between its claim and its first call."""
    meant = Sweep.__new__(Sweep)
    object.__setattr__(meant, "copied_to", URL)
    object.__setattr__(meant, "out", folder)
    async with claimed_copy(meant, RunOptions(), lambda _: None):
        body()


def test_a_claim_that_is_interrupted_leaves_the_bucket_free(tmp_path: Path, s3: S3Server):
    cancelled = threading.Event()

    async def main() -> None:
        loop, asked = asyncio.get_running_loop(), asyncio.Event()

        def wait(_: int, request: Request) -> None:
            if request.method == "PUT":
                s3.before = nothing
                loop.call_soon_threadsafe(asked.set)
                cancelled.wait(HANG_S)

        s3.before = wait
        task = asyncio.ensure_future(start(tmp_path / "here" / "night", lambda: None))
        await asked.wait()
        task.cancel()
        loop.call_soon(cancelled.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    copied(tmp_path / "there" / "night", 1)
    assert ids(URL) == [trial_id(1)]


def test_a_file_that_grows_while_it_goes_up_is_uploaded_as_it_was(s3: S3Server, tmp_path: Path):
    folder, notes = tmp_path / "night", tmp_path / "night" / "leases.jsonl"
    copy = FolderCopy.claim(URL, folder)

    def grow(_: int, request: Request) -> None:
        if request.method == "PUT":
            with notes.open("ab") as file:
                file.write(b"more\n")

    with Store.open(folder, sweep="night") as store:
        notes.write_bytes(b"x" * 2**21)
        s3.before = grow
        copy.push(store)
        s3.before = nothing
        assert (local_folder(URL) / "leases.jsonl").stat().st_size == 2**21
    finish(copy)


@pytest.mark.long
def test_a_worker_that_uploads_after_its_folder_was_removed_is_overtaken(tmp_path: Path):
    copied(tmp_path / "night", 1)
    worker = FolderCopy.claim(f"{URL}/workers/w003-e1", tmp_path / "there" / "w003-e1")
    write(tmp_path / "there" / "w003-e1", 2, copy=worker)
    remove_folder(f"{URL}/workers/w003-e1")

    with pytest.raises(StoreError, match="writes there now"):
        finish(worker)
    assert ids(URL) == [trial_id(1)]
    copied(tmp_path / "night", 3)
    assert ids(URL) == [trial_id(1), trial_id(3)]


@pytest.mark.long
def test_a_reader_sees_workers_that_are_joined_while_it_looks(s3: S3Server, tmp_path: Path):
    out, there = tmp_path / "night", tmp_path / "there" / "w001-e1"
    copied(out, 1)
    worker = FolderCopy.claim(f"{URL}/workers/w001-e1", there)
    write(there, 2, copy=worker)
    finish(worker)
    assert len(ids(URL)) == 2  # what the run had before is at hand

    def join(_: int, request: Request) -> None:
        if "workers" in request.path:  # the reader has the run's manifest, and asks for the workers
            s3.before = nothing
            run_with_workers(out)

    s3.before = join
    assert ids(URL) == [trial_id(1), trial_id(2)]
    assert s3.before is nothing


def test_what_cannot_be_handed_in_keeps_no_worker_from_its_work(tmp_path: Path):
    brought, said = tmp_path / "there" / "workers" / "w001-e1", list[str]()
    worker = FolderCopy.claim(f"{URL}/workers/w001-e1", tmp_path / "w001-e1")
    write(tmp_path / "w001-e1", 2, copy=worker)
    finish(worker)
    bring_folder(f"{URL}/workers/w001-e1", brought)  # by a run
    cut = brought.with_name("w002-e1")
    finish(FolderCopy.claim(f"{URL}/workers/w002-e1", cut))
    write(cut, 3, 4)
    part = sorted((cut / "trials").rglob("*.parquet"))[0]
    part.write_bytes(part.read_bytes()[:-20])

    asyncio.run(_hand_in_dead(URL, brought.parent, said.append))
    assert ids(brought) == [trial_id(2)]
    assert cut.exists()
    assert str(part) in said[0]
    FolderCopy.claim(f"{URL}/workers/w002-e1", cut).close()  # it is free


def test_an_address_to_which_nothing_was_uploaded_is_named_itself(tmp_path: Path):
    copy = FolderCopy.claim(URL, tmp_path / "night")
    with pytest.raises(ConfigError, match=f"^{URL}: a run on .* has uploaded nothing yet"):
        ids(URL)
    finish(copy)
    with pytest.raises(ConfigError, match=f"^{URL}: there are no results"):
        ids(URL)
