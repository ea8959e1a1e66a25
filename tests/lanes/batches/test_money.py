"""What batches cost in a run: the batch price for each request, the full one for what real time answers."""

import math

import pytest

from asyncbench.analysis.counting import counted
from asyncbench.lanes.batches.ledger import BatchLedger, Step
from asyncbench.lanes.batches.packing import manifest_rows
from asyncbench.lanes.batches.spending import Reserves
from asyncbench.planning.sweep_plan import plan
from asyncbench.reports.cost.report import cost_report_of
from asyncbench.run.summary import Exit
from tests.tiers import first_rows
from tests.world.batches import VENDORS

HALF = {"input": 1.0, "output": 5.0, "batch": 0.5}
FULL = {"input": 1.0, "output": 5.0}
SLOW = {"latency_s": 4000}


def priced(asked, price, **keys):
    asked.raw["models"][0] |= {"price": price, "max_tokens": 100}
    asked.raw |= keys
    return asked


def by_hand(row, part):
    return part * (row["input_tokens"] * 1 + row["output_tokens"] * 5) * 1e-6


@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_each_request_costs_the_batch_price_whatever_tier_its_reply_names(night, vendor):
    asked = priced(night(vendor), HALF, budget_usd=1.0)
    assert asked.run().exit is Exit.COMPLETE
    assert len(asked.attempts) == 72
    for row in asked.attempts:
        assert row["cost_usd"] == pytest.approx(by_hand(row, 0.5))
        assert row["cost_usd"] <= row["most_usd"] == row["reserved_usd"]
    report = counted(asked.out, cost_report_of)
    assert [mode.name for mode in report.modes] == [("batch",)]
    assert report.whole.spent.usd_by_kind["not_split"] == 0  # priced again, it comes to the same


@pytest.mark.long
def test_half_the_price_reserves_half_and_so_twice_as_much_fits_into_a_budget(night):
    held = {}
    for price in (HALF, FULL):
        asked = priced(night("simulated"), price, budget_usd=1.0)
        asked.run()
        held[price is HALF] = math.fsum(row["reserved_usd"] for row in asked.attempts)
    assert held[True] == pytest.approx(held[False] / 2)


@pytest.mark.long
def test_what_batches_leave_to_real_time_is_held_and_charged_at_the_full_price(night):
    unfinished = night("simulated", "expires=1:0.5", batch={"rounds": 1}, play={"speedup": 60})
    asked = priced(unfinished, HALF, budget_usd=1.0)
    asked.run(limit=12)
    rows = [row for row in asked.attempts if row["status"] == "ok"]
    modes = {row["mode"] for row in rows}
    assert modes == {"batch", "realtime"}
    for row in rows:
        part = 0.5 if row["mode"] == "batch" else 1.0
        assert row["cost_usd"] == pytest.approx(by_hand(row, part))
        assert row["cost_usd"] <= row["reserved_usd"]
    most = {mode: max(row["reserved_usd"] for row in rows if row["mode"] == mode) for mode in modes}
    assert most["realtime"] > 1.5 * most["batch"]
    shown = counted(asked.out, cost_report_of)
    assert {mode.name for mode in shown.modes} == {("batch",), ("realtime",)}


@pytest.mark.long
def test_what_an_expired_batch_ran_and_did_not_return_may_have_cost(night):
    unfinished = night(
        "simulated",
        *("expires=#1:0.9", "line_lost=#2,3"),
        play={"speedup": 60},
        batch={"rounds": 1, "fallback": "none"},
    )
    asked = priced(unfinished, HALF, budget_usd=1.0)
    with asked.watched():
        asked.run(limit=10)
    lost = [row for row in asked.attempts if row["status"] == "lost"]
    assert asked.billed.total() > len(asked.answers)  # by the simulator's own truth
    assert {row["cost_usd"] for row in lost} == {None}
    assert len(lost) >= asked.billed.total() - len(asked.answers)
    assert asked.ledger.caps[0].doubted_calls == len(lost)
    spent = math.fsum(
        row["cost_usd"] or row["reserved_usd"] for row in asked.attempts if row not in free(asked)
    )
    assert asked.ledger.caps[0].spent == pytest.approx(spent * 1e12)


def free(asked):
    return [row for row in asked.attempts if row["cost_usd"] == 0]


def open_part(night, *faults, **keys):
    """Leave a part of six requests in a batch that goes on."""
    asked = priced(night("simulated", *faults, play=SLOW), HALF, **keys)
    asked.dies_after(5 if faults else 1000, limit=6)
    [part] = asked.parts
    return asked, part


@pytest.mark.long
def test_what_is_out_from_before_there_was_a_budget_counts_with_the_most_that_it_may_cost(night):
    asked, part = open_part(night)
    most = [row["most_usd"] or 0 for row in manifest_rows(BatchLedger(asked.out).path(part, "manifest"))]
    asked.raw["budget_usd"] = math.fsum(most) * 1.1
    with asked.watched(), pytest.raises((TimeoutError, ExceptionGroup)):
        asked.run_for(100, limit=40)
    [cap] = asked.ledger.caps
    assert cap.reserved == pytest.approx(math.fsum(most) * 1e12)
    assert [part.key for part in asked.parts] == [part.key]
    asked.raw["budget_usd"] = 1
    with asked.watched():
        assert asked.run(limit=6).exit is Exit.COMPLETE
    assert asked.ledger.caps[0].reserved == 0


@pytest.mark.long
def test_what_left_the_sweep_before_it_was_sent_gives_its_reserve_back(night):
    asked, part = open_part(night, "create_dropped=#1", budget_usd=1.0)
    assert part.reserved_usd
    asked.raw["models"][0]["temperature"] = 0.5  # other trials
    with asked.watched():
        asked.run(limit=6)
    assert len(asked.answers) == 6
    assert asked.ledger.caps[0].reserved == 0


@pytest.mark.long
def test_each_further_batch_of_a_part_is_set_aside_and_settled_by_itself(night):
    with (started := night("simulated")).watched():
        priced(started, HALF, budget_usd=1.0).raw["models"][0]["params"]["simulate"]["batch"] |= SLOW
        started.dies_after(1000, limit=3)
    ledger, [account] = BatchLedger(started.out), started.ledger.accounts
    [part] = ledger.parts.values()
    once, reserves = account.reserved, Reserves(ledger, part.alias, account)
    for twin in ("one", "two"):
        ledger.write(part, Step.TWIN, at=1.0, batch_id=twin)
    reserves.follow_twins()
    assert account.reserved == 3 * once
    for twin, used, spent in (("one", None, once), ("two", (0, 0), once)):
        ledger.write(part, Step.TWIN_ENDED, at=1.0, batch_id=twin, used=used)
        reserves.follow_twins()
        assert account.spent == spent
    assert account.reserved == once
    ledger.close()


@pytest.mark.long
@pytest.mark.parametrize("batch", [{}, {"batch": 0.5}], ids=["no batch price", "half"])
def test_a_price_without_one_for_batches_is_told_once(night, batch):
    asked = priced(night(VENDORS[0]), {"input": 1, "output": 2, **batch})
    times = 0 if batch else 1
    assert sum("count at the full price" in line for line in plan(asked.raw).warnings) == times
    asked.run(limit=4)
    assert sum("count at the full price" in line for line in asked.screen.lines) == times
