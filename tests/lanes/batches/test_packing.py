"""What goes into a batch: as much as a vendor takes, and no line that makes the others fail."""

from collections import Counter

import pytest

from asyncbench.lanes.batches import submitting
from asyncbench.lanes.batches.ledger import Step
from asyncbench.lanes.batches.packing import manifest_rows
from asyncbench.providers import endpoints
from asyncbench.run.summary import Exit
from tests.world.batches import VENDORS

OPENAI, ANTHROPIC = VENDORS


@pytest.mark.long
def test_a_part_that_never_fits_into_the_pool_is_sent_in_smaller_ones(night):
    asked = night(OPENAI, play={"enqueued_tokens": 400})
    asked.completes(limit=36)
    first, *others = asked.parts
    assert (first.step, first.requests) == (Step.NEVER_CREATED, 36)
    assert sum(part.requests for part in others) == 36
    assert max(part.tokens for part in others) <= 360
    assert asked.answers == asked.undisturbed(limit=36)


@pytest.mark.long
def test_models_of_one_key_share_the_queue_of_requests(night):
    asked = night(ANTHROPIC, play={"waiting_requests": 20}, batch={"max_requests": 12})
    twin = dict(asked.raw["models"][0], alias="twin", model=f"{ANTHROPIC}/oracle")
    asked.raw["models"].append(twin)
    asked.completes(limit=24)
    assert len(asked.answers) == 48
    assert sum("queue of requests in batches is full" in line for line in asked.screen.lines) >= 1
    assert max(part.requests for part in asked.parts) <= 18


def test_parts_of_two_models_never_have_the_same_number_of_requests(night):
    asked = night(ANTHROPIC)
    asked.raw["models"].append(dict(asked.raw["models"][0], alias="twin", model=f"{ANTHROPIC}/oracle"))
    assert asked.run(limit=6).exit is Exit.COMPLETE
    sizes = [part.requests for part in asked.parts]
    assert sum(sizes) == 12
    assert len(set(sizes)) == len(sizes)


@pytest.mark.long
def test_no_more_batches_are_created_an_hour_than_the_vendor_takes(night, monkeypatch):
    monkeypatch.setattr(submitting, "MOST_AN_HOUR", 2)
    asked = night(OPENAI, batch={"max_requests": 3})
    assert asked.run(limit=12).exit is Exit.COMPLETE
    assert len(asked.answers) == 12
    created_at = sorted(part.created_at for part in asked.parts)
    assert len(created_at) == 4
    assert created_at[2] - created_at[0] >= 3600 > created_at[1] - created_at[0]


def bytes_of(asked):
    """The bytes of each trial's line."""
    (part,) = asked.parts
    rows = manifest_rows(asked.out / "batches" / f"{part.key}.manifest")
    return {row["trial_id"]: row["bytes"] for row in rows}


@pytest.mark.long
def test_a_request_that_is_longer_than_a_batch_may_be_fails_alone(night, monkeypatch):
    usual = night(OPENAI, model="oracle")
    usual.run(limit=12)
    sizes = bytes_of(usual)
    most = max(sizes.values())
    monkeypatch.setitem(endpoints.LARGEST_BATCHES, "openai", (50_000, most - 1))
    asked = night(OPENAI, model="oracle")
    asked.run(limit=12)
    failed = {trial_id for trial_id, (outcome, *_) in asked.answers.items() if outcome == "failed"}
    assert failed == {trial_id for trial_id, size in sizes.items() if size == most}
    assert len(asked.answers) == 12 > len(failed) > 0
    rows = Counter((row["status"], row["cost_usd"]) for row in asked.attempts if row["batch_id"] is None)
    assert rows == {("too_long", 0.0): len(failed)}


@pytest.mark.long
@pytest.mark.parametrize("line", [1, 12])
def test_a_line_that_the_vendor_names_fails_alone_and_the_rest_is_sent_again(night, line):
    asked = night(OPENAI, f"failed=#1:invalid_request@{line}", batch={"rounds": 1, "fallback": "none"})
    asked.run(limit=12)
    outcomes = Counter(outcome for outcome, *_ in asked.answers.values())
    assert (outcomes["failed"], outcomes.total()) == (1, 12)
    assert len(asked.truth) == 2
    assert asked.billed.total() == 11
