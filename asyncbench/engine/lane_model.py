"""One model of a lane: its queue, money, journal and grading, and the tokens to expect of its calls.

    PendingTrial  ←  TrialQueue  ←  Money  ←  Attempts  ←  Closing
                     (waits)        (costs)   (journal)    (grades, retries)

Each part knows those to its left alone; the lane calls all of them.
"""

import asyncio
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from asyncbench.engine.attempts import Attempts, Money
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN, Amounts, Counting, counted, demanded
from asyncbench.engine.same_failures import OUTAGE, SameFailures
from asyncbench.engine.stopping import right_of
from asyncbench.engine.trial_queue import ModelClient, PendingTrial, TrialQueue, wait_before_retry
from asyncbench.errors import FINAL_FOR_LANE, ErrorKind, LostCallError, ProviderError, UnsentError
from asyncbench.records import GRADER_ERROR, TOLD_NOTES, Attempt, Grade, Reply, Result, Usage

# ── Warm-up: a model before its first answer


FEW: Final = 4  # calls in flight before any of them showed that key and model are good
QUIET_S: Final = 0.4  # without a word: a dead key is told sooner
QUIET_WIDER_S: Final = 0.1  # beyond that: each time twice as many may be, for a model may think for minutes
PATIENT_S: Final = 20.0  # the same after a failure
WIDER_S: Final = 2.0
WORTH_TELLING: Final = 3  # calls from the first on that were one too many
ENOUGH: Final = 5  # of them, before a model may be given up
HOPELESS_S: Final = 300.0  # in which no call was admitted

_TOO_MANY: Final = frozenset({ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED})
# Who says this has read the request: the key and the name of the model are good.
_READ_IT: Final = frozenset(
    {ErrorKind.BAD_REQUEST, ErrorKind.TOO_LONG, ErrorKind.BLOCKED, ErrorKind.BAD_REPLY}
)


@dataclass(slots=True, kw_only=True)
class WarmUp:
    """The state of a model before its first answer; times are the loop's clock."""

    answered_before: bool  # by earlier runs
    passed: bool = False  # a call showed that key and name are good
    _calm_since_s: float = math.inf  # the first call, or the latest failure
    _least: int = FEW  # in flight then
    _patience: tuple[float, float] = (QUIET_S, QUIET_WIDER_S)
    _too_many: int = 0  # calls that were one too many
    _first_s: float = 0.0  # when the first of them ended
    _patient_until_s: float = 0.0
    _unreported: ProviderError | None = None  # that was not told yet

    def most(self, at_s: float) -> float:
        """Return how many calls may be in flight."""
        return math.inf if self.passed else self._least * 2.0 ** min(30, self._steps(at_s))

    def wider_s(self, at_s: float) -> float:
        """Return when `most` rises next; inf: time alone does not raise it."""
        calm_s, wider_s = self._patience
        return math.inf if self.passed else self._calm_since_s + calm_s + wider_s * self._steps(at_s)

    def _steps(self, at_s: float) -> int:
        """Return how often `most` has risen."""
        calm_s, wider_s = self._patience
        return int(max(-wider_s, at_s - self._calm_since_s - calm_s) // wider_s) + 1

    def started(self, at_s: float) -> None:
        """Note that a call starts."""
        self._calm_since_s = min(self._calm_since_s, at_s)

    def ended(
        self, ended: Reply | ProviderError, at_s: float, *, in_flight: int = 0, paced: bool = True
    ) -> None:
        """Take in how a call ended.

        Args:
            ended: its reply, or how it failed.
            at_s: now.
            in_flight: calls that go on.
            paced: by a limit that somebody told. Else a refusal may be about how many are in flight.
        """
        if isinstance(ended, Reply) or (ended.kind in _READ_IT and not ended.foreign):
            self.passed = True
        if self.passed or isinstance(ended, Reply):
            return
        self._calm_since_s, self._least = at_s, max(FEW, in_flight)
        waits = in_flight >= FEW and ended.kind in _TOO_MANY and not paced  # for one of them to be answered
        self._patience = math.inf if waits else PATIENT_S, WIDER_S
        if ended.kind not in _TOO_MANY:
            return
        # Its own word of when to come back is waited for, and that of a day's limit of which nothing remains.
        days = [limit for limit in ended.allowances if limit.period_s > 60 and limit.remaining == 0]
        named_s = max([ended.retry_after_s or 0.0, *(day.reset_s or 0.0 for day in days)])
        if not self._too_many:
            self._first_s, self._patient_until_s = at_s, at_s + named_s + HOPELESS_S
        elif named_s > HOPELESS_S and at_s <= self._first_s + HOPELESS_S:
            self._patient_until_s = max(self._patient_until_s, at_s + named_s + HOPELESS_S)
        self._too_many += 1
        if self._too_many == WORTH_TELLING:
            self._unreported = ended

    def message(self) -> str | None:
        """Return, once, a warning that every call is refused; None: there is none."""
        error, self._unreported = self._unreported, None
        if error is None:
            return None
        stops = f"The model stops if this lasts {HOPELESS_S / 60:.0f} minutes"
        follows = "asyncbench tries it again now and then" if self.answered_before else stops
        return f"the provider refuses every call so far ({error.kind.value}: {error.message}). {follows}"

    def hopeless(self, at_s: float) -> bool:
        """Whether a model that never answered has refused every call for so long that it will go on."""
        refuses = self._too_many >= ENOUGH and at_s > self._patient_until_s
        return refuses and not self.passed and not self.answered_before


# ── Closing of trials


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
        self._failures = 0  # likewise, of the kinds that may be a trial's own

    async def close(self, pending: PendingTrial, attempt: Attempt, reply: Reply) -> None:
        """Grade a reply and close its trial."""
        if pending.tries:
            self._answers += 1
            if self.same.answered(pending):
                self.accept()
        trial = pending.request.trial
        reply.max_tokens = attempt.max_tokens
        if self._client.grades_long(trial.problem, reply):
            async with self._client.grading:
                grades = await asyncio.to_thread(self._client.grade, trial.problem, reply, trial.condition)
        else:
            grades = self._client.grade(trial.problem, reply, trial.condition)
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
        alone = self._fails_alone(pending, error)
        if error.kind in FINAL_FOR_LANE:
            # What was refused like this stays open: a later run asks it again.
            self._queue.suspend(f"{error.kind.value}: {error.message}")
        elif self._warm_up.hopeless(self._client.now_s()):
            self._queue.suspend(f"{error.kind.value}: every call was refused: {error.message}")
        elif not alone and error.kind not in OUTAGE:
            self._compare(pending, error)
        if self.same.certain and not self._counters.in_flight:  # what is in flight may be answered
            self._queue.suspend(self.same.why)
        if self._counters.suspended is not None:
            return None
        wait_s = None if self._fails_for_good(pending, error) else self._wait_s(pending, error, paused=paused)
        if wait_s is None and (alone or error.kind in OUTAGE):
            self._close_failed(pending, error)
        elif wait_s is None:
            self.same.held.append((pending, error))
        return wait_s

    def _compare(self, pending: PendingTrial, error: ProviderError) -> None:
        """Find out whether whatever the model is asked fails in the same way."""
        if self.same.failed(pending, error, self._client.now_s()):
            self.accept()
        if self.same.suspicious:
            # Another part of the set tells more than the neighbours of what was refused.
            self._queue.pending.rotate(1)

    def _wait_s(self, pending: PendingTrial, error: ProviderError, *, paused: bool) -> float | None:
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

    def _fails_alone(self, pending: PendingTrial, error: ProviderError) -> bool:
        """Note how a trial failed; return whether others were answered since it first failed like this."""
        pending.note_failure(f"{error.kind} {error.message}", counts=(self._answers, self._failures))
        return pending.same_words > 1 and self._answers > pending.counts_then[0]

    def _fails_for_good(self, pending: PendingTrial, error: ProviderError) -> bool:
        """Whether a trial met the same error again and again while hardly any other did."""
        if error.kind not in _OF_THE_TRIAL:
            return False
        self._failures += 1
        answers, failures = self._answers - pending.counts_then[0], self._failures - pending.counts_then[1]
        others = failures - pending.same_words
        return pending.same_words >= SAME_WORDS and answers >= WELL * max(1, others)

    def _close_failed(self, pending: PendingTrial, error: ProviderError) -> None:
        grades = self._client.grade(pending.request.trial.problem, None, pending.request.trial.condition)
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
        self._client.keep(
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


# ── Token estimates, learnt from like calls


QUANTILE: Final = 0.8  # of the latest replies are no longer than is set aside; more would wait for nothing
LONGEST: Final = 1.0  # the same of a call that failed: it may have been refused for being long
REMEMBERED: Final = 64  # replies of a cell
MOST_CELLS: Final = 1_000  # a set of the user's own may have a length for each row
ENOUGH_REPLIES: Final = 5  # replies of a cell, before all the model's replies tell less than they do
UNSEEN_OUTPUT_TOKENS: Final = 256  # before any reply was seen and where no max_tokens is set

Kind = tuple[str, str, int | None, str]  # task, variant, length, condition: whose replies are alike


class TokenEstimates:
    """The tokens to expect of one model's calls."""

    def __init__(self, counting: Counting = Counting.USED) -> None:
        self._counting = counting
        self._kinds: dict[Kind, _Lengths] = {}
        self._all = _Lengths()
        self._per_character = 1 / CHARACTERS_PER_TOKEN
        self._learnt = 0

    @property
    def taught(self) -> bool:
        """Whether enough replies were seen to expect others like them."""
        return self._all.count >= ENOUGH_REPLIES

    def guesses(self, pending: PendingTrial) -> bool:
        """Whether nothing says how many tokens a call may use: neither replies seen nor a longest one."""
        return not self.taught and pending.longest is None

    def amounts(self, pending: PendingTrial) -> Amounts:
        """Return what to set aside for a call; before any reply was seen, the longest that is allowed."""
        lengths = self._kinds.get(_kind_of(pending), self._all)
        if lengths.count < ENOUGH_REPLIES:
            lengths = self._all
        output_tokens = (
            lengths.quantile(LONGEST if pending.tries else QUANTILE)
            if lengths.count
            else float(pending.longest or UNSEEN_OUTPUT_TOKENS)
        )
        input_tokens = pending.characters * self._per_character
        if self._counting is Counting.DEMANDED:
            return Amounts(1.0, demanded(pending.characters, pending.longest), input_tokens, output_tokens)
        return Amounts(1.0, input_tokens + output_tokens, input_tokens, output_tokens)

    def used(self, pending: PendingTrial, ended: Reply | ProviderError) -> Amounts:
        """Return what a call was counted for, as far as that is known."""
        if isinstance(ended, Reply):
            if ended.usage is not None:
                self._learn(pending, ended.usage)
            return counted(ended.usage, pending.reserved, self._counting)
        if ended.may_have_been_billed or ended.kind is ErrorKind.SERVER_ERROR:
            return pending.reserved
        return Amounts(pending.reserved.requests)

    def _learn(self, pending: PendingTrial, usage: Usage) -> None:
        if usage.output_tokens is not None:
            kind = _kind_of(pending)
            lengths = self._kinds.pop(kind, None) or _Lengths()
            self._kinds[kind] = lengths  # the latest last
            if len(self._kinds) > MOST_CELLS:
                del self._kinds[next(iter(self._kinds))]
            lengths.add(usage.output_tokens)
            self._all.add(usage.output_tokens)
        if usage.input_tokens and pending.characters:
            self._learnt += 1
            ratio = usage.input_tokens / pending.characters
            self._per_character += (ratio - self._per_character) / min(self._learnt, 50)


def _kind_of(pending: PendingTrial) -> Kind:
    problem = pending.request.trial.problem
    return problem.task, problem.variant, problem.length, pending.request.trial.condition.name


class _Lengths:
    """The latest replies' lengths; they are sorted when a quantile is needed."""

    __slots__ = ("_latest", "_sorted", "count")

    def __init__(self) -> None:
        self.count = 0
        self._latest: deque[int] = deque(maxlen=REMEMBERED)
        self._sorted = list[int]()

    def add(self, tokens: int) -> None:
        self.count += 1
        self._latest.append(tokens)
        self._sorted.clear()

    def quantile(self, part: float) -> float:
        self._sorted = self._sorted or sorted(self._latest)
        return float(self._sorted[math.ceil(part * len(self._sorted)) - 1])


# ── A model and its parts


class LaneModel:
    """The trials of one model, from its problem sets to their results."""

    def __init__(self, client: ModelClient) -> None:
        client.now_s = asyncio.get_running_loop().time
        self.client, self.counters, self.alias = client, client.counters, client.model.alias
        self.estimates = TokenEstimates(client.counting)
        self.warm_up = WarmUp(answered_before=client.answered_before)
        self.queue = TrialQueue(client)
        self.money = Money(client, self.queue)
        self.attempts = Attempts(client, self.money)
        self.closing = Closing(client, self.money, self.queue, self.warm_up)
        self.waiting = 0  # trials to be tried again
        self.credit = 0  # turns that its group owes it, times what the group has left
        self.away = False  # its lane waits for long: other models need not wait for this one
        self.not_before_s = -inf  # the loop's clock: a provider's word about this model of a group
        self._told_notes = set[str]()  # the kinds of notes of replies that a person was told
        if client.account is not None:
            client.account.join(client.counters, asks=self._asks, now_s=client.now_s)

    @property
    def left(self) -> int:
        """How many of its trials are open: its weight in a group."""
        return max(1, self.counters.open)

    @property
    def ready(self) -> bool:
        """Whether a fresh trial may be taken."""
        blocked = self.narrow or self.client.now_s() < self.not_before_s
        return bool(self.queue.pending) and not blocked

    @property
    def narrow(self) -> bool:
        """Whether as many calls are in flight as may be before the first answer, or while none succeeds."""
        at_s, same = self.client.now_s(), self.closing.same
        most = self.warm_up.most(at_s) if not same.suspicious else 1 if at_s >= same.next_s else 0
        return self.counters.in_flight >= most

    @property
    def exhausted(self) -> bool:
        """Whether there is, and will be, nothing more to take."""
        return (self.queue.dry or self.counters.over) and not self.queue.pending

    def lose(self, pending: PendingTrial, lost: LostCallError | UnsentError) -> None:
        """Write down that nobody knows how a call ended. Its trial is next, unless all its calls are lost.

        A call that was not made leaves no trace.

        Such a one is left to another run: it may be what its process dies of.
        """
        if isinstance(lost, UnsentError):
            self.attempts.forget(pending)
        else:
            self.attempts.lose(pending, lost)
        if pending.tries < self.client.model.retry.attempts:
            self.queue.put_back(pending)

    def messages(self) -> Iterator[str]:
        """Return warnings for a person, each once."""
        of_account = None if self.client.account is None else self.client.account.message()
        yield from filter(None, (of_account, self.money.message(), self.warm_up.message()))
        yield from self.new_notes()

    def new_notes(self) -> Iterator[str]:
        """Return what of replies was not believed or passed over, at the first reply of each kind."""
        for note in self.counters.notes:
            kind = next((kind for kind in TOLD_NOTES if note.startswith(kind)), note)
            if kind not in self._told_notes:
                self._told_notes.add(kind)
                yield f"{note}. The summary counts such replies, `attempts` names them in `note`"

    def _asks(self) -> bool:
        """Whether this model would begin another trial soon."""
        blocked = self.away or self.client.now_s() < self.not_before_s
        return bool(self.queue.pending or not self.queue.dry) and not self.counters.over and not blocked
