"""Runs whose results go to a bucket: from Python and from the command line, on one machine and on two."""

import asyncio
import json
import os
import shutil
from collections.abc import Mapping
from typing import Any

import pytest

import asyncbench as ab
from asyncbench.config.sweep import as_mapping, sweep_from
from asyncbench.errors import ConfigError, ProblemSetError, StoreError
from asyncbench.run.summary import Exit, Summary
from asyncbench.store.bucket.fetching import local_folder
from asyncbench.store.bucket.objects import BucketAddress, BucketObjects, journal_folder
from asyncbench.store.copying import FolderCopy
from asyncbench.store.folder import Store
from tests.store.bucket.s3_server import Answer, Request, S3Server, refusal

URL = "s3://bucket/mine/night"
pytestmark = pytest.mark.usefixtures("s3")


def run(mapping: Mapping[str, object], **options: Any) -> Summary:
    return asyncio.run(ab.run_sweep(mapping, **options))


def test_a_run_leaves_its_results_in_the_bucket(mapping, tmp_path):
    summary = run(mapping)

    assert summary.exit == Exit.COMPLETE
    assert "copied to s3://bucket/mine/night" in summary.as_text()
    assert len(ab.read_trials(URL)) == 72
    assert journal_folder(URL).is_relative_to(tmp_path / "state")
    assert ab.load_sweep(local_folder(URL) / "sweep.yaml").copied_to == URL


@pytest.mark.long
def test_a_run_on_another_machine_asks_only_what_is_left(mapping, tmp_path):
    run(mapping, limit=10, journal=tmp_path / "here")
    summary = run(mapping, journal=tmp_path / "there")

    (counters,) = summary.models.values()
    assert counters.done_before == 10
    assert len(ab.read_attempts(URL)) == len(ab.read_trials(URL)) == 72


@pytest.mark.long
def test_the_sweep_file_of_a_local_folder_means_it_and_that_of_its_copy_means_the_copy(mapping, tmp_path):
    """Only the folder that belongs to the bucket is copied there."""
    here, away = tmp_path / "here", tmp_path / "away"
    run(mapping, limit=10, journal=here)
    shutil.copytree(here, away)
    own, other = ab.load_sweep(here / "sweep.yaml"), ab.load_sweep(away / "sweep.yaml")
    assert (own.out, own.copied_to) == (here, URL)
    assert (other.out, other.copied_to) == (away, None)
    before = BucketObjects(BucketAddress.parse(URL)).names()
    summary = asyncio.run(ab.run_sweep(away / "sweep.yaml"))
    (counters,) = summary.models.values()
    assert (counters.done_before, counters.done) == (10, 72)
    assert BucketObjects(BucketAddress.parse(URL)).names() == before
    again = asyncio.run(ab.run_sweep(here / "sweep.yaml"))
    assert [counters.done_before for counters in again.models.values()] == [10]
    assert len(ab.read_trials(URL)) == 72


def test_a_journal_is_only_for_results_in_a_bucket(mapping, tmp_path):
    with pytest.raises(ConfigError, match="Leave it out"):
        run({**mapping, "out": str(tmp_path / "local")}, journal=tmp_path / "here")


@pytest.mark.long
def test_a_bucket_that_does_not_answer_stops_no_run(mapping, s3: S3Server, monkeypatch):
    monkeypatch.setattr("asyncbench.store.copying.FIRST_WAIT_S", 0.01)
    puts = 0

    def fail(_: int, request: Request) -> Answer | None:
        nonlocal puts
        puts += request.method == "PUT"
        return refusal(400, "Sorry") if request.method == "PUT" and puts > 1 else None  # after the claim

    s3.before = fail
    summary = run(mapping)
    assert summary.exit == Exit.STORAGE
    (counters,) = summary.models.values()
    assert counters.complete
    assert "lacks results" in summary.as_text()

    s3.before = lambda *_: None
    again = run(mapping)
    assert again.exit == Exit.COMPLETE
    assert len(ab.read_attempts(URL)) == 72  # none was asked again


def test_a_run_that_was_overtaken_stops_and_says_who_goes_on(mapping, s3: S3Server, tmp_path):
    puts = 0

    def overtake(_: int, request: Request) -> None:
        nonlocal puts
        puts += request.method == "PUT"
        if request.method == "PUT" and puts == 1:  # the claim of the run
            FolderCopy.claim(URL, tmp_path / "there", accept_loss=True)

    s3.after = overtake
    slow = {"limits": {"simulated": {"rpm": 60}}}  # more than a minute, if nobody stopped it
    with pytest.raises(StoreError, match=r"writes there now, in .*there"):
        run(mapping | slow, journal=tmp_path / "here")
    assert len(ab.read_trials(tmp_path / "here")) < 72


def test_a_run_that_is_refused_leaves_the_bucket_free(mapping, tmp_path):
    with pytest.raises(ProblemSetError):
        run(mapping | {"problems": [str(tmp_path / "none.parquet")]}, journal=tmp_path / "a")
    run(mapping, journal=tmp_path / "b")
    assert len(ab.read_trials(URL)) == 72


@pytest.mark.long
def test_a_plan_knows_what_the_bucket_holds(mapping, tmp_path):
    assert ab.plan(mapping).models[0].left == 72
    run(mapping, limit=10, journal=tmp_path / "here")

    plan = ab.plan(mapping)
    assert plan.models[0].left == 62
    assert f"Results go to {URL}." in plan.as_text()


READERS = {
    "report": lambda: ab.report(URL).as_text(),
    "standings": lambda: ab.report(URL, "standings").as_text(),
    "status": lambda: ab.status(URL).as_text(),
    "sql": lambda: ab.sql(URL, "SELECT count(*) AS n FROM trials"),
    "regrade": lambda: ab.regrade_folder(URL),
    "problems": lambda: ab.read_problems(URL),
    "batches": lambda: next(ab.iter_trials(URL)),
    "lanes": lambda: ab.read_lanes(URL),
}


@pytest.mark.long
def test_what_reads_a_folder_reads_an_address(mapping, tmp_path):
    run(mapping, limit=3, journal=tmp_path / "here")
    for name, read in READERS.items():
        assert read() is not None, name


@pytest.mark.long
def test_folders_and_addresses_are_compared_exported_and_merged(mapping, tmp_path):
    run(mapping, limit=3)
    run({**mapping, "out": str(tmp_path / "local")})

    name = "simulated/oracle"
    assert URL in ab.compare(name, name, [URL, tmp_path / "local"]).as_text()
    merged = ab.merge_folders([URL, tmp_path / "local"], tmp_path / "both")
    assert len(ab.read_trials(tmp_path / "both")) == 72
    assert merged.folders[0] == URL
    assert ab.export_folder("llm-arithmetic", URL, tmp_path / "exported").files


@pytest.mark.long
def test_answers_of_a_bucket_are_taken_over(mapping, tmp_path):
    run(mapping, limit=5)
    run({**mapping, "out": str(tmp_path / "local")}, limit=5, reuse=URL)
    assert len(ab.read_attempts(tmp_path / "local")) == 0
    assert len(ab.read_trials(tmp_path / "local")) == 5


def test_what_writes_into_a_folder_refuses_an_address(mapping):
    run(mapping, limit=3)
    for change in (
        lambda: ab.regrade_folder(URL, write=True),
        lambda: ab.write_page(URL),
        lambda: ab.merge_folders(["a", "b"], URL),
    ):
        with pytest.raises(ConfigError, match="s3:/"):
            change()


def test_the_sweep_of_a_bucket_is_the_same_after_a_round_trip(mapping):
    sweep = sweep_from(mapping)
    assert sweep_from(as_mapping(sweep)) == sweep
    assert json.dumps(as_mapping(sweep)).count(URL) == 1
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in json.dumps(as_mapping(sweep))


def test_problems_of_a_bucket_are_asked_like_those_of_a_file(mapping, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("question,expected\n1 + 1,2\n2 + 2,4\n")
    BucketObjects(BucketAddress.parse("s3://bucket/sets")).put_new("mine.csv", file)
    address = "s3://bucket/sets/mine.csv"

    def ids(path: str, out: str) -> list[object]:
        problems = [{"path": path, "suite": "custom", "grader": "number"}]
        run({**mapping, "problems": problems, "out": str(tmp_path / out)})
        return ab.read_trials(tmp_path / out, ["trial_id"]).sort_by("trial_id")["trial_id"].to_pylist()

    assert ids(address, "from-a-bucket") == ids(str(file), "from-a-file")
    assert f'"{address}"' in ab.inspect_problems(address).as_json()
    with pytest.raises(ConfigError, match=r"s3://bucket/sets/none.csv: there is no such file"):
        run({**mapping, "problems": ["s3://bucket/sets/none.csv"]})
    with pytest.raises(ProblemSetError, match=address):
        run({**mapping, "problems": [address]})


@pytest.mark.long
def test_a_bucket_that_denies_deletion_has_all_results_nonetheless(mapping, s3: S3Server, tmp_path):
    run(mapping, limit=10)
    worker = FolderCopy.claim(f"{URL}/workers/w001-e1", tmp_path / "w001-e1")
    Store.open(tmp_path / "w001-e1", sweep="night").close()
    asyncio.run(worker.finish(print))

    def deny(_: int, request: Request) -> Answer | None:
        return refusal(403, "AccessDenied") if request.method in ("POST", "DELETE") else None

    s3.before = deny
    summary = run(mapping)
    assert summary.exit == Exit.COMPLETE
    assert "copied to s3://bucket/mine/night" in summary.as_text()
    assert len(ab.read_trials(URL)) == 72
    assert BucketObjects(BucketAddress.parse(URL)).folders("workers") == ["w001-e1"]


def test_a_plan_goes_by_nothing_where_nothing_was_uploaded(mapping, tmp_path):
    asyncio.run(FolderCopy.claim(URL, tmp_path / "here" / "night").finish(print))
    assert ab.plan(mapping).models[0].left == 72
