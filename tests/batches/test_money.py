"""What batches cost in a run: the batch price for each request, the full one for what real time answers."""

import math

import pytest

from asyncbench.reports.cost import cost_report_on
from asyncbench.run import Exit
from tests.batches.world import VENDORS

HALF = {"input": 1.0, "output": 5.0, "batch": 0.5}
FULL = {"input": 1.0, "output": 5.0}


def priced(asked, price, **keys):
    asked.raw["models"][0] |= {"price": price, "max_tokens": 100}
    asked.raw |= keys
    return asked


def by_hand(row, part):
    return part * (row["input_tokens"] * 1 + row["output_tokens"] * 5) * 1e-6


@pytest.mark.parametrize("vendor", VENDORS)
def test_each_request_costs_the_batch_price_whatever_tier_its_reply_names(night, vendor):
    asked = priced(night(vendor), HALF, budget_usd=1.0)
    assert asked.run().exit is Exit.COMPLETE
    assert len(asked.attempts) == 72
    for row in asked.attempts:
        assert row["cost_usd"] == pytest.approx(by_hand(row, 0.5))
        assert row["cost_usd"] <= row["most_usd"] == row["reserved_usd"]
    report = cost_report_on(asked.out)
    assert [mode.name for mode in report.modes] == [("batch",)]
    assert report.whole.spent.usd_by_kind["not_split"] == 0  # priced again, it comes to the same


def test_half_the_price_reserves_half_and_so_twice_as_much_fits_into_a_budget(night):
    held = {}
    for price in (HALF, FULL):
        asked = priced(night("simulated"), price, budget_usd=1.0)
        asked.run()
        held[price is HALF] = math.fsum(row["reserved_usd"] for row in asked.attempts)
    assert held[True] == pytest.approx(held[False] / 2)


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
    shown = cost_report_on(asked.out)
    assert {mode.name for mode in shown.modes} == {("batch",), ("realtime",)}
