"""Records of one run: all that is open before it is prepared, and the results of each step.

`opening.open_run` returns an `OpenRun`. Each step of `preparing.prepare` returns one of the records below it.
A `Run` is all of them together; nothing of it is replaced while it goes on.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from asyncbench.cluster.messages import Cluster
from asyncbench.config.run_entries import workers_here
from asyncbench.config.sweep import Sweep
from asyncbench.engine.budget import Cap, Ledger
from asyncbench.lanes.batches.ledger import BatchLedger
from asyncbench.lanes.batches.spending import LeftOpen
from asyncbench.lanes.batches.switching import Switch
from asyncbench.planning.modes import has_mode_auto
from asyncbench.planning.reuse import Room
from asyncbench.planning.skipping import Before, Needed
from asyncbench.planning.trials import Closed, TrialSource, planned
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.providers.credentials import Credentials
from asyncbench.providers.provider import makes_own_calls
from asyncbench.providers.workers.process import WorkerCounts
from asyncbench.providers.workers.workers import Workers
from asyncbench.records import BATCH, REALTIME, Model
from asyncbench.run.interrupts import Death
from asyncbench.run.notify import Notifier
from asyncbench.run.options import RunOptions
from asyncbench.run.progress import Screen
from asyncbench.run.refusals import Faults, Refusals
from asyncbench.store.copying import FolderCopy
from asyncbench.store.folder import Store
from asyncbench.store.salvage import Salvage
from asyncbench.store.spending import KnownCosts


@dataclass(slots=True, kw_only=True)
class RunWorkers:
    """Workers of a run, as far as they are started, and what became of them."""

    cluster: Cluster | None  # where workers ask what is asked call by call; None: as options say
    processes: Workers | None = None  # that make the calls; None: this process does
    counts: Callable[[], Sequence[WorkerCounts]] = tuple  # of each worker, while the run goes on
    unread: list[str] = field(default_factory=list)  # names of dead workers whose journals cannot be read
    failed: bool = False  # they died again and again


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run that was checked, and whose folder is open: nothing is written yet."""

    sweep: Sweep
    options: RunOptions
    models: Sequence[Model]  # that are asked
    keys: Mapping[str, Credentials]  # of the models, by alias
    problems: Mapping[str, ProblemSet]  # the sweep's files, by their place in it
    within_s: float | None  # the deadline, from now; None: the sweep has none
    store: Store
    salvage: Salvage
    copy: FolderCopy | None  # of the folder, in a bucket; None: results stay on this machine
    death: Death | None  # of the run before this one; None: it was not killed
    screen: Screen
    notifier: Notifier
    faults: Faults
    refusals: Refusals
    workers: RunWorkers

    @property
    def own_graders(self) -> Mapping[str, str]:
        """The digests of the graders that are functions of the user, by name."""
        sets = self.problems.values()
        return {name: digest for problems in sets for name, digest in problems.own_graders.items()}

    @property
    def uses_cluster(self) -> bool:
        """Return whether workers of a cluster ask what is asked call by call."""
        return self.workers.cluster is not None or self.options.ray is not None

    @property
    def process_count(self) -> int:
        """Number of worker processes that shall make calls here; 0: this process makes them.

        Workers have nothing to do where a package of the user makes the calls, or batches take all trials.
        """
        if self.options.ends or self.uses_cluster:  # a worker of the cluster has its own
            return 0
        for model in self.models:
            batched = model.mode == BATCH and not has_mode_auto(self.sweep, model.alias)
            if not makes_own_calls(model) and (not batched or self.sweep.batch.fallback == REALTIME):
                return workers_here(self.sweep.workers)
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuestions:
    """The trials that a run is to ask, those that are finished too."""

    sweep: Sweep
    options: RunOptions
    sets: Mapping[str, tuple[TrialSource, ...]]  # by alias
    room: Room

    def planned(self, model: Model) -> int:
        """Return how many trials this run is to ask of a model."""
        options = self.options
        if options.load is not None:
            return 0  # its lane says how many its steps ask
        sources = self.sets[model.alias]
        return planned(self.sweep, model.alias, sources, limit=options.limit, per_cell=options.pilot)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMoney:
    """The budget of a run, and the cost of earlier runs."""

    ledger: Ledger | None = None  # None: there is no budget
    costs_before: Mapping[str, KnownCosts] = field(default_factory=dict)  # of earlier runs, by alias
    lost_usd: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # see `spent_by_lost`

    @property
    def caps(self) -> Sequence[Cap]:
        """The caps that hold the budget."""
        return () if self.ledger is None else self.ledger.caps


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierBatches:
    """The batches that earlier runs left, in the ledger that this run goes on with."""

    ledger: BatchLedger
    left_open: Mapping[str, LeftOpen]  # by alias


@dataclass(slots=True, kw_only=True)
class EarlierTrials:
    """The trials that earlier runs closed."""

    closed: Mapping[str, Closed] = field(default_factory=dict)  # by alias; empty: each trial is looked up
    before: Before | None = None  # results of earlier runs; None: no rule stops a cell
    ungraded: Counter[str] = field(default_factory=Counter)  # by alias: a grader stumbled over their replies
    needed: dict[str, Needed] = field(default_factory=dict)  # by alias, for the models that have a client

    def forget(self) -> None:
        """Let go of what tells which trials to ask, for nothing more is asked."""
        self.before = None
        for needed in self.needed.values():
            needed.forget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(OpenRun):
    """One run of a sweep, ready for its first call."""

    started_s: float  # of `time.monotonic`
    questions: RunQuestions
    money: RunMoney
    batches: EarlierBatches
    switches: Mapping[str, Switch] = field(default_factory=dict)  # from batches to real time, by alias
    earlier: EarlierTrials = field(default_factory=EarlierTrials)
    grading: asyncio.Lock = field(default_factory=asyncio.Lock)  # the graders of users run one at a time

    @property
    def is_complete(self) -> bool:
        """Return whether earlier runs are known to have closed every trial."""
        closed = self.earlier.closed
        trials = sum(map(self.questions.planned, self.models))
        return bool(closed) and sum(closed_trials.done for closed_trials in closed.values()) >= trials

    def is_dealt(self, model: Model) -> bool:
        """Return whether workers of a cluster ask a model. The run makes the few calls of batches."""
        leftover = self.batches.left_open.get(model.alias)
        # The run collects its open batches, and asks what they leave.
        in_batches = leftover is not None and bool(leftover.done)
        return self.uses_cluster and model.mode == REALTIME and not in_batches and not self.options.ends
