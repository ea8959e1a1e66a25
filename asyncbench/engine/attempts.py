"""The calls of one model in its journal: each before it is made, and how it ended before that is used."""

from dataclasses import dataclass
from typing import Final

from asyncbench.engine.budget import Account
from asyncbench.engine.trial_queue import ModelClient, PendingTrial, TrialQueue
from asyncbench.errors import AsyncbenchError, ErrorKind, LostCallError, ProviderError, UnwrittenError
from asyncbench.pricing import Charge, charge, dollars_of
from asyncbench.records import BATCH, Attempt, Ended, Reply, Sent

# ── What the calls of one model may cost, and what they did: set aside before each, charged after it


PRICED_FOR_S: Final = 60.0  # what a call may cost holds so long, as far as the clock is concerned


class Money:
    """The money of one model, be it held by a budget or not."""

    def __init__(self, asker: ModelClient, queue: TrialQueue) -> None:
        self._asker, self._account, self._queue = asker, asker.account, queue
        self._billed_more: Charge | None = None  # the latest bill of a vendor above the sweep's price
        self._told_more = False

    def affords(self, turn: PendingTrial) -> bool:
        """Whether there is money for a call now; where there never will be, stop asking."""
        account = self._account
        if account is None or turn.answered:
            return True
        self._price(turn, account)
        if account.fits(turn.hold):
            begins_paid = not turn.tries and turn.hold.amount > 0
            return not (begins_paid and account.ahead())
        if not account.ever_fits(turn.hold):
            self._queue.stop_for_money()
            account.stop(turn.hold)
        return False

    def reserve(self, turn: PendingTrial) -> bool:
        """Set money aside for a call that is made now; where there is none, the trial waits again."""
        account = self._account
        if account is None:
            return True
        if account.terms != turn.terms or self._asker.now_s() > turn.priced_s + PRICED_FOR_S:
            self._price(turn, account)
        reserved = account.reserve(turn.hold)
        if not reserved:
            self._queue.put_back(turn)
        return reserved

    def insist(self, turn: PendingTrial) -> bool:
        """Set money aside for a call that cannot wait; where there is none now, stop asking."""
        account = self._account
        if account is None:
            return True
        self._price(turn, account)
        if account.reserve(turn.hold):
            return True
        self._queue.stop_for_money()
        account.stop(turn.hold, now=True)
        return False

    def _price(self, turn: PendingTrial, account: Account) -> None:
        turn.priced_s, turn.terms = self._asker.now_s(), account.terms
        turn.hold = account.hold(turn.request, self._asker.epoch_s + turn.priced_s)

    def bound(self, turn: PendingTrial) -> None:
        """Note what a call that is made now may cost: a budget that is set later counts it with that."""
        if self._account is None:
            turn.most_usd = self._asker.most_usd(turn.request, self._asker.epoch_s + turn.sent_s)
        else:
            turn.most_usd, turn.reserved_usd = dollars_of(turn.hold.most), dollars_of(turn.hold.amount)

    def settle(self, turn: PendingTrial, cost_usd: float | None) -> None:
        """Charge a call, and give back what it did not use; None: its cost is unknown."""
        turn.charge(cost_usd)
        if self._account is not None:
            self._account.settle(turn.hold, cost_usd)

    def cost(self, turn: PendingTrial, ended: Reply | ProviderError | None) -> float | None:
        """Return what an attempt cost, USD; 0 when it was refused before any work, None when unknown."""
        if isinstance(ended, Reply):
            charged = self.charged(ended, self._asker.epoch_s + turn.sent_s)
            turn.price_source = charged.source
            if charged.instead_of_usd is not None:
                self._billed_more = charged
            return charged.usd
        return None if ended is None or ended.may_have_been_billed else 0.0

    def source(self, turn: PendingTrial, reply: Reply, at_s: float) -> str | None:
        """Return who says what the call cost that got a reply and was sent then, UTC; None: nobody does."""
        return turn.price_source if turn.tries else self.charged(reply, at_s).source

    def charged(self, reply: Reply, at_s: float) -> Charge:
        """Return what a reply to a call costs that was sent then, UTC."""
        return charge(reply, self._asker.rates, at_s=at_s, provider=self._asker.model.provider)

    def news(self) -> str | None:
        """Tell once of a bill that is higher than by the price in the sweep."""
        billed = self._billed_more
        if self._told_more or billed is None or billed.usd is None or billed.instead_of_usd is None:
            return None
        self._told_more = True
        return (
            f"{billed.source} billed ${billed.usd:,.6f} for a call; the `price` in your sweep gives "
            f"${billed.instead_of_usd:,.6f}. asyncbench counts the larger of the two for every call"
        )


# ── attempts


GRACE_S: Final = 30.0  # beyond timeouts.total, for an adapter that does not keep it
INTERRUPTED: Final = "the run was stopped before the call ended"
LOST: Final = "lost"  # the status of a call whose end nobody knows
OF_STEP: Final = ("load", "due_at", "phase")  # of a call that a step of a load sends


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOfCall:
    """The batch that a request was in. Times are UTC, seconds since 1970."""

    id: str | None  # None: the request was in none
    created_at: float
    ended_at: float | None


class Attempts:
    """What is written down of the calls of one model."""

    def __init__(self, asker: ModelClient, money: Money) -> None:
        self._asker, self._model, self._money = asker, asker.model, money
        self.within_s = asker.model.timeouts.total + GRACE_S  # no call takes longer

    def begin(self, turn: PendingTrial) -> None:
        """Write down that a call is about to be made.

        Raises:
            UnwrittenError: it could not be; it must not be made, and holds no money.
        """
        turn.sent_s = self._asker.now_s()
        turn.tries += 1
        turn.attempts += 1
        if turn.tries == 1:
            turn.since_s = turn.sent_s
        self._money.bound(turn)
        of_step = turn.more(turn, None)
        try:
            self._asker.keep(
                Sent(
                    trial_id=turn.request.trial.trial_id,
                    attempt=turn.attempts,
                    model=self._model.alias,
                    provider=self._model.provider,
                    started_at=self._asker.epoch_s + turn.sent_s,
                    max_tokens=turn.longest,
                    reserved_usd=turn.reserved_usd,
                    most_usd=turn.most_usd,
                    **{name: of_step[name] for name in OF_STEP if name in of_step},
                )
            )
        except UnwrittenError:
            self._money.settle(turn, 0.0)
            raise

    def pack(self, turn: PendingTrial) -> None:
        """Note that a trial goes into a batch, whose own ledger tells that it was sent."""
        turn.sent_s = self._asker.now_s()
        turn.tries += 1
        turn.attempts += 1
        turn.rounds += 1
        self._money.bound(turn)

    def forget(self, turn: PendingTrial) -> None:
        """Take back an attempt that was never made."""
        turn.tries, turn.attempts = turn.tries - 1, turn.attempts - 1
        self._money.settle(turn, 0.0)

    def unpack(self, turn: PendingTrial) -> None:
        """Take a trial out of a batch that was never sent."""
        turn.rounds -= 1
        self.forget(turn)

    def collect(
        self,
        turn: PendingTrial,
        ended: Reply | ProviderError | None,
        batch: BatchOfCall,
        *,
        status: str = LOST,
        said: str | None = None,
        cost_usd: float | None = None,
    ) -> Attempt:
        """Write down what came of a request of a batch, of which no time of its own is known.

        Args:
            turn: its trial, sent when the batch was created.
            ended: its reply, or how it failed; None: it was not run, or nobody knows.
            batch: the one that it was in.
            status, said, cost_usd: what is known instead.
        """
        reply = ended if isinstance(ended, Reply) else None
        error = ended if isinstance(ended, ProviderError) else None
        attempt = Attempt(
            trial_id=turn.request.trial.trial_id,
            attempt=turn.attempts,
            model=self._model.alias,
            provider=self._model.provider,
            started_at=batch.created_at,
            status=error.kind.value if error else "ok" if reply else status,
            http_status=ended.http_status if ended else None,
            request_id=ended.request_id if ended else None,
            usage=reply.usage if reply else None,
            cost_usd=self._money.cost(turn, ended) if ended else cost_usd,
            raw_usage=reply.raw_usage if reply else None,
            note=reply.note if reply else None,
            max_tokens=turn.longest,
            reserved_usd=turn.reserved_usd,
            most_usd=turn.most_usd,
            error=error.message if error else None if reply else said,
            mode=BATCH,
            batch_id=batch.id,
            batch_ended_at=batch.ended_at,
        )
        self._asker.keep(Ended(attempt=attempt, reply=reply))
        self._money.settle(turn, attempt.cost_usd)
        self._asker.counters.count(attempt)
        return attempt

    def failure(self, turn: PendingTrial, error: Exception) -> ProviderError:
        """Return what a call raised as a failure of that call; raise what is no matter of one call."""
        if isinstance(error, TimeoutError):
            said = f"no reply within timeouts.total and {GRACE_S:.0f} s more"
            error = ProviderError(ErrorKind.TIMEOUT, said)
        elif not isinstance(error, AsyncbenchError):
            # Its text is not repeated: it may hold a key.
            self._asker.counters.faults += 1
            self._asker.tell_fault(error)
            said = f"asyncbench could not read the reply ({type(error).__name__}): a bug of asyncbench"
            worker = getattr(error, "worker", None)
            error = ProviderError(ErrorKind.BAD_REPLY, said)
            error.worker = worker
        elif not isinstance(error, ProviderError):
            raise error
        if error.kind is ErrorKind.TIMEOUT and self._lag_s(turn, error) > self._asker.lag.LATE_S:
            error.message += "; the event loop of this computer was late: it may be no fault of the provider"
            error.args = (error.message,)
        return error.with_traceback(None)  # which leads back to it: a cycle of a failed call's size

    def lose(self, turn: PendingTrial, lost: LostCallError) -> Attempt:
        """Write down that the process of a call died, before it made it or meanwhile."""
        unsent = None if lost.sent else ProviderError(ErrorKind.UNREACHABLE, str(lost), never_sent=True)
        return self.end(turn, unsent, said=str(lost), worker=lost.worker)

    def end(
        self,
        turn: PendingTrial,
        ended: Reply | ProviderError | None,
        *,
        status: str = LOST,
        said: str = INTERRUPTED,
        worker: str | None = None,
    ) -> Attempt:
        """Write down how a call ended; None: nobody knows, with which status, why and in which worker.

        A reply is to be closed before anything is awaited: both are written at once.
        """
        reply = ended if isinstance(ended, Reply) else None
        error = ended if isinstance(ended, ProviderError) else None
        measured_s = None if reply is None else reply.latency_s
        attempt = Attempt(
            trial_id=turn.request.trial.trial_id,
            attempt=turn.attempts,
            model=self._model.alias,
            provider=self._model.provider,
            started_at=self._asker.epoch_s + turn.sent_s,
            queued_s=turn.sent_s - turn.taken_s,
            ttft_s=reply.ttft_s if reply else None,
            latency_s=self._asker.now_s() - turn.sent_s if measured_s is None else measured_s,
            status=error.kind.value if error else "ok" if reply else status,
            http_status=ended.http_status if ended else None,
            retry_after_s=error.retry_after_s if error else None,
            request_id=ended.request_id if ended else None,
            usage=reply.usage if reply else None,
            cost_usd=self._money.cost(turn, ended),
            in_flight=turn.in_flight,
            loop_lag_s=self._lag_s(turn, ended),
            raw_usage=reply.raw_usage if reply else None,
            note=reply.note if reply else None,
            max_tokens=turn.longest,
            reserved_usd=turn.reserved_usd,
            most_usd=turn.most_usd,
            error=error.message if error else None if reply else said,
            worker=self._worker((ended.worker if ended else None) or worker),
            **turn.more(turn, ended),
        )
        at_once = reply is not None and not self._asker.grades_long(turn.request.trial.problem, reply)
        self._asker.keep(Ended(attempt=attempt, reply=reply, graded_next=at_once))
        self._money.settle(turn, attempt.cost_usd)
        self._asker.counters.count(attempt)
        return attempt

    def _worker(self, child: str | None) -> str | None:
        """Return which process made a call: `w003`, or `w003.2` for the second that this one started."""
        return ".".join(filter(None, (self._asker.worker, child))) or None

    def _lag_s(self, turn: PendingTrial, ended: Reply | ProviderError | None) -> float:
        """Return how late an event loop was during a call at worst: this one's, or that of its worker."""
        own_s = self._asker.lag.worst_since(turn.sent_s)
        return own_s if ended is None else max(own_s, ended.loop_lag_s)
