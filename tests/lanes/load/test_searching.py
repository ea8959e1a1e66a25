"""The highest rate that keeps an SLO: found on servers whose capacity is known, and confirmed."""

from dataclasses import replace
from itertools import pairwise

import pytest

from asyncbench.config.loading import Find
from asyncbench.lanes.load import searching
from asyncbench.lanes.load.searching import RateSearch, RateTried
from asyncbench.lanes.load.steps import StepsBefore, step_text
from asyncbench.store.rows import step_row
from tests.store.made import step as made
from tests.world import capacity
from tests.world.clock import virtually
from tests.world.load import Loaded, Queue, load_of

SLO = {"latency": 0.2, "share": 0.95}


def searched(capacity, find, *, seed=1, before=None, arrivals="constant", duration="30s", slots=1):
    """Search a server of so many slots, all of them together answering so many calls a second."""
    load = load_of(find=find, slo=SLO, arrivals=arrivals, duration=duration, seed=seed, drain="1s")
    assert load.find is not None
    finding = RateSearch(load=load, find=load.find, before=before or StepsBefore())

    async def night():
        told = Loaded()
        told.add(Queue(slots, lambda: slots / capacity).ask, load, steps=finding.steps())
        return await told.go()

    return finding, virtually(night()).steps


@pytest.mark.long
@pytest.mark.parametrize("capacity", [13.0, 31.7])
def test_the_rate_of_a_known_server_is_found_within_the_tolerance(capacity):
    finding, steps = searched(capacity, {"lowest": 1, "highest": 200, "tolerance": 0.05})
    assert finding.finished
    assert finding.kept[-1] <= capacity * 1.001
    assert finding.failed is not None
    assert capacity / 1.06 < finding.kept[-1] < finding.failed <= finding.kept[-1] * 1.051
    assert [step.rate for step in steps].count(finding.kept[-1]) == 2  # it is confirmed
    assert finding.text.startswith(
        f"Kept the SLO up to {finding.kept[-1]:g}/s. {finding.failed:g}/s missed it: "
    )
    rates = [step.rate for step in steps]
    assert rates[:3] == [1.0, 2.0, 4.0]
    assert len(rates) <= 14


@pytest.mark.long
def test_a_step_that_certainly_misses_ends_early_and_one_that_keeps_lasts():
    _, steps = searched(20.0, {"lowest": 8, "highest": 200})
    missed = [step for step in steps if step.verdict == "missed"]
    kept = [step for step in steps if step.verdict == "met"]
    assert min(step.seconds for step in missed) < 25
    assert {step.seconds for step in kept} == {30.0}


def test_a_server_that_keeps_every_rate_or_none_says_so():
    best, steps = searched(1e6, {"lowest": 2, "highest": 10}, slots=1_000)
    assert [step.rate for step in steps] == [2.0, 4.0, 8.0, 10.0, 10.0]
    assert best.text == "Kept the SLO up to 10/s, the highest rate that was tried."
    worst, steps = searched(1.0, {"lowest": 20, "highest": 40})
    assert worst.text == (
        "20/s missed it: 0.0% of its calls kept it, 95% are promised, calls in flight kept growing. "
        "Set a lower `lowest`."
    )
    assert len(steps) == 1


@pytest.mark.long
def test_an_interrupted_search_goes_on_from_what_it_knows():
    find = {"lowest": 1, "highest": 200}
    whole, steps = searched(20.0, find)
    rows = [step_row(step) for step in steps]
    before = StepsBefore(names=[str(row["load"]) for row in rows[:4]], results=rows[:4])
    resumed, rest = searched(20.0, find, before=before)
    assert [step.rate for step in rest] == [step.rate for step in steps[4:]]
    assert (resumed.kept, resumed.failed) == (whole.kept, whole.failed)
    assert all(step.round == 2 for one, step in pairwise([*steps[:4], *rest]) if one.rate == step.rate)
    done, none = searched(20.0, find, before=StepsBefore(names=[], results=rows))
    assert (none, done.kept) == ([], whole.kept)


def played(find, verdicts):
    """Search a server that comes to these verdicts, by rate in turn; return the search and its rates."""
    load = load_of(find=find, slo=SLO)
    assert isinstance(load.find, Find)
    finding = RateSearch(load=load, find=load.find, before=StepsBefore())
    steps = finding.steps()
    asked, step = [], next(steps, None)
    while step is not None:
        asked.append(step.rate)
        told = replace(made(), refused=0, failed=0, dropped=0, offered=1_000, saturated=False)
        verdict = verdicts[step.rate].pop(0)
        found = {"met": 1_000, "missed": 600, "unresolved": 955, "client_bound": 1_000}[verdict]
        try:
            step = steps.send(replace(told, met=found, verdict=verdict))
        except StopIteration:
            step = None
    assert not any(verdicts.values())
    return finding, asked


def test_a_lucky_rate_is_not_confirmed_and_the_search_goes_on_below_it():
    verdicts = {1.0: ["met"], 2.0: ["met", "met"], 4.0: ["met", "missed"], 8.0: ["missed"]}
    verdicts |= {5.657: ["missed"], 2.828: ["missed"]}
    finding, asked = played({"lowest": 1, "highest": 8, "tolerance": 0.9}, verdicts)
    assert asked == [1.0, 2.0, 4.0, 8.0, 5.657, 4.0, 2.828, 2.0]
    assert (finding.kept[-1], finding.failed) == (2.0, 2.828)
    assert finding.text == (
        "Kept the SLO up to 2/s. 2.828/s missed it: 60.0% of its calls kept it, 95% are promised."
    )


def test_a_rate_of_which_nothing_is_certain_is_measured_again_and_told_with_one_that_misses():
    verdicts = {1.0: ["met"], 2.0: ["unresolved", "met"], 4.0: ["unresolved"] * 3, 8.0: ["missed"]}
    finding, asked = played(
        {"lowest": 1, "highest": 8, "tolerance": 0.99},
        verdicts | {2.0: ["unresolved", "met", "met"]} | {2.828: ["missed"]},
    )
    assert asked == [1.0, 2.0, 2.0, 4.0, 4.0, 4.0, 8.0, 2.828, 2.0]
    finding, asked = played(
        {"lowest": 4, "highest": 8, "tolerance": 0.99},
        {4.0: ["met"] * 2, 8.0: ["unresolved"] * 3, 5.657: ["unresolved"] * 3},
    )
    assert finding.text == (
        "Kept the SLO up to 4/s. 5.657/s is unresolved: 95.5% of its calls kept it, 95% are promised. "
        "A longer `duration` tells more of what is unresolved."
    )


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ({"refused": 400}, "40.0% of its calls were refused"),
        (
            {"dropped": 300, "failed": 100},
            "30.0% of its calls were dropped (`max_in_flight`), 10.0% of its calls failed",
        ),
        ({"saturated": True}, "60.0% of its calls kept it, 95% are promised, calls in flight kept growing"),
    ],
)
def test_a_search_says_what_stopped_it(counts, why):
    row = step_row(made()) | {"refused": 0, "failed": 0, "dropped": 0, "saturated": False}
    tried = RateTried(0.95, [row | {"offered": 1_000, "met": 600} | counts])
    assert tried.text == f"missed it: {why}"


def test_a_step_that_a_search_cut_short_says_so():
    cut = replace(made(), seconds=4.0, verdict="missed")
    assert "cut short of 120 s, for it surely misses the SLO" in step_text(cut, planned_s=120.0)
    assert "cut short" not in step_text(cut, planned_s=4.0)


def test_a_search_that_its_models_limit_ends_says_so():
    load = load_of(find={"lowest": 1, "highest": 8}, slo=SLO)
    assert load.find is not None
    finding = RateSearch(load=load, find=replace(load.find, highest=2.0), before=StepsBefore())
    finding.kept, finding.finished = [1.0, 2.0], True
    assert finding.text == "Kept the SLO up to 2/s, the highest rate that was tried, which is its `rpm`."


def test_a_search_measures_a_client_bound_step_again_and_ends_at_the_third():
    finding, asked = played({"lowest": 1, "highest": 8}, {1.0: ["met"], 2.0: ["client_bound"] * 3})
    assert asked == [1.0, 2.0, 2.0, 2.0]
    assert finding.text == (
        "Kept the SLO up to 1/s. The search ended at 2/s: this computer was the bottleneck 3 times."
    )
    verdicts = {
        1.0: ["client_bound", "met"],
        2.0: ["client_bound", "client_bound", "met", "client_bound", "met"],
    }
    finding, asked = played({"lowest": 1, "highest": 2}, verdicts)
    assert asked == [1.0] * 2 + [2.0] * 5  # the last two confirm it
    assert finding.text == "Kept the SLO up to 2/s, the highest rate that was tried."


def test_a_search_whose_steps_contradict_each_other_ends(monkeypatch):
    monkeypatch.setattr(searching, "MOST_STEPS", 3)
    finding, asked = played({"lowest": 1, "highest": 80}, {1.0: ["met"], 2.0: ["met"], 4.0: ["missed"]})
    assert asked == [1.0, 2.0, 4.0]
    assert finding.text.endswith("The search ended after 3 steps, which contradict each other.")


@pytest.mark.long
@pytest.mark.parametrize("seeds", [6, pytest.param(100, marks=pytest.mark.soak)])
def test_the_capacity_of_a_queue_is_found_within_the_tolerance_in_19_of_20_searches(seeds):
    found = [capacity.searched(seed, duration="4m") for seed in range(seeds)]
    near = [1 / 1.05 <= finding.kept[-1] / known <= 1.05 for finding, known, _ in found]
    too_high = sum(finding.kept[-1] > 1.05 * known for finding, known, _ in found)
    calls = sorted(sum(step.offered for step in steps) for *_, steps in found)
    print(f"{sum(near)} of {seeds} within 5 %, {too_high} too high; ", end="")
    print(f"{calls[0]:,} to {calls[-1]:,} calls, median {calls[seeds // 2]:,}")
    assert sum(near) >= 0.95 * seeds
    assert too_high <= 0.01 * seeds
    assert all(finding.finished for finding, *_ in found)
