"""How long a simulated model takes."""

import asyncio
import statistics

import pytest

from asyncbench.simulator.served import STORM_AFTER, Latency, Storm, Timing, think
from asyncbench.simulator.settings import AnswerPace
from asyncbench.simulator.wire import RefusedError


def latency(seed=1, model="oracle", **pace):
    return Latency(AnswerPace(**pace), seed=seed, model=model)


def draws(median_s, sigma, *, count=2001, **more):
    drawn = latency(latency_s=median_s, latency_sigma=sigma, **more)
    return [drawn.draw().latency_s for _ in range(count)]


def test_without_sigma_every_call_takes_the_median():
    assert set(draws(0.25, 0)) == {0.25}


def test_a_recorded_time_is_divided_by_the_speedup():
    timed = latency(latency_s=9, speedup=4).draw(recorded_s=2)
    assert (timed.ttft_s, timed.latency_s) == (0.25, 0.5)
    assert latency(latency_s=9).draw({"speedup": 8}, recorded_s=2).latency_s == 0.25


def test_a_recorded_time_is_not_repeated_unless_a_speedup_asks_for_it():
    assert latency(latency_s=9).draw(recorded_s=2).latency_s == 9
    assert latency(latency_s=9, speedup=4).draw().latency_s == 9


def test_a_storm_comes_once_and_says_how_long_it_lasts():
    storm, refused = Storm(), list[float | None]()
    for call in range(2 * STORM_AFTER):
        try:
            storm.check(2.0, at_s=10.0 + call / STORM_AFTER)
        except RefusedError as error:
            refused.append(error.retry_after_s)
    assert len(refused) == STORM_AFTER + 1
    assert refused[0] == 2.0
    storm.check(2.0, at_s=20.0)
    storm.check(5.0, at_s=20.0)


def test_with_sigma_the_middle_call_takes_the_median():
    assert statistics.median(draws(0.25, 0.5)) == pytest.approx(0.25, rel=0.1)


def test_a_seed_gives_the_same_latencies_in_every_run():
    assert draws(1, 1) == draws(1, 1)
    assert draws(1, 1) != draws(1, 1, seed=2)
    assert draws(1, 1) != draws(1, 1, model="noisy")


@pytest.mark.parametrize(
    ("pace", "asked", "times_s"),
    [
        ({"latency_s": 2.0}, {}, (1.0, 2.0)),
        ({"latency_s": 2.0, "ttft_s": 0.5}, {}, (0.5, 2.0)),
        ({"ttft_s": 0.5}, {}, (0.5, 0.5)),
        ({"latency_s": 2.0, "ttft_s": 0.5}, {"ttft_s": 0.1}, (0.1, 2.0)),
        ({"latency_s": 2.0, "ttft_s": 0.5}, {"latency_s": 4.0}, (2.0, 4.0)),
        ({"latency_s": 2.0, "ttft_s": 0.5}, {"latency_s": 4.0, "ttft_s": 3.0}, (3.0, 4.0)),
        ({"latency_s": 2.0}, {"chunks": 3}, (1.0, 2.0)),
    ],
    ids=[
        "half the latency",
        "given",
        "never after the end",
        "the request's own",
        "of the request's latency",
        "both of the request",
        "neither of the request",
    ],
)
def test_the_first_token_comes_at_its_time(pace, asked, times_s):
    timing = latency(**pace).draw(asked)

    assert (timing.ttft_s, timing.latency_s) == times_s


def test_one_factor_scales_the_first_token_and_the_end():
    drawn = latency(latency_s=4.0, ttft_s=1.0, latency_sigma=0.5)

    assert {round(timing.latency_s / timing.ttft_s, 9) for timing in (drawn.draw() for _ in range(99))} == {4}


async def test_a_model_with_latency_gives_up_its_turn():
    thinking = asyncio.create_task(think(Timing(ttft_s=0, latency_s=3600, chunks=None)))
    await asyncio.sleep(0)

    assert not thinking.done()
    thinking.cancel()


def test_a_model_without_latency_never_gives_up_its_turn():
    thinking = think(latency(latency_sigma=1).draw())

    with pytest.raises(StopIteration):
        thinking.send(None)
