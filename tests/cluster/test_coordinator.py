"""One run on several workers: each trial once, and the limits of one process."""

import asyncio
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from asyncbench.cluster.cluster_worker import StaleOrdersError
from asyncbench.cluster.coordinator import PATIENCE_S, Coordinator, RivalError
from asyncbench.cluster.messages import JournalSummary, WorkerReport
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Ended, History, Limits, Model, Reply, Request, Result, RetryPolicy, Sent
from tests.world.clock import virtually
from tests.world.fleets import news_of
from tests.world.night import MODEL, Desk, NightClient, known_of, requests
from tests.world.small_fleet import Beside, SmallFleet, now_s


def asked(alias: str, count: int, limits: Limits) -> tuple[list[Request], Model]:
    model = replace(MODEL, alias=alias, limits=limits)
    named = [
        replace(one, trial=replace(one.trial, trial_id=f"{alias} {i}"))
        for i, one in enumerate(requests(count, model))
    ]
    return named, model


def played(
    fleet: SmallFleet,
    *lanes: tuple[list[Request], Model],
    known: Mapping[str, History] | None = None,
    beside: Beside | None = None,
) -> SmallFleet:
    async def play() -> SmallFleet:
        fleet.open()
        for lane in lanes:
            fleet.lane(*lane, known)
        async with asyncio.timeout(3_600):
            return await fleet.go(beside)

    return virtually(play())


def test_every_trial_is_asked_once_and_written_down_by_its_worker():
    desk = Desk()
    lanes = [asked(alias, 100, Limits(rpm=600)) for alias in ("a", "b")]
    fleet = played(SmallFleet(ask=desk.ask), *lanes)
    ids = {one.trial.trial_id for requests_of, _ in lanes for one in requests_of}
    for event in (Sent, Ended, Result):
        assert len(fleet.of(event)) == len(ids) == len(desk.calls)
        assert not fleet.own.of(event)
    assert {result.trial.trial_id for result in fleet.of(Result)} == ids
    assert [lane.clients[0].counters.done for lane in fleet.lanes] == [100, 100]


def test_a_worker_that_does_not_start_is_not_waited_for():
    desk = Desk()
    played(SmallFleet(ask=desk.ask, workers=2, absent=1), asked("a", 10, Limits(rpm=600)))
    assert desk.calls[0][0] < PATIENCE_S


@pytest.mark.long
def test_a_lane_of_a_worker_keeps_the_limit_of_one_process():
    desk = Desk()
    played(SmallFleet(ask=desk.ask, workers=3), asked("a", 600, Limits(rpm=600)))
    times = [at_s for at_s, _ in desk.calls]
    in_a_second = [bisect_left(times, at_s + 1.0) - i for i, at_s in enumerate(times)]
    assert max(in_a_second) <= 11
    assert times[-1] - times[99] <= 50 / 0.99  # as soon as it is known that the model answers


@pytest.mark.long
def test_no_more_is_spent_than_the_budget_and_nothing_stays_set_aside():
    desk = Desk()
    lanes = [asked(alias, 500, Limits(rpm=600)) for alias in ("a", "b")]
    fleet = played(SmallFleet(ask=desk.ask, budget_usd=0.01), *lanes)
    assert fleet.ledger is not None
    (cap,) = fleet.ledger.caps
    assert cap.spent == len(desk.calls) * 20_000_000  # $0.00002 each
    assert cap.limit - 1_000_000_000 <= cap.spent <= cap.limit  # all but the most that a call may cost
    assert (cap.reserved, cap.doubted) == (0, 0)
    assert all(lane.clients[0].counters.budget_stopped for lane in fleet.lanes)


def test_a_lane_without_money_ends_although_answers_were_to_be_graded():
    desk = Desk()
    requests_of, model = asked("a", 700, Limits(rpm=6_000))
    before = played(SmallFleet(ask=desk.ask), (requests_of[100:], model))
    answered = known_of(before.of(Sent) + before.of(Ended))
    fleet = played(SmallFleet(ask=desk.ask, budget_usd=0.002), (requests_of, model), known=answered)
    assert fleet.lanes[0].clients[0].counters.budget_stopped
    assert len(fleet.of(Sent)) < 100


# ── what a person does while it goes on ──────────────────────────────────────────────────────


def times_of(desk: Desk, begins_s: float, ends_s: float) -> list[float]:
    return [at_s for at_s, _ in desk.calls if begins_s < at_s <= ends_s]


def test_other_limits_hold_wherever_the_lane_is():
    desk = Desk()

    async def lower(fleet: SmallFleet) -> None:
        await asyncio.sleep(10.0)
        fleet.lanes[0].steered.set_limits(Limits(rpm=60))

    fleet = played(SmallFleet(ask=desk.ask), asked("a", 130, Limits(rpm=600)), beside=lower)
    assert len(times_of(desk, 11, 31)) <= 21
    assert len(desk.calls) == len(fleet.of(Result)) == 130


def test_a_pause_holds_at_every_worker_until_it_is_over():
    desk = Desk()

    async def pause(fleet: SmallFleet) -> None:
        for at_s, paused in ((5.0, True), (65.0, False)):
            await asyncio.sleep(at_s - now_s())
            for lane in fleet.lanes:
                lane.clients[0].counters.paused = paused
                lane.apply_pause()

    fleet = SmallFleet(ask=desk.ask)
    played(fleet, *(asked(alias, 100, Limits(rpm=600)) for alias in ("a", "b")), beside=pause)
    assert not times_of(desk, 5.6, 65.0)
    assert times_of(desk, 65.0, 66.0)
    assert len(desk.calls) == 200


async def stop(fleet: SmallFleet, drain_s: float) -> None:
    await asyncio.sleep(10.0)
    fleet.scheduler.stop(drain_s=drain_s)
    fleet.coordinator.stop(drain_s)


def test_a_run_that_is_stopped_begins_nothing_more_and_ends_what_is_in_flight():
    desk = Desk(latency_s=2.0)
    patient = partial(stop, drain_s=30.0)
    fleet = played(SmallFleet(ask=desk.ask), asked("a", 500, Limits(rpm=600)), beside=patient)
    assert not times_of(desk, 10.6, 3_600)
    assert len(fleet.of(Result)) == len(desk.calls) < 500
    assert not [ended for ended in fleet.of(Ended) if ended.attempt.status != "ok"]


def test_what_is_given_up_after_a_drain_is_written_down_as_lost():
    desk = Desk(latency_s=100.0)
    short = partial(stop, drain_s=5.0)
    fleet = played(SmallFleet(ask=desk.ask), asked("a", 500, Limits(rpm=600)), beside=short)
    lost = [ended.attempt.status for ended in fleet.of(Ended)]
    assert set(lost) == {"lost"}
    assert len(lost) == len(fleet.of(Sent)) == len(desk.calls)


# ── what workers find out ────────────────────────────────────────────────────────────────────


def test_a_key_that_is_refused_at_a_worker_suspends_its_model_everywhere():
    desk = Desk()

    async def ask(request: Request) -> Reply:
        if now_s() > 5.0:
            raise ProviderError(ErrorKind.AUTH, "no such key", http_status=401)
        return await desk.ask(request)

    told: list[str] = []

    async def listen(fleet: SmallFleet) -> None:
        client = fleet.lanes[0].clients[0]
        assert isinstance(client, NightClient)
        client.records.note_suspension = told.append

    fleet = played(SmallFleet(ask=ask), asked("a", 500, Limits(rpm=600)), beside=listen)
    assert told == ["auth: no such key"]
    assert fleet.lanes[0].clients[0].counters.suspended == "auth: no such key"
    assert len(fleet.of(Sent)) < 60


@pytest.mark.parametrize("readable", [True, False])
def test_a_trial_of_which_workers_die_is_left_to_another_run(readable):
    desk, deadly = Desk(latency_s=0.2), asyncio.Queue[str]()

    async def ask(request: Request) -> Reply:
        if request.trial.trial_id == "a 0":
            await asyncio.sleep(1.0)
            deadly.put_nowait(request.trial.trial_id)
            await asyncio.sleep(100.0)
        return await desk.ask(request)

    async def die(fleet: SmallFleet) -> None:
        for n in range(20):
            await deadly.get()
            name = f"w{n}-e1"
            fleet.kill(name, news_of(fleet.journals[name]) if readable else None)

    requests_of, model = asked("a", 100, Limits(rpm=600))
    model = replace(model, retry=RetryPolicy(attempts=3))
    fleet = played(SmallFleet(ask=ask, workers=1), (requests_of, model), beside=die)
    assert [sent.trial_id for sent in fleet.of(Sent)].count("a 0") == 3
    assert fleet.lanes[0].clients[0].counters.done == 99


def test_what_a_dead_worker_spent_is_added_to_what_a_trial_cost_before():
    desk = Desk(latency_s=5.0)

    async def die(fleet: SmallFleet) -> None:
        await asyncio.sleep(3.0)
        told = History(attempts=2, cost_usd=0.25)
        fleet.kill("w0-e1", JournalSummary(histories={"a 0": told}))

    requests_of, model = asked("a", 1, Limits(rpm=600))
    fleet = played(
        SmallFleet(ask=desk.ask, workers=1),
        (requests_of, model),
        known={"a 0": History(attempts=1, cost_usd=0.5)},
        beside=die,
    )
    (result,) = fleet.of(Result)
    assert result.cost_usd == pytest.approx(0.75 + 0.00002)
    assert result.attempts == 3


def test_calls_whose_answers_a_dead_worker_wrote_down_are_not_lost():
    desk, open_then = Desk(latency_s=5.0), []

    async def die(fleet: SmallFleet) -> None:
        await asyncio.sleep(5.45)
        journal = fleet.journals["w0-e1"]
        open_then.append(len(fleet.of(Sent)) - len(fleet.of(Ended)))
        fleet.kill("w0-e1", news_of(journal))

    fleet = played(SmallFleet(ask=desk.ask, workers=1), asked("a", 10, Limits(rpm=600)), beside=die)
    assert 0 < open_then[0] < 10
    assert fleet.lanes[0].clients[0].counters.lost == open_then[0]


# ── who rules ────────────────────────────────────────────────────────────────────────────────


def a_coordinator(epoch: int) -> Coordinator:
    return Coordinator(epoch=epoch, workers=1, now_s=float, notify=print)


def test_a_coordinator_ends_when_a_later_one_rules():
    with pytest.raises(RivalError):
        a_coordinator(1).answer(WorkerReport(worker="w", epoch=2, number=0))


def test_a_worker_that_was_given_up_is_told_to_end():
    coordinator = a_coordinator(1)
    orders = coordinator.join("w")
    coordinator.lose("w")
    assert coordinator.answer(WorkerReport(worker="w", epoch=1, number=orders.number)).ends


def test_a_report_that_comes_again_gets_the_same_orders():
    coordinator = a_coordinator(1)
    report = WorkerReport(worker="w", epoch=1, number=coordinator.join("w").number)
    assert coordinator.answer(report) is coordinator.answer(report)


def test_a_worker_obeys_the_later_of_two_coordinators_alone():
    async def rule() -> None:
        worker = SmallFleet(ask=Desk().ask).worker("w")
        living = asyncio.create_task(worker.run())
        await worker.exchange(a_coordinator(2).join("w"))
        with pytest.raises(StaleOrdersError):
            await worker.exchange(a_coordinator(1).join("w"))
        worker.end(0.0)
        await living

    virtually(rule())
