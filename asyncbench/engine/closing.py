"""Close the trials of one model: grade replies, and decide what becomes of a trial whose call failed.

A failed trial is tried again, closed as failed, or held until others show whether the model as a whole fails.
"""

import asyncio
from dataclasses import replace
from math import inf
from typing import Final

from asyncbench.engine.attempts import Money
from asyncbench.engine.model_client import ModelClient
from asyncbench.engine.pending_trial import PendingTrial, wait_before_retry
from asyncbench.engine.same_failures import OUTAGE, SameFailures
from asyncbench.engine.stopping import right_of
from asyncbench.engine.trial_queue import TrialQueue
from asyncbench.engine.warm_up import WarmUp
from asyncbench.errors import FINAL_FOR_LANE, ErrorKind, ProviderError
from asyncbench.records import GRADER_ERROR, Attempt, Grade, Reply, Result

SAME_WORDS: Final = 4  # failures in a row of a trial while others do well: it does so for good
WELL: Final = 20  # answers of others, and for each so many no more than one failure
_OF_THE_TRIAL: Final = frozenset({ErrorKind.SERVER_ERROR, ErrorKind.BAD_REPLY, ErrorKind.TIMEOUT})


class Closing:
    """Closes the trials of one model."""

    def __init__(self, client: ModelClient, money: Money, queue: TrialQueue, warm_up: WarmUp) -> None:
        self._client, self._counters = client, client.counters
        self._money, self._queue, self._warm_up = money, queue, warm_up
        self.same = SameFailures(answers=max(0, client.counters.done_before - client.counters.failed_before))
        self._answers = 0  # of this run
        self._failures = 0  # of this run, of the kinds that may be a trial's own

    async def close(self, pending: PendingTrial, attempt: Attempt, reply: Reply) -> None:
        """Grade a reply and close its trial."""
        if pending.tries:
            self._answers += 1
            if self.same.answered(pending):
                self.accept()
        trial = pending.request.trial
        reply.max_tokens = attempt.max_tokens
        grade = self._client.records.grade
        if self._client.grades_long(trial.problem, reply):
            async with self._client.grading:
                grades = await asyncio.to_thread(grade, trial.problem, reply, trial.condition)
        else:
            grades = grade(trial.problem, reply, trial.condition)
        self._write(pending, attempt, reply, grades)

    def accept(self) -> None:
        """Close the trials that failed: each is alone in it. Of a suspended model they stay open."""
        if self._counters.suspended is None:
            for pending, error in self.same.held:
                self._close_failed(pending, error)
        self.same.held.clear()

    def failed(self, pending: PendingTrial, error: ProviderError, *, paused: bool) -> float | None:
        """Suspend the model, hold the trial as failed, or return the seconds until it is tried again.

        Args:
            paused: the lane is. What the provider says to wait then is about the lane, not the trial's time.
        """
        # A trial whose like failures others had answers to is alone in it.
        pending.note_failure(f"{error.kind} {error.message}", counts=(self._answers, self._failures))
        alone = pending.same_words > 1 and self._answers > pending.counts_then[0]

        # Give the model up, if what is refused here is refused for all.
        if error.kind in FINAL_FOR_LANE:
            # What was refused like this stays open: a later run asks it again.
            self._queue.suspend(f"{error.kind.value}: {error.message}")
        elif self._warm_up.hopeless(self._client.now_s()):
            self._queue.suspend(f"{error.kind.value}: every call was refused: {error.message}")
        elif not alone and error.kind not in OUTAGE:
            if self.same.failed(pending, error, self._client.now_s()):
                self.accept()
            if self.same.suspicious:
                # Another part of the set tells more than the neighbours of what was refused.
                self._queue.pending.rotate(1)
        if self.same.certain and not self._counters.in_flight:  # what is in flight may be answered
            self._queue.suspend(self.same.why)
        if self._counters.suspended is not None:
            return None

        # Try again, or close the trial: at once if it is alone, else when others show that it is.
        wait_s = None if self._fails_for_good(pending, error) else self._wait_s(pending, error, paused=paused)
        if wait_s is None and (alone or error.kind in OUTAGE):
            self._close_failed(pending, error)
        elif wait_s is None:
            self.same.held.append((pending, error))
        return wait_s

    def _wait_s(self, pending: PendingTrial, error: ProviderError, *, paused: bool) -> float | None:
        """Return the seconds until a trial is tried again, or None after its last attempt or its time."""
        now_s, policy = self._client.now_s(), self._client.model.retry
        excused = paused and error.retry_after_s is not None
        wait_s = wait_before_retry(
            error,
            attempt=pending.tries,
            elapsed_s=now_s - pending.since_s,
            policy=replace(policy, total_s=inf) if excused else policy,
            jitter=self._client.jitter.random(),
        )
        if excused and wait_s is not None:
            pending.since_s = now_s + wait_s
        return wait_s

    def _fails_for_good(self, pending: PendingTrial, error: ProviderError) -> bool:
        """Whether a trial met the same error again and again while hardly any other did."""
        if error.kind not in _OF_THE_TRIAL:
            return False
        self._failures += 1
        answers, failures = self._answers - pending.counts_then[0], self._failures - pending.counts_then[1]
        others = failures - pending.same_words
        return pending.same_words >= SAME_WORDS and answers >= WELL * max(1, others)

    def _close_failed(self, pending: PendingTrial, error: ProviderError) -> None:
        trial = pending.request.trial
        grades = self._client.records.grade(trial.problem, None, trial.condition)
        self._write(pending, None, error, grades)

    def _write(
        self,
        pending: PendingTrial,
        answered: Attempt | None,
        ended: Reply | ProviderError,
        grades: tuple[Grade, ...],
    ) -> None:
        """Close a trial; its times are those of the attempt that was answered."""
        trial, reply = pending.request.trial, ended if isinstance(ended, Reply) else None
        self._client.records.keep(
            Result(
                trial=trial,
                reply=reply,
                error=ended if isinstance(ended, ProviderError) else None,
                grades=grades,
                attempts=pending.attempts,
                cost_usd=pending.cost_usd,
                price_source=self._money.price_source(pending, reply, answered.started_at)
                if reply and answered
                else None,
                queued_s=answered.queued_s if answered else None,
                ttft_s=answered.ttft_s if answered else None,
                latency_s=answered.latency_s if answered else None,
                finished_at=self._client.epoch_s + self._client.now_s(),
            )
        )
        headline, stopping = grades[0], self._client.stopping
        self._counters.outcomes[headline.outcome] += 1
        if headline.score is not None:
            self._counters.scored += 1
            self._counters.score += headline.score
        self._counters.grader_errors += headline.reason == GRADER_ERROR
        if stopping is not None:
            stopping.close(trial.trial_id, right=right_of(headline.outcome))
