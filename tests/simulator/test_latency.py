"""How long a simulated model thinks."""

import asyncio
import statistics

import pytest

from asyncbench.simulator.answers import oracle
from asyncbench.simulator.latency import Latency
from asyncbench.simulator.questions import Questions
from asyncbench.simulator.served import Served
from asyncbench.simulator.settings import Settings
from asyncbench.simulator.voice import MadeUp

ORACLE = MadeUp("oracle", oracle, Questions([]), seed=0)


def draws(median_s, sigma, *, seed=1, model="oracle", count=2001):
    latency = Latency(median_s, sigma, seed=seed, model=model)
    return [latency.draw_s() for _ in range(count)]


def test_without_sigma_every_call_takes_the_median():
    assert set(draws(0.25, 0)) == {0.25}


def test_with_sigma_the_middle_call_takes_the_median():
    assert statistics.median(draws(0.25, 0.5)) == pytest.approx(0.25, rel=0.1)


def test_a_seed_gives_the_same_latencies_in_every_run():
    assert draws(1, 1) == draws(1, 1)
    assert draws(1, 1) != draws(1, 1, seed=2)
    assert draws(1, 1) != draws(1, 1, model="noisy")


async def test_a_model_with_latency_gives_up_its_turn():
    thinking = asyncio.create_task(Served("oracle", ORACLE, Settings(latency_s=3600), at_s=0).think())
    await asyncio.sleep(0)

    assert not thinking.done()
    thinking.cancel()


def test_a_model_without_latency_never_gives_up_its_turn():
    thinking = Served("oracle", ORACLE, Settings(latency_sigma=1), at_s=0).think()

    with pytest.raises(StopIteration):
        thinking.send(None)
