"""Searches on servers whose capacity a formula tells, without an event loop: a search is half a second."""

from bisect import bisect_left
from heapq import heappop, heappush
from math import exp, factorial, log
from random import Random
from types import SimpleNamespace

from asyncbench.lanes.load.measuring import SAMPLE_S, CallOfStep, Measuring
from asyncbench.lanes.load.searching import RateSearch
from asyncbench.lanes.load.steps import StepsBefore
from tests.world.load import load_of

SLOTS = 8
PROMISED = 0.95
SERVICES_WAITED = 5.0  # the SLO: so many mean service times, for 95 % of calls


def capacity(service_s):
    """The highest rate at which an M/M/8 queue answers 95 % of calls within the SLO (Erlang's C formula)."""
    low, high = 0.0, SLOTS / service_s
    for _ in range(50):
        middle = (low + high) / 2
        late = _later_than(SERVICES_WAITED, SLOTS - middle * service_s, middle * service_s)
        low, high = (middle, high) if late <= 1 - PROMISED else (low, middle)
    return low


def _later_than(time, spare, load):
    """The share of calls that take longer, waiting included; all in mean service times."""
    full = load**SLOTS / factorial(SLOTS) * SLOTS / spare
    waits = full / (full + sum(load**n / factorial(n) for n in range(SLOTS)))
    both = time * exp(-time) if spare == 1 else spare * (exp(-time) - exp(-spare * time)) / (spare - 1)
    return (1 - waits) * exp(-time) + waits * (exp(-spare * time) + both)


def measured(step, service):
    """What a step comes to at a server of eight slots, first come first served."""
    due = step.due()
    counted = len(due) - bisect_left(due, step.load.warmup)
    measuring = Measuring(step, "m", epoch_s=0.0, counted=counted)
    measuring.begin(0.0)
    free, sent, at_s = [0.0] * SLOTS, 0, 0.0
    ends: list[tuple[float, int, float, CallOfStep]] = []  # when each call ends, and what it is
    while at_s < measuring.until_s and not measuring.misses:
        at_s += SAMPLE_S
        while sent < len(due) and due[sent] <= at_s:
            _end(measuring, ends, due[sent])
            call = measuring.due(due[sent], len(ends) + 1)
            end_s = max(due[sent], heappop(free)) + service()
            heappush(free, end_s)
            heappush(ends, (end_s, sent, due[sent], call))
            sent += 1
        _end(measuring, ends, at_s)
        measuring.sample(at_s, len(ends), lag_s=0.0)
    measuring.end(min(at_s, measuring.until_s), stopped=False)
    _end(measuring, ends, at_s + step.load.drain)
    for _, _, due_s, call in ends:
        measuring.ended(call, _attempt(due_s, None), at_s)
    return measuring.result()


def _end(measuring, ends, at_s):
    while ends and ends[0][0] <= at_s:
        end_s, _, due_s, call = heappop(ends)
        measuring.ended(call, _attempt(due_s, end_s - due_s), end_s)


def _attempt(due_s, latency_s):
    unknown = dict.fromkeys(("http_status", "ttft_s", "ttfo_s", "connect_s", "usage"))
    status = "unfinished" if latency_s is None else "ok"
    return SimpleNamespace(**unknown, status=status, due_at=due_s, late_s=0.0, latency_s=latency_s)


def searched(seed, **keys):
    """Search a server whose speed the seed draws; return the search, its capacity, and the steps it took."""
    drawn = Random(seed)
    service_s = SLOTS / drawn.uniform(20, 60)
    slo = {"latency": SERVICES_WAITED * service_s, "share": PROMISED}
    times = {"warmup": "15s", "duration": "2m", "drain": "60s"}  # as they are if nobody says anything
    load = load_of(find={"lowest": 4, "highest": 500}, slo=slo, seed=seed, **times | keys)
    assert load.find is not None
    finding, steps = RateSearch(load=load, find=load.find, before=StepsBefore()), []
    search = finding.steps()
    step = next(search, None)
    while step is not None:
        steps.append(measured(step, lambda: -service_s * log(1.0 - drawn.random())))
        try:
            step = search.send(steps[-1])
        except StopIteration:
            step = None
    return finding, capacity(service_s), steps
