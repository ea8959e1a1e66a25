"""Two thousand simulated nights, and how long an eight-hour night takes."""

import os
import time
from dataclasses import replace

import pytest

from asyncbench.records import Limits
from tests.engine import frugal, nights, sparing
from tests.engine.nights import Scenario, play

SEED = int(os.environ.get("ASYNCBENCH_SEED", "10000"))
NIGHTS = 2_000
TRIALS = 10_000
HOURS = 8


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_the_rules_hold_in_two_thousand_nights():
    print(f"\nnights of the seeds {SEED} to {SEED + NIGHTS - 1}; ASYNCBENCH_SEED sets the first")
    broken = []
    for seed in range(SEED, SEED + NIGHTS):
        for line in nights.broken(seed):
            broken.append(line)
            print(line, flush=True)  # a soak takes long: told when it happens
    assert not broken, "\n" + "\n".join(broken)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_no_budget_is_passed_in_two_thousand_nights():
    broken = [line for seed in range(SEED, SEED + NIGHTS) for line in frugal.broken(seed)]
    assert not broken, "\n" + "\n".join(broken)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_cells_stop_at_their_place_in_two_thousand_nights():
    broken = []
    for seed in range(SEED, SEED + NIGHTS):
        broken += sparing.broken(seed)
        sparing.night_of.cache_clear()
    assert not broken, "\n" + "\n".join(broken)


@pytest.mark.soak
@pytest.mark.parametrize("faulty", [0.0, 0.02])
def test_an_eight_hour_night_of_ten_thousand_trials(faulty):
    rpm = TRIALS / (HOURS * 60)
    plan = Scenario(trials=TRIALS, configured=Limits(rpm=rpm), real={"requests": rpm}, latency="lognormal")
    began_s = time.perf_counter()
    played = play(replace(plan, faulty=faulty))
    took_s = time.perf_counter() - began_s
    hours, calls = played[0].ended_s / 3600, len(played[0].service.calls)
    print(f"\n{hours:.2f} hours, {TRIALS:,} trials and {calls:,} calls were simulated in {took_s:.2f} s")
    assert hours > HOURS - 0.1
    for rule in nights.INVARIANTS:
        rule(played)
