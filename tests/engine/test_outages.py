"""After an outage a lane is back at its speed within ten seconds of the first good answer."""

from dataclasses import dataclass

import pytest

from asyncbench.errors import ErrorKind
from asyncbench.records import Limits, RetryPolicy
from tests.tiers import first_rows
from tests.world.nights import Scenario, Spell, play

OUTAGE_S = 44.0
BACK_S = 10.0  # from the first good answer after the outage
WINDOW_S = 5.0  # in which a rate is counted
STAYS = 0.75  # the same, over a longer time
SPEED = 0.8  # of the rate before the outage: what 3 % of refusals leave of it, and chance


@dataclass(frozen=True, kw_only=True)
class Lane:
    """A lane at its speed, and when its outage begins."""

    rpm_set: int | None = None  # that the sweep names
    slots: int | None = None  # likewise
    rpm: float | None = None  # that the server enforces
    told: bool = False  # in the headers
    per_s: float  # the calls a second before the outage, about
    begins_s: float


LANES = {
    "told": Lane(rpm=600.0, told=True, per_s=10.0, begins_s=70.0),
    "configured": Lane(rpm_set=600, rpm=600.0, per_s=10.0, begins_s=70.0),
    "untold": Lane(rpm=600.0, per_s=10.0, begins_s=70.0),
    "untold-late": Lane(rpm=600.0, per_s=10.0, begins_s=200.0),
    "slots": Lane(slots=20, per_s=32.0, begins_s=30.0),
}
FAILURES = {
    "503": ErrorKind.OVERLOADED,
    "500": ErrorKind.SERVER_ERROR,
    "refused": ErrorKind.UNREACHABLE,
    "silent": None,
}
CASES = first_rows(
    4,
    [
        ("untold", "503", 0.03, 1),
        ("slots", "503", 0.03, 0),
        ("configured", "500", 0.03, 0),
        ("told", "silent", 0.0, 0),
        *(
            (lane, failure, refused, seed)
            for lane in LANES
            for failure in FAILURES
            for refused in (0.0, 0.03)
            for seed in (0, 1)
        ),
    ],
)


@pytest.mark.parametrize(("lane", "failure", "refused", "seed"), CASES)
def test_a_lane_is_back_at_its_speed(lane, failure, refused, seed):
    lane = LANES[lane]
    ends_s = lane.begins_s + OUTAGE_S
    spells = [Spell(begins_s=lane.begins_s, ends_s=ends_s, kind=FAILURES[failure])]
    if refused:
        spells.append(Spell(begins_s=0, ends_s=1e9, kind=ErrorKind.RATE_LIMITED, share=refused))
    night = Scenario(
        seed=seed,
        told=lane.told,
        configured=Limits(rpm=lane.rpm_set, concurrency=lane.slots),
        real={} if lane.rpm is None else {"requests": lane.rpm},
        trials=int(lane.per_s * (lane.begins_s + 60.0)),
        latency="lognormal",
        latency_s=0.5,
        deadline_s=20.0,
        retry=RetryPolicy(attempts=30, total_s=36_000),
        spells=tuple(spells),
    )
    played, *_ = play(night)
    calls = [
        (c.sent_s - played.began_s, c.ended_s - played.began_s)
        for c in played.service.calls
        if c.status == "ok"
    ]
    ended_s = [at_s for _, at_s in calls]

    def per_s(from_s: float, seconds: float) -> float:
        return sum(from_s <= at_s < from_s + seconds for at_s in ended_s) / seconds

    first_s = min(at_s for sent_s, at_s in calls if sent_s >= ends_s)
    before = min(lane.per_s, per_s(lane.begins_s - 20.0, 20.0))
    starts = [first_s + step / 2 for step in range(int(2 * BACK_S) + 1)]
    best = max(per_s(from_s, WINDOW_S) for from_s in starts)
    assert best >= SPEED * before

    # It stays about there, and does not fall back with the next refusals.
    assert per_s(first_s + BACK_S, 25.0) >= STAYS * before
