"""Requests and tokens a minute, on a virtual clock."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncbench.engine.limits import ExpectedTokens, TokenBucket, now_s, request_pacer
from asyncbench.records import Usage
from tests.engine.night import virtually


def about(seconds: float) -> object:
    return pytest.approx(seconds, abs=0.01)


async def admitted(bucket: TokenBucket, amounts: list[float]) -> list[tuple[float, float]]:
    """Reserve all at once, in order; return (amount, when) as they were let through."""
    through: list[tuple[float, float]] = []

    async def one(amount: float) -> None:
        await bucket.reserve(amount)
        through.append((amount, now_s()))

    async with asyncio.TaskGroup() as tasks:
        for amount in amounts:
            tasks.create_task(one(amount))
    return through


def test_tokens_are_served_first_come_first_served_whatever_their_size():
    async def night():
        return await admitted(TokenBucket(600, capacity=10), [8, 1, 1, 9, 1])

    assert [amount for amount, _ in virtually(night())] == [8, 1, 1, 9, 1]


def test_a_bucket_starts_empty_so_there_is_no_burst_at_the_start():
    async def night():
        return await admitted(TokenBucket(600, capacity=10), [10])

    assert [when for _, when in virtually(night())] == [about(1.0)]


@settings(max_examples=50)
@given(st.lists(st.floats(0.1, 30), min_size=1, max_size=60))
def test_no_window_gets_more_than_the_rate_and_one_bucket(amounts):
    capacity, per_s = 10.0, 10.0

    async def night():
        return await admitted(TokenBucket(per_s * 60, capacity=capacity), amounts)

    through = virtually(night())
    for first, (_, since_s) in enumerate(through):
        # An amount beyond the bucket waits for a full one and leaves a debt, paid before the next.
        used = sum(amount for amount, _ in through[first:-1])
        assert used <= per_s * (through[-1][1] - since_s) + capacity + max(amounts) + 1e-6


def test_more_than_a_bucket_is_let_through_and_leaves_a_debt():
    async def night():
        return await admitted(TokenBucket(600, capacity=10), [50, 1])

    assert virtually(night()) == [(50, about(1.0)), (1, about(5.1))]


def test_what_was_not_used_is_given_back_at_once():
    async def night():
        bucket = TokenBucket(60, capacity=100)
        await bucket.reserve(50)
        bucket.settle(reserved=50, used=10)
        before_s = now_s()
        await bucket.reserve(40)
        return now_s() - before_s

    assert virtually(night()) == about(0.0)


def test_a_waiter_follows_a_change_of_rate():
    async def night():
        bucket = TokenBucket(60, capacity=100)
        waiting = asyncio.create_task(bucket.reserve(100))
        await asyncio.sleep(50)
        bucket.set_rate(600)
        await waiting
        return now_s()

    assert virtually(night()) == about(55.0)


def test_requests_are_paced_at_sixty_a_minute_and_at_sixty_thousand():
    async def night(rpm: float, count: int) -> float:
        pacer = request_pacer(rpm)
        for _ in range(count):
            await pacer.acquire()
        return now_s()

    assert 58 <= virtually(night(60, 60)) <= 60
    assert 9.8 <= virtually(night(60_000, 10_000)) <= 10.1


def test_expected_tokens_move_towards_what_was_seen():
    expected = ExpectedTokens(max_tokens=1000)
    assert expected.of(400) == 1100
    for _ in range(20):
        expected.learn(Usage(input_tokens=100, output_tokens=7))
    assert expected.of(400) == 107


def test_an_unknown_usage_teaches_nothing():
    expected = ExpectedTokens(max_tokens=None)
    before = expected.of(0)
    expected.learn(None)
    expected.learn(Usage())
    assert expected.of(0) == before
