"""The delay that the client on this machine adds to the times it measures."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from asyncbench.providers.provider import Provider, open_provider
from asyncbench.records import Limits, Model, Request
from asyncbench.run.checkup import knowing, question_for
from asyncbench.run.findings import Noise

LATENCY_S: Final = 1.0  # what the server waits until the last byte; half of it until the first token
IN_FLIGHT: Final = 100
CALLS: Final = 200  # after as many as are in flight, which open the connections and do not count
ADAPTERS: Final = {
    "openai": ("simulated", "chat"),
    "anthropic": ("simulated-anthropic", "messages"),
    "http": ("simulated-http", "chat"),
}


async def noise_floor(*, latency_s: float = LATENCY_S) -> tuple[Noise, ...]:
    """Measure every adapter, one after another, against a simulator whose delays are known.

    Args:
        latency_s: of each call; the shorter, the more calls a second.

    Raises:
        ProviderError: the simulator was not reached.
    """
    with ExitStack() as stack:
        simulator = await asyncio.to_thread(
            stack.enter_context, knowing(latency_s=latency_s, ttft_s=latency_s / 2)
        )
        return tuple([await _noise_of(adapter, simulator.url, latency_s) for adapter in ADAPTERS])


async def _noise_of(adapter: str, url: str, latency_s: float) -> Noise:
    provider_name, api = ADAPTERS[adapter]
    model = Model(
        alias=adapter,
        provider=provider_name,
        model_id="oracle",
        api=api,
        simulated=True,
        max_tokens=64,
        stream=True,
        limits=Limits(concurrency=IN_FLIGHT),
    )
    provider = open_provider(model, key="simulated", simulator_url=url)
    try:
        request = question_for(model)
        await _times(provider, request, IN_FLIGHT, latency_s)
        times = await _times(provider, request, CALLS, latency_s)
    finally:
        await provider.aclose()
    return Noise(
        adapter=adapter,
        calls=CALLS,
        in_flight=IN_FLIGHT,
        ttft_error_s=statistics.median(ttft_s for ttft_s, _ in times) - latency_s / 2,
        latency_error_s=statistics.median(whole_s for _, whole_s in times) - latency_s,
    )


async def _times(
    provider: Provider, request: Request, calls: int, latency_s: float
) -> Sequence[tuple[float, float]]:
    """Return time to first token and latency of each call, `IN_FLIGHT` at a time."""
    times: list[tuple[float, float]] = []
    remaining = iter(range(calls))

    async def ask_on(start_s: float) -> None:
        await asyncio.sleep(start_s)  # evenly spread: a hundred at the same instant would measure a queue
        for _ in remaining:
            began_s = time.monotonic()
            reply = await provider.ask(request)
            whole_s = time.monotonic() - began_s
            times.append((whole_s if reply.ttft_s is None else reply.ttft_s, whole_s))

    try:
        async with asyncio.TaskGroup() as in_flight:
            for i in range(IN_FLIGHT):
                in_flight.create_task(ask_on(i * latency_s / IN_FLIGHT))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None  # one server, one cause
    return times
