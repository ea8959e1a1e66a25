"""Count calls that end without an answer because the server closed their kept connection.

    python -m benchmarks.stale [--calls 20000] [--providers openai,http] [--cases idle,random]

The server runs in a process of its own and counts the requests that it read to their end. Calls come in
waves, so that connections rest between them for about as long as the server keeps them; now and then the
client's event loop is blocked for up to half a second. Lost calls ended without an answer after they
were sent, at unknown cost.
"""

import argparse
import asyncio
import multiprocessing
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from random import Random
from typing import Any, Final, cast

from asyncbench.errors import ProviderError
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.provider import Provider, open_provider
from asyncbench.records import Limits, Model
from asyncbench.run.checkup import question_for

WAVE = 500  # calls at once, spread over a second
THINKS_S: Final = (0.05, 0.5)  # the server, about an answer
BLOCKED_S: Final = (0.01, 0.5)  # the client's loop, once in `BLOCKED_EVERY_S`
BLOCKED_EVERY_S: Final = (0.5, 4.0)
PROVIDERS: Final = {"openai": "simulated", "anthropic": "simulated-anthropic", "http": "simulated-http"}
SPOKEN = b'{"choices":[{"message":{"content":"4"},"finish_reason":"stop"}]}'
MESSAGE = b'{"type":"message","content":[{"type":"text","text":"4"}],"stop_reason":"end_turn"}'
CHANCE = Random()  # noqa: S311  repeatable, not secret
RESET = struct.pack("ii", 1, 0)  # of SO_LINGER: closing sends a reset


@dataclass(frozen=True, slots=True)
class Case:
    """When a server closes an idle connection, and how long the waves are apart."""

    kept_s: tuple[float, float]
    rests_s: tuple[float, float]
    headers: bytes = b""
    resets: float = 0.0  # the share of closes that are resets


CASES: Final = {
    "idle": Case((5.0, 5.0), (3.0, 6.0)),  # as uvicorn, which tells nobody
    "told": Case((2.0, 2.0), (0.0, 3.0), b"Keep-Alive: timeout=2, max=100\r\n"),
    "random": Case((0.0, 10.0), (0.0, 6.0), b"Keep-Alive: timeout=10\r\n", resets=0.5),
    "hasty": Case((0.0, 0.0), (0.0, 0.0), b"Keep-Alive: timeout=5, max=100\r\n"),  # as llama-server's streams
}


# ── the server ───────────────────────────────────────────────────────────────────────────────


class Closing(asyncio.Protocol):
    """One connection: every request is answered, and an idle connection is closed."""

    def __init__(self, case: Case, counts: Counter[str]) -> None:
        self._case, self._counts = case, counts
        self._received = b""
        self._end: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it."""
        self._transport = cast(asyncio.Transport, transport)
        self._counts["connections"] += 1

    def data_received(self, data: bytes) -> None:
        """Read on; think about a request that is whole."""
        self._stay()
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if length and len(body) == int(length):
            self._counts["read"] += 1
            self._received = b""
            answer = MESSAGE if b"/messages " in head else SPOKEN
            self._loop.call_later(CHANCE.uniform(*THINKS_S), self._answer, answer)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio gives it
        """Forget to close it."""
        self._stay()

    def _stay(self) -> None:
        if self._end is not None:
            self._end.cancel()

    def _answer(self, answer: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + self._case.headers
        self._transport.write(head + b"Content-Length: %d\r\n\r\n" % len(answer) + answer)
        if kept_s := CHANCE.uniform(*self._case.kept_s):
            self._end = self._loop.call_later(kept_s, self._close)
        else:
            self._close()

    def _close(self) -> None:
        if CHANCE.random() < self._case.resets:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._transport.close()


def serve(case: Case, parent: Connection, seed: int) -> None:
    """Serve until the parent sends a word, then send it the counts."""
    CHANCE.seed(seed)
    counts = Counter[str]()

    async def serving() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Closing(case, counts), "127.0.0.1", 0, backlog=1024)
        parent.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(parent.recv)

    asyncio.run(serving())
    parent.send(counts)


@contextmanager
def server(case: Case, seed: int) -> Iterator[tuple[str, Connection]]:
    """Run a server; its counts are sent when it is asked to end."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=serve, args=(case, theirs, seed))
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}", ours
    finally:
        process.terminate()
        process.join()


# ── the calls ────────────────────────────────────────────────────────────────────────────────


async def load(provider: Provider, model: Model, case: Case, calls: int) -> Counter[str]:
    """Make the calls in waves and count how they end."""
    counts, question = Counter[str](), question_for(model)

    async def call() -> None:
        await asyncio.sleep(CHANCE.uniform(0, 1))
        try:
            await provider.ask(question)
            counts["answered"] += 1
        except ProviderError as error:
            counts["lost" if error.may_have_been_billed else "failed at no cost"] += 1

    async def block() -> None:
        while True:
            await asyncio.sleep(CHANCE.uniform(*BLOCKED_EVERY_S))
            time.sleep(CHANCE.uniform(*BLOCKED_S))  # noqa: ASYNC251  to block is the point

    blocking = asyncio.create_task(block())
    for _ in range(-(-calls // WAVE)):
        async with asyncio.TaskGroup() as wave:
            for _ in range(WAVE):
                wave.create_task(call())
        await asyncio.sleep(CHANCE.uniform(*case.rests_s))
    blocking.cancel()
    await provider.aclose()
    return counts


def measured(provider: str, case: Case, calls: int, *, seed: int) -> dict[str, Any]:
    """Return the counts of both sides."""
    CHANCE.seed(seed)
    known = known_endpoints()[provider]
    limits = Limits(concurrency=WAVE)
    model = Model(alias="m", provider=provider, model_id="m", api=known.api, simulated=True, limits=limits)

    async def calling(url: str) -> Counter[str]:
        return await load(open_provider(model, key="k", simulator_url=url), model, case, calls)

    with server(case, seed) as (url, process):
        began_s = time.process_time()
        ended = asyncio.run(calling(url))
        cpu_us = (time.process_time() - began_s) / ended.total() * 1e6
        process.send("end")
        seen = process.recv()
    unanswered = seen["read"] - ended["answered"]
    return {**ended, "calls": ended.total(), "unanswered": unanswered, "cpu_us": cpu_us, **seen}


def main() -> None:
    """Measure and print a line for each provider and case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=20_000, help="of each provider and case")
    parser.add_argument("--providers", default=",".join(PROVIDERS))
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for case in options.cases.split(","):
        for name in options.providers.split(","):
            seen = measured(PROVIDERS[name], CASES[case], options.calls, seed=options.seed)
            lost, calls = seen.get("lost", 0), seen["calls"]
            print(
                f"{case:8}{name:10} {calls:,} calls; lost {lost:,} ({lost / calls:.3%});"
                f" failed at no cost {seen.get('failed at no cost', 0)}; read by the server {seen['read']:,};"
                f" read, not answered {seen['unanswered']}; {seen['connections']:,} connections;"
                f" {seen['cpu_us']:.0f} µs of CPU a call",
                flush=True,
            )


if __name__ == "__main__":
    main()
