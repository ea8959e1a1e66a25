"""What the parts of a run share while it lasts."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from asyncbench.batches import BatchLedger, LeftOpen, Switch
from asyncbench.config import Sweep
from asyncbench.engine import Cap, Ledger
from asyncbench.problems import ProblemSet
from asyncbench.records import Model
from asyncbench.run.faults import Faults
from asyncbench.run.interrupts import Death
from asyncbench.run.notify import Notifier
from asyncbench.run.options import RunOptions
from asyncbench.run.progress import Screen
from asyncbench.run.refusals import Refusals
from asyncbench.store import KnownCosts, Salvage, Store
from asyncbench.sweeps import AskedSet, Before, Closed, Needed, Room, planned


@dataclass(slots=True, kw_only=True)
class RunState:
    """One run of a sweep: what it was given and what its parts share while it lasts."""

    sweep: Sweep
    models: Sequence[Model]  # that are asked
    options: RunOptions
    keys: Mapping[str, str]  # of the models, by alias
    opened: Mapping[str, ProblemSet]  # the sweep's files, by their place in it
    within_s: float | None  # the deadline, from now
    death: Death | None  # of the run before this one, where it was killed
    store: Store
    salvage: Salvage
    screen: Screen
    notifier: Notifier
    faults: Faults
    refusals: Refusals
    costs_before: Mapping[str, KnownCosts] = field(default_factory=dict)  # of earlier runs, by alias
    sets: Mapping[str, tuple[AskedSet, ...]] = field(init=False)  # what each model is asked, by alias
    room: Room = field(init=False)
    started_s: float = field(init=False)  # of `time.monotonic`
    batches: BatchLedger = field(init=False)
    left_open: Mapping[str, LeftOpen] = field(default_factory=dict)  # in batches by earlier runs, by alias
    switches: Mapping[str, Switch] = field(default_factory=dict)  # from batches to real time, by alias
    ledger: Ledger | None = None  # None: there is no budget
    closed: Mapping[str, Closed] = field(default_factory=dict)  # by alias; empty: each trial is looked at
    before: Before | None = None  # None: no rule stops a cell
    grading: asyncio.Lock = field(default_factory=asyncio.Lock)  # of all models: graders of one's own
    needed: dict[str, Needed] = field(default_factory=dict)  # by alias; empty: likewise

    @property
    def caps(self) -> Sequence[Cap]:
        """What holds the budget."""
        return () if self.ledger is None else self.ledger.caps

    @property
    def own_graders(self) -> Mapping[str, str]:
        """The digests of the graders that are somebody's own functions, by name."""
        opened = self.opened.values()
        return {name: digest for problems in opened for name, digest in problems.own_graders.items()}

    def planned(self, model: Model) -> int:
        """Return how many trials this run is to ask of a model, those that are finished too."""
        options = self.options
        if options.load is not None:
            return 0  # its lane says how many its steps ask
        return planned(
            self.sweep, model.alias, self.sets[model.alias], limit=options.limit, per_cell=options.pilot
        )
