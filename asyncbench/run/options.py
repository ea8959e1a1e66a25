"""Options of a run, and the command that continues it."""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from asyncbench.config.run_entries import WorkersWanted
from asyncbench.config.sweep import Sweep
from asyncbench.lanes.batches.context import BatchClock
from asyncbench.problems.samples import Sample
from asyncbench.records import Outcome
from asyncbench.store.manifest import SWEEP_FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of one run; `run_sweep` says what each means."""

    limit: int | None = None  # problems of a model
    sample: Sample | None = None  # of each problem set; None: as the sweep says
    pilot: int | None = None  # problems of a cell
    models: Sequence[str] | None = None  # aliases
    mode: str | None = None  # of all models
    budget_usd: float | None = None
    retry: Collection[Outcome] = ()
    max_tokens: int | None = None
    reuse: Sequence[Path] = ()  # in this order
    ignore: Collection[str] = ()
    accept_loss: bool = False
    extend: bool = False  # the sweep is united with that of its folder already
    journal: Path | None = None  # the local folder of results in a bucket
    detach: bool = False  # leaves batches as soon as they are sent
    resubmit: Collection[str] = ()  # keys of parts of batches that are in doubt
    ends: bool = False  # cancels open batches, and asks nothing
    workers: WorkersWanted | None = None  # processes that make the calls; None: as the sweep says
    ray: str | None = None  # the address of a Ray cluster whose workers ask; "": the usual one; None: none
    load: Sequence[str] | None = None  # the options of a load, as typed; None: it is no load
    clock: BatchClock | None = None  # of batches; None: this computer's
    typed: bool = False  # on the command line: messages name the options as they were typed

    @property
    def budget_name(self) -> str:
        """Name of the option that set the budget."""
        return "--budget" if self.typed and self.budget_usd is not None else "budget_usd"

    def name_of(self, option: str) -> str:
        """Return the name of an option in messages, as it was given."""
        return f"--{option}" if self.typed else option

    @property
    def may_raise_budget(self) -> bool:
        """Return whether `budget_usd` may allow more: of a pilot's and the sweep's budget the lower holds."""
        return self.pilot is None or self.budget_usd is not None

    def command(self, sweep: Sweep, more_usd: str | None = None) -> str:
        """Return the command that asks the same again, with `more_usd` instead of its budget.

        A sweep without a file is read from its folder. `--accept-loss` holds for one run only.
        """
        flags = {
            "--pilot": self.pilot,
            "--limit": self.limit,
            "--sample": None if self.sample is None else self.sample.size,
            "--seed": None if self.sample is None else str(self.sample.seed),  # 0 is a number, too
            "--by": None if self.sample is None else self.sample.by,
            "--models": ",".join(self.models or ()),
            "--mode": self.mode,
            "--budget": more_usd or self.budget_usd,
            "--retry": ",".join(self.retry),
            "--max-tokens": self.max_tokens,
            "--ignore": ",".join(self.ignore),
            "--journal": self.journal,
            "--workers": None if self.workers is None else str(self.workers),  # 0 is a number, too
        }
        words = [word for name, value in flags.items() if value for word in (name, str(value))]
        words += [word for folder in self.reuse for word in ("--reuse", str(folder))]
        words += ["--extend"] * (self.extend and sweep.file is not None)
        words += [] if self.ray is None else ["--ray", *filter(None, [self.ray])]
        file = sweep.out / SWEEP_FILE if sweep.file is None else sweep.file
        name = "plan" if self.pilot else "run" if self.load is None else "load"
        return shlex.join(["asyncbench", name, str(file), *words, *(self.load or ())])
