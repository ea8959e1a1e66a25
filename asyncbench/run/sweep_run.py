"""run_sweep(): prepares, drives, settles and sums up one run of a sweep."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from asyncbench.config import Sweep
from asyncbench.errors import AsyncbenchError
from asyncbench.records import Outcome
from asyncbench.run.driving import drivable, drive
from asyncbench.run.options import RunOptions
from asyncbench.run.preparing import open_run, prepare
from asyncbench.run.progress import Screen
from asyncbench.run.settling import settle
from asyncbench.run.summary import Summary
from asyncbench.run.summing_up import sum_up


async def run_sweep(
    sweep: Sweep | Path | str,
    *,
    limit: int | None = None,
    pilot: int | None = None,
    models: Sequence[str] | None = None,
    budget_usd: float | None = None,
    retry: Collection[Outcome] = (),
    max_tokens: int | None = None,
    reuse: Path | str | None = None,
    ignore: Collection[str] = (),
    accept_loss: bool = False,
    env: Mapping[str, str] | None = None,
    screen: Screen | None = None,
) -> Summary:
    """Ask what is unfinished of a sweep and write the results to its folder.

    Args:
        sweep: a sweep, or the path of a sweep file.
        limit: at most this many problems per model.
        pilot: of each task and length at most this many of them, each once: enough for `plan` to forecast by.
        models: the aliases to ask; None: all of the sweep.
        budget_usd: what all calls of the folder may cost, those of earlier runs too, instead of the sweep's
            own; budgets of models and providers stay.
        retry: trials with these outcomes are asked again; their new answer takes the old one's place. Where
            the new call fails, the old answer stays.
        max_tokens: with `truncated` in `retry`: what those get, more than they had; they stay the same.
        reuse: another results folder; its complete answers to what would be asked here are taken over.
        ignore: `max_tokens`: take over also what was asked with another one, unless it is longer than ours.
        accept_loss: take for lost what is missing or damaged in the folder, and ask it again; what it cost
            counts still.
        env: where keys are looked up by variable name; None: this process's environment.
        screen: shows progress; None: nothing is shown.

    Raises:
        ConfigError, ProblemSetError: before anything is spent.
        StoreError: results cannot be written; what was written stays.
    """
    options = RunOptions(
        limit=limit,
        pilot=pilot,
        models=models,
        budget_usd=budget_usd,
        retry=retry,
        max_tokens=max_tokens,
        reuse=None if reuse is None else Path(reuse),
        ignore=ignore,
        accept_loss=accept_loss,
    )
    return await run_as_told(sweep, options, env=env, screen=screen)


async def run_as_told(
    sweep: Sweep | Path | str,
    options: RunOptions,
    *,
    env: Mapping[str, str] | None = None,
    screen: Screen | None = None,
) -> Summary:
    """Do what `run_sweep` does, which says what the arguments are and what is raised."""
    run = await open_run(sweep, options, env=env, screen=screen)
    async with run.notifier.until_the_end():
        try:
            await prepare(run)
            async with drivable(run) as driven:
                await drive(run, driven)
                await settle(run, driven)
                summary = run.notifier.summary = await sum_up(run, driven)
        except BaseExceptionGroup as errors:
            raise first_cause(errors) from None
        finally:
            await asyncio.to_thread(run.salvage.close)
    return summary


def first_cause(errors: BaseExceptionGroup) -> BaseException:
    """Return what the user should be told: a full disk is one cause, however many tasks met it.

    An error that is none of ours is a bug, and never hidden behind one that is.
    """
    ours, bugs = errors.split(AsyncbenchError)
    if ours is None or bugs is not None:
        return errors
    first = ours.exceptions[0]
    return first_cause(first) if isinstance(first, BaseExceptionGroup) else first
