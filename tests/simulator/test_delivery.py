"""When the pieces of a stream are written, on a virtual clock."""

import asyncio
import re

import pytest
from hypothesis import given, strategies as st

from asyncbench.simulator.counts import Arrival
from asyncbench.simulator.delivery import TICK_S, WAITING_LINES, Broadcast, play
from asyncbench.simulator.served import Timing
from asyncbench.simulator.wire import Script
from tests.world.clock import virtually


def broadcast(pieces, *, ttft_s=0.0, latency_s=0.0, start_s=0.0, waiting=b""):
    script = Script(
        opening=[b"<"], pieces=[b"%d," % n for n in range(pieces)], closing=[b"f", b">"], error=b"!"
    )
    timing = Timing(ttft_s=ttft_s, latency_s=latency_s, chunks=None)
    return Broadcast(
        headers={},
        script=script,
        timing=timing,
        start_s=start_s,
        waiting=waiting,
        closes=False,
        arrival=Arrival(request_id="r", arrived_s=0.0),
    )


def played(stream, *, busy_s=0.0):
    """[(when, what)] of all writes; each keeps the writer busy, as a slow client does."""
    writes: list[tuple[float, bytes]] = []

    async def write(data: bytes) -> None:
        writes.append((asyncio.get_running_loop().time(), data))
        if busy_s:
            await asyncio.sleep(busy_s)

    async def main() -> None:
        rest = await play(write, stream)
        writes.append((asyncio.get_running_loop().time(), rest))

    virtually(main())
    return [(round(at_s, 3), data) for at_s, data in writes]


def test_pieces_come_evenly_from_the_first_token_to_the_end():
    assert played(broadcast(3, ttft_s=1.0, latency_s=3.0)) == [
        (0.0, b"<"),
        (1.0, b"0,"),
        (2.0, b"1,"),
        (3.0, b"2,f>"),
    ]


def test_one_piece_comes_at_the_first_token_and_the_end_when_it_is_due():
    assert played(broadcast(1, ttft_s=1.0, latency_s=3.0)) == [(0.0, b"<"), (1.0, b"0,"), (3.0, b"f>")]


def test_without_latency_all_is_one_write():
    assert played(broadcast(500)) == [(0.0, b"<" + b"".join(b"%d," % n for n in range(500)) + b"f>")]


def test_a_late_writer_catches_up_with_one_write_and_ends_on_time():
    writes = played(broadcast(5, ttft_s=1.0, latency_s=5.0), busy_s=2.2)

    assert [data for _, data in writes] == [b"<", b"0,1,", b"2,3,", b"4,f>"]
    assert [at_s for at_s, _ in writes] == [0.0, 2.2, 4.4, 6.6]


def test_a_stream_that_began_earlier_is_due_earlier():
    late = broadcast(2, ttft_s=1.0, latency_s=2.0, start_s=-1.5)

    assert [data for _, data in played(late)] == [b"<0,", b"1,f>"]


def test_waiting_lines_come_until_the_first_token_and_before_all_else():
    writes = played(broadcast(2, ttft_s=3.0, latency_s=4.0, waiting=b":"))

    assert writes == [(0.0, b":"), (1.0, b":"), (2.0, b":"), (3.0, b"<0,"), (4.0, b"1,f>")]
    assert sum(data.count(b":") for _, data in writes) == WAITING_LINES


@pytest.mark.parametrize("pieces", [1000, 5000])
def test_pieces_within_a_tick_are_written_together(pieces):
    writes = played(broadcast(pieces, ttft_s=0.5, latency_s=1.5))

    assert len(writes) <= 1 / TICK_S + 2


@pytest.mark.long
@given(st.integers(0, 40), st.floats(0, 10), st.floats(0, 10))
def test_nothing_is_lost_early_or_out_of_order(pieces, ttft_s, rest_s):
    stream = broadcast(pieces, ttft_s=ttft_s, latency_s=ttft_s + rest_s)
    writes = played(stream)

    assert b"".join(data for _, data in writes) == b"<" + b"".join(stream.script.pieces) + b"f>"
    assert writes[-1][0] == pytest.approx(ttft_s + rest_s, abs=0.01)
    for at_s, data in writes:
        due_s = [stream.timing.due_s(int(place), pieces) for place in re.findall(rb"\d+", data)]
        assert max(due_s, default=0.0) <= at_s + 0.01
