"""A process that dies at any step of a batch: the next run adopts, collects, and asks what is missing."""

import signal
from itertools import chain

import orjson
import pytest

from asyncbench.lanes.batches.ledger import Step
from asyncbench.run.summary import Exit
from tests.processes import Forked
from tests.world.batches import VENDORS, Night
from tests.world.cuts import CutError, cutting

MANY = 6  # trials of a night: two parts
STEPS = {
    "simulated": ("uploading", "uploaded"),
    "simulated-anthropic": (),
}
CALLS = {
    "simulated": ("upload", "create", "recent", "download", "delete_input"),
    "simulated-anthropic": ("create", "recent", "download"),
}
COMMON = ("prepared", "submitting", "submitted", "ended", "downloading", "collected", "cleaning", "cleaned")


def points(vendor):
    """Before and after each line of the ledger and each call, and in the middle of the results."""
    lines = [f"line {step}" for step in (*COMMON, *STEPS[vendor])]
    both = chain.from_iterable((f"before {at}", f"after {at}") for at in (*lines, *CALLS[vendor]))
    return [*(f"{at} 1" for at in both), "before read 2", "before line submitted 2"]


CASES = [(vendor, point) for vendor in VENDORS for point in points(vendor)]


def nobody_can_know(vendor, point):
    """Whether a cut leaves a batch in doubt for good: it has no name, and was perhaps created."""
    return vendor == "simulated-anthropic" and point in ("after line submitting 1", "before create 1")


@pytest.fixture(scope="module")
def undisturbed(server, problems, tmp_path_factory):
    def answers(vendor):
        if vendor not in found:
            folder = tmp_path_factory.mktemp("real time")
            found[vendor] = Night(server, problems, folder, vendor, model="noisy").undisturbed(limit=MANY)
        return found[vendor]

    found = {}
    return answers


def check(asked, expected, *, unknown=False):
    """Take the night up, and see that every trial has its answer and was paid once."""
    summary = asked.run(limit=MANY)
    if unknown:
        assert summary.exit is Exit.UNFINISHED
        assert set(asked.billed.values()) <= {1}
        asked.raw["batch"] = {**asked.raw["batch"], "on_doubt": "resubmit"}
        summary = asked.run(limit=MANY)
    assert summary.exit is Exit.COMPLETE, (asked.screen.lines, asked.parts)
    assert asked.answers == expected
    assert asked.billed == dict.fromkeys(asked.answers, 1)
    assert [row["attempt"] for row in asked.attempts] == MANY * [1]
    ended = {Step.CLEANED, Step.NEVER_CREATED, Step.GIVEN_UP}
    assert {part.step for part in asked.parts} <= ended


@pytest.mark.long
@pytest.mark.parametrize(("vendor", "point"), CASES)
def test_a_run_that_is_cut_off_anywhere_is_taken_up(night, undisturbed, vendor, point):
    asked = night(vendor, model="noisy", batch={"max_requests": 3})
    with cutting(point) as cutter, pytest.raises((CutError, ExceptionGroup)):
        asked.run(limit=MANY)
    assert cutter.cut
    check(asked, undisturbed(vendor), unknown=nobody_can_know(vendor, point))


KILLED = (
    ("simulated", "after line prepared 1"),
    ("simulated", "after upload 1"),
    ("simulated", "after line submitting 2"),
    ("simulated", "after create 1"),
    ("simulated", "after line ended 1"),
    ("simulated", "before read 2"),
    ("simulated-anthropic", "after create 1"),
    ("simulated-anthropic", "before read 5"),
)


ELSEWHERE = [pytest.param(*case, marks=pytest.mark.soak) for case in CASES if case not in KILLED]


@pytest.mark.parametrize(("vendor", "point"), [*KILLED, *ELSEWHERE])
def test_a_process_that_is_killed_is_taken_up(night, server, undisturbed, vendor, point):
    asked = night(vendor, model="noisy", batch={"max_requests": 3})
    words = (point, server.url, orjson.dumps(asked.raw).decode(), orjson.dumps({"limit": MANY}).decode())
    assert Forked("tests.world.cuts", *words).wait() == -signal.SIGKILL
    check(asked, undisturbed(vendor), unknown=nobody_can_know(vendor, point))
