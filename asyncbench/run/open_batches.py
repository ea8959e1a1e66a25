"""Ask providers for the state of a folder's open batches, or cancel them and collect their answers."""

import asyncio
import os
import shlex
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from asyncbench.config.sweep import Sweep, load_sweep
from asyncbench.engine.awake import deadlines_put_off
from asyncbench.engine.telemetry import Counters
from asyncbench.errors import ProviderError
from asyncbench.files import home_expanded
from asyncbench.lanes.batches.context import BatchClock
from asyncbench.lanes.batches.ledger import BatchLedger, BatchPart, Step
from asyncbench.lanes.batches.polling import how_it_ended
from asyncbench.lanes.batches.spending import abandon, most_usd_of
from asyncbench.lanes.batches.status import part_status
from asyncbench.planning.preflight import check_environment, keys_for
from asyncbench.providers.credentials import Credentials
from asyncbench.providers.provider import open_batches
from asyncbench.records import Model
from asyncbench.run.costs import cost_text
from asyncbench.run.driving import drivable, drive
from asyncbench.run.opening import open_run
from asyncbench.run.options import RunOptions
from asyncbench.run.preparing import prepare
from asyncbench.run.progress import Quiet, Screen, screen_for
from asyncbench.run.state import OpenRun
from asyncbench.run.summary import Exit
from asyncbench.run.sweep_run import let_go
from asyncbench.store.bucket.claiming import run_folder
from asyncbench.store.folder import Store
from asyncbench.store.manifest import SWEEP_FILE, read_manifest
from asyncbench.tables.numbers import dollars, known_cost
from asyncbench.tables.report import Report


async def refresh_batches(folder: Path | str, *, env: Mapping[str, str] | None = None) -> list[str]:
    """Ask the providers how the open batches of a results folder stand, and write that down.

    Nothing is sent, collected or paid.

    Args:
        folder: the results folder. No run may be going on in it: a run asks by itself.
        env: where API keys are looked up, by variable name. [this process's environment]

    Returns:
        What could not be asked, a sentence each.

    Raises:
        ConfigError: a key is not set.
        StoreError: a run is going on in the folder, or it cannot be written.
    """
    path = run_folder(folder)
    sweep, open_parts = sweep_in(path), _open_parts(BatchLedger(path))
    models = [model for model in sweep.models if model.alias in open_parts]
    check_environment(models)
    keys = keys_for(models, os.environ if env is None else env)
    with Store.reopen(path) as store:
        ledger = BatchLedger(store.folder)
        open_parts = _open_parts(ledger)
        try:
            notes = [
                note
                for model in models
                for note in await _refresh_model(
                    model, open_parts.get(model.alias, []), ledger, keys[model.alias]
                )
            ]
            await asyncio.to_thread(ledger.sync)
        finally:
            ledger.close()
    for alias in sorted(open_parts.keys() - {model.alias for model in models}):
        notes.append(f"{alias}: the sweep has no such model any more, so its batches cannot be looked at.")
    return notes


def _open_parts(ledger: BatchLedger) -> dict[str, list[BatchPart]]:
    """Return the parts whose batches have not ended, as far as is known, by alias."""
    parts: dict[str, list[BatchPart]] = {}
    for batch_part in ledger.parts.values():
        if batch_part.submitted:
            parts.setdefault(batch_part.alias, []).append(batch_part)
    return parts


async def _refresh_model(
    model: Model, parts: Sequence[BatchPart], ledger: BatchLedger, key: Credentials
) -> list[str]:
    """Write down how the batches of a model stand; return a sentence for each that could not be read."""
    if model.simulated and model.base_url is None:
        return [f"{model.alias}: its batches are simulated, and go on only while a run does."]
    notes, api = list[str](), open_batches(model, key=key, simulator_url=None)
    try:
        for batch_part in parts:
            try:
                batch = await api.retrieve(batch_part.batch_id or "")
            except ProviderError as error:
                notes.append(f"{model.alias}: batch {batch_part.batch_id} cannot be looked at: {error}.")
                continue
            state = {"status": batch.status, "counted": batch.requests is not None, "done": batch.done}
            ledger.write(batch_part, Step.SEEN, at=time.time(), **state)
            if batch.ended and not batch.faults:  # what a run makes of faults is its own affair
                ledger.write(batch_part, Step.ENDED, at=time.time(), **how_it_ended(batch))
    finally:
        await api.aclose()
    return notes


# ── Cancelling


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled(Report):
    """Result of cancelling the batches of a results folder."""

    out: Path
    sweep: Sweep
    batches: int  # that were open
    requests: int  # in those that have ended, or were never sent; not those that earlier runs took in
    answered: int  # of them: trials that are closed now
    counters: Counters
    still_open: Sequence[BatchPart]
    abandoned: Sequence[BatchPart] = ()
    unreached: Sequence[str] = ()  # providers that could not be reached at the end, in words
    interrupted: bool = False

    @property
    def exit(self) -> Exit:
        """The exit code: batches that are still open leave the work unfinished."""
        if self.interrupted:
            return Exit.INTERRUPTED
        return Exit.UNFINISHED if self.still_open else Exit.COMPLETE

    def notes_above(self) -> Iterator[str]:
        for batch_part in self.abandoned:
            yield (
                f"part {batch_part.key} is given up: its {batch_part.requests:,} trials stay unanswered, and "
                "what they may have cost counts as spent. To ask them all the same: run with --resubmit "
                f"{batch_part.key}"
            )
        if not (self.batches or self.abandoned or self.still_open):
            yield f"{self.out}: no batch is open"
        if self.batches:
            share = f"{self.answered:,} of {self.requests:,} requests were answered"
            ended = f"{self.batches - len(self.still_open):,} of {self.batches:,} batches ended"
            yield f"{ended}: {share}, {cost_text(self.counters)}" if self.requests else ended
        if unanswered := self.requests - self.answered:
            file = self.out / SWEEP_FILE if self.sweep.file is None else self.sweep.file
            yield (
                f"{unanswered:,} trials are open again. To ask them: asyncbench run {shlex.quote(str(file))}"
            )
        for batch_part in self.still_open:
            yield f"still open: {_part_sentence(batch_part)}"
        yield from self.unreached
        if self.still_open:
            yield "what they have done is billed. To go on, cancel or run again"

    def data(self) -> Mapping[str, object]:
        return {
            "out": str(self.out),
            "batches": self.batches,
            "requests": self.requests,
            "answered": self.answered,
            "cost_usd": known_cost(self.counters.cost_usd, unknown=self.counters.unpriced),
            "unpriced_attempts": self.counters.unpriced,
            "still_open": list(map(_json_entry, self.still_open)),
            "abandoned": list(map(_json_entry, self.abandoned)),
            "exit": int(self.exit),
        }


async def cancel_batches(
    folder: Path | str,
    *,
    abandon: Collection[str] = (),
    env: Mapping[str, str] | None = None,
    progress: bool | None = None,
) -> Cancelled:
    """Cancel the open batches of a results folder, wait until they have ended, and collect their answers.

        print(asyncio.run(ab.cancel_batches("results/night")).as_text())  # in a notebook: await it

    Requests that were answered are billed. A provider may take half an hour to end a batch. Parts that were
    not sent yet are given back. A later run asks the trials without an answer.

    Args:
        folder: the results folder.
        abandon: keys of parts of which nobody knows whether they were sent. Only these are given up: their
            trials stay unanswered, and what they may have cost counts as spent. [none]
        env: where API keys are looked up, by variable name. [this process's environment]
        progress: show the progress. [on a terminal and in a notebook]

    Returns:
        A `Cancelled`: what was answered, what is still open, USD and the exit code.

    Raises:
        ConfigError: It cannot begin, for example without a key; or a part is not in doubt.
        StoreError: The folder is in use, or cannot be written.
    """
    return await cancel_in_folder(home_expanded(folder), abandon, env=env, screen=screen_for(progress))


async def cancel_in_folder(
    folder: Path,
    abandoned: Collection[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    screen: Screen | None = None,
    clock: BatchClock | None = None,
) -> Cancelled:
    """Do what `cancel_batches` does, which says what the arguments are and what is raised."""
    folder = run_folder(folder)
    sweep = sweep_in(folder)
    if abandoned:
        return await asyncio.to_thread(_abandon_parts, folder, sweep, abandoned)
    ledger, screen = BatchLedger(folder), screen or Quiet()
    aliases = {batch_part.alias for batch_part in ledger.parts.values() if batch_part.open}
    present = [model.alias for model in sweep.models if model.alias in aliases]
    for alias in sorted(aliases.difference(present)):
        screen.say(
            f"{alias}: the sweep has no such model any more, so its batches cannot be cancelled here. Cancel "
            "them in your provider's console."
        )
    if not present:
        return _cancelled(folder, sweep, ledger)
    bare = replace(sweep, deadline=None, notify=None, stop_when=None)  # they are for who asks
    options = RunOptions(models=present, ends=True, clock=clock, typed=True)
    opened = await open_run(bare, options, env=env, screen=screen)
    async with let_go(opened):
        with deadlines_put_off():
            cancelled = await _cancel_open(opened, sweep)
    if opened.copy is not None:
        await opened.copy.finish(screen.say)
    return cancelled


async def _cancel_open(opened: OpenRun, sweep: Sweep) -> Cancelled:
    """Cancel what is open, wait for it, and collect its answers."""
    run = await prepare(opened)
    ledger, leftovers = run.batches.ledger, run.batches.left_open.values()
    done = {key: len(ids) for leftover in leftovers for key, ids in leftover.done.items()}
    out = {
        batch_part.key: batch_part.requests - done[batch_part.key]
        for batch_part in ledger.parts.values()
        if batch_part.open
    }
    async with drivable(run) as driven:
        await drive(run, driven)
        counters = Counters.summed(list(driven.counters.values()))
    cancelled = _cancelled(run.store.folder, sweep, ledger, out, counters)
    unreached = [
        f"{alias}: {counters.batches.unreached}"
        for alias, counters in driven.counters.items()
        if counters.batches and counters.batches.unreached
    ]
    return replace(cancelled, unreached=unreached, interrupted=driven.scheduler.stopped)


def _cancelled(
    folder: Path,
    sweep: Sweep,
    ledger: BatchLedger,
    out: Mapping[str, int] = {},
    counters: Counters | None = None,
) -> Cancelled:
    """Return the fate of a ledger's parts; `out`: the requests that were open, by part."""
    counters = counters or Counters()
    return Cancelled(
        out=folder,
        sweep=sweep,
        batches=len(out),
        requests=sum(count for key, count in out.items() if not ledger.parts[key].open),
        answered=counters.outcomes.total(),
        counters=counters,
        still_open=[batch_part for batch_part in ledger.parts.values() if batch_part.open],
    )


def _abandon_parts(folder: Path, sweep: Sweep, keys: Collection[str]) -> Cancelled:
    """Give up parts of which nobody knows whether they were sent."""
    with Store.reopen(folder) as store:
        ledger = BatchLedger(store.folder)
        parts = abandon(ledger, keys, at=time.time())
        ledger.close()
    return replace(_cancelled(folder, sweep, ledger), abandoned=parts, still_open=())


# ── Checks before cancelling


def sweep_in(folder: Path) -> Sweep:
    """Return the sweep that was run in a results folder; raises ConfigError: it is none."""
    folder = run_folder(folder)
    read_manifest(folder)
    return replace(load_sweep(folder / SWEEP_FILE), out=folder)


def price_of_cancelling(folder: Path) -> str | None:
    """Return the open batches, and what they may still cost, or None if no batch is open."""
    ledger = BatchLedger(run_folder(folder))
    if not (parts := [batch_part for batch_part in ledger.parts.values() if batch_part.open]):
        return None
    requests, most_usd = sum(batch_part.requests for batch_part in parts), most_usd_of(ledger, parts)
    upto = "" if most_usd is None else f", at most {dollars(most_usd)}"
    written = datetime.fromtimestamp(ledger.written_at).astimezone()
    return "\n".join(
        [
            f"These batches are open, as written down at {written:%a %H:%M}:",
            *(f"  {_part_sentence(batch_part)}" for batch_part in parts),
            f"Up to {requests:,} requests may be billed{upto}. Their answers are collected. The rest costs "
            "nothing.",
        ]
    )


def _part_sentence(batch_part: BatchPart) -> str:
    name = batch_part.batch_id or f"part {batch_part.key}"
    where = f" (part {batch_part.key})" if batch_part.batch_id else ""
    return f"{batch_part.alias}: {name}{where}, {batch_part.requests:,} requests, {_state_text(batch_part)}"


def _state_text(batch_part: BatchPart) -> str:
    return part_status(batch_part, running=False, now=time.time()).state.value


def _json_entry(batch_part: BatchPart) -> dict[str, object]:
    return {
        "part": batch_part.key,
        "model": batch_part.alias,
        "batch_id": batch_part.batch_id,
        "requests": batch_part.requests,
        "step": batch_part.step.value,
        "state": _state_text(batch_part),
    }
