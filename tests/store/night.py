"""What dying processes work at: a run of a sweep, and the opening of its folder afterwards."""

import asyncio
from pathlib import Path

from asyncbench.records import History, Outcome
from asyncbench.store.folder import Store
from tests.store.made import (
    add,
    answered,
    ended,
    keep,
    refused,
    reply,
    result,
    sent,
    skipped,
    trial,
    trial_id,
)

TRIALS = range(3000)
AGAIN = {Outcome.FAILED}


def before(folder: Path) -> None:
    """Fill a folder, sealed: a failed trial, one that was answered, two that were not asked."""
    add(folder, *refused(0), *answered(1), skipped(2), skipped(8))


def interrupted(store: Store) -> None:
    """Keep what a run may leave behind: all that can be begun, ended, answered again, and not finished."""
    keep(store, *answered(0, attempt=2), *answered(2, alias="large"), *refused(3), skipped(9))
    store.keep(ended(trial(4), None, cost_usd=0.0))
    for n in (5, 6):
        store.keep(sent(trial(n)))
    store.keep(ended(trial(6), reply(6)))


def recover(folder: Path) -> None:
    Store.open(folder, sweep="night", again=AGAIN).close()


def run(folder: Path) -> None:
    """Ask what is unfinished, ten trials at a time; end when all is done."""
    with Store.open(folder, sweep="night") as store:
        asyncio.run(_run(store))


async def _run(store: Store) -> None:
    async with asyncio.TaskGroup() as beside:
        tending = beside.create_task(store.tend(sync_every_s=0.001, seal_at_results=300))
        slots = asyncio.Semaphore(10)
        async with asyncio.TaskGroup() as asked:
            for n in TRIALS:
                if trial_id(n) not in store.finished:
                    asked.create_task(_ask(store, n, slots))
        tending.cancel()


async def _ask(store: Store, n: int, slots: asyncio.Semaphore) -> None:
    async with slots:
        asked, history = trial(n), store.histories.get(trial_id(n), History())
        attempt = history.attempts
        if history.ended is None:
            attempt += 1
            store.keep(sent(asked, attempt=attempt))
            await asyncio.sleep(0.001)
            store.keep(ended(asked, reply(n), attempt=attempt))
        await asyncio.sleep(0.001)
        store.keep(result(asked, reply(n), attempts=attempt))
        with (store.folder / "told").open("a") as told:  # what the run believes to be safe
            told.write(f"{trial_id(n)}\n")
