"""What a run is told beside its sweep, and what its parts share while it lasts."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from asyncbench.config import Sweep
from asyncbench.engine import Cap, Ledger
from asyncbench.problems import ProblemSet
from asyncbench.records import Model, Outcome
from asyncbench.run.faults import Faults
from asyncbench.run.notify import Death, Notifier
from asyncbench.run.progress import Screen
from asyncbench.store import SWEEP_FILE, Salvage, Store
from asyncbench.sweeps import AskedSet, Before, Needed, Room, planned


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of one run; `run_sweep` says what each means."""

    limit: int | None = None  # problems of a model
    pilot: int | None = None  # problems of a cell
    models: Sequence[str] | None = None  # aliases
    budget_usd: float | None = None
    retry: Collection[Outcome] = ()
    max_tokens: int | None = None
    reuse: Path | None = None
    ignore: Collection[str] = ()
    accept_loss: bool = False

    @property
    def may_raise_budget(self) -> bool:
        """Whether `budget_usd` may take more money: of a pilot's budget and the sweep's the lower holds."""
        return self.pilot is None or self.budget_usd is not None

    def command(self, sweep: Sweep, more_usd: str | None = None) -> str:
        """Return the command that asks the same again, with `more_usd` instead of its budget.

        A sweep of no file is asked by what its folder holds of it. What was lost is accepted once.
        """
        said = {
            "--pilot": self.pilot,
            "--limit": self.limit,
            "--models": ",".join(self.models or ()),
            "--budget": more_usd or self.budget_usd,
            "--retry": ",".join(self.retry),
            "--max-tokens": self.max_tokens,
            "--reuse": self.reuse,
            "--ignore": ",".join(self.ignore),
        }
        words = [word for name, value in said.items() if value for word in (name, str(value))]
        file = sweep.out / SWEEP_FILE if sweep.file is None else sweep.file
        return shlex.join(["asyncbench", "plan" if self.pilot else "run", str(file), *words])


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
    sets: Mapping[str, tuple[AskedSet, ...]] = field(init=False)  # what each model is asked, by alias
    room: Room = field(init=False)
    started_s: float = field(init=False)  # of `time.monotonic`
    ledger: Ledger | None = None  # None: there is no budget
    before: Before | None = None  # None: no rule stops a cell
    needed: dict[str, Needed] = field(default_factory=dict)  # by alias; empty: likewise

    @property
    def caps(self) -> Sequence[Cap]:
        """What holds the budget."""
        return () if self.ledger is None else self.ledger.caps

    def planned(self, model: Model) -> int:
        """Return how many trials this run is to ask of a model, those that are finished too."""
        options = self.options
        return planned(self.sweep, self.sets[model.alias], limit=options.limit, per_cell=options.pilot)
