"""A disk that fails, or is full, costs nothing that is in flight beside the batches."""

import shutil
from types import SimpleNamespace

import pytest

from asyncbench.errors import StoreError
from asyncbench.lanes.batches.ledger import BatchLedger, Step
from asyncbench.run.summary import Exit
from tests.world.batches import VENDORS

OPENAI, _ = VENDORS


def with_real_time(asked):
    """Add a model that is asked call by call, slowly."""
    [batched] = asked.raw["models"]
    slow = {"simulate": {"latency_s": 2.0}}
    beside = {**batched, "model": f"{OPENAI}/oracle", "alias": "beside", "mode": "realtime", "params": slow}
    asked.raw["models"].append(beside)


def outcomes(asked, model):
    return [row["status"] for row in asked.attempts if row["model"] == model]


@pytest.mark.long
def test_a_download_that_does_not_fit_is_put_off_alone(night, monkeypatch):
    asked = night(OPENAI, play={"latency_s": 1})
    with_real_time(asked)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
        assert asked.run(limit=4).exit is Exit.UNFINISHED
    assert outcomes(asked, "beside") == 4 * ["ok"]
    assert sum("Make room and run again" in line for line in asked.screen.lines) == 1
    assert asked.run(limit=4).exit is Exit.COMPLETE
    assert sorted(asked.billed.values()) == 4 * [1]


@pytest.mark.long
def test_a_ledger_that_cannot_be_written_lets_calls_in_flight_end(night, monkeypatch):
    asked = night(OPENAI, play={"latency_s": 1})
    with_real_time(asked)
    write = BatchLedger.write

    def refused(self, part, step, **said):
        if step is Step.ENDED:
            raise StoreError("the disk is full")
        write(self, part, step, **said)

    with monkeypatch.context() as patch:
        patch.setattr(BatchLedger, "write", refused)
        with pytest.raises(StoreError, match="the disk is full"):
            asked.run(limit=4)
    assert outcomes(asked, "beside") == 4 * ["ok"]
    assert asked.run(limit=4).exit is Exit.COMPLETE
    assert sorted(asked.billed.values()) == 4 * [1]
