"""Two thousand simulated nights, and how long an eight-hour night takes."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from asyncbench.records import Limits
from tests.world import budget_nights, nights, stopping_nights
from tests.world.nights import Scenario, play
from tests.world.seeds import SEED, broken, hold

NIGHTS = 2_000
TRIALS = 10_000
HOURS = 8


def hold_in(broken: Callable[[int], list[str]], nights: int = NIGHTS) -> None:
    """Play the nights of so many seeds."""
    first = SEED or 10_000
    print(
        f"\nnights of the seeds {first} to {first + nights - 1}; ASYNCBENCH_SEED sets the first", flush=True
    )
    hold(broken, range(first, first + nights))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_the_rules_hold_in_two_thousand_nights():
    hold_in(nights.broken)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_no_budget_is_passed_in_two_thousand_nights():
    hold_in(budget_nights.broken)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_cells_stop_at_their_place_in_two_thousand_nights():
    hold_in(stopping_nights.broken)


def test_a_soak_tells_its_seeds_and_each_broken_night_when_it_is_played(capfd):
    heard, first = [], SEED or 10_000

    def night(seed: int) -> int:
        heard.append(capfd.readouterr().out)
        if seed == first + 3:
            raise TimeoutError("a night without an end")
        return seed

    def a_rule(seed: int) -> None:
        assert seed != first + 2, "is broken"

    with pytest.raises(AssertionError, match=f"seed {first + 2}: a_rule: is broken"):
        hold_in(lambda seed: broken(seed, night, [a_rule], "tests/test_it.py"), nights=5)
    assert f"nights of the seeds {first} to {first + 4}" in heard[0]
    assert heard[3].startswith(f"seed {first + 2}: a_rule: is broken")
    assert f"ASYNCBENCH_SEED={first + 2} python -m pytest tests/test_it.py" in heard[3]
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
