"""Two thousand clusters, each drawn from its seed, and what must hold; `make test` plays two hundred."""

import os

import pytest

from tests.cluster import fleets
from tests.cluster.fleets import play, scenario

RUNS = 2_000
A_TEST = 20
SEED = int(os.environ.get("ASYNCBENCH_SEED", "0"))


@pytest.mark.one_in(10)
@pytest.mark.parametrize("first", range(0, RUNS, A_TEST))
def test_whatever_happens_to_a_cluster_the_promises_hold(first):
    broken = [line for seed in range(first, first + A_TEST) for line in fleets.broken(seed)]
    assert not broken, "\n" + "\n".join(broken)


def test_the_run_of_a_seed():
    broken = fleets.broken(SEED)
    assert not broken, "\n" + "\n".join(broken)


def test_a_seed_always_draws_and_plays_the_same_run():
    assert scenario(11) == scenario(11)
    first, again = (play(scenario(11)).provider.calls for _ in range(2))
    assert [call.at_s for call in first] == [call.at_s for call in again]


def test_the_runs_differ_in_all_that_may_happen():
    drawn = [scenario(seed) for seed in range(RUNS // 10)]
    for happens in (
        lambda one: one.carries == fleets.SPLIT,
        lambda one: one.workers == 64,
        lambda one: one.budget_usd and one.budget_usd < 1,
        lambda one: one.stop_when,
        lambda one: one.lost,
        lambda one: one.dies_s is not None and one.zombies,
        lambda one: any(fate.dies and fate.readable for fate in one.fates),
        lambda one: any(fate.dies and not fate.readable for fate in one.fates),
        lambda one: any(fate.sleeps_s for fate in one.fates),
        lambda one: any(fate.stalls_s > fleets.GIVEN_UP_S for fate in one.fates),
        lambda one: any(fate.worker is None for fate in one.fates),
    ):
        assert any(map(happens, drawn))
