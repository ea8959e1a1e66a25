"""Values between two processes: what is sent arrives as it was, in its order, however it is cut up."""

import asyncio
import math
import pickle
import socket
import struct

import pytest

from asyncbench.errors import Allowance, ErrorKind, ProviderError
from asyncbench.providers.workers.worker import Frames
from asyncbench.records import Reply, Usage

ODD = [
    "half a surrogate \ud800 and a line\nfeed",
    10**40,
    float("inf"),
    {"nested": [None, True, {"deep": b"\x00\xff"}]},
    Reply(text="4\udfff2", usage=Usage(output_tokens=2), raw_usage={"n": 2**70}),
    vars(
        ProviderError(
            ErrorKind.RATE_LIMITED,
            "slow down",
            retry_after_s=1.5,
            allowances=(Allowance(what="requests", period_s=60, limit=None, remaining=0.0, reset_s=2.0),),
        )
    ),
]


async def connected():
    """Return two ends, the values that came to the second, and a word of its being left alone."""
    loop, left = asyncio.get_running_loop(), asyncio.Event()
    came: asyncio.Queue[object] = asyncio.Queue()
    ours, theirs = socket.socketpair()
    _, first = await loop.create_unix_connection(lambda: Frames(lambda _: None, lambda: None), sock=ours)
    _, second = await loop.create_unix_connection(lambda: Frames(came.put_nowait, left.set), sock=theirs)
    return first, second, came, left


async def test_odd_values_arrive_as_they_were_and_in_their_order():
    first, second, came, left = await connected()
    for value in ODD:
        first.send(value)
    first.send(math.nan)
    assert [await came.get() for _ in ODD] == ODD
    assert math.isnan(await came.get())
    first.close()
    await left.wait()
    second.close()


async def test_a_value_larger_than_any_buffer_arrives_between_its_neighbours():
    first, second, came, left = await connected()
    large = "9" * 5_000_000
    for value in ("before", large, "after"):
        first.send(value)
    assert [await came.get() for _ in range(3)] == ["before", large, "after"]
    second.close()
    first.close()
    await left.wait()


async def test_what_cannot_be_pickled_is_told_at_once_and_the_rest_arrives():
    first, second, came, left = await connected()
    first.send(1)
    with pytest.raises(AttributeError):
        first.send(lambda: 1)
    first.send(2)
    assert [await came.get(), await came.get()] == [1, 2]
    first.close()
    await left.wait()
    second.close()


async def test_what_is_sent_to_nobody_is_dropped():
    first, second, _, left = await connected()
    first.close()
    await left.wait()
    second.send("nobody hears this")
    await asyncio.sleep(0)
    assert left.is_set()


async def test_what_was_sent_before_the_other_end_went_is_taken_even_if_writing_fails_first():
    taken: list[object] = []
    loop, lost = asyncio.get_running_loop(), asyncio.Event()
    ours, theirs = socket.socketpair()
    frames = Frames(taken.append, lost.set)
    await loop.create_unix_connection(lambda: frames, sock=ours)
    for answer in map(pickle.dumps, range(3)):
        theirs.sendall(struct.pack("<I", len(answer)) + answer)
    theirs.close()
    frames.send("before anything of it is read")
    frames._flush()
    await lost.wait()
    assert taken == [0, 1, 2]
