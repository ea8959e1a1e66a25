"""The calls of one model: money is set aside and a row written before each, both settled after it."""

from dataclasses import dataclass
from typing import Final

from asyncbench.engine.budget import Account
from asyncbench.engine.model_client import ModelClient
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.engine.trial_queue import TrialQueue
from asyncbench.errors import AsyncbenchError, ErrorKind, LostCallError, ProviderError, UnwrittenError
from asyncbench.pricing import Charge, charge, dollars_of
from asyncbench.records import BATCH, Attempt, Ended, Reply, Sent

# ── Money of one model


PRICED_FOR_S: Final = 60.0  # what a call may cost holds so long, as far as the clock is concerned


class Money:
    """The money of one model, with a budget or without."""

    def __init__(self, client: ModelClient, queue: TrialQueue) -> None:
        self._client, self._account, self._queue = client, client.account, queue
        self._billed_more: Charge | None = None  # the latest bill of a vendor above the sweep's price
        self._notified = False

    def affords(self, pending: PendingTrial) -> bool:
        """Whether there is money for a call now; where there never will be, stop asking."""
        account = self._account
        if account is None or pending.answered:
            return True
        self._price(pending, account)
        if account.fits(pending.hold):
            begins_paid = not pending.tries and pending.hold.amount > 0
            return not (begins_paid and account.ahead())
        if not account.ever_fits(pending.hold):
            self._queue.stop_for_money()
            account.stop(pending.hold.amount)
        return False

    def reserve(self, pending: PendingTrial) -> bool:
        """Set money aside for a call that is made now; where there is none, the trial waits again."""
        account = self._account
        if account is None:
            return True
        if account.terms != pending.terms or self._client.now_s() > pending.priced_s + PRICED_FOR_S:
            self._price(pending, account)
        reserved = account.reserve(pending.hold)
        if not reserved:
            self._queue.put_back(pending)
        return reserved

    def reserve_or_stop(self, pending: PendingTrial) -> bool:
        """Set money aside for a call that cannot wait; where there is none now, stop asking."""
        account = self._account
        if account is None:
            return True
        self._price(pending, account)
        if account.reserve(pending.hold):
            return True
        self._queue.stop_for_money()
        account.stop(pending.hold.amount, now=True)
        return False

    def _price(self, pending: PendingTrial, account: Account) -> None:
        pending.priced_s, pending.terms = self._client.now_s(), account.terms
        pending.hold = account.hold(pending.request, self._client.epoch_s + pending.priced_s)

    def note_bounds(self, pending: PendingTrial) -> None:
        """Note what a call that is made now may cost: a budget that is set later counts it with that."""
        if self._account is None:
            sent_at = self._client.epoch_s + pending.sent_s
            pending.most_usd = self._client.calls.most_usd(pending.request, sent_at)
        else:
            pending.most_usd, pending.reserved_usd = (
                dollars_of(pending.hold.most),
                dollars_of(pending.hold.amount),
            )

    def settle(self, pending: PendingTrial, cost_usd: float | None) -> None:
        """Charge a call, and give back what it did not use. None: its cost is unknown."""
        pending.charge(cost_usd)
        if self._account is not None:
            self._account.settle(pending.hold, cost_usd)

    def cost(self, pending: PendingTrial, ended: Reply | ProviderError | None) -> float | None:
        """Return the USD that an attempt cost; 0 if it was refused before any work, None if it is unknown."""
        if isinstance(ended, Reply):
            bill = self.charge_for(ended, self._client.epoch_s + pending.sent_s)
            pending.price_source = bill.source
            if bill.instead_of_usd is not None:
                self._billed_more = bill
            return bill.usd
        return None if ended is None or ended.may_have_been_billed else 0.0

    def price_source(self, pending: PendingTrial, reply: Reply, at_s: float) -> str | None:
        """Return the source of a call's cost, for a reply and a time of sending in UTC, or None."""
        return pending.price_source if pending.tries else self.charge_for(reply, at_s).source

    def charge_for(self, reply: Reply, at_s: float) -> Charge:
        """Return the cost of a reply to a call that was sent then, UTC."""
        return charge(reply, self._client.calls.rates, at_s=at_s, provider=self._client.model.provider)

    def message(self) -> str | None:
        """Return, once, a warning of a bill above the price in the sweep, or None."""
        billed = self._billed_more
        if self._notified or billed is None or billed.usd is None or billed.instead_of_usd is None:
            return None
        self._notified = True
        return (
            f"{billed.source} billed ${billed.usd:,.6f} for a call; the `price` in your sweep gives "
            f"${billed.instead_of_usd:,.6f}. asyncbench counts the larger of the two for every call"
        )


# ── Calls of one model in its journal


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
    """The journal of one model's calls."""

    def __init__(self, client: ModelClient, money: Money) -> None:
        self._client, self._model, self._money = client, client.model, money
        # No call takes longer; None: others see to that.
        self.within_s = client.model.timeouts.total + GRACE_S if client.calls.timed_here else None

    def begin(self, pending: PendingTrial) -> None:
        """Write down that a call is about to be made.

        Raises:
            UnwrittenError: it could not be; it must not be made, and holds no money.
        """
        pending.sent_s = self._client.now_s()
        pending.tries += 1
        pending.attempts += 1
        if pending.tries == 1:
            pending.since_s = pending.sent_s
        self._money.note_bounds(pending)
        of_step = pending.extra_columns(pending, None)
        try:
            self._client.records.keep(
                Sent(
                    trial_id=pending.request.trial.trial_id,
                    attempt=pending.attempts,
                    model=self._model.alias,
                    provider=self._model.provider,
                    started_at=self._client.epoch_s + pending.sent_s,
                    max_tokens=pending.longest,
                    reserved_usd=pending.reserved_usd,
                    most_usd=pending.most_usd,
                    **{name: of_step[name] for name in OF_STEP if name in of_step},
                )
            )
        except UnwrittenError:
            self._money.settle(pending, 0.0)
            raise

    def pack(self, pending: PendingTrial) -> None:
        """Note that a trial goes into a batch, whose own ledger tells that it was sent."""
        pending.sent_s = self._client.now_s()
        pending.tries += 1
        pending.attempts += 1
        pending.rounds += 1
        self._money.note_bounds(pending)

    def forget(self, pending: PendingTrial) -> None:
        """Take back an attempt that was never made."""
        pending.tries, pending.attempts = pending.tries - 1, pending.attempts - 1
        self._money.settle(pending, 0.0)

    def unpack(self, pending: PendingTrial) -> None:
        """Take a trial out of a batch that was never sent."""
        pending.rounds -= 1
        self.forget(pending)

    def collect(
        self,
        pending: PendingTrial,
        ended: Reply | ProviderError | None,
        batch: BatchOfCall,
        *,
        status: str = LOST,
        why: str | None = None,
        cost_usd: float | None = None,
    ) -> Attempt:
        """Write down what came of a request of a batch, of which no time of its own is known.

        Args:
            pending: its trial, sent when the batch was created.
            ended: its reply, or how it failed; None: it was not run, or nobody knows.
            batch: the one that it was in.
            status, why, cost_usd: what is known instead.
        """
        reply = ended if isinstance(ended, Reply) else None
        error = ended if isinstance(ended, ProviderError) else None
        attempt = Attempt(
            trial_id=pending.request.trial.trial_id,
            attempt=pending.attempts,
            model=self._model.alias,
            provider=self._model.provider,
            started_at=batch.created_at,
            status=error.kind.value if error else "ok" if reply else status,
            http_status=ended.http_status if ended else None,
            request_id=ended.request_id if ended else None,
            usage=reply.usage if reply else None,
            cost_usd=self._money.cost(pending, ended) if ended else cost_usd,
            raw_usage=reply.raw_usage if reply else None,
            note=reply.note if reply else None,
            max_tokens=pending.longest,
            reserved_usd=pending.reserved_usd,
            most_usd=pending.most_usd,
            error=error.message if error else None if reply else why,
            mode=BATCH,
            batch_id=batch.id,
            batch_ended_at=batch.ended_at,
        )
        self._client.records.keep(Ended(attempt=attempt, reply=reply))
        self._money.settle(pending, attempt.cost_usd)
        self._client.counters.count(attempt)
        return attempt

    def failure(self, pending: PendingTrial, error: Exception) -> ProviderError:
        """Return a call's exception as a failure of that call. One that is no matter of a call is raised."""
        if isinstance(error, TimeoutError):
            message = f"no reply within timeouts.total and {GRACE_S:.0f} s more"
            error = ProviderError(ErrorKind.TIMEOUT, message)
        elif not isinstance(error, AsyncbenchError):
            # Its text is not repeated: it may hold a key.
            self._client.counters.faults += 1
            self._client.records.note_fault(error)
            message = f"asyncbench could not read the reply ({type(error).__name__}): a bug of asyncbench"
            worker = getattr(error, "worker", None)
            error = ProviderError(ErrorKind.BAD_REPLY, message)
            error.worker = worker
        elif not isinstance(error, ProviderError):
            raise error
        elif error.fault is not None:
            self._client.records.note_fault(error.fault)
            self._client.records.note_failure(error)
        if error.kind is ErrorKind.TIMEOUT and self._lag_s(pending, error) > self._client.lag.LATE_S:
            error.message += "; the event loop of this computer was late: it may be no fault of the provider"
            error.args = (error.message,)
        return error.with_traceback(None)  # which leads back to it: a cycle of a failed call's size

    def lose(self, pending: PendingTrial, lost: LostCallError) -> Attempt:
        """Write down that the process of a call died, before it made it or meanwhile."""
        unsent = None if lost.sent else ProviderError(ErrorKind.UNREACHABLE, str(lost), never_sent=True)
        return self.end(pending, unsent, why=str(lost), worker=lost.worker)

    def end(
        self,
        pending: PendingTrial,
        ended: Reply | ProviderError | None,
        *,
        status: str = LOST,
        why: str = INTERRUPTED,
        worker: str | None = None,
    ) -> Attempt:
        """Write down how a call ended, with its status, reason and worker. None stands for what is unknown.

        A reply is to be closed before anything is awaited: both are written at once.
        """
        reply = ended if isinstance(ended, Reply) else None
        error = ended if isinstance(ended, ProviderError) else None
        measured_s = None if reply is None else reply.latency_s
        # The process that made the call: `w003`, or `w003.2` for the second that this one started.
        processes = (self._client.worker, (ended.worker if ended else None) or worker)
        attempt = Attempt(
            trial_id=pending.request.trial.trial_id,
            attempt=pending.attempts,
            model=self._model.alias,
            provider=self._model.provider,
            started_at=self._client.epoch_s + pending.sent_s,
            queued_s=pending.sent_s - pending.taken_s,
            ttft_s=reply.ttft_s if reply else None,
            latency_s=self._client.now_s() - pending.sent_s if measured_s is None else measured_s,
            status=error.kind.value if error else "ok" if reply else status,
            http_status=ended.http_status if ended else None,
            retry_after_s=error.retry_after_s if error else None,
            request_id=ended.request_id if ended else None,
            usage=reply.usage if reply else None,
            cost_usd=self._money.cost(pending, ended),
            in_flight=pending.in_flight,
            loop_lag_s=self._lag_s(pending, ended),
            raw_usage=reply.raw_usage if reply else None,
            note=reply.note if reply else None,
            max_tokens=pending.longest,
            reserved_usd=pending.reserved_usd,
            most_usd=pending.most_usd,
            error=error.message if error else None if reply else why,
            worker=".".join(filter(None, processes)) or None,
            **pending.extra_columns(pending, ended),
        )
        graded_next = reply is not None and not self._client.grades_long(pending.request.trial.problem, reply)
        self._client.records.keep(Ended(attempt=attempt, reply=reply, graded_next=graded_next))
        self._money.settle(pending, attempt.cost_usd)
        self._client.counters.count(attempt)
        return attempt

    def _lag_s(self, pending: PendingTrial, ended: Reply | ProviderError | None) -> float:
        """Return how late an event loop was during a call at worst: this one's, or that of its worker."""
        own_s = self._client.lag.worst_since(pending.sent_s)
        return own_s if ended is None else max(own_s, ended.loop_lag_s)
