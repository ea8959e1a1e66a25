"""When calls are due: the same list everywhere, and such gaps as the pattern has."""

from hashlib import sha256
from itertools import pairwise
from math import sqrt
from statistics import correlation, fmean, pvariance

import pytest

from asyncbench.lanes.load.steps import dispersion_p, due_times, ks_p
from tests.world.clock import virtually
from tests.world.load import Loaded, load_of
from tests.world.night import RIGHT

SEEDS = range(200)


def times(pattern, rate=20.0, seconds=50.0, *, seed=1, model="m", round_=1, burstiness=1.0):
    return due_times(pattern, rate, seconds, seed=seed, model=model, round_=round_, burstiness=burstiness)


@pytest.mark.parametrize(
    ("pattern", "burstiness", "calls", "digest"),
    [
        ("constant", 1.0, 1000, "5878e70863123086"),
        ("poisson", 1.0, 1037, "e557961f7a7d1902"),
        ("gamma", 0.5, 992, "720c5f27460fee94"),
        ("gamma", 4.0, 988, "c8073b044cd35cd8"),
    ],
)
def test_the_same_seed_gives_the_same_list_on_every_machine(pattern, burstiness, calls, digest):
    found = times(pattern, burstiness=burstiness)
    words = " ".join(str(round(1e6 * at_s)) for at_s in found)
    assert (len(found), sha256(words.encode()).hexdigest()[:16]) == (calls, digest)
    assert [*found] == sorted(found)


def test_two_models_of_one_server_load_it_as_one_poisson_process_would():
    both = [sorted([*times("poisson", seed=seed), *times("poisson", seed=seed, model="n")]) for seed in SEEDS]
    uneven = fmean((dispersion_p(found, 40.0, 0.0, 50.0) or 0.0) < 0.05 for found in both)
    assert uneven == pytest.approx(0.05, abs=3 * sqrt(0.05 * 0.95 / len(SEEDS)))


def test_another_seed_model_round_or_rate_gives_another_list_but_the_rate_stays():
    lists = [times("poisson"), times("poisson", seed=2), times("poisson", round_=2), times("poisson", 20.1)]
    lists.append(times("poisson", model="n"))
    assert len({tuple(found) for found in lists}) == len(lists)


def test_a_shorter_step_has_the_beginning_of_a_longer_one():
    short, long = times("poisson", seconds=10.0), times("poisson", seconds=50.0)
    assert short == long[: len(short)]
    assert short[-1] < 10.0 <= long[len(short)]


def test_the_counts_are_those_of_chance_not_of_the_rate():
    counts = [len(times("poisson", seed=seed)) for seed in SEEDS]
    assert fmean(counts) == pytest.approx(1000, abs=8)
    assert pvariance(counts) == pytest.approx(1000, rel=0.25)


def correlated(found):
    """Whether neighbouring gaps are correlated more than by chance, at 5 %."""
    gaps = [later - earlier for earlier, later in pairwise(found)]
    return abs(correlation(gaps[:-1], gaps[1:])) >= 1.96 / sqrt(len(gaps))


def rejected(pattern, **keys):
    """Return the shares of seeds whose lists are rejected at 5 %: by gaps, by counts, by neighbours."""
    lists = [times(pattern, seed=seed, **keys) for seed in SEEDS]
    by_gaps = [(ks_p(found, 20.0) or 0) < 0.05 for found in lists]
    by_counts = [(dispersion_p(found, 20.0, 0.0, 50.0) or 0) < 0.05 for found in lists]
    return fmean(by_gaps), fmean(by_counts), fmean(map(correlated, lists))


@pytest.mark.long
def test_poisson_arrivals_pass_the_tests_as_often_as_they_should():
    noise = 3 * sqrt(0.05 * 0.95 / len(SEEDS))  # three standard errors of a share
    assert rejected("poisson") == pytest.approx((0.05, 0.05, 0.05), abs=noise)
    assert min(rejected("poisson")) > 0  # a test that never rejects proves nothing


@pytest.mark.long
def test_others_do_not_pass_them():
    assert rejected("constant")[:2] == (1.0, 1.0)
    assert min(rejected("gamma", burstiness=0.5)[:2]) > 0.9


def test_bunches_that_a_test_of_gaps_alone_does_not_see_are_seen_by_their_counts():
    bunched = []  # as of workers that share a seed: each gap comes four times
    at_s = 0.0
    for one, two in zip(
        [0.0, *times("poisson", seconds=200.0)], times("poisson", seconds=200.0), strict=False
    ):
        for _ in range(4):
            bunched.append(at_s := at_s + two - one)
    assert (dispersion_p(bunched, 20.0, 0.0, 200.0) or 0) < 1e-9
    assert correlated(bunched)


def test_too_few_calls_tell_nothing():
    few = times("poisson", seconds=0.5)
    assert ks_p(few, 20.0) is None
    assert dispersion_p(few, 20.0, 0.0, 0.5) is None


@pytest.mark.soak
def test_what_a_load_sends_passes_its_own_tests_as_often_as_it_should():
    async def answer(_):
        return RIGHT

    async def night(seed):
        told = Loaded()
        told.add(answer, load_of(rates=[20], duration="20s", seed=seed))
        return await told.go()

    steps = [virtually(night(seed)).steps[0] for seed in SEEDS]
    noise = 3 * sqrt(0.05 * 0.95 / len(SEEDS))
    found = fmean(step.ks_p < 0.05 for step in steps), fmean(step.dispersion_p < 0.05 for step in steps)
    assert found == pytest.approx((0.05, 0.05), abs=noise)
    assert {step.client_bound for step in steps} == {False}
