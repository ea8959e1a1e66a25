"""Drawn nights: faults and deaths at random, and whatever happens every trial is answered and paid once.

A seed that breaks a rule plays the same night again: `ASYNCBENCH_BATCH_NIGHT=7`.
"""

import os
import random

import pytest

from asyncbench.run import Exit
from tests.batches.cuts import CutError, cutting
from tests.batches.world import VENDORS

MANY = 9
NIGHTS = range(60)
FAULTS = {
    "create_500": (0, 0.3),
    "create_reply_dropped": (0, 0.3),
    "create_late": (0, 0.2),
    "create_429": (0, 0.3),
    "create_dropped": (0, 0.3),
    "unlisted": (0, 0.4),
    "unknown": (0, 0.4),
    "unknown_again": (0, 0.3),
    "results_unknown": (0, 0.5),
    "skipped": (0, 0.3),
    "slow_start": (0, 0.3),
    "expires": (0, 0.5),
    "shuffled": (0, 1),
    "content_502": (0, 0.4),
    "content_reset": (0, 0.4),
    "content_cut": (0, 0.4),
    "content_cut_in_line": (0, 0.4),
    "line_429": (0, 0.2),
    "line_500": (0, 0.2),
    "line_504": (0, 0.2),
    "line_expired": (0, 0.2),
    "line_twice": (0, 0.2),
    "line_foreign": (0, 0.2),
    "line_separators": (0, 0.5),
}
OPENAIS = {
    "upload_dropped": (0, 0.3),
    "upload_500": (0, 0.3),
    "pool_full": (0, 0.5),
    "stuck_validating": (0, 0.4),
    "stuck_finalizing": (0, 0.4),
    "output_late": (0, 0.5),
    "empty_ids": (0, 0.5),
    "line_status_0": (0, 0.2),
    "line_missing": (0, 0.2),
}
CUT = ("create", "upload", "recent", "retrieve", "download", "read", "delete_input")
LINES = (
    "submitting",
    "submitted",
    "ended",
    "downloading",
    "collected",
    "refused",
    "fencing",
    "fenced",
    "struck",
)


def drawn(seed):
    """Return vendor, faults, and the points of some deaths."""
    draw = random.Random(f"batches/{seed}")
    vendor = draw.choice(VENDORS)
    known = FAULTS | (OPENAIS if vendor == "simulated" else {})
    if vendor != "simulated":  # of a nameless batch that nobody handled nobody can know
        known = {name: rate for name, rate in known.items() if name != "create_dropped"}
    names = draw.sample(sorted(known), draw.randint(0, 4))
    faults = [f"{name}={draw.uniform(*known[name]):.3f}" for name in names]
    points = []
    for _ in range(draw.randint(0, 3)):
        what = draw.choice([*CUT, *(f"line {step}" for step in LINES)])
        when = draw.choice(["before", "after"]) if what != "read" else "before"
        points.append(f"{when} {what} {draw.randint(1, 4)}")
    return vendor, faults, points


@pytest.mark.one_in(10)
@pytest.mark.parametrize("seed", NIGHTS)
def test_whatever_happens_every_trial_is_answered_and_none_is_paid_twice(night, seed):
    seed = int(os.environ.get("ASYNCBENCH_BATCH_NIGHT", seed))
    vendor, faults, points = drawn(seed)
    batch = {"max_requests": 4, "rounds": 9, "on_doubt": "wait"}
    asked = night(vendor, *faults, batch=batch, model=f"noisy-{10_000 + seed}")
    for point in points:
        with cutting(point):
            try:
                asked.run(limit=MANY)
            except (CutError, ExceptionGroup):
                continue
    summary = asked.run(limit=MANY)
    told = seed, faults, points, asked.screen.lines, asked.parts
    assert set(asked.billed.values()) <= {1}, told
    if summary.exit is not Exit.COMPLETE and any(part.in_doubt for part in asked.parts):
        asked.raw["batch"] = {
            **batch,
            "on_doubt": "resubmit",
        }  # it may be paid twice, but nothing was created
        summary = asked.run(limit=MANY)
    assert summary.exit is Exit.COMPLETE, told
    assert asked.answers == asked.undisturbed(limit=MANY), told
    real = {row["trial_id"] for row in asked.attempts if row["mode"] == "realtime"}
    assert asked.billed == dict.fromkeys(asked.answers.keys() - real, 1), told
    calls = [(row["trial_id"], row["attempt"]) for row in asked.attempts]
    assert len(set(calls)) == len(calls), told
