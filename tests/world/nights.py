"""Nights drawn from a seed: what is asked, what the provider allows, what goes wrong, and what holds anyway.

`scenario(seed)` draws, `play` runs, each of `INVARIANTS` looks at what came of it.
"""

import asyncio
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from asyncbench.engine.admission import BROKEN_OFF, FIRST
from asyncbench.engine.attempts import GRACE_S
from asyncbench.engine.lane import Lane
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.limits import (
    BURST_S,
    CHARACTERS_PER_TOKEN,
    GIVEN_BACK_S,
    HEADROOM,
    REQUEST_BURST_S,
    Amounts,
    Counting,
    demanded,
)
from asyncbench.engine.pending_trial import ONE_CALL
from asyncbench.engine.throttle import RAREST_OF_LONG_S, RAREST_PROBE_S
from asyncbench.engine.token_estimates import LIKE_REPLIES
from asyncbench.engine.warm_up import HOPELESS_S
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import (
    Allowance,
    Ended,
    History,
    LaneMinute,
    Limits,
    Model,
    Reply,
    Request,
    Result,
    RetryPolicy,
    Sent,
    Timeouts,
    Usage,
    waits,
)
from asyncbench.simulator import limits
from asyncbench.simulator.limits import LIMIT_MODELS, Limiter
from tests.world import seeds
from tests.world.clock import virtually
from tests.world.night import DAY_S, EPOCH_S, MODEL, Night, known_of, requests

REFUSAL_S: Final = 0.02  # until a provider says no
PATIENCE_S: Final = 1.01  # a share of the slots grows slowly, and a lane looks at it once a second
NEW: Final = History()

# ── what a night is like ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """A time in which a provider answers nobody, or only some."""

    begins_s: float
    ends_s: float
    kind: ErrorKind | None  # None: the reply never comes
    retry_after_s: float | None = None
    share: float = 1.0  # of the calls it hits


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One night; times are seconds since it began, limits are a minute's."""

    seed: int = 0
    models: int = 1  # of one lane
    trials: int = 300  # of each model
    configured: Limits = field(default_factory=Limits)
    real: Mapping[str, float] = field(default_factory=dict)  # what the provider enforces, by what it counts
    limit_model: str = "token_bucket"
    burst_s: float = 1.0
    told: bool = False  # in the headers of every response
    counting: Counting = Counting.USED
    max_tokens: int | None = None
    input_tokens: tuple[int, int] = (20, 20)  # of a prompt, from and to
    output_tokens: tuple[int, int] = (20, 20)
    cached: float = 0.0  # the part of a prompt that is read from a cache
    latency: str = "constant"  # or lognormal, or growing with what is in flight
    latency_s: float = 1.0
    way_s: float = 0.0  # to the provider, at most
    retry_after: str = "exact"  # what a 429 says: the time to wait, a minute whatever it is, or nothing
    faulty: float = 0.0  # the part of all calls that end with a 500
    silent: float = 0.0  # the part of them that never end
    cursed: float = 0.0  # the part of all questions that always fail, in the same words
    spells: tuple[Spell, ...] = ()
    a_day: int | None = None  # requests, until `day_ends_s`
    day_ends_s: float = DAY_S
    dies_s: float | None = None  # the key
    changes: tuple[tuple[float, float], ...] = ()  # from when on the real limits are how many times as high
    stop_s: float | None = None  # Ctrl-C
    drain_s: float = 0.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    deadline_s: float = 60.0  # of a call

    @property
    def even(self) -> bool:
        """Whether all calls are of one size, and its reply is known from `max_tokens`."""
        low, high = self.output_tokens
        return low == high == self.max_tokens

    @property
    def longest_wait_s(self) -> float:
        """The longest Retry-After of its spells."""
        return max((spell.retry_after_s or 0.0 for spell in self.spells), default=0.0)

    def mended(self) -> "Scenario":
        """The night after: the key works, and nothing is down."""
        return replace(self, dies_s=None, spells=(), a_day=None, silent=0.0, stop_s=None)


def scenario(seed: int) -> Scenario:
    """Draw a night."""
    rng = random.Random(seed)
    real = _real_limits(rng)
    counting = rng.choice(list(Counting))
    low = rng.choice([10, 40, 200])
    output = rng.choice([5, 60, 400])
    even = rng.random() < 0.5
    length_s = 60.0 * 10 ** rng.uniform(0, 2)  # about as long as it lasts, where nothing goes wrong
    trials = _trials(rng, real, length_s, low + output)
    return Scenario(
        seed=seed,
        models=rng.choice([1, 1, 1, 2, 3]),
        trials=trials,
        configured=_configured(rng, real),
        real=real,
        limit_model=rng.choice(list(LIMIT_MODELS)),
        burst_s=rng.choice([1.0, 1.0, 5.0]),
        told=rng.random() < 0.5,
        counting=counting,
        max_tokens=output if even else rng.choice([None, 4 * output]),
        input_tokens=(low, low if even else rng.choice([low, 5 * low, 40 * low])),
        output_tokens=(output, output) if even else (1, 3 * output),
        cached=rng.choice([0.0, 0.8]),
        latency=rng.choice(["constant", "lognormal", "growing"]),
        latency_s=rng.choice([0.05, 1.0, 8.0]),
        way_s=rng.choice([0.0, 0.0, 0.03]),
        retry_after=rng.choice(["exact", "minute", "nothing"]),
        faulty=rng.choice([0.0, 0.0, 0.02, 0.3]),
        silent=rng.choice([0.0, 0.0, 0.01]),
        cursed=rng.choice([0.0, 0.0, 0.02]),
        spells=tuple(_spells(rng, length_s)),
        a_day=rng.choice([None] * 7 + [trials // 2]),
        day_ends_s=rng.uniform(600, 20 * 3600),
        dies_s=rng.choice([None] * 7 + [rng.uniform(0, length_s)]),
        changes=((rng.uniform(0, length_s), rng.choice([0.3, 0.5, 3.0])),) if rng.random() < 0.2 else (),
        stop_s=rng.uniform(0, 1.2 * length_s) if rng.random() < 0.25 else None,
        drain_s=rng.choice([0.0, 5.0, 90.0]),
        retry=rng.choice([RetryPolicy(), RetryPolicy(attempts=4, total_s=600)]),
    )


def _real_limits(rng: random.Random) -> dict[str, float]:
    rpm = rng.choice([4.0, 60.0, 600.0, 600.0, 6_000.0])
    return rng.choice(
        [
            {},
            {"requests": rpm},
            {"requests": rpm},
            {"requests": rpm, "tokens": 60_000.0},
            {"tokens": 30_000.0},
            {"requests": rpm, "input_tokens": 100_000.0, "output_tokens": 20_000.0},
        ]
    )


def _trials(rng: random.Random, real: Mapping[str, float], length_s: float, tokens: int) -> int:
    """Return how many fit into such a night, as far as there is time to simulate them."""
    a_minute = min((per / (1 if what == "requests" else tokens) for what, per in real.items()), default=600)
    return max(8, min(int(a_minute * length_s / 60), int(300 * 2 ** rng.uniform(-3, 1))))


def _configured(rng: random.Random, real: Mapping[str, float]) -> Limits:
    """Draw what the sweep says: the provider's limits, less, more, or nothing."""
    concurrency = rng.choice([None, None, 1, 8, 64])
    factor = rng.choice([1.0, 1.0, 0.6, 1.5, 4.0, None])
    fraction = rng.choice([1.0, 1.0, 1.0, 0.5])
    if factor is None or not real:
        return Limits(concurrency=concurrency, fraction=fraction)
    return Limits(
        rpm=_times(real.get("requests"), factor),
        tpm=_times(real.get("tokens"), factor),
        input_tpm=_times(real.get("input_tokens"), factor),
        output_tpm=_times(real.get("output_tokens"), factor),
        concurrency=concurrency,
        fraction=fraction,
    )


def _times(limit: float | None, factor: float) -> float | None:
    return None if limit is None else limit * factor


def _spells(rng: random.Random, length_s: float) -> Iterator[Spell]:
    for _ in range(rng.choice([0, 0, 1, 2])):
        begins_s = rng.uniform(0, length_s)
        yield Spell(
            begins_s=begins_s,
            ends_s=begins_s + 10 ** rng.uniform(0, 3.5),  # a second to an hour
            kind=rng.choice(
                [
                    ErrorKind.UNREACHABLE,
                    ErrorKind.OVERLOADED,
                    ErrorKind.RATE_LIMITED,
                    ErrorKind.SERVER_ERROR,
                    None,
                ]
            ),
            retry_after_s=rng.choice([None, 0.1, 2.0, 89.0, 900.0, 7_200.0, 3 * DAY_S]),
            share=rng.choice([1.0, 1.0, 0.5]),
        )


# ── the provider ─────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True)
class Call:
    """One call as the provider saw it."""

    model: str
    trial_id: str
    sent_s: float
    set_aside: Amounts  # what is known of it beforehand: exact where sizes are
    used: Amounts  # what it is counted for, if it is answered
    ended_s: float = math.inf
    status: str = "never ended"
    kept: Amounts = ONE_CALL  # what it is counted for in the end


class Service:
    """A provider as a plain object: limits, latencies, faults and headers of one scenario."""

    def __init__(self, plan: Scenario, *, began_s: float) -> None:
        self.plan, self.began_s = plan, began_s
        self.calls: list[Call] = []
        self.told: list[tuple[float, str, float]] = []  # when which limit was told
        self.in_flight = 0
        self._rng = random.Random(f"{plan.seed} provider")
        self._limiters = self._made(began_s, 1.0)
        self._changes = list(plan.changes)
        self._today = 0

    def characters(self, request: Request) -> int:
        """How long a prompt is; whole tokens, so that it is known how many."""
        low, high = self.plan.input_tokens
        return CHARACTERS_PER_TOKEN * self._of(request, "prompt").randint(low, high)

    async def ask(self, request: Request) -> Reply:
        """Make one call."""
        call = self._arrived(request)
        self.in_flight += 1
        try:
            reply = await self._reply(request, call)
        except ProviderError as error:
            call.status = error.kind.value
            billed = error.may_have_been_billed or error.kind is ErrorKind.SERVER_ERROR
            call.kept = call.set_aside if billed else Amounts(1.0)
            self._tell(error.allowances)
            raise
        else:
            call.status, call.kept = "ok", call.used
            self._tell(reply.allowances)
            return reply
        finally:
            self.in_flight -= 1
            call.ended_s = _now_s()
            if call.status == "never ended":
                call.kept = call.set_aside

    def _arrived(self, request: Request) -> Call:
        trial, plan = request.trial, self.plan
        characters = self.characters(request)
        taken, given = float(characters // CHARACTERS_PER_TOKEN), float(self._output(request))
        tokens = taken + float(plan.max_tokens or 0)
        uncached = taken - self._cached(taken)
        used = taken + given if plan.counting is Counting.USED else uncached + given
        if plan.counting is Counting.DEMANDED:
            tokens = used = demanded(characters, plan.max_tokens)
        counted = uncached if plan.counting is Counting.UNCACHED else taken
        call = Call(
            model=trial.model.alias,
            trial_id=trial.trial_id,
            sent_s=_now_s(),
            set_aside=Amounts(1.0, tokens, taken, float(plan.max_tokens or 0)),
            used=Amounts(1.0, used, counted, given),
        )
        self.calls.append(call)
        return call

    async def _reply(self, request: Request, call: Call) -> Reply:
        plan, luck = self.plan, self._rng.random()
        await asyncio.sleep(self._rng.uniform(0, plan.way_s))
        await self._obstruct(request)
        await self._limit(call)
        if luck < plan.silent:
            await _for_ever()
        await asyncio.sleep(self._latency_s())
        if luck > 1 - plan.faulty:
            raise self._error(ErrorKind.SERVER_ERROR, f"failed in {luck:.9f}", status=500)
        taken = int(call.set_aside.input_tokens)
        usage = Usage(
            input_tokens=taken,
            cached_input_tokens=self._cached(taken),
            output_tokens=int(call.used.output_tokens),
        )
        return Reply(text="4", usage=usage, allowances=self._allowances())

    async def _obstruct(self, request: Request) -> None:
        """Fail where the night says so."""
        plan, at_s = self.plan, _now_s() - self.began_s
        if plan.dies_s is not None and at_s >= plan.dies_s:
            raise self._error(ErrorKind.AUTH, "this key is no longer valid", status=401)
        for spell in plan.spells:
            if spell.begins_s <= at_s < spell.ends_s and self._rng.random() < spell.share:
                if spell.kind is None:
                    await _for_ever()
                    raise AssertionError("for ever ended")
                await asyncio.sleep(REFUSAL_S)
                raise self._error(spell.kind, "not now", status=503, retry_after_s=spell.retry_after_s)
        if self._of(request, "curse").random() < plan.cursed:
            await asyncio.sleep(self._latency_s())
            raise self._error(ErrorKind.SERVER_ERROR, f"stumbles over {request.trial.trial_id}", status=500)

    async def _limit(self, call: Call) -> None:
        """Charge the call, or refuse it."""
        while self._changes and _now_s() - self.began_s >= self._changes[0][0]:
            self._limiters = self._made(_now_s(), self._changes.pop(0)[1])
        at_s = _now_s()
        waits_s = [one.wait_s(getattr(call.used, what), at_s) for what, one in self._limiters.items()]
        wait_s = max(waits_s, default=0.0)
        if wait_s > 0:
            await self._refuse(wait_s)
        if self._day_is_over():
            await self._refuse(max(1.0, self.began_s + self.plan.day_ends_s - at_s))
        self._today += 1
        for what, one in self._limiters.items():
            one.take(getattr(call.used, what), at_s)

    async def _refuse(self, wait_s: float) -> None:
        told_s = {"exact": wait_s, "minute": 60.0, "nothing": None}[self.plan.retry_after]
        await asyncio.sleep(REFUSAL_S)
        raise self._error(ErrorKind.RATE_LIMITED, "too many", status=429, retry_after_s=told_s)

    def _error(
        self, kind: ErrorKind, message: str, *, status: int, retry_after_s: float | None = None
    ) -> ProviderError:
        return ProviderError(
            kind,
            message,
            http_status=status,
            retry_after_s=retry_after_s,
            allowances=self._allowances() if kind is ErrorKind.RATE_LIMITED else (),
        )

    def _allowances(self) -> tuple[Allowance, ...]:
        if not self.plan.told:
            return ()
        at_s = _now_s()
        told = [_told(what, one.allowance(at_s)) for what, one in self._limiters.items()]
        if self.plan.a_day is not None:
            told.append(self._day(self.plan.a_day, at_s))
        return tuple(told)

    def _day(self, limit: int, at_s: float) -> Allowance:
        return Allowance(
            what="requests",
            period_s=DAY_S,
            limit=limit,
            remaining=0 if self._day_is_over() else max(0, limit - self._today),
            reset_s=max(0.0, self.began_s + self.plan.day_ends_s - at_s),
        )

    def _day_is_over(self) -> bool:
        """Whether the day's requests are used up, and its end has not come yet."""
        a_day, ended = self.plan.a_day, _now_s() >= self.began_s + self.plan.day_ends_s
        return a_day is not None and self._today >= a_day and not ended

    def _tell(self, allowances: Sequence[Allowance]) -> None:
        minute = [one for one in allowances if one.period_s == 60.0 and one.limit]
        self.told += [(_now_s(), one.what, one.limit) for one in minute if one.limit]

    def _made(self, at_s: float, factor: float) -> dict[str, Limiter]:
        made = LIMIT_MODELS[self.plan.limit_model]
        return {what: made(per * factor, self.plan.burst_s, at_s) for what, per in self.plan.real.items()}

    def _latency_s(self) -> float:
        usual_s = self.plan.latency_s
        if self.plan.latency == "lognormal":
            return min(0.8 * self.plan.deadline_s, usual_s * self._rng.lognormvariate(0, 0.6))
        if self.plan.latency == "growing":
            return min(0.8 * self.plan.deadline_s, usual_s * (1 + self.in_flight / 50))
        return usual_s

    def _output(self, request: Request) -> int:
        low, high = self.plan.output_tokens
        most = min(high, self.plan.max_tokens or high)
        return min(most, round(self._of(request, "reply").triangular(low, high, low)))

    def _cached(self, taken: float) -> int:
        return int(taken * self.plan.cached)

    def _of(self, request: Request, what: str) -> random.Random:
        """Return what is drawn once for each question."""
        return random.Random(f"{self.plan.seed} {what} {request.trial.trial_id}")


def _told(what: str, left: limits.ToldAllowance) -> Allowance:
    """Return what a header says: whole numbers."""
    remaining = math.floor(left.remaining)
    return Allowance(
        what=what, period_s=60.0, limit=left.per_minute, remaining=remaining, reset_s=left.reset_s
    )


async def _for_ever() -> None:
    await asyncio.sleep(1e9)


def _now_s() -> float:
    return asyncio.get_running_loop().time()


# ── played ───────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True)
class Played:
    """A night that was played: what was kept of it, and what the provider saw."""

    plan: Scenario
    night: Night
    service: Service
    asked: dict[str, list[str]]  # trial ids by model, in order
    began_s: float
    ended_s: float
    idle_s: list[float] = field(default_factory=list)  # when the lane stood still for no reason

    @property
    def sent(self) -> list[Sent]:
        return self.night.of(Sent)

    @property
    def minutes(self) -> list[LaneMinute]:
        return self.night.of(LaneMinute)

    @property
    def statuses(self) -> Counter[str]:
        return Counter(self.night.statuses)

    @property
    def open(self) -> set[str]:
        """The trials that have no result."""
        closed = {result.trial.trial_id for result in self.night.of(Result)}
        return {name for names in self.asked.values() for name in names} - closed

    @property
    def suspended(self) -> dict[str, str]:
        """By model, why it was given up."""
        clients = self.night.lanes[0].clients
        return {one.model.alias: one.counters.suspended for one in clients if one.counters.suspended}

    @property
    def stopped(self) -> bool:
        return self.night.scheduler.stopped


def play(plan: Scenario) -> list[Played]:
    """Play a night and, over what it left open, a second one on which nothing is down."""
    return virtually(_play(plan))


async def _play(plan: Scenario) -> list[Played]:
    models = [_model(plan, f"m{n}") for n in range(plan.models)]
    everything = {model.alias: [(one, NEW) for one in _requests(plan, model)] for model in models}
    first = await _night(plan, models, everything, [])
    if not first.open:
        return [first]
    known, still_open = known_of(first.night.kept), first.open
    left = {
        alias: [(one, known.get(name, NEW)) for one, _ in asked if (name := one.trial.trial_id) in still_open]
        for alias, asked in everything.items()
    }
    return [first, await _night(plan.mended(), models, left, first.night.of(Result))]


def _model(plan: Scenario, alias: str) -> Model:
    limits = replace(plan.configured, group="g" if plan.models > 1 else None)
    timeouts = Timeouts(total=plan.deadline_s)
    return replace(
        MODEL, alias=alias, max_tokens=plan.max_tokens, limits=limits, retry=plan.retry, timeouts=timeouts
    )


def _requests(plan: Scenario, model: Model) -> list[Request]:
    return [
        replace(one, trial=replace(one.trial, trial_id=f"{model.alias} {i}"))
        for i, one in enumerate(requests(plan.trials, model))
    ]


async def _night(
    plan: Scenario,
    models: Sequence[Model],
    asked: Mapping[str, list[tuple[Request, History]]],
    done: Sequence[Result],
) -> Played:
    began_s = _now_s()
    service, night = Service(plan, began_s=began_s), Night()
    clients = [night.client(service.ask, asked[model.alias], model) for model in models]
    for client in clients:
        client.counting, client.calls.characters = plan.counting, service.characters
        closed = [one for one in done if one.trial.model.alias == client.model.alias]
        client.counters.done_before = len(closed)
        client.counters.failed_before = sum(one.error is not None for one in closed)
    idle_s: list[float] = []
    lane = night.group(clients)
    watching = watch(lane, plan.seed, idle_s)
    await night.live(watching, within_s=patience_s(plan), stop_s=plan.stop_s, drain_s=plan.drain_s)
    trials = {alias: [one.trial.trial_id for one, _ in some] for alias, some in asked.items()}
    return Played(
        plan=plan,
        night=night,
        service=service,
        asked=trials,
        began_s=began_s,
        ended_s=_now_s(),
        idle_s=idle_s,
    )


def patience_s(plan: Scenario) -> float:
    """Return how long a night may last: long, and never without end."""
    calls = plan.models * plan.trials * plan.retry.attempts
    slowest = min([*plan.real.values(), *(v for v in plan.configured.per_minute.values() if v)], default=600)
    each = plan.input_tokens[1] + plan.output_tokens[1] + (plan.max_tokens or 0)
    pace_s = calls * 60 / slowest * (1 if "requests" in plan.real and len(plan.real) == 1 else each)
    calls_s = calls * (plan.latency_s + plan.deadline_s + GRACE_S)
    waits_s = sum(spell.ends_s - spell.begins_s + DAY_S for spell in plan.spells)
    return 10 * (pace_s + calls_s + waits_s) + 3 * DAY_S


async def watch(lane: Lane, seed: int, idle_s: list[float]) -> None:
    """Note now and then when a lane could start a call, and does not."""
    rng = random.Random(f"{seed} watch")
    while True:
        await asyncio.sleep(rng.expovariate(1 / 11))
        if not _could_start(lane):
            continue
        before = _started(lane)
        await asyncio.sleep(PATIENCE_S)
        if _started(lane) == before and _could_start(lane):
            idle_s.append(_now_s())


def _started(lane: Lane) -> int:
    return sum(client.counters.attempts + client.counters.in_flight for client in lane.clients)


def _could_start(lane: Lane) -> bool:
    """Whether a lane has work, a slot, no pause, and all its limits saved up."""
    at_s, admission = _now_s(), lane.admission
    backlog = len(lane._retries) >= 2 * admission.depth()
    fresh = not backlog and any(model.ready for model in lane._models)
    due = bool(lane._retries) and lane._retries[0][0] < at_s - 0.001
    if lane._stopped or not (fresh or due) or not admission.throttle.admits(at_s):
        return False
    if admission.gate.guessed_rpm is not None and admission._guess.full(at_s):
        return False  # a window that nobody told may count the calls of the last minute
    unsure = admission.gate.counts_tokens and not all(map(_knows, lane._models))
    if unsure and admission.in_flight >= FIRST:
        return False  # a reply may be a hundred times as long as guessed
    most = Amounts(math.inf, math.inf, math.inf, math.inf)
    slots = admission.slots.ceiling(limited=admission.limited, share=admission.throttle.share(at_s))
    return admission.in_flight < slots and admission.gate.wait(most, at_s) is None


def _knows(model: LaneModel) -> bool:
    """Whether it is known of a model how long its replies are, or are at most."""
    return model.estimates.taught or model.client.model.max_tokens is not None


# ── what a steady night uses ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What was made of a limit while there was work."""

    share: float  # of what the provider allows
    refused: float  # of all calls


def used(plan: Scenario, what: str, *, warm_s: float = 10.0) -> Use:
    """Play a night and return what was used of a limit after its warm-up, until its work runs out."""
    seen = play(plan)[0].service.calls
    until_s = max(call.sent_s for call in seen[: plan.trials]) - 1.0
    counted = sum(
        getattr(call.used, what) for call in seen if call.status == "ok" and warm_s < call.sent_s <= until_s
    )
    refused = sum(call.status == "rate_limited" for call in seen)
    return Use(share=counted / (plan.real[what] / 60 * (until_s - warm_s)), refused=refused / len(seen))


# ── what holds in all of them ────────────────────────────────────────────────────────────────


def every_trial_ends_exactly_once(played: Sequence[Played]) -> None:
    """Once over all nights; one that stays open was stopped or belongs to a model that was suspended."""
    ended: Counter[str] = Counter()
    for one in played:
        ended.update(result.trial.trial_id for result in one.night.of(Result))
        unasked = {alias for alias, names in one.asked.items() if one.open.intersection(names)}
        unexplained = unasked - set(one.suspended)
        assert one.stopped or not unexplained, f"left open though nothing stopped them: {unexplained}"
    twice = [name for name, times in ended.items() if times > 1]
    assert not twice, f"ended more than once: {twice[:5]}"
    assert not played[-1].open or len(played) == 1, f"a second night left open {sorted(played[-1].open)[:5]}"
    planned = {name for names in played[0].asked.values() for name in names}
    assert set(ended) <= planned, f"never planned: {sorted(set(ended) - planned)[:5]}"


def a_model_is_suspended_only_on_proof(played: Sequence[Played]) -> None:
    for one in played:
        for alias, why in one.suspended.items():
            dead = one.plan.dies_s is not None and why.startswith("auth")
            days = one.plan.longest_wait_s > DAY_S and "to wait" in why
            never = "every call was refused" in why and _only_refused(one, alias)
            assert dead or days or never, f"{alias} was suspended without proof: {why}"


def _only_refused(one: Played, alias: str) -> bool:
    """Whether a model has refused all of its calls, for longer than the first of them is no proof."""
    calls = [call for call in one.service.calls if call.model == alias]
    answered = any(call.status in ("ok", ErrorKind.BAD_REPLY) for call in calls)
    return not answered and calls[-1].sent_s - calls[0].sent_s > HOPELESS_S


def no_limit_is_broken(played: Sequence[Played]) -> None:
    """In no window is more asked than configured or told, but for the burst and one call."""
    for one in played:
        for what, configured in one.plan.configured.per_minute.items():
            _check_limit(one, what, configured or math.inf)


def _check_limit(one: Played, what: str, configured: float) -> None:
    fraction = one.plan.configured.fraction
    rate, excess, last_s = configured * fraction, 0.0, one.began_s
    burst_s = REQUEST_BURST_S if what == "requests" else max(BURST_S[what], GIVEN_BACK_S)
    steps = [
        (at_s, 1, 0.0, min(configured, told) * fraction)
        for at_s, name, told in one.service.told
        if name == what
    ]
    steps += [(at_s, 2, amount, 0.0) for at_s, amount in _taken(one, what)]
    call = max((getattr(seen.set_aside, what) for seen in one.service.calls), default=0.0)
    slack = call if what == "requests" or _is_known(one.plan, what) else _in_doubt(one, what)
    for at_s, _, amount, told in sorted(steps):
        excess = max(0.0, excess - (at_s - last_s) * rate / 60) if math.isfinite(rate) else 0.0
        last_s = at_s
        if told:
            if told != rate:
                rate, excess = told, 0.0
            continue
        excess += amount
        allowed = 1.0 + rate / 60 * burst_s + slack
        assert excess <= allowed + 1e-6 * allowed, (
            f"{what}: at {at_s:.3f} s a window held {excess:.1f} more than {rate:,.0f} a minute; "
            f"the burst and one call are {allowed:.1f}"
        )


def _is_known(plan: Scenario, what: str) -> bool:
    """Whether it is known beforehand what a call is counted for."""
    if what == "input_tokens":
        return True
    return plan.even or (what == "tokens" and plan.counting is Counting.DEMANDED)


def _in_doubt(one: Played, what: str) -> float:
    """Return by how much estimates of all that is in flight may be wrong, twice: at both ends of a window."""
    most = max((sent.most_in_flight for sent in one.minutes), default=0)
    largest = max((getattr(seen.used, what) for seen in one.service.calls), default=0.0)
    unseen = float(one.plan.max_tokens or 256)
    taken = one.plan.input_tokens[1] if what == "tokens" else 0
    return 2 * most * (max(largest, unseen) + taken)


def _taken(one: Played, what: str) -> Iterator[tuple[float, float]]:
    """Yield when how much was taken or given back."""
    known = _is_known(one.plan, what)
    for call in one.service.calls:
        set_aside, kept = getattr(call.set_aside, what), getattr(call.kept, what)
        # Of a failure that may have been billed, only who knows all sizes beforehand knows what it was.
        yield call.sent_s, set_aside if known else min(kept, getattr(call.used, what))
        if known and kept != set_aside and math.isfinite(call.ended_s):
            yield call.ended_s, kept - set_aside


def first_come_first_served(played: Sequence[Played]) -> None:
    """The trials of a model are asked for the first time in the order of its source."""
    for one in played:
        firsts: dict[str, list[str]] = defaultdict(list)
        for sent in one.sent:
            if sent.trial_id not in firsts[sent.model]:
                firsts[sent.model].append(sent.trial_id)
        for alias, names in firsts.items():
            asked = [name for name in one.asked[alias] if name in set(names)]
            assert names == asked, f"{alias}: asked out of order: {_where(names, asked)}"


def _where(names: Sequence[str], asked: Sequence[str]) -> str:
    return next(f"{got} before {due}" for got, due in zip(names, asked, strict=True) if got != due)


def attempts_are_capped(played: Sequence[Played]) -> None:
    for one in played:
        name, most = max(Counter(sent.trial_id for sent in one.sent).items(), key=lambda item: item[1])
        cap = one.plan.retry.attempts
        assert most <= cap, f"{name} was attempted {most} times; the policy allows {cap}"


def a_retry_after_is_never_undercut(played: Sequence[Played]) -> None:
    for one in played:
        earliest_s: dict[str, float] = {}
        for event in one.night.kept:
            if isinstance(event, Sent):
                early_s = earliest_s.get(event.trial_id, 0.0) - event.started_at
                assert early_s < 1e-5, f"{event.trial_id} was asked {early_s:.3f} s before its Retry-After"
            elif isinstance(event, Ended) and event.attempt.retry_after_s is not None:
                attempt = event.attempt
                ended_at = attempt.started_at + (attempt.latency_s or 0.0)
                earliest_s[attempt.trial_id] = ended_at + (attempt.retry_after_s or 0.0)


def minutes_add_up(played: Sequence[Played]) -> None:
    """Every call and every second of a lane is in one of its minutes."""
    for one in played:
        rows = one.minutes
        assert sum(row.requests for row in rows) == len(one.sent), (
            f"the minutes tell of {sum(row.requests for row in rows)} calls, there were {len(one.sent)}"
        )
        statuses = one.statuses
        refused = statuses["rate_limited"] + statuses["overloaded"]
        assert sum(row.refused for row in rows) == refused
        seconds = one.ended_s - one.began_s
        assert abs(sum(row.seconds for row in rows) - seconds) < 0.01 + 1e-6 * seconds, (
            f"the minutes tell of {sum(row.seconds for row in rows):.3f} s, the night had {seconds:.3f} s"
        )
        for row, after in pairwise(rows):
            assert abs(row.started_at + row.seconds - after.started_at) < 0.001, "minutes do not join"
        assert all(row.seconds <= 60.001 for row in rows), (
            f"{max(row.seconds for row in rows)} s is no minute"
        )


def every_wait_is_explained(played: Sequence[Played]) -> None:
    """In each minute the waits add up to it, and each cause was really there."""
    for one in played:
        for before, row in zip([None, *one.minutes], one.minutes, strict=False):
            waited_s = sum(row.waited_s.values())
            assert waited_s <= row.seconds + 0.01, f"{waited_s:.3f} s were waited in {row.seconds:.3f} s"
            if not one.stopped:
                lost_s = row.seconds - waited_s
                assert lost_s < 0.01 + 1e-4 * row.requests, (
                    f"{lost_s:.3f} s of a minute are put down to nothing"
                )
            calm = (
                not row.refused and row.share == 1 and not (before and (before.refused or before.share < 1))
            )
            _check_causes(one, row, calm=calm)


def _check_causes(one: Played, row: LaneMinute, *, calm: bool) -> None:
    waited_s, at_s = row.waited_s, row.started_at - EPOCH_S
    assert waited_s.get(waits.CLIENT, 0.0) == 0, "a virtual loop is never late"
    fixed = one.plan.configured.concurrency
    broke_off = any(one.statuses[kind] for kind in BROKEN_OFF)  # then there may be fewer slots
    if calm and waited_s.get(waits.CONCURRENCY) and fixed and _lengths_known(one, at_s) and not broke_off:
        assert row.most_in_flight == fixed, f"waited for one of {fixed} slots with {row.most_in_flight} taken"
    if waited_s.get(waits.PAUSE):
        assert one.statuses["ok"] < len(one.sent), "paused though every call was answered"
    if calm and not one.plan.told and waited_s.get("requests") and "requests" in row.limits:
        used = row.limits["requests"] / 60 * HEADROOM * waited_s["requests"]
        assert row.requests >= used - 2 - row.limits["requests"] / 60 * REQUEST_BURST_S, (
            f"waited {waited_s['requests']:.1f} s for requests and made {row.requests} at {at_s:.0f} s"
        )


def _lengths_known(one: Played, at_s: float) -> bool:
    """Whether it was known at a moment how long each model's replies are, or are at most."""
    if one.plan.max_tokens is not None:
        return True
    answered = [call for call in one.service.calls if call.status == "ok" and call.ended_s <= at_s]
    return all(sum(call.model == alias for call in answered) >= LIKE_REPLIES for alias in one.asked)


def no_lane_is_idle(played: Sequence[Played]) -> None:
    for one in played:
        assert not one.idle_s, (
            f"work, a slot and all limits were there, and nothing started: {one.idle_s[:5]}"
        )


def a_lane_is_back_soon_after_its_provider(played: Sequence[Played]) -> None:
    """When a spell is over and fresh trials are left, one of them is asked soon."""
    for one in played:
        plan = one.plan
        if plan.a_day is not None or one.stopped or one.suspended:
            continue
        rarest_s = RAREST_OF_LONG_S if plan.longest_wait_s > 3600 else RAREST_PROBE_S
        slow = min([*plan.real.values(), *(v for v in plan.configured.per_minute.values() if v)], default=600)
        a_call_s = (plan.input_tokens[1] + plan.output_tokens[1] + (plan.max_tokens or 0)) * 60 / slow
        soon_s = rarest_s + 2 * (plan.deadline_s + GRACE_S) + 2 * a_call_s + 60
        for spell in plan.spells:
            over_s = one.began_s + spell.ends_s
            if any(other.begins_s <= spell.ends_s < other.ends_s for other in plan.spells):
                continue
            if not _any_first(one, after_s=over_s):
                continue
            next_s = min(call.sent_s for call in one.service.calls if call.sent_s > over_s)
            assert next_s - over_s <= soon_s, f"asked again {next_s - over_s:.0f} s after {spell} was over"


def _any_first(one: Played, *, after_s: float) -> bool:
    """Whether a trial was asked for the first time after a moment."""
    before = {call.trial_id for call in one.service.calls if call.sent_s <= after_s}
    return any(call.trial_id not in before for call in one.service.calls)


INVARIANTS: Final[tuple[Callable[[Sequence[Played]], None], ...]] = (
    every_trial_ends_exactly_once,
    a_model_is_suspended_only_on_proof,
    no_limit_is_broken,
    first_come_first_served,
    attempts_are_capped,
    a_retry_after_is_never_undercut,
    minutes_add_up,
    every_wait_is_explained,
    no_lane_is_idle,
    a_lane_is_back_soon_after_its_provider,
)


def broken(seed: int) -> list[str]:
    """Return what did not hold in the night of a seed."""
    test = "tests/engine/test_nights.py -k test_the_night_of_a_seed"
    return seeds.broken(seed, lambda seed: play(scenario(seed)), INVARIANTS, test)
