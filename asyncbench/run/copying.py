"""Copy a run's results to a bucket: a claim before its first call, uploads meanwhile and at its end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from asyncbench.config.sweep import Sweep
from asyncbench.errors import AsyncbenchError
from asyncbench.run.options import RunOptions
from asyncbench.run.state import OpenRun
from asyncbench.run.summary import Exit, Summary
from asyncbench.store.bucket.claiming import OvertakenError
from asyncbench.store.copying import FolderCopy

Say = Callable[[str], None]


@asynccontextmanager
async def claimed_copy(sweep: Sweep, options: RunOptions, notify: Say) -> AsyncIterator[FolderCopy | None]:
    """Claim the folder in a bucket that results go to; let it go where the run is refused after that.

    Raises:
        ConfigError: the bucket or the local folder cannot be used.
        StoreError: another run writes there, or may have left answers elsewhere.
    """
    if sweep.copied_to is None:
        yield None
        return
    claim = partial(FolderCopy.claim, sweep.copied_to, sweep.out, accept_loss=options.accept_loss)
    claiming = asyncio.ensure_future(asyncio.to_thread(claim))
    try:
        copy = await asyncio.shield(claiming)
        await asyncio.to_thread(copy.fetch_workers)
        yield copy
    except BaseException:  # nothing was written; what is refused here may be damaged
        try:
            await (await claiming).give_back()
        except AsyncbenchError as error:
            if not claiming.exception():
                notify(str(error))
        raise


async def give_up_copy(copy: FolderCopy | None, notify: Say) -> None:
    """Upload what a run leaves that fails; the upload may fail, too, and that is only said."""
    if copy is not None:
        try:
            await copy.finish(notify, tries=1)
        except AsyncbenchError as error:
            notify(str(error))


async def tend_copy(run: OpenRun) -> None:
    """Upload what is sealed, until cancelled; begin no more calls once another run writes there."""
    if run.copy is not None:
        try:
            await run.copy.tend(run.store, run.screen.say)
        except OvertakenError as error:
            run.salvage.fail(error)


async def finished_copy(run: OpenRun, summary: Summary) -> Summary:
    """Upload all that a run wrote, and return its summary with what came of that."""
    if run.copy is None:
        return summary
    try:
        await run.copy.finish(run.screen.say)
    except AsyncbenchError as error:
        lacks = f"{run.copy.address} lacks results: {error} They are all in {run.store.folder}."
        notes = (*summary.stops, lacks, f"To upload them: {summary.command}")
        return replace(summary, causes=summary.causes | {Exit.STORAGE}, stops=notes)
    try:
        await asyncio.to_thread(run.copy.remove_workers)
    except AsyncbenchError as error:
        run.screen.say(f"What workers wrote stays in {run.copy.address}, too; nobody reads it twice. {error}")
    return replace(summary, stops=(*summary.stops, f"copied to {run.copy.address}"))
