"""State that the parts of a run share."""

import asyncio
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
class RunState:
    """One run of a sweep: what it was given and what its parts share while it lasts."""

    sweep: Sweep
    models: Sequence[Model]  # that are asked
    options: RunOptions
    keys: Mapping[str, Credentials]  # of the models, by alias
    opened: Mapping[str, ProblemSet]  # the sweep's files, by their place in it
    within_s: float | None  # the deadline, from now
    death: Death | None  # of the run before this one, where it was killed
    store: Store
    salvage: Salvage
    screen: Screen
    notifier: Notifier
    faults: Faults
    refusals: Refusals
    copy: FolderCopy | None = None  # in a bucket; None: there is none
    costs_before: Mapping[str, KnownCosts] = field(default_factory=dict)  # of earlier runs, by alias
    sets: Mapping[str, tuple[TrialSource, ...]] = field(init=False)  # what each model is asked, by alias
    room: Room = field(init=False)
    started_s: float = field(init=False)  # of `time.monotonic`
    batches: BatchLedger = field(init=False)
    left_open: Mapping[str, LeftOpen] = field(default_factory=dict)  # in batches by earlier runs, by alias
    switches: Mapping[str, Switch] = field(default_factory=dict)  # from batches to real time, by alias
    ledger: Ledger | None = None  # None: there is no budget
    closed: Mapping[str, Closed] = field(default_factory=dict)  # by alias; empty: each trial is looked at
    before: Before | None = None  # None: no rule stops a cell
    grading: asyncio.Lock = field(default_factory=asyncio.Lock)  # of all models: graders of one's own
    workers: Workers | None = None  # None: this process makes the calls
    cluster: Cluster | None = None  # where workers ask what is asked call by call; None: as options say
    count_workers: Callable[[], Sequence[WorkerCounts]] = tuple  # none: this process makes the calls
    lost_usd: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # see `spent_by_lost`
    unread_workers: list[str] = field(default_factory=list)  # whose journals nobody could read
    workers_failed: bool = False  # they died again and again
    needed: dict[str, Needed] = field(default_factory=dict)  # by alias; empty: likewise

    @property
    def caps(self) -> Sequence[Cap]:
        """The caps that hold the budget."""
        return () if self.ledger is None else self.ledger.caps

    @property
    def own_graders(self) -> Mapping[str, str]:
        """The digests of the graders that are somebody's own functions, by name."""
        opened = self.opened.values()
        return {name: digest for problems in opened for name, digest in problems.own_graders.items()}

    @property
    def workers_wanted(self) -> int:
        """Number of processes that make the calls; 0: this one, as where no call is for others."""
        if self.options.ends or self.is_complete or not any(map(self._is_for_workers, self.models)):
            return 0
        if self.on_cluster:
            return 0  # a worker of the cluster has its own
        return workers_here(self.sweep.workers)

    @property
    def on_cluster(self) -> bool:
        """Return whether workers of a cluster ask what is asked call by call."""
        return self.cluster is not None or self.options.ray is not None

    def is_dealt(self, model: Model) -> bool:
        """Return whether workers of a cluster ask a model. The run makes the few calls of batches."""
        leftover = self.left_open.get(model.alias)
        # The run collects its open batches, and asks what they leave.
        in_batches = leftover is not None and bool(leftover.done)
        return self.on_cluster and model.mode == REALTIME and not in_batches and not self.options.ends

    def _is_for_workers(self, model: Model) -> bool:
        """Return whether workers can make a model's calls: those that batches leave, none of a package."""
        batched = model.mode == BATCH and not has_mode_auto(self.sweep, model.alias)
        return not makes_own_calls(model) and (not batched or self.sweep.batch.fallback == REALTIME)

    @property
    def is_complete(self) -> bool:
        """Return whether earlier runs closed every trial, as far as anybody looked."""
        done = sum(closed.done for closed in self.closed.values())
        return bool(self.closed) and done >= sum(map(self.planned, self.models))

    def planned(self, model: Model) -> int:
        """Return how many trials this run is to ask of a model, those that are finished too."""
        options = self.options
        if options.load is not None:
            return 0  # its lane says how many its steps ask
        return planned(
            self.sweep, model.alias, self.sets[model.alias], limit=options.limit, per_cell=options.pilot
        )
