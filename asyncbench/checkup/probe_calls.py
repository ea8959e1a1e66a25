"""Asking every model once, and once more with streaming, through the adapter that a sweep would use."""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from typing import Final
from urllib.parse import urlsplit

from asyncbench.checkup.findings import Checkup, Finding, FindingState
from asyncbench.checkup.judging import ProbeCall, of_calls, of_settings, rate_headers
from asyncbench.checkup.models import models_from
from asyncbench.checkup.question import knowing, question_for
from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.pricing import charge
from asyncbench.providers import (
    ANY_LONGEST_REPLY,
    Assembly,
    Json,
    Provider,
    Response,
    Wire,
    count_in,
    known_endpoints,
    mapping_in,
    open_provider,
    rates_of,
    wire_of,
)
from asyncbench.records import Model, Reply, Request
from asyncbench.sweeps import keys_for

# The longest reply. A number takes two tokens; the rest is for models that think unasked, and nobody can
# know who does: some answer a reply cut while they think with an error.
ENOUGH_TOKENS: Final = 1024
LONGEST_S: Final = 120.0  # of a call; a server of one's own may load the model first
# Kinds of failures that a stream would meet as well.
_HOPELESS: Final = frozenset(
    {ErrorKind.AUTH, ErrorKind.NO_QUOTA, ErrorKind.NO_SUCH_MODEL, ErrorKind.UNREACHABLE}
)
# Where a body may hold a budget for thinking besides the endpoint's own place: Anthropic's.
_BUDGET: Final = "thinking.budget_tokens"


async def examine(models: Sequence[Model], *, env: Mapping[str, str]) -> tuple[Checkup, ...]:
    """Make two cheap calls to each model, and say what was found.

    All models at once, but those of one address one after another: a small server may hold one model at a
    time, and drop whatever else it is asked.

    Args:
        models: as a sweep would ask them, but for the longest reply and the deadlines.
        env: where keys are looked up by variable name.
    """
    with ExitStack() as stack:
        needed = any(one.simulated and one.base_url is None and one.replay is None for one in models)
        simulator = await asyncio.to_thread(stack.enter_context, knowing()) if needed else None
        url = simulator.url if simulator else None
        turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        async with asyncio.TaskGroup() as beside:
            tasks = [
                beside.create_task(_in_turn(turns[_server_of(model)], model, env, url)) for model in models
            ]
        return tuple(task.result() for task in tasks)


async def doctor(
    *what: str,
    base_url: str | None = None,
    key_env: str | None = None,
    env: Mapping[str, str] | None = None,
) -> tuple[Checkup, ...]:
    """Make two tiny calls to each model, whole and streamed; return what is wrong, with the way out.

    Args:
        what: provider/model names, or the path of one sweep file.
        base_url: where the named models are; None: their own address.
        key_env: the variable that holds their key; None: their own.
        env: where keys are looked up by variable name; None: this process's environment.

    Raises:
        ConfigError: none is named, an option is none, a sweep cannot be read, or a model cannot be asked.
    """
    models = models_from(what, base_url=base_url, key_env=key_env, or_nothing=False)
    return await examine(models, env=os.environ if env is None else env)


async def _in_turn(
    turn: asyncio.Lock, model: Model, env: Mapping[str, str], simulator_url: str | None
) -> Checkup:
    async with turn:
        return await _examined(model, env, simulator_url)


def _server_of(model: Model) -> str:
    """Return what a server is known by; without an address it is a vendor's or ours, and takes many calls."""
    return model.alias if model.base_url is None else urlsplit(model.base_url).netloc


async def _examined(model: Model, env: Mapping[str, str], simulator_url: str | None) -> Checkup:
    if model.replay is not None:
        return _checkup(model, None, None)
    try:
        plain, streamed = await _calls(model, keys_for([model], env)[model.alias], simulator_url)
    except ConfigError as error:  # no key, or one that no header can carry
        return _checkup(model, None, None, trouble=str(error))
    return _checkup(model, plain, streamed)


async def _calls(model: Model, key: str, simulator_url: str | None) -> tuple[ProbeCall, ProbeCall | None]:
    """Make a plain call, and a streamed one unless the first proves that no call can succeed."""
    enough = _enough(model)
    model, overheard = _cheap(model, enough), Overheard(wire_of(model), longest=enough)
    provider = open_provider(model, key=key, simulator_url=simulator_url, wire=overheard)
    try:
        plain = await _call(provider, question_for(replace(model, stream=False)), overheard)
        if isinstance(plain.ended, ProviderError) and (not model.stream or plain.ended.kind in _HOPELESS):
            return plain, None
        return plain, await _call(provider, question_for(replace(model, stream=True)), overheard)
    finally:
        await provider.aclose()


def _enough(model: Model) -> int:
    """Return the longest reply that is asked for, tokens: above any budget for thinking in the body."""
    body = wire_of(model).body(question_for(model))
    places = (_BUDGET, known_endpoints()[model.provider].quirks.thinking or _BUDGET)
    return ENOUGH_TOKENS + max(count_in(_found(body, place)) or 0 for place in places)


def _found(body: Json, place: str) -> object:
    """Return what stands at a place such as `reasoning.max_tokens`."""
    *outer, last = place.split(".")
    return reduce(lambda within, name: mapping_in(within.get(name)), outer, dict(body)).get(last)


def _cheap(model: Model, enough: int) -> Model:
    """Return a model with a longest reply and short deadlines; the rest is as the sweep has it.

    A longest reply of the sweep's is left as it is, whatever it is called: `_capped` lowers it.
    """
    timeouts = replace(model.timeouts, total=min(model.timeouts.total, LONGEST_S))
    said = model.max_tokens is not None or any(name in model.params for name in ANY_LONGEST_REPLY)
    return replace(model, timeouts=timeouts, max_tokens=model.max_tokens if said else enough)


def _capped(body: dict[str, object], longest: int) -> dict[str, object]:
    """Return what is sent with no longer a reply than this, whichever word it has for it."""
    said = {name: tokens for name in ANY_LONGEST_REPLY if (tokens := count_in(body.get(name))) is not None}
    return body | {name: min(tokens, longest) for name, tokens in said.items()}


async def _call(provider: Provider, request: Request, overheard: "Overheard") -> ProbeCall:
    overheard.headers = {}
    began_s = time.monotonic()
    try:
        ended: Reply | ProviderError = await provider.ask(request)
    except ProviderError as error:
        ended = error
    return ProbeCall(
        ended=ended, latency_s=time.monotonic() - began_s, headers=rate_headers(overheard.headers)
    )


class Overheard:
    """A wire format that keeps replies short and the last one's headers; sweeps need not pay for that."""

    def __init__(self, wire: Wire, *, longest: int) -> None:
        self._wire, self._longest = wire, longest
        self.path = wire.path
        self.headers: Mapping[str, str] = {}

    def body(self, request: Request) -> dict[str, object]:
        """Return what is sent: `params`, too, may ask for a long reply."""
        return _capped(self._wire.body(request), self._longest)

    def reply(self, payload: Json, response: Response) -> Reply:
        """Read a whole body."""
        self.headers = response.headers
        return self._wire.reply(payload, response)

    def stream(self, response: Response) -> Assembly:
        """Begin to read a stream."""
        self.headers = response.headers
        return self._wire.stream(response)


def _checkup(
    model: Model, plain: ProbeCall | None, streamed: ProbeCall | None, *, trouble: str | None = None
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
        costs_usd=tuple(_cost(model, call) for call in made),
    )


def _findings(
    model: Model, plain: ProbeCall | None, streamed: ProbeCall | None, trouble: str | None
) -> Iterator[Finding]:
    if trouble is not None:
        yield Finding(about="key", state=FindingState.WRONG, said=trouble)
    if plain is not None:
        yield from of_calls(model, plain, streamed)
    quirks = known_endpoints()[model.provider].quirks
    yield from of_settings(model, rates_of(model)(None, time.time()), quirks)


def _cost(model: Model, call: ProbeCall) -> float | None:
    """Return what a call cost, USD; 0 when it was refused before any work, None when unknown."""
    if isinstance(call.ended, ProviderError):
        return None if call.ended.may_have_been_billed else 0.0
    return charge(call.ended, rates_of(model), at_s=time.time(), provider=model.provider).usd
