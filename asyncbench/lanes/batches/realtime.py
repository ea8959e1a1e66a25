"""Ask in real time what batches leave, if the sweep's `fallback` or its deadline wants that."""

from collections.abc import Callable
from dataclasses import replace

from asyncbench.engine.lane import Lane
from asyncbench.engine.model_client import ModelClient, TrialFeed
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.lanes.batches.context import BatchContext
from asyncbench.lanes.batches.switching import Switching
from asyncbench.records import REALTIME, History


class RealtimeFallback:
    """The trials of one model that are in no further batch, and the lane that asks them call by call."""

    def __init__(
        self, context: BatchContext, client: ModelClient, open_lane: Callable[[ModelClient], Lane]
    ) -> None:
        self.lane: Lane | None = None  # while it asks
        self._context, self._client, self._open_lane = context, client, open_lane
        self._trials: list[PendingTrial] = []
        self._stopped = False

    @property
    def waiting(self) -> bool:
        """Whether there are trials to ask."""
        return bool(self._trials)

    def add(self, pending: PendingTrial) -> None:
        """Take a trial that is in no further batch."""
        self._trials.append(pending)

    def stop(self) -> None:
        """Ask nothing more; calls in flight go on to their end."""
        self._stopped = True
        if self.lane is not None:
            self.lane.stop()

    async def ask(self, switching: Switching) -> None:
        """Ask the trials that came so far; return when all of them are closed.

        Where the sweep does not want that, and no deadline either, they stay open.
        """
        context, late = self._context, switching.begins_none
        if not self._trials or self._stopped or switching.ending.cancels or self._client.counters.over:
            return
        if not late and context.batching.fallback != REALTIME:
            return

        count = f"{len(self._trials):,} trials"
        why = f"{count} were not answered in {context.batching.rounds} batches each"
        if switching.collects:
            why = f"{count} were left by batches"
        elif late:
            why = f"there is no time for batches of {count}"
        if context.shared.absent is None:
            context.notify(f"{why}. Asking them in real time, at the full price.")

        # A budget sets aside the full price for them. Trials that shared a model share one again: what a run
        # learns of a model, it keeps by that object.
        trials = [pending.request.trial for pending in self._trials]
        models = {id(trial.model): trial.model for trial in trials}
        realtime_models = {key: replace(model, mode=REALTIME) for key, model in models.items()}
        histories = {
            pending.request.trial.trial_id: History(attempts=pending.attempts, cost_usd=pending.cost_usd)
            for pending in self._trials
        }
        client = replace(
            self._client,
            feed=TrialFeed(
                trials=iter([replace(trial, model=realtime_models[id(trial.model)]) for trial in trials]),
                histories=histories,
            ),
        )
        self._trials.clear()

        self.lane = self._open_lane(client)
        await self.lane.run()
        self.lane = None
