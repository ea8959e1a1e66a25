"""When calls are due: the same list everywhere, and such gaps as the pattern has."""

from hashlib import sha256
from statistics import fmean, pvariance

import pytest

from asyncbench.load.arrivals import dispersion_p, due_times, ks_p

SEEDS = range(200)


def times(pattern, rate=20.0, seconds=50.0, *, seed=1, round_=1, burstiness=1.0):
    return due_times(pattern, rate, seconds, seed=seed, round_=round_, burstiness=burstiness)


@pytest.mark.parametrize(
    ("pattern", "burstiness", "calls", "digest"),
    [
        ("constant", 1.0, 1000, "5878e70863123086"),
        ("poisson", 1.0, 1080, "d70fdef473d9ebeb"),
        ("gamma", 0.5, 974, "368654f3f497131c"),
        ("gamma", 4.0, 999, "939202d9f62f32d3"),
    ],
)
def test_the_same_seed_gives_the_same_list_on_every_machine(pattern, burstiness, calls, digest):
    found = times(pattern, burstiness=burstiness)
    words = " ".join(str(round(1e6 * at_s)) for at_s in found)
    assert (len(found), sha256(words.encode()).hexdigest()[:16]) == (calls, digest)


def test_another_seed_round_or_rate_gives_another_list_but_the_rate_stays():
    lists = [times("poisson"), times("poisson", seed=2), times("poisson", round_=2), times("poisson", 20.1)]
    assert len({tuple(found) for found in lists}) == len(lists)


def test_slices_of_the_list_are_the_list():
    whole = times("gamma", burstiness=0.5)
    assert sorted(at_s for k in range(7) for at_s in whole[k::7]) == [*whole]


def test_a_shorter_step_has_the_beginning_of_a_longer_one():
    short, long = times("poisson", seconds=10.0), times("poisson", seconds=50.0)
    assert short == long[: len(short)]
    assert short[-1] < 10.0 <= long[len(short)]


def test_the_counts_are_those_of_chance_not_of_the_rate():
    counts = [len(times("poisson", seed=seed)) for seed in SEEDS]
    assert fmean(counts) == pytest.approx(1000, abs=8)
    assert pvariance(counts) == pytest.approx(1000, rel=0.25)


def rejected(pattern, **keys):
    """Return the shares of seeds whose lists each test rejects at 5 %."""
    lists = [times(pattern, seed=seed, **keys) for seed in SEEDS]
    by_ks = sum((ks_p(found, 20.0) or 0) < 0.05 for found in lists) / len(SEEDS)
    return by_ks, sum((dispersion_p(found, 20.0, 0.0, 50.0) or 0) < 0.05 for found in lists) / len(SEEDS)


def test_poisson_arrivals_pass_the_tests_as_often_as_they_should():
    by_ks, by_dispersion = rejected("poisson")
    assert 0.01 <= by_ks <= 0.10
    assert 0.01 <= by_dispersion <= 0.10


def test_others_do_not_pass_them():
    assert rejected("constant") == (1.0, 1.0)
    assert min(rejected("gamma", burstiness=0.5)) > 0.9


def test_bunches_that_a_test_of_gaps_alone_does_not_see_are_seen_by_their_counts():
    bunched = []  # as of workers that share a seed: each gap comes four times
    at_s = 0.0
    for one, two in zip(
        [0.0, *times("poisson", seconds=200.0)], times("poisson", seconds=200.0), strict=False
    ):
        for _ in range(4):
            bunched.append(at_s := at_s + two - one)
    assert (dispersion_p(bunched, 20.0, 0.0, 200.0) or 0) < 1e-9


def test_too_few_calls_tell_nothing():
    few = times("poisson", seconds=0.5)
    assert ks_p(few, 20.0) is None
    assert dispersion_p(few, 20.0, 0.0, 0.5) is None
