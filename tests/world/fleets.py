"""Clusters drawn from a seed: machines, lanes, what goes wrong, and what holds anyway.

`scenario(seed)` draws, `play` runs, `broken(seed)` looks at what came of it. Coordinator, workers and lanes
are the real ones; processes, their messages and the provider are simulated.
"""

import asyncio
import pickle
import random
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import groupby
from math import inf
from typing import Any, Final

from asyncbench.cluster.cluster_worker import ClusterWorker, StaleOrdersError
from asyncbench.cluster.coordinator import Coordinator
from asyncbench.cluster.messages import JournalSummary, LeaseUse, Orders, WorkerReport
from asyncbench.engine.budget import Cap, Ledger
from asyncbench.engine.limits import HEADROOM, REQUEST_BURST_S
from asyncbench.engine.model_client import ModelClient, TrialFeed
from asyncbench.engine.scheduler import Scheduler
from asyncbench.engine.stopping import Stopping, right_of
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.pricing import picodollars
from asyncbench.records import (
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
    Skipped,
    StopWhen,
    Timeouts,
    Trial,
    Usage,
)
from asyncbench.simulator.limits import TokenBucket
from tests.world import seeds
from tests.world.clock import Process, World
from tests.world.night import MODEL, Night, requests

LANE_LIVES_S: Final = 3.0
RESEND_S: Final = 1.0
GIVEN_UP_S: Final = 6.0  # a worker that says nothing for so long
TOTAL_S: Final = 5.0  # of a call, at most
REFUSAL_S: Final = 0.02

# ── what is drawn ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLane:
    """One model, in a lane of its own."""

    alias: str
    trials: int
    rpm: float | None
    concurrency: int | None
    right: float  # of its answers
    key_ends_s: float | None = None  # of the provider: from then on it is refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What happens to a worker, or to the coordinator."""

    at_s: float
    worker: int | None  # None: the coordinator
    stalls_s: float = 0.0
    sleeps_s: float = 0.0  # its machine: its event loop's clock stands still
    leaves: bool = False  # it is told to end, and has a second for its calls
    dies: bool = False
    readable: bool = True  # its journal, when it died
    noticed_s: float = 0.5  # after its death


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run on a cluster; times are seconds since it began."""

    seed: int = 0
    workers: int = 3
    lanes: tuple[PlannedLane, ...] = ()
    grouped: bool = False  # all models share one lane
    budget_usd: float | None = None
    stop_when: StopWhen | None = None
    latency_s: float = 0.3
    faulty: float = 0.0  # calls that end with a 500
    silent: float = 0.0  # calls that never end
    way_s: float = 0.003  # of a message, on average
    lost: float = 0.0  # of messages
    doubled: float = 0.0
    late: float = 0.0  # by up to two seconds
    fates: tuple[Fate, ...] = ()
    dies_s: float | None = None  # the coordinator; another one, with `workers_then`, begins later
    zombies: bool = False  # workers of the first live on
    workers_then: int = 2

    def lane_of(self, alias: str) -> str:
        """Return the name of the lane of a model."""
        return "g" if self.grouped else alias


def scenario(seed: int) -> Scenario:
    """Draw a run."""
    rng = random.Random(seed)
    workers = rng.choice([1, 2, 2, 3, 3, 4, 5, 6]) if seed % 50 else 64
    lanes = tuple(_lane(rng, n) for n in range(rng.choice([1, 1, 2, 3])))
    if grouped := rng.random() < 0.2:
        first = lanes[0]
        lanes = tuple(replace(lane, rpm=first.rpm, concurrency=first.concurrency) for lane in lanes)
    trials = sum(lane.trials for lane in lanes)
    length_s = max(lane.trials * 60 / (lane.rpm or 1_200) for lane in lanes)
    nasty = rng.random() < 0.5
    return Scenario(
        seed=seed,
        workers=workers,
        lanes=lanes,
        grouped=grouped,
        budget_usd=rng.choice([None, None, 1.0, trials * USUAL_USD * rng.uniform(0.2, 1.2)]),
        stop_when=rng.choice([None, None, StopWhen(ci_width=0.45), StopWhen(saturated=0.4)]),
        latency_s=rng.choice([0.05, 0.3, 1.0]),
        faulty=rng.choice([0.0, 0.0, 0.1]),
        silent=rng.choice([0.0, 0.0, 0.0, 0.01]),
        way_s=rng.choice([0.001, 0.003, 0.03]),
        lost=0.03 if nasty else 0.0,
        doubled=0.05 if nasty else 0.0,
        late=0.02 if nasty else 0.0,
        fates=tuple(_fates(rng, workers, length_s)),
        dies_s=rng.uniform(0, length_s) if rng.random() < 0.2 else None,
        zombies=rng.random() < 0.5,
        workers_then=rng.choice([1, 2, 4]),
    )


def _lane(rng: random.Random, n: int) -> PlannedLane:
    rpm = rng.choice([None, 300.0, 1_200.0, 6_000.0])
    return PlannedLane(
        alias=f"m{n}",
        trials=rng.randint(10, 90),
        rpm=rpm,
        concurrency=rng.choice([2, 8]) if rpm is None else rng.choice([None, None, 8]),
        right=rng.choice([0.0, 0.5, 0.9, 1.0]),
        key_ends_s=rng.uniform(0, 10) if rng.random() < 0.08 else None,
    )


def _fates(rng: random.Random, workers: int, length_s: float) -> Iterator[Fate]:
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        at_s, worker = rng.uniform(0, length_s), rng.randrange(workers)
        what = rng.choice(["stall", "stall", "sleep", "death", "death", "leaves", "coordinator"])
        if what == "stall":
            yield Fate(at_s=at_s, worker=worker, stalls_s=rng.choice([0.2, 0.8, 2.0, 12.0]))
        elif what == "sleep":
            yield Fate(at_s=at_s, worker=worker, stalls_s=0.01, sleeps_s=rng.choice([0.5, 5.0, 60.0]))
        elif what == "leaves":
            yield Fate(at_s=at_s, worker=worker, leaves=True)
        elif what == "coordinator":
            yield Fate(at_s=at_s, worker=None, stalls_s=rng.choice([0.2, 1.0, 4.0]))
        else:
            noticed_s = rng.choice([0.0, 0.5, 4.0])
            readable = rng.random() < 0.6
            yield Fate(at_s=at_s, worker=worker, dies=True, readable=readable, noticed_s=noticed_s)


# ── the provider ─────────────────────────────────────────────────────────────────────────────

PRICE: Final = Price(input=0.0, output=100.0)
MOST_TOKENS: Final = 40
USUAL_USD: Final = MOST_TOKENS / 2 * 100 / 1e6


@dataclass(slots=True, kw_only=True)
class ServedCall:
    """A call as the provider saw it."""

    at_s: float
    process: Process
    alias: str
    trial_id: str
    ends_s: float  # when the server has done with it
    billed: int = 0  # picodollars
    told: bool = False  # its caller got the reply


class StrictProvider:
    """Keeps limits to the letter, and knows what it billed."""

    def __init__(self, plan: Scenario, world: World) -> None:
        self.plan, self.world = plan, world
        self.calls: list[ServedCall] = []
        self.billed = 0
        self.refused = 0
        self._rng = random.Random(f"{plan.seed} provider")
        self._buckets = {
            plan.lane_of(lane.alias): TokenBucket(lane.rpm, burst_s=1.0, at_s=0.0)
            for lane in plan.lanes
            if lane.rpm
        }
        self._key_ends_s = {lane.alias: lane.key_ends_s or inf for lane in plan.lanes}

    async def ask(self, process: Process, request: Request) -> Reply:
        """Answer a call of a process."""
        trial, luck, at_s = request.trial, self._rng.random(), self.world.now_s
        latency_s = self.plan.latency_s * self._rng.uniform(0.5, 1.5)
        call = ServedCall(
            at_s=at_s,
            process=process,
            alias=trial.model.alias,
            trial_id=trial.trial_id,
            ends_s=at_s + (TOTAL_S if luck < self.plan.silent else latency_s),
        )
        self.calls.append(call)
        if at_s >= self._key_ends_s[call.alias]:
            call.ends_s = at_s
            await asyncio.sleep(REFUSAL_S)
            raise ProviderError(ErrorKind.AUTH, "this key is no longer valid", http_status=401)
        bucket = self._buckets.get(self.plan.lane_of(call.alias))
        if bucket is not None:
            if wait_s := bucket.wait_s(1.0, at_s):
                self.refused += 1
                call.ends_s = at_s
                await asyncio.sleep(REFUSAL_S)
                raise ProviderError(ErrorKind.RATE_LIMITED, "too many", http_status=429, retry_after_s=wait_s)
            bucket.take(1.0, at_s)
        if luck > 1 - self.plan.faulty:
            await asyncio.sleep(latency_s)
            raise ProviderError(ErrorKind.SERVER_ERROR, f"failed {luck:.9f}", http_status=500)
        reply = self.reply_to(trial)
        call.billed = picodollars((reply.usage.output_tokens or 0) * 100 / 1e6) if reply.usage else 0
        self.billed += call.billed
        try:
            await asyncio.sleep(call.ends_s - at_s)
        finally:
            call.ends_s = min(call.ends_s, self.world.now_s)  # with its connection, if that is closed
        if luck < self.plan.silent:
            raise ProviderError(ErrorKind.TIMEOUT, "no reply in time")
        call.told = True
        return reply

    def reply_to(self, trial: Trial) -> Reply:
        """Return what the provider always says to a trial."""
        rng = random.Random(f"{self.plan.seed} {trial.trial_id}")
        lane = next(lane for lane in self.plan.lanes if lane.alias == trial.model.alias)
        right = rng.random() < lane.right
        tokens = rng.randint(1, MOST_TOKENS)
        return Reply(text="4" if right else "5", usage=Usage(input_tokens=10, output_tokens=tokens))


# ── what is asked ────────────────────────────────────────────────────────────────────────────


def _model(lane: PlannedLane) -> Model:
    return replace(
        MODEL,
        alias=lane.alias,
        price=PRICE,
        max_tokens=MOST_TOKENS,
        limits=Limits(rpm=lane.rpm, concurrency=lane.concurrency),
        retry=RetryPolicy(attempts=8, total_s=600, first_s=0.2, longest_s=1.0),
        timeouts=Timeouts(total=TOTAL_S),
    )


@cache
def _asked(lane: PlannedLane) -> tuple[Request, ...]:
    """The trials of a lane, in planned order: two cells by turns."""
    model = _model(lane)
    found = []
    for i, one in enumerate(requests(lane.trials, model)):
        problem = replace(one.trial.problem, length=1 + i % 2)
        found.append(replace(one, trial=replace(one.trial, trial_id=f"{lane.alias} {i}", problem=problem)))
    return tuple(found)


def _most(_request: Request, _at: float) -> int:
    return picodollars(MOST_TOKENS * 100 / 1e6)


def _request_of(trial: Trial) -> Request:
    said = (Message(role="user", content=trial.problem.question),)
    return Request(trial=trial, system=None, messages=said)


@dataclass(slots=True, kw_only=True)
class Journal:
    """What one process has written down, as of every moment."""

    process: Process | None
    kept: list[Event] = field(default_factory=list)
    readable: bool = True
    read_to: int = 0  # so many events of it a coordinator knew when it went on without its process
    lost: bool = False  # its process was given up, or its coordinator died

    @property
    def read(self) -> bool:
        """Whether a coordinator knew all of it."""
        return self.read_to == len(self.kept)


def news_of(kept: Sequence[Event]) -> JournalSummary:
    """Return what a journal tells."""
    closed, skipped = {}, set()
    attempts, ended = Counter[str](), dict[str, Ended]()
    costs = defaultdict[str, list[int]](lambda: [0, 0, 0])
    open_calls: dict[tuple[str, int], Sent] = {}
    cost_usd: dict[str, float | None] = defaultdict(float)
    for event in kept:
        if isinstance(event, Sent):
            attempts[event.trial_id] = max(event.attempt, attempts[event.trial_id])
            open_calls[event.trial_id, event.attempt] = event
        elif isinstance(event, Ended):
            attempt = event.attempt
            open_calls.pop((attempt.trial_id, attempt.attempt))
            _charge(costs[attempt.model], attempt.cost_usd, attempt.reserved_usd)
            if event.reply is not None:
                ended[attempt.trial_id] = event
        elif isinstance(event, Result):
            closed[event.trial.trial_id] = event.grades[0].outcome
        elif isinstance(event, Skipped):
            skipped.add(event.trial.trial_id)
    for sent in open_calls.values():
        _charge(costs[sent.model], None, sent.reserved_usd)
        cost_usd[sent.trial_id] = None
    return JournalSummary(
        closed=closed,
        skipped=frozenset(skipped),
        histories={
            name: History(attempts=count, cost_usd=cost_usd[name], ended=ended.get(name))
            for name, count in attempts.items()
            if name not in closed
        },
        costs={
            alias: LeaseUse(spent=spent, doubted=doubted, doubted_calls=calls)
            for alias, (spent, doubted, calls) in costs.items()
        },
    )


def _charge(costs: list[int], cost_usd: float | None, reserved_usd: float | None) -> None:
    amount = picodollars((reserved_usd or 0.0) if cost_usd is None else cost_usd)
    costs[0] += amount
    if cost_usd is None:
        costs[1] += amount
        costs[2] += 1


# ── one coordinator and its workers ──────────────────────────────────────────────────────────


class Reign:
    """One coordinator, from its start to its end or death, with its workers and their messages."""

    def __init__(self, fleet: "Fleet", epoch: int, workers: int) -> None:
        self.fleet, self.epoch, self.workers = fleet, epoch, workers
        self.plan, self.world = fleet.plan, fleet.world
        self.process = self.world.process(f"c{epoch}")
        self.own = fleet.journal(self.process.name, self.process)
        self.over = False
        self.lost: set[str] = set()
        self.gone: set[str] = set()  # those, and workers that left
        self.unread: list[str] = []  # workers of an earlier coordinator
        self.members: dict[str, Process] = {}
        self.clients: list[ModelClient] = []
        self.ledger: Ledger | None = None
        self._rng = random.Random(f"{self.plan.seed} messages {epoch}")
        self._inboxes: dict[str, asyncio.Queue[bytes]] = {}
        self.workers_by_name: dict[str, ClusterWorker] = {}
        self.process.start(self._rule())

    async def _rule(self) -> None:
        plan, night = self.plan, Night(kept=self.own.kept)
        known = self.fleet.known()
        self._open_ledger()
        self.coordinator = Coordinator(
            epoch=self.epoch,
            workers=self.workers,
            now_s=self.process.now_s,
            notify=self.fleet.said.append,
            ledger=self.ledger,
            note=self.fleet.note,
            lane_lives_s=LANE_LIVES_S,
        )
        for (worker, alias), most in self.fleet.notes.items():
            if not self.fleet.journals[worker].readable:
                self.unread.append(worker)
                self.coordinator.leases.remember(worker, {alias: most})
        groups = groupby(plan.lanes, lambda lane: plan.lane_of(lane.alias))
        lanes = [self._lane(night, name, [*planned], known) for name, planned in groups]
        scheduler = Scheduler(lanes=lanes, lag=LoopLag(interval_s=60.0))
        async with asyncio.TaskGroup() as tasks:
            for n in range(self.workers):
                name = f"w{n}-e{self.epoch}"
                self._begin_worker(name)
                tasks.create_task(self._carry(name, tasks))
            await scheduler.run()
            self.coordinator.end()
        self.over = True

    def _open_ledger(self) -> None:
        if self.plan.budget_usd is None:
            return
        cap = Cap(kind="sweep", of="s", limit=picodollars(self.plan.budget_usd))
        self.ledger = Ledger([cap])
        for lane in self.plan.lanes:
            before = self.fleet.spent(lane.alias)
            self.ledger.open(lane.alias, [cap], _most, spent=before.spent)
            cap.spent += before.spent
            cap.doubted += before.doubted

    def _lane(self, night: Night, name: str, lanes: Sequence[PlannedLane], known: JournalSummary) -> Any:
        clients = [self._client(night, lane, known) for lane in lanes]
        self.clients += clients
        return self.coordinator.lane(name, clients)

    def _client(self, night: Night, lane: PlannedLane, known: JournalSummary) -> ModelClient:
        model = _model(lane)
        client = night.client(self.fleet.never, [], model)
        left = [one for one in _asked(lane) if one.trial.trial_id not in known.closed.keys() | known.skipped]
        client.calls.request_for = _request_of
        client.feed = TrialFeed(trials=iter([one.trial for one in left]), histories=known.histories)
        client.counters = Counters(planned=lane.trials)
        client.counters.done_before = sum(one.trial.trial_id in known.closed for one in _asked(lane))
        client.counters.skipped = sum(one.trial.trial_id in known.skipped for one in _asked(lane))
        client.account = None if self.ledger is None else self.ledger.account_of(lane.alias)
        if self.plan.stop_when is not None:
            client.stopping = self._stopping(client, lane, known)
        return client

    def _stopping(self, client: ModelClient, lane: PlannedLane, known: JournalSummary) -> Stopping:
        assert self.plan.stop_when is not None
        stopping = Stopping(
            when=self.plan.stop_when, keep=client.records.keep, counters=client.counters, now=lambda: 0.0
        )
        for one in _asked(lane):
            stopping.plan(one.trial)
        for one in _asked(lane):
            if (closed := known.closed.get(one.trial.trial_id)) is not None:
                stopping.close(one.trial.trial_id, right=right_of(closed))
        return stopping

    # ── workers and messages ─────────────────────────────────────────────────────────────────

    def _begin_worker(self, name: str) -> None:
        process = self.members[name] = self.world.process(name)
        journal = self.fleet.journal(name, process)
        self._inboxes[name] = asyncio.Queue()
        process.start(self._work(name, process, journal))

    async def _work(self, name: str, process: Process, journal: Journal) -> None:
        night = Night(kept=journal.kept)

        def client_for(model: Model) -> ModelClient:
            client = night.client(partial(self.fleet.provider.ask, process), [], model)
            client.calls.request_for = _request_of
            return client

        self.workers_by_name[name] = worker = ClusterWorker(
            name, client_for=client_for, bound_for=lambda _: _most, now_s=process.now_s, lag=night.lag
        )
        await worker.run()

    async def _carry(self, name: str, tasks: asyncio.TaskGroup) -> None:
        """Carry the messages between the coordinator and one worker, until it ended or is given up."""
        orders = self.coordinator.join(name)
        while True:
            report = await self._exchanged(name, orders)
            if report is None:
                self._lose(name)
                self._replace(name, tasks)
                return
            ends, orders = orders.ends, self.coordinator.answer(report)
            if self._rng.random() < self.plan.doubled:
                assert self.coordinator.answer(report).number == orders.number
            if ends:
                if not self.coordinator.ended:
                    self._replace(name, tasks)
                return

    def _replace(self, name: str, tasks: asyncio.TaskGroup) -> None:
        """Begin another worker in the place of one that is gone, if none is left or by chance."""
        self.gone.add(name)
        if len(self.gone) == len(self.members) or self._rng.random() < 0.5:
            another = f"w{len(self.members)}-e{self.epoch}"
            self._begin_worker(another)
            tasks.create_task(self._carry(another, tasks))

    async def _exchanged(self, name: str, orders: Orders) -> WorkerReport | None:
        """Send orders again and again until the report is there; None: nobody is there any more."""
        loop = asyncio.get_running_loop()
        process, began_s = self.members[name], loop.time()
        while loop.time() < began_s + GIVEN_UP_S:
            self._send(process, pickle.dumps(orders), self._delivered(name))
            with suppress(TimeoutError):
                async with asyncio.timeout(RESEND_S):
                    while True:
                        report: WorkerReport = pickle.loads(await self._inboxes[name].get())  # noqa: S301  our own
                        if report.number == orders.number:
                            return report
            if (died_s := self.fleet.deaths.get(name)) is not None and loop.time() >= died_s:
                return None
        return None

    def _delivered(self, name: str) -> Callable[[bytes], None]:
        process = self.members[name]

        async def obey(message: bytes) -> None:
            with suppress(StaleOrdersError):
                report = await self.workers_by_name[name].exchange(pickle.loads(message))  # noqa: S301  our own
                self._send(self.process, pickle.dumps(report), self._inboxes[name].put_nowait)

        def arrive(message: bytes) -> None:
            if process.alive:
                process.start(obey(message))

        return arrive

    def _send(self, to: Process, message: bytes, arrive: Callable[[bytes], None]) -> None:
        for _ in range(1 + (self._rng.random() < self.plan.doubled)):
            if self._rng.random() >= self.plan.lost:
                way_s = self._rng.expovariate(1 / self.plan.way_s)
                if self._rng.random() < self.plan.late:
                    way_s += self._rng.uniform(0, 2)
                to.post(way_s, lambda: arrive(message))

    def _lose(self, name: str) -> None:
        """Give a worker up, with its journal if it is dead and readable."""
        process, journal = self.members[name], self.fleet.journals[name]
        readable = not process.alive and journal.readable
        journal.lost, journal.read_to = True, len(journal.kept) if readable else 0
        self.lost.add(name)
        self.coordinator.lose(name, news_of(journal.kept) if readable else None, dead=not process.alive)


NEW: Final = History()
ROUNDING_S: Final = 1e-6
WARM_S: Final = 5.0


@dataclass(slots=True, kw_only=True)
class Fleet:
    """A run on a cluster that was played, or is."""

    plan: Scenario
    world: World = field(default_factory=World)
    journals: dict[str, Journal] = field(default_factory=dict)
    notes: dict[tuple[str, str], int] = field(default_factory=dict)  # by worker and alias
    deaths: dict[str, float] = field(default_factory=dict)  # when they are noticed
    said: list[str] = field(default_factory=list)
    reigns: list[Reign] = field(default_factory=list)
    _rested: bool = False  # nobody of the first reign sends any more
    provider: StrictProvider = field(init=False)

    def __post_init__(self) -> None:
        self.provider = StrictProvider(self.plan, self.world)

    def journal(self, name: str, process: Process) -> Journal:
        self.journals[name] = Journal(process=process)
        return self.journals[name]

    def note(self, worker: str, alias: str, most: int) -> None:
        self.notes[worker, alias] = most

    async def never(self, request: Request) -> Reply:
        raise AssertionError(f"the coordinator's own process was to ask {request.trial.trial_id}")

    def known(self) -> JournalSummary:
        """What all readable journals tell a coordinator that begins."""
        readable = [one for one in self.journals.values() if one.readable]
        for one in self.journals.values():
            one.lost, one.read_to = True, len(one.kept) if one.readable else one.read_to
        return _together([news_of(one.kept) for one in readable])

    def spent(self, alias: str) -> LeaseUse:
        """What calls of a model cost so far, by all journals that can be read."""
        known = [
            news_of(one.kept).costs.get(alias, LeaseUse()) for one in self.journals.values() if one.readable
        ]
        return LeaseUse(spent=sum(one.spent for one in known), doubted=sum(one.doubted for one in known))

    # ── playing ──────────────────────────────────────────────────────────────────────────────

    def play(self) -> None:
        """Play it to its end, with as many reigns as it takes."""
        reign = self._begin(1, self.plan.workers)
        for fate in self.plan.fates:
            self.world.at(fate.at_s, partial(self._befall, reign, fate))
        if self.plan.dies_s is not None:
            self.world.at(self.plan.dies_s, lambda: self._die(reign))
        self._run(lambda: reign.over or not reign.process.alive, within_s=900)
        if not reign.over:
            self._run(lambda: self._rested, within_s=60)
            again = self._begin(2, self.plan.workers_then)
            self._run(lambda: again.over, within_s=900)

    def _begin(self, epoch: int, workers: int) -> Reign:
        self.reigns.append(reign := Reign(self, epoch, workers))
        return reign

    def read_all(self) -> None:
        """Let every journal be read, at the end."""
        reign = self.reigns[-1]
        for name, journal in self.journals.items():
            journal.readable = True
            if name in reign.lost or name in reign.unread:
                reign.coordinator.leases.correct(name, news_of(journal.kept).costs)

    def _befall(self, reign: Reign, fate: Fate) -> None:
        names = [*reign.members]
        if fate.worker is None:
            reign.process.stalled_until_s = self.world.now_s + fate.stalls_s
        elif names:
            name = names[fate.worker]
            process = reign.members[name]
            process.stalled_until_s = max(process.stalled_until_s, self.world.now_s + fate.stalls_s)
            process.slept_s += fate.sleeps_s
            if fate.leaves and name in reign.workers_by_name:
                process.post(0.0, lambda: reign.workers_by_name[name].leave(1.0))
            if fate.dies and process.alive:
                process.alive = False
                self.deaths[name] = self.world.now_s + fate.noticed_s
                self.journals[name].readable = fate.readable

    def _die(self, reign: Reign) -> None:
        """Let a coordinator die; the next one begins when no worker of it can send any more."""
        if reign.over:
            return
        reign.process.alive = False
        for process in reign.members.values() if not self.plan.zombies else ():
            process.alive = False
        rests_s = LANE_LIVES_S + TOTAL_S if self.plan.zombies else 0.1

        def rest() -> None:
            self._rested = True

        self.world.at(self.world.now_s + rests_s, rest)

    def _run(self, done: Callable[[], bool], *, within_s: float) -> None:
        try:
            self.world.run(done, within_s=within_s, check=self.check)
        finally:
            self._raise_faults()

    def _raise_faults(self) -> None:
        for process in self.world.processes:
            for task in process.tasks:
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    raise error

    # ── what holds at every moment ───────────────────────────────────────────────────────────

    def check(self) -> None:
        if self.plan.budget_usd is None:
            return
        limit = picodollars(self.plan.budget_usd)
        assert self.provider.billed <= limit, "the provider billed more than the budget"
        reign = self.reigns[-1]
        if reign.ledger is not None and reign.process.alive:
            (cap,) = reign.ledger.caps
            assert cap.spent + cap.reserved <= limit, "more is set aside than the budget"
            assert cap.spent + cap.reserved >= self.provider.billed, "a call was billed that nobody foresaw"
            assert cap.reserved >= 0


def _together(news: Sequence[JournalSummary]) -> JournalSummary:
    closed = {name: how for one in news for name, how in one.closed.items()}
    histories: dict[str, History] = {}
    for name, history in ((name, history) for one in news for name, history in one.histories.items()):
        before = histories.get(name, NEW)
        if name not in closed:
            histories[name] = History(
                attempts=max(before.attempts, history.attempts),
                cost_usd=None,
                ended=before.ended or history.ended,
            )
    skipped = frozenset[str]().union(*(one.skipped for one in news)) - closed.keys()
    return JournalSummary(closed=closed, skipped=skipped, histories=histories)


def play(plan: Scenario) -> Fleet:
    """Play a run on a cluster."""
    fleet = Fleet(plan=plan)
    try:
        fleet.play()
        fleet.read_all()
    finally:
        fleet.world.end()
    return fleet


# ── what is used of a limit ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """What a cluster made of a limit while there was work; all but the last as shares of it."""

    share: float
    worst_second: float
    worst_minute: float
    refused: int  # calls


def used(workers: int, per_s: int, fates: Sequence[Fate] = (), *, seconds: int = 70) -> LimitUse:
    """Play one lane; return what was used of its limit once it was known that its model answers."""
    lane = PlannedLane(alias="m0", trials=per_s * seconds, rpm=60.0 * per_s, concurrency=None, right=1.0)
    plan = Scenario(workers=workers, lanes=(lane,), latency_s=1.0, fates=tuple(fates))
    fleet = play(plan)
    times = [call.at_s for call in fleet.provider.calls]
    ends_s = times[-1] - 1.0
    counted = sum(WARM_S < at_s <= ends_s for at_s in times)
    return LimitUse(
        share=counted / (ends_s - WARM_S) / per_s,
        worst_second=_worst(times, 1.0) / per_s,
        worst_minute=_worst(times, 60.0) / per_s,
        refused=fleet.provider.refused,
    )


def _worst(times: Sequence[float], seconds: float) -> float:
    return max(bisect_left(times, at_s + seconds) - i for i, at_s in enumerate(times)) / seconds


# ── what holds in all of them ────────────────────────────────────────────────────────────────


def every_trial_is_closed_once(fleet: Fleet) -> None:
    """But for those that another process closed whose journal could not be read then."""
    closed: dict[str, list[Journal]] = defaultdict(list)
    for journal in fleet.journals.values():
        for event in journal.kept:
            if isinstance(event, Result):
                closed[event.trial.trial_id].append(journal)
    for journals in closed.values():
        assert sum(one.read or not one.lost for one in journals) <= 1 or len(journals) == 1, "closed twice"
    done = closed.keys() | {
        event.trial.trial_id
        for journal in fleet.journals.values()
        for event in journal.kept
        if isinstance(event, Skipped)
    }
    stopped = {one.model.alias for one in fleet.reigns[-1].clients if one.counters.over}
    planned = {one.trial.trial_id for lane in fleet.plan.lanes for one in _asked(lane)}
    left = planned - done
    assert {name.split()[0] for name in left} <= stopped, f"left open: {sorted(left)[:5]}"
    assert done <= planned


def counters_tell_what_came_of_it(fleet: Fleet) -> None:
    for client in fleet.reigns[-1].clients:
        counters = client.counters
        assert counters.in_flight == 0
        assert counters.over or counters.open == 0, f"{counters.open} open"
        assert counters.done + counters.skipped <= counters.planned


def nothing_is_paid_twice_but_what_was_in_flight(fleet: Fleet) -> None:
    """A call that was answered is not made again, unless nobody could read so."""
    paid: dict[str, list[ServedCall]] = defaultdict(list)
    for call in fleet.provider.calls:
        if call.told:
            paid[call.trial_id].append(call)
    for trial_id, calls in paid.items():
        for earlier in calls[:-1]:
            journal = fleet.journals[earlier.process.name]
            known = any(
                isinstance(event, Ended) and event.reply is not None and event.attempt.trial_id == trial_id
                for event in journal.kept[: journal.read_to]
            )
            assert not known, f"{trial_id} was paid for again"
            assert journal.lost, f"{trial_id} was answered at {earlier.process.name}"


def no_limit_is_passed(fleet: Fleet) -> None:
    """In no window are more calls sent than its limit lets, but for the burst, and one a worker."""
    plan = fleet.plan
    for name, lane in {plan.lane_of(lane.alias): lane for lane in plan.lanes}.items():
        if lane.rpm is None:
            continue
        per_s = lane.rpm / 60 * HEADROOM
        calls = [call for call in fleet.provider.calls if plan.lane_of(call.alias) == name]
        processes = len({call.process.name for call in calls})
        allowed = 2.0 + processes + per_s * REQUEST_BURST_S
        excess, last_s = 0.0, 0.0
        for call in calls:
            excess = max(0.0, excess - (call.at_s - last_s) * per_s) + 1.0
            last_s = call.at_s
            assert excess <= allowed, f"{lane}: {excess:.1f} more than the limit at {last_s:.3f} s"


def no_more_calls_are_in_flight_than_may_be(fleet: Fleet) -> None:
    """As far as anybody knew: a process that died may have begun some since its last report."""
    plan = fleet.plan
    for name, lane in {plan.lane_of(lane.alias): lane for lane in plan.lanes}.items():
        served: list[ServedCall] = []
        for call in fleet.provider.calls if lane.concurrency is not None else ():
            if plan.lane_of(call.alias) == name and not _is_unheard_of(fleet, call):
                served = [*(one for one in served if one.ends_s > call.at_s + ROUNDING_S), call]
                assert len(served) <= (lane.concurrency or 0), f"{len(served)} at {call.at_s:.3f} s of {lane}"


def _is_unheard_of(fleet: Fleet, call: ServedCall) -> bool:
    return fleet.journals[call.process.name].lost


def money_adds_up(fleet: Fleet) -> None:
    """When all journals are read, the ledger has what they tell: nothing is set aside, doubted is lost."""
    reign = fleet.reigns[-1]
    if reign.ledger is None:
        return
    (cap,) = reign.ledger.caps
    if any(one.lost and 0 < one.read_to < len(one.kept) for one in fleet.journals.values()):
        return  # it was read too early: the next run knows better
    truth = [fleet.spent(lane.alias) for lane in fleet.plan.lanes]
    assert cap.reserved == 0, f"{cap.reserved} are still set aside"
    assert cap.spent == sum(one.spent for one in truth)
    assert cap.doubted == sum(one.doubted for one in truth)
    for lane, known in zip(fleet.plan.lanes, truth, strict=True):
        account = reign.ledger.account_of(lane.alias)
        assert account is not None
        assert (account.reserved, account.spent) == (0, known.spent)


def cells_stop_as_in_one_process(fleet: Fleet) -> None:
    """A rule stops the same cells by the same answers."""
    if fleet.plan.stop_when is None or any(one.counters.over for one in fleet.reigns[-1].clients):
        return
    for lane, client in zip(fleet.plan.lanes, fleet.reigns[-1].clients, strict=True):
        assert client.stopping is not None
        alone = _stops_alone(fleet, lane)
        assert client.stopping.stops() == alone, f"{client.stopping.stops()} instead of {alone}"


def _stops_alone(fleet: Fleet, lane: PlannedLane) -> Mapping[Any, Any]:
    """Return which cells a rule stops that hears all answers in planned order."""
    assert fleet.plan.stop_when is not None
    rule = Stopping(when=fleet.plan.stop_when, keep=lambda _: None, counters=Counters(), now=lambda: 0.0)
    for one in _asked(lane):
        rule.plan(one.trial)
    failed = {
        event.trial.trial_id
        for journal in fleet.journals.values()
        for event in journal.kept
        if isinstance(event, Result) and event.error is not None
    }
    for one in _asked(lane):
        right = fleet.provider.reply_to(one.trial).text == "4"
        rule.close(one.trial.trial_id, right=None if one.trial.trial_id in failed else right)
    return rule.stops()


INVARIANTS: Final[tuple[Callable[[Fleet], None], ...]] = (
    every_trial_is_closed_once,
    counters_tell_what_came_of_it,
    nothing_is_paid_twice_but_what_was_in_flight,
    no_limit_is_passed,
    no_more_calls_are_in_flight_than_may_be,
    money_adds_up,
    cells_stop_as_in_one_process,
)


def broken(seed: int) -> list[str]:
    """Return what did not hold in the run of a seed."""
    test = "tests/cluster/test_fleets.py -k test_the_run_of_a_seed"
    return seeds.broken(seed, lambda seed: play(scenario(seed)), INVARIANTS, test)
