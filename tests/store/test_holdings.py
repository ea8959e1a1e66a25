"""What a folder holds is known: a part that is gone, another or too many is told; its money counts still."""

import asyncio
import random
import shutil
from contextlib import suppress
from dataclasses import replace

import orjson
import pyarrow.compute as pc
import pytest

from asyncbench.config.sweep import load_sweep
from asyncbench.errors import ConfigError, StoreError
from asyncbench.records import Outcome
from asyncbench.run.summary import Exit
from asyncbench.run.sweep_run import run_sweep
from asyncbench.store.budget_state import spending_of
from asyncbench.store.catalog import known_trials, read_attempts, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.manifest import HOLDS, kept_sweep_file, read_manifest
from asyncbench.store.reading import take_snapshot
from asyncbench.store.verify import verify_folder
from tests.store.made import add, answered, ended, keep, refused, reply, sent, trial, trial_id, without_list
from tests.sweep_files import entry, problem_set, simulator, sweep
from tests.tiers import first_rows

PRICE = {"input": 1.0, "output": 5.0}


@pytest.fixture
def folder(tmp_path):
    """Two nights of two models; one call's cost is not known, but what was set aside for it."""
    for n in (1, 11):
        with Store.open(tmp_path / "night", sweep="night") as store:
            keep(store, *answered(n), *answered(n + 1, alias="large"), *refused(n + 2))
            unknown = ended(trial(n + 3), None, cost_usd=None)
            store.keep(replace(unknown, attempt=replace(unknown.attempt, reserved_usd=0.5, status="timeout")))
    return tmp_path / "night"


def part(folder, table, number=0):
    return take_snapshot(folder).files[table][number]


def totals(folder):
    books = spending_of(folder)
    kinds = [("sweep", "night"), ("provider", "openai"), ("model", "small"), ("model", "large")]
    return [books.charges(*kind) for kind in kinds], books.dearest


def refused_for(folder, path):
    """Every reader refuses, names the file, and says what to do."""
    for use in (read_trials, read_attempts, known_trials, spending_of, Store.reopen):
        with pytest.raises(StoreError) as refusal:
            use(folder)
        assert str(path) in str(refusal.value)
        assert "Restore the file from a backup" in str(refusal.value)
        assert "--accept-loss" in str(refusal.value)
    assert any(str(path.relative_to(folder)) == one.place for one in verify_folder(folder).findings)


def removed(path):
    path.unlink()
    return path


def copied(path):
    return path.parent / shutil.copy(path, path.with_name("part-000077.parquet"))


def replaced(path):
    (other,) = (one for one in path.parent.iterdir() if one != path)
    shutil.copy(other, path)
    return path


def moved(path):
    return path.rename(path.with_name("part-000077.parquet"))


@pytest.mark.long
@pytest.mark.parametrize("table", first_rows(1, ["trials", "grades", "attempts"]))
@pytest.mark.parametrize("how", [removed, copied, replaced, moved])
def test_a_part_that_is_gone_another_or_too_many_is_refused_by_every_reader(folder, table, how):
    refused_for(folder, how(part(folder, table, 1)))


@pytest.mark.long
@pytest.mark.parametrize("how", [removed, replaced, moved])
def test_what_the_calls_of_a_lost_part_cost_counts_under_every_cap(folder, how):
    before = totals(folder)
    for path in take_snapshot(folder).files["attempts"]:
        if path.exists() and len(list(path.parent.iterdir())) > (how is replaced):
            how(path)
    with Store.open(folder, sweep="night", accept=True):
        assert totals(folder) == before
    with Store.open(folder, sweep="night"):
        assert totals(folder) == before
    assert verify_folder(folder).sound


def test_a_copied_part_that_is_set_aside_counts_once(folder):
    before, trials = totals(folder), read_trials(folder)
    for files in take_snapshot(folder).files.values():
        for path in files:
            copied(path)
    Store.open(folder, sweep="night", accept=True).close()
    assert totals(folder) == before
    assert read_trials(folder).equals(trials)


@pytest.mark.long
def test_trials_of_a_lost_part_are_asked_again_and_their_calls_go_on_counting(folder):
    removed(part(folder, "trials"))
    with Store.open(folder, sweep="night", accept=True) as store:
        assert trial_id(2) not in store.finished
        assert store.histories[trial_id(2)].attempts == 1
        keep(store, *answered(2, alias="large", attempt=2))
    assert trial_id(2) in known_trials(folder).finished
    assert verify_folder(folder).sound


@pytest.mark.long
def test_an_older_state_of_a_part_is_refused_though_it_is_sound_in_itself(folder, tmp_path):
    older = shutil.copytree(folder, tmp_path / "older")
    add(folder, *answered(3, attempt=2), again={Outcome.FAILED})
    path = next(
        path
        for path in take_snapshot(folder).files["trials"]
        if path.stat().st_size != (older / path.relative_to(folder)).stat().st_size
    )
    shutil.copy(older / path.relative_to(folder), path)
    refused_for(folder, path)


def test_a_manifest_that_was_changed_by_hand_is_refused(folder):
    path = folder / "manifest.json"
    with Store.reopen(folder) as store:
        store.write_manifest({"runs": {"night": {"planned": {"small": {"plain": {"s": {"int_add": 90}}}}}}})
    path.write_bytes(path.read_bytes().replace(b'"int_add": 90', b'"int_add": 80'))
    for use in (read_trials, verify_folder, Store.reopen):
        with pytest.raises(StoreError, match=r"manifest\.json has changed since it was written\. Restore it"):
            use(folder)


@pytest.mark.parametrize("key", ["holds", "digest"])
def test_a_manifest_that_lacks_its_list_or_its_digest_is_refused(folder, key):
    said = orjson.loads((folder / "manifest.json").read_bytes())
    del said[key]
    (folder / "manifest.json").write_bytes(orjson.dumps(said))
    with pytest.raises(StoreError, match="has changed since it was written"):
        read_trials(folder)


@pytest.mark.long
@pytest.mark.parametrize("how", [lambda file: file.write_text("name: day"), lambda file: file.unlink()])
def test_the_folder_s_sweep_file_is_edited_elsewhere(folder, how):
    with Store.reopen(folder) as store:
        store.write_sweep_file(b"name: night\n", {})
        assert kept_sweep_file(folder) == folder / "sweep.yaml"
    how(folder / "sweep.yaml")
    for use in (load_sweep, lambda file: kept_sweep_file(file.parent)):
        with pytest.raises(StoreError, match=r"sweep\.yaml .*run the sweep again from its own file"):
            use(folder / "sweep.yaml")
    assert [one.place for one in verify_folder(folder).findings] == ["sweep.yaml"]
    with Store.reopen(folder) as store:  # a run, say
        store.write_sweep_file(b"name: night\nnotes: new\n", {})
    assert verify_folder(folder).sound


@pytest.mark.long
def test_a_folder_of_before_gets_its_list_on_the_first_opening(folder):
    listed = read_manifest(folder)[HOLDS]["parts"]
    without_list(folder)
    before = totals(folder)  # whoever reads needs none
    Store.reopen(folder).close()
    assert read_manifest(folder)[HOLDS]["parts"] == listed
    assert totals(folder) == before
    refused_for(folder, removed(part(folder, "attempts")))


def test_a_folder_of_before_that_lacks_calls_is_refused_and_no_budget_is_known_of_it(folder):
    without_list(folder)
    shutil.rmtree(folder / "attempts")
    with pytest.raises(StoreError, match="lacks 6 of the calls that trials count"):
        Store.open(folder, sweep="night")
    with Store.open(folder, sweep="night", accept=True):
        assert spending_of(folder).unknown_loss


def killed(folder, tmp_path):
    with Store.open(folder, sweep="night") as store:
        keep(store, *answered(21), sent(trial(22)), ended(trial(22), reply(22)))
        return shutil.copytree(folder, tmp_path / "killed")


@pytest.mark.long
def test_a_segment_of_the_journal_that_is_gone_is_told_and_no_budget_is_known_of_it(folder, tmp_path):
    left = killed(folder, tmp_path)
    (segment,) = (left / "journal").iterdir()
    segment.unlink()
    refused_for(left, segment)
    with Store.open(left, sweep="night", accept=True):
        assert spending_of(left).unknown_loss


def test_a_copy_of_a_segment_is_told(folder, tmp_path):
    left = killed(folder, tmp_path)
    (segment,) = (left / "journal").iterdir()
    shutil.copy(segment, segment.with_name("000077.wal"))
    with pytest.raises(StoreError, match=r"000077\.wal is a copy of 000003\.wal\. Move it"):
        read_trials(left)


def spoiled(folder, older, rng):
    """Remove, copy, exchange or set back a part."""
    parts = sorted(take_snapshot(folder).files["attempts"])
    path, other = rng.choice(parts), rng.choice(parts)
    kind = rng.choice([removed, copied, "restored", "exchanged"])
    source = older / path.relative_to(folder) if kind == "restored" else other
    if kind in (removed, copied):
        kind(path)
    elif source.exists() and source != path:
        shutil.copy(source, path if kind == "exchanged" else path.with_name("part-000078.parquet"))


LATER = [pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 100)]


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(2), *LATER])
def test_whatever_becomes_of_parts_between_kills_the_cap_holds_or_the_run_refuses(folder, tmp_path, seed):
    """Every call that ends costs 0.25: whatever is lost of them, so much counts."""
    rng, most = random.Random(seed), 0
    for n in range(1, 5):
        older = shutil.copytree(folder, tmp_path / f"older{n}")
        with Store.open(folder, sweep="night", accept=True) as store:
            keep(store, *answered(100 * n), *answered(100 * n + 1, alias="large"))
            left = shutil.copytree(folder, tmp_path / f"left{n}")
        if rng.random() < 0.5:  # it was killed
            shutil.rmtree(folder)
            left.rename(folder)
        most = max(most, sum(spending_of(folder).charges("sweep", "night")[:2]))
        spoiled(folder, older, rng)
        with suppress(StoreError):
            Store.open(folder, sweep="night").close()
            assert sum(spending_of(folder).charges("sweep", "night")[:2]) == most
        with Store.open(folder, sweep="night", accept=True):
            assert sum(spending_of(folder).charges("sweep", "night")[:2]) == most
    assert most == (4 + 2 * 4) * 0.25e12 + 2 * 0.5e12


@pytest.mark.long
def test_a_run_whose_calls_were_removed_goes_on_within_its_cap(tmp_path):
    problems, out, cap = problem_set(tmp_path, trials=2), tmp_path / "out", 0.003
    with simulator(problems) as server:
        model = entry(server, "simulated-http/oracle", alias="k", max_tokens=64, price=PRICE, concurrency=4)
        planned = sweep(out, problems, model, budget_usd=cap)
        first = asyncio.run(run_sweep(planned, limit=15))
        shutil.rmtree(out / "attempts" / "model=k")
        with pytest.raises(StoreError, match=r"attempts/model=k.* is missing"):
            asyncio.run(run_sweep(planned))
        second = asyncio.run(run_sweep(planned, accept_loss=True))
    assert second.exit == Exit.BUDGET
    spent = sum(model.cost_usd for summary in (first, second) for model in summary.models.values())
    assert cap / 3 < first.models["k"].cost_usd + pc.sum(read_attempts(out)["cost_usd"]).as_py() <= cap
    assert spent <= cap


def test_a_folder_without_its_manifest_is_refused_with_the_way_out(folder):
    (folder / "manifest.json").unlink()
    with pytest.raises(ConfigError, match=r"restore .*manifest\.json from a backup"):
        Store.open(folder, sweep="night")
