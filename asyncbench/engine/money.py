"""What the calls of one model may cost, and what they did: set aside before each, charged after it."""

from typing import Final

from asyncbench.engine.asker import Asker
from asyncbench.engine.budget import Account
from asyncbench.engine.trial_queue import TrialQueue
from asyncbench.engine.turn import Turn
from asyncbench.errors import ProviderError
from asyncbench.pricing import Charge, charge, dollars_of
from asyncbench.records import Reply

PRICED_FOR_S: Final = 60.0  # what a call may cost holds so long, as far as the clock is concerned


class Money:
    """The money of one model, be it held by a budget or not."""

    def __init__(self, asker: Asker, queue: TrialQueue) -> None:
        self._asker, self._account, self._queue = asker, asker.account, queue
        self._billed_more: Charge | None = None  # the latest bill of a vendor above the sweep's price
        self._told_more = False

    def affords(self, turn: Turn) -> bool:
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

    def reserve(self, turn: Turn) -> bool:
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

    def insist(self, turn: Turn) -> bool:
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

    def _price(self, turn: Turn, account: Account) -> None:
        turn.priced_s, turn.terms = self._asker.now_s(), account.terms
        turn.hold = account.hold(turn.request, self._asker.epoch_s + turn.priced_s)

    def bound(self, turn: Turn) -> None:
        """Note what a call that is made now may cost: a budget that is set later counts it with that."""
        if self._account is None:
            turn.most_usd = self._asker.most_usd(turn.request, self._asker.epoch_s + turn.sent_s)
        else:
            turn.most_usd, turn.reserved_usd = dollars_of(turn.hold.most), dollars_of(turn.hold.amount)

    def settle(self, turn: Turn, cost_usd: float | None) -> None:
        """Charge a call, and give back what it did not use; None: its cost is unknown."""
        turn.charge(cost_usd)
        if self._account is not None:
            self._account.settle(turn.hold, cost_usd)

    def cost(self, turn: Turn, ended: Reply | ProviderError | None) -> float | None:
        """Return what an attempt cost, USD; 0 when it was refused before any work, None when unknown."""
        if isinstance(ended, Reply):
            charged = self.charged(ended, self._asker.epoch_s + turn.sent_s)
            turn.price_source = charged.source
            if charged.instead_of_usd is not None:
                self._billed_more = charged
            return charged.usd
        return None if ended is None or ended.may_have_been_billed else 0.0

    def source(self, turn: Turn, reply: Reply, at_s: float) -> str | None:
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
