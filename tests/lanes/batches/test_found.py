"""What drawn nights have found, each played by itself."""

import pytest

from asyncbench.lanes.batches.ledger import Step
from asyncbench.providers.sdk_batches import SdkBatches
from asyncbench.run.summary import Exit
from tests.tiers import first_rows
from tests.world.batches import VENDORS, Forwarded

OPENAI, ANTHROPIC = VENDORS


def check(asked, *, limit):
    assert asked.answers == asked.undisturbed(limit=limit)
    assert asked.billed == dict.fromkeys(asked.answers, 1)


@pytest.mark.long
def test_a_trial_in_a_batch_is_not_asked_under_another_alias(night):
    asked = night(OPENAI)
    asked.dies_after(30, limit=6)
    asked.raw["models"][0]["alias"] = "renamed"
    assert asked.run(limit=12).exit is Exit.UNFINISHED
    assert len(asked.answers) == 6
    [said] = [line for line in asked.screen.lines if "not in the sweep any more" in line]
    assert said.startswith("6 trials are in batches of simulated/")
    del asked.raw["models"][0]["alias"]
    assert asked.run(limit=12).exit is Exit.COMPLETE
    check(asked, limit=12)


@pytest.mark.long
@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_of_downloads_that_all_lack_something_the_fullest_is_taken(night, vendor):
    # The last line can never be read, so that each download lacks it; the last one lacks nearly all.
    asked = night(vendor, "line_broken=#6", "content_cut_in_line=#9", batch={"rounds": 4})
    assert asked.run(limit=6).exit is Exit.COMPLETE
    assert asked.answers == asked.undisturbed(limit=6)
    assert sorted(asked.billed.values()) == [1, 1, 1, 1, 1, 2]  # whose answer nobody could read


@pytest.mark.long
def test_a_cut_answer_is_missed_among_lines_that_were_not_run(night):
    faults = ("expires=#1:0.5", "line_foreign=#6", "content_wrong_length=#1")
    asked = night(OPENAI, *faults, batch={"rounds": 4}, play={"speedup": 60})
    assert asked.run(limit=6).exit is Exit.COMPLETE
    check(asked, limit=6)


def test_a_run_ends_though_a_batch_in_doubt_holds_all_of_the_pool(night):
    asked = night(ANTHROPIC, "create_dropped=#1", batch={"max_requests": 6, "enqueued_tokens": 60})
    assert asked.run(limit=30).exit is Exit.UNFINISHED
    assert asked.billed == dict.fromkeys(asked.answers, 1)


@pytest.mark.long
def test_a_part_that_is_larger_than_the_pool_is_packed_anew(night):
    asked = night(OPENAI, play={"enqueued_tokens": 100}, batch={"max_requests": 20})
    assert asked.run(limit=12).exit is Exit.COMPLETE
    check(asked, limit=12)
    assert sum("pool of enqueued tokens is full" in line for line in asked.screen.lines) <= 3
    left = {path.suffix for path in (asked.out / "batches").glob("*.*")}
    assert left == {".manifest"}  # also of the part that became no batch
    assert Step.NEVER_CREATED in {part.step for part in asked.parts}


@pytest.mark.long
@pytest.mark.parametrize("step_s", [7200.0, -7200.0])
def test_a_clock_that_is_set_before_a_create_hides_no_batch(night, monkeypatch, step_s):
    asked = night(ANTHROPIC, "create_reply_dropped=#1")

    class Set(Forwarded):
        ahead_s = 0.0

        def now(self):
            return super().now() + self.ahead_s

    clock, recent = Set(asked.server), SdkBatches.recent

    async def listed(api, since):
        found = await recent(api, since)
        clock.ahead_s = step_s
        return found

    monkeypatch.setattr(SdkBatches, "recent", listed)
    assert asked.run(limit=6, clock=clock).exit is Exit.COMPLETE
    check(asked, limit=6)


@pytest.mark.long
@pytest.mark.parametrize("first", ["line_foreign=#1", "line_broken=#1"])
def test_a_nameless_batch_is_known_by_any_line_of_its_results(night, first):
    asked = night(ANTHROPIC, "create_reply_dropped=#1", first, batch={"rounds": 4})
    assert asked.run(limit=6).exit is Exit.COMPLETE
    assert asked.answers == asked.undisturbed(limit=6)
    assert not [part.struck for part in asked.parts if part.struck]


def test_a_batch_of_which_too_little_can_be_read_stays_in_doubt(night):
    asked = night(ANTHROPIC, "create_reply_dropped=#1", "line_foreign=#1", "line_broken=#1,2,3,4,5,6")
    assert asked.run(limit=6).exit is Exit.UNFINISHED
    [part] = asked.parts
    assert (part.in_doubt, part.struck) == (True, set())
