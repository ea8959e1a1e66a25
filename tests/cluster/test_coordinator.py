"""One run on several workers: each trial once, and the limits of one process."""

import asyncio
from bisect import bisect_left
from dataclasses import replace

import pytest

from asyncbench.cluster.dealt_lane import DealtLane
from asyncbench.cluster.split_lane import SplitLane
from asyncbench.records import Ended, Limits, Model, Request, Result, Sent
from tests.cluster.small_fleet import SmallFleet
from tests.engine.night import MODEL, Desk, requests, virtually

WHOLE, SPLIT = 1_000.0, 1.0  # calls a second that a worker carries


def asked(alias: str, count: int, limits: Limits) -> tuple[list[Request], Model]:
    model = replace(MODEL, alias=alias, limits=limits)
    named = [
        replace(one, trial=replace(one.trial, trial_id=f"{alias} {i}"))
        for i, one in enumerate(requests(count, model))
    ]
    return named, model


def played(fleet: SmallFleet, *lanes: tuple[list[Request], Model]) -> SmallFleet:
    async def play() -> SmallFleet:
        fleet.open()
        for lane in lanes:
            fleet.lane(*lane)
        async with asyncio.timeout(3_600):
            return await fleet.go()

    return virtually(play())


@pytest.mark.parametrize(("carries", "kind"), [(WHOLE, DealtLane), (SPLIT, SplitLane)])
def test_every_trial_is_asked_once_and_written_down_by_its_worker(carries, kind):
    desk = Desk()
    lanes = [asked(alias, 100, Limits(rpm=600)) for alias in ("a", "b")]
    fleet = played(SmallFleet(ask=desk.ask, carries=carries), *lanes)
    assert {type(lane) for lane in fleet.lanes} == {kind}
    ids = {one.trial.trial_id for requests_of, _ in lanes for one in requests_of}
    for event in (Sent, Ended, Result):
        assert len(fleet.of(event)) == len(ids) == len(desk.calls)
        assert not fleet.own.of(event)
    assert {result.trial.trial_id for result in fleet.of(Result)} == ids
    assert [lane.askers[0].counters.done for lane in fleet.lanes] == [100, 100]


def test_a_split_lane_keeps_the_limit_of_one_process():
    desk = Desk()
    played(SmallFleet(ask=desk.ask, carries=SPLIT, workers=3), asked("a", 600, Limits(rpm=600)))
    times = [at_s for at_s, _ in desk.calls]
    in_a_second = [bisect_left(times, at_s + 1.0) - i for i, at_s in enumerate(times)]
    assert max(in_a_second) <= 11
    assert times[-1] - times[99] <= 50 / 0.99  # as soon as it is known that the model answers


@pytest.mark.parametrize("carries", [WHOLE, SPLIT])
def test_no_more_is_spent_than_the_budget_and_nothing_stays_set_aside(carries):
    desk = Desk()
    lanes = [asked(alias, 500, Limits(rpm=600)) for alias in ("a", "b")]
    fleet = played(SmallFleet(ask=desk.ask, carries=carries, budget_usd=0.01), *lanes)
    assert fleet.ledger is not None
    (cap,) = fleet.ledger.caps
    assert cap.spent == len(desk.calls) * 20_000_000  # $0.00002 each
    assert cap.limit - 1_000_000_000 <= cap.spent <= cap.limit  # all but the most that a call may cost
    assert (cap.reserved, cap.doubted) == (0, 0)
    assert all(lane.askers[0].counters.budget_stopped for lane in fleet.lanes)
