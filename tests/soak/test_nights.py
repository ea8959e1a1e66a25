"""Two thousand simulated nights, and how long an eight-hour night takes."""

import os
import time
import traceback
from collections.abc import Callable
from dataclasses import replace

import pytest

from asyncbench.records import Limits
from tests.engine import frugal, nights, sparing
from tests.engine.nights import Scenario, play

SEED = int(os.environ.get("ASYNCBENCH_SEED", "10000"))
NIGHTS = 2_000
TRIALS = 10_000
HOURS = 8


def break_nothing(broken: Callable[[int], list[str]], nights: int = NIGHTS) -> None:
    """Play the nights of so many seeds; tell which they are, and at once what does not hold."""
    print(f"\nnights of the seeds {SEED} to {SEED + nights - 1}; ASYNCBENCH_SEED sets the first", flush=True)
    found = []
    for seed in range(SEED, SEED + nights):
        for line in _told(broken, seed):
            found.append(line)
            print(line, flush=True)  # a soak takes long: told when it happens
    assert not found, "\n" + "\n".join(found)


def _told(broken: Callable[[int], list[str]], seed: int) -> list[str]:
    try:
        return broken(seed)
    except Exception:  # whatever it is: told with the seed, and the next night is played
        return [f"seed {seed}: it did not come to its end", traceback.format_exc()]


def sparingly_broken(seed: int) -> list[str]:
    sparing.night_of.cache_clear()
    return sparing.broken(seed)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_the_rules_hold_in_two_thousand_nights():
    break_nothing(nights.broken)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_no_budget_is_passed_in_two_thousand_nights():
    break_nothing(frugal.broken)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_cells_stop_at_their_place_in_two_thousand_nights():
    break_nothing(sparingly_broken)


def test_a_soak_tells_its_seeds_and_each_broken_night_when_it_is_played(capfd):
    heard = []

    def third_and_fourth(seed: int) -> list[str]:
        heard.append(capfd.readouterr().out)
        if seed == SEED + 3:
            raise TimeoutError("a night without an end")
        return [f"seed {seed}: a rule"] if seed == SEED + 2 else []

    with pytest.raises(AssertionError, match=f"seed {SEED + 2}: a rule"):
        break_nothing(third_and_fourth, nights=5)
    assert f"nights of the seeds {SEED} to {SEED + 4}" in heard[0]
    assert heard[3] == f"seed {SEED + 2}: a rule\n"
    assert "a night without an end" in heard[4]


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
