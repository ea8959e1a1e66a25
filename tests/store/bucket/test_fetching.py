"""Folders of a bucket on this machine: each state whole, whatever becomes of the bucket meanwhile."""

import threading
from pathlib import Path

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError, StoreError
from asyncbench.store.bucket.fetching import fetched_file, local_folder
from asyncbench.store.bucket.objects import BucketAddress, BucketObjects
from asyncbench.store.copying import FolderCopy
from asyncbench.store.folder import Store
from tests.store.bucket.s3_server import S3Server
from tests.store.made import answered, keep, seal, trial_id

URL = "s3://bucket/mine/night"


def answer(copy: FolderCopy, store: Store, number: int) -> None:
    keep(store, *answered(number))
    seal(store)
    copy.push(store)


def gets(s3: S3Server) -> list[str]:
    return [request.key for request in s3.requests if request.method == "GET" and request.key]


@pytest.mark.long
def test_a_reader_in_a_loop_sees_each_answer_once_while_parts_are_replaced(s3: S3Server, tmp_path: Path):
    folder, stop, faults = tmp_path / "night", threading.Event(), list[str]()
    copy = FolderCopy.claim(URL, folder)
    seen = 0
    with Store.open(folder, sweep="night") as store:
        answer(copy, store, 1)

        def read() -> None:
            nonlocal seen
            while not stop.is_set() or not seen:
                ids = ab.read_trials(URL, ["trial_id"])["trial_id"].to_pylist()
                if sorted(map(str, ids)) != [trial_id(n) for n in range(1, len(ids) + 1)]:
                    faults.append(f"{ids}")
                seen += 1

        reader = threading.Thread(target=read)
        reader.start()
        for number in range(2, 8):
            answer(copy, store, number)
            store.compact(all_tables=True)
            copy.push(store)
        stop.set()
        reader.join()
    assert faults == []
    assert len(ab.read_trials(URL)) == 7
    assert len([request for request in s3.requests if request.method in ("POST", "DELETE")]) >= 6


def test_a_state_is_fetched_once_and_of_the_next_only_what_is_new(s3: S3Server, tmp_path: Path):
    copy = FolderCopy.claim(URL, tmp_path / "night")
    with Store.open(tmp_path / "night", sweep="night") as store:
        answer(copy, store, 1)
        first = local_folder(URL)
        s3.requests.clear()
        assert local_folder(URL) == first
        assert all("manifests/" in key for key in gets(s3))
        answer(copy, store, 2)
        s3.requests.clear()
        second = local_folder(URL)
    assert not any("000001" in key for key in gets(s3) if key.endswith(".parquet"))
    assert len(ab.read_trials(first)) == 1  # who reads it still does
    assert len(ab.read_trials(second)) == 2
    assert second.name == "night"


def test_a_part_that_was_changed_in_the_bucket_is_noticed(s3: S3Server, tmp_path: Path):
    copy = FolderCopy.claim(URL, tmp_path / "night")
    with Store.open(tmp_path / "night", sweep="night") as store:
        answer(copy, store, 1)
    objects = BucketObjects(BucketAddress.parse(URL))
    (part,) = objects.names("trials")
    objects.delete([part])
    objects.put_new(part, b"another")

    with pytest.raises(StoreError, match="is damaged"):
        local_folder(URL)
    assert s3.requests


@pytest.mark.usefixtures("s3")
def test_a_manifest_cannot_name_files_outside_of_the_folder():
    objects = BucketObjects(BucketAddress.parse(URL))
    objects.put_new("x", b"")
    writer = '{"id": "a", "host": "h", "folder": "f", "began_at": "t"}'
    file = '{"key": "x", "bytes": 0, "sha256": ""}'
    said = f'"number": 1, "ended": true, "written_at": "t", "writer": {writer}'
    objects.put_new(
        "manifests/000001.json", f'{{"format": 1, {said}, "files": {{"../out": {file}}}}}'.encode()
    )
    with pytest.raises(StoreError, match="outside of the folder"):
        local_folder(URL)


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize("folder", ["", "sets"])
def test_a_file_is_fetched_as_it_is_now(folder: str):
    objects = BucketObjects(BucketAddress("bucket", folder))
    objects.put_new("mine.csv", b"one")
    first = fetched_file(str(objects.address / "mine.csv"))
    objects.delete(["mine.csv"])
    objects.put_new("mine.csv", b"two")

    assert fetched_file(str(objects.address / "mine.csv")).read_bytes() == b"two"
    assert (first.name, first.read_bytes()) == ("mine.csv", b"one")
    with pytest.raises(ConfigError, match="no such file"):
        fetched_file(str(objects.address / "other.csv"))
