"""The search of a served page: hits come while it goes on, and what cannot be read is told each time."""

import gc

import pytest

from asyncbench import sql
from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.entrants import asked_in
from asyncbench.errors import StoreError
from asyncbench.page.live import search
from asyncbench.page.live.snapshots import MOST_SEARCHES, LiveMemory, take_live_snapshot
from asyncbench.page.live.trials import TrialQuery
from asyncbench.store.folder import Store
from asyncbench.store.reading import AT_ONCE
from asyncbench.store.snapshot import Snapshot
from tests.page.live.test_following import keep
from tests.page.made import make_night, problems_of

pytestmark = pytest.mark.long


def snapshot_of(memory):
    snapshot = take_live_snapshot(memory)
    with snapshot.views() as views:
        snapshot.read_index(views, asked_in(views))
    return snapshot


def found(snapshot, text):
    """Return how many hits there were after each step of a search."""
    steps = list[tuple[float, int]]()
    while not steps or steps[-1][0] < 1:
        listing = snapshot.trials(TrialQuery(text=text))
        steps.append((listing["searched"], listing["found"]))
    return [hits for _, hits in steps]


def test_hits_come_step_by_step_and_what_was_searched_is_not_read_again(night, monkeypatch):
    monkeypatch.setattr(search, "SEARCH_S", 0.0)
    monkeypatch.setattr(search, "_ROWS", 20)
    memory = LiveMemory(chosen(night))
    hits = found(snapshot_of(memory), "rather")
    assert hits == sorted(hits)
    assert 0 < len({*hits}) < len(hits)
    assert hits[-1] == sql(night, "FROM trials WHERE reply_text LIKE '%rather%'").num_rows
    assert found(snapshot_of(memory), "rather") == hits[-1:]


def test_a_search_that_is_given_up_holds_no_part_open(night, monkeypatch):
    monkeypatch.setattr(search, "SEARCH_S", 0.0)
    monkeypatch.setattr(search, "_ROWS", 1)
    opened, part_batches = list[object](), Snapshot.part_batches

    def noted(*args, **options):
        opened.append(args)
        try:
            yield from part_batches(*args, **options)
        finally:
            opened.remove(args)

    snapshot = snapshot_of(LiveMemory(chosen(night)))
    monkeypatch.setattr(Snapshot, "part_batches", noted)
    gc.disable()  # it would hide a part that nobody closes
    try:
        for text in "123456789":
            for _ in range(12):
                snapshot.trials(TrialQuery(text=f"no such {text}"))
        assert 0 < len(opened) <= MOST_SEARCHES * AT_ONCE
    finally:
        gc.enable()


def test_a_sweep_that_goes_on_is_searched_where_it_is_new(tmp_path):
    with Store.open(tmp_path / "night", sweep="night") as store:
        problems = [*problems_of(tmp_path / "night")]
        keep(store, problems, first=0, trials=20, right=False)
        memory = LiveMemory(chosen(tmp_path / "night"))
        assert found(snapshot_of(memory), "compute the")[-1] == 20
        keep(store, problems, first=20, trials=5)
        assert found(snapshot_of(memory), "compute the")[-1] == 25


def test_a_part_whose_replies_are_damaged_is_told_each_time(tmp_path):
    folder = make_night(tmp_path / "night")
    snapshot = snapshot_of(LiveMemory(chosen(folder)))
    (part, *_) = snapshot.snapshots[0].files["trials"]
    whole = part.read_bytes()
    at = whole.index(b"would rather") if b"would rather" in whole else len(whole) // 2
    part.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    for _ in range(2):
        with pytest.raises(StoreError, match="damaged"):
            found(snapshot, "rather")
    part.write_bytes(whole)
    assert (
        found(snapshot, "rather")[-1] == sql(folder, "FROM trials WHERE reply_text LIKE '%rather%'").num_rows
    )
