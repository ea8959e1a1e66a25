"""Check every model with one call, and one more that streams, through the adapter that a sweep would use."""

import asyncio
import os
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from functools import reduce
from typing import Final
from urllib.parse import urlsplit

from asyncbench.config.entry import BASE_URL_PATTERN, ENV_VARIABLE
from asyncbench.config.sweep import AnySweep, load_sweep, sweep_from
from asyncbench.engine.awake import deadlines_put_off
from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.planning.preflight import check_environment, check_replays, chosen_models, keys_for
from asyncbench.pricing import charge
from asyncbench.providers.credentials import Credentials
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.params import ANY_LONGEST_REPLY
from asyncbench.providers.prices import rates_of
from asyncbench.providers.provider import Provider, open_batches, open_provider, wire_of
from asyncbench.providers.wire import Assembly, Json, Response, Wire, count_in, mapping_in
from asyncbench.records import BATCH, Condition, Limits, Model, Problem, Reply, Request, Trial
from asyncbench.run.findings import (
    BatchCheck,
    Checkup,
    Finding,
    FindingState,
    Noise,
    ProbeCall,
    batch_findings,
    call_findings,
    rate_headers,
    settings_findings,
)
from asyncbench.simulator.process import running
from asyncbench.simulator.questions import DOCTORS_ANSWER, DOCTORS_QUESTION
from asyncbench.simulator.settings import Settings
from asyncbench.suites.requests import request_for

SWEEP_FILES: Final = (".yaml", ".yml")
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
    check_environment(models)
    async with AsyncExitStack() as stack:
        stack.enter_context(deadlines_put_off())
        needed = any(model.simulated and model.base_url is None and model.replay is None for model in models)
        simulator = await asyncio.to_thread(stack.enter_context, running(Settings())) if needed else None
        url = simulator.url if simulator else None
        locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        async with asyncio.TaskGroup() as background:
            tasks = []
            for model in models:
                same_key = [sharing for sharing in models if sharing.key_env == model.key_env]
                # Without an address a server is a vendor's or ours, and takes many calls.
                server = model.alias if model.base_url is None else urlsplit(model.base_url).netloc
                tasks.append(background.create_task(_examine_model(locks[server], model, same_key, env, url)))
        return tuple(task.result() for task in tasks)


async def doctor(
    *what: AnySweep,
    base_url: str | None = None,
    key_env: str | None = None,
    env: Mapping[str, str] | None = None,
) -> tuple[Checkup, ...]:
    """Check models with two tiny calls each, one of them streamed: key, name, parameters, limits, price.

        checkups = asyncio.run(ab.doctor("openai/gpt-5-mini"))  # in a notebook: await it
        checkups = asyncio.run(ab.doctor("night.yaml"))

    Args:
        what: models as `provider/model`, or one sweep: the path of its file, a dict, or a `Sweep`.
        base_url: the address of the named models. [their provider's]
        key_env: the environment variable with their API key. [their provider's]
        env: where API keys are looked up, by variable name. [this process's environment]

    Returns:
        A `Checkup` for each model. `fine` tells whether it works; each finding says what to do.

    Raises:
        ConfigError: No model is named, an option or the sweep is wrong, or a model cannot be called.
    """
    models = models_from(what, base_url=base_url, key_env=key_env, or_nothing=False)
    return await examine(models, env=os.environ if env is None else env)


async def _examine_model(
    key_lock: asyncio.Lock,
    model: Model,
    same_key: Sequence[Model],
    env: Mapping[str, str],
    simulator_url: str | None,
) -> Checkup:
    """Make the calls to one model; whatever fails is a finding. `same_key` are the models with its key."""
    if model.replay is not None:
        return _checkup(model)
    about = "key"  # there is none, or one that no header can carry
    try:
        async with key_lock:
            key = keys_for(same_key, env)[model.alias]
            about = "setup"  # an address, a proxy, certificates, an extra
            plain, streamed = await _make_calls(model, key, simulator_url)
            batch_check = await _check_batches(model, key, simulator_url) if model.mode == BATCH else None
    except ConfigError as error:
        return _checkup(model, trouble=Finding(about=about, state=FindingState.WRONG, said=str(error)))
    except Exception as error:
        message = f"asyncbench failed on this model ({type(error).__name__}), and a sweep would, too"
        way_out = "please report it; the cause may be in `params` or `base_url`"
        fault = Finding(about="asyncbench", state=FindingState.WRONG, said=message, way_out=way_out)
        return _checkup(model, trouble=fault)
    return _checkup(model, plain, streamed, batch_check=batch_check)


async def _make_calls(
    model: Model, key: Credentials, simulator_url: str | None
) -> tuple[ProbeCall, ProbeCall | None]:
    """Make a plain call, and a streamed one unless the first proves that no call can succeed.

    Batches never stream: the plain call is what they would make.
    """
    # The longest reply, tokens, is above any budget for thinking in the body.
    body, budgets = wire_of(model).body(question_for(model)), [0]
    for path in (_BUDGET, known_endpoints()[model.provider].quirks.thinking or _BUDGET):
        *outer, last = path.split(".")  # such as reasoning.max_tokens
        fields = reduce(lambda fields, name: mapping_in(fields.get(name)), outer, dict(body))
        budgets.append(count_in(fields.get(last)) or 0)
    longest = ENOUGH_TOKENS + max(budgets)

    # A limit that the sweep sets is left as it is, whatever it is called: `Overheard` lowers it.
    has_limit = model.max_tokens is not None or any(name in model.params for name in ANY_LONGEST_REPLY)
    timeouts = replace(model.timeouts, total=min(model.timeouts.total, LONGEST_S))
    overheard = Overheard(wire_of(model), longest=longest)
    model = replace(model, timeouts=timeouts, max_tokens=model.max_tokens if has_limit else longest)

    provider = open_provider(model, key=key, simulator_url=simulator_url, wire=overheard)
    try:
        plain = await _call(provider, question_for(replace(model, stream=False)), overheard)
        hopeless = isinstance(plain.ended, ProviderError) and plain.ended.kind in _HOPELESS
        if model.mode == BATCH or hopeless or (plain.reply is None and not model.stream):
            return plain, None
        return plain, await _call(provider, question_for(replace(model, stream=True)), overheard)
    finally:
        await provider.aclose()


async def _check_batches(model: Model, key: Credentials, simulator_url: str | None) -> BatchCheck:
    """Ask for the list of batches, to see whether the key may use them: nothing is created or charged."""
    api, error = open_batches(model, key=key, simulator_url=simulator_url), None
    try:
        await api.recent(None)
    except ProviderError as failed:
        error = failed
    finally:
        await api.aclose()
    return BatchCheck(most_requests=api.most_requests, most_bytes=api.most_bytes, error=error)


async def _call(provider: Provider, request: Request, overheard: "Overheard") -> ProbeCall:
    """Make one call; an error, of the provider or of asyncbench, is how the call ended."""
    overheard.headers = {}
    began_s = time.monotonic()
    try:
        ended: Reply | ProviderError = await provider.ask(request)
    except ProviderError as error:
        ended = error
    except Exception as error:
        message = f"asyncbench failed on the reply ({type(error).__name__})"
        ended = ProviderError(ErrorKind.BAD_REPLY, message)
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
        """Return the body of a request, with every limit of the reply lowered to ours, whatever its name."""
        body = self._wire.body(request)
        limits = {
            name: tokens for name in ANY_LONGEST_REPLY if (tokens := count_in(body.get(name))) is not None
        }
        return body | {name: min(tokens, self._longest) for name, tokens in limits.items()}

    def reply(self, payload: Json, response: Response) -> Reply:
        """Read a whole body."""
        self.headers = response.headers
        return self._wire.reply(payload, response)

    def stream(self, response: Response) -> Assembly:
        """Begin to read a stream."""
        self.headers = response.headers
        return self._wire.stream(response)


def _checkup(
    model: Model,
    plain: ProbeCall | None = None,
    streamed: ProbeCall | None = None,
    *,
    trouble: Finding | None = None,
    batch_check: BatchCheck | None = None,
) -> Checkup:
    """Return the check-up of a model: from its calls, or from the trouble that prevented them."""
    findings = [] if trouble is None else [trouble]
    if plain is not None:
        findings += call_findings(model, plain, streamed)
    rates = rates_of(model)(BATCH if model.mode == BATCH else None, time.time())
    endpoint = known_endpoints()[model.provider]
    findings += settings_findings(model, rates, endpoint.quirks, batch_part=endpoint.batch.part)
    findings += batch_findings(model, endpoint, batch_check)
    costs: list[float | None] = []
    for call in filter(None, (plain, streamed)):
        if isinstance(call.ended, ProviderError):  # refused before any work, it costs nothing
            costs.append(None if call.ended.may_have_been_billed else 0.0)
        else:
            charged = charge(call.ended, rates_of(model), at_s=time.time(), provider=model.provider)
            costs.append(charged.usd)
    return Checkup(
        model=model.alias,
        provider=model.provider,
        model_id=model.model_id,
        simulated=model.simulated,
        findings=tuple(findings),
        latency_s=plain.latency_s if plain and plain.reply else None,
        ttft_s=streamed.reply.ttft_s if streamed and streamed.reply else None,
        costs_usd=tuple(costs),
    )


# ── Models and questions of a checkup


def models_from(
    what: Sequence[AnySweep], *, base_url: str | None, key_env: str | None, or_nothing: bool
) -> tuple[Model, ...]:
    """Return the models that a command names.

    Args:
        what: provider/model names, or one sweep: its file (`.yaml`), a dict or a record.
        base_url: where the named models are; None: their own address.
        key_env: the variable that holds their key; None: their own.
        or_nothing: whether naming none will do.

    Raises:
        ConfigError: none is named, an option is none, a sweep cannot be read, or a model cannot be asked.
    """
    # Options are refused by their own names. What was given is not repeated: by a slip it may be a key.
    if base_url is not None and not re.fullmatch(BASE_URL_PATTERN, base_url):
        raise ConfigError("--base-url: give an address such as http://localhost:8000/v1.")
    if key_env is not None and not re.fullmatch(ENV_VARIABLE, key_env):
        raise ConfigError("--key-env: give the NAME of an environment variable, such as OPENAI_API_KEY.")
    if not what and not or_nothing:
        raise ConfigError("no model to check. Name models as provider/model, or give a sweep file.")
    if not what:
        return ()
    if sweeps := [entry for entry in what if not isinstance(entry, str) or entry.endswith(SWEEP_FILES)]:
        if len(what) > 1 or base_url or key_env:
            raise ConfigError(
                "a sweep file stands alone: it has the addresses and keys of its models. Remove the rest."
            )
        loaded = load_sweep(sweeps[0])
        check_replays(loaded, loaded.models)
        return chosen_models(loaded, None)
    options = {"base_url": base_url, "key_env": key_env}
    keys = {name: value for name, value in options.items() if value is not None}
    sweep = {
        "name": "doctor",
        "problems": [{"suite": "integer_addition"}],  # a sweep needs some; they are not asked
        "models": [{"model": name, **keys} for name in what],
    }
    return sweep_from(sweep, place="doctor").models


_PROBLEM: Final = Problem(
    problem_id="doctor",
    suite="custom",
    task="doctor",
    representation="integer",
    length=1,
    operands=("2", "2"),
    question=DOCTORS_QUESTION,
    expected=DOCTORS_ANSWER,
    answer_type="integer",
)


def question_for(model: Model, problem: Problem = _PROBLEM) -> Request:
    """Return a question as a request to a model; it is no trial of any sweep. [the doctor's own]"""
    return request_for(
        Trial(
            trial_id="doctor",
            run="doctor",
            sweep="doctor",
            problem_set="doctor",
            problem=problem,
            model=model,
            condition=Condition(),
        )
    )


# ── The delay that the client on this machine adds to the times it measures


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
        settings = Settings(latency_s=latency_s, ttft_s=latency_s / 2)
        simulator = await asyncio.to_thread(stack.enter_context, running(settings))
        return tuple([await _measure_noise(adapter, simulator.url, latency_s) for adapter in ADAPTERS])


async def _measure_noise(adapter: str, url: str, latency_s: float) -> Noise:
    """Measure how late one adapter sees what a server with a known delay sends."""
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
