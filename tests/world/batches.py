"""Nights of batches against one simulator, whose clock is put forward instead of waiting."""

import asyncio
import itertools
import math
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import orjson
import pytest

from asyncbench import read_attempts, read_trials
from asyncbench.lanes.batches.context import BatchClock
from asyncbench.lanes.batches.ledger import BatchLedger
from asyncbench.planning.budget_bounds import open_ledger
from asyncbench.run import preparing
from asyncbench.run.open_batches import cancel_in_folder
from asyncbench.run.options import RunOptions
from asyncbench.run.summary import Exit
from asyncbench.run.sweep_run import run_with_options
from tests.simulators import page
from tests.sweep_files import Said, entry

_NAMES = itertools.count(2)
VENDORS = ("simulated", "simulated-anthropic")


class Forwarded(BatchClock):
    """A clock that is put forward, with the simulator's, by who waits."""

    def __init__(self, server, *, until_s=math.inf):
        super().__init__()
        self._server, self._left_s = server, until_s
        self._ahead_s = orjson.loads(page(server, "/clock"))["ahead_s"]

    def now(self):
        return time.time() + self._ahead_s

    async def sleep(self, seconds):
        self._left_s -= seconds
        if self._left_s < 0:
            raise TimeoutError
        self._ahead_s += seconds
        page(self._server, "/clock", {"forward_s": seconds})
        await asyncio.sleep(0)


class Night:
    """One sweep of one model, which no other night asks; its faults are its own."""

    def __init__(self, server, problems, folder, vendor, *faults, api=None, play=None, model=None, **keys):
        self.server, self.folder, self.out = server, folder, folder / "out"
        self.model = model or f"noisy-{next(_NAMES)}"
        params = {"simulate": {"batch": {"faults": list(faults), "latency_s": 100, **(play or {})}}}
        key = {} if api is None else {"api": api}
        self.raw = {
            "name": "night",
            "problems": [str(problems)],
            "models": [entry(server, f"{vendor}/{self.model}", params=params, **key)],
            "out": str(self.out),
            "mode": "batch",
            **keys,
        }
        self.screen = Said()

    @classmethod
    def of(cls, server, raw):
        """Return a night as another process began it."""
        night = cls.__new__(cls)
        night.server, night.raw, night.screen, night.out = server, raw, Said(), Path(raw["out"])
        return night

    def run(self, *, env=MappingProxyType({}), clock=None, **options):
        told = RunOptions(clock=clock or Forwarded(self.server), **options)
        return asyncio.run(run_with_options(self.raw, told, env=env, screen=self.screen))

    def cancel(self, *abandoned, clock=None):
        clock = clock or Forwarded(self.server)
        told = cancel_in_folder(self.out, abandoned, env={}, screen=self.screen, clock=clock)
        return asyncio.run(told)

    @contextmanager
    def watched(self):
        """Let `ledger` be that of the runs that begin while the body lasts."""

        def opened(*given):
            self.ledger = open_ledger(*given)
            return self.ledger

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(preparing, "open_ledger", opened)
            yield

    def run_for(self, seconds, **options):
        """Run until so many seconds have passed, then raise TimeoutError as if the process had died."""
        return self.run(clock=Forwarded(self.server, until_s=seconds), **options)

    def dies_after(self, seconds, **options):
        """Run until so many seconds have passed and the process dies: it has not ended by itself."""
        with pytest.raises((TimeoutError, ExceptionGroup)):
            self.run_for(seconds, **options)

    def completes(self, **options):
        """Run to the end, with each answer billed once."""
        assert self.run(**options).exit is Exit.COMPLETE
        assert self.billed == dict.fromkeys(self.answers, 1)

    def undisturbed(self, *, env=MappingProxyType({}), **options):
        """Ask the same in real time, in another folder; return its answers."""
        out = self.folder / "undisturbed"
        raw = {**self.raw, "out": str(out), "mode": "realtime"}
        asyncio.run(run_with_options(raw, RunOptions(**options), env=env))
        return answers_in(out)

    @property
    def answers(self):
        return answers_in(self.out)

    @property
    def attempts(self):
        return read_attempts(self.out).to_pylist()

    @property
    def truth(self):
        told = orjson.loads(page(self.server, "/stats/batches"))
        return [batch for batch in told if batch["model"] == self.model]

    @property
    def billed(self):
        """How often each trial was answered in batches, and billed."""
        keys = {part.key for part in self.parts}
        lines = map(orjson.loads, page(self.server, "/stats/batches/executed").splitlines())
        billed = (line["custom_id"] for line in lines if line["billed"])
        return Counter(custom_id[:32] for custom_id in billed if custom_id[32:] in keys)

    @property
    def parts(self):
        return list(BatchLedger(Path(self.out)).parts.values())


def answers_in(out):
    rows = read_trials(out, ["trial_id", "outcome", "answer", "reply_text"]).to_pylist()
    assert len({row["trial_id"] for row in rows}) == len(rows)
    return {row["trial_id"]: (row["outcome"], row["answer"], row["reply_text"]) for row in rows}
