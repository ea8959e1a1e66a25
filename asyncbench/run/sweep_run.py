"""run_sweep(): opens everything, gives the engine ask, grade and keep, and sums up what came of it."""

import asyncio
import contextlib
import gc
import os
import platform
import random
import shlex
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

import orjson
import yaml

from asyncbench.config import ProblemSource, Sweep, as_mapping, load_sweep, seconds_left, with_budget
from asyncbench.engine import Asker, Cap, Counters, Counting, Lane, Ledger, LoopLag, Scheduler
from asyncbench.errors import AsyncbenchError, StoreError
from asyncbench.planning import Outlook, keep_forecast, plan_of, prices_of, rates_asked
from asyncbench.planning.forecast import is_forecast_told, read_forecasts
from asyncbench.problems import ProblemSet, copy_into, generate, open_set
from asyncbench.prompting import characters, request_for
from asyncbench.providers import is_moving_alias, longest_reply_of, open_provider, rates_of
from asyncbench.records import History, Model, Outcome, Trial
from asyncbench.run.faults import Faults
from asyncbench.run.interrupts import on_interrupt
from asyncbench.run.notify import Notifier, death_in, notifier_of
from asyncbench.run.progress import Quiet, Screen
from asyncbench.run.summary import BudgetUse, Exit, Summary
from asyncbench.simulator import ServerStats, Settings, Simulator, running
from asyncbench.store import SWEEP_FILE, Salvage, Store, finished_ids
from asyncbench.store import planned as planned_in
from asyncbench.suites import SUITES
from asyncbench.sweeps import (
    ASKED,
    Answers,
    AskedSet,
    Before,
    Needed,
    Room,
    asked_by_model,
    check_budget,
    check_conditions,
    check_kinds,
    check_longer,
    check_replays,
    check_reuse,
    check_tokens,
    chosen_models,
    corrected,
    graded,
    held_models,
    keys_for,
    most_usd_of,
    named,
    named_before,
    open_ledger,
    open_sources,
    planned,
    planned_tasks,
    raise_file_limit,
    settle,
    sources_of,
    stopping_of,
    take_over,
    trials_of,
    unpriced,
    unsettled,
)

DRAIN_S = 30.0  # after Ctrl-C, for what is in flight
YOUNG_OBJECTS = 20_000  # allocated between two collections of the youngest, beside those of
OBJECTS_OF_A_CALL = 200  # each call that may be in flight: through an SDK it holds about 140
MANY_CALLS = 10_000  # beyond which the threshold no longer grows
FORECAST_UNASKED = 30_000  # trials of a sweep, or finished: to count more would hold up its first call
UNKNOWN = History()  # of a trial that no earlier run knows


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
    sweep = sweep if isinstance(sweep, Sweep) else load_sweep(sweep)
    sweep = with_budget(sweep, budget_usd, place="run")
    asked = chosen_models(sweep, models)
    check_budget(sweep, asked)
    asked = held_models(sweep, asked)
    env = os.environ if env is None else env
    screen = screen or Quiet()
    keys = keys_for(asked, env)
    notifier = notifier_of(sweep, asked, env, screen.say, limit=limit)
    checked = await asyncio.to_thread(open_sources, sweep, asked)
    check_conditions(sweep, asked, checked)
    check_replays(asked)
    check_longer(asked, sweep.conditions, retry=retry, max_tokens=max_tokens)
    other = None if reuse is None else Path(reuse)
    check_reuse(other, ignore, out=sweep.out)
    asked = raise_file_limit(asked)
    within_s = None if sweep.deadline is None else seconds_left(sweep.deadline, datetime.now().astimezone())
    death = None if sweep.notify is None else await asyncio.to_thread(death_in, sweep.out, sweep.stop_when)
    store = await asyncio.to_thread(Store.open, sweep.out, sweep=sweep.name, again=retry, accept=accept_loss)
    salvage = Salvage(store)
    async with notifier.until_the_end():
        try:
            room = await asyncio.to_thread(Room, store, max_tokens)
            answers = None if other is None else await asyncio.to_thread(Answers.of, other, ignore=ignore)
            run = _Run(
                sweep=sweep,
                asked=asked,
                keys=keys,
                limit=limit,
                pilot=pilot,
                within_s=within_s,
                room=room,
                answers=answers,
                store=store,
                salvage=salvage,
                faults=Faults(store.folder, keys.values()),
                screen=screen,
                notifier=notifier,
                command=partial(
                    _command,
                    sweep,
                    pilot=pilot,
                    limit=limit,
                    models=models,
                    budget_usd=budget_usd,
                    retry=retry,
                    max_tokens=max_tokens,
                    reuse=other,
                    ignore=ignore,
                ),
                may_raise=pilot is None or budget_usd is not None,
            )
            notifier.command = run.command(None)
            notifier.died(death if store.dead else None)
            await asyncio.to_thread(store.begin_run)
            sets = await asyncio.to_thread(_sets_in_folder, sweep, asked, checked, store)
            summary = notifier.summary = await run.go(sets)
        except BaseExceptionGroup as errors:
            raise _cause(errors) from None
        finally:
            await asyncio.to_thread(salvage.close)
    return summary


def _command(
    sweep: Sweep,
    more: str | None,
    *,
    pilot: int | None,
    limit: int | None,
    models: Sequence[str] | None,
    budget_usd: float | None,
    retry: Collection[Outcome],
    max_tokens: int | None,
    reuse: Path | None,
    ignore: Collection[str],
) -> str:
    """Return the command that asks the same again, with `more` dollars instead of its budget.

    A sweep of no file is asked by what its folder holds of it.
    """
    said = {
        "--pilot": pilot,
        "--limit": limit,
        "--models": ",".join(models or ()),
        "--budget": more or budget_usd,
        "--retry": ",".join(one.value for one in retry),
        "--max-tokens": max_tokens,
        "--reuse": reuse,
        "--ignore": ",".join(ignore),
    }
    words = [word for name, value in said.items() if value for word in (name, str(value))]
    file = sweep.out / SWEEP_FILE if sweep.file is None else sweep.file
    return shlex.join(["asyncbench", "plan" if pilot else "run", str(file), *words])


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
) -> dict[str, tuple[AskedSet, ...]]:
    """Copy or generate every problem set into the folder; return what each model is asked, by alias."""
    folder = store.folder / "problems"
    placed = {
        source.place: _in_folder(source, checked.get(source.place), folder)
        for source in sources_of(sweep, models)
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
    return replace(generate(suite, out, seed=source.seed, workers=1, **source.parameters), name=suite.name)


# ── the run ──────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run of a sweep: what it was given, while it lasts."""

    sweep: Sweep
    asked: Sequence[Model]
    keys: Mapping[str, str]
    limit: int | None
    pilot: int | None  # problems of a cell
    within_s: float | None  # the deadline, from now
    room: Room
    answers: Answers | None  # of another folder
    store: Store
    salvage: Salvage
    screen: Screen
    notifier: Notifier
    command: Callable[[str | None], str]  # that goes on with it, with so many dollars
    may_raise: bool  # whether it may take more of them: of a pilot's budget and the sweep's the lower holds
    faults: Faults
    ledger: Ledger | None = None  # from `go` on; None: there is no budget
    before: Before | None = None  # from `go` on; None: no rule stops a cell

    async def go(self, sets: Mapping[str, tuple[AskedSet, ...]]) -> Summary:
        """Ask, until done, stopped or failed."""
        check_kinds(self.sweep.conditions, [one for many in sets.values() for one in many])
        for model in self.asked:
            check_tokens(self.room.most(model), self.sweep.conditions, sets[model.alias])
        started_s = time.monotonic()
        self.ledger = await asyncio.to_thread(open_ledger, self.sweep, self.store.folder)
        await asyncio.to_thread(self._describe, sets)
        if self.pilot is None and self.store.finished:
            await asyncio.to_thread(self._forecast, sets)  # as it was known before this run
        self._warn_of_damage()
        self._warn_of_unpriced()
        self._warn_of_moving()
        await asyncio.to_thread(self._warn_of_corrected, sets)
        await self._take_over(sets)
        if self.sweep.stop_when is not None:
            self.before = await asyncio.to_thread(Before.of, self.store.folder, again=self.store.again)
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
            self.salvage.stop = partial(self._stop_for_the_disk, scheduler)
            await self._drive(scheduler)
            await asyncio.to_thread(self._count_finished, scheduler, sets)
            await self._settle(scheduler, sets)
            seen = [await asyncio.to_thread(simulator.stats) for simulator in simulators.values()]
            rest_usd = await asyncio.to_thread(self._rest_usd, sets)
        return self._summary(scheduler, time.monotonic() - started_s, seen, rest_usd)

    @property
    def _caps(self) -> Sequence[Cap]:
        return () if self.ledger is None else self.ledger.caps

    async def _take_over(self, sets: Mapping[str, tuple[AskedSet, ...]]) -> None:
        """Close what another folder has answered."""
        if self.answers is not None:
            taken = await take_over(
                self.answers,
                self.sweep,
                [replace(model, budget_params={}) for model in self.asked],  # nothing is sent
                sets,
                limit=self.limit,
                store=self.store,
                salvage=self.salvage,
            )
            self.screen.say(f"{taken:,} answers were taken over from {self.answers.folder}")

    def _stop_for_the_disk(self, scheduler: Scheduler, error: StoreError) -> None:
        scheduler.stop(drain_s=DRAIN_S)
        self.screen.say(f"{error} Stopping: up to {DRAIN_S:.0f} s for calls in flight.")

    async def _drive(self, scheduler: Scheduler) -> None:
        calls = min(MANY_CALLS, sum(model.limits.most_in_flight for model in self.asked))
        async with asyncio.TaskGroup() as beside:
            tasks = [
                beside.create_task(self.salvage.tend(), name="store"),
                beside.create_task(self.screen.show(_counters(scheduler), self._caps), name="screen"),
            ]
            with (
                self._deadline_of(scheduler),
                _interruptible(scheduler, self.screen),
                _rare_garbage_collection(calls),
            ):
                await scheduler.run()
            for task in tasks:
                task.cancel()

    def _count_finished(self, scheduler: Scheduler, sets: Mapping[str, tuple[AskedSet, ...]]) -> None:
        """Count what earlier runs finished of that to which this one, ending early, did not come."""
        met = Counter({alias: one.done_before for alias, one in _counters(scheduler).items()})
        for asker in (asker for lane in scheduler.lanes for asker in lane.askers):
            if met.total() >= len(self.store.finished):
                return  # of others nothing is finished
            if asker.counters.open:
                before = self._before_of(asker.model, sets[asker.model.alias])
                asker.counters.done_before = met[asker.model.alias] = before.done_before
                asker.counters.failed_before = before.failed_before

    def _before_of(self, model: Model, sets: Sequence[AskedSet]) -> Counters:
        """Count what earlier runs finished of all that one model is asked; no trial is made for it."""
        before = Counters()

        def count(trial_id: str) -> bool:
            _is_finished(self.store, before, trial_id)
            return True

        every = trials_of(self.sweep, model, sets, limit=self.limit, per_cell=self.pilot, skip=count)
        next(every, None)  # all are skipped
        return before

    async def _settle(self, scheduler: Scheduler, sets: Mapping[str, tuple[AskedSet, ...]]) -> None:
        """Write down what of stopped cells this run did not come to, unless it shall leave at once."""
        askers = [asker for lane in scheduler.lanes for asker in lane.askers]
        models = {
            asker.model.alias: (asker.model, asker.stopping)
            for asker in askers
            if asker.stopping is not None and unsettled(asker.stopping)
        }
        if not models or (scheduler.stopped and not scheduler.overdue):
            return
        self.screen.say("working out what of this run is skipped")
        self._forget(askers)
        reopened = await settle(
            self.sweep,
            models,
            sets,
            limit=self.limit,
            per_cell=self.pilot,
            folder=self.store.folder,
            salvage=self.salvage,
        )
        if reopened:
            self.screen.say(
                f"{reopened:,} trials that were skipped are open again, for by the new answers too little is "
                "known of their cells; running it again asks them"
            )

    def _forget(self, askers: Sequence[Asker]) -> None:
        """Let go of what told which trials to ask: of many of them memory need not hold it twice."""
        self.before = None
        for asker in askers:
            if asker.stopping is not None:
                asker.stopping.forget()

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
            loop = asyncio.get_running_loop()
            alarm = loop.call_later(max(0.0, self.within_s), ring)
            if self.ledger is not None:
                self.ledger.ends_s = loop.time() + self.within_s
        try:
            yield
        finally:
            if alarm is not None:
                alarm.cancel()

    def _simulate(
        self, sets: Mapping[str, tuple[AskedSet, ...]], stack: contextlib.AsyncExitStack
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
            keep=self.salvage.keep,
            say=self.screen.say,
            lag=lag,
            epoch_s=askers[0].epoch_s,
        )

    def _asker(
        self,
        model: Model,
        sets: tuple[AskedSet, ...],
        simulator_url: str | None,
        lag: LoopLag,
        stack: contextlib.AsyncExitStack,
    ) -> Asker:
        provider = open_provider(model, key=self.keys[model.alias], simulator_url=simulator_url)
        stack.push_async_callback(provider.aclose)
        tell_fault = partial(self.faults.note, model.alias)
        counters = Counters(planned=planned(self.sweep, sets, limit=self.limit, per_cell=self.pilot))
        met = Counters()  # what earlier runs closed, as far as trials were looked at
        needed = self._needed(counters)
        skip = partial(_is_finished, self.store, met)
        every = trials_of(
            self.sweep,
            model,
            sets,
            limit=self.limit,
            per_cell=self.pilot,
            skip=skip if needed is None else partial(needed.passes, skip),
            left_out=None if needed is None else needed.left_out,
            model_of=partial(self.room.model_of, model),
        )
        return Asker(
            model=model,
            trials=every,
            history_of=partial(_history_of, self.store.histories, needed),
            request_for=request_for,
            tell_read=partial(_show_met, counters, met),
            ask=provider.ask,
            grade=partial(graded, tell_fault=tell_fault),
            tell_fault=tell_fault,
            keep=self.salvage.keep,
            characters=characters,
            longest=lambda request: longest_reply_of(request.trial.model, request.trial.condition),
            rates=rates_of(model),
            counters=counters,
            lag=lag,
            epoch_s=time.time() - asyncio.get_running_loop().time(),
            jitter=random.Random(),  # noqa: S311  spreads retries in time; guards nothing
            counting=Counting(model.limits.counts),
            tell_suspended=partial(self.notifier.suspended, model.alias),
            account=None if self.ledger is None else self.ledger.account_of(model.alias),
            most_usd=most_usd_of(self.sweep, model),
            stopping=None if needed is None else needed.stopping,
        )

    def _needed(self, counters: Counters) -> Needed | None:
        when = self.sweep.stop_when
        if when is None or self.before is None:
            return None
        stopping = stopping_of(when, self.before, self.salvage.keep, counters, time.time)
        return Needed(before=self.before, stopping=stopping)

    def _describe(self, sets: Mapping[str, tuple[AskedSet, ...]]) -> None:
        """Write down in the folder what is being run, before the first call."""
        used = {one.problems.path.name: one.problems for many in sets.values() for one in many}
        self.store.write_sweep_file(
            yaml.safe_dump(as_mapping(self.sweep), sort_keys=False).encode(),
            {
                "asyncbench": version("asyncbench"),
                "python": platform.python_version(),
                "simulated": any(model.simulated for model in self.sweep.models),
                "runs": {self.sweep.name: {"planned": self._planned(sets)}},
                ASKED: named(named_before(self.store.folder, self.store.manifest), self.asked),
                "budget": None if self.ledger is None else self.ledger.described(),
                "problem_sets": {
                    name: {"name": one.name, "rows": one.rows, "digest": one.digest, "seed": one.seed}
                    for name, one in sorted(used.items())
                },
            },
        )

    def _forecast(self, sets: Mapping[str, tuple[AskedSet, ...]]) -> None:
        """Write down what is expected, for a report to judge by, where that is new and soon found out."""
        counts = {one.alias: planned(self.sweep, sets[one.alias], limit=self.limit) for one in self.asked}
        finished = self.store.finished
        if max(sum(counts.values()), len(finished)) > FORECAST_UNASKED:
            return
        try:
            if all(map(self._is_forecast, self.asked, counts.values())):
                return
            found = plan_of(
                self.sweep, self.asked, sets, limit=self.limit, finished=finished, begun=True, quick=True
            )
            keep_forecast(found, by="run")
        except StoreError as error:
            self.screen.say(f"nothing is forecast: {error}")

    def _is_forecast(self, model: Model, trials: int) -> bool:
        """Return whether so many trials of a model, at today's prices, were forecast before."""
        rates = (rates_asked(model, one, time.time()) for one in self.sweep.conditions)
        before = read_forecasts(self.store.folder)
        return is_forecast_told(before, model.alias, limit=self.limit, trials=trials, prices=prices_of(rates))

    def _planned(self, sets: Mapping[str, tuple[AskedSet, ...]]) -> dict[str, dict[str, object]]:
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
        for path in self.store.lost:
            self.screen.say(f"{path}: taken for lost; what its calls cost counts still")
        if any(path.startswith("grades/") for path in self.store.lost):
            self.screen.say(f"lost grades are made anew by `asyncbench regrade {self.sweep.out} --write`")

    def _warn_of_corrected(self, sets: Mapping[str, tuple[AskedSet, ...]]) -> None:
        """Say what stays as it was though another would be right: that asks for grades, not for answers."""
        used = dict.fromkeys(one.problems.path for many in sets.values() for one in many)
        if changed := corrected(self.store.folder, list(used)):
            self.screen.say(
                f"{changed:,} finished trials were graded by answers that have changed since. They are not "
                f"asked again: `asyncbench regrade {self.sweep.out}` shows what changes, --write keeps it"
            )
        if self.room.had_it:
            self.screen.say(
                f"{self.room.had_it:,} trials were cut at {self.room.max_tokens:,} tokens or more before: "
                "they stay as they are"
            )

    def _warn_of_unpriced(self) -> None:
        without = [model.alias for model in self.asked if rates_of(model)(None, time.time()) is None]
        if without:
            outside = " and no budget holds them" if self._caps else ""
            self.screen.say(
                f"no price is known for {', '.join(without)}: their cost will be NULL{outside}. "
                "Give `price: {input: …, output: …}` (USD for a million tokens) in the sweep."
            )

    def _warn_of_moving(self) -> None:
        for why in filter(
            None, (is_moving_alias(model.model_id) for model in self.asked if not model.simulated)
        ):
            self.screen.say(f"{why}. The report tells who answered.")

    def _summary(
        self, scheduler: Scheduler, seconds: float, seen: Sequence[ServerStats], rest_usd: float | None
    ) -> Summary:
        models, spent = _counters(scheduler), self._spent(rest_usd)
        more = spent.to_go_on if spent is not None and self.may_raise else None
        causes = set()
        if scheduler.overdue:
            if any(one.open for one in models.values()):
                causes.add(Exit.DEADLINE)
        elif scheduler.stopped:
            causes.add(Exit.INTERRUPTED)
        if any(one.budget_stopped and one.open for one in models.values()):
            causes.add(Exit.BUDGET)
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
            budget=spent,
            command=self.command(more),
            raises_budget=more is not None,
            asked_again=bool(self.store.again),
            conditions=self._conditions(),
        )

    def _conditions(self) -> Counter[str]:
        """Return under how many conditions each model is asked, by alias."""
        names = {one.name for one in self.sweep.conditions}
        return Counter(alias for _, alias, name in planned_in(self.store.manifest) if name in names)

    def _spent(self, rest_usd: float | None = None) -> BudgetUse | None:
        outside = [alias for alias in unpriced(self.sweep) if alias in {model.alias for model in self.asked}]
        if self.ledger is None:
            return None
        return BudgetUse(ledger=self.ledger, outside=outside, rest_usd=rest_usd)

    def _rest_usd(self, sets: Mapping[str, tuple[AskedSet, ...]]) -> float | None:
        """Return what the rest takes at the 95th percentile, USD, where the sweep's own budget stopped it.

        None where nobody needs to know, too few replies tell it, or it is not soon found out.
        """
        spent = self._spent()
        if spent is None or spent.to_go_on is None or not self.may_raise or self.pilot is not None:
            return None
        count = sum(planned(self.sweep, sets[one.alias], limit=self.limit) for one in self.asked)
        if self.store.again or count > FORECAST_UNASKED:
            return None
        finished = finished_ids(self.store.folder)
        found = plan_of(
            self.sweep, self.asked, sets, limit=self.limit, finished=finished, begun=True, quick=True
        )
        held = {one.model for one in spent.ledger.accounts}
        left = [one for one in found.models if one.left and one.model in held]
        costs = [None if one.guessed else one.cost_at(Outlook.CAREFUL) for one in left]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None


def _grouped(askers: Sequence[Asker]) -> dict[str, list[Asker]]:
    """Return the models of each lane: those of a group together, every other by itself."""
    lanes: dict[str, list[Asker]] = {}
    for asker in askers:
        lanes.setdefault(asker.model.limits.group or asker.model.alias, []).append(asker)
    return lanes


def _counters(scheduler: Scheduler) -> dict[str, Counters]:
    return {asker.model.alias: asker.counters for lane in scheduler.lanes for asker in lane.askers}


def _is_finished(store: Store, counters: Counters, trial_id: str) -> bool:
    """Return whether a trial needs no call, and count it."""
    if trial_id not in store.finished:
        return False
    counters.done_before += 1
    counters.failed_before += trial_id in store.failed
    return True


def _history_of(histories: Mapping[str, History], needed: Needed | None, trial: Trial) -> History | None:
    """Return what earlier runs know of a trial; None: it need not be asked."""
    history = histories.get(trial.trial_id, UNKNOWN)
    return history if needed is None or needed.holds(trial, history) else None


def _show_met(counters: Counters, met: Counters) -> None:
    """Show what was left out: a thread that a run leaves behind changes `met` alone."""
    counters.done_before, counters.failed_before = met.done_before, met.failed_before


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

    with on_interrupt(interrupt):
        yield


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
