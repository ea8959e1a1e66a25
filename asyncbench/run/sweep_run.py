"""run_sweep() and run_load(): prepare, drive and sum up one run of a sweep."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from asyncbench.cluster.messages import Cluster
from asyncbench.config.place import Place
from asyncbench.config.run_entries import WorkersWanted
from asyncbench.config.sweep import AnySweep, load_sweep, with_load
from asyncbench.errors import AsyncbenchError
from asyncbench.planning.belonging import extended
from asyncbench.records import Outcome
from asyncbench.run.copying import finished_copy, give_up_copy
from asyncbench.run.driving import drivable, drive
from asyncbench.run.options import RunOptions
from asyncbench.run.preparing import open_run, prepare
from asyncbench.run.progress import Screen, screen_for
from asyncbench.run.state import RunState
from asyncbench.run.summary import Summary
from asyncbench.run.summing_up import settle, sum_up


async def run_sweep(
    sweep: AnySweep,
    *,
    limit: int | None = None,
    pilot: int | None = None,
    models: Sequence[str] | None = None,
    mode: str | None = None,
    detach: bool = False,
    budget_usd: float | None = None,
    retry: Collection[Outcome] = (),
    max_tokens: int | None = None,
    reuse: Path | str | Sequence[Path | str] = (),
    ignore: Collection[str] = (),
    accept_loss: bool = False,
    extend: bool = False,
    resubmit: Collection[str] = (),
    workers: WorkersWanted | None = None,
    ray: str | None = None,
    journal: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    progress: bool | None = None,
    screen: Screen | None = None,
) -> Summary:
    """Run a sweep and write the results to its folder. If it was interrupted, continue where it stopped.

        summary = asyncio.run(ab.run_sweep("night.yaml", budget_usd=5))  # in a notebook: await it
        print(summary.exit, summary.as_text())

    A finished trial is never asked again. Ctrl-C stops a run and keeps all answers.

    Args:
        sweep: the path of a sweep file, a dict with its keys, or a `Sweep`.
        limit: ask each model at most this many problems. [all]
        pilot: ask each model at most this many problems of each task and length, once, for `plan`. [none]
        models: the aliases of the models to ask. [all]
        mode: how these models are asked: `realtime`, `batch` or `auto`. [as the sweep says of each]
        detach: return once all batches are sent. A later run collects their answers. [False]
        budget_usd: the most that all calls of the folder may cost, in USD, earlier runs too. [the sweep's]
        retry: ask the trials with these outcomes again: `failed`, `no_answer`, `truncated` or `refused`. An
            old answer stays if the new call fails. [none]
        max_tokens: the longest reply, in tokens, of `truncated` trials that are asked again. [the sweep's]
        reuse: a results folder, or several in order, whose complete answers are copied at no cost. [none]
        ignore: `["max_tokens"]`: with `reuse`, also copy answers that had another limit. [none]
        accept_loss: ask trials again whose files the folder lost. What they cost still counts. [False]
        extend: add the sweep to the one that its folder holds, and ask both. [False]
        resubmit: keys of parts of which nobody knows whether they were sent. They are sent again if nobody
            finds their batch, and perhaps paid twice. [none]
        workers: the number of processes that make the calls; 0: this one; `auto`: one fewer than there are
            cores. [the sweep's, else 0]
        ray: the address of a Ray cluster whose workers ask; "": the usual one. [no cluster]
        journal: where on this machine results are kept that go to a bucket. [in the user's state folder]
        env: where API keys are looked up, by variable name. [this process's environment]
        progress: show the progress. [on a terminal and in a notebook]
        screen: an object of your own that shows the progress instead. [none]

    Returns:
        A `Summary`: counters for each model, USD, seconds and the exit code.

    Raises:
        ConfigError: The sweep or an argument is wrong, or a key is missing. Nothing was spent.
        ProblemSetError: A problem set cannot be used. Nothing was spent.
        StoreError: Results cannot be written, or another run uses the folder. What was written stays.
    """
    options = RunOptions(
        limit=limit,
        pilot=pilot,
        models=models,
        mode=mode,
        detach=detach,
        budget_usd=budget_usd,
        retry=retry,
        max_tokens=max_tokens,
        reuse=tuple(map(Path, (reuse,) if isinstance(reuse, str | Path) else reuse or ())),
        ignore=ignore,
        accept_loss=accept_loss,
        extend=extend,
        resubmit=resubmit,
        workers=workers,
        ray=ray,
        journal=None if journal is None else Path(journal),
    )
    sweep = await asyncio.to_thread(extended, load_sweep(sweep)) if extend else sweep
    return await run_with_options(sweep, options, env=env, screen=screen or screen_for(progress))


async def run_load(
    sweep: AnySweep,
    *,
    load: Mapping[str, object] | None = None,
    models: Sequence[str] | None = None,
    budget_usd: float | None = None,
    workers: WorkersWanted | None = None,
    journal: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    progress: bool | None = None,
    screen: Screen | None = None,
) -> Summary:
    """Send calls at drawn times, step by step, and measure what the models deliver.

        summary = asyncio.run(ab.run_load("night.yaml", load={"rates": [1, 2, 4], "duration": "60s"}))

    A step that an earlier run measured is not measured again.

    Args:
        sweep: the path of a sweep file, a dict with its keys, or a `Sweep`.
        load: keys of `load` that replace those of the sweep. [the sweep's own]
        models: the aliases of the models to load. [all]
        budget_usd: the most that all calls of the folder may cost, in USD, earlier runs too. [the sweep's]
        workers: the number of processes that make the calls; 0: this one; `auto`: one fewer than there are
            cores. [the sweep's, else 0]
        journal: where on this machine results are kept that go to a bucket. [in the user's state folder]
        env: where API keys are looked up, by variable name. [this process's environment]
        progress: show the progress. [on a terminal and in a notebook]
        screen: an object of your own that shows the progress instead. [none]

    Returns:
        A `Summary`, whose `steps` are those that were measured.

    Raises:
        ConfigError: The load or an argument is wrong, or a key is missing. Nothing was spent.
        ProblemSetError: A problem set cannot be used. Nothing was spent.
        StoreError: Results cannot be written, or another run uses the folder. What was written stays.
    """
    loaded = with_load(sweep, load, place=Place(source="load")) if load else load_sweep(sweep)
    kept = None if journal is None else Path(journal)
    options = RunOptions(models=models, budget_usd=budget_usd, workers=workers, journal=kept, load=())
    return await run_with_options(loaded, options, env=env, screen=screen or screen_for(progress))


async def run_with_options(
    sweep: AnySweep,
    options: RunOptions,
    *,
    env: Mapping[str, str] | None = None,
    screen: Screen | None = None,
    cluster: Cluster | None = None,
) -> Summary:
    """Do what `run_sweep` does, which says what the arguments are and what is raised.

    Workers of a cluster, if one is given, ask what is asked call by call.
    """
    run = await open_run(sweep, options, env=env, screen=screen, cluster=cluster)
    async with run.notifier.until_the_end():
        async with let_go(run):
            await prepare(run)
            async with drivable(run) as driven:
                await drive(run, driven)
                await settle(run, driven)
                summary = run.notifier.summary = await sum_up(run, driven)
        summary = run.notifier.summary = await finished_copy(run, summary)
    return summary


@asynccontextmanager
async def let_go(run: RunState) -> AsyncIterator[None]:
    """Close the results folder after the body; where it fails, raise its cause."""
    try:
        try:
            yield
        except BaseExceptionGroup as errors:
            raise first_cause(errors) from None
        finally:
            await asyncio.to_thread(run.salvage.close)
    except BaseException:
        await give_up_copy(run.copy, run.screen.say)
        raise


def first_cause(errors: BaseExceptionGroup) -> BaseException:
    """Return what the user should be told: a full disk is one cause, however many tasks met it.

    An error that is none of ours is a bug, and never hidden behind one that is.
    """
    ours, bugs = errors.split(AsyncbenchError)
    if ours is None or bugs is not None:
        return errors
    first = ours.exceptions[0]
    return first_cause(first) if isinstance(first, BaseExceptionGroup) else first
