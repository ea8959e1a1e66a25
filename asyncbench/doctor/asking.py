"""Asking every model once, and once more with streaming, through the adapter that a sweep would use."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from asyncbench import preflight
from asyncbench.doctor.checkup import Checkup, Finding, State
from asyncbench.doctor.findings import Call, of_plain, of_settings, of_stream, rate_headers
from asyncbench.doctor.question import knowing, question_for
from asyncbench.errors import MAY_HAVE_BEEN_BILLED, ConfigError, ProviderError
from asyncbench.pricing import charge
from asyncbench.providers import Provider
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.opening import opened, wire_of
from asyncbench.providers.prices import rates_of
from asyncbench.providers.response import Response
from asyncbench.providers.wire import Assembly, Json, Wire
from asyncbench.records import Model, Reply, Request

# The longest reply. A number takes two tokens; the rest is for models that think unasked, and nobody can
# know who does: some answer a reply cut while they think with an error.
ENOUGH_TOKENS: Final = 1024
LONGEST_S: Final = 120.0  # of a call; a server of one's own may load the model first


async def examine(models: Sequence[Model], *, env: Mapping[str, str]) -> tuple[Checkup, ...]:
    """Make two cheap calls to each model, all models at once, and say what was found.

    Args:
        models: as a sweep would ask them, but for the longest reply and the deadlines.
        env: where keys are looked up by variable name.
    """
    with ExitStack() as stack:
        needed = any(one.simulated and one.base_url is None and one.replay is None for one in models)
        simulator = await asyncio.to_thread(stack.enter_context, knowing()) if needed else None
        url = simulator.url if simulator else None
        async with asyncio.TaskGroup() as beside:
            tasks = [beside.create_task(_examined(model, env, url)) for model in models]
        return tuple(task.result() for task in tasks)


async def _examined(model: Model, env: Mapping[str, str], simulator_url: str | None) -> Checkup:
    if model.replay is not None:
        return _checkup(model, None, None)
    try:
        plain, streamed = await _calls(model, preflight.keys([model], env)[model.alias], simulator_url)
    except ConfigError as error:  # no key, or one that no header can carry
        return _checkup(model, None, None, trouble=str(error))
    return _checkup(model, plain, streamed)


async def _calls(model: Model, key: str, simulator_url: str | None) -> tuple[Call, Call | None]:
    """Make a plain call, and a streamed one where that went well."""
    model, overheard = _cheap(model), Overheard(wire_of(model))
    provider = opened(model, key=key, simulator_url=simulator_url, wire=overheard)
    try:
        plain = await _call(provider, question_for(replace(model, stream=False)), overheard)
        if plain.reply is None:
            return plain, None
        return plain, await _call(provider, question_for(replace(model, stream=True)), overheard)
    finally:
        await provider.aclose()


def _cheap(model: Model) -> Model:
    """Return a model with a short longest reply and short deadlines; the rest is as the sweep has it."""
    timeouts = replace(model.timeouts, total=min(model.timeouts.total, LONGEST_S))
    enough = (model.thinking_tokens or 0) + ENOUGH_TOKENS  # a budget must stay below it
    return replace(model, timeouts=timeouts, max_tokens=min(model.max_tokens or enough, enough))


async def _call(provider: Provider, request: Request, overheard: "Overheard") -> Call:
    overheard.headers = {}
    began_s = time.monotonic()
    try:
        ended: Reply | ProviderError = await provider.ask(request)
    except ProviderError as error:
        ended = error
    return Call(ended=ended, latency_s=time.monotonic() - began_s, headers=rate_headers(overheard.headers))


class Overheard:
    """A wire format that remembers the headers of the last reply; sweeps need not pay for that."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.path = wire.path
        self.headers: Mapping[str, str] = {}

    def body(self, request: Request) -> dict[str, object]:
        """Return what is sent."""
        return self._wire.body(request)

    def reply(self, payload: Json, response: Response) -> Reply:
        """Read a whole body."""
        self.headers = response.headers
        return self._wire.reply(payload, response)

    def stream(self, response: Response) -> Assembly:
        """Begin to read a stream."""
        self.headers = response.headers
        return self._wire.stream(response)


def _checkup(
    model: Model, plain: Call | None, streamed: Call | None, *, trouble: str | None = None
) -> Checkup:
    made = [call for call in (plain, streamed) if call is not None]
    return Checkup(
        model=model.alias,
        provider=model.provider,
        model_id=model.model_id,
        simulated=model.simulated,
        findings=tuple(_findings(model, plain, streamed, trouble)),
        latency_s=plain.latency_s if plain and plain.reply else None,
        ttft_s=streamed.reply.ttft_s if streamed and streamed.reply else None,
        cost_usd=_sum([_cost(model, call) for call in made]),
    )


def _findings(
    model: Model, plain: Call | None, streamed: Call | None, trouble: str | None
) -> Iterator[Finding]:
    if trouble is not None:
        yield Finding(about="key", state=State.WRONG, said=trouble)
    if plain is not None:
        yield from of_plain(model, plain)
    if streamed is not None:
        yield from of_stream(streamed)
    quirks = known_endpoints()[model.provider].quirks
    yield from of_settings(model, rates_of(model)(None, time.time()), quirks)


def _cost(model: Model, call: Call) -> float | None:
    """Return what a call cost, USD; 0 when it was refused before any work, None when unknown."""
    if isinstance(call.ended, ProviderError):
        return None if call.ended.kind in MAY_HAVE_BEEN_BILLED else 0.0
    return charge(call.ended, rates_of(model), at_s=time.time(), provider=model.provider).usd


def _sum(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
