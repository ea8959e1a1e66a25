"""While a run goes on its folder bears a mark, which only a run that dies leaves behind."""

import os
from datetime import datetime

import pytest

from asyncbench.errors import StoreError
from asyncbench.store.folder import Store
from asyncbench.store.lock import MARK, read_mark, remove_mark, set_mark, writer_of


def test_a_run_that_is_going_on_bears_a_mark_and_one_that_ended_does_not(tmp_path):
    with Store.open(tmp_path, sweep="night") as store:
        assert not store.dead
        store.begin_run()
        began_at = read_mark(tmp_path)
        assert began_at is not None
        assert datetime.fromisoformat(began_at).tzinfo is not None
    assert read_mark(tmp_path) is None


def test_the_mark_is_gone_before_another_may_write(tmp_path, monkeypatch):
    """Taken away after the lock is let go, it could be that of the next run."""
    writers = []

    def watched(folder):
        writers.append(writer_of(folder))
        remove_mark(folder)
        writers.append(writer_of(folder))

    monkeypatch.setattr("asyncbench.store.folder.remove_mark", watched)
    store = Store.open(tmp_path, sweep="night")
    store.begin_run()
    with pytest.raises(StoreError, match="is writing to"):
        Store.open(tmp_path, sweep="night")
    store.close()
    assert writers == [os.getpid()] * 2  # the folder is still held, before it goes and after
    with Store.open(tmp_path, sweep="night") as another:
        assert not another.dead


def test_work_on_the_folder_of_a_dead_run_leaves_its_mark(tmp_path):
    Store.open(tmp_path, sweep="night").close()
    set_mark(tmp_path)
    with Store.reopen(tmp_path) as store:
        store.compact(all_tables=True)
    with Store.open(tmp_path, sweep="night") as store:
        assert store.dead


def test_a_run_that_cannot_take_its_mark_away_ends_all_the_same(tmp_path):
    store = Store.open(tmp_path, sweep="night")
    store.begin_run()
    (tmp_path / MARK).unlink()
    (tmp_path / MARK).mkdir()
    store.close()
    Store.open(tmp_path, sweep="night").close()
