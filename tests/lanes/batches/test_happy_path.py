"""A sweep in batches: the same answers as in real time, each paid once, and rows that say how."""

import pytest

from asyncbench.lanes.batches.ledger import Step
from asyncbench.run.summary import Exit
from tests.world.batches import VENDORS


@pytest.mark.parametrize(
    ("vendor", "api"), [("simulated", "chat"), ("simulated", "responses"), ("simulated-anthropic", None)]
)
def test_batches_bring_the_answers_of_real_time_and_each_is_paid_once(night, vendor, api):
    asked = night(vendor, api=api, batch={"max_requests": 20})
    summary = asked.run()
    assert summary.exit is Exit.COMPLETE
    assert asked.answers == asked.undisturbed()
    assert asked.billed == dict.fromkeys(asked.answers, 1)
    assert len(asked.truth) >= 4
    assert {part.step for part in asked.parts} == {Step.CLEANED}


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_row_says_of_which_batch_it_is_and_tells_no_time_of_its_own(night, vendor):
    asked = night(vendor)
    asked.run()
    batches = {batch["batch_id"] for batch in asked.truth}
    for row in asked.attempts:
        assert row["mode"] == "batch"
        assert row["batch_id"] in batches
        assert row["started_at"] < row["batch_ended_at"]
        measured = ("queued_s", "ttft_s", "latency_s", "in_flight", "loop_lag_s", "retry_after_s")
        assert {row[name] for name in measured} == {None}


@pytest.mark.long
def test_what_was_answered_in_a_batch_is_not_asked_in_real_time(night):
    asked = night("simulated")
    asked.run()
    asked.raw["mode"] = "realtime"
    asked.run()
    assert [row["mode"] for row in asked.attempts] == 72 * ["batch"]


def test_no_two_unnamed_batches_have_the_same_number_of_requests(night):
    asked = night("simulated-anthropic", batch={"max_requests": 20})
    asked.run()
    sizes = [batch["requests"] for batch in asked.truth]
    assert sum(sizes) == 72
    assert len(set(sizes)) == len(sizes)
