"""`mode: auto`: batches as long as there is time, then real time; no trial is asked in both ways at once."""

from collections import Counter

import orjson
import pytest

from asyncbench import plan
from asyncbench.lanes.batches.ledger import Step
from asyncbench.run.summary import Exit
from tests.sweep_files import entry
from tests.tiers import first_rows
from tests.world.batches import VENDORS, Forwarded
from tests.world.cuts import CutError, cutting

OPENAI, ANTHROPIC = VENDORS
MANY = 12
NEVER = {"latency_s": 80_000}  # too long for every deadline here


def auto(night, vendor, *faults, deadline="6h", play=NEVER, **keys):
    asked = night(vendor, *faults, play=play, batch={"max_requests": 7}, **keys)
    asked.raw |= {"mode": "auto", "deadline": deadline}
    return asked


def modes(asked):
    return Counter(row["mode"] for row in asked.attempts if row["status"] == "ok")


def is_whole(asked):
    """See that every trial was answered, and that none was asked in both ways."""
    assert asked.answers == asked.undisturbed(limit=MANY)
    at_once = {row["trial_id"] for row in asked.attempts if row["mode"] == "realtime"}
    assert set(asked.billed.values()) <= {1}
    assert not at_once & asked.billed.keys()
    assert at_once | asked.billed.keys() == asked.answers.keys()


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_auto_with_a_deadline_that_forces_the_switch(night, server, vendor):
    asked, clock = auto(night, vendor), Forwarded(server)
    began = clock.now()
    assert asked.run(limit=MANY, clock=clock).exit is Exit.COMPLETE
    is_whole(asked)
    assert {batch["status"] for batch in asked.truth} == {"cancelled"}
    assert modes(asked)["realtime"] > 0
    cancelled = [part.cancelled_at - began for part in asked.parts]
    assert all(5 * 3600 < at < 5.6 * 3600 for at in cancelled)  # half an hour before the end, and a bit
    assert any("the deadline is near" in line for line in asked.screen.lines)


def test_what_ends_in_time_is_asked_in_batches_alone(night):
    asked = auto(night, OPENAI, play={})
    assert asked.run(limit=MANY).exit is Exit.COMPLETE
    assert modes(asked) == {"batch": MANY}


@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_close_to_the_deadline_no_batch_is_begun(night, vendor):
    asked = auto(night, vendor, deadline="100m")
    assert asked.run(limit=MANY).exit is Exit.COMPLETE
    assert (modes(asked), asked.truth) == ({"realtime": MANY}, [])
    assert any("no time for batches of 12 trials" in line for line in asked.screen.lines)


@pytest.mark.long
def test_without_a_deadline_auto_waits_for_its_batches(night):
    asked = auto(night, OPENAI, play={"latency_s": 8000})
    del asked.raw["deadline"]
    assert asked.run(limit=MANY).exit is Exit.COMPLETE
    assert modes(asked) == {"batch": MANY}


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_that_is_cancelled_too_late_is_collected_and_asked_nowhere_else(night, vendor):
    asked = auto(night, vendor, "cancel_completes=1", play={"latency_s": 20_500})
    assert asked.run(limit=MANY).exit is Exit.COMPLETE
    is_whole(asked)
    assert modes(asked) == {"batch": MANY}


@pytest.mark.long
def test_a_part_that_is_nearly_done_is_not_cancelled(night):
    # At its pace it ends soon after the switch, which is half an hour and a bit before the deadline.
    asked = auto(night, OPENAI, play={"latency_s": 20_000, "latency_sigma": 0})
    asked.raw["batch"] = {"max_requests": 60}
    assert asked.run(limit=60).exit is Exit.COMPLETE
    assert {part.cancelled_at for part in asked.parts} == {None}
    assert modes(asked) == {"batch": 60}


@pytest.mark.long
def test_a_stuck_cancel_does_not_hold_up_the_others(night):
    asked = auto(night, OPENAI, "cancel_slow=#1:6000")
    assert asked.run(limit=MANY).exit is Exit.COMPLETE
    is_whole(asked)


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_where_the_budget_cannot_pay_real_time_batches_go_on(night, vendor):
    asked = auto(night, vendor, play={"latency_s": 30_000})
    asked.raw["models"][0] |= {"price": {"input": 2, "output": 10, "batch": 0.01}, "max_tokens": 50}
    asked.raw["budget_usd"] = 0.0005
    summary = asked.run(limit=MANY)
    assert summary.exit is Exit.COMPLETE  # as no real deadline ends this night
    [said] = [line for line in asked.screen.lines if "will be missing" in line]
    assert "up to 12 trials" in said
    assert modes(asked) == {"batch": MANY}
    assert {batch["status"] for batch in asked.truth} == {"completed"}


def test_what_has_no_batches_is_asked_in_real_time_and_that_is_said(night, server):
    asked = auto(night, OPENAI)
    asked.raw["models"] = [entry(server, "simulated-http/noisy-auto")]
    assert asked.run(limit=MANY).exit is Exit.COMPLETE
    assert modes(asked) == {"realtime": MANY}
    assert any(
        "`mode: auto` asks it in real time: simulated-http has no batch API" in line
        for line in asked.screen.lines
    )
    assert any("asks it in real time" in line for line in plan(asked.raw).assumptions)


@pytest.mark.long
@pytest.mark.parametrize(
    "point", ["after line cancelling 1", "after cancel 1", "before read 3", "after recent 9"]
)
def test_a_run_that_is_cut_off_at_the_switch_is_taken_up(night, point):
    asked = auto(night, OPENAI)
    with cutting(point) as cutter, pytest.raises((CutError, ExceptionGroup)):
        asked.run(limit=MANY)
    assert cutter.cut
    asked.raw["deadline"] = "90m"  # what is left of it
    assert asked.run(limit=MANY).exit is Exit.COMPLETE
    is_whole(asked)
    assert {part.step for part in asked.parts} == {Step.CLEANED}


def test_a_plan_tells_when_batches_are_left(night):
    asked = auto(night, OPENAI)
    found = plan(asked.raw, limit=MANY)
    [model] = orjson.loads(found.as_json())["models"]
    assert 5.2 * 3600 < model["batches"]["switch_in_s"] < 5.5 * 3600
    assert any("batches have time until" in line for line in found.assumptions)
    late = plan(asked.raw, limit=MANY, deadline="90m")
    assert [each.batches for each in late.models] == [None]
    assert any("leaves no time for batches" in line for line in late.assumptions)


def test_a_plan_without_time_for_batches_has_the_prices_of_real_time(night):
    asked = auto(night, OPENAI)
    asked.raw["models"][0] |= {"price": {"input": 2, "output": 10, "batch": 0.5}, "max_tokens": 50}

    def planned(mode, deadline="90m"):
        found = plan(asked.raw, limit=MANY, mode=mode, deadline=deadline)
        return orjson.loads(found.as_json())["models"][0]

    at_once, batched, in_time = planned("realtime"), planned("batch"), planned("auto", "6h")
    assert planned("auto") == at_once
    assert at_once["cost_usd"] == pytest.approx(2 * batched["cost_usd"])
    assert in_time["cost_usd"] == batched["cost_usd"]
    assert in_time["cost_usd_most"] == at_once["cost_usd_most"] > batched["cost_usd_most"]
