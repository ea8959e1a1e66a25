"""Nights with a budget, drawn from a seed: who may spend what, what calls cost, what goes wrong.

`scenario(seed)` draws, `play` runs them: a first start that may crash, a second with the same budget, and a
last one with enough. The provider bills in whole picodollars and by itself, so that the ledger can be held
to it. With a folder every start keeps its events in a store there, and the next one reads from it what was
spent; without one that is worked out here.
"""

import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Final

from asyncbench.config.sweep import Sweep
from asyncbench.engine.budget import AHEAD, AHEAD_TRIALS, Cap, Ledger
from asyncbench.engine.model_client import ModelClient
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.planning.budget_bounds import most_of, open_ledger
from asyncbench.pricing import PICO_PLACES, dollars_of, picodollars
from asyncbench.records import (
    Condition,
    Ended,
    Event,
    History,
    Limits,
    Message,
    Model,
    Price,
    Reply,
    Request,
    Result,
    RetryPolicy,
    Sent,
    Usage,
)
from asyncbench.store.folder import Store
from tests.world import seeds
from tests.world.clock import virtually
from tests.world.night import EPOCH_S, MODEL, Night, known_of, requests

PRICES: Final = (
    Price(input=0.15, output=0.6),
    Price(input=3.0, output=15.0, cached_input=0.3, cache_write=3.75),
    Price(input=0.0375, output=0.29),
    Price(input=0.1, output=0.3, cached_input=0.7),  # a cache may be dearer
    Price(input=0, output=0),
)
ENOUGH_PICO: Final = 10 ** (PICO_PLACES + 6)
MORE_IN_FLIGHT: Final = 2  # calls that were begun when it was not known yet how dear others are
SLOW_S: Final = 60.0
TEMPLATE: Final = 512  # tokens, at most
TEMPLATE_OF_A_TEXT: Final = 16
TOOLS: Final = [{"type": "function", "function": {"name": "f", "description": "d" * 3_000}}]
RUN: Final = "r"  # of all its trials
RARELY: Final = (0.0, 0.0, 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One night; budgets are shares of what everything would cost at most."""

    seed: int = 0
    models: tuple[Model, ...] = (MODEL,)
    trials: int = 60  # of each model
    budgets: Mapping[tuple[str, str], float] = field(default_factory=dict)  # (kind, of) → share
    latency_s: tuple[float, float] = (0.5, 2.0)
    slow: str | None = None  # a model whose calls take a minute
    full: float = 0.0  # the part of calls that cost all that was set aside
    faulty: float = 0.0  # … that end with a 500, before any work
    refused: float = 0.0  # … that end with a 429
    cut: float = 0.0  # … whose stream breaks when it is billed already
    crash_s: float | None = None  # of the first start: what is kept ends here, and calls go on being billed


def scenario(seed: int) -> Scenario:
    """Draw a night."""
    rng = random.Random(f"budget {seed}")
    grouped = rng.random() < 0.3
    limits = Limits(
        rpm=rng.choice([None, None, 240.0]),
        concurrency=rng.choice([None, 1, 6, 40]),
        group="g" if grouped else None,
    )
    models = tuple(_model(rng, f"m{n}", limits) for n in range(rng.choice([1, 2, 3])))
    kinds = rng.sample(["sweep", "provider", "model"], k=rng.choice([1, 1, 2, 3]))
    named = {
        "sweep": ["s"],
        "provider": ["simulated", "simulated-http"],
        "model": [model.alias for model in models],
    }
    return Scenario(
        seed=seed,
        models=models,
        trials=rng.choice([5, 20, 60]),
        budgets={(kind, of): 10 ** rng.uniform(-1.5, 0.1) for kind in kinds for of in named[kind]},
        latency_s=rng.choice([(1.0, 1.0), (0.05, 5.0)]),
        full=rng.choice([0.0, 0.1, 1.0]),
        faulty=rng.choice(RARELY),
        refused=rng.choice(RARELY),
        cut=rng.choice([0.0, 0.1, 0.5]),
        crash_s=rng.choice([None, rng.uniform(0, 20)]),
        slow=rng.choice([None, "m0"]),
    )


def _model(rng: random.Random, alias: str, limits: Limits) -> Model:
    return replace(
        MODEL,
        alias=alias,
        provider=rng.choice(["simulated", "simulated-http"]),
        price=rng.choice(PRICES),
        max_tokens=rng.choice([10, 400, 4_096]),
        params=rng.choice([{}, {"max_completion_tokens": 900}, {"tools": TOOLS}]),
        limits=limits,
        retry=RetryPolicy(attempts=rng.choice([2, 10])),
    )


class Biller:
    """A provider that answers, fails and bills, whoever listens."""

    def __init__(self, plan: Scenario) -> None:
        self.plan = plan
        self.billed: dict[str, int] = defaultdict(int)  # picodollars, by model
        self.calls: list[str] = []  # trial ids
        self.answered: set[str] = set()  # trials whose answer was sent
        self._rng = random.Random(f"biller {plan.seed}")

    async def ask(self, request: Request) -> Reply:
        """Make one call; a client that is gone pays as well."""
        luck, self_s = self._rng.random(), self._rng.uniform(*self.plan.latency_s)
        if request.trial.model.alias == self.plan.slow:
            self_s = SLOW_S
        usage = self._usage(request)
        self.calls.append(request.trial.trial_id)
        plan, bounds = self.plan, (0.0, self.plan.faulty, self.plan.refused, self.plan.cut)
        faulty, refused, cut = (sum(bounds[: i + 1]) for i in (1, 2, 3))
        if faulty <= luck < refused:
            raise ProviderError(ErrorKind.RATE_LIMITED, "too many", http_status=429, retry_after_s=0.2)
        try:
            await asyncio.sleep(self_s)
        except asyncio.CancelledError:
            self._bill(request, usage)
            raise
        if luck < faulty:
            raise ProviderError(ErrorKind.SERVER_ERROR, f"failed {luck}", http_status=500)
        self._bill(request, usage)
        if luck < cut:
            kind = self._rng.choice([ErrorKind.TIMEOUT, ErrorKind.BAD_REPLY])
            raise ProviderError(kind, f"cut off {luck} {plan.seed}")
        self.answered.add(request.trial.trial_id)
        return Reply(text="4", usage=usage)

    def _usage(self, request: Request) -> Usage:
        rng = self._rng
        taken, given = counted(request), longest(request)
        if rng.random() >= self.plan.full:
            taken, given = rng.randint(0, taken), rng.randint(0, given)
        cached = rng.choice([0, taken])
        return Usage(
            input_tokens=taken,
            cached_input_tokens=cached,
            cache_write_tokens=rng.choice([0, taken - cached]),
            output_tokens=given,
        )

    def _bill(self, request: Request, usage: Usage) -> None:
        self.billed[request.trial.model.alias] += bill(request.trial.model, usage)


def counted(request: Request) -> int:
    """The most tokens of what is sent, by the dearest vocabulary there is: a token for each byte.

    And what the strangest chat template adds, to the whole and to each of its texts.
    """
    read = [request.system or "", *(one.content for one in request.messages)]
    tools = request.trial.model.params
    schema = len(json.dumps(tools, separators=(",", ":"))) if tools else 0
    return sum(len(text.encode()) for text in read) + schema + TEMPLATE + TEMPLATE_OF_A_TEXT * len(read)


def longest(request: Request) -> int:
    """The most tokens of an answer, worked out by hand."""
    model = request.trial.model
    return max(model.max_tokens or 0, int(str(model.params.get("max_completion_tokens", 0))))


def bill(model: Model, usage: Usage) -> int:
    """What a call costs, picodollars: a dollar for a million tokens is a million picodollars for one."""
    assert model.price is not None
    price, taken = model.price, usage.input_tokens or 0
    cached, written = usage.cached_input_tokens or 0, usage.cache_write_tokens or 0
    assert price.input is not None
    assert price.output is not None
    rates = {
        price.input: taken - cached - written,
        price.input if price.cached_input is None else price.cached_input: 0,
        price.input if price.cache_write is None else price.cache_write: 0,
        price.output: 0,
    }
    rates[price.input if price.cached_input is None else price.cached_input] += cached
    rates[price.input if price.cache_write is None else price.cache_write] += written
    rates[price.output] += usage.output_tokens or 0
    return sum(round(rate * 10_000) * tokens * 100 for rate, tokens in rates.items())


# ── played ───────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True)
class Start:
    """One start of a night: what it kept, and how its ledger stood at its end."""

    night: Night
    ledger: Ledger
    crashed: bool
    calls: list[str]  # trial ids, of this start
    answered_before: set[str]  # trials that had a reply in what was kept before
    closed_before: set[str]


@dataclass(slots=True, kw_only=True)
class Played:
    """A night that was played."""

    plan: Scenario
    biller: Biller
    starts: list[Start]
    kept: list[Event]
    trials: set[str]
    limits: dict[tuple[str, str], int]  # picodollars
    dearest: dict[str, int]  # what a call of a model may cost at most
    billed: list[dict[str, int]]  # by model, after each start


def play(plan: Scenario, folder: Path | None = None) -> Played:
    """Play a night to its end: a first start, a second alike, and one with enough."""
    return virtually(_play(plan, folder))


async def _play(plan: Scenario, folder: Path | None) -> Played:
    asked = {model.alias: _requests(plan, model) for model in plan.models}
    mosts = {model.alias: most_of(model) for model in plan.models}
    dearest = {
        alias: max(mosts[alias](request, EPOCH_S) for request in some) for alias, some in asked.items()
    }
    everything = sum(mosts[alias](request, EPOCH_S) for alias, some in asked.items() for request in some)
    limits = {key: int(everything * share) for key, share in plan.budgets.items()}
    played = Played(
        plan=plan,
        biller=Biller(plan),
        starts=[],
        kept=[],
        trials={request.trial.trial_id for some in asked.values() for request in some},
        limits=limits,
        dearest=dearest,
        billed=[],
    )
    enough = dict.fromkeys(limits, ENOUGH_PICO)
    for caps, crash_s in ((limits, plan.crash_s), (limits, None), (enough, None)):
        played.starts.append(await _start(played, asked, caps, crash_s, folder))
        played.billed.append(dict(played.biller.billed))
    return played


def _requests(plan: Scenario, model: Model) -> list[Request]:
    rng = random.Random(f"{plan.seed} {model.alias}")
    system = rng.choice([None, None, "s" * 1_500])
    return [
        _sized(replace(request, system=system), model, rng.choice([1, 30, 2_000]))
        for request in requests(plan.trials, model)
    ]


def _sized(request: Request, model: Model, characters: int) -> Request:
    trial = replace(request.trial, trial_id=f"{model.alias} {request.trial.trial_id}")
    return replace(request, trial=trial, messages=(Message(role="user", content="é" * characters),))


async def _start(
    played: Played,
    asked: Mapping[str, Sequence[Request]],
    limits: Mapping[tuple[str, str], int],
    crash_s: float | None,
    folder: Path | None,
) -> Start:
    plan, biller, night = played.plan, played.biller, Night()
    before, calls_before = list(played.kept), len(biller.calls)
    store = None if folder is None else Store.open(folder, sweep=RUN)
    ledger = _worked_out(plan, limits, before) if folder is None else _read(plan, limits, folder)
    histories = known_of(before)
    closed = {event.trial.trial_id for event in before if isinstance(event, Result)}
    lanes = defaultdict(list)
    for model in plan.models:
        left = [one for one in asked[model.alias] if one.trial.trial_id not in closed]
        known = [(one, histories.get(one.trial.trial_id, History())) for one in left]
        client = night.client(biller.ask, known, model)
        client.calls.longest = longest
        client.account = ledger.account_of(model.alias)
        lanes[model.limits.group or model.alias].append(client)
    for some in lanes.values():
        night.group(some)
    await night.live(crash_s=crash_s)
    played.kept += night.kept
    if store is not None:
        for event in night.kept:
            store.keep(event)
        store.close()
    return Start(
        night=night,
        ledger=ledger,
        crashed=night.dead,
        calls=biller.calls[calls_before:],
        answered_before={e.attempt.trial_id for e in before if isinstance(e, Ended) and e.reply},
        closed_before=closed,
    )


def _worked_out(plan: Scenario, limits: Mapping[tuple[str, str], int], before: Sequence[Event]) -> Ledger:
    """The ledger by what was kept."""
    ledger = Ledger(Cap(kind=kind, of=of, limit=limit) for (kind, of), limit in limits.items())
    for model in plan.models:
        caps, spent = [cap for cap in ledger.caps if _holds(cap, model)], charged(before, model.alias)
        for cap in caps:
            cap.spent += spent
        ledger.open(model.alias, caps, most_of(model), spent=spent)
    return ledger


def _read(plan: Scenario, limits: Mapping[tuple[str, str], int], folder: Path) -> Ledger:
    """The ledger as a run finds it."""
    of = {key: dollars_of(limit) for key, limit in limits.items()}
    sweep = Sweep(
        name=RUN,
        problems=(),
        own_problems={},
        models=tuple(replace(one, budget_usd=of.get(("model", one.alias))) for one in plan.models),
        conditions=(Condition(),),
        repeats=1,
        out=folder,
        budget_usd=of.get(("sweep", "s")),
        provider_budgets={name: usd for (kind, name), usd in of.items() if kind == "provider"},
    )
    return open_ledger(sweep, folder) or Ledger([])


def _holds(cap: Cap, model: Model) -> bool:
    return cap.of in {"sweep": ["s"], "provider": [model.provider], "model": [model.alias]}[cap.kind]


def charged(kept: Sequence[Event], alias: str) -> int:
    """What the calls of a model count for, picodollars: what they cost, else what was set aside."""
    counted: dict[tuple[str, int], float] = {}
    for event in kept:
        if isinstance(event, Sent) and event.model == alias:
            counted[event.trial_id, event.attempt] = event.reserved_usd or 0.0
        elif isinstance(event, Ended) and event.attempt.model == alias and event.attempt.cost_usd is not None:
            counted[event.attempt.trial_id, event.attempt.attempt] = event.attempt.cost_usd
    return sum(map(picodollars, counted.values()))


# ── what holds ───────────────────────────────────────────────────────────────────────────────


def under(plan: Scenario, key: tuple[str, str]) -> list[str]:
    """The models under a cap."""
    cap = Cap(kind=key[0], of=key[1], limit=0)
    return [model.alias for model in plan.models if _holds(cap, model)]


def no_cap_is_passed(played: Played) -> None:
    """Not by a picodollar, whatever the last start was allowed."""
    for start, billed in zip(played.starts[:-1], played.billed, strict=False):
        for cap in start.ledger.caps:
            bills = sum(billed.get(alias, 0) for alias in under(played.plan, (cap.kind, cap.of)))
            assert bills <= cap.limit, f"{cap.name}: billed {bills:,} of {cap.limit:,}"
            assert cap.spent <= cap.limit


def the_ledger_tells_what_the_folder_holds(played: Played) -> None:
    for start in played.starts:
        assert all(cap.reserved == 0 for cap in start.ledger.caps), "money is set aside for no call"
    for account in played.starts[-1].ledger.accounts:
        assert account.spent == charged(played.kept, account.model)
        assert account.spent >= played.biller.billed[account.model]
        assert not account.overruns


def money_is_left_only_where_no_call_fits(played: Played) -> None:
    for start in played.starts:
        if start.crashed:
            continue
        for lane in start.night.lanes:
            for client in lane.clients:
                _check_rest(played, start, client)


def _check_rest(played: Played, start: Start, client: ModelClient) -> None:
    alias = client.model.alias
    closed = {e.trial.trial_id for e in start.night.of(Result)} | start.closed_before
    left = {name for name in played.trials if name.startswith(f"{alias} ")} - closed
    stopped, suspended = client.counters.budget_stopped, client.counters.suspended
    assert bool(left) == (stopped or suspended is not None), f"{alias}: {len(left)} trials are open"
    if left and stopped:
        assert client.account is not None
        least = min(cap.limit - cap.spent for cap in client.account.caps)
        assert least < played.dearest[alias], (
            f"{alias}: {least:,} are left, a call costs {played.dearest[alias]:,}"
        )


def models_under_the_same_caps_get_equally_far(played: Played) -> None:
    """Who is farther has spent no more on that than the other could not use: less than a call of it."""
    start, plan = played.starts[0], played.plan
    if start.crashed or plan.faulty or plan.refused or plan.cut:
        return
    over = {
        one.alias: frozenset(key for key in plan.budgets if one.alias in under(plan, key))
        for one in plan.models
    }
    done = Counter(event.trial.model.alias for event in start.night.of(Result))
    for far, near in permutations(over, 2):
        if over[far] != over[near] or not played.dearest[near]:
            continue
        further = done[far] - done[near] - max(AHEAD * plan.trials, AHEAD_TRIALS) - MORE_IN_FLIGHT
        a_trial = played.billed[0].get(far, 0) / max(1, done[far])
        assert further * a_trial <= max(played.dearest.values()), f"{far} {done[far]}, {near} {done[near]}"


def nothing_is_asked_twice(played: Played) -> None:
    for start in played.starts:
        assert not start.answered_before & set(start.calls), "an answer was paid for twice"
        assert not start.closed_before & set(start.calls)


def with_enough_all_is_done(played: Played) -> None:
    closed = [event.trial.trial_id for event in played.kept if isinstance(event, Result)]
    assert sorted(closed) == sorted(played.trials)


RULES: Final = (
    no_cap_is_passed,
    the_ledger_tells_what_the_folder_holds,
    money_is_left_only_where_no_call_fits,
    models_under_the_same_caps_get_equally_far,
    nothing_is_asked_twice,
    with_enough_all_is_done,
)


def broken(seed: int, folder: Path | None = None) -> list[str]:
    """Return what did not hold in the night of a seed."""
    test = "tests/engine/test_budget.py -k test_the_night_of_a_seed"
    return seeds.broken(seed, lambda seed: play(scenario(seed), folder), RULES, test)
