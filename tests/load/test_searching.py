"""The highest rate that keeps an SLO: found on servers whose capacity is known, and confirmed."""

from dataclasses import replace
from itertools import pairwise

import pytest

from asyncbench.config import Find
from asyncbench.load import RateSearch, StepsBefore
from asyncbench.store.rows import step_row
from tests.engine.night import virtually
from tests.load.world import Loaded, Queue, load_of
from tests.store.made import step as made

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


@pytest.mark.parametrize("capacity", [13.0, 31.7])
def test_the_rate_of_a_known_server_is_found_within_the_tolerance(capacity):
    finding, steps = searched(capacity, {"lowest": 1, "highest": 200, "tolerance": 0.05})
    assert finding.told
    assert finding.kept[-1] <= capacity * 1.001
    assert finding.failed is not None
    assert capacity / 1.06 < finding.kept[-1] < finding.failed <= finding.kept[-1] * 1.051
    assert [step.rate for step in steps].count(finding.kept[-1]) == 2  # it is confirmed
    assert finding.text.startswith(
        f"Kept the SLO up to {finding.kept[-1]:g}/s. {finding.failed:g}/s missed it"
    )
    rates = [step.rate for step in steps]
    assert rates[:3] == [1.0, 2.0, 4.0]
    assert len(rates) <= 14


def test_a_step_that_certainly_misses_ends_early_and_one_that_keeps_lasts():
    _, steps = searched(20.0, {"lowest": 8, "highest": 200})
    missed = [step for step in steps if step.verdict == "missed"]
    kept = [step for step in steps if step.verdict == "met"]
    assert min(step.seconds for step in missed) < 25
    assert {step.seconds for step in kept} == {30.0}


@pytest.mark.parametrize("seed", range(2))
def test_arrivals_by_chance_find_a_rate_below_the_capacity(seed):
    finding, _ = searched(40.0, {"lowest": 4, "highest": 100}, seed=seed, arrivals="poisson")
    assert 20 < finding.kept[-1] < 40  # an M/D/1 queue keeps 0.2 s for 95 % up to about 36/s
    assert [*finding.kept] == sorted(finding.kept)


def test_a_server_that_keeps_every_rate_or_none_says_so():
    best, steps = searched(1e6, {"lowest": 2, "highest": 10}, slots=1_000)
    assert [step.rate for step in steps] == [2.0, 4.0, 8.0, 10.0, 10.0]
    assert best.text == "Kept the SLO up to 10/s, the highest rate that was tried."
    worst, steps = searched(1.0, {"lowest": 20, "highest": 40})
    assert (worst.text, len(steps)) == ("20/s did not keep the SLO. Set a lower `lowest`.", 1)


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


def test_a_lucky_rate_is_not_confirmed_and_the_search_goes_on_below_it():
    load = load_of(find={"lowest": 1, "highest": 8, "tolerance": 0.5}, slo=SLO)
    assert isinstance(load.find, Find)
    finding = RateSearch(load=load, find=load.find, before=StepsBefore())
    steps = finding.steps()
    step, asked = next(steps), []
    verdicts = {1.0: ["met"], 2.0: ["met", "met"], 4.0: ["met", "missed"], 8.0: ["missed"]}
    verdicts |= {5.657: ["missed"], 2.828: ["unresolved"]}
    try:
        while True:
            asked.append(step.rate)
            verdict = verdicts[step.rate].pop(0)
            step = steps.send(replace(made(), verdict=verdict, saturated=False))
    except StopIteration:
        pass
    assert asked == [1.0, 2.0, 4.0, 8.0, 5.657, 4.0, 2.828, 2.0]
    assert (finding.kept[-1], finding.failed) == (2.0, 2.828)
    assert "2.828/s" in finding.text


def test_a_search_ends_where_this_computer_is_the_bottleneck():
    load = load_of(find={"lowest": 1, "highest": 8}, slo=SLO)
    assert isinstance(load.find, Find)
    finding = RateSearch(load=load, find=load.find, before=StepsBefore())
    steps = finding.steps()
    next(steps)
    steps.send(replace(made(), verdict="met", saturated=False))
    with pytest.raises(StopIteration):
        steps.send(replace(made(), verdict="client_bound", client_bound=True))
    assert finding.text == "The search ended at 2/s: this computer was the bottleneck."
