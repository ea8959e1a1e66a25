"""A queue in front of slots: exact whenever it is looked at, on a clock of one's own and behind HTTP."""

import asyncio
import math
from itertools import pairwise
from random import Random
from statistics import fmean, median, stdev

import pytest
from hypothesis import given, strategies as st

from asyncbench.simulator.limits import NEVER, SERVICES, Freeze, ServiceLine, ServiceQueue
from asyncbench.simulator.settings import parse_fault
from tests.world.clock import virtually

QUESTION = "What is 10 + 10?"
SECONDS = st.floats(0, 9, allow_nan=False)


def served_in_turn(jobs, slots):
    """When each job begins and ends, by theory: the first free slot takes the first in line."""
    free_s, found = [0.0] * slots, []
    for arrived_s, service_s in jobs:
        free_s.sort()
        begun_s = max(arrived_s, free_s[0])
        free_s[0] = begun_s + service_s
        found.append((begun_s, free_s[0]))
    return found


# ── the queue itself ─────────────────────────────────────────────────────────────────────────


@given(st.lists(st.tuples(SECONDS, SECONDS)), st.integers(1, 4), st.lists(st.floats(0, 100, allow_nan=False)))
def test_whoever_looks_at_it_and_when_jobs_are_served_in_turn(jobs, slots, looks):
    queue, jobs = ServiceQueue(slots, NEVER), sorted(jobs)
    moments = sorted([*((at_s, 1, n) for n, (at_s, _) in enumerate(jobs)), *((at_s, 0, 0) for at_s in looks)])
    begun, came = [], []
    for at_s, arrives, n in moments:
        if arrives:
            came.append(queue.arrive(jobs[n][1], at_s))
        begun += queue.begin(at_s)
    begun += queue.begin(math.inf)

    assert begun == came
    assert [(job.started_s, job.done_s) for job in begun] == served_in_turn(jobs, slots)
    assert queue.next_s is None


def test_without_a_number_of_slots_nobody_waits():
    queue = ServiceQueue(None, NEVER)
    jobs = [queue.arrive(5.0, at_s) for at_s in (1.0, 1.0, 2.0)]

    assert queue.begin(2.0) == jobs
    assert [(job.started_s, job.done_s) for job in jobs] == [(1.0, 6.0), (1.0, 6.0), (2.0, 7.0)]


def test_who_leaves_is_not_served_and_who_is_served_frees_the_slot():
    queue = ServiceQueue(1, NEVER)
    served, waits, last = (queue.arrive(10.0, at_s) for at_s in (0.0, 1.0, 2.0))
    queue.begin(2.0)
    queue.leave(waits, 3.0)
    assert queue.next_s == 10.0
    queue.leave(served, 4.0)

    assert queue.begin(4.0) == [last]
    assert (waits.started_s, last.started_s, last.done_s) == (None, 4.0, 14.0)
    queue.leave(served, 5.0)  # who has left changes nothing
    assert (queue.arrive(1.0, 6.0).started_s, queue.next_s) == (None, 14.0)


@pytest.mark.parametrize("slots", [1, None])
def test_a_frozen_server_begins_nothing_and_ends_nothing(slots):
    queue = ServiceQueue(slots, Freeze(10.0, 5.0))
    times = [(8.0, 1.0), (9.5, 1.0), (12.0, 1.0), (20.0, 1.0)]
    jobs = []
    for arrived_s, service_s in times:
        jobs.append(queue.arrive(service_s, arrived_s))
        queue.begin(arrived_s)
    queue.begin(30.0)

    third = 15.5 if slots else 15.0
    assert [job.started_s for job in jobs] == [8.0, 9.5, third, 20.0]
    assert [job.done_s for job in jobs] == [9.0, 15.5, third + 1.0, 21.0]


@pytest.mark.parametrize(("name", "middle", "spread"), [
    ("fixed", 1.0, 0.0),
    ("exponential", math.log(2), 1.0),
    ("lognormal", math.exp(-0.125), math.sqrt(math.exp(0.25) - 1)),
])  # fmt: skip
def test_service_times_have_the_mean_of_one_and_the_spread_of_their_name(name, middle, spread):
    random = Random(1)
    drawn = [SERVICES[name](random, 0.5) for _ in range(20_000)]

    assert fmean(drawn) == pytest.approx(1.0, rel=0.02)
    assert median(drawn) == pytest.approx(middle, rel=0.03)
    assert stdev(drawn) == pytest.approx(spread, rel=0.05)


# ── on an event loop ─────────────────────────────────────────────────────────────────────────


def test_on_a_loop_each_is_told_when_it_is_served():
    async def main():
        line, loop, told = ServiceLine(2), asyncio.get_running_loop(), []

        async def call(n):
            await asyncio.sleep(n / 10)
            begun_s = await line.begun_s(line.enter(1.0))
            told.append((n, round(begun_s, 4), round(loop.time(), 4)))

        await asyncio.gather(*map(call, range(5)))
        return told

    told = virtually(main())
    assert told == [(0, 0, 0), (1, 0.1, 0.1), (2, 1, 1), (3, 1.1, 1.1), (4, 2, 2)]


def test_on_a_loop_who_is_cancelled_makes_room():
    async def main():
        line = ServiceLine(1)
        first, second = line.enter(10.0), line.enter(10.0)
        waits = asyncio.create_task(line.begun_s(second))
        await asyncio.sleep(1)
        waits.cancel()
        line.leave(second)
        third = line.enter(1.0)
        await asyncio.sleep(2)
        line.leave(first)
        return await line.begun_s(third)

    assert virtually(main()) == pytest.approx(3.0, abs=0.001)


# ── behind HTTP ──────────────────────────────────────────────────────────────────────────────


async def arrivals(client):
    return (await client.send("GET", "/stats/arrivals")).body["arrivals"]


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_wait_for_a_slot_and_the_server_says_since_when(simulator, wire, stream):
    client = await simulator(slots=1, latency_s=0.02, service="fixed")
    answers = await asyncio.gather(*(client.ask(QUESTION, wire=wire, stream=stream) for _ in range(5)))

    rows = await arrivals(client)
    header = "request-id" if wire == "anthropic" else "x-request-id"
    assert {row["request_id"] for row in rows} == {answer.headers[header] for answer in answers}
    for row in rows:
        assert (row["model"], row["status"]) == ("oracle", 200)
        assert row["arrived_s"] <= row["started_s"] < row["first_byte_s"] <= row["last_byte_s"]
        assert row["last_byte_s"] >= row["started_s"] + 0.02
        assert (row["first_byte_s"] < row["last_byte_s"]) or not stream
    begun = sorted(row["started_s"] for row in rows)
    assert min(later - earlier for earlier, later in pairwise(begun)) >= 0.02 - 1e-9


async def test_a_request_may_say_how_it_is_served_and_those_alike_share_a_line(simulator):
    client = await simulator()
    pace = {"slots": 1, "service": "exponential", "latency_s": 0.01, "freeze_at_s": 0.01, "freeze_s": 0.2}
    await asyncio.gather(*(client.ask(QUESTION, simulate=pace) for _ in range(8)))
    await client.ask(QUESTION, model="noisy")

    *rows, free = sorted(await arrivals(client), key=lambda row: row["started_s"])
    assert (free["model"], {row["model"] for row in rows}) == ("noisy", {"oracle"})
    assert rows[-1]["started_s"] > rows[0]["started_s"] + 0.2
    lengths = {row["last_byte_s"] - row["started_s"] for row in rows}
    assert len(lengths) == 8


@pytest.mark.parametrize(("pace", "said"), [
    ({"service": "slow"}, "Simulated service must be fixed, exponential, lognormal."),
    ({"service": []}, "Simulated service must be fixed"),
    ({"slots": 0}, "Simulated slots must be a number from 1"),
    ({"slots": 1.5}, "Simulated slots must be"),
    ({"freeze_s": -1}, "Simulated freeze_s must be"),
    ({"slot": 1}, "`simulate` must hold only latency_s, "),
    (5, "`simulate` must"),
    ({"latency_s": -1}, "Simulated latency_s must"),
    ({"latency_s": "slow"}, "Simulated latency_s must"),
    ({"ttft_s": True}, "Simulated ttft_s must"),
    ({"chunks": 0}, "Simulated chunks must"),
    ({"chunks": 1.5}, "Simulated chunks must"),
])  # fmt: skip
async def test_a_request_that_says_it_wrong_is_refused(simulator, pace, said):
    response = await (await simulator()).ask(QUESTION, simulate=pace)

    assert response.status == 400
    assert said in response.body["error"]["message"]


async def test_a_client_that_leaves_makes_room_for_the_next(simulator):
    client = await simulator(slots=1, latency_s=60.0)
    calls = [asyncio.create_task(client.ask(QUESTION)) for _ in range(2)]
    await client.until(lambda stats: stats["in_flight"] == 2)
    for call in calls:
        call.cancel()
    await client.until(lambda stats: stats["left"] == 2)

    answer = await client.ask(QUESTION, simulate={"latency_s": 0.0})  # a minute later, if they did not leave
    assert answer.status == 200
    left = [row["last_byte_s"] for row in await arrivals(client)]
    assert left.count(None) == 2


async def test_what_is_refused_or_lost_is_an_arrival_too(simulator):
    client = await simulator(faults=(parse_fault("cut=1@noisy"),), rpm=1)
    await client.ask(QUESTION)
    await client.ask(QUESTION)
    with pytest.raises(Exception, match=r"payload|disconnected"):
        await client.ask(QUESTION, model="noisy")

    answered, refused, cut = await arrivals(client)
    assert (answered["status"], refused["status"]) == (200, 429)
    assert (answered["started_s"] is None, refused["started_s"] is None) == (False, True)
    assert refused["last_byte_s"] >= refused["arrived_s"]
    assert cut["last_byte_s"] is None
