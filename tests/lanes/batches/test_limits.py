"""Pools, budgets, rounds, refusals and interruptions: what a night of batches does at its limits."""

import math
import os
import signal
from collections import Counter

import pytest

from asyncbench import plan
from asyncbench.lanes.batches.ledger import Step
from asyncbench.run.summary import Exit
from tests.simulators import page
from tests.tiers import first_rows
from tests.world.batches import VENDORS, Forwarded

OPENAI, ANTHROPIC = VENDORS


@pytest.mark.long
def test_a_pool_that_stays_full_for_an_hour_is_waited_for(night):
    asked = night(OPENAI, "pool_full=1:3600", batch={"max_requests": 4})
    asked.completes(limit=12)
    assert sum("pool of enqueued tokens is full" in line for line in asked.screen.lines) >= 1
    assert "failed" in {batch["status"] for batch in asked.truth}


@pytest.mark.long
def test_a_small_pool_is_learnt_from_its_refusals(night):
    asked = night(OPENAI, play={"enqueued_tokens": 300}, batch={"max_requests": 6})
    asked.completes(limit=36)


@pytest.mark.long
def test_a_pool_that_is_known_is_never_overrun(night):
    asked = night(OPENAI, play={"enqueued_tokens": 300}, batch={"enqueued_tokens": 250})
    assert asked.run(limit=36).exit is Exit.COMPLETE
    assert {batch["status"] for batch in asked.truth} == {"completed"}


@pytest.mark.long
@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_what_batches_leave_is_asked_in_real_time_after_its_rounds(night, vendor):
    asked = night(vendor, "expires=1:0.5", batch={"rounds": 1}, play={"speedup": 60})
    assert asked.run(limit=12).exit is Exit.COMPLETE
    assert asked.answers == asked.undisturbed(limit=12)
    answered = Counter(row["mode"] for row in asked.attempts if row["status"] == "ok")
    assert answered.total() == 12
    assert min(answered["batch"], answered["realtime"]) > 0
    expired = [row for row in asked.attempts if row["status"] == "expired"]
    assert len(expired) == answered["realtime"]
    assert {row["cost_usd"] for row in expired} == {0.0}
    assert asked.billed.total() == answered["batch"]


@pytest.mark.long
def test_without_a_fallback_the_rest_stays_open_for_the_next_run(night):
    asked = night(OPENAI, "expires=#1:0.5", batch={"rounds": 1, "fallback": "none"}, play={"speedup": 60})
    assert asked.run(limit=12).exit is Exit.UNFINISHED
    done = len(asked.answers)
    assert 0 < done < 12
    asked.completes(limit=12)
    assert {row["mode"] for row in asked.attempts} == {"batch"}


@pytest.mark.long
def test_a_request_that_the_batch_lost_is_asked_again_and_its_cost_is_unknown(night):
    asked = night(OPENAI, "line_lost=#2", batch={"max_requests": 6, "rounds": 3})
    asked.raw["models"][0]["price"] = {"input": 1, "output": 1}
    assert asked.run(limit=6).exit is Exit.COMPLETE
    rows = Counter((row["status"], row["cost_usd"] is None) for row in asked.attempts)
    assert rows[("ok", False)] == 6
    assert rows[("lost", True)] >= 1


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_of_a_batch_that_expires_half_done_the_answers_are_kept_and_the_rest_is_asked_once(night, vendor):
    asked = night(vendor, "expires=#1:0.5")
    asked.completes(limit=12)
    assert asked.answers == asked.undisturbed(limit=12)
    rows = Counter((row["status"], row["cost_usd"]) for row in asked.attempts if row["status"] == "expired")
    assert rows == {("expired", 0.0): 6}
    assert sorted(batch["status"] for batch in asked.truth)[-1] in ("ended", "expired")


def priced(asked, **keys):
    asked.raw["models"][0] |= {"price": {"input": 2, "output": 10}, "max_tokens": 50}
    asked.raw |= keys
    return asked


def spent(asked):
    return math.fsum(row["cost_usd"] for row in asked.attempts)


@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_a_budget_holds_whole_parts_and_gets_back_what_they_did_not_cost(night, vendor):
    asked = priced(night(vendor, batch={"max_requests": 3}), budget_usd=0.006)
    summary = asked.run()
    assert summary.exit is Exit.BUDGET
    assert 0 < spent(asked) <= 0.006
    fitting = 0.006 / min(row["most_usd"] for row in asked.attempts)
    assert len(asked.answers) > fitting  # more than fit at first: lines gave back
    cap = summary.budget.ledger.caps[0]
    counters = next(iter(summary.models.values()))
    assert (cap.reserved, counters.in_flight, counters.in_batches) == (0, 0, 0)
    asked.raw["budget_usd"] = 1
    asked.completes()


@pytest.mark.long
@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_a_budget_a_third_of_the_plan_is_kept_and_leaves_the_rest_for_more_money(night, vendor):
    asked = priced(night(vendor, batch={"max_requests": 10}))
    planned_usd = plan(asked.raw).models[0].cost_usd or 0.0
    asked.raw["budget_usd"] = planned_usd / 3
    assert asked.run().exit is Exit.BUDGET
    assert 0 < spent(asked) <= planned_usd / 3
    assert 0 < len(asked.answers) < 72
    asked.raw["budget_usd"] = 1
    asked.completes()


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_tight_budget_makes_no_chain_of_tiny_batches(night, vendor):
    asked = priced(night(vendor, batch={"max_requests": 72}))
    asked.raw["models"][0]["max_tokens"] = 2000  # a reply takes few of them: each reserves far too much
    planned = plan(asked.raw).models[0]
    asked.raw["budget_usd"] = 6 * (planned.cost_usd_most or 0.0) / 72
    summary = asked.run()
    assert summary.exit is Exit.BUDGET
    assert 0 < len(asked.truth) <= 4
    [said] = [line for line in asked.screen.lines if "chain of small batches" in line]
    for way in ("Raise the budget", "lower `max_tokens`", "--mode realtime"):
        assert way in said
    assert "too little for another batch of a useful size" in summary.as_text()
    assert asked.billed == dict.fromkeys(asked.answers, 1)


@pytest.mark.long
def test_a_small_part_waits_for_the_money_of_those_that_are_under_way(night):
    asked = priced(night(OPENAI, batch={"max_requests": 9}))
    planned = plan(asked.raw).models[0]
    asked.raw["budget_usd"] = 13 * (planned.cost_usd_most or 0.0) / 72
    asked.run()
    sizes = [part.requests for part in asked.parts]
    assert len(sizes) > 2
    assert set(sizes[:-3]) == {9}


@pytest.mark.long
def test_what_is_out_counts_for_the_budget_of_the_next_run(night):
    asked = priced(night(OPENAI), budget_usd=1)
    asked.dies_after(30, limit=10)
    out = sum(part.open for part in asked.parts)
    assert out == 1
    asked.raw["budget_usd"] = 0.001  # less than is out
    summary = asked.run(limit=20)
    assert summary.exit is Exit.BUDGET
    assert len(asked.answers) == 10
    assert len(asked.truth) == 1


@pytest.mark.long
@pytest.mark.parametrize("options", [{"models": ["b"]}, {"detach": True}], ids=["asked alone", "left"])
def test_a_model_does_not_wait_for_money_that_another_one_s_batches_hold(night, options):
    asked = priced(night(OPENAI, play={"latency_s": 40_000}), budget_usd=1)
    (model,) = asked.raw["models"]
    asked.raw["models"] = [{**model, "alias": "a"}, {**model, "alias": "b", "top_p": 0.9, "mode": "realtime"}]
    asked.dies_after(1000, limit=10, models=["a"])
    (part,) = asked.parts
    asked.raw["budget_usd"] = 1.05 * part.reserved_usd  # enough for one call of the other
    assert asked.run(limit=10, **options).exit is Exit.BUDGET
    assert [part.open for part in asked.parts] == [True]


@pytest.mark.long
def test_no_quota_in_a_line_suspends_the_model_and_keeps_the_other_answers(night):
    asked = night(OPENAI, "line_no_quota=#3", batch={"max_requests": 6})
    summary = asked.run(limit=6)
    assert summary.exit is Exit.UNFINISHED
    assert "no_quota" in next(iter(summary.models.values())).suspended
    assert len(asked.answers) == 5
    asked.raw["mode"] = "realtime"
    assert asked.run(limit=6).exit is Exit.COMPLETE


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("create_400=1:billing_hard_limit_reached", "no_quota"),
        ("create_400=1:something_odd", "bad_request"),
        ("failed=1:model_not_found", "no_such_model"),
    ],
)
def test_what_no_waiting_helps_stops_the_model_with_its_reason(night, fault, said):
    asked = night(OPENAI, fault)
    summary = asked.run(limit=6)
    assert summary.exit is Exit.UNFINISHED
    assert next(iter(summary.models.values())).suspended.startswith(said)
    assert asked.billed == {}


class Interrupting(Forwarded):
    """A clock that presses Ctrl-C after some time."""

    def __init__(self, server, after_s):
        super().__init__(server)
        self._after_s = after_s

    async def sleep(self, seconds):
        await super().sleep(seconds)
        self._after_s -= seconds
        if self._after_s < 0:
            os.kill(os.getpid(), signal.SIGINT)
            self._after_s = math.inf


@pytest.mark.long
@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_ctrl_c_leaves_batches_and_the_next_run_collects_them(night, server, vendor):
    asked = night(vendor)
    summary = asked.run(limit=12, clock=Interrupting(server, 30))
    assert summary.exit is Exit.INTERRUPTED
    assert [part.step for part in asked.parts] == [Step.SUBMITTED]
    asked.completes(limit=12)
    assert len(asked.truth) == 1


@pytest.mark.long
def test_a_trial_in_a_batch_is_asked_in_no_other_way(night, server):
    asked = night(OPENAI)
    asked.run(limit=12, clock=Interrupting(server, 30))
    asked.raw["mode"] = "realtime"
    assert asked.run(limit=20).exit is Exit.COMPLETE
    assert Counter(row["mode"] for row in asked.attempts) == {"batch": 12, "realtime": 8}
    assert asked.answers == asked.undisturbed(limit=20)


@pytest.mark.long
def test_an_answer_that_is_asked_for_again_is_replaced(night):
    asked = night(OPENAI)
    asked.run(limit=12)
    wrong = [trial for trial, (outcome, *_) in asked.answers.items() if outcome == "wrong"]
    asked.run(limit=12, retry=["wrong", "no_answer"])
    again = Counter(row["trial_id"] for row in asked.attempts if row["attempt"] == 2)
    assert set(wrong) <= set(again)
    assert len(asked.answers) == 12


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_results_that_are_not_found_are_left_to_later_runs_and_lost_in_the_end(night, server, vendor):
    asked = priced(night(vendor, "file_expired=#1", batch={"fallback": "none"}), budget_usd=1)
    if vendor == ANTHROPIC:
        asked.raw["models"][0]["params"]["simulate"]["batch"]["faults"] = ["results_unknown=#1:9999999"]
    assert asked.run(limit=6).exit is Exit.UNFINISHED
    assert (asked.answers, asked.attempts, len(asked.truth)) == ({}, [], 1)
    assert any("does not find batch" in line for line in asked.screen.lines)
    page(server, "/clock", {"forward_s": 31 * 86_400})
    assert asked.run(limit=6).exit is Exit.COMPLETE
    rows = Counter((row["status"], row["cost_usd"] is None) for row in asked.attempts)
    assert rows == {("lost", True): 6, ("ok", False): 6}
