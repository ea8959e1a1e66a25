"""Messages between a coordinator and its workers: orders, reports, and the links that carry them.

A worker has one exchange open at a time. Orders and the report on them have the same number. Whoever gets a
number again gives the answer that it gave before, so messages may be lost, late or doubled. Times are
durations alone: no clock is compared with another.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from asyncbench.engine.budget import AS_BOUND
from asyncbench.engine.stopping import ConditionCell
from asyncbench.engine.telemetry import Counters
from asyncbench.errors import AsyncbenchError, ProviderError
from asyncbench.records import History, Limits, Model, Outcome, Stop, Trial

# ── Orders ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStart:
    """A lane that a worker runs from now on, with all of its limits."""

    models: Sequence[Model]
    limits: Limits
    budgeted: frozenset[str] = frozenset()  # aliases whose calls need leased dollars
    answered_before: frozenset[str] = frozenset()  # aliases whose key and name are known to be good
    stoppable: frozenset[str] = frozenset()  # aliases whose cells a rule may stop
    taken_s: Sequence[float] = ()  # for how long slots are taken by calls of a worker that died


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtTrial:
    """A trial for a lane of a worker."""

    number: int  # in planned order
    trial: Trial
    history: History
    anyway: bool  # it is asked whatever is known of its cell


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneOrders:
    """News for a lane of a worker."""

    start: LaneStart | None = None  # None: it runs it already
    trials: Sequence[DealtTrial] = ()
    dry: frozenset[str] = frozenset()  # aliases for which no more trials come
    stops: Mapping[str, Mapping[ConditionCell, Stop]] = field(default_factory=dict)  # by alias
    suspended: Mapping[str, str] = field(default_factory=dict)  # by alias, why
    paused: bool | None = None  # None: as before
    limits: Limits | None = None  # None: as before
    stop: bool = False  # it begins nothing more


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The money that a worker may spend on a model; picodollars, since it joined."""

    granted: int = 0
    ratio: Fraction = AS_BOUND  # by which bounds are raised
    least: int = 0  # what is set aside where the bound is 0
    never: int | None = None  # so much for one call, and more, will never be there; None: it may


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """Orders of a coordinator to a worker."""

    worker: str
    epoch: int  # of the coordinator: orders of a lower one than known are refused
    number: int
    soonest_s: float  # between two of its reports
    every_s: float  # it reports at least so often
    lane_lives_s: float  # its lanes send nothing so long after the report that these orders answer
    lanes: Mapping[str, LaneOrders] = field(default_factory=dict)
    leases: Mapping[str, Lease] = field(default_factory=dict)  # by alias, where anything is new
    drain_s: float | None = None  # all of it ends within this time; None: it goes on
    ends: bool = False  # there is nothing more to do, or it was given up


# ── Reports ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneReport:
    """The state of a lane at a worker."""

    room: Mapping[str, int]  # trials that it could take, by alias
    closed: Mapping[int, Outcome]  # trials since the report before, by number
    skipped: Sequence[int]  # likewise
    counters: Mapping[str, Counters]  # by alias, since the worker took the lane
    in_force: Mapping[str, float]  # limits a minute
    begun: Mapping[int, History] | None = None  # it has ended, and left these begun; None: it goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseUse:
    """The use that a worker made of its dollars for a model, by itself or its journal; picodollars."""

    spent: int = 0
    doubted: int = 0  # of it: for calls of unknown cost
    doubted_calls: int = 0
    returned: int = 0
    overruns: int = 0  # calls that cost more than was set aside for them
    ratio: Fraction = AS_BOUND
    least: int = 0
    short: int = 0  # what its next call needs and is not there; 0: nothing is missing
    wanted: int = 0  # what its next calls will need beyond what it has


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """A report of a worker on its work and its needs."""

    worker: str
    epoch: int
    number: int  # of the orders that it answers
    lanes: Mapping[str, LaneReport] = field(default_factory=dict)
    leases: Mapping[str, LeaseUse] = field(default_factory=dict)
    failed: Sequence[tuple[str, ProviderError]] = ()  # alias and error, before its first reply
    messages: Sequence[str] = ()  # to a person
    attempts: int = 0  # calls that it ended
    in_flight: int = 0
    lag_s: float = 0.0  # how late its event loop was at worst, lately
    leaving: bool = False  # it begins nothing more


# ── Journals ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSummary:
    """The content of a dead worker's journal."""

    closed: Mapping[str, Outcome] = field(default_factory=dict)  # by trial
    skipped: frozenset[str] = frozenset()  # trials
    histories: Mapping[str, History] = field(default_factory=dict)  # of trials that were begun, not closed
    costs: Mapping[str, LeaseUse] = field(default_factory=dict)  # by alias, of all its calls


# ── Links that carry messages, over Ray or in a test


class WorkerDiedError(AsyncbenchError):
    """The process of a worker is gone, or its machine."""


class WorkerSilentError(AsyncbenchError):
    """Nobody reaches a worker: its process may live, and go on for a while with what it was told."""


class Program(Protocol):
    """A worker's part, in a process of its own."""

    async def exchange(self, orders: Orders) -> WorkerReport:
        """Obey orders; return the next report, as soon as there is news or it is time."""

    async def close(self) -> None:
        """End: nothing more is asked, and what was kept is sealed."""


Start = Callable[[str], Awaitable[Program]]  # is pickled; called in a worker's process with the worker's name


class Link(Program, Protocol):
    """A worker, as its run sees it.

    Its methods raise `WorkerDiedError` where the worker is gone, so that nobody knows what it did with its
    orders, and `WorkerSilentError` where it may be, or only out of reach.
    """

    name: str
    host: str
    pid: int

    def kill(self) -> None:
        """End the worker's process at once."""


class Cluster(Protocol):
    """A place where workers run."""

    @property
    def count(self) -> int:
        """The number of workers it has room for."""

    async def start(self, name: str, program: Start) -> Link:
        """Start a worker.

        Raises:
            ConfigError: it cannot do its work there: a key, a package or the folder is missing.
            WorkerDiedError: it was gone before it was there, or there is no room for it.
        """

    async def aclose(self) -> None:
        """End all that was started."""
