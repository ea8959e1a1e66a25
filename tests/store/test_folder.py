"""A results folder: whose it is, what it keeps, what it knows when it is opened again."""

import asyncio
import multiprocessing
import os
import shutil

import orjson
import pytest

from asyncbench.errors import ConfigError, StoreError
from asyncbench.records import History
from asyncbench.store.catalog import read_attempts, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.manifest import changed_manifest
from tests.store.disk import disk_for
from tests.store.made import AT, add, answered, ended, keep, reply, result, sent, trial, trial_id


def opened(folder):
    return Store.open(folder, sweep="night")


def killed(tmp_path, *events):
    """Return a folder as a process leaves it that is killed after these events."""
    with opened(tmp_path / "alive") as store:
        keep(store, *events)
        return shutil.copytree(store.folder, tmp_path / "killed")


# whose it is


def test_a_missing_folder_is_made_and_says_whose_it_is(tmp_path):
    with opened(tmp_path / "results" / "night"):
        manifest = orjson.loads((tmp_path / "results" / "night" / "manifest.json").read_bytes())
    assert (manifest["sweep"], manifest["schema_version"]) == ("night", 1)


def test_the_manifest_grows_and_is_found_again(tmp_path):
    with opened(tmp_path) as store:
        store.write_manifest({"planned": {"small": 7}})
    with opened(tmp_path) as store:
        store.write_manifest({"seed": 3})
        assert (store.manifest["planned"], store.manifest["seed"]) == ({"small": 7}, 3)


def test_the_folder_of_another_sweep_is_refused_with_both_names(tmp_path):
    opened(tmp_path).close()
    with pytest.raises(
        ConfigError, match=r"results of sweep 'night', not of 'day'. Set another folder with `out:`"
    ):
        Store.open(tmp_path, sweep="day")


def test_a_folder_of_someone_elses_files_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ConfigError, match=r"no manifest\.json.*new or empty"):
        opened(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_of_a_later_schema_is_refused(tmp_path):
    opened(tmp_path).close()
    with changed_manifest(tmp_path) as manifest:
        manifest["schema_version"] = 2
    with pytest.raises(ConfigError, match="schema version 2; this asyncbench knows versions up to 1"):
        opened(tmp_path)


def test_a_manifest_that_is_no_json_is_named(tmp_path):
    opened(tmp_path).close()
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match=r"manifest\.json cannot be read"):
        opened(tmp_path)


@pytest.mark.parametrize("foreign", ["[]", "{}", '{"schema_version": "1", "sweep": "night"}'])
def test_a_manifest_of_something_else_is_refused(tmp_path, foreign):
    (tmp_path / "manifest.json").write_text(foreign)
    with pytest.raises(ConfigError, match=r"another program wrote its manifest\.json"):
        opened(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file/night could not be written"):
        opened(tmp_path / "file" / "night")


def try_to_open(folder, answers):
    try:
        opened(folder).close()
    except StoreError as error:
        answers.put(str(error))
    else:
        answers.put("opened")


def asked_of_another_process(folder):
    spawn = multiprocessing.get_context("forkserver")
    answers = spawn.SimpleQueue()
    process = spawn.Process(target=try_to_open, args=(folder, answers))
    process.start()
    answer = answers.get()
    process.join()
    return answer


@pytest.mark.long
def test_a_second_run_is_told_which_process_writes_to_the_folder(tmp_path):
    with opened(tmp_path):
        answer = asked_of_another_process(tmp_path)
    assert f"process {os.getpid()} is writing to {tmp_path}. " in answer
    assert asked_of_another_process(tmp_path) == "opened"


# what it keeps


def test_a_file_is_written_in_one_step_and_written_over(tmp_path):
    with opened(tmp_path) as store:
        store.write_file("problems/nupa.parquet", b"first")
        store.write_file("problems/nupa.parquet", b"second")
    assert (tmp_path / "problems" / "nupa.parquet").read_bytes() == b"second"


def test_a_file_that_does_not_fit_leaves_the_one_before(tmp_path):
    with opened(tmp_path) as store:
        store.write_file("sweep.yaml", b"name: night")
        with disk_for(5), pytest.raises(StoreError, match=r"sweep\.yaml could not be written"):
            store.write_file("sweep.yaml", b"name: another night")
    assert (tmp_path / "sweep.yaml").read_bytes() == b"name: night"


def test_closing_leaves_parquet_and_no_journal(tmp_path):
    add(tmp_path, *answered(1))
    assert not list((tmp_path / "journal").iterdir())
    assert len(parts(tmp_path)) == 1
    assert not (tmp_path / ".tmp").exists()


def test_what_a_dead_process_was_writing_is_cleared_away(tmp_path):
    folder = killed(tmp_path)
    (folder / ".tmp" / "trials").mkdir(parents=True)
    (folder / ".tmp" / "trials" / "part-000001.partial").write_bytes(b"PAR1")
    with opened(folder):
        assert not (folder / ".tmp" / "trials").exists()


def test_after_closing_nothing_is_kept_any_more(tmp_path):
    store = opened(tmp_path)
    store.close()
    store.close()
    with pytest.raises(StoreError):
        store.keep(sent(trial(1)))


def test_a_full_disk_at_the_end_is_told_and_all_is_there_the_next_time(tmp_path):
    store = opened(tmp_path)
    keep(store, *answered(1), *answered(2))
    with disk_for(100), pytest.raises(StoreError, match=r"part-000001\.parquet could not be written"):
        store.close()
    with opened(tmp_path) as again:
        assert again.finished == {trial_id(1), trial_id(2)}
    assert len(read_trials(tmp_path)) == 2


# what it knows when it is opened again


def test_it_is_given_back_until_it_has_its_result_however_often_the_folder_is_opened(tmp_path):
    for again in range(3):
        with opened(tmp_path) as store:
            if not again:
                keep(store, sent(trial(1)), ended(trial(1), reply(1)))
            else:
                assert store.histories[trial_id(1)].ended == ended(trial(1), reply(1))
    add(tmp_path, result(trial(1), reply(1)))
    with opened(tmp_path) as store:
        assert store.histories == {}
    assert read_attempts(tmp_path)["status"].to_pylist() == ["ok"]


def test_a_call_without_an_end_is_lost_once_and_its_cost_is_unknown(tmp_path):
    folder = killed(tmp_path, sent(trial(1)))
    for _ in range(3):
        with opened(folder) as store:
            assert store.histories == {trial_id(1): History(attempts=1, cost_usd=None)}
    (row,) = read_attempts(folder).to_pylist()
    assert (row["status"], row["cost_usd"], row["started_at"].timestamp()) == ("lost", None, AT)


def test_the_calls_of_earlier_runs_are_counted_and_added_up(tmp_path):
    for attempt in (1, 2):
        add(tmp_path, ended(trial(1), None, attempt=attempt, cost_usd=0.5), *answered(attempt + 1))
    with opened(tmp_path) as store:
        assert store.histories == {trial_id(1): History(attempts=2, cost_usd=1.0)}


def test_one_call_of_unknown_cost_makes_the_sum_unknown(tmp_path):
    add(tmp_path, ended(trial(1), None), ended(trial(1), None, attempt=2, cost_usd=None))
    with opened(tmp_path) as store:
        assert store.histories[trial_id(1)].cost_usd is None


def test_a_torn_line_is_reported_and_what_it_held_is_known_as_far_as_can_be(tmp_path):
    folder = killed(tmp_path, *answered(1), sent(trial(2)), ended(trial(2), reply(2)))
    (segment,) = (folder / "journal").iterdir()
    os.truncate(segment, segment.stat().st_size - 20)
    with opened(folder) as store:
        assert [(damage.segment, damage.line) for damage in store.damaged] == [(segment, 6)]
        assert store.finished == {trial_id(1)}
        assert store.histories == {trial_id(2): History(attempts=1, cost_usd=None)}


# while a run is going


def parts(folder):
    return list((folder / "trials").rglob("*.parquet"))


async def tended(store, until, **settings):
    """Tend a store, quickly, until something is so."""
    task = asyncio.create_task(store.tend(sync_every_s=0.001, **settings))
    while not until():  # noqa: ASYNC110  # what is waited for happens on the disk
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_enough_results_are_sealed_while_the_run_goes_on(tmp_path):
    with opened(tmp_path) as store:
        keep(store, *answered(1), *answered(2), sent(trial(3)))
        await tended(store, lambda: parts(tmp_path), seal_at_results=2)
        keep(store, ended(trial(3), reply(3)), result(trial(3), reply(3)))
        assert len(read_trials(tmp_path)) == 3
    assert read_attempts(tmp_path)["status"].to_pylist() == ["ok"] * 3


async def test_a_few_results_are_sealed_after_a_while(tmp_path):
    with opened(tmp_path) as store:
        keep(store, *answered(1))
        await tended(store, lambda: parts(tmp_path), seal_every_s=0.01)


async def test_nothing_is_sealed_while_there_is_nothing_to_seal(tmp_path):
    with opened(tmp_path) as store:
        keep(store, sent(trial(1)))
        before = list((tmp_path / "journal").iterdir())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await store.tend(sync_every_s=0.001, seal_every_s=0.0)
        assert list((tmp_path / "journal").iterdir()) == before


async def test_a_disk_that_is_full_while_sealing_ends_the_tending(tmp_path):
    store = opened(tmp_path)
    keep(store, *answered(1))
    with disk_for(100), pytest.raises(StoreError, match=r"could not be written"):
        await store.tend(sync_every_s=0.01, seal_at_results=1)
    store.close()
    assert len(read_trials(tmp_path)) == 1


async def test_calls_that_span_many_seals_are_neither_lost_nor_doubled(tmp_path):
    with opened(tmp_path) as store:
        keep(store, sent(trial(1)), sent(trial(2)), ended(trial(2), reply(2)))
        for n in (10, 11, 12):
            keep(store, *answered(n))
            await tended(store, lambda n=n: len(parts(tmp_path)) == n - 9, seal_at_results=1)
        keep(store, ended(trial(1), reply(1)), result(trial(1), reply(1)), result(trial(2), reply(2)))
    assert set(read_trials(tmp_path)["trial_id"].to_pylist()) == {trial_id(n) for n in (1, 2, 10, 11, 12)}
    assert read_attempts(tmp_path)["status"].to_pylist() == ["ok"] * 5


def test_a_folder_that_cannot_be_looked_into_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot be opened: File name too long"):
        Store.open(tmp_path / ("x" * 300), sweep="night")
