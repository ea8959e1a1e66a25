"""Measure the simulator: CPU µs a request and requests a second for each core.

    python -m benchmarks.simulator [calls]

Each case makes `calls` (20,000) calls over 200 connections, from this process, with prepared bytes; the
figures are the server process's own CPU time, so the client's share of the machine does not count.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.simulator.process import Simulator, running
from asyncbench.simulator.settings import Settings

CONNECTIONS = 200
QUESTIONS = 1_000
HUGE = 1e12  # a limit that is computed and never reached

CASES: dict[str, tuple[str, str, dict[str, float]]] = {  # path, model, settings
    "openai oracle": ("/v1/chat/completions", "oracle", {}),
    "openai noisy": ("/v1/chat/completions", "noisy", {}),
    "openai oracle, rpm + tpm": ("/v1/chat/completions", "oracle", {"rpm": HUGE, "tpm": HUGE}),
    "anthropic oracle": ("/v1/messages", "oracle", {}),
    "anthropic oracle, rpm + tpm": ("/v1/messages", "oracle", {"rpm": HUGE, "tpm": HUGE}),
}


def main(calls: int) -> None:
    """Measure every case and print a line for it."""
    print(f"{'case':30} {'CPU µs/request':>15} {'requests/s/core':>16} {'requests/s here':>16}")
    with tempfile.TemporaryDirectory() as folder:
        problems = _problem_set(Path(folder))
        for name, (path, model, limits) in CASES.items():
            with running(Settings(problems=(problems,), **limits)) as simulator:  # type: ignore[arg-type]  # floats
                cpu_s, wall_s = measure(simulator, path, model, calls)
            print(f"{name:30} {cpu_s / calls * 1e6:15.0f} {calls / cpu_s:16,.0f} {calls / wall_s:16,.0f}")


def measure(simulator: Simulator, path: str, model: str, calls: int) -> tuple[float, float]:
    """Return the server's CPU seconds and the wall-clock seconds that `calls` calls took."""
    requests = [_request(path, model, number) for number in range(QUESTIONS)]
    asyncio.run(_load(simulator.url, requests, CONNECTIONS))  # connections, caches: not measured
    before_cpu_s, before_s = simulator.stats()["cpu_s"], time.perf_counter()
    asyncio.run(_load(simulator.url, requests, calls))
    wall_s = time.perf_counter() - before_s
    stats = simulator.stats()
    assert stats["delivered"] == calls + CONNECTIONS, stats
    return stats["cpu_s"] - before_cpu_s, wall_s


async def _load(url: str, requests: list[bytes], calls: int) -> None:
    numbers = iter(range(calls))
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONNECTIONS):
            tasks.create_task(_connection(url, requests, numbers))


async def _connection(url: str, requests: list[bytes], numbers: Iterator[int]) -> None:
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    for number in numbers:
        writer.write(requests[number % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        _, _, rest = head.lower().partition(b"content-length:")
        await reader.readexactly(int(rest.split(b"\r\n", 1)[0]))
    writer.close()
    await writer.wait_closed()


def _problem_set(folder: Path) -> Path:
    path = folder / "additions.parquet"
    questions = [_question(number) for number in range(QUESTIONS)]
    answers = [str(number + 10**20) for number in range(QUESTIONS)]
    pq.write_table(pa.table({"question": questions, "expected": answers}), path)
    return path


def _question(number: int) -> str:
    return f"Calculate {10**20} + {number}. Answer with the number alone, without any explanation."


def _request(path: str, model: str, number: int) -> bytes:
    messages = [{"role": "user", "content": _question(number)}]
    body = orjson.dumps({"model": model, "messages": messages, "max_tokens": 1000})
    head = f"POST {path} HTTP/1.1\r\nhost: simulator\r\ncontent-length: {len(body)}\r\n"
    return f"{head}authorization: Bearer x\r\n\r\n".encode() + body


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
