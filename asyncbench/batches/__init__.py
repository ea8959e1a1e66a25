"""Provider batches: half the price, within a day, and each as durable as a call.

In: the trials of a model whose mode is batch. Out: the same events as of single calls. What was sent is in a
ledger of the results folder before it is sent, so a run that dies is taken up by the next one. Each module
imports only from lines above its own:

    ledger
    packing · enqueued
    desk
    harvest · searching
    submitting
    books · cancelling · standing
    polling
    switching
    lane
"""

from asyncbench.batches.books import (
    LeftOpen as LeftOpen,
    abandon as abandon,
    ask_abandoned as ask_abandoned,
    copy_given_up as copy_given_up,
    hold_again as hold_again,
    left_open as left_open,
    most_usd_of as most_usd_of,
    trials_out as trials_out,
)
from asyncbench.batches.desk import (
    BatchAccount as BatchAccount,
    BatchClock as BatchClock,
    BatchDesk as BatchDesk,
)
from asyncbench.batches.enqueued import FIRST_TOKENS as FIRST_TOKENS, EnqueuedPool as EnqueuedPool
from asyncbench.batches.harvest import Harvest as Harvest
from asyncbench.batches.lane import BatchLane as BatchLane
from asyncbench.batches.ledger import BatchLedger as BatchLedger, BatchPart as BatchPart, Step as Step
from asyncbench.batches.packing import manifest_rows as manifest_rows, trial_of as trial_of
from asyncbench.batches.polling import how_it_ended as how_it_ended
from asyncbench.batches.standing import (
    PartStanding as PartStanding,
    Stand as Stand,
    left_in_batches as left_in_batches,
    near_deletion as near_deletion,
    standing_of as standing_of,
    standings as standings,
    states_text as states_text,
    warnings_on as warnings_on,
)
from asyncbench.batches.switching import LEAST_S as LEAST_S, Switch as Switch, switch_s as switch_s
