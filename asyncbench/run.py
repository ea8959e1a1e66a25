"""run_sweep(): opens everything, gives the engine ask, grade and keep, and sums up what came of it."""

import asyncio
import contextlib
import gc
import os
import platform
import random
import signal
import threading
import time
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

import orjson
import yaml

from asyncbench import preflight
from asyncbench.config import ProblemSource, Sweep, as_mapping, load_sweep, seconds_left
from asyncbench.engine.asker import GRADER_ERROR, Asker
from asyncbench.engine.lane import Lane
from asyncbench.engine.limits import Counting
from asyncbench.engine.scheduler import Scheduler
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import AsyncbenchError
from asyncbench.known_models import moves
from asyncbench.plan.tokens import longest_reply
from asyncbench.problems import ProblemSet, copy_into, generate, open_set
from asyncbench.progress import Quiet, Screen
from asyncbench.prompting import characters, request_for
from asyncbench.providers.opening import opened
from asyncbench.providers.prices import rates_of
from asyncbench.records import Grade, History, Model, Outcome, Problem, Reply, Request, Trial, outcome_of
from asyncbench.simulator.counts import ServerStats
from asyncbench.simulator.process import Simulator, running
from asyncbench.simulator.settings import Settings
from asyncbench.store.folder import Store
from asyncbench.suites import SUITES, grade
from asyncbench.summary import Exit, Summary
from asyncbench.sweep import Asked, asked_by_model, planned, planned_tasks, trials

DRAIN_S = 30.0  # after Ctrl-C, for what is in flight
BATCH = 256  # trials made at a time, off the event loop
YOUNG_OBJECTS = 20_000  # allocated between two collections of the youngest, beside those of
OBJECTS_OF_A_CALL = 200  # each call that may be in flight: through an SDK it holds about 140
MANY_CALLS = 10_000  # beyond which the threshold no longer grows
UNKNOWN = History()  # of a trial that no earlier run knows


async def run_sweep(
    sweep: Sweep | Path | str,
    *,
    limit: int | None = None,
    models: Sequence[str] | None = None,
    retry: Collection[Outcome] = (),
    env: Mapping[str, str] | None = None,
    screen: Screen | None = None,
) -> Summary:
    """Ask what is unfinished of a sweep and write the results to its folder.

    Args:
        sweep: a sweep, or the path of a sweep file.
        limit: at most this many problems per model.
        models: the aliases to ask; None: all of the sweep.
        retry: trials with these outcomes are asked again; their new answer takes the old one's place.
        env: where keys are looked up by variable name; None: this process's environment.
        screen: shows progress; None: nothing is shown.

    Raises:
        ConfigError, ProblemSetError: before anything is spent.
        StoreError: results cannot be written; what was written stays.
    """
    sweep = sweep if isinstance(sweep, Sweep) else load_sweep(sweep)
    asked = preflight.chosen(sweep, models)
    keys = preflight.keys(asked, os.environ if env is None else env)
    checked = await asyncio.to_thread(preflight.open_sources, sweep, asked)
    preflight.check_conditions(sweep, asked, checked)
    preflight.check_replays(asked)
    asked = preflight.raise_file_limit(asked)
    within_s = None if sweep.deadline is None else seconds_left(sweep.deadline, datetime.now().astimezone())
    store = await asyncio.to_thread(Store.open, sweep.out, sweep=sweep.name, again=retry)
    try:
        run = _Run(
            sweep=sweep,
            asked=asked,
            keys=keys,
            limit=limit,
            within_s=within_s,
            store=store,
            screen=screen or Quiet(),
        )
        return await run.go(await asyncio.to_thread(_sets_in_folder, sweep, asked, checked, store))
    except BaseExceptionGroup as errors:
        raise _cause(errors) from None
    finally:
        await asyncio.to_thread(store.close)


def _cause(errors: BaseExceptionGroup) -> BaseException:
    """Return what the user should be told: a full disk is one cause, however many tasks met it.

    An error that is none of ours is a bug, and never hidden behind one that is.
    """
    ours, bugs = errors.split(AsyncbenchError)
    if ours is None or bugs is not None:
        return errors
    first = ours.exceptions[0]
    return _cause(first) if isinstance(first, BaseExceptionGroup) else first


# ── problem sets: into the folder, so that it stands alone ───────────────────────────────────


def _sets_in_folder(
    sweep: Sweep, models: Sequence[Model], checked: Mapping[str, ProblemSet], store: Store
) -> dict[str, tuple[Asked, ...]]:
    """Copy or generate every problem set into the folder; return what each model is asked, by alias."""
    folder = store.folder / "problems"
    placed = {
        source.place: _in_folder(source, checked.get(source.place), folder)
        for source in preflight.sources_of(sweep, models)
    }
    return asked_by_model(sweep, models, placed)


def _in_folder(source: ProblemSource, checked: ProblemSet | None, folder: Path) -> ProblemSet:
    if checked is not None:
        return copy_into(checked, folder)
    suite = SUITES[str(source.suite)]
    parameters = suite.parsed(source.parameters, place=source.place)
    made_with = orjson.dumps([suite.generator_version, source.seed, parameters], option=orjson.OPT_SORT_KEYS)
    out = folder / f"{suite.name}-{blake2b(made_with, digest_size=6).hexdigest()}.parquet"
    if out.exists():
        return open_set(out, name=suite.name)
    return replace(generate(suite, out, seed=source.seed, **source.parameters), name=suite.name)


# ── the run ──────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run of a sweep: what it was given, while it lasts."""

    sweep: Sweep
    asked: Sequence[Model]
    keys: Mapping[str, str]
    limit: int | None
    within_s: float | None  # the deadline, from now
    store: Store
    screen: Screen

    async def go(self, sets: Mapping[str, tuple[Asked, ...]]) -> Summary:
        """Ask, until done, stopped or failed."""
        for model in self.asked:
            preflight.check_tokens(model, self.sweep.conditions, sets[model.alias])
        started_s = time.monotonic()
        self._describe(sets)
        self._warn_of_damage()
        self._warn_of_unpriced()
        self._warn_of_moving()
        lag = LoopLag()
        async with contextlib.AsyncExitStack() as stack:
            simulators = await asyncio.to_thread(self._simulate, sets, stack)
            urls = {replay: simulator.url for replay, simulator in simulators.items()}
            askers = [
                self._asker(model, sets[model.alias], urls.get(model.replay), lag, stack)
                for model in self.asked
            ]
            lanes = [self._lane(name, many, lag) for name, many in _grouped(askers).items()]
            scheduler = Scheduler(lanes=lanes, lag=lag)
            await self._drive(scheduler)
            seen = [await asyncio.to_thread(simulator.stats) for simulator in simulators.values()]
        return self._summary(scheduler, time.monotonic() - started_s, seen)

    async def _drive(self, scheduler: Scheduler) -> None:
        calls = min(MANY_CALLS, sum(model.limits.most_in_flight for model in self.asked))
        async with asyncio.TaskGroup() as beside:
            tasks = [
                beside.create_task(self.store.tend(), name="store"),
                beside.create_task(self.screen.show(_counters(scheduler)), name="screen"),
            ]
            with (
                self._deadline_of(scheduler),
                _interruptible(scheduler, self.screen),
                _rare_garbage_collection(calls),
            ):
                await scheduler.run()
            for task in tasks:
                task.cancel()

    @contextlib.contextmanager
    def _deadline_of(self, scheduler: Scheduler) -> Iterator[None]:
        """Stop the run when its time is over, unless it is being stopped anyway."""

        def ring() -> None:
            if scheduler.stopped:
                return
            self.screen.say(f"deadline: up to {DRAIN_S:.0f} s for calls in flight; the rest stays open")
            scheduler.pass_deadline(drain_s=DRAIN_S)

        alarm = None
        if self.within_s is not None:
            alarm = asyncio.get_running_loop().call_later(max(0.0, self.within_s), ring)
        try:
            yield
        finally:
            if alarm is not None:
                alarm.cancel()

    def _simulate(
        self, sets: Mapping[str, tuple[Asked, ...]], stack: contextlib.AsyncExitStack
    ) -> dict[str | None, Simulator]:
        """Start a simulator for the models that need one, and one for each folder that is replayed."""
        needing = [model for model in self.asked if model.simulated and model.base_url is None]
        simulators: dict[str | None, Simulator] = {}
        for replay in dict.fromkeys(model.replay for model in needing):
            alike = [model for model in needing if model.replay == replay]
            paths = {one.problems.path for model in alike for one in sets[model.alias]}
            folders = () if replay is None else (Path(replay),)
            settings = Settings(problems=tuple(sorted(paths)), replay=folders)
            simulators[replay] = stack.enter_context(running(settings))
        return simulators

    def _lane(self, name: str, askers: list[Asker], lag: LoopLag) -> Lane:
        return Lane(
            name=name,
            askers=askers,
            limits=askers[0].model.limits,
            keep=self.store.keep,
            say=self.screen.say,
            lag=lag,
            epoch_s=askers[0].epoch_s,
        )

    def _asker(
        self,
        model: Model,
        sets: tuple[Asked, ...],
        simulator_url: str | None,
        lag: LoopLag,
        stack: contextlib.AsyncExitStack,
    ) -> Asker:
        provider = opened(model, key=self.keys[model.alias], simulator_url=simulator_url)
        stack.push_async_callback(provider.aclose)
        counters = Counters(planned=planned(self.sweep, sets, limit=self.limit))
        every = trials(self.sweep, model, sets, limit=self.limit)
        return Asker(
            model=model,
            source=_unfinished(every, self.store, counters),
            ask=provider.ask,
            grade=_grade,
            keep=self.store.keep,
            characters=characters,
            longest=lambda request: longest_reply(request.trial.model, request.trial.condition),
            rates=rates_of(model),
            counters=counters,
            lag=lag,
            epoch_s=time.time() - asyncio.get_running_loop().time(),
            jitter=random.Random(),  # noqa: S311  spreads retries in time; guards nothing
            counting=Counting(model.limits.counts),
        )

    def _describe(self, sets: Mapping[str, tuple[Asked, ...]]) -> None:
        """Write down in the folder what is being run, before the first call."""
        used = {one.problems.path.name: one.problems for many in sets.values() for one in many}
        self.store.write_file("sweep.yaml", yaml.safe_dump(as_mapping(self.sweep), sort_keys=False).encode())
        self.store.write_manifest(
            {
                "asyncbench": version("asyncbench"),
                "python": platform.python_version(),
                "simulated": any(model.simulated for model in self.sweep.models),
                "runs": {self.sweep.name: {"planned": self._planned(sets)}},
                "problem_sets": {
                    name: {"name": one.name, "rows": one.rows, "digest": one.digest, "seed": one.seed}
                    for name, one in sorted(used.items())
                },
            }
        )

    def _planned(self, sets: Mapping[str, tuple[Asked, ...]]) -> dict[str, dict[str, object]]:
        """Return the trials of the whole sweep: alias → condition → suite → task.

        Models and conditions that are not asked this time keep the plan they had.
        """
        before = self.store.manifest.get("runs", {}).get(self.sweep.name, {"planned": {}})
        known: dict[str, dict[str, object]] = before["planned"]
        plans = {alias: planned_tasks(self.sweep, many) for alias, many in sets.items()}
        return known | {alias: known.get(alias, {}) | plan for alias, plan in plans.items()}

    def _warn_of_damage(self) -> None:
        for one in self.store.damaged:
            self.screen.say(f"{one.segment.name}, line {one.line}: damaged and left out; the rest is kept")

    def _warn_of_unpriced(self) -> None:
        unpriced = [model.alias for model in self.asked if rates_of(model)(None, time.time()) is None]
        if unpriced:
            self.screen.say(
                f"no price is known for {', '.join(unpriced)}: their cost will be NULL. "
                "Give `price: {input: …, output: …}` (USD for a million tokens) in the sweep."
            )

    def _warn_of_moving(self) -> None:
        for why in filter(None, (moves(model.model_id) for model in self.asked if not model.simulated)):
            self.screen.say(f"{why}. The report tells who answered.")

    def _summary(self, scheduler: Scheduler, seconds: float, seen: Sequence[ServerStats]) -> Summary:
        models = _counters(scheduler)
        causes = set()
        if scheduler.overdue:
            if any(one.done < one.planned for one in models.values()):
                causes.add(Exit.DEADLINE)
        elif scheduler.stopped:
            causes.add(Exit.INTERRUPTED)
        if not all(one.complete for one in models.values()):
            causes.add(Exit.UNFINISHED)
        return Summary(
            sweep=self.sweep.name,
            out=self.sweep.out,
            models=models,
            causes=frozenset(causes),
            seconds=seconds,
            simulated=any(model.simulated for model in self.asked),
            seen=seen,
        )


def _grouped(askers: Sequence[Asker]) -> dict[str, list[Asker]]:
    """Return the models of each lane: those of a group together, every other by itself."""
    lanes: dict[str, list[Asker]] = {}
    for asker in askers:
        lanes.setdefault(asker.model.limits.group or asker.model.alias, []).append(asker)
    return lanes


def _counters(scheduler: Scheduler) -> dict[str, Counters]:
    return {asker.model.alias: asker.counters for lane in scheduler.lanes for asker in lane.askers}


async def _unfinished(
    every: Iterator[Trial], store: Store, counters: Counters
) -> AsyncGenerator[tuple[Request, History], None]:
    """Yield what has no result yet, as requests; files are read off the event loop."""
    while batch := await asyncio.to_thread(_next_unfinished, every, store, counters):
        for trial in batch:
            yield request_for(trial), store.histories.get(trial.trial_id, UNKNOWN)


def _next_unfinished(every: Iterator[Trial], store: Store, counters: Counters) -> list[Trial]:
    batch: list[Trial] = []
    for trial in every:
        if trial.trial_id in store.finished:
            counters.done_before += 1
            counters.failed_before += trial.trial_id in store.failed
        else:
            batch.append(trial)
        if len(batch) == BATCH:
            break
    return batch


def _grade(problem: Problem, reply: Reply | None, style: str) -> tuple[Grade, ...]:
    try:
        return grade(problem, reply, style)
    except Exception as error:  # a fault in a grader must not cost an answer that was paid for
        return (_ungraded(problem, reply, error),)


def _ungraded(problem: Problem, reply: Reply | None, error: Exception) -> Grade:
    """Return the mark of a reply that a grader stumbled over; the reply is kept and can be graded again."""
    return Grade(
        grader=SUITES[problem.suite].graders[0],
        grader_version=0,
        headline=True,
        answer=None,
        classification=None,
        reason=GRADER_ERROR,
        outcome=outcome_of(reply, answer=None, exact_match=False),
        exact_match=False,
        flags=(type(error).__name__,),
    )


@contextlib.contextmanager
def _interruptible(scheduler: Scheduler, screen: Screen) -> Iterator[None]:
    """Let Ctrl-C or SIGTERM stop the run: once drains what is in flight, twice gives it up."""

    def interrupt() -> None:
        if scheduler.stopped:
            scheduler.stop(drain_s=0)
            screen.say("leaving now; calls in flight are given up and will be asked again")
        else:
            scheduler.stop(drain_s=DRAIN_S)
            screen.say(f"stopping: up to {DRAIN_S:.0f} s for calls in flight; once more to leave at once")

    loop = asyncio.get_running_loop()
    # Only the main thread may: elsewhere (a notebook's worker) the caller cancels the task instead.
    is_main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    for number in signals:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def _rare_garbage_collection(calls: int) -> Iterator[None]:
    """Keep the cyclic collector from walking through the SDKs' million objects again and again.

    Calls leave few cycles behind, but they allocate a lot, and each collection held up every request in
    flight: a quarter of the CPU of a call, and half a second at a time with 5,000 in flight. What is alive
    now is set aside; what `calls` in flight hold is not taken for garbage; the young are still collected.
    """
    threshold = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS + OBJECTS_OF_A_CALL * calls, *threshold[1:])
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()
